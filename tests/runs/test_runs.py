"""A run on disk: resume, kill, damaged files, and what else can go wrong."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest
from tests.started import server

import hunch
from hunch import Evaluation, train
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.rl.comparison import difference
from hunch.rl.episodes import replay
from hunch.rl.rollout import Finished
from hunch.rl.statistics import over_episodes
from hunch.runs import loop
from hunch.runs.boards import Boards
from hunch.runs.checkpoints import read_checkpoint
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines
from hunch.runs.folder import RunFolder
from hunch.runs.loading import load_agent
from hunch.runs.result import Result, read_episode
from hunch.runs.stored import finished, read_run

OPTIONS = DQNPriorConfig(k=3, hidden=16, warmup=50, batch_size=16, update_every=2, encoder="bag-of-words")
CONFIG = RunConfig(method="dqn-prior", env="hunch/FrozenLake-v0", steps=400, seed=3, options=OPTIONS)


def until_killed(out: Path, lines: int) -> None:
    """Run, and be killed once so many lines of metrics are written."""
    loop.CHECKPOINT_SECONDS = 0.0
    metrics = out / "metrics.jsonl"

    def strike():
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < lines:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=strike, daemon=True).start()
    execute(CONFIG, out)


def without_clock(path: Path) -> list[dict]:
    lines = read_lines(path)
    clock = ("seconds", "usage", "models")
    return [{key: value for key, value in line.items() if key not in clock} for line in lines]


def assert_same_run(first: Path, second: Path) -> None:
    """Equal to the last bit, but for the clock and the count of cache hits."""
    episodes = [(folder / "episodes.jsonl").read_bytes() for folder in (first, second)]
    assert episodes[0] == episodes[1]
    assert without_clock(first / "metrics.jsonl") == without_clock(second / "metrics.jsonl")
    a, b = (read_checkpoint(folder)["agent"] for folder in (first, second))
    assert difference(a, b) is None


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted run."""
    out = tmp_path_factory.mktemp("whole")
    assert execute(CONFIG, out).complete
    return out


@pytest.mark.parametrize("stops", [[1], [40, 41], [3, 90, 60]])
def test_stopped_and_resumed_equals_uninterrupted(whole, tmp_path, stops):
    for stop_at in stops:
        counted = iter(range(1000))
        result = execute(
            CONFIG, tmp_path, watch=hunch.Watch(stop=lambda n=counted, at=stop_at: next(n) + 1 >= at)
        )
        assert not result.complete
    assert execute(CONFIG, tmp_path).complete
    assert_same_run(whole, tmp_path)


def test_a_run_that_goes_on_says_from_which_step(tmp_path):
    said = []
    watch = hunch.Watch(say=said.append)
    execute(replace(CONFIG, steps=40), tmp_path, watch=watch)
    execute(replace(CONFIG, steps=40), tmp_path, watch=watch)  # it is complete
    assert not [text for text in said if "goes on" in text]
    execute(replace(CONFIG, steps=60), tmp_path, watch=watch)
    assert [text for text in said if "goes on" in text] == ["The run goes on from step 40 of 60."]


def test_kill_and_resume_equals_uninterrupted(whole, tmp_path):
    """kill -9 of a real process at two moments, and the rest of the run in a third.

    The blow comes from a thread of its own, which a busy machine does not delay alone.
    """
    for written, ended in (20, -signal.SIGKILL), (77, -signal.SIGKILL), (10**6, 0):
        process = server().Process(target=until_killed, args=(tmp_path, written))
        process.start()
        process.join()
        assert process.exitcode == ended
    assert_same_run(whole, tmp_path)


def test_steps_to_need_a_second_window():
    """The running success rate passes half at episode 125 in both; only in one does it stay there."""

    def result(successes):
        episodes = [Finished(0, 10 * (i + 1), 0.0, 10, won, (), i) for i, won in enumerate(successes)]
        return Result(3000, 3000, over_episodes(successes), episodes, [], {}, {}, 0.0, None)

    risen, burst = [False] * 100 + [True] * 200, [False] * 100 + [True] * 30 + [False] * 170
    assert result(risen).summary()["steps_to"] == {"0.25": 1130, "0.5": 1250, "0.8": 1400}
    assert result(burst).summary()["steps_to"] == {"0.25": 1130, "0.5": None, "0.8": None}


def test_seeds_of_episodes_replay_them(whole):
    env = hunch.make("hunch/FrozenLake-v0")
    for record in read_lines(whole / "episodes.jsonl")[:5]:
        played = list(replay(env, read_episode(record)))
        assert sum(t.reward for t in played) == record["return"]
        assert played[-1].success == record["success"]


