"""Every file that the command reads, damaged by a seed: commands end in one sentence, and never hang."""

import json
import shutil
import signal
from contextlib import contextmanager

import pytest
from tests.damaged import copied, damage, generator

from hunch.cli.main import main
from hunch.lm import Cached, Store
from hunch.lm.answers.archive import Archive
from hunch.lm.backends.scripted import ScriptedModel, overlap
from hunch.lm.budget import Budget
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.runs.callbacks import Watch
from hunch.runs.execute import RunConfig, execute

LAKE = "hunch/FrozenLake-v0"
SECONDS = 60
"""No command may take longer."""
SMALL = DQNPriorConfig(k=2, hidden=4, warmup=10, batch_size=4, encoder="bag-of-words?dim=8")
LEARNER = RunConfig(
    method="dqn-prior", env=LAKE, lm="uniform", options=SMALL, steps=60, eval_every=30, eval_episodes=2
)
SETTINGS = {"method": "dqn-prior", "env": LAKE, "lm": "uniform", "steps": 30, "seed": 1}
SETTINGS |= {"options": {"k": 2, "hidden": 4, "warmup": 10, "batch_size": 4, "prior": {"temperature": 0.5}}}
SETTINGS |= {"env_options": {"max_steps": 9}, "eval_every": 10, "eval_episodes": 1, "budget": {"calls": 1000}}
TOML = """method = "zero-shot"
env = "hunch/FrozenLake-v0"
lm = "uniform"
steps = 20
eval_every = 10
task_seed = 3
options.prior.temperature = 0.5
env_options.max_steps = 9
budget.calls = 100
"""
EPISODE = {"observations": ["a", "b", "c"], "admissible": [["x", "y"], ["x"], []], "actions": ["y", "x"]}
EPISODE |= {"rewards": [0.0, 1.0], "terminated": True, "truncated": False, "events": ["", "e"], "seed": 3}
EPISODE |= {"tasks": ["t", "t", "t"], "raw": [1, 2, 3], "task": "t", "success": True, "behaviour": "b"}
EPISODE |= {"history": 0, "seat": 0, "lifetime": 0, "number": 0, "group": None}
ANSWERS = [{"prompt": "p", "chosen": "a", "rejected": "b"}, {"prompt": [{"role": "user", "content": "q"}]}]
ANSWERS[1] |= {"completion": "c", "label": True}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with a sound file of every kind."""
    out = tmp_path_factory.mktemp("sound")
    execute(LEARNER, out / "learner", budget=Budget(calls=10_000))
    lines = []
    execute(LEARNER, out / "half", watch=Watch(report=lines.append, stop=lambda: len(lines) >= 40))
    search = {
        "env": "hunch/Heuristic-BinPacking-v0",
        "env_options": {"items": 10, "instances": 2},
        "lm": "scripted:mutator",
    }
    execute(RunConfig(method="funsearch", options=FunSearchConfig(), steps=4, **search), out / "search")
    for name, arguments in PREPARED.items():
        main([*arguments, "--out", str(out / name)])
    (out / "run.json").write_text(json.dumps(SETTINGS))
    (out / "run.yaml").write_text(json.dumps(SETTINGS, indent=1))
    (out / "run.toml").write_text(TOML)
    (out / "episodes.jsonl").write_text(2 * (json.dumps(EPISODE) + "\n"))
    (out / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ANSWERS))
    model = Cached(ScriptedModel(overlap, error=0.4), Store(out / "cache.sqlite"))
    prompts = ["Your task is to: open it.\n- open it\n- look"] * 2
    model.generate(prompts, 2)
    model.score(prompts, [["open it", "look"]] * 2)
    model.label(prompts, [["A", "B"]] * 2)
    model.store.close()
    Archive(out / "cache.sqlite").export(out / "replay.jsonl")
    return out


PAIR = [*("compare", "dqn-prior", "zero-shot", "--env", LAKE, "--lm", "uniform", "--steps", "30")]
PAIR += [*("--no-control", "--seeds", "1", "--workers", "1", "--hidden", "4")]
PAIR += [*("--dqn-prior.encoder", "bag-of-words?dim=8")]
PREPARED = {
    "pair": PAIR,
    "data": ("data", "collect", "--env", LAKE, "--steps", "30"),
}
RUN = (
    ("report", "{}", "--out", "page.html", "--episodes", "1"),
    ("evaluate", "{}", "--episodes", "1"),
    ("play", "--run", "{}", "--auto", "--pause", "0"),
    ("run", "--config", "{}", "--out", "again"),
    ("run", "--config", "{}", "--out", "{}"),
)
SETTINGS_FILE = (
    ("run", "--config", "{}", "--out", "new"),
    ("compare", "--config", "{}", "--out", "many", "--seeds", "1"),
)
REPLAY = (
    ("lm", "replay:{}"),
    ("run", "zero-shot", "--env", LAKE, "--lm", "replay:{}", "--steps", "2", "--out", "new"),
)
CACHE = (
    ("cache", "stats", "--file", "{}"),
    ("cache", "export", "to.jsonl", "--file", "{}"),
    ("cache", "clear", "--yes", "--older-than", "1", "--file", "{}"),
)
ROWS = (
    ("data", "import", "{}", "--env", LAKE, "--out", "imported"),
    ("run", "dqn", "--data", "{}", "--env", LAKE, "--steps", "2", "--out", "new"),
)
READERS = {
    "learner": RUN,
    "half": (*RUN, ("evaluate", "{}", "--episodes", "1", "--checkpoint", "best")),
    "search": RUN,
    "pair": (("report", "{}", "--out", "page.html", "--episodes", "1"), (*PAIR, "--out", "{}")),
    "data": (
        ("data", "show", "{}"),
        ("run", "dqn", "--data", "{}", "--env", LAKE, "--steps", "2", "--out", "new"),
    ),
    **dict.fromkeys(("run.json", "run.yaml", "run.toml"), SETTINGS_FILE),
    "episodes.jsonl": ROWS,
    "answers.jsonl": (
        ("run", "sft", "--data", "{}", "--env", "hunch/Prompts-v0", "--steps", "1", "--lm", "x", "--dry-run"),
    ),
    "cache.sqlite": CACHE,
    "replay.jsonl": REPLAY,
}
"""The commands that read each file or folder."""
MADE = ("new", "again", "many", "imported", "page.html", "page.png", "page.csv", "to.jsonl")
"""What the commands write."""
UNREAD = (".lock", "events.out", "page.html")
"""Parts of names of files that nothing reads."""


def files(folder):
    """The files of a folder that may be read, in order."""
    if folder.is_file():
        return [folder]
    there = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in there if not any(part in str(path) for part in UNREAD)]


@contextmanager
def in_time():
    """Raise an error if the block takes too long."""

    def late(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def survive(sound, tmp_path, capsys, monkeypatch, cases):
    """Damage one file after another, and give each to every command that reads it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.input", lambda *_: "")
    wrong = []
    for case in cases:
        rng = generator(case)
        name = rng.choice(list(READERS))
        for command in READERS[name]:
            folder = copied(sound, tmp_path / "copy")
            again = generator(case, "damage")
            file = again.choice(files(folder / name))
            what = f"case {case}: {file.relative_to(folder)}, {damage(file, again)}: {' '.join(command)[:60]}"
            wrong += problems(what, [part.format(folder / name) for part in command], capsys)
            for made in map(tmp_path.joinpath, MADE):
                if made.is_dir():
                    shutil.rmtree(made)
                else:
                    made.unlink(missing_ok=True)
    assert not wrong, "\n".join(wrong)


