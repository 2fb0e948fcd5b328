"""The words of the whole library, in one file. Read this first.

Hunch puts a language model into any *role* of a reinforcement-learning loop. Everything else in the
loop is ordinary reinforcement learning, and there is one loop for every method::

    rollout = Rollout(envs, seed)
    agent.reset(seed)
    while rollout.steps < steps:
        actions = agent.act(rollout.states)          # one batch: one model call for all environments
        transitions = rollout.step(actions)
        agent.observe(transitions)                   # remember
        metrics = agent.learn()                      # improve; may be empty

An agent is four verbs (:class:`Agent`). Value-based, offline, in-context and planning agents differ in
what the verbs do, never in the loop, which lives in ``hunch.runs.loop`` and also keeps the run on disk.

What flows through the loop is text: a :class:`State` holds the observation, the task and the tuple of
admissible actions, each a string. A role is a small protocol, filled by a language model, by a rule, or by
nothing at all; "nothing" is what every baseline here is made of. The first role is the
:class:`ActionPrior`, which proposes a few admissible actions for a state.

This file imports nothing of ours. A room never imports upwards: ``core`` is below ``lm``, ``envs`` and
``rl``, those are below ``roles``, then ``methods``, ``runs``, ``report``, ``studies`` and ``cli``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

EvidenceLevel = Literal["L0", "L1", "L2", "L3"]
"""What a result may claim about language models.

``L0`` a scripted or uninformed model; ``L1`` a small model trained by this project; ``L2`` recorded
answers of a real model, replayed; ``L3`` a real pretrained model. Only L3 supports a claim about what
language models know.
"""


ACTION_MARK = "> "
"""What a line of an observation begins with if it is an action taken earlier, not a text that was seen."""


class HunchError(Exception):
    """A run that cannot go on, said in one clear sentence. The command exits with 1."""


class UsageError(HunchError, ValueError):
    """A request that cannot be met as asked: a wrong name, option or input. The command exits with 2."""


class InadmissibleActionError(UsageError):
    """The action is not among the admissible ones. The environment is left as it was."""


def suggest(wrong: str, known: Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Say which of the known names a wrong one may have meant, or else which there are.

    Args:
        wrong: What was asked for.
        known: The names; with a mapping its values are shown.
        listed: The names to list where none is near. Default: all that are known.
    """
    shown = known if isinstance(known, Mapping) else {name: name for name in known}
    near = get_close_matches(wrong.lower(), shown, n=3, cutoff=0.6) or get_close_matches(wrong, shown, n=3)
    if near:
        return f"did you mean {' or '.join(repr(shown[name]) for name in near)}?"
    names = ", ".join(shown.values() if listed is None else listed)
    return f"there are {names}." if names else "there are none."


class HunchWarning(UserWarning):
    """Something that a user should know and that does not stop the run."""


@dataclass(frozen=True, slots=True)
class State:
    """What the agent may know now, as text.

    Attributes:
        observation: The environment's text, with history where a wrapper adds it.
        task: The task in one sentence; empty where the environment has none.
        actions: The admissible actions. The set varies from state to state.
    """

    observation: str
    task: str
    actions: tuple[str, ...]

    @classmethod
    def read(cls, observation: str, info: Mapping[str, Any]) -> State:
        """Read a state from what a Gymnasium text environment returned.

        Raises:
            UsageError: if ``info["actions"]`` is missing.
        """
        if "actions" not in info:
            raise UsageError(
                "This environment does not say which actions are admissible: info['actions'] is missing."
            )
        return cls(observation, info.get("task", ""), tuple(info["actions"]))


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one environment.

    ``terminated`` ends the return: nothing is to be had after it. ``truncated`` only ends the episode
    (a step limit), and the value of ``next_state`` still counts.
    """

    state: State
    action: str
    reward: float
    next_state: State
    terminated: bool
    truncated: bool

    @property
    def done(self) -> bool:
        """Whether the episode ends with this step, for either reason."""
        return self.terminated or self.truncated


@dataclass(frozen=True, slots=True)
class Episode:
    """What is kept of a finished episode.

    Attributes:
        seed: The seed of the environment's ``reset``; with ``actions`` it replays the episode exactly.
        step: Environment steps of the whole run at the episode's end.
        success: Whether the task was solved, by the environment's own word.
    """

    seed: int
    step: int
    episode_return: float
    length: int
    success: bool
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """C^k(s): the candidates that a prior proposes for a state.

    k draws from p(a|s) may repeat an action, so the candidates are a multiset: ``indices`` are the distinct
    members, ascending, as positions in ``state.actions``, and ``weights`` their shares of the k draws.

    Attributes:
        indices: Shape (m,) with 1 <= m <= k.
        weights: Shape (m,), positive, summing to one.
    """

    indices: IntArray
    weights: FloatArray


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an agent thinks of every admissible action of a state; nan where it has no opinion.

    Attributes:
        prior: Share of each action among the prior's proposals, shape (number of actions,).
        q: Estimated return of each action, same shape.
        posterior: Probability with which the agent would take each action, same shape.
    """

    prior: FloatArray
    q: FloatArray
    posterior: FloatArray


class ActionPrior(Protocol):
    """A frozen view of which admissible action comes next, p(a|s): the *action prior* role.

    ``evidence`` is the level of the model behind it; L0 where there is none.
    """

    @property
    def evidence(self) -> EvidenceLevel:
        """What a result with it may claim."""
        ...

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; ``None`` offers every action that the prior gives weight to.

        All randomness comes from ``rng``: the same generator state gives the same proposals.
        """
        ...

    def metrics(self) -> dict[str, float]:
        """What is worth logging of the proposals since the last call (possibly nothing)."""
        ...


@runtime_checkable
class Agent(Protocol):
    """Whatever chooses actions: four verbs, a word on the choice, and its state to save and load.

    ``evidence`` is the level of the model that fills its role; L0 where nothing fills it.
    """

    @property
    def evidence(self) -> EvidenceLevel:
        """What a result with it may claim."""
        ...

    def reset(self, seed: int) -> None:
        """Forget everything and start afresh: the same seed gives the same agent."""
        ...

    def act(self, states: Sequence[State], *, explore: bool = True) -> list[str]:
        """Choose an admissible action for each state; ``explore=False`` when evaluating."""
        ...

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember one step of each environment."""
        ...

    def learn(self) -> dict[str, float]:
        """Improve, if it is time to; return what is worth logging (possibly nothing)."""
        ...

    def explain(self, state: State) -> Explanation:
        """Say what is behind the next choice, without making it."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on as if nothing had happened: tensors, numbers, strings, lists."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
        ...
