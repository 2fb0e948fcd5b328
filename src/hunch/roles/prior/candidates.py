"""The candidates of states: which proposals of a prior a learner may choose, and when they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.core import IntArray, State
from hunch.roles.encoder.features import StateFeatures
from hunch.roles.prior.base import ActionPrior, Proposal

When: TypeAlias = Literal["kept", "visited", "fresh"]


class Arrival(NamedTuple):
    """The number of a state that awaits an action, and its candidates."""

    state: int
    proposal: Proposal


class Candidates:
    """The candidates C^k(s) of states, which are numbered by their features.

    Args:
        prior: Proposes candidates.
        features: Numbers the states.
        k: Draws per state; None for all actions with a positive prior.
        when: When candidates are drawn: once per state, on each arrival in a state, or at each use.

    Attributes:
        kept: Proposals by the number of the state.
        here: The arrivals that await an action, by stream.
        fallbacks: Shares of draws that named no action, since they were last read.
    """

    def __init__(self, prior: ActionPrior, features: StateFeatures, k: int | None, when: When) -> None:
        self.prior, self.features, self.k, self.keeps = prior, features, k, when == "kept"
        self.kept: dict[int, Proposal] = {}
        self.here: dict[int, Arrival] = {}
        self.fallbacks: list[float] = []

    def arrive(self, states: Sequence[State], rng: np.random.Generator) -> list[Arrival]:
        """Number states and return their candidates: stored or new ones, as ``when`` says."""
        here = {i: a for i, s in enumerate(states) if (a := self.here.pop(s.stream, None)) is not None}
        new = [i for i in range(len(states)) if i not in here]
        numbers = self.features.number([states[i] for i in new])
        found = self._proposals([states[i] for i in new], numbers, rng)
        here |= {i: Arrival(n, own) for i, n, own in zip(new, numbers, found, strict=True)}
        return [here[i] for i in range(len(states))]

    def _proposals(
        self, states: Sequence[State], numbers: Sequence[int], rng: np.random.Generator
    ) -> list[Proposal]:
        """Return the candidates of numbered states, with one call of the prior for all that are drawn."""
        known = self.kept if self.keeps else dict[int, Proposal]()
        keys = numbers if self.keeps else range(len(states))
        due = {key: state for key, state in zip(keys, states, strict=True) if key not in known}
        drawn = self.prior.propose(list(due.values()), self.k, rng) if due else []
        known.update(zip(due, drawn, strict=True))
        self.fallbacks += [proposal.fallbacks for proposal in drawn]
        return [known[key] for key in keys]

    def again(self, numbers: IntArray, rng: np.random.Generator) -> list[IntArray]:
        """Return candidates of states that were visited before: stored ones, or new draws."""
        if self.keeps:
            return [self.kept[i].indices for i in numbers]
        states = [self.features.states[i] for i in numbers]
        return [proposal.indices for proposal in self.prior.propose(states, self.k, rng)]

    def drawn(self, states: Sequence[State], rng: np.random.Generator) -> list[Proposal]:
        """Return candidates without storing them: stored ones, or new draws."""
        kept = [self.kept.get(self.features.find(state)) if self.keeps else None for state in states]
        new = [state for state, own in zip(states, kept, strict=True) if own is None]
        drawn = iter(self.prior.propose(new, self.k, rng) if new else ())
        return [next(drawn) if own is None else own for own in kept]

    def state_dict(self) -> dict[str, Any]:
        """Return the state, except that of prior and features."""
        return {
            "kept": [(key, p.indices.tolist(), p.weights.tolist()) for key, p in self.kept.items()],
            "here": [(s, n, p.indices.tolist(), p.weights.tolist()) for s, (n, p) in self.here.items()],
            "fallbacks": list(self.fallbacks),
        }

    def load_state_dict(self, state: Mapping[str, Any], own: bool) -> None:
        """Restore a state; ``own`` is False if it is from another prior, whose proposals are dropped."""
        self.kept = {key: Proposal(np.array(i), np.array(w)) for key, i, w in state["kept"] if own}
        self.here = {s: Arrival(n, Proposal(np.array(i), np.array(w))) for s, n, i, w in state["here"]}
        self.fallbacks = list(state["fallbacks"])
