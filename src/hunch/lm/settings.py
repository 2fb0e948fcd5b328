"""Settings of the requests to models, and of limits on their number."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from hunch.lm.template import Template, pinned
from hunch.ranges import LATER, NonNegativeFloat, PositiveInt
from hunch.renamed import Renamed

C = TypeVar("C")
Effort = Literal["none", "minimal", "low", "medium", "high"]
SILENT: Final = 20
"""Number of successive useless answers after which a warning is given (ours)."""
PATIENCE: Final = 50
"""Default number of successive useless answers after which a run stops (ours)."""


@dataclass(frozen=True, kw_only=True)
class AskConfig(Renamed):
    """Settings of the requests to a model."""

    prompt_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that a prompt file of this role may use in addition to the common ones."""
    max_tokens: PositiveInt | None = field(default=None, metadata=LATER)
    """Maximum tokens per answer, including thoughts. Default: 32, or 2048 for a chat model (at most a quarter
    of its context)."""
    temperature: NonNegativeFloat | None = field(default=None, metadata=LATER)
    """Sampling temperature of the answers."""
    stop: tuple[str, ...] | None = field(default=None, metadata=LATER)
    """Texts that end an answer. Default: those of the role for a model that continues text; none for a chat
    model."""
    effort: Effort | None = field(default=None, metadata=LATER)
    """Reasoning effort, for servers that support reasoning_effort. Default: that of the server."""
    prompt: str | None = field(default=None, metadata=LATER)
    """File with a prompt that replaces the built-in one: a text with fields such as {task}, {history},
    {observation}, {actions} and {examples}. Default: the built-in prompt."""
    patience: PositiveInt | None = field(default=PATIENCE, metadata=LATER)
    """Number of successive useless answers after which the run stops, if they are empty or most answers so
    far were useless; none for no limit (ours)."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the use of language models; :class:`hunch.lm.budget.Budget` enforces them."""

    calls: int | None = None
    """Maximum requests that reach a model, including embedded texts. Cached answers do not count."""
    tokens: int | None = None
    """Maximum tokens read and written, over all models that count tokens."""
    money: float | None = None
    """Maximum cost in money, in the currency of the models' prices."""
    seconds: float | None = None
    """Maximum wall-clock seconds spent in the models, including the encoder."""

    def __bool__(self) -> bool:
        """Return whether there is any limit."""
        return any(getattr(self, limit.name) is not None for limit in fields(Limits))


def ask_config(config: AskConfig, **changed: Any) -> AskConfig:
    """Return only the request settings of a config, with some of them changed."""
    settings = {entry.name: getattr(config, entry.name) for entry in fields(AskConfig)}
    return AskConfig(**(settings | changed))


def check_prompts(config: Any) -> None:
    """Read each prompt file that some settings name, to check it.

    Raises:
        UsageError: if a file cannot be read, has changed, has no field, or has one that the role lacks.
    """
    if isinstance(config, AskConfig) and config.prompt:
        Template.read(config.prompt, config.prompt_fields)
    for entry in fields(config):
        if is_dataclass(value := getattr(config, entry.name)):
            check_prompts(value)


def with_digests(config: C) -> C:
    """Return settings in which each prompt file has the digest of its contents, as ``file#digest``.

    Raises:
        UsageError: if a file cannot be read.
    """
    changed: dict[str, Any] = {}
    for entry in fields(config) if is_dataclass(config) else ():
        value = getattr(config, entry.name)
        if is_dataclass(value) and (new := with_digests(value)) is not value:
            changed[entry.name] = new
    if isinstance(config, AskConfig) and config.prompt:
        named = pinned(config.prompt)
        if named != config.prompt:
            changed["prompt"] = named
    return cast("C", replace(cast("Any", config), **changed)) if changed else config
