"""What a command refuses or describes, it refuses or describes before the slow libraries are loaded."""

import subprocess
import sys

import pytest

from hunch import methods
from hunch.cli.help import method_lines

HEAVY = ("torch", "transformers", "scipy", "matplotlib")
EACH = """
import sys
from hunch.cli.main import main
for line in sys.stdin.read().splitlines():
    try:
        main(line.split())
    except SystemExit as end:
        code = end.code or 0
    else:
        code = 0
    print("ended", code, *sorted(set(sys.modules) & set(sys.argv[1:])), file=sys.stderr)
"""
LAKE = "--env hunch/FrozenLake-v0"
DESCRIBED = [
    *("--help", "run --help", "compare --help", "evaluate --help", "audition --help", "foretell --help"),
    *("report --help", "data --help", "data collect --help", "play --help", "cache --help", "lm --help"),
    *("methods", "methods dqn-prior", "envs", "envs hunch/FrozenLake-v0", "compare dqn dqn-prior --help"),
]
REFUSED = [
    "nosuch",
    "run nosuch",
    "run dqn --env hunch/Nope-v0",
    f"run dqn {LAKE} --env.nope 3",
    f"run dqn {LAKE} --steps x",
    f"run dqn {LAKE} --hidden 0",
    f"run dqn {LAKE} --lm minilm",
    f"run dqn-prior {LAKE} --lm nosuch",
    *(
        f"run dqn-prior {LAKE} --lm {spec}"
        for spec in ("minilm?nosuch=1", "minilm?folder=nowhere", "hf:/nowhere", "hf:gpt2?pooling=first")
    ),
    *(
        f"run dqn-prior {LAKE} --lm {spec}"
        for spec in ("pocket?corpus=nosuch", "scripted:nosuch", "replay:nowhere", "bag-of-words?dim=-1")
    ),
    f"compare dqn-prior {LAKE} --lm minilm?nosuch=1",
    "run dqn-prior --env hunch/PolicyCode-v0",
    f"run gif-mcts {LAKE}",
    f"run cql-prior {LAKE} --data nowhere --lm uniform",
    f"run bc-lm {LAKE} --data nowhere",
    "compare",
    "compare dqn --env hunch/Nope-v0",
    f"compare dqn {LAKE} --nosuch 3",
    f"compare dqn {LAKE} --env.nope 3",
    f"compare dqn-prior {LAKE} --lm nosuch",
    f"compare dqn-prior {LAKE} --hidden 0",
    f"compare dqn {LAKE} --seeds 0",
    f"compare cql bc {LAKE} --data nowhere",
    "evaluate nowhere",
    "audition --lm nosuch",
    "audition --nosuch",
    f"foretell nosuch {LAKE}",
    "report nowhere",
    "data show nowhere",
    "data import nowhere --env hunch/FrozenLake-v0 --out d",
    "play hunch/Nope-v0",
    "methods nosuch",
    "envs nosuch",
    "cache nosuch",
    "lm nosuch",
]


def ends(lines, folder, heavy=HEAVY):
    """Run commands one after the other in one process; return how each ended and what was loaded by then."""
    command = [sys.executable, "-c", EACH, *heavy]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, cwd=folder)
    told = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("ended ")]
    assert len(told) == len(lines), done.stderr
    return told


@pytest.mark.parametrize(("lines", "code"), [(DESCRIBED, "0"), (REFUSED, "2")], ids=["described", "refused"])
def test_nothing_slow_is_loaded(tmp_path, lines, code):
    assert dict(zip(lines, ends(lines, tmp_path), strict=True)) == {line: [code] for line in lines}
    assert list(tmp_path.iterdir()) == []


def test_nothing_slow_is_loaded_for_any_method(tmp_path):
    lines = [
        f"run {name} {more}" for name in methods.registered() for more in ("--help", f"{LAKE} --nosuch 3")
    ]
    assert ends(lines, tmp_path) == [["0"], ["2"]] * (len(lines) // 2)


def test_names_that_do_not_exist_and_help_need_no_parser(tmp_path):
    """Nor a display of progress, or what runs: half of the time of a refusal."""
    heavy = ("tyro", "typeguard", "hunch.runs.execute")
    refused = ("run dqn --env hunch/Nope-v0", "compare dqn --env hunch/Nope-v0", f"run dqn {LAKE} --nosuch 3")
    described = ("run dqn --help", "compare --help", "compare dqn dqn-prior --help")
    found = ends([*refused, f"compare dqn {LAKE} --nosuch 3", *described], tmp_path, heavy)
    assert found == [["2"]] * 4 + [["0"]] * 3


def test_help_names_every_method_and_imports_none(tmp_path):
    heavy = [f"hunch.methods.{name}" for name in ("prior.dqn_prior", "tune.grpo", "solver.alpha_proof")]
    assert ends(["run --help", "compare --help"], tmp_path, heavy) == [["0"], ["0"]]
    assert method_lines() == [(name, found.summary) for name, found in methods.registered().items()]


def test_an_argument_is_no_option(tmp_path, hunch):
    assert hunch("report", "--folders", str(tmp_path))[2].startswith("hunch: There is no option --folders.")
