"""The description of a method, available before it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from hunch.core import Agent, UsageError
from hunch.lm.base import LanguageModel, Verb

if TYPE_CHECKING:
    from hunch.envs.offers import Acts, Reads


@dataclass(frozen=True, slots=True)
class Method:
    """The description of a method, available before it is imported.

    Attributes:
        name: Name on the command line.
        agent: ``module:Class`` of its agent, available as ``hunch.methods.<Class>``; a module whose name
            begins with a dot is relative to this package.
        summary: One line.
        paper: The paper.
        leaf: Its place in "The RL/LLM Taxonomy Tree".
        environments: The kinds of environment that it supports, in words.
        acts: What its actions are.
        reads: What it reads besides texts and rewards. An environment that offers less is refused, and only
            methods that read ``raw`` find it in their states.
        optional: Those of ``reads`` that it can do without.
        models: The models that it uses, by the option that holds the spec, each with verbs of which it needs
            at least one.
        lm: Default model of the option ``--lm``; empty if the method works without a model.
        roles: The roles that the language model of ``--lm`` fills; empty for a baseline.
        control: Name of the control, the same method with an uninformed model; empty if there is none.
        data: Whether it learns from recorded data.
        changeable: Settings that an evaluation may change; they affect the role, not what was learnt.
    """

    name: str
    agent: str
    summary: str
    paper: str
    leaf: str = "baseline"
    environments: str = "any text environment"
    acts: Acts = "listed"
    reads: frozenset[Reads] = frozenset()
    optional: frozenset[Reads] = frozenset()
    models: Mapping[str, tuple[Verb, ...]] = field(default_factory=dict)
    lm: str = ""
    roles: tuple[str, ...] = ()
    control: str = ""
    data: Literal["none", "optional", "needed"] = "optional"
    changeable: tuple[str, ...] = ()

    @property
    def home(self) -> str:
        """Full ``module:Class`` of its agent."""
        return f"{__package__}{self.agent}" if self.agent.startswith(".") else self.agent

    @property
    def agent_class(self) -> type[Any]:
        """The agent's class, with its ``config_class`` and ``fixed`` settings."""
        module, name = self.home.split(":")
        return getattr(import_module(module), name)  # type: ignore[no-any-return]

    @property
    def config_class(self) -> type[Any]:
        """The method's options."""
        return self.agent_class.config_class  # type: ignore[no-any-return]

    @property
    def takes_lm(self) -> bool:
        """True if it has the option ``--lm``."""
        return "lm" in self.models or "lm" in self.config_class.__dataclass_fields__

    def build(self, config: Any, models: Mapping[str, LanguageModel], **parts: Any) -> Agent:
        """Build the agent from its options, its models, and other parts that ``hunch.runs`` loaded.

        Raises:
            UsageError: if a model has none of the verbs that the method can use.
        """
        for name, verbs in self.models.items():
            model = models[name]
            if model.name != "uniform" and not set(verbs) & model.verbs:
                needs = " or ".join(verbs)
                raise UsageError(
                    f"{self.name} needs a model that can {needs} as --{name}; {model.name} cannot."
                )
        module = import_module(self.agent_class.__module__)
        agent: Agent = module.build(self.agent_class, config, models, **parts)
        return agent
