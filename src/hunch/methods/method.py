"""The description of a method: its entry in lists, and what a run must know before it loads a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel, Verb
from hunch.lm.registry import check_spec

if TYPE_CHECKING:
    from hunch.envs.offers import Acts, Reads

PROPOSES: Final[tuple[Verb, ...]] = ("generate", "embed", "score", "label", "decide")
"""Requests to a language model; an action prior needs a model with at least one of them."""
ENCODER: Final[Mapping[str, tuple[Verb, ...]]] = {"encoder": ("embed",)}
"""Entry of ``Method.models`` for the option ``--encoder``: a model that embeds texts."""


@dataclass(frozen=True, slots=True)
class Method:
    """The description of a method, in the method's file under the name ``METHOD``.

    Attributes:
        name: Name on the command line.
        agent_class: The agent. Its attribute ``config_class`` is the dataclass of options.
        summary: What the method is, in one line.
        paper: The paper that the method comes from.
        leaf: Position of the method in "The RL/LLM Taxonomy Tree".
        environments: The kinds of environment that the method supports, in words.
        acts: The form of the actions: ``any`` if the agent may write any text, else one from the list.
        reads: Information that the agent reads besides texts and rewards. An environment without one of
            these is refused. Only methods that list ``raw`` get ``State.raw``.
        optional: Entries of ``reads`` without which the method also works.
        models: The language models of the method: the option with the spec, and the kinds of request of
            which the model must support at least one.
        lm: Default of the option ``--lm``, a model that ships with the library; empty if there is none.
        suggested: Models that the help names: a real one, and a rule or a model of the shelf.
        unnamed: Keys of ``models`` that may stay empty; the method then works without this model. Such a key
            stays empty, too, if the model of ``--lm`` cannot do what it needs.
        separate: Keys of ``models`` that ``--lm`` does not fill: without a spec of their own they stay empty.
        roles: The roles that the language model of ``--lm`` fills; empty for a baseline.
        control: Name of the control, which is the same method with an uninformed model; empty if none.
        data: Whether the method learns from recorded data.
        imitates: True if the method learns to act like all data that it gets, so that it does not get answers
            which a file of answers calls rejected or bad.
        changeable: Settings that an evaluation may change, because they do not affect what was learnt.
    """

    name: str
    agent_class: type[Agent]
    summary: str
    paper: str
    leaf: str = "baseline"
    environments: str = "any text environment"
    acts: Acts | Literal["any"] = "listed"
    reads: AbstractSet[Reads] = frozenset()
    optional: AbstractSet[Reads] = frozenset()
    models: Mapping[str, tuple[Verb, ...]] = field(default_factory=dict)
    lm: str = ""
    suggested: tuple[str, ...] = ()
    unnamed: AbstractSet[str] = frozenset()
    separate: AbstractSet[str] = frozenset()
    roles: tuple[str, ...] = ()
    control: str = ""
    data: Literal["none", "optional", "needed"] = "optional"
    imitates: bool = False
    changeable: tuple[str, ...] = ()

    @property
    def config_class(self) -> type[Any]:
        """The dataclass of the method's options."""
        return self.agent_class.config_class

    @property
    def prefix(self) -> str:
        """Prefix of the method's options in a comparison of several methods."""
        return re.sub(r"[^\w-]", "-", self.name)

    @property
    def takes_lm(self) -> bool:
        """True if the method has the option ``--lm``."""
        return "lm" in self.models or "lm" in self.config_class.__dataclass_fields__

    def specs(self, options: Any, lm: str) -> dict[str, str]:
        """Return the spec of each model that the method uses, by the name of the option.

        Args:
            options: The method's options.
            lm: The spec of ``--lm``; empty if there is none.

        Raises:
            UsageError: if the user must name a model; the message suggests some that fit.
        """
        specs: dict[str, str] = {}
        for name in self.models:
            spec = getattr(options, name, "")
            if not spec and name not in self.separate:
                spec = lm or self.lm
                # What may stay empty does: a decision model guides a search, and cannot also formalise.
                if spec and name != "lm" and name in self.unnamed and not self.can_fill(name, spec):
                    spec = ""
            specs[name] = str(spec)
        if not specs.get("lm", "-") and "lm" not in self.unnamed:
            such = " or ".join(self.suggested or ("hf:<name or folder>",))
            raise UsageError(f"{self.name} needs a language model: name one with --lm, such as {such}.")
        return {name: spec for name, spec in specs.items() if spec}

    def can_fill(self, name: str, spec: str) -> bool:
        """Return whether the model of a spec supports a kind of request that the option ``name`` needs."""
        if spec.partition("?")[0] == "uniform":
            return True
        return bool(check_spec(spec).verbs & set(self.models[name]))

    def build(self, config: Any, models: Mapping[str, LanguageModel], **parts: Any) -> Agent:
        """Build the agent by :meth:`hunch.core.Agent.build`, with other parts that ``hunch.runs`` loaded.

        Raises:
            UsageError: if a model supports none of the kinds of request that the method can use, or the
                class does not write what an agent must.
        """
        fillings = {name: models[name] for name in self.models if name in models}
        for name, model in fillings.items():
            verbs = self.models[name]
            if model.name != "uniform" and not set(verbs) & model.verbs:
                needs = " or ".join(verbs)
                raise UsageError(
                    f"{self.name} needs a model that can {needs} as --{name}; {model.name} cannot."
                )
        lacking = sorted(self.agent_class.__abstractmethods__)
        if lacking:
            raise UsageError(
                f"{self.agent_class.__name__} is not a whole agent: it has no {', '.join(lacking)}."
            )
        return self.agent_class.build(config, fillings, **parts)
