"""Decision models in every role: what they are asked, in how many requests, and what comes of the answers."""

import json

import numpy as np
import pytest
from jevcompat.mock import MockConfig, make_server
from tests.lm.decider import deciding
from tests.started import answering

import hunch
from hunch import lm
from hunch.cli.main import main
from hunch.core import State, Transition, UsageError, World
from hunch.envs.proofs.logic import read
from hunch.envs.proofs.tactics import named, tactics
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.decision import DecisionQuestion
from hunch.methods.planner.saycan import SayCan
from hunch.rl.rollout import Rollout
from hunch.roles.goal.suggestions import SuggestionConfig, Suggestions
from hunch.roles.guide import VALUE, DecisionGuide
from hunch.roles.prior import base
from hunch.roles.prior.language import CHOICE, DecisionPrior
from hunch.roles.reward.comparer import Comparer
from hunch.roles.reward.preferences import Judged


def load(url):
    return lm.load("systemone:m", cache=None, base_url=url)


# ---- prior ------------------------------------------------------------------------------------------------


def by_description(state, instructions, options):
    """Prefer what is described as safe."""
    return {option: 0.01 if "hole" in (what or "") else 1.0 for option, what in options.items()}


def test_what_the_environment_knows_of_an_action_is_its_description():
    env = hunch.make("hunch/FrozenLake-v0", described=True)
    observation, info = env.reset(seed=0)
    env.step("Go Right")  # to (0, 1), above a hole
    observation, _, _, _, info = env.step("Go Left")
    observation, _, _, _, info = env.step("Go Right")
    state = State.read(observation, info)
    assert "leads to" not in observation
    assert dict(zip(state.options, state.descriptions, strict=True)) == info["action_descriptions"]
    assert State.of(json.loads(json.dumps(state.plain()))) == state
    with deciding(by_description) as (url, requests):
        (p,) = DecisionPrior(load(url)).probabilities([state])
    assert requests[0]["questions"]["q0"]["criteria"] == info["action_descriptions"]
    assert p[state.options.index("Go Down")] == pytest.approx(0.01 / 3.01)


def test_without_descriptions_nothing_is_said_of_an_action():
    state = State("here", "go", ("left", "right"))
    with deciding(by_description) as (url, requests):
        DecisionPrior(load(url)).probabilities([state])
    assert requests[0]["questions"]["q0"]["criteria"] == {"left": None, "right": None}


@pytest.mark.parametrize("wrong", [{"up": "nowhere"}, {"left": 3}, ["left"], "left"])
def test_descriptions_of_something_else_are_refused(wrong):
    with pytest.raises(UsageError, match="info\\['action_descriptions'\\] has to hold a text for some of"):
        State.read("here", {"actions": ("left",), "action_descriptions": wrong})


@pytest.mark.parametrize("described", [False, True])
def test_descriptions_are_part_of_the_contract(described):
    hunch.envs.check(hunch.make("hunch/FrozenLake-v0", described=described))
    hunch.envs.check(hunch.make("hunch/Craft-v0", described=described), steps=5)


def test_the_recipes_of_craft_describe_its_actions():
    env = hunch.make("hunch/Craft-v0", described=True)
    _, info = env.reset(seed=0)
    assert (
        info["action_descriptions"]["make table"] == "To make table, use 2 wood; a table then stands there."
    )
    assert "go to cave" not in info["action_descriptions"]


# ---- several questions ------------------------------------------------------------------------------------


def test_answers_are_kept_as_long_as_distributions(monkeypatch):
    """A run meets new states without end, so what it keeps of each must not add up."""
    monkeypatch.setattr(base, "KNOWN", 3)
    states = [State(f"place {n}", "go", ("left", "right")) for n in range(9)]
    with deciding(lambda state, instructions, options: 0.75) as (url, _):
        prior = DecisionPrior(load(url), beside=[DecisionQuestion("yes_no", "Is it far?")])
        for first in (0, 2, 1, 4, 3, 0, 6, 5):
            some = states[first : first + 3]
            assert [float(far[0]) for (far,) in prior.answers(some)] == [0.75] * len(some)
            assert len(prior._answers) <= 6


def test_a_planner_asks_for_the_skill_and_whether_the_task_is_done_in_one_request():
    def rule(state, instructions, options):
        if instructions == "Is the task done?":
            return 0.9 if "> two" in state else 0.2
        assert instructions == CHOICE
        return {
            option: 9.0 if option == ("two" if "> one" in state else "one") else 1.0 for option in options
        }

    with deciding(rule) as (url, requests):
        agent = SayCan(DecisionPrior(load(url)), done_at=0.5)
        agent.begin(World(), 0)
        rollout = Rollout([Counted()])
        taken = []
        while rollout.states and len(taken) < 10:
            actions = agent.act(rollout.states)
            taken += actions
            agent.observe(rollout.step(actions))
    assert taken[:3] == ["one", "two", "done"]
    assert {len(request["questions"]) for request in requests} == {2}
    assert len(requests) == 3  # the next episodes are like the first


