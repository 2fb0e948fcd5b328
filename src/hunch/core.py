"""The core types and protocols of the library. Read this file first.

Hunch puts a language model into any *role* of a reinforcement-learning loop. Everything else in the
loop is ordinary reinforcement learning, and there is one loop for every method::

    agent.begin(world, seed)
    while rollout.steps < steps:
        actions = agent.act(rollout.states)          # one batch: one model call for all streams
        transitions = rollout.step(actions)
        agent.observe(transitions)                   # remember
        metrics = agent.learn()                      # improve; may be empty

Evaluation is the same loop with ``agent.player(seed)`` in the agent's place and without ``learn``.
Value-based, offline, in-context and planning agents differ in what these methods do, never in the loop.

The loop passes text: a :class:`State` holds the observation, the task and the admissible actions as
strings. A role is a small protocol that a language model, a rule or an uninformed stand-in fills. Every
baseline is the same code with the uninformed stand-in.

This file imports nothing else from Hunch. A package never imports from a layer above it: ``core`` is below
``lm``, ``sandbox`` and ``rl``; then follow ``envs``, ``roles``, ``methods``, ``runs``, ``report``,
``studies`` and ``cli``.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

EvidenceLevel = Literal["L0", "L1", "L2", "L3"]
"""What a result may claim about language models.

``L0``: a scripted or uninformed model. ``L1``: a small model trained by this project. ``L2``: recorded
answers of a real model, replayed. ``L3``: a real pretrained model. Only L2 and L3 say anything about
language models.
"""


def weakest(levels: Iterable[EvidenceLevel | None]) -> EvidenceLevel | None:
    """Return the lowest evidence level. None stands for "no model" and is ignored."""
    return min((level for level in levels if level is not None), default=None)


class HunchError(Exception):
    """The run cannot continue; the message says why in one sentence. The command exits with code 1."""


class UsageError(HunchError, ValueError):
    """The request is wrong: an unknown name, a bad option or bad input. The command exits with code 2."""


class InadmissibleActionError(UsageError):
    """The action is not admissible. The environment is left unchanged."""


class BrokenRuleError(UsageError):
    """An object breaks a rule of its contract.

    Attributes:
        rule: Name of the rule, a key of ``rules``.
        problem: What is wrong.
    """

    rules: ClassVar[Mapping[str, str]] = {}

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(rule, problem)
        self.rule, self.problem = rule, problem

    def __str__(self) -> str:
        return f"Broken rule {self.rule!r}: {self.problem}. The rule: {self.rules[self.rule]}"


class HunchWarning(UserWarning):
    """Something that the user should know but that does not stop the run."""


def suggest(wrong: str, known: Iterable[str], listed: Iterable[str] | None = None, where: str = "") -> str:
    """Suggest known names like a wrong one, or list them: the end of an error message.

    Args:
        wrong: The name that was given.
        known: The known names. Of a mapping, the keys are compared and the values shown.
        listed: The names to list if none is similar. Default: all known names.
        where: The command that lists them, which is named instead if they are many.
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
class Picture:
    """A picture as PNG bytes, compared and hashed by its digest.

    Attributes:
        digest: SHA-256 of the bytes, in hex.
        data: The bytes of a PNG file.
    """

    digest: str
    data: bytes = field(compare=False, repr=False)

    @classmethod
    def read(cls, data: bytes) -> Picture:
        """Make a picture from the bytes of a PNG file."""
        return cls(sha256(data).hexdigest(), data)


