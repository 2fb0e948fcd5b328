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

    def add(self, value: float, answer: Decision) -> None:
        """Count a verdict on a whole text that begins like this."""
        self.visits += 1
        self.total += value
        if self.best is None or value > self.best[0]:
            self.best = value, answer

    @property
    def q(self) -> float:
        """Mean of the verdicts, from -1 to 1."""
        return self.total / max(1, self.visits)

    def known(self, branches: int) -> bool:
        """Return whether enough different pieces follow this beginning, and one of them is not bad."""
        pieces = self.children.values()
        return sum(piece.draws for piece in pieces) >= branches and max(piece.q for piece in pieces) >= 0

    def child(self, c: float) -> Node:
        """Return the piece with the largest search score, where the search goes on."""
        draws = sum(piece.draws for piece in self.children.values())

        def score(piece: Node) -> float:
            # q + c p sqrt(visits of the parent) / (1 + visits)
            p = piece.draws / draws
            return piece.q + c * p * math.sqrt(self.visits) / (1 + piece.visits)

        return max(self.children.values(), key=score)


class RAIN(TextAgent):
    """The agent of RAIN; arguments as for :class:`~hunch.methods.decode.best_of_n.BestOfN`."""

    config_class: ClassVar[type[Any]] = RAINConfig
    saved = ("rng",)

    def __init__(self, config: Any = None, judge: LanguageModel | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        if judge is None:
            raise UsageError("rain needs a model that says whether answers are good: name one as judge.")
        self.judging = judge
        self.models = {**self.models, "judge": judge}

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> RAIN:
        """Make the agent with its judge."""
        return cls(config, models.get("judge"))

    def learn(self) -> dict[str, float]:
        """Do nothing: no weight is trained."""
        return {}

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Search for an answer to each state; the requests of all searches are answered in one batch."""
        rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(states))]
        searches = [self.search() for _ in states]
        starts = {i: next(search) for i, search in enumerate(searches)}  # of the searches that go on
        answers: dict[int, Decision] = {}
        while starts:
            running = list(starts)
            own_states = [states[i] for i in running]
            texts = self.completed(own_states, list(starts.values()), [rngs[i] for i in running])
            values = self.verdicts(own_states, [decision.text for decision in texts])
            for i, decision, value in zip(running, texts, values, strict=True):
                try:
                    starts[i] = searches[i].send((decision, value))
                except StopIteration as end:
                    answers[i] = end.value
                    del starts[i]
        return [answers[i] for i in range(len(states))]

    def search(self) -> Search:
        """Search for the answer to one state."""
        c = self.config
        first_piece = re.compile(rf"(?:\s*\S+){{{c.piece}}}")
        spent = 0
        node = Node()
        while spent < c.budget:
            # Walk down by the search score, to a beginning with too few pieces, or bad ones only.
            path = [node]
            while c.search == "rain" and path[-1].known(c.branches):
                path.append(path[-1].child(c.explore))

            # Write the rest; its first words are a piece. The judge gives the whole text a verdict.
            leaf = path[-1]
            answer, value = yield leaf.text
            spent += len(answer.tokens)
            piece = first_piece.match(answer.text[len(leaf.text) :]) if c.search == "rain" else None
            if piece:
                child = leaf.children.setdefault(piece[0], Node(leaf.text + piece[0]))
                child.draws += 1
                path.append(child)

            # q of all nodes on the way: the mean of their verdicts.
            for visited in path:
                visited.add(value, answer)

            # Keep the most visited piece if it is good, or not bad after many tries.
            most_visited = max(node.children.values(), key=lambda child: child.visits, default=node)
            good_enough = 0.8 if node.visits < c.tries else 0.0
            if most_visited.q > good_enough and most_visited.visits >= c.visits:
                node = most_visited
        assert node.best is not None
        _, answer = node.best
        return answer

    def completed(
        self, states: Sequence[State], starts: Sequence[str], rngs: Sequence[np.random.Generator]
    ) -> list[Decision]:
        """Write the rest after each beginning; the decisions count only the new tokens."""
        prompts = [
            extended(self.policy.prompt(state), f" {start}" if start else "")
            for state, start in zip(states, starts, strict=True)
        ]
        c = self.config
        written = self.lm.write(prompts, rngs, max_tokens=c.max_tokens, temperature=c.temperature)
        decisions = []
        for start, rest in zip(starts, written, strict=True):
            text = f"{start} {rest.text.strip()}" if start else rest.text.strip()
            decisions.append(Decision(text, *rest[1:]))
        return decisions

    def verdicts(self, states: Sequence[State], texts: Sequence[str]) -> list[float]:
        """Return 1 where the judge says yes in both orders of the options, -1 where it says no, else 0."""
        prompts = [
            question(state, text, self.config.principle) + ASK
            for state, text in zip(states, texts, strict=True)
        ]
        n = len(prompts)
        options = [("Yes", "No")] * n + [("No", "Yes")] * n
        choices = choose(self.judging, prompts * 2, options, samples=1)
        verdicts = []
        for yes_first, no_first in zip(choices[:n], choices[n:], strict=True):
            signs = np.sign(yes_first.probabilities[0] - 0.5) + np.sign(no_first.probabilities[1] - 0.5)
            verdicts.append(float(int(signs / 2)))  # 0 unless both agree
        return verdicts

    def judge(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the mean verdict on answers."""
        return {"verdict": float(np.mean(self.verdicts(states, [decision.text for decision in decisions])))}


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
