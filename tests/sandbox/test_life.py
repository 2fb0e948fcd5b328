"""Sandboxes that are killed, forked, shared, forgotten: nothing is left, and what can go on goes on."""

import gc
import inspect
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from itertools import repeat
from pathlib import Path

import pytest

from hunch.core import HunchError, UsageError
from hunch.sandbox import ProgramError, ProgramTimeout, Sandbox

DOUBLE = "def f(x): return 2 * x"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def children(process):
    """All processes below one; one that ends meanwhile has none."""
    found = []
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def number(process):
    """The id that a program's process has here; in its own namespace it has another."""
    return int(re.search(r"^Pid:\s*(\d+)", Path(f"/proc/self/fdinfo/{process._handle}").read_text(), re.M)[1])


def only_the_spare_is_left(box, seconds=300.0):
    """Whether all its programs have ended before long: the process for the next program goes on waiting."""
    zygote = children(box.pid)[0] if box.isolation == "kernel+namespaces" else box.pid
    deadline = time.monotonic() + seconds
    while len(children(zygote)) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(children(zygote)) == 1


def consume(iterator):
    deque(iterator, maxlen=0)


def gone(processes, seconds=300.0):
    """Whether they have all ended, zombies included, before long."""
    deadline = time.monotonic() + seconds
    while any(Path(f"/proc/{process}").exists() for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_fifty_programs_at_once(box):
    programs = [box.load(f"n = {n}\ndef f(x): return n * x", "f", int) for n in range(50)]
    assert [program(2) for program in programs] == [2 * n for n in range(50)]
    assert [program(3) for program in reversed(programs)] == [3 * n for n in reversed(range(50))]
    for program in programs:
        program.close()


def test_threads(box):
    """Two programs in four threads: each answer belongs to its question."""
    programs = [box.load(f"def f(x): return x + {k}", "f", int) for k in (0, 1000)]
    wrong = []

    def ask(k, start):
        for x in range(start, start + 100):
            if programs[k](x) != x + 1000 * k:
                wrong.append((k, x))  # noqa: PERF401

    threads = [threading.Thread(target=ask, args=(n % 2, 100 * n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_start_programs(box):
    values = {}

    def load(n):
        with box.load(f"def f(): return {n}", "f", int) as f:
            values[n] = f()

    threads = [threading.Thread(target=load, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == {n: n for n in range(8)}


@linux
def test_programs_outlive_the_thread_that_made_the_sandbox():
    made = []
    thread = threading.Thread(target=lambda: made.append(Sandbox(seconds=30, least="process")))
    thread.start()
    thread.join()
    with made[0] as box, box.load(DOUBLE, "f") as f:
        assert f(2) == 4


class TestKilled:
    def test_idle(self):
        """The next call starts everything again."""
        with Sandbox(seconds=30, least="process") as box, box.load(DOUBLE, "f", int) as f:
            assert f(1) == 2
            os.kill(box.pid, signal.SIGKILL)
            with pytest.raises(HunchError, match="starts it again"):
                consume(f(1) for _ in repeat(None))  # until the kill has reached the program
            assert f(2) == 4
            assert box.load(DOUBLE, "f", int)(3) == 6

    def test_in_flight(self):
        with Sandbox(seconds=60, least="process") as box:
            f = box.load("import time\ndef f(x):\n    time.sleep(x)\n    return x", "f", float)
            threading.Timer(0.3, os.kill, (box.pid, signal.SIGKILL)).start()
            with pytest.raises(HunchError, match="was killed") as raised:
                f(50.0)
            assert not isinstance(raised.value, ProgramError)
            assert f(0.0) == 0.0

    @linux
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    def test_the_caller(self, how):
        """With one program idle and one that never ends."""
        script = """
        import threading
        from hunch.sandbox import Sandbox
        box = Sandbox(seconds=1000, least="process")
        idle = box.load("def f(): return 1", "f")
        idle()
        busy = box.load("def f():\\n    while True: pass", "f")
        threading.Timer(0.2, print, ("ready",), dict(flush=True)).start()
        busy()
        """
        caller = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert caller.stdout.readline() == b"ready\n"
        below = children(caller.pid)
        assert len(below) >= 3
        caller.send_signal(how)
        caller.wait()
        caller.stdout.close()
        assert gone(below)

    @linux
    def test_the_caller_ends_without_closing(self):
        script = f"""
import os
from pathlib import Path
from hunch.sandbox import Sandbox
{inspect.getsource(children)}
box = Sandbox(seconds=1000, least="process")
f = box.load("def f(): return 1", "f")
print(f(), *children(os.getpid()))
"""
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert run.stderr == ""
        value, *processes = run.stdout.split()
        assert value == "1"
        assert len(processes) >= 2
        assert gone(processes)


class TestForks:
    def test_a_fork_has_its_own(self, box):
        """What the parent made works in its fork, in processes of the fork's own, and the parent's go on."""
        source = "n = 0\ndef f():\n    global n\n    n += 1\n    return n"
        with box.load(source, "f", int) as f:
            assert f() == 1
            child = os.fork()
            if child == 0:
                try:
                    ok = [f(), f()] == [1, 2] and box.load(DOUBLE, "f")(4) == 8
                    box.close()
                    os._exit(0 if ok else 1)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert f() == 2

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_workers(self, method):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(in_worker, [1, 2, 3]) == [2, 4, 6]
            pool.close()  # the workers end by themselves: a SIGTERM once went by one of them
            pool.join()


def in_worker(x):
    with Sandbox(seconds=60, least="process") as box, box.load(DOUBLE, "f", int) as f:
        return f(x)


@linux
class TestNothingIsLeft:
    def test_descriptors_and_processes(self):
        with Sandbox(seconds=30, least="process") as box:
            box.load(DOUBLE, "f").close()
            before = set(os.listdir("/proc/self/fd"))
            for n in range(20):
                program = box.load(DOUBLE, "f")
                program(1)
                if n % 2:
                    program.close()
            with pytest.raises(ProgramError):
                box.load("import os\ndef f(): os._exit(1)", "f")()
            with pytest.raises(ProgramError):
                box.load("1 / 0", "f")
            del program
            gc.collect()
            assert set(os.listdir("/proc/self/fd")) <= before  # other tests' garbage may be collected now
            top = box.pid
            everything = {top, *children(top)}
            assert only_the_spare_is_left(box)
        assert gone(everything)

    def test_programs_end_with_their_time(self):
        with Sandbox(seconds=0.3, least="process") as box:
            with pytest.raises(ProgramTimeout):
                box.load("def f():\n    while True: pass", "f")()
            assert only_the_spare_is_left(box)

    def test_an_interrupted_call_ends_its_program(self, box):
        """Ctrl-C reaches the caller, not the sandbox, and the next call finds no stale answer."""
        f = box.load("import time\ndef f(x):\n    time.sleep(x)\n    return x", "f", float)

        def interrupted():
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            f(20.0)

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert f(0.0) == 0.0


class TestClosed:
    def test_program(self, box):
        f = box.load(DOUBLE, "f")
        f.close()
        f.close()
        with pytest.raises(UsageError, match="closed"):
            f(1)

    def test_sandbox(self):
        box = Sandbox(seconds=30, least="process")
        f = box.load(DOUBLE, "f")
        box.close()
        box.close()
        for act in (lambda: f(1), lambda: box.load(DOUBLE, "f")):
            with pytest.raises(HunchError):
                act()


class TestUse:
    def test_large_batches_are_split(self, box):
        import numpy as np

        with box.load("def f(a, k): return float(a.sum()) * k", "f", float) as f:
            assert f.map([(np.ones(2), k) for k in range(2500)]) == [2.0 * k for k in range(2500)]
            assert f.map([(np.ones(300_000), k) for k in range(6)]) == [300_000.0 * k for k in range(6)]
            assert f.map([]) == []

    def test_large_values_are_split(self, box):
        with box.load("import numpy as np\ndef f(k): return np.full(100_000, k)", "f") as f:
            values = f.map([(float(k),) for k in range(25)])
        assert [value[-1] for value in values] == list(range(25))

    def test_the_failing_call_is_named(self, box):
        with box.load("def f(x): return 1 / (x - 1500)", "f") as f:
            with pytest.raises(ProgramError) as raised:
                f.map([(x,) for x in range(2000)])
            assert raised.value.index == 1500

    def test_errors_pass_between_processes(self, box):
        import pickle

        with pytest.raises(ProgramError) as raised:
            box.load("1 / 0", "f")
        again = pickle.loads(pickle.dumps(raised.value))
        assert (str(again), again.line, type(again)) == (str(raised.value), 1, type(raised.value))

    @pytest.mark.parametrize("argument", [object(), b"x", 2**1024, float, "\ud800", [[[]]] * 600_000])
    def test_arguments_that_cannot_be_passed(self, box, argument):
        with box.load(DOUBLE, "f") as f:
            with pytest.raises(UsageError, match="cannot be passed"):
                f(argument)
            assert f(1) == 2

    def test_other_modules_by_name(self):
        with Sandbox(seconds=60, least="process", modules=["scipy.special"]) as box:
            assert box.load("import scipy.special as s\ndef f(x): return float(s.expit(x))", "f")(0.0) == 0.5

    @pytest.mark.parametrize(
        "options",
        [
            {"seconds": 0},
            {"seconds": float("nan")},
            {"memory_mb": -1},
            {"least": "very"},
        ],
    )
    def test_wrong_options(self, options):
        with pytest.raises(UsageError):
            Sandbox(**options)

    def test_a_module_that_starts_threads(self, tmp_path, monkeypatch):
        (tmp_path / "busy_module.py").write_text(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()"
        )
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(HunchError, match="threads"):
            Sandbox(modules=["busy_module"])

    def test_a_module_that_is_not_there(self):
        with pytest.raises(HunchError, match="no_such_module"):
            Sandbox(modules=["no_such_module"])

    @pytest.mark.parametrize("options", [{"returns": bytes}, {"state": "old"}])
    def test_wrong_options_of_a_program(self, box, options):
        with pytest.raises(UsageError):
            box.load(DOUBLE, "f", **options)

    def test_a_program_is_a_text(self, box):
        with pytest.raises(UsageError, match="text"):
            box.load(b"def f(): pass", "f")

    @pytest.mark.parametrize("calls", [[1], ["a"], [None]])
    def test_calls_that_are_no_tuples(self, box, calls):
        with box.load(DOUBLE, "f") as f, pytest.raises(UsageError, match="tuples"):
            f.map(calls)
