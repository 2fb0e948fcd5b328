"""The core types of the library. Read this file first.

Hunch puts a language model into any *role* of a reinforcement-learning loop. Everything else in the
loop is ordinary reinforcement learning, and there is one loop for every method::

    agent.begin(world, seed)
    while rollout.steps < steps:
        actions = agent.act(rollout.states)          # one batch: one model call for all streams
        transitions = rollout.step(actions)
        agent.observe(transitions)                   # remember
        metrics = agent.learn()                      # improve; may be empty

Evaluation is the same loop with ``agent.player(seed)`` and without ``learn``. A role is a small protocol that
a language model, a rule or an uninformed stand-in fills; the stand-in is the baseline.

In this order: errors; what passes between environment and agent (:class:`State`, :class:`Transition`,
:class:`Episode`, :class:`World`); and who acts and learns (:class:`Player`, :class:`Source`, :class:`Agent`).
What these must write is abstract, everything else is declared here with its default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import gymnasium as gym

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
PlainPrompt: TypeAlias = str | Sequence[tuple[str, str]]
"""A prompt in plain values: a text, or messages, each with its speaker and content."""
Choose: TypeAlias = "Callable[[Sequence[State], np.random.Generator], list[str]]"
"""Function that chooses an action in each state."""

EvidenceLevel = Literal["L0", "L1", "L2", "L3"]
"""``L0``: a scripted or uninformed model. ``L1``: a small model trained by this project. ``L2``: recorded
answers of a real model. ``L3``: a real pretrained model. Only L2 and L3 judge language models."""


def weakest(levels: Iterable[EvidenceLevel | None]) -> EvidenceLevel | None:
    """Return the lowest evidence level. None stands for "no model" and is ignored."""
    return min((level for level in levels if level is not None), default=None)


# ---- errors -----------------------------------------------------------------------------------------------


class HunchError(Exception):
    """The run cannot continue; the message says why in one sentence. The command exits with code 1."""


class UsageError(HunchError, ValueError):
    """The request is wrong: an unknown name, a bad option or bad input. The command exits with code 2."""


class InadmissibleActionError(UsageError):
    """The action is not admissible. The environment is left unchanged."""


class HunchWarning(UserWarning):
    """Something that the user should know, which does not stop the run."""


# ---- what passes between environment and agent ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, compared and hashed by the SHA-256 of its bytes in hex."""

    digest: str
    data: bytes = field(compare=False, repr=False)  # a PNG file

    @classmethod
    def read(cls, data: bytes) -> Picture:
        """Make a picture from the bytes of a PNG file."""
        return cls(sha256(data).hexdigest(), data)


