"""Commands of a user without permission: one sentence, before the work, and no file is called damaged."""

import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

import pytest

LAKE = ("--env", "hunch/FrozenLake-v0")
RUN = ("run", "q-learning", *LAKE, "--steps", "60")
CASES = {
    "a new folder": ((*RUN, "--out", "locked/run"), "no permission to write in locked"),
    "a folder in it": ((*RUN, "--out", "locked/a/run"), "no permission to write in locked"),
    "a comparison": (
        ("compare", "q-learning", "zero-shot", *LAKE, "--lm", "uniform", "--steps", "9", "--out", "locked/c"),
        "no permission to write in locked",
    ),
    "a run to go on with": ((*RUN[:-1], "90", "--out", "readable"), "Cannot write readable"),
    "a data set": (("data", "collect", *LAKE, "--steps", "9", "--out", "locked/data"), "no permission"),
    "an audition": (
        ("audition", "--lm", "uniform", "--roles", "prior", "--questions", "2", "--out", "locked"),
        "no permission to write in it",
    ),
    "an evaluation": (("evaluate", "run", "--episodes", "1", "--out", "locked"), "no permission to write"),
    "a page": (("report", "run", "--out", "locked/page.html"), "permission is denied"),
    "settings": (("evaluate", "settings", "--episodes", "1"), "Cannot read settings/config.json"),
    "lines": (("report", "lines", "--out", "page.html"), "Cannot read lines/metrics.jsonl"),
    "a checkpoint": (("evaluate", "checkpoint", "--episodes", "1"), "checkpoint/checkpoint/state.pt'"),
    "a checkpoint to go on": ((*RUN[:-1], "90", "--out", "checkpoint"), "Cannot read checkpoint/checkpoint"),
    "answers": (
        ("run", "zero-shot", *LAKE, "--lm", "replay:answers.jsonl", "--steps", "3"),
        "cannot be read",
    ),
}
PROGRAM = """
import contextlib, io, json, os, shutil, sys
from pathlib import Path
from hunch.cli.main import main
cases = json.loads(sys.argv[1])
lake = ["run", "q-learning", "--env", "hunch/FrozenLake-v0", "--steps", "60", "--out"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main([*lake, "run"])  # also imports what the commands need, which another user may not read
    main(["report", "run", "--out", "first.html"])
    main(["evaluate", "run", "--episodes", "1"])
    for line in cases.values():  # whatever else they import; what is written is removed
        with contextlib.suppress(SystemExit):
            main([*line, "--help"])
Path("answers.jsonl").write_text("{}")
Path("locked").mkdir()
for name in ("readable", "settings", "lines", "checkpoint"):
    shutil.copytree("run", name)
owner = (65534, 65534)
for path in Path().rglob("*"):
    if os.geteuid() == 0:
        os.chown(path, *owner)
for path in Path("readable").rglob("*"):
    path.chmod(0o500 if path.is_dir() else 0o400)
for path in ("readable", "locked"):
    Path(path).chmod(0o500)
unreadable = ["settings/config.json", "lines/metrics.jsonl", "checkpoint/checkpoint/state.pt"]
for path in [*unreadable, "answers.jsonl"]:
    Path(path).chmod(0)
if os.geteuid() == 0:
    os.chown(".", *owner)
    os.setgroups([])
    os.setgid(owner[1])
    os.setuid(owner[0])
ends = {}
for name, line in cases.items():
    errors = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            main(line)
        except SystemExit as end:
            code = end.code
    ends[name] = (code, errors.getvalue())
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def ends():
    """How each command ended: its exit code and what it said."""
    lines = {name: line for name, (line, _) in CASES.items()}
    command = [sys.executable, "-c", PROGRAM, json.dumps(lines)]
    how = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    with TemporaryDirectory() as folder:  # the folders of pytest are closed to other users
        variables = {**os.environ, "HUNCH_CACHE": f"{folder}/cache.sqlite"}
        done = subprocess.run(command, cwd=folder, env=variables, **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_what_a_user_may_not_do_is_a_sentence(ends, name):
    code, said = ends[name]
    assert code in (1, 2)
    assert said.count("\n") == 1, said
    assert CASES[name][1] in said
    assert "damaged: remove" not in said
    assert "HUNCH_DEBUG" not in said
