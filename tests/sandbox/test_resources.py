"""What takes time, memory, processes or disk ends in an error, and nothing of it is left."""

import threading
import time
from pathlib import Path

import pytest

from hunch.sandbox import (
    ProgramCrash,
    ProgramError,
    ProgramMemory,
    ProgramRefused,
    ProgramTimeout,
    ProgramValue,
    Sandbox,
)
from tests.sandbox.attacks import program, resources

LEFT = [Path("/tmp/hunch-flood"), Path("/dev/shm/hunch-flood")]


@pytest.fixture(scope="module")
def hurried(locked_once):
    """A sandbox in which time is soon up."""
    with Sandbox(seconds=0.3, memory_mb=128) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def small(locked_once):
    """A sandbox with little memory, and time enough to reach its limit."""
    with Sandbox(seconds=2, memory_mb=64) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def locked_once(box):
    if not box.isolation.startswith("kernel"):
        pytest.skip("the kernel of this machine keeps nothing in")


def error_of(box, body):
    """The error that an attack ends in; its mistakes do not count."""
    source = program(body).replace("(path, port)", "()")
    with pytest.raises(ProgramError) as raised, box.load(source, "attack") as attack:
        attack()
    assert raised.value.type not in ("NameError", "AttributeError", "TypeError")
    return raised.value


@pytest.mark.parametrize("name", resources.TIME)
def test_time_is_bounded(hurried, name):
    assert isinstance(error_of(hurried, resources.TIME[name]), ProgramTimeout | ProgramCrash | ProgramRefused)


@pytest.mark.parametrize("name", resources.MEMORY)
def test_memory_is_bounded(small, name):
    error_of(small, resources.MEMORY[name])


@pytest.mark.parametrize("name", resources.BOMBS)
def test_bombs_do_not_go_off(hurried, name):
    error_of(hurried, resources.BOMBS[name])
    assert not any(path.exists() for path in LEFT)


@pytest.mark.parametrize("name", resources.ANSWERS)
def test_what_is_no_plain_value_does_not_pass(locked, name):
    error_of(locked, resources.ANSWERS[name])


@pytest.mark.parametrize("place", ["at the top", "in the function"])
def test_loading_is_bounded_too(hurried, place):
    loop = "while True: pass"
    source = f"{loop}\ndef f(): pass" if place == "at the top" else f"def f():\n    {loop}"
    with pytest.raises(ProgramTimeout):
        hurried.load(source, "f")()


def test_the_time_of_all_calls_together_is_bounded_too(locked):
    """However short each call is; and a program with large values pays for the time of its caller."""
    source = "def f(): return [0.5] * 20_000"
    with locked.load(source, "f", total=1e-4) as f:
        assert len(f()) == 20_000
        with pytest.raises(ProgramTimeout, match="together"):
            f()


@pytest.mark.parametrize("state", ["kept", "fresh"])
def test_the_time_of_all_calls_together_bounds_a_long_list_of_calls(locked, state):
    source = "import time\ndef f(x):\n    time.sleep(0.001)\n    return x"
    with locked.load(source, "f", total=0.5, state=state) as f:
        begun = time.monotonic()
        with pytest.raises(ProgramTimeout, match="together"):
            f.map([(1,)] * 100_000)
        assert time.monotonic() - begun < 60.0  # all of them take longer
        f.renew()
        assert f.map([(1,), (2,)]) == [1, 2]


def test_waiting_for_the_calls_of_another_thread_is_not_counted(locked):
    with locked.load("import time\ndef f(x):\n    time.sleep(x)\n    return x", "f", total=1e6) as f:
        f(0.0)
        f.renew()
        threads = [threading.Thread(target=f, args=(0.3,)) for _ in range(4)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert f._spent <= time.monotonic() - begun


def test_a_program_that_was_ended_starts_again(locked):
    source = "import os\nn = 0\ndef f(die):\n    global n\n    n += 1\n    if die: os._exit(7)\n    return n"
    with locked.load(source, "f", int) as f:
        assert [f(False), f(False)] == [1, 2]
        with pytest.raises(ProgramCrash, match="exit code 7"):
            f(True)
        assert f(False) == 1


def test_an_exception_does_not_end_a_program(locked):
    source = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n / x"
    with locked.load(source, "f", float) as f:
        with pytest.raises(ProgramCrash):
            f(0)
        assert f(1) == 2.0


def test_memory_is_what_a_program_adds(locked):
    """Most of what is promised can be taken; more cannot."""
    source = "import numpy as np\ndef f(mb): return float(np.ones(mb * 2**17)[0])"
    with Sandbox(seconds=30, memory_mb=100) as box, box.load(source, "f") as f:
        assert f(80) == 1.0
        with pytest.raises(ProgramMemory):
            f(110)


def test_memory_is_bounded_by_the_kernel(locked):
    """A program that takes all that it can get, and goes on without more, is no larger than it may be."""
    source = """
import resource
def f():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = []
    try:
        while True:
            taken.append(b"x" * 10 ** 5)
    except MemoryError:
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
"""
    with Sandbox(seconds=60, memory_mb=64) as box, box.load(source, "f", float) as f:
        assert 30 < f() < 70


@pytest.mark.parametrize(
    ("source", "kind", "type", "line"),
    [
        ("def f(:", ProgramRefused, "SyntaxError", 1),
        ("x = 1\n\ny = '", ProgramRefused, "SyntaxError", 3),
        ("def f():\n  return 1\n return 2", ProgramRefused, "IndentationError", 3),
        ("def g(): pass", ProgramRefused, "MissingFunction", None),
        ("f = 3", ProgramRefused, "MissingFunction", None),
        ("", ProgramRefused, "MissingFunction", None),
        ("\0", ProgramRefused, "SyntaxError", None),
        ("import torch\ndef f(): pass", ProgramRefused, "ModuleNotFoundError", 1),
        ("x = 1 / 0\ndef f(): pass", ProgramCrash, "ZeroDivisionError", 1),
        ("raise SystemExit\ndef f(): pass", ProgramCrash, "SystemExit", 1),
        ("def g(x):\n    return x[0]\ndef f():\n\n    return g([])", ProgramCrash, "IndexError", 2),
        ("import json\ndef f():\n    return json.loads('{')", ProgramCrash, "JSONDecodeError", 3),
        ("def f(a): pass", ProgramCrash, "TypeError", None),
        ("def f():\n    return eval('1 +')", ProgramCrash, "SyntaxError", 2),
        ("def f():\n    open('/etc/passwd')", ProgramRefused, "PermissionError", 2),
        ("def f(): return f()", ProgramCrash, "RecursionError", 1),
        ("def f(): return [0] * 10 ** 12", ProgramMemory, "MemoryError", 1),
        ("def f(): return b''", ProgramValue, "WireError", None),
    ],
)
def test_errors_say_what_and_where(locked, source, kind, type, line):
    with pytest.raises(ProgramError) as raised:
        locked.load(source, "f")()
    error = raised.value
    assert (error.__class__, error.type, error.line) == (kind, type, line)


def test_messages_are_printable_and_short(locked):
    source = "def f(): raise ValueError('\\x1b[31m\\n\\0\\u202e\\ud800' + 'é' * 10 ** 6)"
    with pytest.raises(ProgramCrash) as raised:
        locked.load(source, "f")()
    assert raised.value.message.isprintable()
    assert "é" in raised.value.message
    assert len(raised.value.message) <= 2_000
