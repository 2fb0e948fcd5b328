"""The published systems, one file each, grouped by the role that the language model fills.

A method is a module with one config dataclass, one agent class, and ``build(config, lm)`` that joins them. It
is registered here by name, so that listing the methods imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hunch.core import Agent, UsageError, suggest
from hunch.lm.base import LanguageModel, Verb


@dataclass(frozen=True, slots=True)
class Method:
    """What is known of a method before it is imported.

    Attributes:
        name: As typed on the command line.
        module: Where it lives.
        agent: Name of its agent class, offered as ``hunch.methods.<agent>``.
        config: Name of its config dataclass.
        summary: One line.
        paper: The source.
        roles: The roles that the language model fills; empty for a baseline.
        leaf: Its place in "The RL/LLM Taxonomy Tree".
        verbs: It needs a model with at least one of these; empty if it asks none.
        environments: The kinds of environment that it serves.
        offline: Whether it learns from recorded data instead of steps of its own.
        control: What the same loop is called when an uninformed model fills the role; empty where there is
            no such control to run.
    """

    name: str
    module: str
    agent: str
    config: str
    summary: str
    paper: str
    roles: tuple[str, ...]
    leaf: str
    verbs: tuple[Verb, ...]
    environments: str
    control: str = ""
    offline: bool = False

    @property
    def config_class(self) -> type[Any]:
        """The method's options."""
        return getattr(import_module(self.module), self.config)  # type: ignore[no-any-return]

    @property
    def build(self) -> Callable[[Any, LanguageModel], Agent]:
        """Make the agent from its options and a language model."""
        return import_module(self.module).build  # type: ignore[no-any-return]

    def check(self, lm: LanguageModel) -> None:
        """Refuse a model that cannot serve.

        Raises:
            UsageError: if the model has none of the verbs that the method can use.
        """
        if self.verbs and lm.name != "uniform" and not set(self.verbs) & lm.verbs:
            needs = " or ".join(self.verbs)
            raise UsageError(f"{self.name} needs a model that can {needs}; {lm.name} cannot.")


_YAN = "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025"
_BROOKS = "Brooks et al., Large Language Models can Implement Policy Iteration, NeurIPS 2023"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="dqn",
            module="hunch.methods.prior.dqn",
            agent="DQN",
            config="QLearningConfig",
            summary="Q-learning over all admissible actions; the baseline of dqn-prior",
            paper="Mnih et al., Human-level control through deep reinforcement learning, Nature 2015",
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="any text environment",
        ),
        Method(
            name="dqn-prior",
            module="hunch.methods.prior.dqn_prior",
            agent="DQNPrior",
            config="DQNPriorConfig",
            summary="Q-learning confined to k actions that a language model proposes",
            paper=_YAN,
            roles=("action prior",),
            leaf="LLM4RL / policy",
            verbs=("generate", "embed", "score", "label"),
            environments="any text environment",
            control="random k",
        ),
        Method(
            name="zero-shot",
            module="hunch.methods.prior.zero_shot",
            agent="ZeroShot",
            config="ZeroShotConfig",
            summary="act by the language model's prior alone, without learning",
            paper=_YAN,
            roles=("action prior",),
            leaf="LLM4RL / policy",
            verbs=("generate", "embed", "score", "label"),
            environments="any text environment",
        ),
        Method(
            name="cql-prior",
            module="hunch.methods.prior.cql_prior",
            agent="CQLPrior",
            config="CQLPriorConfig",
            summary="conservative Q-learning from recorded data, over k proposals of a model",
            paper=_YAN,
            roles=("action prior",),
            leaf="LLM4RL / policy",
            verbs=("generate", "embed", "score", "label"),
            environments="any text environment, from recorded data",
            offline=True,
            control="random k",
        ),
        Method(
            name="cql",
            module="hunch.methods.prior.cql",
            agent="CQL",
            config="CQLConfig",
            summary="conservative Q-learning from recorded data; the baseline of cql-prior",
            paper="Kumar et al., Conservative Q-Learning for Offline RL, NeurIPS 2020",
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="any text environment, from recorded data",
            offline=True,
        ),
        Method(
            name="offline-dqn-prior",
            module="hunch.methods.prior.offline_dqn_prior",
            agent="OfflineDQNPrior",
            config="OfflineDQNPriorConfig",
            summary="dqn-prior on recorded data",
            paper=_YAN,
            roles=("action prior",),
            leaf="LLM4RL / policy",
            verbs=("generate", "embed", "score", "label"),
            environments="any text environment, from recorded data",
            offline=True,
            control="random k",
        ),
        Method(
            name="offline-dqn",
            module="hunch.methods.prior.offline_dqn",
            agent="OfflineDQN",
            config="QConfig",
            summary="dqn on recorded data",
            paper="Mnih et al., Human-level control through deep reinforcement learning, Nature 2015",
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="any text environment, from recorded data",
            offline=True,
        ),
        Method(
            name="bc",
            module="hunch.methods.prior.bc",
            agent="BC",
            config="BCConfig",
            summary="behaviour cloning: take the recorded actions",
            paper="Pomerleau, ALVINN, NeurIPS 1988",
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="any text environment, from recorded data",
            offline=True,
        ),
        Method(
            name="bc-lm",
            module="hunch.methods.prior.bc_lm",
            agent="BCLM",
            config="BCLMConfig",
            summary="behaviour cloning by training a language model to write the recorded actions",
            paper=_YAN,
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="any text environment, from recorded data",
            offline=True,
        ),
        Method(
            name="icpi",
            module="hunch.methods.in_context.icpi",
            agent="ICPI",
            config="ICPIConfig",
            summary="policy iteration by rollouts that a language model imagines from examples",
            paper=_BROOKS,
            roles=("world model", "in-context policy"),
            leaf="LLM4RL / world model and policy",
            verbs=("generate",),
            environments="the domains of ICPI",
            control="no model",
        ),
        Method(
            name="icpi-no-argmax",
            module="hunch.methods.in_context.no_argmax",
            agent="NoArgMax",
            config="ICPIConfig",
            summary="imitate the own successes by examples, without planning; a baseline of icpi",
            paper=_BROOKS,
            roles=("in-context policy",),
            leaf="LLM4RL / policy",
            verbs=("generate",),
            environments="the domains of ICPI",
        ),
        Method(
            name="matching",
            module="hunch.methods.in_context.matching",
            agent="Matching",
            config="PlanConfig",
            summary="ICPI by looking up what was seen before; a baseline of icpi",
            paper=_BROOKS,
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="the domains of ICPI",
        ),
        Method(
            name="tabular-q",
            module="hunch.methods.in_context.tabular_q",
            agent="TabularQ",
            config="TabularQConfig",
            summary="Q-learning in a table; a baseline of icpi",
            paper="Watkins, Learning from Delayed Rewards, 1989; schedule of Brooks et al., NeurIPS 2023",
            roles=(),
            leaf="baseline",
            verbs=(),
            environments="the domains of ICPI",
        ),
    )
}


def find(name: str) -> Method:
    """Return the method of that name.

    Raises:
        UsageError: if there is none, naming near matches.
    """
    if name in METHODS:
        return METHODS[name]
    raise UsageError(f"There is no method called {name!r}; {suggest(name, METHODS.keys())}")


def __getattr__(name: str) -> Any:
    for method in METHODS.values():
        if name in (method.agent, method.config):
            return getattr(import_module(method.module), name)
    raise AttributeError(f"module 'hunch.methods' has no attribute {name!r}")
