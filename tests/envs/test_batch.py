"""Batches: whole texts, the same with any number of processes, and clear words when something breaks."""

import os
import signal

import gymnasium
import pytest

import hunch.envs
from hunch.core import HunchError, InadmissibleActionError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.batch import Batch

ID = "hunch/Household-Pick-v0"


class Awkward(TextEnv):
    """Wait, or make trouble in one of four ways."""

    def __init__(self, fault=""):
        if fault == "make":
            raise ArithmeticError("cannot be made")
        super().__init__(max_steps=3)

    def _begin(self, options):
        return Outcome("Well?", ("wait", "fail", "fail oddly", "die"))

    def _move(self, action):
        if action == "fail":
            raise ZeroDivisionError("as asked")
        if action == "fail oddly":
            raise UnsendableError("a", "b")
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return self._begin({})._replace(observation=f"{os.getpid()}: waited ")


class UnsendableError(Exception):
    """Pickles, and cannot be read again."""

    def __init__(self, one, two):
        super().__init__(one)


gymnasium.register("test/Awkward-v0", Awkward)
AWKWARD = f"{__name__}:test/Awkward-v0"


def played(processes, n=3, steps=12, **options):
    """Everything that a batch shows of random-looking play."""
    with Batch(ID, n, processes=processes, games=2, max_steps=5, **options) as batch:
        seen = [batch.reset(seed=7)]
        for step in range(steps):
            infos = seen[-1][-1]
            seen.append(batch.step([(step + i) % len(info["actions"]) for i, info in enumerate(infos)]))
        return seen


@pytest.fixture(scope="module")
def here():
    return played(0)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_processes_change_nothing(here, processes):
    assert played(processes) == here


def test_each_environment_is_the_one_alone(here):
    for i in range(3):
        env = hunch.envs.make(ID, games=2, max_steps=5)
        observation, info = env.reset(seed=7 + i)
        assert (observation, info) == (here[0][0][i], here[0][1][i])
        for step, seen in enumerate(here[1:]):
            observation, *rest, info = env.step((step + i) % len(info["actions"]))
            assert rest == [column[i] for column in seen[1:4]]
            shown = dict(seen[4][i])
            if any(rest[1:]):
                assert (shown.pop("final_obs"), shown.pop("final_info")) == (observation, info)
                observation, info = env.reset()
            assert (observation, info) == (seen[0][i], shown)


def test_it_shows_lists_of_whole_texts(here):
    for observations, *_, infos in here:
        assert type(observations) is type(infos) is list
        assert all(type(text) is str for text in observations)
        assert all(type(info["actions"]) is tuple for info in infos)
    ends = [step for step, seen in enumerate(here[1:], 1) if any(seen[3])]
    assert ends == [5, 10]
    assert all("Welcome" in text for text in here[5][0])
    assert all("final_obs" in info for info in here[5][4])


@pytest.mark.parametrize("processes", [0, 2])
def test_bad_input_moves_no_environment(processes):
    with Batch(ID, 2, processes=processes, games=1) as batch, Batch(ID, 2, games=1) as twin:
        with pytest.raises(UsageError, match="call reset"):
            batch.step([0, 0])
        assert batch.reset(seed=0) == twin.reset(seed=0)
        for bad, error in [
            ((0, "fly"), InadmissibleActionError),
            ((0, 999), InadmissibleActionError),
            ((0,), UsageError),
        ]:
            with pytest.raises(error):
                batch.step(bad)
        assert batch.step([0, "look"]) == twin.step([0, "look"])
    with pytest.raises(UsageError, match="closed"):
        batch.reset()
    batch.close()


@pytest.mark.parametrize("processes", [0, 2])
def test_errors_keep_their_type(processes):
    with pytest.raises(ArithmeticError, match="cannot be made"):
        Batch(AWKWARD, 2, processes=processes, fault="make")
    with pytest.raises(UsageError, match=r"no option 'falt'.*fault"):
        Batch(AWKWARD, 2, processes=processes, falt="make")
    with Batch(AWKWARD, 2, processes=processes) as batch:
        batch.reset(seed=0)
        with pytest.raises(ZeroDivisionError, match="as asked") as error:
            batch.step(["wait", "fail"])
        if processes:
            assert "_move" in error.value.__notes__[0]
        with pytest.raises(UsageError, match="call reset"):
            batch.step(["wait", "wait"])
        batch.reset()
        with pytest.raises(HunchError if processes else UnsendableError, match="a"):
            batch.step(["fail oddly", "wait"])
        batch.reset()
        assert len(batch.step(["wait", "wait"])[0]) == 2


def test_a_dead_worker_is_named_and_the_others_leave():
    with Batch(AWKWARD, 3, processes=3) as batch:
        batch.reset(seed=0)
        texts = batch.step(["wait"] * 3)[0]
        workers = {int(text.partition(":")[0]) for text in texts}
        assert len(workers | {os.getpid()}) == 4
        for ask in (lambda: batch.step(["wait", "die", "wait"]), batch.reset):
            with pytest.raises(HunchError, match=r"worker process died \(exit code -9\)"):
                ask()
    assert not any(alive(worker) for worker in workers)


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_leave_with_a_batch_that_was_not_closed():
    batch = Batch(AWKWARD, 1, processes=1)
    batch.reset()
    worker = int(batch.step(["wait"])[0][0].partition(":")[0])
    assert alive(worker)
    process = batch._shares[0].process
    del batch
    process.join(30)
    assert process.exitcode == 0


@pytest.mark.parametrize(("n", "processes"), [(0, 0), (-1, 0), (2, 3), (2, -1)])
def test_numbers_out_of_range(n, processes):
    with pytest.raises(UsageError, match="processes"):
        Batch(ID, n, processes=processes)
