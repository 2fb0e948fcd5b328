"""The row of a method: what the command lists, and what a run has to know before it loads a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel, Verb

if TYPE_CHECKING:
    from hunch.envs.offers import Acts, Reads

PROPOSES: Final[tuple[Verb, ...]] = ("generate", "embed", "score", "label")
"""Verbs of which an action prior needs one."""
ENCODER: Final[Mapping[str, tuple[Verb, ...]]] = {"encoder": ("embed",)}
"""The model of the option ``--encoder``."""


@dataclass(frozen=True, slots=True)
class Method:
    """The row of a method, in its own file under the name ``METHOD``.

    Attributes:
        name: Name on the command line.
        agent_class: Its agent, with its options in ``config_class``, and in ``fixed`` those that define the
            method and are no options of its command, if there are any.
        summary: One line.
        paper: The paper.
        leaf: Its place in "The RL/LLM Taxonomy Tree".
        environments: The kinds of environment that it supports, in words.
        acts: What its actions are; ``any`` for texts where any is allowed, and else for a listed one.
        reads: What it reads besides texts and rewards. An environment that offers less is refused, and only
            methods that read ``raw`` find it in their states.
        optional: Those of ``reads`` that it can do without.
        models: The models that it uses, by the option that holds the spec, each with verbs of which it needs
            at least one.
        lm: Default model of the option ``--lm``: a shipped one. Empty if the user must name one.
        suggested: Models to name in the help: a real one, and the scripted rule of the studies.
        unnamed: Those of ``models`` that it does without where the user names none.
        roles: The roles that the language model of ``--lm`` fills; empty for a baseline.
        control: Name of the control, the same method with an uninformed model; empty if there is none.
        data: Whether it learns from recorded data.
        changeable: Settings that an evaluation may change; they affect the role, not what was learnt.
        files: What to read besides ``core.py`` to understand it, below the package.
    """

    name: str
    agent_class: type[Any]
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
    roles: tuple[str, ...] = ()
    control: str = ""
    data: Literal["none", "optional", "needed"] = "optional"
    changeable: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def config_class(self) -> type[Any]:
        """The method's options."""
        return self.agent_class.config_class  # type: ignore[no-any-return]

    @property
    def fixed(self) -> Mapping[str, Any]:
        """The settings that define it."""
        return getattr(self.agent_class, "fixed", {})

    @property
    def prefix(self) -> str:
        """Prefix of its options in a comparison."""
        return re.sub(r"[^\w-]", "-", self.name)

    @property
    def takes_lm(self) -> bool:
        """True if it has the option ``--lm``."""
        return "lm" in self.models or "lm" in self.config_class.__dataclass_fields__

    def specs(self, options: Any, lm: str) -> dict[str, str]:
        """Return the spec of each model, by the option's name.

        Args:
            options: The method's options.
            lm: The spec of ``--lm``; empty if there is none.

        Raises:
            UsageError: if the user must name a model, with some that can fill the role.
        """
        found = {name: str(getattr(options, name, "") or lm or self.lm) for name in self.models}
        if not found.get("lm", "-") and "lm" not in self.unnamed:
            such = " or ".join(self.suggested or ("hf:<name or folder>",))
            raise UsageError(f"{self.name} needs a language model: name one with --lm, such as {such}.")
        return {name: spec for name, spec in found.items() if spec}

    def check(self, options: Any, lm: str) -> None:
        """Check options by the agent's classmethod ``check(config, specs)``, if it has one."""
        specs, refuse = self.specs(options, lm), getattr(self.agent_class, "check", None)
        if lm and "lm" in self.config_class.__dataclass_fields__:  # the model that is trained
            specs["lm"] = lm
        if refuse:
            refuse(options, specs)

    def build(self, config: Any, models: Mapping[str, LanguageModel], **parts: Any) -> Agent:
        """Build the agent from its options, its models, and other parts that ``hunch.runs`` loaded.

        An agent with a classmethod ``build(config, models, **parts)`` builds itself; otherwise its
        constructor gets ``config``, and the models and parts by name.

        Raises:
            UsageError: if a model has none of the verbs that the method can use.
        """
        own = {name: models[name] for name in self.models if name in models}
        for name, model in own.items():
            verbs = self.models[name]
            if model.name != "uniform" and not set(verbs) & model.verbs:
                needs = " or ".join(verbs)
                raise UsageError(
                    f"{self.name} needs a model that can {needs} as --{name}; {model.name} cannot."
                )
        make = getattr(self.agent_class, "build", None)
        agent: Agent = make(config, own, **parts) if make else self.agent_class(config=config, **own, **parts)
        return agent