class Counted(hunch.envs.TextEnv):
    """Two skills, and one that ends."""

    task = "do both"

    def __init__(self):
        super().__init__(max_steps=20)

    def _begin(self, options):
        return hunch.envs.Outcome("Begin.", ("one", "two", "done"))

    def _move(self, action):
        return hunch.envs.Outcome(f"You did {action}.", ("one", "two", "done"), terminated=action == "done")


def test_done_at_needs_a_decision_model():
    prior = hunch.roles.LikelihoodPrior(lm.load("scripted:overlap"))
    with pytest.raises(UsageError, match="done_at asks a decision model"):
        SayCan(prior, done_at=0.5)


def test_a_guide_chooses_a_tactic_and_values_the_goal_in_one_request():
    goal, proved = read("p | q, p -> r, q -> r |- r"), read("p & q |- q & p")

    def rule(state, instructions, options):
        if not options:
            return 0.75
        return {option: float(i + 1) for i, option in enumerate(options)}

    with deciding(rule) as (url, requests):
        priors, values = DecisionGuide(load(url)).evaluate([goal, proved])
    assert [len(request["questions"]) for request in requests] == [2, 2]
    names = [named(goal, tactic) for tactic, _ in tactics(goal)]
    [asked] = [request for request in requests if "p | q" in request["state"]]
    assert list(asked["questions"]["q0"]["criteria"]) == names
    assert len(names) > 1
    assert priors[0] == pytest.approx(np.arange(1, len(names) + 1) / sum(range(1, len(names) + 1)))
    assert values == [0.75, 0.75]
    assert VALUE != 0.75


# ---- preference -------------------------------------------------------------------------------------------


def longer(state, instructions, options):
    """Prefer the longer of two answers by 8 to 1; refuse where a text is secret."""
    if "secret" in state:
        return None
    first, second = (line[3:] for line in state.splitlines() if line[:2] in ("1:", "2:"))
    return {
        "1": 8.0 if len(first) > len(second) else 1.0,
        "2": 8.0 if len(second) > len(first) else 1.0,
        "none": 1.0,
    }


def test_a_preference_is_a_probability():
    with deciding(longer) as (url, requests):
        model = load(url)
        comparer = Comparer(model, Asking(model, AskConfig(patience=None)))
        asked = ["1: a\n2: bcd", None, "1: abc\n2: d", "1: secret\n2: x"]
        assert comparer.verdicts(asked) == [2, 0, 1, None]
        assert comparer.unread == 1
        assert comparer.preferences(asked) == pytest.approx([0.15, 0.5, 0.85, 0.5])
    assert {request["questions"]["q0"]["instructions"] for request in requests} == {
        "Which of the two is better?"
    }


def test_two_texts_are_compared_without_a_list_below_them():
    state = State("Tell me of cats.")

    def step(text):
        return Transition(state, text, 0.0, state, terminated=True, truncated=False)

    with deciding(longer) as (url, requests):
        judge = Judged(load(url), ("Choose the longer one.",))
        shares = judge.compare(
            [(step("no"), step("cats purr")), (step("x"), step("x"))], np.random.default_rng(0)
        )
    assert shares == pytest.approx([0.15, 0.5])
    assert requests[0]["state"].endswith("2: cats purr\nChoose the longer one.")


# ---- goals ------------------------------------------------------------------------------------------------


def test_all_candidates_of_a_state_are_one_request():
    def rule(state, instructions, options):
        goal = instructions.removeprefix("Is it sensible and useful to ").removesuffix(" here and now?")
        return {"drink water": 0.9, "eat berries": 0.7, "sing": None}.get(goal, 0.1)

    state = State("You are thirsty.", "", ("eat berries", "sleep", "drink water", "sing"))
    with deciding(rule) as (url, requests):
        source = Suggestions(load(url), SuggestionConfig(patience=None))
        source.begin(World(), 0)
        assert source.how == "ask"
        assert source.suggest([state]) == [("drink water", "eat berries")]
    assert len(requests[0]["questions"]) == 4


# ---- the command ------------------------------------------------------------------------------------------

RUNS = {
    "dqn-prior": "--env hunch/FrozenLake-v0 --env.described true --confidence 0.3 --encoder bag-of-words",
    "zero-shot": "--env hunch/FrozenLake-v0",
    "saycan": "--env hunch/Kitchen-v0 --done-at 0.9",
    "inner-monologue": "--env hunch/Kitchen-v0",
    "ellm": "--env hunch/Craft-v0 --encoder bag-of-words",
    "motif": "--env hunch/Craft-v0 --encoder bag-of-words --preference.collect 30 --preference.pairs 20",
    "kwon": "--env hunch/MatrixGame-v0",
}


@pytest.mark.parametrize("method", RUNS)
def test_a_run_with_a_decision_model(method, tmp_path, monkeypatch):
    runs_with_a_decision_model(method, RUNS[method], tmp_path, monkeypatch)


def runs_with_a_decision_model(method, options, tmp_path, monkeypatch):
    """Check that a run is complete, and asks a server of decisions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    with answering(make_server(MockConfig(faults=frozenset()))) as server:
        spec = f"systemone:jev-latest?base_url=http://127.0.0.1:{server.server_port}/v1"
        main(["run", method, *options.split(), "--lm", spec, "--steps", "60", "--out", "run"])
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["complete"]
    assert summary["usage"]["calls"] > 0
