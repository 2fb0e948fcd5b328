"""TaskExplore and RLAdapter."""

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import State, UsageError, World
from hunch.envs.craft import RULES
from hunch.envs.craft_mentor import MentorModel, suited
from hunch.lm.backends.bag_of_words import BagOfWords
from hunch.rl.episodes import evaluate
from hunch_contrib.goal.rl_adapter import (
    SUMMARIES,
    Mentor,
    MentorConfig,
    RLAdapter,
    RLAdapterConfig,
    comprehension,
)
from hunch_contrib.goal.task_explore import TaskExplore
from hunch_contrib.goal.temporal import parse, propositions
from hunch_studies.rl_adapter import AdapterByRule, Rule
from hunch_studies.worlds.home_grid import THINGS

HOME = "hunch/HomeGrid-v0"
WORDS = lm.load("bag-of-words")


class Alike(BagOfWords):
    """An encoder that finds the things of one room alike."""

    def embed(self, texts):
        rooms = np.eye(4, 384, dtype=np.float32)
        return np.stack([rooms[THINGS.index(text) // 4] for text in texts])


# ---- TaskExplore ------------------------------------------------------------------------------------------


def test_auxiliary_tasks_have_the_form_of_the_target_and_like_things():
    agent = begun(TaskExplore(encoder=Alike()))
    agent.begin(World(task="F (kettle & F (mug & F sofa))", things=THINGS), 0)
    target, *others = agent.tasks
    assert len(others) == len(set(others)) > 3
    for task in others:
        rooms = [THINGS.index(name) // 4 for name in propositions(parse(task))]
        assert rooms == [0, 0, 2], "each thing is swapped for one of its room"
    assert [line["task"] for line in agent.records()] == [target, *others]


def test_words_find_no_two_names_alike_so_their_swaps_are_the_random_ones():
    world = World(task="F (kettle & F (mug & F sofa))", things=THINGS)
    drawn = []
    for swaps in ("alike", "random"):
        agent = begun(TaskExplore(encoder=WORDS, swaps=swaps))
        agent.begin(world, 5)
        drawn.append(list(agent.tasks))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(("behaviour", "counterfactual"), [("target", "each"), ("random", "all")])
def test_policies_from_the_steps_of_one_run(behaviour, counterfactual):
    """The target's where it is pursued; those of all from aimless steps, if all formulas are updated."""
    agent = begun(TaskExplore(encoder=Alike(), tasks=2, behaviour=behaviour, counterfactual=counterfactual))
    hunch.train(agent, hunch.make(HOME, goal="F (kettle & F mug)"), 2_500, seed=0)
    for task in list(agent.tasks)[: 3 if counterfactual == "all" else 1]:
        ended = evaluate(agent.player, [hunch.make(HOME, goal=task)], 2, 0)
        assert all(e.success for e in ended), task


def test_the_target_is_learnt_as_without_auxiliary_tasks():
    runs = []
    for tasks in (0, 4):
        result = hunch.train(begun(TaskExplore(encoder=Alike(), tasks=tasks)), hunch.make(HOME), 600, seed=1)
        runs.append([e.actions for e in result.episodes])
    assert runs[0] == runs[1]


def test_task_explore_keeps_the_contract():
    methods.check(begun(TaskExplore(encoder=Alike(), tasks=2)), hunch.make(HOME), steps=40)


def test_a_task_in_plain_words_is_refused():
    with pytest.raises(UsageError, match="not a task in temporal logic"):
        hunch.train(begun(TaskExplore(encoder=WORDS)), hunch.make("hunch/FrozenLake-v0"), 10)


@pytest.mark.parametrize(("goal", "said"), [("F dragon", "no dragon"), ("kettle & mug", "impossible")])
def test_homes_that_cannot_be_made(goal, said):
    with pytest.raises(UsageError, match=said):
        hunch.make(HOME, goal=goal)
    with pytest.raises(UsageError, match="cannot be done in the home of seed 0"):
        hunch.make(HOME, goal="!kettle U mug", walls=True)  # the kettle stands in the door


@pytest.mark.parametrize("goal", ["F (kettle & F (mug & F sofa))", "!kettle U mug", "F bed & F sofa"])
@pytest.mark.parametrize("walls", [False, True])
def test_the_oracle_of_a_home_does_every_task(goal, walls):
    for seed in (1, 2, 3):
        env = hunch.make(HOME, goal=goal, home_seed=seed, walls=walls)
        env.reset(seed=0)
        over = False
        while not over:
            *_, terminated, truncated, info = env.step(env.unwrapped.oracle()[0])
            over = terminated or truncated
        assert info["success"]


def test_walls_are_crossed_at_doors_alone():
    env, rng = (
        hunch.make(HOME, goal="F (mug & F !mug)", walls=True, max_steps=3_000),
        np.random.default_rng(0),
    )
    _, info = env.reset(seed=0)
    crossings = set()
    for _ in range(3_000):
        before = info["raw"]
        *_, over, _, info = env.step(int(rng.integers(4)))
        if (3 in before) != (3 in info["raw"]):
            crossings.add(frozenset((before, info["raw"])))
        if over:
            _, info = env.reset()
    assert crossings == {frozenset(((row, c), (3, c))) for row in (2, 4) for c in (1, 5)}


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


def test_the_studys_rule_tells_the_truth():
    rule, rng = Rule(SUMMARIES), np.random.default_rng(0)
    did = [one.action for one in RULES[:9]]
    assert (
        rule.say("The player did nothing. Told to collect wood, it followed: 3 of 10.", rng) == SUMMARIES[0]
    )
    assert (
        rule.say(f"The player did {', '.join(did)}. Told to do nothing, it followed: 1.", rng) == SUMMARIES[2]
    )
    agent = AdapterByRule(lm.load("scripted:mentor"), encoder=WORDS)
    agent.begin(World(steps=100), 0)
    assert isinstance(agent.mentor.adapter, Rule)
    assert agent.evidence == "L0"


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
