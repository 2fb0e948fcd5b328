"""The planner role: skills, the probability that they work, and feedback on their outcome.

A planner chooses among skills as a policy chooses among actions, so an action prior fills the role: it sees a
state whose actions are the names of skills and whose history is the transcript. A skill is a player that acts
until it ends. Skills are trained runs of environments with ``subtasks``, rules, or single actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from hunch.core import Agent, EvidenceLevel, FloatArray, HunchError, Player, State, Transition
from hunch.rl.calibration import Calibration
from hunch.rl.rollout import Rollout, TextEnvironment, episode_seed
from hunch.rl.world import advance
from hunch.roles.wrapper import worth

T = TypeVar("T")
Channel = Literal["success", "scene", "question", "person"]
"""Feedback channels: success of the skill, what is visible, a person's answers, and changes of the task."""
WORKED, FAILED = "That worked.", "That failed."
ASKS = "ask "
"""Prefix of an action that asks a person, and whose answer is in ``Transition.event``."""
EPISODES = 400
"""Episodes over which a trained skill's values are calibrated (our choice)."""


@dataclass(frozen=True)
class Skill:
    """A skill that a planner can choose.

    Attributes:
        name: Name for the planner.
        can: Returns the probability that the skill works in each state, shape (states,), from 0 to 1.
        player: Makes the player that executes the skill, from a seed; its memory lasts for one execution.
        over: Returns whether a transition reaches the skill's goal; then the skill ends.
        steps: Maximum number of steps.
        idle: Returns whether nothing is left to do in a state; then the skill ends successfully at once.
        origin: Digest of the run that the skill comes from; empty if none.
        evidence: Evidence level; None if no language model executes it.
    """

    name: str
    can: Callable[[Sequence[State]], FloatArray]
    player: Callable[[int], Player]
    over: Callable[[Transition], bool]
    steps: int = 1
    idle: Callable[[State], bool] = lambda state: False
    origin: str = ""
    evidence: EvidenceLevel | None = None


class Subtask(Protocol):
    """An environment's description of a learnable skill, listed in the environment's ``subtasks``.

    Attributes:
        name: Name for the planner.
        steps: Maximum number of steps.
        words: The planner's action for each action of the skill, where they differ.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def steps(self) -> int: ...  # noqa: D102

    @property
    def words(self) -> Mapping[str, str]: ...  # noqa: D102

    def reached(self, before: Any, after: Any) -> bool:
        """Return whether a step between two ``State.raw`` reaches the skill's goal."""

    def view(self, state: State) -> State:
        """Return what the skill observes in a state of the planner's environment."""


def call_skill(skill: Skill, verb: Callable[..., T], *given: Any) -> T:
    """Call a function of a skill and return its result.

    Raises:
        HunchError: if the function raises an error.
    """
    try:
        return verb(*given)
    except HunchError:
        raise
    except Exception as error:  # a user's skill may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise HunchError(
            f"The skill {skill.name!r} failed with {problem}. Does it belong to this environment?"
        ) from error


# ---- single actions ---------------------------------------------------------------------------------------


class FixedAction(Player):
    """Always takes the same action."""

    def __init__(self, action: str) -> None:
        self.action = action

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the action for each state."""
        return [self.action] * len(states)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: the player has no memory."""


def single(action: str, can: float = 1.0) -> Skill:
    """Return an action, such as a macro-action, as a skill of one step that always succeeds.

    Args:
        action: The action.
        can: Its reported probability of working.
    """
    return Skill(
        action, lambda states: np.full(len(states), can), lambda _: FixedAction(action), lambda _: True
    )


# ---- trained runs -----------------------------------------------------------------------------------------


