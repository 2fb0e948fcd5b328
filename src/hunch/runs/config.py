"""The settings of a run, as given on the command line and kept in ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Annotated, Any, TypeAlias

from annotated_types import Interval

from hunch.lm.settings import with_digests
from hunch.ranges import LATER, NonNegativeInt, PositiveInt, check_settings, stated
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.files import plain

LARGEST_SEED = 2**32 - 1
Threads: TypeAlias = Annotated[int, Interval(ge=1, le=1024)]
"""Number of torch threads per run; larger numbers may make the system end the process."""
Number: TypeAlias = Annotated[int, Interval(ge=1, le=10_000)]
"""Number of parallel environments."""
Seed: TypeAlias = Annotated[int, Interval(ge=0, le=LARGEST_SEED)]


@dataclass(frozen=True)
class Streams:
    """How many environments run side by side, how they are made, and how their tasks repeat.

        hunch.train("dqn", "hunch/FrozenLake-v0", streams=hunch.Streams(envs=4, options={"max_steps": 20}))

    Attributes:
        envs: Number of parallel environments, for an environment named by its id.
        options: Options of the environment, for one named by its id.
        processes: Worker processes for the environments, useful if a step is slow; 0 uses this process.
        task_seed: Fixes the task of all episodes, including evaluations, in environments with drawn tasks.
        lifetime: Successive episodes with the same drawn task; a player keeps its memory throughout.
    """

    envs: Number = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    processes: NonNegativeInt = 0
    task_seed: Seed | None = None
    lifetime: PositiveInt = 1


@dataclass(frozen=True)
class Saving:
    """Which checkpoints a run keeps, besides the last one and that of the best evaluation.

    Attributes:
        every: Steps between checkpoints that are kept; None for none.
        last: Number of latest checkpoints that are not deleted; None for all.
    """

    every: PositiveInt | None = None
    last: PositiveInt | None = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Settings that all runs and comparisons share."""

    env: str
    """Environment id; its options are given as --env.NAME VALUE."""
    lm: str = ""
    """Language model, such as minilm, uniform or hf:<name or folder>, for the method's role. Default:
    the default model of the method."""
    data: str = ""
    """Recorded data to learn from instead of environment steps: a folder, or a file of JSON lines."""
    online: bool = False
    """With --data: also take steps in the environment."""
    steps: PositiveInt = 10_000
    """Environment steps in total, over all environments; if there are only recorded data, updates."""
    envs: Number = 1
    """Number of parallel environments."""
    processes: NonNegativeInt = 0
    """Worker processes for the environments, useful if steps are slow; 0 for none."""
    task_seed: Seed | None = None
    """Seed of the task of all episodes, in environments with drawn tasks. Default: tasks vary."""
    lifetime: PositiveInt = field(default=1, metadata=LATER)
    """Number of successive episodes with the same drawn task; a player keeps its memory throughout."""
    eval_every: NonNegativeInt = 0
    """Environment steps between evaluations; 0 for none (with recorded data only: ten evaluations)."""
    eval_episodes: PositiveInt = 20
    """Episodes per evaluation."""
    episodes_per_player: PositiveInt | None = None
    """Episodes per evaluation after which the player's memory is cleared. Default: never."""
    keep_every: PositiveInt | None = field(default=None, metadata=LATER)
    """Environment steps between checkpoints that are kept, in checkpoints/STEP. Default: none is kept."""
    keep_last: PositiveInt | None = field(default=None, metadata=LATER)
    """With --keep-every: number of latest checkpoints that are not deleted. Default: all."""
    threads: Threads = 1
    """Torch threads per run; results repeat exactly only with the same number."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(Setting):
    """Everything needed to repeat a run."""

    method: str
    """Name of the method."""
    seed: Seed = 0
    """Seed of the agent and of all episodes."""
    env_options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment."""
    options: Any = None
    """The method's config dataclass."""
    objects: tuple[str, ...] = ()
    """What was passed as a Python object and cannot be rebuilt from these settings: agent, env, data."""

    def check_types(self) -> None:
        """Check the type and range of every setting, including those of the method.

        Raises:
            UsageError: with the name of the wrong setting.
        """
        check_settings(self)
        if is_dataclass(self.options):
            check_settings(self.options)

    def settings(self) -> dict[str, Any]:
        """Return all settings as JSON would return them."""
        settings = plain(stated(with_digests(self)))
        if not self.objects:
            settings.pop("objects")
        return settings

    @property
    def streams(self) -> int:
        """Number of parallel environments; at least one group if the method compares groups."""
        return group_of(self.options) if self.envs == 1 else self.envs

    @property
    def offline(self) -> bool:
        """True if the run only learns from recorded data; then its steps are updates."""
        return self.has_data and not self.online

    @property
    def has_data(self) -> bool:
        """True if the run has recorded data to learn from."""
        return bool(self.data or "data" in self.objects)


def way_of(options: Any) -> str:
    """Return the way in which a method's action prior asks its model; ``auto`` without one."""
    prior = prior_of(options)
    return prior.way if prior else "auto"


def prior_of(options: Any) -> PriorConfig | None:
    """Return the settings of a method's action prior; None without one."""
    prior = vars(options).get("prior") if is_dataclass(options) else None
    return prior if isinstance(prior, PriorConfig) else None


def with_blank_prompt(options: Any) -> Any:
    """Return a method's settings with the blank prompt; None if it has none, or it is set already."""
    if not is_dataclass(options) or isinstance(options, type):
        return None
    prior = prior_of(options)
    blank_of_method = vars(options).get("blank")  # of a planner: it leaves out the examples, too
    if blank_of_method is True or (prior is not None and prior.blank):
        return None
    if blank_of_method is False:
        return replace(options, blank=True)
    if prior is None or not prior.asks_model:
        return None
    return replace(options, prior=replace(prior, blank=True))


def with_words(options: Any) -> Any:
    """Return a method's settings with an action prior that compares words, in place of one that writes."""
    prior = prior_of(options)
    if prior is None:
        return options
    compared = replace(prior, way="similarity", temperature=None, prompt=None, samples=None, drawing=0)
    return replace(options, prior=compared)


def group_of(options: Any) -> int:
    """Return the number of answers to one prompt that a method compares; 1 if it compares none."""
    return int(getattr(options, "group", 1))
