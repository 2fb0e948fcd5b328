"""Commands without memory: one sentence that says so, and not that a package is missing."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("hunch"))
LAKE = ("--env", "hunch/FrozenLake-v0")
EPISODE = (
    '{"observations": ["a", "b"], "admissible": [["Go Left"]], "actions": ["Go Left"], "rewards": [0.0], '
    '"terminated": true, "truncated": false}\n'
)
COMMANDS = {
    "run": ("run", "dqn", *LAKE, "--steps", "20", "--encoder", "bag-of-words?dim=16", "--out", "run"),
    "import": ("data", "import", "episodes.jsonl", *LAKE, "--out", "data"),
}


def hunch(folder, megabytes, *line):
    """Run the command with an address space of a size."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2)

    how = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    return subprocess.run([COMMAND, *line], cwd=folder, preexec_fn=limit, **how)


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [250, 400, 900])
@pytest.mark.parametrize("name", COMMANDS)
def test_little_memory_is_a_sentence(name, megabytes, tmp_path):
    (tmp_path / "episodes.jsonl").write_text(EPISODE * 200)
    done = hunch(tmp_path, megabytes, *COMMANDS[name])
    said = done.stderr + done.stdout
    assert done.returncode in (0, 1), said
    assert "Traceback" not in said
    assert "pip install" not in said
    assert "HUNCH_DEBUG" not in said
    if done.returncode:
        assert done.stderr.strip().count("\n") == 0, said
        assert "memory" in done.stderr, said