@dataclass
class Trained:
    """A trained agent for skills: it provides the players, and calibrated probabilities of success.

    Attributes:
        agent: The agent, which is not trained further.
        calibration: Maps the agent's value of a state to a probability of success.
        origin: Digest of the agent's run.
        values: Predicted probability of success at the start of each held-out episode.
        successes: Success of each held-out episode, 0 or 1.
        known: Probabilities computed so far, by the state of the skill.
    """

    agent: Agent
    calibration: Calibration
    origin: str = ""
    values: FloatArray = field(default_factory=lambda: np.zeros(0))
    successes: list[bool] = field(default_factory=list)
    known: dict[State, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        agent: Agent,
        env: TextEnvironment,
        origin: str = "",
        *,
        episodes: int = EPISODES,
        seed: int = 0,
    ) -> Trained:
        """Calibrate an agent on half of some episodes; the other half is held out to test the calibration.

        Args:
            agent: An agent trained in environments like this one.
            env: The environment in which the agent is tested.
            origin: Digest of the agent's run.
            episodes: Number of episodes, both halves together.
            seed: Seed of the episodes and the player.
        """
        predicted, successes = _tried(agent, env, episodes, seed)
        fitted = Calibration.fit(predicted[::2], successes[::2])
        return cls(agent, fitted, origin, fitted(np.array(predicted[1::2])), successes[1::2])

    def skill(self, subtask: Subtask) -> Skill:
        """Return the agent's skill for a subtask."""
        return Skill(
            subtask.name,
            lambda states: self.can(subtask, states),
            lambda seed: Viewing(self.agent.player(seed), subtask),
            lambda t: subtask.reached(t.state.raw, t.next_state.raw),
            subtask.steps,
            lambda state: subtask.reached(state.raw, state.raw),
            self.origin,
            self.agent.evidence,
        )

    def can(self, subtask: Subtask, states: Sequence[State]) -> FloatArray:
        """Return the probability of success in each state; 1 if nothing is left to do."""
        return np.array([self._can(subtask, state) for state in states])

    def _can(self, subtask: Subtask, state: State) -> float:
        if subtask.reached(state.raw, state.raw):
            return 1.0
        view = subtask.view(state)
        if view not in self.known:  # the agent is frozen, so its answer does not change
            self.known[view] = float(self.calibration(worth(self.agent, [view]))[0])
        return self.known[view]


def _tried(agent: Agent, env: TextEnvironment, episodes: int, seed: int) -> tuple[list[float], list[bool]]:
    """Return the value of the first state of each episode, and the success."""
    rollout = Rollout([env], seeds=[episode_seed(seed, 0, n) for n in range(episodes)])
    player, predicted = agent.player(seed), list[float]()
    begun = 0
    while rollout.states:
        if begun == len(rollout.finished):
            predicted += worth(agent, rollout.states).tolist()
            begun += 1
        advance(rollout, player)
    return predicted, [episode.success for episode in rollout.finished]


class Viewing(Player):
    """A player of a skill: shows a trained player the skill's view, and translates its actions."""

    def __init__(self, inner: Player, subtask: Subtask) -> None:
        self.inner, self.subtask = inner, subtask

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose the skill's actions in its view, and translate them."""
        chosen = self.inner.act([self.subtask.view(state) for state in states])
        return [self.subtask.words.get(action, action) for action in chosen]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: the skill is frozen and has no memory."""

    def state_dict(self) -> dict[str, Any]:
        """Return the inner player's state, if it has any."""
        return self.inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        if state:
            self.inner.load_state_dict(state)


# ---- what is told -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Detector:
    """Reports whether a skill worked, with given error rates.

    Attributes:
        false_positives: Share of failures reported as successes.
        false_negatives: Share of successes reported as failures.
    """

    false_positives: float = 0.0
    false_negatives: float = 0.0

    def __call__(self, worked: bool, rng: np.random.Generator) -> bool:
        """Return the report."""
        wrong = self.false_negatives if worked else self.false_positives
        return worked != bool(rng.random() < wrong)


def feedback(channels: Sequence[Channel], said: bool, state: State, skill: str, event: str) -> str:
    """Return the feedback after a skill through the enabled channels, one or more lines each.

    Args:
        channels: The enabled channels.
        said: The detector's report: whether the skill worked.
        state: The state in which the skill ended.
        skill: Name of the skill.
        event: What happened in the skill's last step.
    """
    lines = []
    if "success" in channels:
        lines.append(WORKED if said else FAILED)
    if "question" in channels and skill.startswith(ASKS):
        lines.append(event)
    if "scene" in channels:
        lines.append(state.observation)
    return "\n".join(line for line in lines if line)


def refuse_twins(skills: Sequence[Skill]) -> None:
    """Check that all skills have different names.

    Raises:
        HunchError: if two skills have the same name.
    """
    names = [skill.name for skill in skills]
    twin = next((name for name in names if names.count(name) > 1), None)
    if twin is not None:
        raise HunchError(f"Two skills are called {twin!r}: give each skill its own name.")
