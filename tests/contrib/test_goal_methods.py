"""TaskExplore and RLAdapter."""

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import State, Transition, UsageError, World
from hunch.envs.craft_mentor import MentorModel, suited
from hunch.lm.base import Model
from hunch_contrib.goal.rl_adapter import (
    SUMMARIES,
    Mentor,
    MentorConfig,
    RLAdapter,
    RLAdapterConfig,
    comprehension,
)
from hunch_contrib.goal.task_explore import TaskExplore

WORDS = lm.load("bag-of-words")


# ---- TaskExplore ------------------------------------------------------------------------------------------


def test_a_task_in_plain_words_is_refused():
    with pytest.raises(UsageError, match="not a task in temporal logic"):
        hunch.train(begun(TaskExplore(encoder=WORDS)), hunch.make("hunch/FrozenLake-v0"), 10)


# ---- RLAdapter --------------------------------------------------------------------------------------------


def test_a_run_trains_the_adapter_after_each_stage():
    """That the contract is kept, tests/methods/test_registry.py holds."""
    config = RLAdapterConfig(mentor=MentorConfig(updates=1, stages=2))
    agent = RLAdapter(lm.load("scripted:mentor"), config, WORDS)
    hunch.train(agent, hunch.make("hunch/Craft-v0", max_steps=10), 40, seed=0)
    assert agent.mentor.stage == 2
    assert agent.evidence == "L0"
    assert set(agent.mentor.lessons) == {0}


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_learner_sees_the_sub_goals_and_is_rewarded_for_them_only_by_a_setting(weight):
    ppo = methods.PPOConfig(horizon=1_000)
    agent = RLAdapter(lm.load("scripted:mentor"), encoder=WORDS, weight=weight, ppo=ppo, threshold=0.3)
    result = hunch.train(agent, hunch.make("hunch/Craft-v0"), 400, seed=0)
    [steps] = agent.agent.agent.kept.streams()  # what PPO has not learnt from yet
    kept = [step.transition for step in steps]
    assert all(len(t.state.goals) == 3 for t in kept[::100])
    assert len({t.state.goals for t in kept[::100]}) == 4, "new ones in every episode"
    extra = sum(t.reward for t in kept) - sum(e.episode_return for e in result.episodes)
    assert (extra > 0) == (weight > 0), "words such as 'collect' are shared"


class Wood(Model):
    """Always suggests wood."""

    verbs = frozenset({"generate"})
    name, revision = "wood", "1"

    def generate(self, prompts, k=1, sampling=None, first=0):
        return [["collect wood"]] * len(prompts)


def test_the_task_is_no_sub_goal_where_all_sub_goals_are_reached():
    config = RLAdapterConfig(mentor=MentorConfig(adapter="none"), learner="table", weight=1.0, extrinsic=0.0)
    agent = begun(RLAdapter(Wood(), config, WORDS))
    state = State("here", "collect iron", ("collect wood", "collect iron"))
    for action in ("collect wood", "collect iron"):
        agent.act([state])
        agent.observe([Transition(state, action, 0.0, state, False, False, event=action)])
    metrics = agent.learn()
    assert metrics["reached"] == 1
    assert metrics["intrinsic"] == pytest.approx(0.5)  # the mean of both steps


def test_comprehension_is_the_published_formula():
    assert comprehension(0.1) == 0.5
    assert comprehension(0.2) == pytest.approx(1 / (1 + np.exp(-1)))


def mentor(**options):
    found = begun(
        Mentor(
            lm.load("scripted:mentor"), WORDS, MentorConfig(updates=12, adapter_rate=3e-3, **options), 0.99
        )
    )
    found.begin(World(steps=100), 0)
    return found


def test_only_what_led_to_the_best_scores_is_kept():
    found = mentor(keep=0.5)
    found.finished = [("p", SUMMARIES[i % 4], i / 10) for i in range(6)]
    assert found.best() == [("p", SUMMARIES[i % 4]) for i in (5, 4, 3)]
    found.finished = found.finished[:1]
    assert len(found.best()) == 1, "round(0.5) is 0"
    found = mentor(keep=1.0)
    found.finished = [("p", SUMMARIES[0], 0.1)] * 3
    assert len(found.best()) == 3, "released code: all"


def test_the_adapter_learns_to_say_what_did_well():
    found = mentor()
    rng = np.random.default_rng(0)
    prompt = "The player did nothing."

    def share():
        return np.mean([found.adapter.say(prompt, rng) == SUMMARIES[1] for _ in range(40)])

    before = share()
    found.adapter.train([(prompt, SUMMARIES[1])] * 4, found.config.updates, rng)
    assert share() > max(before, 0.8)


def test_a_source_trains_in_learn_and_nowhere_else():
    found = mentor()
    found.finished, found.steps, found.recent_scores = [("p", SUMMARIES[0], 1.0)] * 2, 50, [0.5]
    verbs = {name for name in vars(type(found)) if not name.startswith("_")}
    assert "metrics" not in verbs, "a getter that trained"

    def weights():
        return {n: w.clone() for n, w in found.adapter.state_dict()["network"].items()}

    before = weights()
    _ = found.evidence, found.settings, found.best(), found.state_dict()
    assert all((before[name] == w).all() for name, w in weights().items())
    assert set(found.learn()) == {"comprehension", "adapter_loss"}
    assert any((before[name] != w).any() for name, w in weights().items())
    assert found.learn() == {}, "once per stage"


def test_a_frozen_adapter_stays_and_none_says_nothing():
    state = State("You see trees.", "", ("collect wood", "whistle a tune"))
    frozen = mentor(adapter="frozen")
    weights = frozen.adapter.state_dict()["network"]
    before = {name: w.clone() for name, w in weights.items()}
    frozen.finished, frozen.steps = [("p", SUMMARIES[0], 1.0)], 50
    frozen.learn()
    assert frozen.stage > 0
    assert all((before[name] == w).all() for name, w in frozen.adapter.state_dict()["network"].items())
    none = mentor(adapter="none")
    assert none.suggest([state]) == [("collect wood",)], "the rule names achievements alone"
    assert none.lessons[0].summary == ""


def test_the_rule_goes_by_the_summary():
    told = {word: suited(f"Summary: {text}") for word, text in zip("nbxe", SUMMARIES, strict=True)}
    assert "collect wood" in told["n"]
    assert "collect diamond" in told["e"]
    assert len(suited("nothing is said")) == 22
    with pytest.raises(UsageError, match="malformed"):
        lm.load("scripted:mentor?malformed=0.5")


def test_prose_is_counted_and_is_no_goal():
    class Prose(MentorModel):
        def generate(self, prompts, k=1, sampling=None, first=0):
            return [["I would rather not say.\n- collect wood"] for _ in prompts]

    found = begun(Mentor(lm.Cached(Prose()), WORDS, MentorConfig(adapter="none"), 0.99))
    assert found.suggest([State("You see trees.", "", ("collect wood",))]) == [("collect wood",)]
    assert found.lm.usage.fallbacks == 1
