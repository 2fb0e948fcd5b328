"""The settings of a run, as given on the command line and kept in ``config.json``."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, is_dataclass
from typing import Annotated, Any, TypeAlias

from annotated_types import Interval

from hunch import methods
from hunch.core import UsageError
from hunch.lm.settings import check_prompts, with_digests
from hunch.plugins import version_of
from hunch.ranges import LATER, NonNegativeInt, PositiveInt, check_settings, stated
from hunch.rl.rollout import require_whole_groups
from hunch.roles.prior.kinds import NEEDS
from hunch.runs.models import Asked, check_specs
from hunch.runs.writing import plain

_PACKAGES = ("hunch-rl", "numpy", "scipy", "gymnasium", "torch", "transformers", "tokenizers")


LARGEST_SEED = 2**32 - 1
Threads: TypeAlias = Annotated[int, Interval(ge=1, le=1024)]
"""Number of torch threads per run; larger numbers may make the system end the process."""
Streams: TypeAlias = Annotated[int, Interval(ge=1, le=10_000)]
Seed: TypeAlias = Annotated[int, Interval(ge=0, le=LARGEST_SEED)]


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
    envs: Streams = 1
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
        found = plain(stated(with_digests(self)))
        if not self.objects:
            found.pop("objects")
        return found

    @property
    def streams(self) -> int:
        """Number of parallel environments; at least one group if the method compares groups."""
        return group_of(self.options) if self.envs == 1 else self.envs

    @property
    def offline(self) -> bool:
        """True if the run only learns from recorded data; then its steps are updates."""
        return bool(self.data or "data" in self.objects) and not self.online

    def specs(self) -> dict[str, str]:
        """Return the spec of each model that the method uses, by the option's name."""
        method = methods.find(self.method)
        return method.specs(self.options or method.config_class(), self.lm)

    def record(self, asked: Asked) -> dict[str, Any]:
        """Return the contents of ``config.json``: settings, models, versions and evidence level."""
        versions = {name: version_of(name) for name in _PACKAGES}
        models = {}
        for name, model in asked:
            revision = getattr(model, "revision", None)  # one that is trained may have none
            models[name] = {"name": model.name, "revision": revision, "evidence": model.evidence}
        return {
            "run": self.settings(),
            "evidence": asked.evidence,
            "models": models,
            "versions": {"python": platform.python_version(), **versions},
        }


def group_of(options: Any) -> int:
    """Return the number of answers to one prompt that a method compares; 1 if it compares none."""
    return int(getattr(options, "group", 1))


def loading(config: RunConfig) -> str:
    """Return a text on what a run loads before its first step, for the progress display."""
    specs = {} if "agent" in config.objects else config.specs()
    return f"loading {' and '.join(dict.fromkeys(specs.values()))}" if specs else "starting"


def check(config: RunConfig) -> None:
    """Check the settings of a run before anything is loaded.

    Raises:
        UsageError: if a setting is wrong; the message names it.
    """
    config.check_types()
    check_prompts(config)
    data = bool(config.data or "data" in config.objects)
    if config.keep_last and not config.keep_every:
        raise UsageError("--keep-last needs --keep-every; without it no checkpoint is kept.")
    if not 0 <= config.processes <= config.envs:
        raise UsageError(f"processes must be from 0 to the number of environments, not {config.processes}.")
    require_whole_groups(config.streams, group_of(config.options))
    if config.online and not data:
        raise UsageError("--online needs --data; without data every run takes steps in the environment.")
    if "agent" in config.objects:
        return
    method = methods.find(config.method)
    if data and method.data == "none":
        raise UsageError(f"{config.method} does not learn from recorded data; leave --data out.")
    if not data and method.data == "needed":
        raise UsageError(f"{config.method} learns from recorded data: give a data set with --data FOLDER.")
    if config.lm and not method.takes_lm:
        raise UsageError(f"{config.method} uses no language model; leave --lm out.")
    method.check(config.options or method.config_class(), config.lm)
    needs = dict(method.models)
    kind = getattr(getattr(config.options, "prior", None), "kind", "auto")
    if "lm" in needs and kind in NEEDS:
        needs["lm"] = NEEDS[kind]
    check_specs(config.method, config.specs(), needs)
