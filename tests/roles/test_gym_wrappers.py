"""The roles under learners of other libraries: the same rewards and proposals as inside our own loop."""

import sys
import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import NormalizeObservation

import hunch
from hunch import lm
from hunch.core import Agent, HunchWarning, UsageError, World
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.describers import TAXI_ACTIONS
from hunch.envs.wrappers import REFUSED
from hunch.lm import Budget, BudgetError, Ledger
from hunch.methods.reward.count_bonus import Counts
from hunch.rl.rollout import Rollout
from hunch.roles.encoder.gym import Encoded
from hunch.roles.goal.goaled import GoalSource
from hunch.roles.goal.gym import Goals
from hunch.roles.prior.gym import PriorLogits, Proposals
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.roles.reward.gym import JudgeReward, ProgramReward, SourceReward
from hunch.roles.reward.judge import Judge
from hunch.roles.reward.rewarded import Rewarded, Shaping
from hunch.sandbox import ProgramError

WORDS = lm.load("bag-of-words")


class Notes(Agent):
    def begin(self, world, seed):
        self.rewards = []

    def act(self, states):
        raise NotImplementedError

    def observe(self, transitions):
        self.rewards += [t.reward for t in transitions]

    def player(self, seed):
        raise NotImplementedError


@pytest.mark.parametrize("shaping", [None, Shaping(beta=1.0), Shaping(standardise=True)])
def test_the_rewards_are_those_of_the_loop(shaping):
    """Two routes to one reward: Rewarded in a rollout, and the wrapper, on the same steps."""
    options = {"weight": 0.5, "extrinsic": 2.0, "shaping": shaping}
    notes = Notes()
    rewarded = Rewarded(notes, Counts("event"), **options)
    rollout = Rollout([hunch.make("hunch/Craft-v0", max_steps=15)], 0)
    rewarded.begin(World(streams=1), 0)
    wrapped = SourceReward(hunch.make("hunch/Craft-v0", max_steps=15), Counts("event"), **options)
    rng, own = np.random.default_rng(0), []
    over = True
    for _ in range(40):
        if over:
            wrapped.reset()
        action = rollout.states[0].options[int(rng.integers(6, 40))]
        rewarded.observe(rollout.step([action]))
        _, reward, terminated, truncated, info = wrapped.step(action)
        own.append(reward)
        over = terminated or truncated
        assert info["extrinsic"] in (0.0, 1.0)
    assert own == pytest.approx(notes.rewards)
    assert len(set(own)) > 2


def test_a_source_begins_with_the_task_of_the_environment():
    class Tasks(Counts):
        def begin(self, world, seed):
            super().begin(world, seed)
            self.task = world.task

    source = Tasks("event")
    env = SourceReward(hunch.make("hunch/FrozenLake-v0"), source)
    for seed in (0, 1):
        env.reset(seed=seed)
        env.step("Go Down")
    assert source.task == env.unwrapped.task != ""


def test_a_judge_pays_at_the_end():
    env = SourceReward(hunch.make("hunch/Ultimatum-v0"), Judge(lm.load("scripted:judge")), extrinsic=0.0)
    for seed in range(5):
        env.reset(seed=seed)
        _, reward, terminated, _, info = env.step(env.unwrapped.oracle()[0])
        assert (reward, terminated, info["extrinsic"], info["intrinsic"]) == (1.0, True, 1.0, 1.0)


