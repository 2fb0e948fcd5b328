"""The words of the whole library, in one file. Read this first.

Hunch puts a language model into any *role* of a reinforcement-learning loop. Everything else in the
loop is ordinary reinforcement learning, and there is one loop for every method::

    agent.begin(world, seed)
    while rollout.steps < steps:
        actions = agent.act(rollout.states)          # one batch: one model call for all streams
        transitions = rollout.step(actions)
        agent.observe(transitions)                   # remember
        metrics = agent.learn()                      # improve; may be empty

Evaluation is the same loop with ``agent.player(seed)`` in the agent's place and without ``learn``.
Value-based, offline, in-context and planning agents differ in what the verbs do, never in the loop.

What flows through the loop is text: a :class:`State` holds the observation, the task and the admissible
actions, each a string. A role is a small protocol, filled by a language model, by a rule, or by nothing at
all; "nothing" is what every baseline here is made of.

This file imports nothing of ours. A room never imports upwards: ``core`` is below ``lm``, ``sandbox`` and
``rl``; these are below ``envs``, then ``roles``, ``methods``, ``runs``, ``report``, ``studies`` and ``cli``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

EvidenceLevel = Literal["L0", "L1", "L2", "L3"]
"""What a result may claim about language models.

``L0`` a scripted or uninformed model; ``L1`` a small model trained by this project; ``L2`` recorded
answers of a real model, replayed; ``L3`` a real pretrained model. Only L2 and L3 say anything about language
models.
"""


def weakest(levels: Iterable[EvidenceLevel | None]) -> EvidenceLevel | None:
    """The lowest of some evidence levels; None, which stands for no model at all, never lowers it."""
    return min((level for level in levels if level is not None), default=None)


class HunchError(Exception):
    """A run that cannot go on, said in one clear sentence. The command exits with 1."""


class UsageError(HunchError, ValueError):
    """A request that cannot be met as asked: a wrong name, option or input. The command exits with 2."""


class InadmissibleActionError(UsageError):
    """The action is not among the admissible ones. The environment is left as it was."""


class BrokenRuleError(UsageError):
    """A rule of a contract is broken.

    Attributes:
        rule: Its name in ``rules``.
        problem: What was found.
    """

    rules: ClassVar[Mapping[str, str]] = {}

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(rule, problem)
        self.rule, self.problem = rule, problem

    def __str__(self) -> str:
        return f"Broken rule {self.rule!r}: {self.problem}. The rule: {self.rules[self.rule]}"


class HunchWarning(UserWarning):
    """Something that a user should know and that does not stop the run."""


def suggest(wrong: str, known: Iterable[str], listed: Iterable[str] | None = None, where: str = "") -> str:
    """Say which of the known names a wrong one may have meant, or else which there are.

    Args:
        wrong: What was asked for.
        known: The names; with a mapping its values are shown.
        listed: The names to list where none is near. Default: all that are known.
        where: The command that lists them, named instead where they are many.
    """
    shown = known if isinstance(known, Mapping) else {name: name for name in known}
    near = get_close_matches(wrong.lower(), shown, n=3, cutoff=0.6) or get_close_matches(wrong, shown, n=3)
    if near:
        return f"did you mean {' or '.join(repr(shown[name]) for name in near)}?"
    names = list(shown.values() if listed is None else listed)
    if where and len(names) > 20:
        return f"there are {len(names)}, such as {', '.join(names[:3])}; {where!r} lists them."
    return f"there are {', '.join(names)}." if names else "there are none."


@dataclass(frozen=True, slots=True)
class State:
    """What the agent may know now.

    Attributes:
        observation: The environment's text.
        task: The task in one sentence; empty where the environment has none.
        actions: The admissible actions, which vary from state to state; None where any text may be one.
        history: Earlier (observation, action) pairs of the episode, oldest first, where they are recorded.
        raw: The environment's own numbers, picture or trial; not compared.
        stream: Which of the streams side by side it belongs to; not compared.
    """

    observation: str
    task: str = ""
    actions: tuple[str, ...] | None = None
    history: tuple[tuple[str, str], ...] = ()
    raw: Any = field(default=None, compare=False, repr=False)
    stream: int = field(default=0, compare=False)

    @classmethod
    def read(cls, observation: str, info: Mapping[str, Any], stream: int = 0) -> State:
        """Read a state from what a Gymnasium text environment returned.

        Raises:
            UsageError: if info names neither the admissible actions nor ``free_text``.
        """
        if "actions" not in info and not info.get("free_text"):
            raise UsageError(
                "This environment does not say which actions are admissible: info['actions'] is missing, and "
                "info['free_text'] is not True."
            )
        actions = tuple(info["actions"]) if "actions" in info else None
        history = tuple(info.get("history", ()))
        return cls(observation, info.get("task", ""), actions, history, info.get("raw"), stream)

    @property
    def options(self) -> tuple[str, ...]:
        """The admissible actions, for a method that chooses from a list.

        Raises:
            UsageError: if the environment takes any text as an action.
        """
        if self.actions is None:
            raise UsageError(
                "This method chooses from a list of admissible actions, and the environment takes any text."
            )
        return self.actions

    def lines(self, mark: str = "> ") -> list[str]:
        """History and observation as lines, oldest first, without blank ones; ``mark`` precedes an action."""
        texts = [text for past, action in self.history for text in (*past.splitlines(), f"{mark}{action}")]
        return [line for line in [*texts, *self.observation.splitlines()] if line.strip()]

    def text(self) -> str:
        """History and observation as one text of :meth:`lines`."""
        return "\n".join(self.lines())


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one stream.

    ``terminated`` ends the return: nothing is to be had after it. ``truncated`` only ends the episode
    (a step limit), and the value of ``next_state`` still counts. ``success`` and ``event`` (what happened, in
    words) are the environment's own, and never a reward source's.
    """

    state: State
    action: str
    reward: float
    next_state: State
    terminated: bool
    truncated: bool
    success: bool = False
    event: str = ""

    @property
    def done(self) -> bool:
        """Whether the episode ends with this step, for either reason."""
        return self.terminated or self.truncated

    @property
    def stream(self) -> int:
        """The stream that it is a step of."""
        return self.state.stream


