"""Where the output goes: a pipe whose reader has left, a full disk, another locale, a removed folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (
    *("--help", "--version", "methods", "methods dqn", "envs", "run dqn --help", "study --help", "cache"),
    *("completion bash", "envs hunch/FrozenLake-v0 --check", "play hunch/FrozenLake-v0"),
)


def started(words, **options):
    line = [sys.executable, "-m", "hunch", *words.split()]
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_that_leaves(words):
    process = started(words, stdout=subprocess.PIPE)
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 141)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk(words):
    with open("/dev/full", "w") as full:
        process = started(words, stdout=full)
        said = process.stderr.read()
    assert said == "hunch: The output cannot be written: No space left on device.\n"
    assert process.wait() == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove a folder in use")
def test_a_folder_that_was_removed(tmp_path):
    for words, code in (
        ("--help", 0),
        ("methods", 0),
        ("run dqn --help", 0),
        ("run dqn --env hunch/FrozenLake-v0 --steps 20", 1),
        ("data collect --env hunch/FrozenLake-v0 --out data --steps 10", 1),
        ("play hunch/FrozenLake-v0", 1),
    ):
        folder = tmp_path / "gone"
        folder.mkdir()
        line = f"cd {folder} && rmdir {folder} && exec {sys.executable} -m hunch {words}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("The current folder was removed" in done.stderr) == (code == 1)


def test_a_locale_without_the_characters():
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in ("methods", "envs hunch/Household-Pick-v0", "play hunch/Kitchen-v0", "run dqn --help"):
        process = started(words, stdout=subprocess.PIPE, env=plain)
        out, said = process.communicate()
        assert (process.returncode, said) == (0, ""), words
        assert out
