"""The settings of how a model is asked, and how much."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from hunch.ranges import LATER, NonNegativeFloat, PositiveInt

C = TypeVar("C")
Effort = Literal["none", "minimal", "low", "medium", "high"]
PATIENCE: Final = 50
"""Answers in a row without a usable one after which a run stops, unless a setting says otherwise."""


@dataclass(frozen=True, kw_only=True)
class AskConfig:
    """How a model is asked."""

    prompt_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that a prompt of one's own may have in this role besides those of every role."""
    max_tokens: PositiveInt | None = field(default=None, metadata=LATER)
    """Maximum tokens per answer, thoughts included. Default: 32, or 2048 for a chat model (at most a quarter
    of its context)."""
    temperature: NonNegativeFloat | None = field(default=None, metadata=LATER)
    """Sampling temperature."""
    stop: tuple[str, ...] | None = field(default=None, metadata=LATER)
    """Texts that end an answer. Default: those of the role for a model that continues text, none for a chat
    model."""
    effort: Effort | None = field(default=None, metadata=LATER)
    """Reasoning effort, for servers that know it (reasoning_effort). Default: the server's."""
    prompt: str | None = field(default=None, metadata=LATER)
    """File with your own prompt: a text with fields such as {task}, {history}, {observation}, {actions} and
    {examples}. Default: the role's own."""
    patience: PositiveInt | None = field(default=PATIENCE, metadata=LATER)
    """Answers in a row without a usable one after which the run stops, if they are empty or most answers so
    far were of no use; none for no limit."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the use of language models, as they are given; a budget checks and applies them."""

    calls: int | None = None
    """Maximum requests that reach a model, including embedded texts; cached answers are free."""
    tokens: int | None = None
    """Maximum tokens read and written, for models that count them."""
    money: float | None = None
    """Maximum cost, in the currency of the models' prices."""
    seconds: float | None = None
    """Maximum seconds spent in the models, including the encoder."""

    def __bool__(self) -> bool:
        """Return whether there is any limit."""
        return any(getattr(self, limit.name) is not None for limit in fields(Limits))


def ask_config(config: AskConfig, **changed: Any) -> AskConfig:
    """Return how a config asks, alone, with some settings changed."""
    own = {entry.name: getattr(config, entry.name) for entry in fields(AskConfig)}
    return AskConfig(**(own | changed))


def check_prompts(config: Any) -> None:
    """Read each prompt of one's own in some settings.

    Raises:
        UsageError: if it cannot be read, has changed, has no field, or one that the role lacks.
    """
    if isinstance(config, AskConfig) and config.prompt:
        from hunch.lm.template import Template

        Template.read(config.prompt, config.prompt_fields)
    for entry in fields(config):
        if is_dataclass(value := getattr(config, entry.name)):
            check_prompts(value)


def with_digests(config: C) -> C:
    """Return settings in which each prompt of one's own has its digest, as ``file#digest``.

    Raises:
        UsageError: if a file cannot be read.
    """
    changed: dict[str, Any] = {}
    for entry in fields(config) if is_dataclass(config) else ():
        value = getattr(config, entry.name)
        if is_dataclass(value) and (new := with_digests(value)) is not value:
            changed[entry.name] = new
    if isinstance(config, AskConfig) and config.prompt:
        from hunch.lm.template import pinned

        if (named := pinned(config.prompt)) != config.prompt:
            changed["prompt"] = named
    return cast("C", replace(cast("Any", config), **changed)) if changed else config
