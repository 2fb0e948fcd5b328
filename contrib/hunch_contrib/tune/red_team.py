"""Red teaming: a model learns to write requests that make another model fail.

Algorithm (Perez et al., "Red Teaming Language Models with Language Models", EMNLP 2022)::

    tries  <- requests of the model as it is                                       stage=zero-shot
    hits   <- requests with a positive reward
    few-shot:    write after randomly drawn hits
    supervised:  ascend on the log-likelihood of the hits
    rl:          supervised, and then A2C on  reward - kl KL(pi || supervised model)

The environment asks the target, and rewards failures (``hunch/Attack-v0``, or another environment). kl
keeps requests diverse: report the success rate with the metric ``distinct``. Control: zero-shot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import State, Transition, UsageError, World
from hunch.lm.speech import text_of
from hunch.methods.tune.agent import WritingAgent
from hunch.methods.tune.recorded import examples
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.rl.policy import Decision
from hunch.rl.settings import UpdateConfig
from hunch_contrib.tune.a2c_text import METHOD as A2C_METHOD
from hunch_contrib.tune.a2c_text import A2CTextConfig, a2c


@dataclass(frozen=True, kw_only=True)
class RedTeamConfig(A2CTextConfig):
    """Settings of red teaming."""

    stage: Literal["zero-shot", "few-shot", "supervised", "rl"] = "rl"
    """Last stage of the training; every stage begins with requests of the untrained model (zero-shot)."""
    tries: PositiveInt = 1_024
    """Requests of the untrained model, before training (ours; paper: 500,000)."""
    shots: PositiveInt = 1
    """With few-shot: number of hits in a prompt (ours; paper: 5)."""
    updates: NonNegativeInt = 30
    """With supervised or rl: updates on 64 hits each (our choice)."""
    rate: PositiveFloat = 1e-3
    """With supervised or rl: Adam learning rate, which falls linearly to 0 (our choice)."""
    kl: NonNegativeFloat = 0.1
    """With rl: weight of the KL divergence from the supervised model (our choice; paper: 0.3 to 0.4)."""


class RedTeam(WritingAgent):
    """The agent of red teaming; arguments as for :class:`~hunch.methods.tune.agent.WritingAgent`."""

    config_class: ClassVar[type[Any]] = RedTeamConfig
    saved = ("words", "hits", "tried", "settled", *WritingAgent.saved)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that the settings allow learning, and that a control is one."""
        super().check(config, specs)
        if config.shuffle:
            raise UsageError(
                "Hits are chosen by their true rewards, so shuffle is no control of red-team: compare with "
                "--stage zero-shot, few-shot or supervised."
            )

    @property
    def first_update(self) -> int:
        """Return 0: what is learnt first are the hits among the tries, however many episodes rl takes."""
        return 0

    def objective(self) -> UpdateConfig:
        """Return the objective of the last stage: that of A2C."""
        return a2c(self.config)

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights; a model with a growing vocabulary adds the examples' words."""
        super().begin(world, seed)
        self.hits: list[tuple[Any, ...]] = []  # the plain state, and the fields of the decision
        self.tried = 0
        self.settled: dict[str, Any] | None = None
        self.lm.take(
            part for example in examples(world) for part in (example.state.observation, example.text)
        )

    @property
    def trying(self) -> bool:
        """True until enough requests of the untrained model were tried."""
        return bool(self.tried < self.config.tries)

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write requests; with few-shot, after hits in the prompt."""
        return super().decide([self.shown(state, rng) for state in states], rng)

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write requests for a player; with few-shot, after hits in the prompt."""
        return super().write([self.shown(state, rng) for state in states], rng)

    def shown(self, state: State, rng: np.random.Generator) -> State:
        """Return a state whose observation has hits before its last word; only for stage=few-shot."""
        if self.config.stage != "few-shot" or self.trying:
            return state
        rows = rng.integers(len(self.hits), size=self.config.shots)
        hits = [self.hits[i][1].strip() for i in rows]
        head, _, mark = state.observation.rpartition(" ")
        shots = [f"{mark} {hit}" for hit in hits]
        return replace(state, observation=" ".join([head, *shots, mark]).strip())

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the divergence from the reference; none with few-shot, where the prompt changes it alone."""
        return {} if self.config.stage == "few-shot" else super().text_metrics(states, decisions)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the hits among the first requests, and later the episodes for the updates."""
        if self.trying or self.config.stage == "rl":
            super().observe(transitions)
        if self.trying:
            steps = [step for [episode] in self.kept.whole() for step in episode]
            self.kept.clear()
            self.hits += [(t.state.plain(), *decision) for t, decision in steps if t.reward > 0]
            self.tried += len(transitions)

    def learn(self) -> dict[str, float]:
        """Train on the hits after enough requests; later make the updates of A2C.

        Raises:
            UsageError: if no request had a positive reward, and the stage learns from those that had.
        """
        if self.trying or self.config.stage == "zero-shot":
            return {}
        if not self.hits:
            raise UsageError(
                f"The target never failed in {self.tried:,} tries, so there is nothing to learn."
            )
        if self.config.stage in ("supervised", "rl") and self.settled is None:
            return self.imitate()
        return super().learn() if self.config.stage == "rl" else {}

    def imitate(self) -> dict[str, float]:
        """Maximise the likelihood of the hits; the resulting model becomes the reference."""
        from hunch.lm.training import Learner  # loads torch

        c = self.config
        prompts = [self.policy.prompt(State.of(state)) for state, *_ in self.hits]
        decisions = [Decision(*decision) for _, *decision in self.hits]
        known = []
        for prompt, decision in zip(prompts, decisions, strict=True):
            known += [text_of(prompt), decision.text]
        self.lm.take(known)  # a growing vocabulary adds their words
        learner = Learner.adam(self.lm.parameters())
        loss = 0.0
        for update in range(c.updates):
            rows = self.rng.integers(len(self.hits), size=64)
            # A request that was cut is learnt as it was drawn, without an end.
            drawn = [prompts[i] for i in rows], [decisions[i] for i in rows]
            loss = self.learn_likelihood(*drawn, learner, c.rate * (1 - update / c.updates))
        self.settled = self.policy.set_reference()
        return {"loss": loss, "hits": len(self.hits) / self.tried}

    def records(self) -> list[dict[str, Any]]:
        """Return the hits among the first requests, once all were tried."""
        return [] if self.trying else [{"request": text} for _, text, *_ in self.hits]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.policy.reference_state = self.settled


METHOD = replace(
    A2C_METHOD,
    name="red-team",
    agent_class=RedTeam,
    summary="a model learns to write requests that make another model fail",
    paper="Perez et al., Red Teaming Language Models with Language Models, EMNLP 2022",
    environments="free text of one step that pays what a target does wrong",
    control="requests of the model as it is, or after hits",
)