def test_a_finished_run_is_read_and_not_done_again(whole):
    before = (whole / "episodes.jsonl").stat().st_mtime_ns
    result = execute(CONFIG, whole)
    assert result.complete
    assert (whole / "episodes.jsonl").stat().st_mtime_ns == before
    assert finished(whole).success == result.success


def test_config_repeats_the_run(whole):
    stored = json.loads((whole / "config.json").read_text())
    assert stored["evidence"] == "L3"
    assert stored["versions"]["torch"]
    assert read_run(whole) == CONFIG


def test_agent_of_a_run_can_be_loaded(whole):
    agent, config = load_agent(whole)
    assert config == CONFIG
    assert agent.steps == CONFIG.steps


def test_several_environments_side_by_side(tmp_path):
    config = RunConfig(method="zero-shot", env="hunch/FrozenLake-v0", steps=300, envs=4)
    result = execute(config, tmp_path)
    assert result.steps == 300
    assert len({episode.seed for episode in result.episodes}) == len(result.episodes)


def test_evaluation_is_recorded_apart(tmp_path):
    env, other = (hunch.make("hunch/FrozenLake-v0") for _ in range(2))
    agent = hunch.methods.ZeroShot(hunch.roles.UniformPrior())
    result = train(agent, env, 200, out=tmp_path, evaluation=Evaluation([other], every=100, episodes=3))
    assert len(result.evaluations) == 6
    assert sum(line["evaluation"] for line in read_lines(tmp_path / "episodes.jsonl")) == 6


def test_another_run_is_refused_and_kept(whole):
    before = (whole / "config.json").read_bytes()
    with pytest.raises(UsageError, match=r"options\.k: 3 there, 2 asked"):
        execute(RunConfig(**{**vars(CONFIG), "options": DQNPriorConfig(**{**vars(OPTIONS), "k": 2})}), whole)
    assert (whole / "config.json").read_bytes() == before


def test_a_folder_is_held_by_one_process(tmp_path):
    holder = RunFolder(tmp_path)
    try:
        with pytest.raises(HunchError, match="Another process"):
            RunFolder(tmp_path)
    finally:
        holder.close()
    RunFolder(tmp_path).close()


def test_damaged_checkpoint_is_named(whole, tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "state.pt").write_bytes(b"garbage")
    (tmp_path / "config.json").write_bytes((whole / "config.json").read_bytes())
    with pytest.raises(HunchError, match="damaged"):
        execute(CONFIG, tmp_path)


def test_lines_shorter_than_the_checkpoint_says(whole, tmp_path):
    lines = []
    execute(CONFIG, tmp_path, watch=hunch.Watch(report=lines.append, stop=lambda: len(lines) >= 100))
    (tmp_path / "episodes.jsonl").write_bytes(b"")
    with pytest.raises(HunchError, match="shorter"):
        execute(CONFIG, tmp_path)


def test_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    """A disk that is full says so when a file is flushed."""
    lines = []
    execute(CONFIG, tmp_path, watch=hunch.Watch(report=lines.append, stop=lambda: len(lines) >= 50))
    checkpoint = tmp_path / "checkpoint" / "state.pt"
    before = checkpoint.read_bytes()

    def full(descriptor):
        if os.path.samestat(os.fstat(descriptor), os.stat(f"{checkpoint}.tmp")):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", lambda file: full(file) if Path(f"{checkpoint}.tmp").exists() else None)
        with pytest.raises(HunchError, match="disk is full"):
            execute(CONFIG, tmp_path)
    assert checkpoint.read_bytes() == before
    assert not Path(f"{checkpoint}.tmp").exists()  # half a file is not left behind
    assert execute(CONFIG, tmp_path).complete


def test_a_link_in_a_folder_is_not_followed(tmp_path):
    """In a folder that others may write, a link must not lead a checkpoint over another file."""
    other = tmp_path / "other.txt"
    other.write_text("mine")
    folder = tmp_path / "run"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "state.pt.tmp").symlink_to(other)
    (folder / "config.json.tmp").symlink_to(other)
    assert execute(CONFIG, folder).complete
    assert other.read_text() == "mine"
    assert not (folder / "checkpoint" / "state.pt").is_symlink()


def test_unwritable_folder():
    with pytest.raises(HunchError, match="Cannot write"):
        RunFolder("/proc/hunch-cannot-be-made-here")


def test_steps_must_be_positive():
    agent = hunch.methods.ZeroShot(hunch.roles.UniformPrior())
    with pytest.raises(UsageError, match="steps must be at least 1"):
        train(agent, hunch.make("hunch/FrozenLake-v0"), 0)


