"""RAIN: a frozen model writes, judges what it is writing, and rewinds; no weight changes.

Algorithm (Li et al., "RAIN: Your Language Models Can Align Themselves without Finetuning", ICLR 2024)::

    node  <- the empty text
    until the budget of tokens is spent
        from node, walk down by  arg max  q + c p sqrt(visits of the parent) / (1 + visits)
        where fewer than branches pieces were drawn, or all are bad, write the rest; its start is a piece
        v  <- the judge's verdict on the whole text, asked in both orders: -1, 0 or 1
        q of all nodes on the way  <- mean of their v
        node  <- its most visited piece, once that was visited often enough and is good, after tries not bad
    the answer is the text of the highest verdict below node

p is the share of draws that gave a piece. Several answers are searched for in parallel. The judge may be
the writer itself (paper) or another model. Control: ``search=best`` writes whole texts with as many tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np

from hunch.core import State, UsageError
from hunch.lm import choose
from hunch.lm.base import LanguageModel
from hunch.lm.scoring.choose import extended
from hunch.methods.decode.best_of_n import METHOD as BEST_OF_N
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import NonNegativeFloat, PositiveInt
from hunch.rl.policy import Decision
from hunch.roles.policy.settings import Start
from hunch_contrib.tune.constitutional import question

ASK: Final = "\nDoes the answer keep the principle?"
Search: TypeAlias = "Generator[str, tuple[Decision, float], Decision]"
"""A search: yields a beginning, receives the whole text with its verdict, and returns the answer."""


@dataclass(frozen=True, kw_only=True)
class RAINConfig(TextConfig):
    """Settings of search with self-evaluation and rewind."""

    start: Start = "weights"
    """Initial weights: those of the model, the same with shuffled vocabulary, or random. The last two are
    controls."""
    judge: str = "uniform"
    """Model that judges whether an answer follows the principle (paper: the writer itself)."""
    principle: str = "The answer does well what was asked."
    """Statement about the answer whose truth the judge assesses."""
    search: Literal["rain", "best"] = "rain"
    """rain, or best: its control, which writes whole texts and takes the first with the best verdict."""
    budget: PositiveInt = 128
    """Tokens per answer, after which the search ends (ours; paper: 50 searches per piece)."""
    piece: PositiveInt = 4
    """Length of a piece in words (ours; paper: 1, 2, 4, then 10 tokens)."""
    branches: PositiveInt = 3
    """Maximum number of different pieces that may follow a partial answer (ours; paper: 10)."""
    explore: NonNegativeFloat = 2.0
    """Constant c of the search: weight of likely pieces that were seldom visited (paper)."""
    visits: PositiveInt = 3
    """Visits after which a piece is kept if its mean verdict is above 0.8 (ours; paper: 7)."""
    tries: PositiveInt = 8
    """Visits of a partial answer after which a mean verdict above 0 is enough (ours; paper: 50)."""


@dataclass
class Node:
    """A beginning of an answer, with the sum of the verdicts on its continuations and the best of these."""

    text: str = ""
    draws: int = 0
    total: float = 0.0
    visits: int = 0
    best: tuple[float, Decision] | None = None
    children: dict[str, Node] = field(default_factory=dict)

    def add(self, value: float, made: Decision) -> None:
        """Count a verdict on a whole text that begins like this."""
        self.visits, self.total = self.visits + 1, self.total + value
        if self.best is None or value > self.best[0]:
            self.best = value, made

    @property
    def q(self) -> float:
        """Mean of the verdicts, from -1 to 1."""
        return self.total / max(1, self.visits)

    def known(self, branches: int) -> bool:
        """Return whether enough different pieces follow this beginning, and one of them is not bad."""
        own = self.children.values()
        return sum(node.draws for node in own) >= branches and max(node.q for node in own) >= 0

    def child(self, c: float) -> Node:
        """Return the piece with the largest search score, where the search goes on."""
        drawn = sum(own.draws for own in self.children.values())

        def score(own: Node) -> float:
            return own.q + c * own.draws / drawn * math.sqrt(self.visits) / (1 + own.visits)

        return max(self.children.values(), key=score)


class RAIN(TextAgent):
    """The agent of RAIN; arguments as for :class:`~hunch.methods.decode.best_of_n.BestOfN`."""

    config_class: ClassVar[type[Any]] = RAINConfig
    saved = ("rng",)

    def __init__(self, config: Any = None, judge: LanguageModel | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        if judge is None:
            raise UsageError("rain needs a model that says whether answers are good: name one as judge.")
        self.judging, self.models = judge, {**self.models, "judge": judge}

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> RAIN:
        """Make the agent with its judge."""
        return cls(config, models.get("judge"))

    def learn(self) -> dict[str, float]:
        """Do nothing: no weight is trained."""
        return {}

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Search for an answer to each state; the requests of all searches are answered in one batch."""
        seeds = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(states))]
        going = [self.search() for _ in states]
        wanted = {i: next(own) for i, own in enumerate(going)}
        found: dict[int, Decision] = {}
        while wanted:
            own = [states[i] for i in wanted]
            texts = self.completed(own, list(wanted.values()), [seeds[i] for i in wanted])
            values = self.verdicts(own, [made.text for made in texts])
            for i, made, value in zip(list(wanted), texts, values, strict=True):
                try:
                    wanted[i] = going[i].send((made, value))
                except StopIteration as end:
                    found[i] = end.value
                    del wanted[i]
        return [found[i] for i in range(len(states))]

    def search(self) -> Search:
        """Search for the answer to one state."""
        c, spent, node = self.config, 0, Node()
        while spent < c.budget:
            path = [node]
            while c.search == "rain" and path[-1].known(c.branches):
                path.append(path[-1].child(c.explore))
            start = path[-1].text
            made, value = yield start
            spent += len(made.tokens)
            if c.search == "rain" and (
                piece := re.match(rf"(?:\s*\S+){{{c.piece}}}", made.text[len(start) :])
            ):
                path.append(path[-1].children.setdefault(piece[0], Node(start + piece[0])))
                path[-1].draws += 1
            for own in path:
                own.add(value, made)
            kept = max(node.children.values(), key=lambda own: own.visits, default=node)
            if kept.q > 0.8 * (node.visits < c.tries) and kept.visits >= c.visits:
                node = kept
        assert node.best is not None
        return node.best[1]

    def completed(
        self, states: Sequence[State], starts: Sequence[str], rngs: Sequence[np.random.Generator]
    ) -> list[Decision]:
        """Write the rest after each beginning; the decisions count only the new tokens."""
        prompts = [
            extended(self.policy.prompt(state), f" {start}" if start else "")
            for state, start in zip(states, starts, strict=True)
        ]
        c = self.config
        made = self.lm.write(prompts, rngs, max_tokens=c.max_tokens, temperature=c.temperature)
        whole = [f"{a} {b.text.strip()}" if a else b.text.strip() for a, b in zip(starts, made, strict=True)]
        return [Decision(text, *b[1:]) for text, b in zip(whole, made, strict=True)]

    def verdicts(self, states: Sequence[State], texts: Sequence[str]) -> list[float]:
        """Return 1 where the judge says yes in both orders of the options, -1 where it says no, else 0."""
        asked = [
            question(s, text, self.config.principle) + ASK for s, text in zip(states, texts, strict=True)
        ]
        n, orders = len(asked), (("Yes", "No"), ("No", "Yes"))
        options = [own for own in orders for _ in asked]
        found = choose(self.judging, asked * 2, options, samples=1)
        signs = [np.sign(own.probabilities[int(i >= n)] - 0.5) for i, own in enumerate(found)]
        return [float(int((signs[i] + signs[i + n]) / 2)) for i in range(n)]

    def judge(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the mean verdict on answers."""
        return {"verdict": float(np.mean(self.verdicts(states, [own.text for own in decisions])))}


METHOD = replace(
    BEST_OF_N,
    name="rain",
    agent_class=RAIN,
    summary="a frozen model writes, judges what it is writing, and rewinds",
    paper="Li et al., RAIN: Your Language Models Can Align Themselves without Finetuning, ICLR 2024",
    roles=("policy", "judge"),
    models={"judge": ("score", "label", "generate")},
    control="whole texts with as many tokens",
    changeable=("search", "budget", "principle", "explore", "temperature"),
)
