"""Zero-shot: act by the language model alone, and learn nothing::

    a  ~  p_LM(. | s)

Where actions are listed, the model is an action prior, and a is drawn from it. A method with a prior must do
better than this for its learning to count. Where any text is an action, the model writes it: a game of
TextArena, an environment of OpenEnv, the user's prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import Agent, EvidenceLevel, Explanation, State, Transition, UsageError, World, wording_of
from hunch.envs.invalid import is_invalid
from hunch.lm.asking import rounds
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import note_way
from hunch.lm.prompts import as_prompt
from hunch.lm.speaker import Speaker, Turn
from hunch.lm.ways import NATIVE, WRITTEN
from hunch.methods.method import PROPOSES, Method
from hunch.methods.settings import configure, filled, models_of
from hunch.ranges import LATER, NonNegativeInt
from hunch.roles.prior.base import ActionPrior
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.roles.prior.language import MappedPrior


@dataclass(frozen=True, kw_only=True)
class ZeroShotConfig:
    """Settings of the zero-shot agent."""

    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior. Where any text is an action, only the settings of requests
    count: prompt, max_tokens, temperature, stop, effort, patience."""
    turns: NonNegativeInt | None = field(default=None, metadata=LATER)
    """Where any text is an action: number of earlier turns of the episode in the prompt. Default: all; what
    the model cannot read goes, the oldest first."""
    calls: Literal["auto", "native", "text"] = field(default="auto", metadata=LATER)
    """Where tool calls are actions: by the server's own calls of tools, or as JSON in the answer's text.
    auto: by those of the server where it has them (only chat models of openai: do)."""


