"""Base class of agents that write programs, and the settings of their writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Literal

from hunch import extras, plugins
from hunch.core import Agent, EvidenceLevel, UsageError
from hunch.envs.design.problem import Problem
from hunch.lm.base import LanguageModel
from hunch.lm.settings import AskConfig, ask_config
from hunch.methods.settings import configure, models_of
from hunch.ranges import LATER, NonNegativeFloat, PositiveInt
from hunch.roles.writer.plain import PLAIN_PROMPTS, plain_prompt
from hunch.roles.writer.programs import (
    NO_KINDS,
    Attempt,
    Kind,
    ModelWriter,
    Prompt,
    Writer,
    chat_prompt,
)

GROUP = "hunch.writers"
"""Entry-point group of writers without prompts; the entry ``rewards`` makes one from an embedding model."""
PLAIN_WORDING: Final = "plain-1"
"""Version of the words of :func:`~hunch.roles.writer.plain.plain_prompt`. Change it with them."""
SPACING = 1_000_000
"""Number of draws between the seeds of two successive sessions of a writer."""


@dataclass(frozen=True, kw_only=True)
class CodingConfig(AskConfig):
    """Settings of agents that write programs."""

    request: Literal["paper", "plain"] = field(default="paper", metadata=LATER)
    """The request to the model: that of the paper, or a plain one in the fewest words, which small models
    understand better."""
    temperature: NonNegativeFloat = 1.0
    """Sampling temperature of the model."""
    max_tokens: PositiveInt = 2048
    """Maximum tokens per answer of the model, including thoughts (ours)."""


class CodingAgent(Agent):
    """An agent that writes programs; a subclass defines the prompts and the use of the programs.

    Args:
        writer: A :class:`~hunch.roles.writer.programs.Writer`, or a language model. A model that generates
            gets the method's prompts; one that only embeds is used by the studies' writer of rewards.
        config: Settings; ``options`` change single ones.

    Raises:
        UsageError: if ``writer`` is neither.
    """

    config_class: ClassVar[type[Any]] = CodingConfig
    wording: ClassVar[str] = "4873b7fb"
    """Version of the words of :meth:`prompt`. A subclass with another prompt has a version of its own, which
    changes with the prompt: runs with different words are different runs."""

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> CodingAgent:
        """Make the agent; the model ``lm`` writes the programs."""
        return cls(models["lm"], config)

    def __init__(self, writer: Writer | LanguageModel, config: Any = None, **options: Any) -> None:
        self.config = configure(type(self), config, options)
        self.writer: Writer = self._asking(writer) if hasattr(writer, "verbs") else writer
        if not (hasattr(self.writer, "write") and hasattr(self.writer, "evidence")):
            raise UsageError(
                f"{type(self).__name__} needs a language model, such as hunch.lm.load('openai:<model>'), or "
                f"a writer with `write` and `evidence`, which is None without a model; not {writer!r:.100}."
            )
        self.models = models_of(lm=self.writer)

    def programs_by(
        self,
        problem: Problem,
        parents: Sequence[Attempt],
        feedback: str,
        n: int,
        first: int,
        kind: Kind = "",
    ) -> list[str]:
        """Let the writer write programs; arguments as for :meth:`~hunch.roles.writer.programs.Writer.write`.

        Raises:
            UsageError: if a writer of your own returns something else.
        """
        kinds = (kind,) if kind else ()  # your own writer need not know kinds of request
        programs = self.writer.write(problem, parents, feedback, n, first, *kinds)
        writer = f"The method write of {type(self.writer).__name__}"
        if not isinstance(programs, (list, tuple)) or not all(isinstance(one, str) for one in programs):
            raise UsageError(f"{writer} must return a list of programs, each a text; '' stands for none.")
        if len(programs) != n:
            raise UsageError(f"{writer} returned another number of programs than {n}: {len(programs)}.")
        return list(programs)

    def _asking(self, lm: Any) -> Writer:
        if "embed" in lm.verbs and "generate" not in lm.verbs:
            made = plugins.installed(GROUP).get("rewards")
            if made is None:
                raise extras.of_studies(
                    f"The writer of rewards for a model that only embeds, such as {lm.name},"
                )
            writer: Writer = made.load()(lm)
            return writer
        prompt, by_kind = self.requested_prompt(), self.prompts_by_kind()
        return ModelWriter(lm, prompt, prompts=by_kind, asks=ask_config(self.config))

    def requested_prompt(self) -> Prompt:
        """Return the function that makes requests to a model: the plain one, or the method's own prompt."""
        return plain_prompt if self.config.request == "plain" else type(self).prompt

    def prompts_by_kind(self) -> Mapping[Kind, Prompt]:
        """Return the plain prompt of each kind of request, if the settings ask for plain requests."""
        return PLAIN_PROMPTS if self.config.request == "plain" else NO_KINDS

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the method's prompt for a model."""
        return chat_prompt(problem, parents, feedback)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the writer."""
        return self.writer.evidence

    @property
    def settings(self) -> dict[str, Any]:
        """The config and the writer, with the version of its prompt."""
        named = {name: model.name for name, model in self.models.items()}
        words = {"wording": PLAIN_WORDING if self.config.request == "plain" else self.wording}
        return {
            **asdict(self.config),
            **({**named, **words} if named else {"writer": type(self.writer).__name__}),
        }
