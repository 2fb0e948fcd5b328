"""Worker processes end with the process that started them."""

import os
import signal
import subprocess
import sys
import time

PARENT = """
import os, sys, time
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
from hunch.runs.processes import end_with_parent

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp.get_context("spawn"), end_with_parent) as pool:
        print(*{pool.submit(os.getpid).result() for _ in range(4)}, flush=True)
        time.sleep(1_000)
"""


def test_workers_of_a_killed_process_end(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert workers
    assert all(map(alive, workers))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while any(map(alive, workers)):  # without the watch they wait for ever, and the test with them
        time.sleep(0.05)


def alive(pid):
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in open(f"/proc/{pid}/status").read()
    except (ProcessLookupError, FileNotFoundError):
        return False
