"""What is isolated on poorer machines, and that less than the kernel is never taken for it."""

import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hunch.core import UsageError
from hunch.sandbox import Sandbox

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"),
    reason="takes away what Linux has",
)


def run(lacking, script, tmp_path):
    """Run a script on a machine that lacks something; return what it prints."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script))
    poorer = str(Path(__file__).with_name("poorer.py"))
    done = subprocess.run([sys.executable, poorer, lacking, str(file)], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


LEVEL = """
from hunch.sandbox import Sandbox
with Sandbox(seconds=60{least}) as box:
    f = box.load("def f(x): return 2 * x", "f", int)
    print(box.isolation, "Landlock" in box.locks, f.map([(1,), (2,)]))
"""


@pytest.mark.parametrize(
    ("lacking", "level"),
    [
        ("namespaces", "kernel True [2, 4]"),
        ("namespaces,landlock", "kernel False [2, 4]"),
        ("landlock", "kernel+namespaces False [2, 4]"),
        ("handles", "kernel True [2, 4]"),
    ],
)
def test_levels(box, lacking, level, tmp_path):
    if box.isolation != "kernel+namespaces":
        pytest.skip("this machine lacks more")
    assert run(lacking, LEVEL.format(least=""), tmp_path) == level


def test_below_the_kernel_nothing_runs_unless_asked_for(tmp_path):
    refused = run("namespaces,landlock,filters", LEVEL.format(least=""), tmp_path)
    assert refused.startswith("hunch.core.UsageError: This machine provides only the isolation 'process'")
    for lacking in ("filters", "filters,namespaces"):
        assert run(lacking, LEVEL.format(least=', least="process"'), tmp_path).startswith("process ")


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("sessions", "HunchError: The sandbox's process cannot start: Operation not permitted."),
        (
            "handles,signals",
            "HunchError: The kernel does not let the sandbox stop its programs: Operation not",
        ),
    ],
)
def test_what_the_kernel_refuses_is_said_in_a_sentence(lacking, said, tmp_path):
    assert run(lacking, LEVEL.format(least=', least="none"'), tmp_path).startswith(f"hunch.core.{said}")


def test_a_process_still_ends_in_time_with_all_its_own(tmp_path):
    """At the level of processes a program may start others; they end with it."""
    script = """
        import os, time
        from pathlib import Path
        from hunch.sandbox import ProgramError, Sandbox
        def in_session(session):
            found = 0
            for stat in Path("/proc").glob("[0-9]*/stat"):
                try:
                    found += stat.read_text().rpartition(")")[2].split()[3] == session
                except OSError:
                    pass
            return found
        with Sandbox(seconds=30, least="process") as box:
            f = box.load("import os\\ndef f():\\n  os.fork()\\n  while True: pass", "f")
            program = str(f._process._pid)
            print(in_session(program), end=" ")
            box.seconds = 0.5
            try:
                f()
            except ProgramError:  # a user other than root is refused the fork already
                f.close()
            deadline = time.monotonic() + 300
            while in_session(program) and time.monotonic() < deadline:
                time.sleep(0.1)
            print(in_session(program))
    """
    assert run("filters,namespaces", script, tmp_path) == "1 0"


def test_a_process_that_dies_of_a_signal_without_a_name_is_a_crash(tmp_path):
    script = """
        from hunch.sandbox import ProgramCrash, Sandbox
        with Sandbox(seconds=30, least="process") as box:
            f = box.load("import signal\\ndef f(): signal.raise_signal(40)", "f")
            try:
                f()
            except ProgramCrash as crash:
                print(crash)
    """
    said = run("filters,namespaces", script, tmp_path)
    assert said == "signal 40: its process died of signal 40"


def test_more_than_there_is_is_refused(box):
    if box.isolation == "kernel+namespaces":
        pytest.skip("there is no more")
    with pytest.raises(UsageError, match="the isolation"):
        Sandbox(least="kernel+namespaces")


def test_without_fork_there_is_nothing(monkeypatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(UsageError, match="WSL"):
        Sandbox(least="none")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_short_enough_and_ends_in_a_refusal(machine):
    from hunch.sandbox import seccomp

    rules = seccomp.rules(machine)
    assert len(rules) < 256
    assert rules[-1][3] & 0xFFFF == 1
    numbers = [line[3] for line in rules if line[0] == 0x15][1:]
    assert len(set(numbers)) == len(numbers)