@dataclass(frozen=True, slots=True)
class World:
    """What an agent may know of where it plays before the first step.

    Attributes:
        env: Name of the environment.
        task: Its task at the beginning.
        streams: How many streams are played side by side; 0 where there are only data to learn from.
        steps: Steps of the whole run: environment steps, or updates where there is no stream.
        source: The environment's code without its reward, where it shows it.
        texts: The words of the environment's domain, for prompts of examples, where it has them.
        manual: What a player may read of the rules, where there is such a text.
        data: Recorded episodes to learn from, each a sequence of transitions.
        copy: Makes an environment to plan or train in, which draws its own chance; None where there is none.
    """

    env: str = ""
    task: str = ""
    streams: int = 1
    steps: int = 0
    source: str = ""
    texts: Any = None
    manual: str = ""
    data: Sequence[Sequence[Transition]] = ()
    copy: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is behind an agent's next choice.

    Attributes:
        columns: Figures of every admissible action by name ("prior", "Q", "say", "visits"), each of shape
            (number of actions,); nan where the agent has no opinion.
        chosen: Probability with which the agent takes each action, same shape; None where it cannot say.
        note: Anything that is no figure.
    """

    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    chosen: FloatArray | None = None
    note: str = ""


@runtime_checkable
class Player(Protocol):
    """Whoever acts in some streams, sees what comes of it, and may remember it."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose an action for each state, admissible where actions are listed."""
        ...

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Take note of what came of it; memory is kept by ``transition.stream``."""
        ...


@runtime_checkable
class Agent(Player, Protocol):
    """A player that learns. What a subclass leaves out is as empty as here.

    Some attributes may be there or not. ``models`` names the language models that a run meters and budgets,
    ``records_file`` the file of the run that keeps the records (default: ``records.jsonl``), and ``files()``
    gives texts to be kept as whole files of the run, by name, such as ``best.py``.
    """

    @property
    def evidence(self) -> EvidenceLevel | None:
        """What a result may claim: the weakest level of the models that fill a role; None without any."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a checkpoint must share with the agent that takes it up; plain values by name.

        Here: a dataclass ``config`` and the names of the ``models``, where the agent has them.
        """
        config = getattr(self, "config", None)
        named = {name: model.name for name, model in getattr(self, "models", {}).items()}
        return {**(asdict(config) if is_dataclass(config) else {}), **named}  # type: ignore[arg-type]

    def begin(self, world: World, seed: int) -> None:
        """Forget everything and start afresh: the same world and seed give the same agent."""
        ...

    def learn(self) -> dict[str, float]:
        """Improve, if it is time to; return what is worth logging."""
        return {}

    def player(self, seed: int) -> Player:
        """A player to evaluate: same weights, chance and memory of its own, so that it leaves no trace."""
        ...

    def explain(self, state: State) -> Explanation:
        """Say what is behind the next choice, without making it."""
        return Explanation()

    def records(self) -> list[dict[str, Any]]:
        """All lines worth keeping so far (programs, goals, transcripts), oldest first."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on as if nothing had happened: tensors, numbers, strings, lists."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave, after :meth:`begin` in the same world."""
        ...
