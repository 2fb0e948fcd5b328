"""TaskExplore in homes, and the study's rule for RLAdapter."""

import numpy as np
import pytest
from tests.begun import begun
from tests.contrib.test_goal_methods import WORDS

import hunch
from hunch import lm, methods
from hunch.core import State, UsageError, World
from hunch.envs.craft import RULES
from hunch.lm.backends.bag_of_words import BagOfWords
from hunch.rl.episodes import evaluate
from hunch_contrib.goal.rl_adapter import (
    SUMMARIES,
)
from hunch_contrib.goal.task_explore import TaskExplore
from hunch_contrib.goal.temporal import parse, propositions
from hunch_studies.rl_adapter import AdapterByRule, Rule
from hunch_studies.worlds.home_grid import THINGS

HOME = "hunch/HomeGrid-v0"


class Alike(BagOfWords):
    """An encoder that finds the things of one room alike."""

    def embed(self, texts):
        rooms = np.eye(4, 384, dtype=np.float32)
        return np.stack([rooms[THINGS.index(text) // 4] for text in texts])


def test_auxiliary_tasks_have_the_form_of_the_target_and_like_things():
    agent = begun(TaskExplore(encoder=Alike()))
    agent.begin(World(task="F (kettle & F (mug & F sofa))", things=THINGS), 0)
    target, *others = agent.tasks
    assert len(others) == len(set(others)) > 3
    for task in others:
        rooms = [THINGS.index(name) // 4 for name in propositions(parse(task))]
        assert rooms == [0, 0, 2], "each thing is swapped for one of its room"
    assert [line["task"] for line in agent.records()] == [target, *others]


def test_tasks_that_are_the_same_in_another_order_count_once():
    agent = begun(TaskExplore(encoder=Alike(), tasks=3, near=3))
    agent.begin(World(task="F kettle & F mug", things=THINGS), 0)
    target, *others = agent.tasks
    assert len(others) == 3
    assert target not in others


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


def test_a_curriculum_pursues_auxiliary_tasks_first_and_then_the_target():
    agent = begun(TaskExplore(encoder=Alike(), tasks=3, behaviour="curriculum", lessons=0.5))
    agent.begin(World(task="F (kettle & F mug)", things=THINGS, steps=60), 0)
    target, *others = agent.tasks
    state = State("", target, ("go north",), raw=(3, 3))
    pursued = []
    for step in range(60):
        agent.steps = step
        pursued.append(agent._pursuing(state).task)
    assert pursued[:30] == [task for task in others[::-1] for _ in range(10)], "the most similar task last"
    assert set(pursued[30:]) == {target}


def test_a_run_with_a_curriculum_learns_its_lessons(tmp_path):
    agent = begun(TaskExplore(encoder=Alike(), tasks=1, behaviour="curriculum", lessons=1.0))
    hunch.train(agent, hunch.make(HOME, goal="F (kettle & F mug)"), 8_000, seed=0)
    [_, auxiliary] = agent.tasks
    ended = evaluate(agent.player, [hunch.make(HOME, goal=auxiliary)], 2, 0)
    assert all(e.success for e in ended)
    again = begun(TaskExplore(encoder=Alike(), tasks=1, behaviour="curriculum", lessons=1.0))
    again.load_state_dict(agent.state_dict())
    assert again.steps == agent.steps > 0


def test_task_explore_keeps_the_contract():
    methods.check(begun(TaskExplore(encoder=Alike(), tasks=2)), hunch.make(HOME), steps=40)


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
