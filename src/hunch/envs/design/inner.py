"""Inner learners of reward design: each learns a policy for a Gymnasium environment from a reward program.

A learner yields its policy ten times during a training, so that the caller can evaluate it on the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.envs.design.problem import OutsideError
from hunch.extras import install
from hunch.numbers import number
from hunch.rl import cem
from hunch.rl.tabular import QTable

POINTS = 10
"""Number of policies that a learner yields during a training."""
BATCHES = 50
"""Number of batches of episodes in Q-learning."""
STEP = ("observation", "action", "next_observation")
"""The names of the variables of a step that a reward may use."""
Policy: TypeAlias = Callable[[Any], Any]
"""Function that returns the action for an observation."""
Steps: TypeAlias = dict[str, FloatArray]
"""The observations, actions and next observations of n steps, each of shape (n,) or (n, ...)."""
Price: TypeAlias = Callable[[Steps], FloatArray]
"""Function that returns the rewards of n steps, shape (n,)."""


class Learner(Protocol):
    """A training algorithm: yields policies for an environment and a reward."""

    def __call__(
        self, make: Callable[[], gym.Env[Any, Any]], price: Price, steps: int, seed: int
    ) -> Iterator[Policy]:
        """Yield the policy after each tenth of the training.

        Args:
            make: Makes the environment; its own reward is not used.
            price: The reward, for many steps at once.
            steps: Approximate number of environment steps; at least one episode per policy that is tried.
            seed: Seed of all randomness.
        """


def play(env: gym.Env[Any, Any], policy: Policy, seed: int) -> tuple[Steps, float, dict[str, Any]]:
    """Play an episode; return its steps, the environment's return and the last info.

    Raises:
        OutsideError: if the environment fails, which no reward can mend.
    """
    try:
        observation, info = env.reset(seed=seed)
    except (Exception, SystemExit) as error:
        raise OutsideError(f"the environment raised {type(error).__name__} in reset(): {error}") from error
    rows: list[tuple[Any, Any, Any]] = []
    total, over = 0.0, False
    here = np.array(observation)  # a copy: an environment may return the same array at every step
    while not over:
        action = policy(observation)
        before = here
        try:
            observation, reward, terminated, truncated, info = env.step(action)
        except (Exception, SystemExit) as error:
            raise OutsideError(f"the environment raised {type(error).__name__}: {error}") from error
        rewarded = number(reward, finite=False)
        if rewarded is None:
            raise OutsideError(f"the environment gave {str(reward)[:60]} as a reward, which is no number")
        here = np.array(observation)
        rows.append((before, action, here))
        total += rewarded
        over = terminated or truncated
    columns = zip(*rows, strict=True)
    return {name: np.array(column) for name, column in zip(STEP, columns, strict=True)}, total, info


# ---- the cross-entropy method -----------------------------------------------------------------------------


def cross_entropy(
    make: Callable[[], gym.Env[Any, Any]], price: Price, steps: int, seed: int
) -> Iterator[Policy]:
    """Yield linear policies from the cross-entropy method, for vectors as observations."""
    env, rng = make(), np.random.default_rng([seed, 0])
    space = env.action_space
    outputs = int(space.n) if isinstance(space, gym.spaces.Discrete) else int(np.prod(space.shape or ()))
    size = cem.policy_size(int(np.prod(env.observation_space.shape or ())), outputs)
    population = int(np.clip(steps // POINTS // _horizon(env), 8, 64))
    learner = cem.CEM(population=population, elites=max(2, population // 4), generations=POINTS, spread=0.5)

    def scores(candidates: FloatArray) -> FloatArray:
        begin = int(rng.integers(2**31))  # all candidates of a generation have the same first states
        played = [play(env, linear(env, one), begin)[0] for one in candidates]
        return np.array([rewards.sum() for rewards in _split(price, played)])

    with closing(env):
        for mean in learner.search(scores, size, rng):
            yield linear(env, mean)


def _split(price: Price, episodes: list[Steps]) -> list[FloatArray]:
    """Return the rewards of each episode, all computed in one call."""
    together = {name: np.concatenate([steps[name] for steps in episodes]) for name in STEP}
    return np.split(price(together), np.cumsum([len(steps["action"]) for steps in episodes])[:-1])


def linear(env: gym.Env[Any, Any], parameters: FloatArray) -> Policy:
    """Return a linear policy: its action is the index of the largest output, or all outputs within bounds."""
    space = env.action_space

    def act(observation: Any) -> Any:
        outputs = cem.act(parameters[None], np.ravel(observation).astype(float)[None])[0]
        if isinstance(space, gym.spaces.Discrete):
            return int(space.start + np.argmax(outputs))
        assert isinstance(space, gym.spaces.Box)
        low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
        action = low + (outputs.reshape(space.shape) + 1) / 2 * (high - low)
        return action.astype(space.dtype)

    return act


def _horizon(env: gym.Env[Any, Any]) -> int:
    return (env.spec.max_episode_steps if env.spec else None) or 200


# ---- Q-learning -------------------------------------------------------------------------------------------


def q_learning(
    make: Callable[[], gym.Env[Any, Any]], price: Price, steps: int, seed: int
) -> Iterator[Policy]:
    """Yield policies from Q-learning in a table, for observations and actions that are numbers.

    Rewards are computed in fifty batches of episodes, and each episode is learnt backwards. A tenth of the
    actions are random.
    """
    env, rng = make(), np.random.default_rng([seed, 0])
    space = env.action_space
    assert isinstance(space, gym.spaces.Discrete)
    table, actions = QTable(0.98, 0.2, 0.0), list(range(int(space.start), int(space.start + space.n)))

    def greedy(observation: Any) -> int:
        values = table.values(int(observation), actions)
        return actions[int(rng.choice(np.flatnonzero(values == values.max())))]

    def exploring(observation: Any) -> int:
        return actions[int(rng.integers(len(actions)))] if rng.random() < 0.1 else greedy(observation)

    steps_of_batch = max(1, steps // BATCHES)
    with closing(env):
        for batch in range(1, BATCHES + 1):
            episodes: list[Steps] = []
            while sum(len(episode["action"]) for episode in episodes) < steps_of_batch:
                episodes.append(play(env, exploring, int(rng.integers(2**31)))[0])
            for episode, rewards in zip(episodes, _split(price, episodes), strict=True):
                _learn(table, episode, rewards, actions)
            if batch % (BATCHES // POINTS) == 0:
                yield greedy


def _learn(table: QTable, episode: Steps, rewards: FloatArray, actions: list[int]) -> None:
    """Update along an episode, from its end to its beginning."""
    columns = [episode[name].tolist() for name in STEP]
    for t in reversed(range(len(rewards))):
        here, action, there = (column[t] for column in columns)
        table.update(here, action, float(rewards[t]), there, actions if t < len(rewards) - 1 else [])


# ---- stable-baselines3 ------------------------------------------------------------------------------------


def baselines(name: str) -> Learner:
    """Return PPO or SAC of stable-baselines3; a rollout of PPO is at most a tenth of the training.

    The reward is computed step by step, so a program is called as often as the environment.

    Raises:
        UsageError: if stable-baselines3 is not installed.
    """
    if find_spec("stable_baselines3") is None:
        raise UsageError(f"{name.upper()} needs stable-baselines3: {install('baselines')}.")
    return partial(_baseline, name)


def _baseline(
    name: str, make: Callable[[], gym.Env[Any, Any]], price: Price, steps: int, seed: int
) -> Iterator[Policy]:
    from stable_baselines3 import PPO, SAC

    env, portion = _Priced(make(), price), steps // POINTS
    if name == "ppo":
        model = PPO("MlpPolicy", env, n_steps=max(2, min(2_048, portion)), seed=seed, device="cpu")
    else:
        model = SAC("MlpPolicy", env, seed=seed, device="cpu")
    with closing(env):
        for _ in range(POINTS):
            model.learn(portion, reset_num_timesteps=False)
            yield lambda observation: _unwrapped(model.predict(observation, deterministic=True)[0])


def _unwrapped(action: Any) -> Any:
    return action.item() if np.ndim(action) == 0 else action


class _Priced(gym.Wrapper[Any, Any, Any, Any]):
    """An environment whose reward is a program's."""

    def __init__(self, env: gym.Env[Any, Any], price: Price) -> None:
        super().__init__(env)
        self.price = price
        self.here: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.here = np.array(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; the reward is the program's."""
        observation, _, terminated, truncated, info = self.env.step(action)
        row = zip(STEP, (self.here, action, observation), strict=True)
        reward = float(self.price({name: np.array(value)[None] for name, value in row})[0])
        self.here = np.array(observation)
        return observation, reward, terminated, truncated, info


LEARNERS: dict[str, Callable[[], Learner]] = {
    "cem": lambda: cross_entropy,
    "q": lambda: q_learning,
    "ppo": lambda: baselines("ppo"),
    "sac": lambda: baselines("sac"),
}
"""The inner learners by name."""
_SPACES: dict[str, tuple[str, str]] = {
    "cem": ("vs", "nvs"),
    "q": ("n", "n"),
    "ppo": ("nv", "nv"),
    "sac": ("nv", "v"),
}
"""The observations and actions that each takes: whole numbers, vectors, single numbers in a box."""


def learner(name: str, env: gym.Env[Any, Any]) -> tuple[str, Learner]:
    """Return a learner that fits an environment, and its name; without a name the first that fits.

    Raises:
        UsageError: if the learner takes other observations or actions, or is not installed.
    """
    kinds = [_kind(env.observation_space), _kind(env.action_space)]
    fitting = [
        one for one, spaces in _SPACES.items() if all(map(str.__contains__, spaces, kinds)) and all(kinds)
    ]
    if not fitting or (name and name not in fitting):
        nested = isinstance(env.observation_space, gym.spaces.Dict | gym.spaces.Tuple)
        flat = (
            " Flatten the observations, such as with gymnasium.wrappers.FlattenObservation." if nested else ""
        )
        raise UsageError(
            f"The learner {name or '(any)'} does not take observations {env.observation_space} with actions "
            f"{env.action_space}; these do: {', '.join(fitting) or 'none'}.{flat}"
        )
    chosen = name or fitting[0]
    return chosen, LEARNERS[chosen]()


def _kind(space: gym.Space[Any]) -> str:
    """Return the letter of a space in :data:`_SPACES`; empty for one that no learner takes."""
    if isinstance(space, gym.spaces.Discrete):
        return "n"
    if isinstance(space, gym.spaces.Box):
        return "v" if space.shape else "s"
    return ""