def problems(what, command, capsys):
    """Run a command; return what is wrong with how it ends."""
    capsys.readouterr()
    code = 0
    try:
        with in_time():
            main(command)
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # what the command let through
        return [f"{what}: {type(error).__name__}: {error}"]
    output = capsys.readouterr()
    errors = output.err
    found = []
    if code not in (0, 1, 2):
        found.append(f"{what}: code {code}")
    if "HUNCH_DEBUG" in errors + output.out or "Traceback" in errors + output.out:
        found.append(f"{what}: {errors[-600:]} {output.out[-300:] if 'Traceback' in output.out else ''}")
    if code and not errors:
        found.append(f"{what}: no word")
    if "\x1b]0" in errors + output.out:
        found.append(f"{what}: control characters")
    return found


@pytest.mark.filterwarnings("default::hunch.core.HunchWarning")
def test_a_damaged_file_is_a_sentence(sound, tmp_path, capsys, monkeypatch):
    survive(sound, tmp_path, capsys, monkeypatch, range(12))


@pytest.mark.thorough
@pytest.mark.filterwarnings("default::hunch.core.HunchWarning")
@pytest.mark.parametrize("part", range(10))
def test_two_hundred_damaged_files_are_sentences(sound, tmp_path, capsys, monkeypatch, part):
    survive(sound, tmp_path, capsys, monkeypatch, range(100 + 20 * part, 120 + 20 * part))