class ZeroShot(Agent):
    """The agent that draws each action from the model.

    Args:
        prior: Proposes actions where they are listed; frozen.
        config: Settings with which the prior was made; ``options`` change single ones.
        lm: The model that writes where any text is an action; None if there is no such environment.
    """

    config_class: ClassVar[type[Any]] = ZeroShotConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "fallbacks", "past", "invalid")

    def __init__(
        self,
        prior: ActionPrior,
        config: ZeroShotConfig | None = None,
        *,
        lm: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        self.config = configure(type(self), config, options)
        self.prior = filled(prior, "propose")
        self.models = models_of(lm=prior)
        self.lm = lm
        self._speaker: Speaker | None = None  # made when it is first needed: most models need none
        self.tools: tuple[str, ...] = ()  # those of the environment, which it learns when a world begins

    @classmethod
    def build(cls, config: ZeroShotConfig, models: Mapping[str, LanguageModel]) -> ZeroShot:
        """Make the prior from the model ``lm``."""
        return cls(build_prior(config.prior, models["lm"]), config, lm=models["lm"])

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior."""
        return self.prior.evidence

    @property
    def wording(self) -> str:
        """The version of the prior's prompts."""
        return wording_of(self.prior)

    def begin(self, world: World, seed: int) -> None:
        """Reset the random generator, and forget the episodes."""
        self.rng = np.random.default_rng(seed)
        self.fallbacks: list[float] = []
        self.invalid: list[float] = []  # 1 for each written action that the environment refused, else 0
        self.past: dict[int, list[Turn]] = {}  # by stream: the turns of the episode, oldest first
        self.tools = world.tool_schemas
        self._speaker = None  # it depends on the tools

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw one action from p(a|s) for each state, or write one where any text is an action."""
        if any(state.actions is None for state in states):
            return self._write(states)
        actions = [""] * len(states)
        for places in self._rounds(states):
            asked = [states[place] for place in places]
            for place, proposal in zip(places, self.prior.propose(asked, 1, self.rng), strict=True):
                (index,) = proposal.indices  # one draw is one candidate
                actions[place] = states[place].options[int(index)]
                if not np.isnan(proposal.fallbacks):  # nan if the prior always names an action
                    self.fallbacks.append(proposal.fallbacks)
        return actions

    def _rounds(self, states: Sequence[State]) -> list[Sequence[int]]:
        """Return the places of the states in rounds, which are asked about in turn.

        A prior that knows its distribution draws anew for each state. One whose answers are written gives
        equal prompts of a request the same answer: parallel episodes that begin alike would be copies of one
        episode, and count as several.
        """
        if not isinstance(self.prior, MappedPrior):
            return [range(len(states))]
        return [*rounds([as_prompt(self.prior.prompt(state)) for state in states])]

    def _write(self, states: Sequence[State]) -> list[str]:
        turns = [self._turns(state) for state in states]
        if self.config.prior.blank:
            read = [aimless(replace(s, history=tuple(past))) for s, past in zip(states, turns, strict=True)]
            states, turns = read, [list(state.history) for state in read]
        actions = self.speaker.write(states, turns, int(self.rng.integers(2**31)))
        self.fallbacks += [float(not action) for action in actions]
        return actions

    def _turns(self, state: State) -> list[Turn]:
        """Return the earlier turns that the prompt shows: those of the environment, or the agent's own."""
        turns = [*(state.history or self.past.get(state.stream, ()))]
        kept = len(turns) if self.config.turns is None else self.config.turns
        return turns[max(0, len(turns) - kept) :]

    @property
    def speaker(self) -> Speaker:
        """Writes actions.

        Raises:
            UsageError: if the agent has no model, or one that cannot write.
        """
        if self._speaker is None:
            if self.lm is None or "generate" not in self.lm.verbs:
                named = "this agent was made without a model" if self.lm is None else f"{self.lm.name} cannot"
                raise UsageError(
                    f"Any text is an action here, so zero-shot needs a model that writes as --lm; {named}."
                )
            self._speaker = Speaker(self.lm, self.config.prior, tools=self._native_tools(self.lm))
        return self._speaker

    def _native_tools(self, lm: LanguageModel) -> tuple[str, ...]:
        """Return the tools for the server's own calls; none if calls are written as text.

        Raises:
            UsageError: if native calls are demanded, and the model or the environment has none.
        """
        if self.config.calls == "text":
            return ()
        native = bool(self.tools) and "tools" in getattr(lm, "takes", frozenset())
        if self.config.calls == "native" and not native:
            problem = f"{lm.name} has no calls of tools"
            if not self.tools:
                problem = "the actions of this environment are no calls of tools"
            raise UsageError(f"calls=native is set, but {problem}: use --calls auto.")
        if self.tools:
            note_way(lm, "policy", NATIVE if native else WRITTEN, automatic=self.config.calls == "auto")
        return self.tools if native else ()

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Remember the turns of an episode where any text is an action; nothing where actions are listed."""
        for transition in transitions:
            state = transition.state
            if state.actions is not None:
                continue
            self.invalid.append(float(is_invalid(transition)))
            self.past.setdefault(state.stream, []).append((state.observation, transition.action))
            if transition.done:
                del self.past[state.stream]

    def learn(self) -> dict[str, float]:
        """Return metrics; nothing is learnt.

        ``fallback_rate`` is the share of answers that named no action, or, where any text is an action, that
        were empty. ``invalid_rate`` is the share of written actions that the environment refused.
        """
        metrics = {}
        if self.fallbacks:
            metrics["fallback_rate"] = float(np.mean(self.fallbacks))
        if self.invalid:
            metrics["invalid_rate"] = float(np.mean(self.invalid))
        self.fallbacks = []
        self.invalid = []
        return metrics

    def figures(self) -> dict[str, float]:
        """Return the share of refused actions for an evaluation; nothing where actions are listed."""
        return {"invalid_rate": float(np.mean(self.invalid))} if self.invalid else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; one of an earlier version knows no written actions."""
        super().load_state_dict({"past": {}, "invalid": [], **state})

    def player(self, seed: int) -> ZeroShot:
        """Return a player with the same model and a separate random generator."""
        twin = ZeroShot(self.prior, self.config, lm=self.lm)
        twin.begin(World(tool_schemas=self.tools), seed)
        return twin

    def explain(self, state: State) -> Explanation:
        """Return the prior, estimated from 32 draws; nothing where any text is an action."""
        if state.actions is None:
            return Explanation()
        (proposal,) = self.prior.propose([state], 32, np.random.default_rng(0))
        prior = np.zeros(len(state.options))
        prior[proposal.indices] = proposal.weights
        return Explanation({"prior": prior}, prior)


METHOD = Method(
    "zero-shot",
    ZeroShot,
    "act by the language model only, without learning",
    "Yan et al., Efficient Reinforcement Learning with Large Language Model Priors, ICLR 2025",
    leaf="LLM4RL / policy",
    acts="any",
    models={"lm": PROPOSES},
    lm="minilm",
    roles=("action prior", "policy"),
    data="none",
    changeable=("prior", "turns", "calls"),
)