def test_gymnasium_accepts_it_as_numbers():
    judge = Judge(lm.load("scripted:judge"))
    env = Encoded(SourceReward(hunch.make("hunch/Ultimatum-v0"), judge, weight=0.5), WORDS)
    assert env.observation_space.shape == (2 * WORDS.dim,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation.dtype == np.float32
    assert env.step(np.int64(1))[1] in (0.0, 1.5)


def test_a_learner_of_stable_baselines3_gets_the_judges_rewards():
    """The program of the docs, shorter; needs stable-baselines3, which no extra of ours installs."""
    sb3 = pytest.importorskip("stable_baselines3")
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    judge = Judge(lm.load("scripted:judge"))
    env = Encoded(SourceReward(hunch.make("hunch/Ultimatum-v0"), judge, extrinsic=0.0), WORDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checker.check_env(env)
        asked = sum(judge.verdicts[name] for name in ("yes", "no"))
        model = sb3.DQN("MlpPolicy", env, learning_starts=20, seed=0).learn(60)
    kept = model.replay_buffer.rewards[:60, 0]
    assert set(kept) == {0.0, 1.0}
    assert sum(judge.verdicts[name] for name in ("yes", "no")) == asked + 60


# ---- the action prior -------------------------------------------------------------------------------------

PICK = "hunch/Household-Pick-v0"


def pick(**options):
    return hunch.make(PICK, games=2, max_steps=12, **options)


def cart():
    return gymnasium.make("CartPole-v1")


def accepted(env):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize("lm_name", ["uniform", "bag-of-words"])
def test_gymnasium_accepts_the_wrappers(lm_name):
    accepted(Proposals(pick(), lm_name, k=3))
    accepted(PriorLogits(hunch.make("hunch/FrozenLake-v0"), lm_name))
    accepted(PriorLogits(pick(), lm_name, most=60))  # fewer are admissible, and the checker uses no masks
    accepted(Encoded(hunch.make("hunch/FrozenLake-v0"), WORDS))
    accepted(Encoded(hunch.make("hunch/Taxi-v0", masked=True), WORDS, actions=TAXI_ACTIONS))
    accepted(Goals(hunch.make("hunch/FrozenLake-v0"), "bag-of-words"))


@pytest.mark.parametrize("several", [False, True])
def test_numbers_that_stand_for_no_action_end_the_episode_at_its_limit(several):
    if several:
        envs = PriorLogits.vector([pick, pick], "bag-of-words", most=60)
        envs.reset(seed=0)
        with pytest.warns(HunchWarning, match="is not offered here"):
            ends = [envs.step([59, 0])[3][0] for _ in range(12)]
    else:
        env = PriorLogits(pick(), "bag-of-words", most=60)
        env.reset(seed=0)
        with pytest.warns(HunchWarning, match="is not offered here"):
            ends = [env.step(59)[3] for _ in range(12)]
        with pytest.raises(UsageError, match="No episode is running"):
            env.step(59)
    assert ends == [False] * 11 + [True]


def test_a_number_that_stands_for_no_action_needs_a_step_limit():
    env = PriorLogits(hunch.make("hunch/FrozenLake-v0"), "bag-of-words", most=5)
    env.steps.limit = sys.maxsize  # as of an environment that states none
    env.reset(seed=0)
    with pytest.raises(UsageError, match="set max_steps"):
        env.step(4)


def test_every_number_is_a_proposed_action_and_the_mask_tells_the_distinct_ones():
    env = Proposals(pick(), "bag-of-words", k=6)
    observation, info = env.reset(seed=1)
    dim = env.shown.table.dim
    for _ in range(30):
        shares = observation[-6:]
        distinct = int(env.action_masks().sum())
        assert info["proposals"] == env.seen.actions[:distinct]
        assert len(set(env.seen.actions)) == distinct
        assert sum(shares[:distinct]) == pytest.approx(1.0)
        assert list(shares[:distinct]) == sorted(shares[:distinct], reverse=True)
        assert set(env.seen.actions) <= set(info["actions"])
        last = env.shown.table.encode([env.seen.actions[5]])[0]
        np.testing.assert_array_equal(observation[7 * dim : 8 * dim], last)
        observation, _, terminated, truncated, info = env.step(np.int64(5))
        if terminated or truncated:
            observation, info = env.reset()


def test_the_proposals_are_those_of_the_prior():
    """Two routes to one proposal: the wrapper, and the prior in our own loop."""
    env = Proposals(pick(), "bag-of-words", k=5)
    _, info = env.reset(seed=7)
    prior = build_prior(PriorConfig(), lm.load("bag-of-words"))
    state = hunch.core.State.read(*pick().reset(seed=7))
    (proposal,) = prior.propose([state], 5, np.random.default_rng(7))
    assert set(info["proposals"]) == {state.options[i] for i in proposal.indices}


def test_logits_are_those_of_the_prior():
    env = PriorLogits(hunch.make("hunch/FrozenLake-v0"), "bag-of-words", most=6)
    observation, info = env.reset(seed=0)
    prior = build_prior(PriorConfig(), lm.load("bag-of-words"))
    (probabilities,) = prior.probabilities([hunch.core.State.read(*env.env.reset(seed=0))])
    np.testing.assert_allclose(observation["logits"][:4], np.log(probabilities), rtol=1e-5)
    assert env.action_masks().tolist() == [True] * 4 + [False] * 2
    assert env.seen.actions == info["actions"]
    with pytest.warns(HunchWarning, match="only 4 are.* It costs a step"):
        again, reward, *over, told = env.step(4)
    np.testing.assert_array_equal(again["logits"], observation["logits"])
    assert (reward, over, told["invalid_action"], told["event"]) == (0.0, [False, False], True, REFUSED)


class Growing(TextEnv):
    """Lists an action more after each step."""

    def _begin(self, options):
        self.listed = ["a bird", "a cat"]
        return Outcome("Name a fish.", tuple(self.listed))

    def _move(self, action):
        self.listed.append("a fish")
        return Outcome("Name a fish.", tuple(self.listed))


def test_without_most_a_longer_list_is_cut_to_the_likeliest_and_a_warning_tells_of_it():
    env = PriorLogits(Growing(4), "bag-of-words")
    env.reset(seed=0)
    with pytest.warns(HunchWarning, match="A state lists 3 actions.* set most=3"):
        observation, *_, info = env.step(0)
    assert info["actions"] == ("a bird", "a cat", "a fish")
    assert env.observation_space.contains(observation)
    assert env.action_masks().tolist() == [True, True]
    assert env.seen.actions == ("a bird", "a fish")
    env.step(1)


class Counting:
    """Passes questions on to a model, and counts the requests."""

    def __init__(self, model):
        self.model, self.requests = model, 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def embed(self, texts):
        self.requests += 1
        return self.model.embed(texts)


@pytest.mark.parametrize("kind", [Proposals, PriorLogits])
def test_several_environments_ask_once_and_see_what_each_alone_sees(kind):
    counting = Counting(lm.load("bag-of-words", cache=None))
    options = {"k": 4} if kind is Proposals else {"most": 60}
    together = kind.vector([pick] * 3, counting, **options, encoder="bag-of-words")
    one = Counting(lm.load("bag-of-words", cache=None))
    alone = kind.vector([pick], one, **options, encoder="bag-of-words")
    together.reset(seed=3)
    alone.reset(seed=3)
    assert counting.requests <= 3 * one.requests / 2, "three environments in the requests of one"
    assert together.action_masks().shape == (3, *alone.action_masks().shape[1:])
    for _ in range(30):  # episodes end, and begin again
        observation, rewards, terminations, truncations, info = together.step([0, 0, 0])
    assert together.observation_space.contains(observation)
    assert rewards.shape == terminations.shape == truncations.shape == (3,)
    assert info["action_mask"].shape == together.action_masks().shape


def test_the_same_seed_gives_the_same_episode_also_in_vectorised_form():
    def played():
        env = Proposals.vector([pick, pick], "bag-of-words", k=4)
        first = env.reset(seed=5)[0]
        return np.stack([first, *(env.step([step % 4, (step + 1) % 4])[0] for step in range(20))])

    np.testing.assert_array_equal(played(), played())


def test_what_is_no_environment_for_a_prior_is_refused():
    with pytest.raises(UsageError, match="needs a text environment"):
        Proposals(gymnasium.make("CartPole-v1"), "uniform")
    with pytest.raises(UsageError, match="accepts any text"):
        Proposals(hunch.make("hunch/Prompts-v0"), "uniform").reset(seed=0)
    with pytest.raises(UsageError, match="k must be"):
        Proposals(pick(), "uniform", k=0)
    with pytest.raises(UsageError, match="set most="):
        PriorLogits(pick(), "uniform", most=2).reset(seed=0)
    with pytest.raises(UsageError, match="call reset"):
        Proposals(pick(), "uniform").step(0)
    with pytest.raises(UsageError, match="call reset"):
        Proposals(pick(), "uniform").action_masks()
    with pytest.raises(UsageError, match="at least one"):
        Proposals.vector([], "uniform")


# ---- rewards and goals ------------------------------------------------------------------------------------


def test_an_environment_of_numbers_is_described_to_the_judge_alone():
    env = JudgeReward(gymnasium.make("CartPole-v1"), "scripted:judge", "the pole stays upright", weight=2.0)
    observation, _ = env.reset(seed=0)
    assert observation.shape == (4,)
    assert "pole" in env.state.observation
    rewards, over = [], False
    while not over:
        observation, reward, terminated, truncated, info = env.step(0)
        rewards.append(reward)
        over = terminated or truncated
    assert rewards[:-1] == [1.0] * (len(rewards) - 1), "the verdict comes at the end"
    assert rewards[-1] == info["extrinsic"] + 2.0 * info["intrinsic"]
    assert env.action_space.n == 2
    with pytest.raises(UsageError, match="describe="):
        JudgeReward(gymnasium.make("MountainCar-v0"), "scripted:judge", "it arrives")
    with pytest.raises(UsageError, match="names 1 actions"):
        JudgeReward(
            gymnasium.make("MountainCar-v0"), "scripted:judge", "it arrives", describe=str, actions=("left",)
        )
    own = JudgeReward(gymnasium.make("MountainCar-v0"), "scripted:judge", "it arrives", describe=str)
    own.reset(seed=0)
    own.step(2)
    assert own.state.actions == ("action 0", "action 1", "action 2")


PRICE = """
import numpy as np


def reward(observation, action, next_observation):
    upright = -np.abs(next_observation[:, 2])
    return upright, {"upright": upright}
"""


def test_the_reward_of_a_program(tmp_path):
    path = tmp_path / "best.py"
    path.write_text(PRICE)
    for program in (PRICE, path, str(path)):
        env = ProgramReward(gymnasium.make("CartPole-v1"), program, weight=2.0, extrinsic=0.5)
        env.reset(seed=0)
        observation, reward, *_, info = env.step(1)
        assert reward == pytest.approx(0.5 - 2.0 * abs(observation[2]))
        assert info["components"]["upright"] == pytest.approx(-abs(observation[2]))
        env.close()
    with pytest.raises(UsageError, match="is no reward"):
        ProgramReward(gymnasium.make("CartPole-v1"), "def price(x):\n    return x")
    with pytest.raises(UsageError, match="best"):
        ProgramReward(gymnasium.make("CartPole-v1"), tmp_path / "not_best.py")


@pytest.mark.parametrize("parameters", ["observation, action", "observation, action, weight=1.0"])
def test_the_reward_of_a_program_of_one_step(parameters):
    program = f"def reward({parameters}):\n    return -abs(observation[2])\n"
    env = ProgramReward(gymnasium.make("CartPole-v1"), program)
    env.reset(seed=0)
    observation, reward, *_, info = env.step(1)
    env.close()
    assert reward == pytest.approx(-abs(observation[2]))
    assert info["components"] == {"reward": reward}


@pytest.mark.parametrize("returned", ["None", "1.0", "{1, 2}", "{0: 1, 5: {}}", "(next_observation, {})"])
def test_a_program_that_returns_no_reward_is_a_program_error(returned):
    program = f"def reward(observation, action, next_observation):\n    return {returned}\n"
    env = ProgramReward(gymnasium.make("CartPole-v1"), program)
    env.reset(seed=0)
    with pytest.raises(ProgramError, match="must"):
        env.step(1)
    env.close()


class Sled(gymnasium.Env):
    """A sled that moves on by one at each step, and is observed in one array that changes."""

    observation_space = gymnasium.spaces.Box(0.0, 99.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = np.zeros(1)
        return self.position, {}

    def step(self, action):
        self.position += 1.0
        return self.position, 0.0, False, False, {}


def test_a_program_sees_the_observation_before_a_step_where_the_array_is_the_same():
    moved = "next_observation[:, 0] - observation[:, 0]"
    env = ProgramReward(
        Sled(), f"def reward(observation, action, next_observation):\n    return {moved}, {{}}"
    )
    env.reset(seed=0)
    assert [env.step(0)[1] for _ in range(3)] == [1.0, 1.0, 1.0]
    env.close()


class Corners(GoalSource):
    """Suggests the cell below and that to the right, and knows when they are reached."""

    def suggest(self, states):
        return [("be at (1, 0)", "be at (0, 1)")] * len(states)

    def reached(self, transitions):
        def reached(goal, state):
            return f"agent is at position {goal.removeprefix('be at ')}" in state.observation

        return [[goal for goal in t.state.goals if reached(goal, t.next_state)] for t in transitions]


def test_an_episode_that_was_given_up_is_no_part_of_the_next_one():
    """A learner may reset before the end, and what came before must not reach the judge."""

    def verdicts(given_up):
        env = JudgeReward(cart(), "scripted:judge", "the pole stays upright")
        for _ in range(given_up):
            env.reset(seed=9)
            env.step(0)
        env.reset(seed=1)
        asked = env.rewarded.source.accounts
        env.step(0)
        return asked[0]

    assert verdicts(0) == verdicts(3)


def test_a_model_suggests_goals_by_its_name():
    env = Goals(hunch.make("hunch/Craft-v0", max_steps=30), "bag-of-words")
    text, info = env.reset(seed=0)
    assert text.startswith(f"Goal: {info['goals'][0]}")
    rng = np.random.default_rng(0)
    reached = []
    over = False
    while not over:
        _, reward, terminated, truncated, info = env.step(str(rng.choice(info["actions"])))
        assert reward == info["extrinsic"] + len(info["reached"])
        reached += info["reached"]
        over = terminated or truncated
    assert env.models["lm"].usage.texts_embedded > 0


def test_goals_are_seen_paid_and_gone():
    source = Corners()
    env = Goals(hunch.make("hunch/FrozenLake-v0"), source, source, reward=0.5)
    text, info = env.reset(seed=0)
    assert text.startswith("Goal: be at (1, 0)\nGoal: be at (0, 1)\n")
    assert info["goals"] == ("be at (1, 0)", "be at (0, 1)")
    text, reward, *_, info = env.step("Go Down")
    assert (reward, info["reached"]) == (0.5, ("be at (1, 0)",)), text
    assert info["goals"] == ("be at (0, 1)",)
    env.reset(seed=0)
    assert env.state.goals == ("be at (1, 0)", "be at (0, 1)")
    accepted(Encoded(Goals(hunch.make("hunch/FrozenLake-v0"), source, source), WORDS))
    with pytest.raises(UsageError, match="text environment"):
        Goals(gymnasium.make("CartPole-v1"), source)


class TwoSteps(gymnasium.Env):
    """Leaves out at the end which actions there are, as environments may."""

    observation_space = gymnasium.spaces.Text(100)
    action_space = gymnasium.spaces.Text(100)

    def __init__(self, offered, ends):
        self.offered = offered
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        self.left = 2
        return "a door", self.offered

    def step(self, action):
        self.left -= 1
        if self.left:
            return "a hall", 0.0, False, False, self.offered
        return "outside", 1.0, *self.ends, {"event": "go on"}


@pytest.mark.parametrize("ends", [(True, False), (False, True)])
@pytest.mark.parametrize("offered", [{"actions": ("go on", "wait")}, {"free_text": True}])
def test_an_environment_may_leave_out_its_actions_at_the_end(offered, ends):
    source = Counts("event")
    env = SourceReward(TwoSteps(offered, ends), source)
    if "actions" in offered:
        env = Goals(env, "bag-of-words")
    env.reset(seed=0)
    env.step("go on")
    _, _, *ended, info = env.step("go on")
    assert tuple(ended) == ends
    assert info["intrinsic"] == 1.0
    assert info.get("reached", ("go on",)) == ("go on",)


class Chopping(gymnasium.Env):
    """The event of its only action is its task."""

    observation_space = gymnasium.spaces.Text(100)
    action_space = gymnasium.spaces.Text(100)
    info = {"actions": ("chop the tree",), "task": "chop the tree", "event": "chop the tree"}  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        return "a forest", self.info

    def step(self, action):
        return "a forest", 0.0, False, False, self.info


@pytest.mark.parametrize("renew", [False, True])
def test_the_task_pays_as_a_goal_only_where_it_is_suggested(renew):
    env = Goals(Chopping(), "bag-of-words", renew=renew)
    _, info = env.reset(seed=0)
    assert info["goals"] == ("chop the tree",)
    assert [env.step("chop the tree")[1] for _ in range(4)] == [1.0, 0.0, 0.0, 0.0]


# ---- their learners ---------------------------------------------------------------------------------------


def test_learners_of_stable_baselines3_and_its_contrib_train_on_the_prior():
    """Needs stable-baselines3 and sb3-contrib, which no extra of ours installs."""
    sb3 = pytest.importorskip("stable_baselines3")
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.env_checker import check_env as check

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(Proposals(pick(), "bag-of-words"))
        check(PriorLogits(hunch.make("hunch/FrozenLake-v0"), "bag-of-words"))
        sb3.DQN("MlpPolicy", Proposals(pick(), "bag-of-words"), learning_starts=20, seed=0).learn(60)
        masked = PriorLogits(pick(), "bag-of-words", most=60)
        contrib.MaskablePPO("MultiInputPolicy", masked, n_steps=32, batch_size=16, seed=0).learn(64)


def test_checkers_of_stable_baselines3_accept_every_wrapper():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env as check

    lake = "hunch/FrozenLake-v0"
    source = Corners()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(Proposals(pick(), "bag-of-words"))
        check(PriorLogits(hunch.make(lake), "bag-of-words"))
        check(Encoded(hunch.make(lake), WORDS))
        check(Encoded(Goals(hunch.make(lake), source, source), WORDS))
        check(Encoded(SourceReward(hunch.make(lake), Counts("observation")), WORDS))
        check(JudgeReward(gymnasium.make("CartPole-v1"), "scripted:judge", "the pole stays upright"))
        rewarded = ProgramReward(gymnasium.make("CartPole-v1"), PRICE)
        check(rewarded)
        rewarded.close()


def test_a_learner_that_was_saved_goes_on_in_another_environment(tmp_path):
    """The same seed gives the same learner, and a saved one acts as before."""
    sb3 = pytest.importorskip("stable_baselines3")

    def learnt():
        env = Proposals(pick(), "bag-of-words", k=4)
        options = {"learning_starts": 20, "buffer_size": 200, "seed": 3}
        return sb3.DQN("MlpPolicy", env, **options).learn(60)

    one, same = learnt(), learnt()
    one.save(tmp_path / "dqn.zip")
    fresh = Proposals(pick(), "bag-of-words", k=4)
    loaded = sb3.DQN.load(tmp_path / "dqn.zip", env=fresh)
    observation, _ = fresh.reset(seed=8)
    for learner in (same, loaded):
        assert (
            learner.predict(observation, deterministic=True)[0]
            == one.predict(observation, deterministic=True)[0]
        )
        torch.testing.assert_close(learner.q_net.state_dict(), one.q_net.state_dict(), rtol=0, atol=0)
    assert loaded.learn(20, reset_num_timesteps=False).num_timesteps == 80


def test_gymnasium_makes_a_judged_environment_again_from_its_spec():
    env = JudgeReward(gymnasium.make("CartPole-v1"), "scripted:judge", "the pole stays upright")
    again = gymnasium.make(env.spec)
    assert isinstance(again, JudgeReward)
    for one in (env, again):
        one.reset(seed=1)
    rewards = [[one.step(0)[1] for _ in range(8)] for one in (env, again)]
    assert rewards[0] == rewards[1]


def test_environments_in_processes_show_what_those_in_this_process_show():
    """Gymnasium's own vectorised environments, each with a wrapper of its own."""
    made = [lambda: Proposals(pick(), "bag-of-words")] * 2
    apart, here = gymnasium.vector.AsyncVectorEnv(made), gymnasium.vector.SyncVectorEnv(made)
    try:
        np.testing.assert_array_equal(apart.reset(seed=5)[0], here.reset(seed=5)[0])
        for step in range(12):
            far, near = (envs.step(np.array([step % 5, 0])) for envs in (apart, here))
            for index in range(4):
                np.testing.assert_array_equal(far[index], near[index])
    finally:
        apart.close()
        here.close()


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [Proposals, PriorLogits, lambda env, model: Encoded(env, model)])
def test_an_environment_without_actions_is_refused(wrap):
    with pytest.raises(UsageError, match="accepts any text"):
        wrap(hunch.make("hunch/Prompts-v0"), "bag-of-words").reset(seed=0)


@pytest.mark.parametrize("action", [None, "look", 2.5, float("nan"), np.array([0, 1]), 5, -1])
def test_what_is_no_number_of_an_action_is_one_sentence(action):
    env = Proposals(pick(), "bag-of-words", k=5)
    env.reset(seed=0)
    with pytest.raises(UsageError, match=r"An action is a whole number here|There is no action"):
        env.step(action)
    for admissible in (0, np.int64(4), np.array(1), np.array([1]), 2.0):
        env.step(admissible)


def test_a_source_that_is_none_is_one_sentence():
    with pytest.raises(UsageError, match="source"):
        SourceReward(pick(), "bag-of-words")
    with pytest.raises(UsageError, match=r"A model is a spec .*, not 3"):
        Goals(pick(), 3)


@pytest.mark.parametrize(
    ("wrap", "said"),
    [
        (lambda: Proposals(pick(), None), "A model is a spec"),
        (lambda: Encoded(pick(), "bag-of-words", actions="look"), "a tuple of texts"),
        (lambda: PriorLogits("hunch/FrozenLake-v0", "uniform"), "The environment comes first"),
        (lambda: PriorLogits(pick(), "uniform", most="60"), "most must be a whole number"),
        (lambda: JudgeReward(cart(), "scripted:judge", 3), "objective is a sentence"),
        (lambda: JudgeReward(cart(), "scripted:judge", "x", weight=np.nan), "weight must be a finite number"),
        (lambda: JudgeReward(cart(), "scripted:judge", "x", describe="x"), "describe is a function"),
        (lambda: JudgeReward(cart(), "scripted:judge", "x", describe=len).reset(), "return a text, not 4"),
        (
            lambda: JudgeReward(NormalizeObservation(cart()), "scripted:judge", "x"),
            "changes the observations",
        ),
        (lambda: ProgramReward(cart(), 3), "A program is its text"),
        (lambda: ProgramReward(pick(), PRICE), "A program reads numbers"),
        (lambda: Proposals.vector([cart], "uniform"), "needs a text environment"),
        (lambda: Proposals.vector(pick, "uniform"), "at least one environment"),
        (lambda: Proposals.vector([pick], "uniform").reset(seed=[0, 1]), "2 seeds for 1"),
    ],
)
def test_other_wrong_arguments_are_one_sentence(wrap, said):
    with pytest.raises(UsageError, match=said):
        wrap()


def test_a_wrong_number_of_actions_is_one_sentence():
    envs = Proposals.vector([pick, pick], "bag-of-words")
    envs.reset(seed=0)
    with pytest.raises(UsageError, match="takes 2 actions"):
        envs.step([0])


def test_a_budget_holds_under_another_learner_and_the_learner_goes_on_with_a_larger_one():
    """The page's three lines: the ledger stops the step, and nothing stale is left behind."""
    env = Proposals(hunch.make("hunch/FrozenLake-v0"), lm.load("scripted:frozenlake", cache=None), k=1)

    def learn(steps):
        for _ in range(steps):
            env.reset()
            env.step(0)

    with Ledger(env.models, Budget(calls=5)).enforced(), pytest.raises(BudgetError, match="of 5 calls"):
        learn(50)
    with pytest.raises(UsageError, match="call reset"):
        env.step(0)
    with Ledger(env.models, Budget(calls=5000)).enforced():
        learn(50)


def test_a_mask_that_is_all_false_is_refused():
    env = Encoded(hunch.make("hunch/FrozenLake-v0"), WORDS, actions=("fly", "swim"))
    with pytest.raises(UsageError, match="No action is admissible in this state"):
        env.reset(seed=0)
    envs = Encoded.vector([lambda: hunch.make("hunch/FrozenLake-v0")] * 2, WORDS, ("fly", "swim"))
    with pytest.raises(UsageError, match="No action is admissible in this state"):
        envs.reset(seed=0)


def test_vectorised_environments_may_list_different_actions():
    makers = [pick, lambda: hunch.make("hunch/FrozenLake-v0")]
    lake = hunch.make("hunch/FrozenLake-v0")
    listed = hunch.core.State.read(*lake.reset(seed=0)).options
    longest = len(hunch.core.State.read(*pick().reset(seed=0)).options)
    envs = PriorLogits.vector(makers, "bag-of-words", most=longest + 20)
    envs.reset(seed=0)
    assert envs.action_masks().sum(axis=1).tolist() == [longest, len(listed)]
    with pytest.raises(UsageError, match=f"A state lists {longest} actions, and most is {len(listed)}"):
        PriorLogits.vector(makers, "bag-of-words", most=len(listed)).reset(seed=0)
    with pytest.raises(UsageError, match="No action is admissible"):  # those of one, in the other
        Encoded.vector(makers, WORDS, listed).reset(seed=0)
    with pytest.warns(HunchWarning, match="is not offered here"):
        assert envs.step([0, len(listed)])[4]["invalid_action"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("wrap", "verb"),
    [
        (lambda: Encoded(pick(), "uniform"), "embed"),
        (lambda: Proposals(pick(), "uniform", encoder="uniform"), "embed"),
        (lambda: Proposals(pick(), "bag-of-words", prior=PriorConfig(way="text")), "text"),
        (lambda: JudgeReward(pick(), "bag-of-words", "it is done"), "generate"),
    ],
)
def test_a_model_without_the_verb_is_refused(wrap, verb):
    with pytest.raises(UsageError, match=verb):
        wrap()