@dataclass(frozen=True, slots=True)
class State:
    """What the agent knows at one step."""

    observation: str
    task: str = ""  # in one sentence; empty if the environment states none
    actions: tuple[str, ...] | None = None  # the admissible ones, which vary; None if any text is allowed
    history: tuple[tuple[str, str], ...] = ()  # earlier (observation, action) of the episode, oldest first
    goals: tuple[str, ...] = ()  # what a goal source added
    pictures: tuple[Picture, ...] = ()  # what a model with eyes sees
    # The rest does not tell states apart.
    raw: Any = field(default=None, compare=False, repr=False)  # for those that declare to read it
    stream: int = field(default=0, compare=False)  # one per environment and player
    seat: int = field(default=0, compare=False)  # whose state it is, in environments of several players
    # It does again: what is known of each action, or "", for models that choose among described options.
    descriptions: tuple[str, ...] = ()

    @classmethod
    def read(cls, observation: str, info: Mapping[str, Any], stream: int = 0, seat: int = 0) -> State:
        """Make a state from what ``reset`` or ``step`` returned; a UsageError if actions are missing."""
        listed = info.get("actions")
        if listed is None and not info.get("free_text"):
            missing = "info['actions'] is missing, and info['free_text'] is not True."
            raise UsageError(f"The environment names no admissible actions: {missing}")
        if isinstance(listed, str):
            raise UsageError(f"info['actions'] is one text, {listed!r}: it has to be a tuple of texts.")
        if listed is not None and not isinstance(listed, Iterable):
            raise UsageError(f"info['actions'] is {listed!r}: it has to be a tuple of texts.")
        actions = None if listed is None else tuple(listed)
        pictures = tuple(map(Picture.read, info.get("pictures", ())))
        history = _pairs(info.get("history", ()))
        described = _described(actions, info.get("action_descriptions", {}))
        raw = snapshot(info.get("raw"))  # the environment may change its own at the next step
        task = info.get("task", "")
        return cls(observation, task, actions, history, (), pictures, raw, stream, seat, described)

    def plain(self, *, compared: bool = False) -> dict[str, Any]:
        """Return the state as JSON values, without defaults; with ``compared`` only the compared fields."""
        plain: dict[str, Any] = {}
        for entry in fields(self):
            if entry.name == "raw" or (compared and not entry.compare):
                continue
            value = getattr(self, entry.name)
            if value != entry.default:
                plain[entry.name] = value
        if self.pictures:
            plain["pictures"] = [b64encode(picture.data).decode() for picture in self.pictures]
        if not compared and self.raw is not None and is_plain(self.raw):
            plain["raw"] = self.raw
        return plain

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> State:
        """Make a state from the result of :meth:`plain`, also after JSON turned its tuples into lists."""
        kept = dict(plain)
        for name in kept.keys() & {"actions", "goals", "descriptions"}:
            kept[name] = None if kept[name] is None else tuple(kept[name])
        kept["history"] = tuple(map(tuple, kept.get("history", ())))
        kept["pictures"] = tuple(Picture.read(b64decode(data)) for data in kept.get("pictures", ()))
        return cls(**kept)

    @property
    def options(self) -> tuple[str, ...]:
        """The admissible actions; a UsageError if any text is allowed."""
        if self.actions is None:
            raise UsageError("This method needs listed actions, but the environment accepts any text.")
        return self.actions

    @property
    def aim(self) -> str:
        """The goals, one per line, or the task if there are none: what to pursue, as one text."""
        return "\n".join(self.goals) or self.task

    def lines(self, mark: str = "> ") -> list[str]:
        """History and observation as non-empty lines, oldest first; ``mark`` is the prefix of an action."""
        lines: list[str] = []
        for observation, action in self.history:
            lines += observation.splitlines()
            lines.append(f"{mark}{action}")
        lines += self.observation.splitlines()
        return [line for line in lines if line.strip()]

    def text(self) -> str:
        """Return the :meth:`lines` joined by line breaks."""
        return "\n".join(self.lines())


def _pairs(history: Any) -> tuple[tuple[str, str], ...]:
    """Return the pairs of observation and action in ``info["history"]``; a UsageError if it holds others."""
    pairs = [tuple(pair) if isinstance(pair, (tuple, list)) else pair for pair in history]
    for pair in pairs:
        is_pair = isinstance(pair, tuple) and len(pair) == 2
        if not is_pair or not all(isinstance(text, str) for text in pair):
            raise UsageError(
                "info['history'] has to hold pairs of an observation and an action, both texts (as "
                f"hunch.envs.History adds them), not {pair!r}."
            )
    return tuple(pairs)


def _described(actions: tuple[str, ...] | None, descriptions: Any) -> tuple[str, ...]:
    """Return ``info["action_descriptions"]`` in the order of the actions; empty if there are none."""
    if isinstance(descriptions, Mapping) and not descriptions:
        return ()
    texts = isinstance(descriptions, Mapping) and all(isinstance(d, str) for d in descriptions.values())
    if not texts or not descriptions.keys() <= set(actions or ()):
        raise UsageError(
            "info['action_descriptions'] has to hold a text for some of info['actions'], by action, not "
            f"{descriptions!r}."
        )
    if not any(descriptions.values()):
        return ()
    return tuple(descriptions.get(action, "") for action in actions or ())