@dataclass(frozen=True, slots=True)
class State:
    """What the agent knows at one step.

    Attributes:
        observation: The observation as text.
        task: The task in one sentence; empty if the environment states none.
        actions: The admissible actions, which vary from state to state; None if any text is allowed.
        history: Earlier (observation, action) pairs of the episode, oldest first, if they are recorded.
        goals: The goals that a goal source added.
        pictures: What a model with eyes sees.
        raw: Numbers or finished trial of the environment, for methods that declare that they read it; ignored
            in comparisons.
        stream: Index of the stream, one per environment and player; ignored in comparisons.
        seat: The player to whom the state belongs, in environments of several players; ignored likewise.
    """

    observation: str
    task: str = ""
    actions: tuple[str, ...] | None = None
    history: tuple[tuple[str, str], ...] = ()
    goals: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    raw: Any = field(default=None, compare=False, repr=False)
    stream: int = field(default=0, compare=False)
    seat: int = field(default=0, compare=False)

    @classmethod
    def read(cls, observation: str, info: Mapping[str, Any], stream: int = 0, seat: int = 0) -> State:
        """Make a state from what ``reset`` or ``step`` of a text environment returned.

        Raises:
            UsageError: if ``info`` has neither ``actions`` nor a true ``free_text``.
        """
        if "actions" not in info and not info.get("free_text"):
            raise UsageError(
                "The environment does not say which actions are admissible: info['actions'] is missing, and "
                "info['free_text'] is not True."
            )
        return cls(
            observation,
            info.get("task", ""),
            tuple(info["actions"]) if "actions" in info else None,
            tuple(info.get("history", ())),
            pictures=tuple(map(Picture.read, info.get("pictures", ()))),
            raw=info.get("raw"),
            stream=stream,
            seat=seat,
        )

    def plain(self, *, compared: bool = False) -> dict[str, Any]:
        """Return the state as JSON values, without defaults, and without ``raw`` where it is not plain.

        Args:
            compared: Return only what comparisons consider.
        """
        wanted = [f for f in fields(self) if f.name != "raw" and (f.compare or not compared)]
        kept = {f.name: value for f in wanted if (value := getattr(self, f.name)) != f.default}
        if self.pictures:
            kept["pictures"] = [b64encode(picture.data).decode() for picture in self.pictures]
        return kept if compared or self.raw is None or not is_plain(self.raw) else {**kept, "raw": self.raw}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> State:
        """Make a state from the result of :meth:`plain`, also after JSON turned its tuples into lists."""
        kept = dict(plain)
        for name in kept.keys() & {"actions", "goals"}:
            kept[name] = None if kept[name] is None else tuple(kept[name])
        kept["history"] = tuple(map(tuple, kept.get("history", ())))
        kept["pictures"] = tuple(Picture.read(b64decode(data)) for data in kept.get("pictures", ()))
        return cls(**kept)

    @property
    def options(self) -> tuple[str, ...]:
        """The admissible actions, for methods that choose from a list.

        Raises:
            UsageError: if the environment accepts any text as an action.
        """
        if self.actions is None:
            raise UsageError(
                "The method chooses from a list of admissible actions, but the environment accepts any text."
            )
        return self.actions

    @property
    def aim(self) -> str:
        """What to pursue, as one text: the goals, one per line, or without any the task."""
        return "\n".join(self.goals) or self.task

    def lines(self, mark: str = "> ") -> list[str]:
        """History and observation as non-empty lines, oldest first; ``mark`` is the prefix of an action."""
        texts = [text for past, action in self.history for text in (*past.splitlines(), f"{mark}{action}")]
        return [line for line in [*texts, *self.observation.splitlines()] if line.strip()]

    def text(self) -> str:
        """History and observation as one text: the joined :meth:`lines`."""
        return "\n".join(self.lines())


def is_plain(value: Any) -> bool:
    """Return whether JSON can hold a value: numbers, texts, None, and lists and dictionaries of such."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one stream.

    After ``terminated`` no more reward can follow. ``truncated`` only cuts the episode off (a step limit), so
    the value of ``next_state`` still counts. ``success`` and ``event`` (what happened, in words) always come
    from the environment, never from a reward source.
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
        """True if the episode ends with this step, terminated or truncated."""
        return self.terminated or self.truncated

    @property
    def stream(self) -> int:
        """Index of the stream that made this step."""
        return self.state.stream

    def plain(self) -> dict[str, Any]:
        """Return the transition as JSON values."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return {**own, "state": self.state.plain(), "next_state": self.next_state.plain()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Transition:
        """Make a transition from the result of :meth:`plain`."""
        states = {name: State.of(plain[name]) for name in ("state", "next_state")}
        return cls(**{**plain, **states})


@dataclass(frozen=True, slots=True)
class Episode(Sequence[Transition]):
    """A recorded episode: a sequence of transitions, and which others it belongs to.

    Attributes:
        transitions: The steps, in order.
        lifetime: Number of its lifetime, whose episodes share one task.
        number: Number of the episode in its environment.
        group: Number of the prompt that it answers; answers to one prompt are compared with each other.
    """

    transitions: tuple[Transition, ...]
    lifetime: int = 0
    number: int = 0
    group: int | None = None

    def __len__(self) -> int:
        return len(self.transitions)

    @overload
    def __getitem__(self, index: int) -> Transition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Transition, ...]: ...
    def __getitem__(self, index: int | slice) -> Transition | tuple[Transition, ...]:
        return self.transitions[index]

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.transitions)

    def with_steps(self, steps: Iterable[Transition]) -> Episode:
        """Return the same episode with other transitions, such as relabelled ones."""
        return replace(self, transitions=tuple(steps))


