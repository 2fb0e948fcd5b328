"""What the Gymnasium wrappers of the roles share: states in words, and many environments asked for at once.

The wrappers are for learners of other libraries. They stand beside their roles:

=============================================== ==========================================================
:class:`hunch.roles.prior.gym.Proposals`        the action is the number of one of k proposed actions
:class:`hunch.roles.prior.gym.PriorLogits`      log-probabilities of the prior stand in the observation
:class:`hunch.roles.encoder.gym.Encoded`        texts become embeddings
:class:`hunch.roles.reward.gym.JudgeReward`     a model's verdict is added to the reward
:class:`hunch.roles.reward.gym.ProgramReward`   a program's reward is added
:class:`hunch.roles.goal.gym.Goals`             a source's goals stand in the observation
=============================================== ==========================================================
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from hunch import lm as models
from hunch.core import HunchWarning, Picture, State, Transition, UsageError
from hunch.envs.base import action_name
from hunch.envs.describers import (
    BLACKJACK_ACTIONS,
    CART_POLE_ACTIONS,
    CLIFF_WALKING_ACTIONS,
    TAXI_ACTIONS,
    describe_blackjack,
    describe_cart_pole,
    describe_cliff_walking,
    describe_taxi,
)
from hunch.envs.wrappers import REFUSED, step_limit
from hunch.lm.base import LanguageModel
from hunch.rl.faults import at_the_end
from hunch.roles.encoder.features import TextTable

Describe = Callable[[Any], str]
KNOWN: Final[Mapping[str, tuple[Describe, tuple[str, ...]]]] = {
    "CartPole": (describe_cart_pole, CART_POLE_ACTIONS),
    "Taxi": (describe_taxi, TAXI_ACTIONS),
    "CliffWalking": (describe_cliff_walking, CLIFF_WALKING_ACTIONS),
    "Blackjack": (describe_blackjack, BLACKJACK_ACTIONS),
}
"""How environments of Gymnasium are described, by their names without version."""


def loaded(lm: LanguageModel | str) -> LanguageModel:
    """Return a model, given by its spec or itself.

    Raises:
        UsageError: if it is neither.
    """
    if isinstance(lm, str):
        return models.load(lm)
    if not hasattr(lm, "verbs"):
        raise UsageError(f"A model is a spec such as 'minilm', or what hunch.lm.load returns, not {lm!r}.")
    return lm


def require_env(wrapper: str, env: Any) -> None:
    """Check that the first argument of a wrapper is an environment.

    Raises:
        UsageError: if it is none.
    """
    if not isinstance(env, gymnasium.Env):
        raise UsageError(f"The environment comes first, as in {wrapper}(env, ...), not {env!r}.")


def require_text(wrapper: str, env: gymnasium.Env[Any, Any]) -> None:
    """Check that an environment shows texts.

    Raises:
        UsageError: if it shows something else.
    """
    if not isinstance(env.observation_space, gymnasium.spaces.Text):
        space = " ".join(str(env.observation_space).split())
        raise UsageError(
            f"{wrapper} needs a text environment, and observations are of {space}. Turn yours into one with "
            "hunch.envs.TextWrapper; put this wrapper outside of those for rewards and goals."
        )


def embed_all(table: TextTable, states: Sequence[State], actions: Sequence[Sequence[str]] = ()) -> None:
    """Embed what several states show, and some of their actions, in one request."""
    texts: list[str | Picture] = []
    for state in states:
        texts += [state.aim, *table.shown(state)]
    for listed in actions:
        texts += listed
    table.add(texts)


class InWords:
    """Reads the states and actions of an environment as text, also of an environment of numbers.

    Args:
        env: A text environment, or one whose observations are described.
        describe: Turns an observation into text. Default: that of this library, for CartPole, Taxi,
            CliffWalking and Blackjack.
        actions: Names of the actions in the order of the action space, with ``describe``.
        task: The task in a sentence, with ``describe``.

    Raises:
        UsageError: if observations are no texts and cannot be described.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        describe: Describe | None = None,
        actions: Sequence[str] = (),
        task: str = "",
    ) -> None:
        if isinstance(actions, str) or not all(isinstance(name, str) for name in actions):
            raise UsageError(f"actions are the names of the actions, a tuple of texts, not {actions!r}.")
        if describe is not None and not callable(describe):
            raise UsageError(f"describe is a function from an observation to a text, not {describe!r}.")
        self.names = tuple(actions)
        self.describe = describe
        self.task = task
        if describe is None and not isinstance(env.observation_space, gymnasium.spaces.Text):
            base = env.spec.id.rpartition("-v")[0].rpartition("/")[2] if env.spec else type(env).__name__
            if base not in KNOWN:
                raise UsageError(
                    f"A model reads text, and the observations of {base} are of {env.observation_space}: "
                    "pass describe=, a function from an observation to a text, and actions=, their names."
                )
            if env.observation_space != env.unwrapped.observation_space:
                raise UsageError(
                    f"A wrapper changes the observations of {base}, so they cannot be described: put this "
                    "wrapper inside of that one, or pass describe=."
                )
            self.describe, names = KNOWN[base]
            self.names = self.names or names
        if self.describe is not None and isinstance(env.action_space, gymnasium.spaces.Discrete):
            n = int(env.action_space.n)
            self.names = self.names or tuple(f"action {number}" for number in range(n))
            if len(self.names) != n:
                raise UsageError(f"actions names {len(self.names)} actions, and the environment has {n}.")

    def state(self, observation: Any, info: Mapping[str, Any], stream: int = 0) -> State:
        """Return what was seen as a state in words."""
        if self.describe is None:
            return State.read(observation, info, stream)
        text = self.describe(observation)
        if not isinstance(text, str):
            raise UsageError(f"describe has to return a text, not {text!r}.")
        return State(text, self.task, self.names or None, stream=stream)

    def transition(
        self,
        before: State,
        name: str,
        outcome: tuple[Any, SupportsFloat, bool, bool, Mapping[str, Any]],
    ) -> Transition:
        """Return a step in words.

        Args:
            before: The state before it.
            name: Name of the action.
            outcome: What the environment's ``step`` returned.
        """
        observation, reward, terminated, truncated, info = outcome
        if self.describe is None and (terminated or truncated):
            info = at_the_end(dict(info), before.actions)
        after = self.state(observation, info)
        ended = (bool(terminated), bool(truncated), bool(info.get("success")), info.get("event", ""))
        return Transition(before, name, float(reward), after, *ended)

    def action(self, state: State, action: Any) -> str:
        """Return the name of an action."""
        if self.describe is None:
            return str(action) if state.actions is None else action_name(action, state.actions)
        return self.names[int(action)] if self.names else str(action)