def snapshot(value: Any) -> Any:
    """Return a copy of a value of others that they cannot change: what never changes is returned as it is.

    An object that cannot be copied is returned as it is, too.
    """
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        return value
    if type(value) is list:
        return [snapshot(item) for item in value]
    if isinstance(value, tuple):
        items = [snapshot(item) for item in value]
        if all(copy is item for copy, item in zip(items, value, strict=True)):
            return value
        return tuple(items) if type(value) is tuple else deepcopy(value)
    if type(value) is dict:
        return {key: snapshot(item) for key, item in value.items()}
    try:
        return deepcopy(value)
    except Exception:  # objects of others may raise anything
        return value


def is_plain(value: Any) -> bool:
    """Return whether JSON can hold a value: a number, a text, None, or a list or dictionary of these."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value) and all(map(is_plain, value.values()))
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    return type(value) in (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one stream; ``success`` and ``event`` (what happened) are reported by the environment.

    After ``terminated`` no reward follows; if only ``truncated``, the value of ``next_state`` still counts.
    """

    state: State
    action: str
    reward: float  # of this stream's player, summed up until its next state
    next_state: State
    terminated: bool
    truncated: bool
    success: bool = False  # the task was solved with this step
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
        states = {"state": self.state.plain(), "next_state": self.next_state.plain()}
        return {name: getattr(self, name) for name in self.__slots__} | states

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Transition:
        """Make a transition from the result of :meth:`plain`."""
        states = {name: State.of(plain[name]) for name in ("state", "next_state")}
        return cls(**{**plain, **states})


@dataclass(frozen=True, slots=True)
class Episode(Sequence[Transition]):
    """A recorded episode, a sequence of transitions."""

    transitions: tuple[Transition, ...]
    lifetime: int = 0  # the episodes of one lifetime share their task
    number: int = 0  # of the episode in its environment
    group: int | None = None  # the prompt that it answers; answers to one prompt are compared
    unfinished: tuple[int, ...] = ()  # numbers of the steps whose text was cut at its limit of tokens

    def __len__(self) -> int:
        return len(self.transitions)

    def __getitem__(self, index: Any) -> Any:
        return self.transitions[index]

    def with_steps(self, steps: Iterable[Transition]) -> Episode:
        """Return the same episode with other transitions, such as relabelled ones."""
        return replace(self, transitions=tuple(steps))


@runtime_checkable
class WrittenProblem(Protocol):
    """What programs are written for, such as :class:`hunch.envs.design.problem.Problem`."""

    @property
    def task(self) -> str:
        """The task in a sentence."""

    @property
    def function(self) -> str:
        """The function that the program must define; empty if any text may be a program."""

    def text(self) -> str:
        """Return the text of the problem for writers of programs."""

    def flaw(self, program: str) -> str:
        """Return why a program cannot be run, without running it; empty if nothing is found."""


@runtime_checkable
class ListedProblem(Protocol):
    """Statements to be proved, such as :class:`hunch.envs.proofs.statements.Statements`."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the statements, in order."""


@runtime_checkable
class PromptWording(Protocol):
    """How prompts write the steps of a domain, such as :class:`hunch.envs.icpi.texts.Texts`."""

    def transition(self, state: str, action: str, reward: float, done: bool, next_state: str) -> str:
        """Return the text of a step."""

    def read_action(self, completion: str) -> str | None:
        """Return the action in a model's text; None if it cannot be read."""

    def read_reward(self, completion: str) -> float | None:
        """Return the reward in a model's text; None if it cannot be read."""

    def read_state(self, completion: str) -> str | None:
        """Return the state in a model's text; None if it cannot be read."""


class MeteredModel(Protocol):
    """A language model, as far as a run must know it; see :class:`hunch.lm.base.LanguageModel`."""

    name: str
    evidence: EvidenceLevel


@runtime_checkable
class Modelled(Protocol):
    """What fills a role with a language model, such as an action prior."""

    @property
    def lm(self) -> Any:
        """The language model."""


@runtime_checkable
class Telling(Protocol):
    """An environment that names what agents may know of it before the first step (:class:`World`)."""

    tells: Sequence[str]


