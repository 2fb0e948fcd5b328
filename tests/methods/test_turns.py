"""Models trained over many turns: texts in place of listed actions, and equal states of a group."""

from __future__ import annotations

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import State, Transition, UsageError, World
from hunch.envs import check
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.wrappers import REFUSED, Written

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from hunch.rl.advantages import Actions, anchored, anchors, group  # noqa: E402
from hunch.rl.policy import Decision, Step  # noqa: E402

WALKS = 'pocket?corpus=walks&end="\\n"'
MOVES = ("turn left", "turn right", "go forward", "drop")


class Turning(TextEnv):
    """Three steps, of which the second pays for its length in letters."""

    offers = ()
    task = "go to a red ball"

    def __init__(self):
        super().__init__(3)

    def _begin(self, options):
        self.taken = 0
        return Outcome("You see a red ball 2 steps left", MOVES)

    def _move(self, action):
        self.taken += 1
        paid = len(action) * float(self.taken == 2)
        return Outcome("You see a key 3 steps forward", MOVES, paid, self.taken == 3)


@pytest.fixture(scope="module")
def model():
    return lm.trainable(WALKS)


def agent(name, model, **options):
    return methods.find(name).agent_class(lm=model, **options)


# ---- texts in place of listed actions ---------------------------------------------------------------------


def test_a_written_environment_keeps_the_contract():
    check(hunch.make("hunch/Household-Pick-v0", games=2, max_steps=4, written=True), episodes=2, steps=6)
    check(hunch.make("hunch/FrozenLake-v0", written=True, history=2), episodes=2, steps=6)


def test_an_inadmissible_text_costs_a_step_and_changes_nothing():
    ours, listed = (hunch.make("hunch/FrozenLake-v0", max_steps=3, written=w) for w in (True, False))
    assert ours.reset(seed=1)[0] == listed.reset(seed=1)[0]
    action = listed.unwrapped.action_space.actions[1]
    observation, reward, terminated, truncated, info = ours.step("fly away")
    assert (observation, reward, terminated, truncated) == (REFUSED, 0.0, False, False)
    assert info["event"] == REFUSED
    assert "actions" not in info
    assert ours.step(f" {action} ")[0] == listed.step(action)[0]  # space does not matter
    *_, terminated, truncated, _ = ours.step("fly away")
    assert (terminated, truncated) == (False, True)
    with pytest.raises(UsageError, match="No episode is running"):
        ours.step(action)


def test_what_cannot_be_written_says_so(capsys):
    with pytest.raises(UsageError, match="BinPacking-v0 accepts any text as it is: leave out written"):
        hunch.make("hunch/Heuristic-BinPacking-v0", written=True)
    with pytest.raises(UsageError, match="ppo-text writes any text, and hunch/FrozenLake-v0 takes listed"):
        hunch.train("ppo-text", "hunch/FrozenLake-v0", steps=5, lm="hf:/nowhere")
    with pytest.raises(SystemExit) as end:
        main(["run", "glam", "--env", "hunch/FrozenLake-v0", "--env.written", "true", "--steps", "5"])
    assert end.value.code == 2
    assert (
        "glam chooses from listed actions, and hunch/FrozenLake-v0 takes any text" in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["gigpo", pytest.param("rloo", marks=pytest.mark.thorough)])
def test_the_contract_is_kept_in_many_turns(name, model):
    made = agent(name, model, group=2, episodes=4, max_tokens=5)
    methods.check(made, Written(Turning()), steps=16, streams=2)


# ---- equal states of a group ------------------------------------------------------------------------------


def rows():
    """Two groups of two episodes of three steps of one or two tokens; states met more than once."""
    lengths = np.array([1, 2, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1])
    steps = np.repeat(np.arange(12), lengths)
    ends = np.zeros(len(steps), dtype=bool)
    rewards = np.zeros(len(steps))
    last = np.cumsum(lengths) - 1
    ends[last[2::3]] = True
    rewards[last] = np.random.default_rng(0).normal(size=12).round(1)
    anchors = np.array([0, 1, 1, 0, 2, 1, 3, 4, 3, 3, 5, 6])
    nothing = np.zeros(len(steps))
    return Actions(rewards, nothing, nothing, ends, np.array([0, 0, 1, 1]), steps, anchors)


def test_equal_states_are_compared_as_the_paper_writes_it():
    own, gamma = rows(), 0.9
    paid = np.array([own.rewards[own.steps == i].sum() for i in range(12)]).reshape(4, 3)
    returns = np.array(
        [[sum(gamma**k * r for k, r in enumerate(e[t:])) for t in range(3)] for e in paid]
    ).ravel()
    level = np.zeros(12)
    for anchor in set(own.anchors):
        same = own.anchors == anchor
        if same.sum() > 1:
            level[same] = (returns[same] - returns[same].mean()) / returns[same].std(ddof=1)
    found = anchored(own, gamma, 1.0, 0.5)
    np.testing.assert_allclose(found, group(own, gamma, 1.0) + 0.5 * level[own.steps], atol=1e-12)
    assert np.count_nonzero(level)


def test_over_steps_a_long_episode_counts_once_for_each_of_its_steps():
    """Returns 1 after one step and 0 after three: the mean is 1/4, and not 1/2."""
    ends = np.array([True, False, False, True])
    nothing = np.zeros(4)
    own = Actions(
        np.array([1.0, 0, 0, 0]), nothing, nothing, ends, np.array([0, 0]), np.arange(4), np.arange(4)
    )
    returns = np.array([1.0, 0, 0, 0])
    expected = (returns - 0.25) / returns.std(ddof=1)
    np.testing.assert_allclose(anchored(own, 0.9, 1.0, 1.0, over_steps=True), expected)
    np.testing.assert_allclose(anchored(own, 0.9, 1.0, 1.0), np.array([1, -1, -1, -1]) / np.sqrt(2))


def test_equal_observations_are_one_state_whatever_is_admissible():
    def step(observation, *listed):
        state = State(observation, "", listed)
        return Step(Transition(state, listed[0], 0.0, state, False, False), Decision(listed[0]))

    streams = [[step("hall", "go"), step("yard", "go")], [step("hall", "go", "wait")], [step("hall", "go")]]
    _, numbers = anchors(streams, [0, 0, 1], torch.ones(4, 1, dtype=torch.bool))
    assert numbers.tolist() == [0, 1, 0, 2], "the third is of another group"


@pytest.mark.parametrize("invalid", [0.0, 0.1])
def test_a_refused_text_is_penalised(model, invalid):
    own = agent("gigpo", model, group=2, episodes=4, max_tokens=5, kl=0.0, invalid=invalid)
    state = State("hall", "")
    own.begin(World(), 0)
    for event in (REFUSED, "You go."):
        own.observe([Transition(state, "go", 1.0, state, False, False, event=event)])
    assert [step.transition.reward for step in own.kept.open[0]] == [1.0 - invalid, 1.0]


def test_without_anchors_it_is_grpo_to_the_bit(model):
    made = [agent(name, model, group=2, episodes=4, max_tokens=5, kl=0.0, **more) for name, more in TWINS]
    ends = []
    for own in made:
        hunch.train(own, [Turning() for _ in range(2)], steps=24, seed=1)
        ends.append({name: weight.clone() for name, weight in own.lm.state_dict().items()})
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert any(not torch.equal(ends[0][name], ends[2][name]) for name in ends[0])


TWINS = (
    ("grpo", {}),
    ("gigpo", {"anchors": 0.0, "average": "episodes", "invalid": 0.0}),
    ("gigpo", {}),
)