class Shown(ABC):
    """Turns states in words into what a learner of numbers gets, for several environments in one request."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    models: Mapping[str, LanguageModel]
    """The models by role, with their usage."""

    def begin(self, seed: int | None) -> None:
        """Start again. The same seed and states give the same observations."""
        return

    @abstractmethod
    def show(self, states: Sequence[State]) -> list[Seen]:
        """Return what is seen of each state."""


class Seen:
    """What a learner gets to see of one state.

    Attributes:
        observation: The observation, an element of the observation space.
        actions: Name of each number of the action space; None, and a number beyond them, stand for none.
        mask: Which numbers of the action space are distinct admissible actions, shape (n,).
        info: Further entries of ``info``.
    """

    def __init__(
        self,
        observation: Any,
        actions: tuple[str | None, ...],
        mask: NDArray[np.bool_],
        info: dict[str, Any] | None = None,
    ) -> None:
        if not mask.any():
            raise UsageError("No action is admissible in this state, so no learner can choose one.")
        self.observation = observation
        self.actions = actions
        self.mask = mask
        self.info = {**(info or {}), "action_mask": mask}

    def name(self, action: Any) -> str | None:
        """Return the name of the action with this number; None if it stands for none in this state.

        Raises:
            UsageError: if the action space has no such number.
        """
        number = _whole(action)
        if not 0 <= number < len(self.mask):
            raise UsageError(f"There is no action {number}: the numbers go from 0 to {len(self.mask) - 1}.")
        return self.actions[number] if number < len(self.actions) else None


def _whole(action: Any) -> int:
    """Return the number that a learner gives, also as an array with one entry."""
    try:
        given = np.asarray(action).item()
        number = int(given)
        if number == float(given):
            return number
    except (TypeError, ValueError, OverflowError):
        pass  # not a number, which the message says
    raise UsageError(f"An action is a whole number here, not {action!r}.")


class Steps:
    """A text environment in which a number that stands for no action changes nothing and costs a step.

    Learners without masks, and the checkers of their libraries, choose such numbers, too. They count for the
    step limit, so that the episode of a learner that chooses nothing else ends.

    Args:
        env: A text environment.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env = env
        self.limit = step_limit(env)
        self.taken = 0
        self.running = False
        self.last: tuple[str, dict[str, Any]] = ("", {})
        self.warned = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        self.last = self.env.reset(seed=seed, options=options)
        self.taken = 0
        self.running = True
        return self.last

    def step(self, seen: Seen, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the action with this number, as far as it stands for one.

        Raises:
            UsageError: if no episode is running, the action space has no such number, or it stands for no
                action and nothing limits the steps.
        """
        if not self.running:
            raise UsageError("No episode is running: call reset before step.")
        name = seen.name(action)
        reward: SupportsFloat = 0.0
        terminated = truncated = False
        if name is not None:
            text, reward, terminated, truncated, info = self.env.step(name)
        else:
            self._refuse(seen, action)
            text, info = self.last
            info = {**info, "success": False, "event": REFUSED, "invalid_action": True}
        self.taken += 1
        self.last = text, info
        truncated = bool(truncated) or (not terminated and self.taken >= self.limit)
        self.running = not (terminated or truncated)
        return text, float(reward), bool(terminated), truncated, info

    def _refuse(self, seen: Seen, action: Any) -> None:
        said = (
            f"Action {_whole(action)} is not offered here, only {int(seen.mask.sum())} are; pass the mask of "
            "action_masks() to the learner, or wrap with Proposals, where every number is an action."
        )
        if self.limit == sys.maxsize:
            raise UsageError(f"{said} Or set max_steps: with a step limit it costs a step.")
        if not self.warned:
            self.warned = True
            warnings.warn(f"{said} It costs a step.", HunchWarning, stacklevel=2)


class ShownEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One text environment, shown to a learner of numbers; the base class of the wrappers."""

    def __init__(self, env: gymnasium.Env[Any, Any], shown: Shown) -> None:
        gymnasium.Wrapper.__init__(self, env)
        require_text(type(self).__name__, env)
        self.shown = shown
        self.observation_space = shown.observation_space
        self.action_space = shown.action_space
        self.steps = Steps(env)
        self.seen: Seen | None = None

    @property
    def models(self) -> Mapping[str, LanguageModel]:
        """The models by role, with their usage."""
        return self.shown.models

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        text, info = self.steps.reset(seed=seed, options=options)
        if seed is not None:
            self.shown.begin(seed)
        return self._see(text, info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take the action with this number; one that stands for none in this state costs a step.

        Raises:
            UsageError: if no episode is running, or as for :class:`Steps`.
        """
        if self.seen is None:
            raise UsageError("No episode is running: call reset before step.")
        text, reward, terminated, truncated, info = self.steps.step(self.seen, action)
        observation: Any = deepcopy(self.seen.observation)  # learners keep what they were given
        if _goes_on(terminated, info):
            observation, info = self._see(text, info)
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which numbers are distinct admissible actions now, shape (n,), as sb3-contrib reads it."""
        if self.seen is None:
            raise UsageError("No episode is running: call reset before action_masks.")
        return self.seen.mask

    def _see(self, text: str, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self.seen = None  # stays so if the model fails: what was offered before is no longer true
        (self.seen,) = self.shown.show([State.read(text, info)])
        return self.seen.observation, {**info, **self.seen.info}


def _goes_on(terminated: bool, info: Mapping[str, Any]) -> bool:
    """Return whether a state is shown: learners ask for the value of a state at a limit of steps, too.

    In a terminal state there is nothing to choose, so no model is asked: what was seen last is repeated.
    """
    return not terminated and bool(info.get("actions"))


class ShownVector(VectorEnv[Any, Any, Any]):
    """Several text environments, shown to a learner of numbers: the model gets one request for all of them.

    An environment whose episode ended is reset by the next step, as in Gymnasium's default.

    Args:
        envs: Text environments, or functions that make them.
        shown: Makes what the learner sees.
    """

    def __init__(
        self, envs: Sequence[gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]], shown: Shown
    ) -> None:
        if not isinstance(envs, Sequence) or not envs:
            raise UsageError("Pass a list of at least one environment, or of functions that make them.")
        self.envs = [env() if callable(env) else env for env in envs]
        for env in self.envs:
            if not isinstance(env, gymnasium.Env):
                raise UsageError(f"The list holds environments, or functions that make them, not {env!r}.")
            require_text("This wrapper", env)
        self.steps = [Steps(env) for env in self.envs]
        self.shown = shown
        self.num_envs = len(self.envs)
        self.single_observation_space = shown.observation_space
        self.single_action_space = shown.action_space
        self.observation_space = batch_space(shown.observation_space, self.num_envs)
        self.action_space = batch_space(shown.action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.seen: list[Seen] = []
        self.over = np.zeros(self.num_envs, dtype=bool)

    @property
    def models(self) -> Mapping[str, LanguageModel]:
        """The models by role, with their usage."""
        return self.shown.models

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each environment; a single seed gives the environments successive ones."""
        seeds: list[int | None]
        if isinstance(seed, int):
            seeds = [seed + number for number in range(self.num_envs)]
        else:
            seeds = list(seed) if seed is not None else [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise UsageError(f"There are {len(seeds)} seeds for {self.num_envs} environments.")
        if seeds[0] is not None:
            self.shown.begin(seeds[0])
        begun = [steps.reset(seed=one, options=options) for steps, one in zip(self.steps, seeds, strict=True)]
        self.over[:] = False
        return self._see([text for text, _ in begun], [info for _, info in begun], [])

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take an action in each environment; those whose episode ended begin another instead."""
        if not self.seen:
            raise UsageError("No episode is running: call reset before step.")
        if np.shape(actions)[:1] != (self.num_envs,):
            raise UsageError(f"A step takes {self.num_envs} actions, one per environment, not {actions!r}.")
        rewards = np.zeros(self.num_envs)
        terminations = np.zeros(self.num_envs, dtype=bool)
        truncations = np.zeros(self.num_envs, dtype=bool)
        texts: list[str] = []
        infos: list[dict[str, Any]] = []
        for number, (steps, action) in enumerate(zip(self.steps, actions, strict=True)):
            if self.over[number]:
                text, info = steps.reset()
            else:
                text, reward, terminated, truncated, info = steps.step(self.seen[number], action)
                rewards[number] = reward
                terminations[number], truncations[number] = terminated, truncated
            texts.append(text)
            infos.append(info)
        self.over = terminations | truncations
        ended = [
            number
            for number, info in enumerate(infos)
            if self.over[number] and not _goes_on(bool(terminations[number]), info)
        ]
        observations, joined_infos = self._see(texts, infos, ended)
        return observations, rewards, terminations, truncations, joined_infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which numbers are distinct admissible actions now, shape (environments, n)."""
        if not self.seen:
            raise UsageError("No episode is running: call reset before action_masks.")
        return np.stack([seen.mask for seen in self.seen])

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()

    def _see(
        self, texts: Sequence[str], infos: Sequence[dict[str, Any]], ended: Sequence[int]
    ) -> tuple[Any, dict[str, Any]]:
        """Ask for all states in one request, but for terminal ones."""
        asked = [number for number in range(self.num_envs) if number not in ended]
        states = [State.read(texts[number], infos[number], number) for number in asked]
        before = self.seen
        self.seen = []  # stays so if the model fails
        after = dict(zip(asked, self.shown.show(states), strict=True)) if states else {}
        self.seen = [after[number] if number in after else before[number] for number in range(self.num_envs)]
        joined_infos: dict[str, Any] = {}
        for number, info in enumerate(infos):
            joined_infos = self._add_info(joined_infos, {**info, **self.seen[number].info}, number)
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, [seen.observation for seen in self.seen], empty), joined_infos
