"""What holds for every test, and for the processes that tests start."""

import gc
import os
import signal
import sys
from multiprocessing import forkserver

import pytest
from hypothesis import HealthCheck, settings

from tests.started import server

MANY = 1_000
"""So many tests pay for a process with the libraries loaded before the first needs it."""

# One thread of torch per process: on a busy machine two can be forty times slower, waiting for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compiled code is kept, and that of the libraries is used where their installation left it: the tests start
# hundreds of processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("PYTHONPYCACHEPREFIX", None)
sys.dont_write_bytecode, sys.pycache_prefix = False, None
# Servers of tests are on this machine and without TLS; to read all certificates takes each client 50 ms.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.path.dirname(__file__)
# A shell's background jobs ignore Ctrl-C, and hand that on; here it has to reach whoever is interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The garbage collector looks less often: of the tests' objects few are cycles, and it took 4 % of the time.
gc.set_threshold(20_000)
# No example has a time limit: a busy machine would break it.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_finish(session):
    """Begin with what tests share.

    What is loaded by now stays, and the garbage collector need not look at it again and again. If there are
    many tests, the process that forks those of tests loads its libraries beside the first tests.
    """
    gc.freeze()
    if len(session.items) > MANY and not session.config.option.collectonly:
        server()
        forkserver.ensure_running()


@pytest.fixture
def hunch_command(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder; return exit code, output, errors."""
    from hunch.cli.main import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = 0
        try:
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


@pytest.fixture
def reads(monkeypatch):
    """Whether weights stayed on the disk, of each model of the transformers library that was made."""
    from hunch.lm.backends import weights

    weightless_ones = []
    read = weights.read

    def noted(*given, weightless=False):
        weightless_ones.append(weightless)
        return read(*given, weightless=weightless)

    monkeypatch.setattr(weights, "read", noted)
    return weightless_ones


@pytest.fixture
def texts_at_once(monkeypatch):
    """The numbers of texts that models in training were asked to evaluate at once."""
    from hunch.lm.training import Trainable

    counts = []
    evaluate = Trainable.evaluate

    def counted(self, prompts, texts, within=None):
        counts.append(len(texts))
        return evaluate(self, prompts, texts, within)

    monkeypatch.setattr(Trainable, "evaluate", counted)
    return counts


@pytest.fixture
def plain_descent(monkeypatch):
    """Replace Adam, which divides a gradient by its size and so turns the rounding of zero into a step."""
    import torch

    from hunch.lm.training import Learner

    def descent(cls, weights):
        return cls(torch.optim.SGD(weights), limited=weights)

    monkeypatch.setattr(Learner, "adam", classmethod(descent))


@pytest.fixture
def little_memory(monkeypatch):
    """Make memory run out where a model in training evaluates more texts at once than a number."""
    from hunch.lm.training import Trainable

    evaluate = Trainable.evaluate

    def limit(most):
        def limited(self, prompts, texts, within=None):
            if len(texts) > most:
                raise MemoryError("bad_alloc")
            return evaluate(self, prompts, texts, within)

        monkeypatch.setattr(Trainable, "evaluate", limited)

    return limit
