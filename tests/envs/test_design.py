"""A design problem of one's own: fitness, failure, and a run over it."""

import math
import sqlite3
from contextlib import closing

import pytest

import hunch
from hunch import methods
from hunch.core import Agent, HunchWarning, UsageError
from hunch.envs import DesignProblem, check
from hunch.envs.design import Trial, trials
from hunch.runs.files import read_json, read_lines
from hunch.sandbox import ProgramCrash, ProgramMemory, ProgramTimeout


def letters(program):
    """Fitness: how many different letters; a program that shouts fails."""
    if program.isupper():
        raise ValueError("no shouting")
    return {"fitness": len(set(program)), "length": len(program)}


def problem():
    return DesignProblem(letters, task="Use many letters.", interface="Any text.", target=5)


class Typist(Agent):
    """Writes random words, and keeps each with its fitness."""

    def begin(self, world, seed):
        self.seed, self.made, self.lines = seed, 0, []

    def act(self, states):
        return [self.word(self.seed + self.made + i) for i in range(len(states))]

    def word(self, n):
        return ["abc", "SHOUT", "hello", "planet"][n % 4]

    def observe(self, transitions):
        self.made += len(transitions)
        self.lines += [{"program": t.action, "fitness": t.next_state.raw.fitness} for t in transitions]

    def player(self, seed):
        twin = Typist()
        twin.begin(None, 0)
        return twin

    def records(self):
        return list(self.lines)

    def state_dict(self):
        return {"made": self.made, "lines": list(self.lines), "seed": self.seed}

    def load_state_dict(self, state):
        self.made, self.lines, self.seed = state["made"], list(state["lines"]), state["seed"]


def test_a_step_is_a_trial():
    env = problem()
    observation, info = env.reset(seed=0)
    assert observation == "Use many letters.\n\nAny text."
    assert info["free_text"]
    _, reward, terminated, _, info = env.step("planet")
    assert (reward, terminated, info["success"]) == (6.0, True, True)
    assert info["raw"] == Trial(6, components={"length": 6.0})
    env.reset(seed=0)
    _, reward, _, _, info = env.step("SHOUT")
    assert math.isnan(reward)
    assert info["event"] == info["raw"].error == "ValueError: no shouting"
    assert not info["success"]


def test_it_keeps_the_contract_and_refuses_odd_answers():
    assert check(problem()) is None
    env = DesignProblem(lambda program: "good", task="t")
    env.reset()
    with pytest.raises(
        UsageError, match="a number, numbers with 'fitness', or a Trial of numbers; a result is 'good'"
    ):
        env.step("x")
    for odd in (math.inf, None):
        env = DesignProblem(lambda program, odd=odd: Trial(odd), task="t")
        env.reset()
        assert env.step("x")[4]["raw"].error


def test_failed_trials_are_left_out_of_means_and_counted(tmp_path):
    envs = [problem() for _ in range(4)]
    result = hunch.train(Typist(), envs, 40, out=tmp_path)
    assert sum(math.isnan(episode.episode_return) for episode in result.episodes) == 10
    last = read_lines(tmp_path / "metrics.jsonl")[-1]
    assert last["return"] == pytest.approx((3 + 4 + 6) / 3)
    assert last["failed"] == 0.25
    assert len(read_lines(tmp_path / "records.jsonl")) == 40
    assert read_json(tmp_path / "summary.json")["episodes"] == 40


def test_records_are_neither_doubled_nor_lost_by_a_stop(tmp_path):
    for out, stops in (("whole", ()), ("parts", (3, 9))):
        for stop in (*stops, 1000):
            calls = iter(range(1000))
            hunch.train(
                Typist(),
                [problem(), problem()],
                60,
                out=tmp_path / out,
                watch=hunch.Watch(stop=lambda s=stop, c=calls: next(c) >= s),
            )
    files = [(tmp_path / out / "records.jsonl").read_bytes() for out in ("whole", "parts")]
    assert files[0] == files[1]


def test_an_agent_of_programs_keeps_the_contract_of_agents():
    methods.check(Typist(), problem())


def test_a_method_that_needs_a_list_says_so():
    with pytest.raises(UsageError, match="writes or chooses texts"):
        hunch.train(methods.ZeroShot(hunch.roles.UniformPrior()), problem(), 10)


def test_trials_of_an_earlier_version_of_the_function_are_not_used(tmp_path):
    file = str(tmp_path / "trials.sqlite")

    def fitness(evaluate, version):
        env = DesignProblem(evaluate, task="Use many letters.", trials=file, version=version)
        env.reset(seed=0)
        return env.step("aab")[1]

    assert fitness(letters, "1") == 2.0
    assert fitness(lambda program: 99.0, "1") == 2.0  # looked up: the version says that nothing changed
    assert fitness(lambda program: 99.0, "2") == 99.0


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        (ProgramTimeout("Timeout", "no answer within 5 seconds"), False),
        (ProgramMemory("Killed", "the system killed it, most likely for memory"), False),
        (ProgramMemory("MemoryError", "more memory than it may take"), True),
        (ProgramCrash("ValueError", "no"), True),
    ],
)
def test_a_failure_that_may_be_that_of_the_machine_is_not_kept(error, is_kept, tmp_path):
    failures = [error]

    def evaluate(program):
        if failures:
            raise failures.pop()
        return 1.0

    env = DesignProblem(evaluate, task="Use many letters.", trials=str(tmp_path / "trials.sqlite"))
    fitness = []
    for _ in range(2):
        env.reset(seed=0)
        fitness.append(env.step("aab")[-1]["raw"].fitness)
    assert fitness == [None, None if is_kept else 1.0]


WHOLE = '{"fitness": 7.0, "feedback": "", "scores": [], "components": {}, "error": ""'


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "[]",
        "{}",
        WHOLE,
        WHOLE.replace("7.0", '"7"') + "}",
        WHOLE + ', "later": 1}',
        WHOLE.replace("[]", "[[]]") + "}",
    ],
)
def test_a_damaged_trial_is_run_again(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "_MEMORY", {})

    def fitness():
        trials._MEMORY.clear()  # as in another process
        env = DesignProblem(letters, task="Use many letters.", trials=str(tmp_path / "trials.sqlite"))
        env.reset(seed=0)
        return env.step("aab")[1]

    def store(line):
        with closing(sqlite3.connect(tmp_path / "trials.sqlite")) as file, file:
            file.execute("UPDATE trials SET trial = ?", (line,))

    assert fitness() == 2.0
    store(WHOLE + "}")
    assert fitness() == 7.0
    store(stored)
    with pytest.warns(HunchWarning, match="is damaged, or of a later version"):
        assert fitness() == 2.0
    assert fitness() == 2.0