@dataclass(frozen=True, slots=True)
class World:
    """What an agent may know about its environment before the first step."""

    env: str = ""  # id of the environment
    task: str = ""  # at the beginning
    streams: int = 1  # environments times players; 0 if the agent learns from data only
    steps: int = 0  # length of the run in environment steps, or in updates without streams
    code: str = ""  # of the environment without its reward, if it shows it
    data: Sequence[Episode] = ()  # recorded episodes to learn from
    # Makes an environment to plan or train in, with its own chance.
    copy: Callable[[], gym.Env[Any, Any]] | None = None
    lifetime: int = 1  # episodes that share one task and a player's memory
    problem: WrittenProblem | ListedProblem | None = None  # that programs or proofs solve
    wording: PromptWording | None = None
    # Demonstrations: prompts with texts; for planners, instructions with names of skills.
    examples: tuple[tuple[PlainPrompt, tuple[str, ...]], ...] = ()
    things: tuple[str, ...] = ()  # names of the things in the environment
    manual: str = ""  # the rules that a player may read
    tool_schemas: tuple[str, ...] = ()  # tools whose calls are actions: JSON, as OpenAI's chat API takes them
    prompts: Sequence[State] = ()  # the first states of all episodes, where they are known
    models: Mapping[str, MeteredModel] = field(default_factory=dict)  # those that the environment itself asks


# ---- who acts and learns ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an agent makes its next choice."""

    # A number per action, such as "Q"; or nan.
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    chosen: FloatArray | None = None  # probabilities, shape (number of actions,); None if unknown
    note: str = ""  # anything else worth showing


@runtime_checkable
class Stateful(Protocol):
    """Saves itself, as the modules and optimisers of torch do."""

    def state_dict(self) -> Any:
        """Return what a checkpoint holds."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Restore a state from :meth:`state_dict`."""


class Saved:
    """Saves the attributes that ``saved`` names: generators, objects with ``state_dict``, plain values."""

    saved: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume exactly."""
        return {name: _saved(getattr(self, name)) for name in self.saved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`, after ``begin`` in the same world."""
        for name in self.saved:
            attribute = getattr(self, name)
            value = deepcopy(state[name])  # else both would share tensors and lists
            if isinstance(attribute, np.random.Generator):
                attribute.bit_generator.state = value
            elif isinstance(attribute, Stateful):
                attribute.load_state_dict(value)
            else:
                setattr(self, name, value)


def _saved(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, Stateful):
        return value.state_dict()
    return deepcopy(value)


class Player(Saved, ABC):
    """Acts in one or more streams, observes the results, and may remember them."""

    @abstractmethod
    def act(self, states: Sequence[State]) -> list[str]:
        """Choose an action for each state; an admissible one if the state lists actions."""

    @abstractmethod
    def observe(self, transitions: Sequence[Transition]) -> None:
        """Observe the resulting transitions; memory is kept per ``transition.stream``."""

    def forget(self, streams: Sequence[int]) -> None:
        """Forget these streams, whose lifetime is over. Default: nothing lasts beyond an episode."""
        return

    def figures(self) -> dict[str, float]:
        """Return metrics of what was played, to log with an evaluation. Default: none."""
        return {}


