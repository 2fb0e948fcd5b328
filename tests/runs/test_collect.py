"""Recording data: exactly so much, by those who were asked, and the same again by the same seed."""

import json

import pytest

from hunch.cli.main import main
from hunch.core import HunchError, Memoryless, UsageError
from hunch.envs import make
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl.dataset import load
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_json, read_lines
from hunch.runs.loading import load_agent
from hunch.runs.record import DISCARDED, collect, parse_mix

LAKE = "hunch/FrozenLake-v0"


def steps_of(data, behaviour):
    return sum(len(episode) for episode in data.episodes if episode.behaviour == behaviour)


def test_the_mix_is_exact():
    data = collect(LAKE, {}, parse_mix("oracle=0.5,noisy:0.5=0.3,random=0.2"), 101)
    assert len(data) == 101
    assert [steps_of(data, name) for name in ("oracle", "noisy:0.5", "random")] == [50, 31, 20]
    assert all(e.success for e in data.episodes if e.behaviour == "oracle" and not e.truncated)


def test_good_and_bad_episodes_in_the_wanted_shares():
    data = collect(LAKE, {}, parse_mix("noisy:0.4"), 200, good=0.25)
    good = sum(len(e) for e in data.episodes if e.success)
    cut = [e for e in data.episodes if e.truncated and len(e) < 20]
    assert len(data) == 200
    assert good <= 50 <= good + sum(map(len, cut))


def test_a_run_by_its_good_and_bad_episodes(tmp_path):
    """Failures at the beginning, more than a behaviour without end may give in a row, are passed over."""
    idler = RunConfig(method="zero-shot", env=LAKE, lm="uniform", steps=700, options=ZeroShotConfig())
    execute(idler, tmp_path / "r")
    file = tmp_path / "r" / "episodes.jsonl"
    lines = [line for line in read_lines(file) if not line["success"]]
    way = list(make(LAKE).unwrapped.oracle())
    assert len(lines) > DISCARDED
    won = {**lines[-1], "actions": way, "length": 6, "success": True, "return": 1.0}
    file.write_text("".join(json.dumps(line) + "\n" for line in (*lines, won, won)))
    data = collect(LAKE, {}, parse_mix(f"run:{tmp_path / 'r'}"), 25, good=0.48)
    assert [len(e) for e in data.episodes if e.success] == [6, 6]
    assert sum(len(e) for e in data.episodes if not e.success) == 13


def test_a_run_is_not_recorded_with_other_options_of_its_environment(tmp_path):
    """With a step limit of 8, an episode of the run that took longer would end early, and another follow."""
    chain, options = "hunch/Chain-v0", {"max_steps": 30}
    idler = RunConfig(method="q-learning", env=chain, env_options=options, steps=200)
    execute(idler, tmp_path / "r")
    mix = parse_mix(f"run:{tmp_path / 'r'}")
    played = [line["length"] for line in read_lines(tmp_path / "r" / "episodes.jsonl")]
    assert max(played) > 8
    assert [len(e) for e in collect(chain, {**options, "hints": False}, mix, sum(played)).episodes] == played
    with pytest.raises(UsageError, match=r"do not repeat here: .* \(max_steps=30\)"):
        collect(chain, {}, mix, sum(played))


def test_a_run_without_successes_is_refused_and_nothing_is_written(tmp_path, capsys):
    idler = RunConfig(method="zero-shot", env=LAKE, lm="uniform", steps=60, options=ZeroShotConfig())
    execute(idler, tmp_path / "r")
    mix = ("--mix", f"run:{tmp_path / 'r'}", "--good", "0.48", "--steps", "50")
    with pytest.raises(SystemExit) as stopped:
        main(("data", "collect", "--env", LAKE, *mix, "--out", str(tmp_path / "d")))
    assert stopped.value.code == 2
    assert "0 of the 24 steps of successful episodes" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_the_same_seed_records_the_same():
    first, again, other = (collect(LAKE, {}, parse_mix("noisy:0.3"), 60, seed=s) for s in (4, 4, 5))
    assert first.episodes == again.episodes != other.episodes