@dataclass(frozen=True, slots=True)
class World:
    """What an agent may know about its environment before the first step.

    Attributes:
        env: Id of the environment.
        task: The task at the beginning.
        streams: Number of streams: environments times players; 0 if the agent learns from data only.
        steps: Length of the whole run: environment steps, or updates if there are no streams.
        code: Source code of the environment without its reward, if the environment shows it.
        data: Recorded episodes to learn from.
        copy: Makes an environment to plan or train in, with its own randomness; None if there is none.
        lifetime: Episodes per lifetime; they share one task, and a player's memory lasts as long.
        problem: The design problem, if actions are programs (:class:`hunch.envs.design.problem.Problem`).
        wording: How states and actions are written in prompts (:class:`hunch.envs.icpi.texts.Texts`).
        examples: Examples for planners, pairs of an instruction and its plan, the names of skills in order.
        things: Names of the things in the environment.
        manual: The rules that a player may read, if the environment has such a text.
        models: The language models that the environment itself asks, by name.
    """

    env: str = ""
    task: str = ""
    streams: int = 1
    steps: int = 0
    code: str = ""
    data: Sequence[Episode] = ()
    copy: Callable[[], Any] | None = None
    lifetime: int = 1
    problem: object | None = None
    wording: object | None = None
    examples: tuple[tuple[str, tuple[str, ...]], ...] = ()
    things: tuple[str, ...] = ()
    manual: str = ""
    models: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an agent makes its next choice.

    Attributes:
        columns: Numbers for each admissible action by name ("prior", "Q", "say", "visits"), each of shape
            (number of actions,); nan if the agent has none for an action.
        chosen: Probability of each action, same shape; None if unknown.
        note: Anything else worth showing, as text.
    """

    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    chosen: FloatArray | None = None
    note: str = ""


@runtime_checkable
class Player(Protocol):
    """Acts in one or more streams, observes the results, and may remember them."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose an action for each state; an admissible one if the state lists actions."""
        ...

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Observe the resulting transitions; memory is kept per ``transition.stream``."""
        ...


class Memoryless(Player):
    """A player that applies a function to states and remembers nothing.

    Args:
        choose: Returns an action for each state, drawn with a random generator.
        seed: Seed of the generator.
    """

    saved: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self, choose: Callable[[Sequence[State], np.random.Generator], list[str]], seed: int = 0
    ) -> None:
        self.choose, self.rng = choose, np.random.default_rng(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Apply the function."""
        return self.choose(states, self.rng)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Return the random state."""
        return save(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        restore(self, state)


@runtime_checkable
class Valued(Protocol):
    """Says what states are worth, to skills and searches."""

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, shape (n,)."""
        ...


def save(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object that it names in ``saved``, for a checkpoint.

    An attribute is a random generator, an object with ``state_dict`` and ``load_state_dict``, or plain:
    tensors, numbers, strings, and lists, tuples and dictionaries of them.
    """
    return {name: _saved(getattr(thing, name)) for name in getattr(thing, "saved", ())}


def restore(thing: Any, state: Mapping[str, Any]) -> None:
    """Set the attributes of an object to the result of :func:`save`."""
    for name in getattr(thing, "saved", ()):
        own, value = getattr(thing, name), deepcopy(state[name])  # else both would share tensors and lists
        if isinstance(own, np.random.Generator):
            own.bit_generator.state = value
        elif hasattr(own, "load_state_dict"):
            own.load_state_dict(value)
        else:
            setattr(thing, name, value)


def _saved(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    return value.state_dict() if hasattr(value, "state_dict") else deepcopy(value)


class Source(Protocol):
    """Provides rewards or goals to the agent around which it is wrapped. Its getters never train it.

    ``models`` and ``saved`` are optional, as for an agent.
    """

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of its models; None if it asks none."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that a checkpoint must share; plain values by name."""
        return {}

    def begin(self, world: World, seed: int) -> None:
        """Forget everything and start again."""
        return

    def learn(self) -> dict[str, float]:
        """Learn, if an update is due, and return the metrics to log."""
        return {}

    def records(self) -> list[dict[str, Any]]:
        """Return everything worth keeping so far, oldest first."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume exactly."""
        return save(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        restore(self, state)


@runtime_checkable
class Agent(Player, Protocol):
    """A player that learns. The methods that have a default here are optional in a subclass.

    Most agents name the attributes that a checkpoint holds in ``saved``. Three more are optional. ``models``
    maps names to the language models that the run meters and budgets. ``records_file`` names the file for the
    records (default: ``records.jsonl``). ``files()`` returns whole files to keep in the run's folder, as a
    mapping from name to text, such as ``best.py``.
    """

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the models that fill a role; None if no model fills one."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that a checkpoint must share with the agent that loads it; plain values by name.

        Default: the fields of the dataclass ``config`` and the names of the ``models``, if there are any.
        """
        config = getattr(self, "config", None)
        named = {name: model.name for name, model in getattr(self, "models", {}).items()}
        return {**(asdict(config) if is_dataclass(config) else {}), **named}  # type: ignore[arg-type]

    def begin(self, world: World, seed: int) -> None:
        """Forget everything and start again. The same world and seed give the same agent."""
        ...

    def learn(self) -> dict[str, float]:
        """Learn, if an update is due, and return the metrics to log."""
        return {}

    def player(self, seed: int) -> Player:
        """Return a player for evaluation: same weights, but its own randomness and memory."""
        ...

    def explain(self, state: State) -> Explanation:
        """Explain the next choice without making it."""
        return Explanation()

    def records(self) -> list[dict[str, Any]]:
        """Return everything worth keeping so far (programs, goals, transcripts), oldest first."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume exactly: tensors, numbers, strings, lists."""
        return save(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`, after :meth:`begin` in the same world."""
        restore(self, state)