class Memoryless(Player):
    """A player that applies ``choose`` to states and a generator with the seed, and remembers nothing."""

    saved = ("rng",)

    def __init__(self, choose: Choose, seed: int = 0) -> None:
        self.choose = choose
        self.rng = np.random.default_rng(seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose actions by ``choose``."""
        return self.choose(states, self.rng)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing."""


@runtime_checkable
class Valued(Protocol):
    """Returns values of states, for skills and searches."""

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, shape (n,)."""
        ...


@runtime_checkable
class Worded(Protocol):
    """Builds prompts, whose wording has a version."""

    @property
    def wording(self) -> str:
        """The version; it changes whenever a prompt does."""


def wording_of(part: object) -> str:
    """Return the version of the prompts of a role's object; empty if it builds none."""
    return part.wording if isinstance(part, Worded) else ""


class Source(Saved):
    """Provides rewards or goals to the wrapped agent; only ``learn`` trains it.

    Attributes:
        models: The language models by role, which a run meters; also those that are trained.
    """

    models: Mapping[str, Any] = MappingProxyType({})

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of results: by default the weakest of ``models``; None without a model.

        Where a model fills no role, such as a frozen encoder, a subclass leaves it out. A subclass without a
        property of its own may also set it.
        """
        if "evidence" in vars(self):
            level: EvidenceLevel | None = vars(self)["evidence"]
            return level
        return weakest(model.evidence for model in self.models.values())

    if not TYPE_CHECKING:  # a type checker would demand a setter of each property that overrides this one

        @evidence.setter
        def evidence(self, level: EvidenceLevel | None) -> None:
            if level is not None and level not in get_args(EvidenceLevel):
                levels = ", ".join(get_args(EvidenceLevel))
                raise UsageError(f"There is no evidence level {level!r}; there are {levels}, and None.")
            vars(self)["evidence"] = level

    @property
    def wording(self) -> str:
        """The version of the prompts; empty if there are none."""
        return ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that must be equal when a checkpoint is loaded; plain values by name."""
        return {}

    def begin(self, world: World, seed: int) -> None:
        """Forget everything and start again. The same world and seed give the same behaviour."""
        return

    def learn(self) -> dict[str, float]:
        """Learn if an update is due, and return metrics to log."""
        return {}

    def records(self) -> list[dict[str, Any]]:
        """Return everything worth keeping so far (programs, goals, transcripts), oldest first."""
        return []


class Agent(Player, Source):
    """A player that learns. A subclass writes ``act``, ``observe`` and ``player``.

    Nearly all also write ``begin`` and ``learn``, and name in ``saved`` what a checkpoint holds.

    Attributes:
        config: The dataclass of the settings.
        group: Number of neighbouring streams whose episodes begin alike, to be compared.
        records_file: Name of the file in the run's folder that holds :meth:`records`.
        config_class: The class of ``config``, for methods of the command line.
        from_settings: True if ``config`` and ``models`` are all that it takes to build the agent again; False
            if it was given other parts in Python.
    """

    config: Any = None
    group: int = 1
    records_file: ClassVar[str] = "records.jsonl"
    config_class: ClassVar[type[Any]]
    from_settings: bool = True

    @abstractmethod
    def player(self, seed: int) -> Player:
        """Return a player for evaluation: the same weights, but separate randomness and memory."""

    def explain(self, state: State) -> Explanation:
        """Explain the next choice without making it."""
        return Explanation()

    @property
    def first_update(self) -> int:
        """The step of the first update, as far as the settings say it; no shorter run learns anything."""
        return 0

    @property
    def waits_for(self) -> str:
        """The setting on which :attr:`first_update` depends."""
        return "warmup"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The fields of ``config``, the names of ``models``, and the ``wording`` of prompts, if any."""
        settings: dict[str, Any] = {}
        if is_dataclass(self.config):
            settings |= asdict(self.config)  # type: ignore[arg-type]
        settings |= {name: model.name for name, model in self.models.items()}
        if self.wording:
            settings["wording"] = self.wording
        return settings

    def files(self) -> dict[str, str]:
        """Return texts by name that the run keeps as files in its folder, besides :meth:`records`."""
        return {}

    def export(self, folder: Path) -> None:
        """Write the trained model into a folder, where others can load it. Default: there is none."""
        return

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Refuse settings that cannot work, before a model is loaded.

        Args:
            config: The settings.
            specs: The spec of each model by the name of its option.

        Raises:
            UsageError: if they cannot work.
        """
        return

    @classmethod
    def build(cls, *args: Any, **kwargs: Any) -> Agent:
        """Make the agent for the command line: ``build(config, models, **parts)``.

        Args:
            *args: The settings; and the language models by the name of their option.
            **kwargs: Other parts that a run loads, such as ``skills``.

        By default the constructor gets the settings as ``config``, and models and parts by name.
        """
        config, models = args
        make: Callable[..., Agent] = cls
        return make(config=config, **models, **kwargs)