class Mute(gym.Env):
    """An environment that breaks the contract as told."""

    def __init__(self, actions):
        self.actions = actions

    def reset(self, *, seed=None, options=None):
        info = {} if self.actions is None else {"actions": self.actions}
        return "Nothing happens.", info


@pytest.mark.parametrize(("actions", "sentence"), [(None, "info\\['actions'\\]"), ((), "it is empty")])
def test_environments_that_break_the_contract(actions, sentence):
    agent = hunch.methods.ZeroShot(hunch.roles.UniformPrior())
    with pytest.raises(UsageError, match=sentence):
        train(agent, Mute(actions), 10)


def test_stop_signal_saves(tmp_path, capsys):
    """Ctrl-C ends the command with 130 and leaves a run that the same command finishes."""
    command = [
        *(sys.executable, "-m", "hunch", "run", "dqn-prior", "--env", "hunch/FrozenLake-v0"),
        *("--lm", "uniform", "--steps", "1200", "--k", "3", "--hidden", "16", "--encoder", "bag-of-words"),
        *("--out", str(tmp_path)),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not read_lines(tmp_path / "metrics.jsonl"):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "the same command" in errors
    assert (tmp_path / "checkpoint" / "state.pt").exists()
    main(command[3:])
    assert "success" in capsys.readouterr().out


def test_evaluation_leaves_no_trace_in_training(whole, tmp_path):
    config = RunConfig(**{**vars(CONFIG), "eval_every": 150, "eval_episodes": 2})
    execute(config, tmp_path)
    evaluated = [line for line in read_lines(tmp_path / "episodes.jsonl") if not line["evaluation"]]
    assert evaluated == read_lines(whole / "episodes.jsonl")


def test_another_seed_is_not_taken_up(tmp_path):
    env, agent = hunch.make("hunch/FrozenLake-v0"), hunch.methods.ZeroShot(hunch.roles.UniformPrior())
    train(agent, env, 100, seed=0, out=tmp_path)
    with pytest.raises(UsageError, match="another run"):
        train(agent, env, 100, seed=1, out=tmp_path)


def test_a_run_that_is_refused_leaves_the_runs_beside_it_alone(tmp_path):
    refused = RunFolder(tmp_path / "studied" / "arm" / "seed-0")
    beside = RunFolder(tmp_path / "studied" / "arm" / "seed-1")
    refused.remove_unused()
    assert [path.name for path in (tmp_path / "studied" / "arm").iterdir()] == ["seed-1"]
    assert (beside.path / "checkpoint").is_dir()
    refused.close()
    beside.close()


def test_a_run_that_is_refused_leaves_no_empty_folders(tmp_path):
    refused = RunFolder(tmp_path / "studied" / "arm" / "seed-0")
    refused.remove_unused()
    refused.close()
    assert not list(tmp_path.iterdir())


def test_full_disk_while_logging(tmp_path):
    folder = RunFolder(tmp_path)
    folder._files["metrics.jsonl"] = open("/dev/full", "ab")  # noqa: SIM115
    with pytest.raises(HunchError, match="disk is full"):
        folder.append("metrics.jsonl", {"step": 1})
    folder.close()


def test_lines_reach_the_disk_as_they_come(tmp_path):
    seen = []
    agent = hunch.methods.ZeroShot(hunch.roles.UniformPrior())
    train(
        agent,
        hunch.make("hunch/FrozenLake-v0"),
        200,
        out=tmp_path,
        watch=hunch.Watch(
            report=lambda line: seen.append(read_lines(tmp_path / "metrics.jsonl")[-1] == line)
        ),
    )
    assert all(seen)


def test_tensorboard_files(whole):
    assert list((whole / "tensorboard").glob("events*"))


def test_a_board_that_fails_does_not_stop_the_run(tmp_path):
    """One that cannot begin, and one that breaks: said once, and left out from then on."""
    with pytest.warns(HunchWarning, match="builtins:int cannot be used"):
        boards = Boards(tmp_path, 0, {"builtins:int": int})
    assert [type(board).__name__ for board in boards.boards] == ["TensorBoard"]

    class Broken:
        shown = 0

        def show(self, figures, step):
            Broken.shown += 1
            raise OSError("no network")

        def close(self):
            raise OSError("no network")

    boards.boards.append(Broken())
    line = {"step": 1, "success": 0.5, "usage": {"calls": 3}, "models": {}}
    with pytest.warns(HunchWarning, match="no network"):
        boards.show(line)
    boards.show(line)
    boards.close()
    assert Broken.shown == 1
