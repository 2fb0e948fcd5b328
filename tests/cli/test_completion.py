"""Shell completion: what may stand next, without torch, and in the shells themselves."""

import os
import shutil
import subprocess
import sys

import pytest

from hunch import envs, methods
from hunch.cli import cache, models
from hunch.cli.commands import COMMANDS

LAKE = "hunch/FrozenLake-v0"


@pytest.fixture
def words(hunch):
    def ask(*line):
        code, out, errors = hunch("completion", "--words", *line)
        assert (code, errors) == (0, "")
        return out.split("\n")[:-1]

    return ask


def test_commands_methods_and_environments(words):
    assert set(words("")) >= set(COMMANDS)
    assert words("com") == ["compare", "completion"]
    assert words("run", "dqn-") == ["dqn-prior", "dqn-prior-released"]
    assert set(words("compare", "dqn", "")) == set(methods.METHODS)
    assert LAKE in words("run", "dqn", "--env", "hunch/Fr")
    assert words("envs", "hunch/FrozenL") == [
        name for name in envs.names() if name.startswith("hunch/FrozenL")
    ]
    assert "minilm" in words("run", "dqn-prior", "--lm", "")
    assert "zero-shot" in words("methods", "z")
    assert words("data", "c") == ["collect"]
    assert words("data", "h") == ["histories"]
    assert words("cache", "") == list(cache.COMMANDS)
    assert words("models", "") == list(models.COMMANDS)


def test_options_of_commands_methods_and_environments(words):
    found = words("run", "dqn-prior", "--env", LAKE, "--")
    assert {"--k", "--prior.way", "--config", "--keep-every", "--env.max_steps"} <= set(found)
    assert "--k" not in words("run", "dqn", "--")
    assert words("run", "dqn-prior", "--prior.wa") == ["--prior.way"]
    assert set(words("run", "dqn-prior", "--proposals", "")) == {"kept", "visited", "fresh"}
    assert "--step" in words("evaluate", "runs/a", "--st")
    assert "--roles" in words("audition", "--r")
    assert "--mix" in words("data", "collect", "--m")
    assert "--tasks" in words("data", "histories", "--ta")
    assert "--port" in words("models", "serve", "--p")
    assert "--auto" in words("play", "--a")


def test_files_and_free_values_are_left_to_the_shell(words):
    for line in (("run", "dqn", "--steps", ""), ("run", "dqn", "--out", ""), ("evaluate", ""), ("king", "")):
        assert words(*line) == [""] or words(*line) == []


def test_torch_is_not_loaded():
    code = """
import sys
from hunch.cli.main import main
for command in ["run", "evaluate", "audition", "compare", "play", "report", "foretell"]:
    main(["completion", "--words", command, "dqn", "--"])
    assert "torch" not in sys.modules, command
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_another_shell_is_one_sentence(hunch):
    for line in ((), ("tcsh",), ("bash", "zsh")):
        code, _, errors = hunch("completion", *line)
        assert (code, errors.count("\n")) == (2, 1)
        assert "bash, zsh, fish" in errors


IN_SHELL = {
    "bash": """
source <(hunch completion bash)
COMP_WORDS=(hunch run dqn-prior --prior.wa); COMP_CWORD=3
_hunch
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "fish": "hunch completion fish | source; complete -C 'hunch run dqn-prior --prior.wa'",
    "zsh": """
autoload -Uz compinit && compinit -u -d /dev/null
source <(hunch completion zsh)
compadd() { shift; print -l -- $@ }
words=(hunch run dqn-prior --prior.wa); CURRENT=4
_hunch
""",
}


@pytest.mark.parametrize("shell", IN_SHELL)
def test_the_script_works_in_its_shell(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "hunch").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hunch "$@"\n')
    (tmp_path / "hunch").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        [shutil.which(shell), "-c", IN_SHELL[shell]],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == ["--prior.way"], run.stderr