def test_what_cannot_be_recorded():
    with pytest.raises(HunchError, match="enough steps of unsuccessful episodes"):
        collect(LAKE, {}, parse_mix("oracle"), 60, good=0.0)
    with pytest.raises(UsageError, match="no behaviour 'wise'"):
        collect(LAKE, {}, parse_mix("wise"), 60)
    with pytest.raises(UsageError, match="no oracle"):
        collect("hunch/Chain-v0", {}, parse_mix("oracle"), 60)
    for mix in ("", "oracle=0.5,random", "oracle=x", "oracle=-1,random=2"):
        with pytest.raises(UsageError):
            parse_mix(mix)
    with pytest.raises(UsageError, match=r"must add up to 1, and those of 'oracle=0.5' are 0.5"):
        parse_mix("oracle=0.5")
    assert len(parse_mix("oracle=0.33,noisy:0.5=0.33,random=0.33")) == 3


@pytest.mark.parametrize("task", ["Tomato", "Salad"])
def test_the_oracle_of_the_kitchen_serves_the_best_way(task):
    data = collect(f"hunch/Overcooked-{task}-v0", {}, parse_mix("oracle"), 6 if task == "Tomato" else 10)
    (episode,) = data.episodes
    assert episode.success
    assert sum(episode.rewards) == pytest.approx(1.110284 if task == "Tomato" else 1.338102, abs=1e-6)


class Counting(Memoryless):
    """Goes right until it has seen a step to the right, and down from then on."""

    def __init__(self):
        super().__init__(lambda states, rng: [])
        self.seen = 0

    def act(self, states):
        return ["Go Down" if self.seen else "Go Right" for _ in states]

    def observe(self, transitions):
        self.seen += len(transitions)


def test_an_agent_that_remembers_sees_the_steps_that_are_recorded(tmp_path, monkeypatch):
    execute(RunConfig(method="zero-shot", env=LAKE, lm="uniform", steps=20), tmp_path / "r")
    agent, config = load_agent(tmp_path / "r")
    monkeypatch.setattr(agent, "player", lambda seed: Counting())
    monkeypatch.setattr("hunch.runs.record.load_agent", lambda folder: (agent, config))
    data = collect(LAKE, {}, parse_mix(f"agent:{tmp_path / 'r'}"), 3)
    assert [action for episode in data.episodes for action in episode.actions][:2] == ["Go Right", "Go Down"]


def test_by_the_command_with_a_run_as_behaviour(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def hunch(*arguments):
        try:
            main(arguments)
        except SystemExit as stopped:
            return stopped.code, capsys.readouterr().err
        return 0, capsys.readouterr().out

    small = ("--hidden", "16", "--warmup", "50")
    assert hunch("run", "dqn", "--env", LAKE, "--steps", "150", *small, "--out", "r")[0] == 0
    collected = ("data", "collect", "--env", LAKE, "--steps", "100", "--out", "d")
    code, out = hunch(*collected, "--mix", "run:r=0.6,agent:r=0.4")
    assert code == 0
    assert "run:r" in out
    assert steps_of(load("d"), "run:r") == 60
    assert "100 steps" in hunch("data", "show", "d")[1]
    learn = ("--data", "d", "--steps", "40", "--hidden", "16", "--eval-episodes", "2")
    assert hunch("run", "cql", "--env", LAKE, *learn, "--out", "c")[0] == 0
    code, error = hunch("run", "cql", "--env", "hunch/Chain-v0", *learn)
    assert (code, "recorded in hunch/FrozenLake-v0" in error) == (2, True)
    code, error = hunch("run", "cql", "--env", LAKE, "--steps", "40")
    assert (code, "--data FOLDER" in error) == (2, True)
    code, error = hunch("run", "zero-shot", "--env", LAKE, "--data", "d")
    assert (code, "leave --data out" in error) == (2, True)
    assert hunch("run", "dqn", "--env", LAKE, *learn, "--out", "offline")[0] == 0
    assert hunch("run", "dqn", "--env", LAKE, *learn, "--online", "--out", "both")[0] == 0
    assert read_json(tmp_path / "both" / "summary.json")["episodes"] > 0
    assert read_json(tmp_path / "offline" / "summary.json")["episodes"] == 0
    code, error = hunch("run", "dqn", "--env", LAKE, "--online")
    assert (code, "--online needs --data" in error) == (2, True)
    code, error = hunch("data", "collect", "--env", LAKE, "--steps", "10", "--out", "d")
    assert (code, "already holds" in error) == (2, True)
