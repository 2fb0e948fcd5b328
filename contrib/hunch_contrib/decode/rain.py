"""RAIN: a frozen model writes, judges what it is writing, and rewinds; no weight changes.

Algorithm (Li et al., "RAIN: Your Language Models Can Align Themselves without Finetuning", ICLR 2024)::

    node  <- the empty text
    until the budget of tokens is spent, or node is a whole text
        from node, walk down by  arg max  q' + c p sqrt(visits of the parent) / (1 + visits)
        where fewer than branches pieces were drawn, or all are bad, write on; the first words are a piece
        v  <- the judge's verdict on the text up to the next punctuation mark after the piece, asked in both
              orders: -1, 0 or 1
        q of all nodes on the way  <- mean of their v
        node  <- its most visited piece, once that was visited often enough (visits) and its q is above 0.8;
                  after tries visits of node above 0
    the answer follows the most visited pieces from node, and is written to its end

q' is (q + 1) / 2, on a scale from 0 to 1, as in the release. p is the share of draws that gave a piece. Of
pieces with equal visits the one with the larger q counts. Several answers are searched for in parallel. The
judge may be the writer itself (paper) or another model. Control: ``search=best`` writes whole texts with as
many tokens.

Departure: after its maximum number of visits the paper goes on with the most visited piece, whatever its q;
here a piece whose q is not above 0 is not gone on with before the budget is spent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.core import State, UsageError
from hunch.lm import choose
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Message, Prompt
from hunch.lm.scoring.choose import extended
from hunch.methods.decode.best_of_n import METHOD as BEST_OF_N
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import NonNegativeFloat, PositiveInt
from hunch.rl.policy import Decision
from hunch.roles.policy.settings import Start
from hunch_contrib.tune.constitutional import question

ASK: Final = "\nDoes the answer keep the principle?"
MARK: Final = re.compile(r"[.,;:!?]")
"""A punctuation mark, where a simulation ends."""


class Write(NamedTuple):
    """A search asks the writer to go on from a beginning.

    Attributes:
        start: The beginning.
        whole: To the end of the text; otherwise only as far as a simulation needs.
    """

    start: str
    whole: bool


class Judged(NamedTuple):
    """A search asks the judge for its verdict on a text."""

    text: str


Search: TypeAlias = "Generator[Write | Judged, Any, Decision]"
"""A search: sends what it asks for, receives a decision or a verdict, and returns the answer."""


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
    simulation: PositiveInt = 12
    """Maximum tokens that are written at a time; the verdict is on those up to a punctuation mark (ours)."""
    branches: PositiveInt = 3
    """Pieces drawn after a partial answer before the search walks on; further ones are drawn only while all
    are bad (ours; paper: 10 at once)."""
    explore: NonNegativeFloat = 2.0
    """Constant c of the search: weight of likely pieces that were seldom visited (paper)."""
    visits: PositiveInt = 3
    """Visits after which a piece is kept if its mean verdict is above 0.8 (ours; paper: 7)."""
    tries: PositiveInt = 8
    """Visits of a partial answer after which a mean verdict above 0 is enough (ours; paper: 50)."""


@dataclass
class Node:
    """A beginning of an answer, with the sum of the verdicts on what followed.

    Attributes:
        ended: The decision with which the text ended here; None if it goes on.
    """

    text: str = ""
    draws: int = 0
    total: float = 0.0
    visits: int = 0
    ended: Decision | None = None
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def q(self) -> float:
        """Mean of the verdicts, from -1 to 1."""
        return self.total / max(1, self.visits)

    @property
    def most_visited(self) -> Node | None:
        """The piece that was visited most often, of several the one with the largest q; None without any."""
        return max(self.children.values(), key=lambda child: (child.visits, child.q), default=None)

    def known(self, branches: int) -> bool:
        """Return whether enough pieces were drawn after this beginning, and one of them is not bad."""
        pieces = self.children.values()
        return sum(piece.draws for piece in pieces) >= branches and max(piece.q for piece in pieces) >= 0

    def child(self, c: float) -> Node:
        """Return the piece with the largest search score, where the search goes on."""
        draws = sum(piece.draws for piece in self.children.values())

        def score(piece: Node) -> float:
            # q' + c p sqrt(visits of the parent) / (1 + visits)
            scaled_q = (piece.q + 1) / 2  # from 0 to 1
            p = piece.draws / draws
            return scaled_q + c * p * math.sqrt(self.visits) / (1 + piece.visits)

        return max(self.children.values(), key=score)


class RAIN(TextAgent):
    """The agent of RAIN; arguments as for :class:`~hunch.methods.decode.best_of_n.BestOfN`."""

    config_class: ClassVar[type[Any]] = RAINConfig
    saved = ("rng",)
    reference = None  # its weights are those of the model, and a search changes the texts: no divergence

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
        searches = [self.search() if self.config.search == "rain" else self.best() for _ in states]
        asked = {i: next(search) for i, search in enumerate(searches)}  # of the searches that go on
        answers: dict[int, Decision] = {}
        while asked:
            received = dict[int, Any]()
            for whole in (False, True):
                rows = [i for i, query in asked.items() if isinstance(query, Write) and query.whole == whole]
                starts = [asked[i].start for i in rows]  # type: ignore[union-attr]
                texts = self.continued([states[i] for i in rows], starts, [rngs[i] for i in rows], whole)
                received |= dict(zip(rows, texts, strict=True))
            rows = [i for i, query in asked.items() if isinstance(query, Judged)]
            judged = [asked[i].text for i in rows]  # type: ignore[union-attr]
            received |= dict(zip(rows, self.verdicts([states[i] for i in rows], judged), strict=True))
            for i, answer in received.items():
                try:
                    asked[i] = searches[i].send(answer)
                except StopIteration as end:
                    answers[i] = end.value
                    del asked[i]
        return [answers[i] for i in range(len(states))]

    def search(self) -> Search:
        """Search for the answer to one state."""
        c = self.config
        spent = 0
        node = Node()
        while spent < c.budget and node.ended is None:
            # Walk down by the search score, to a beginning with too few pieces, or bad ones only.
            path = [node]
            while path[-1].ended is None and path[-1].known(c.branches):
                path.append(path[-1].child(c.explore))
            leaf = path[-1]

            if leaf.ended is not None:
                value = leaf.q  # a whole text: its verdict is known
                spent += 1  # so that a search that comes here again and again ends
            else:
                # Write on: the first words are a piece, and what follows to the next mark is the simulation.
                decision = yield Write(leaf.text, whole=False)
                spent += len(decision.tokens)
                piece, simulated = cut(decision.text[len(leaf.text) :], c.piece)
                child = leaf.children.setdefault(piece, Node(leaf.text + piece))
                child.draws += 1
                if decision.finished and child.text == decision.text:
                    child.ended = decision
                path.append(child)
                value = yield Judged(leaf.text + simulated)

            # q of all nodes on the way: the mean of their verdicts.
            for visited in path:
                visited.visits += 1
                visited.total += value

            # Keep the most visited piece if it is good, or not bad after many tries.
            best = node.most_visited
            good_enough = 0.8 if node.visits < c.tries else 0.0
            if best is not None and best.q > good_enough and best.visits >= c.visits:
                node = best

        # The answer: the most visited pieces, and the rest of the text.
        while (most_visited := node.most_visited) is not None:
            node = most_visited
        if node.ended is not None:
            return node.ended
        answer: Decision = yield Write(node.text, whole=True)
        return answer

    def best(self) -> Search:
        """The control: write whole texts with as many tokens, and return the first with the best verdict."""
        spent = 0
        best: tuple[float, Decision] | None = None
        while best is None or spent < self.config.budget:
            decision = yield Write("", whole=True)
            spent += len(decision.tokens)
            value = yield Judged(decision.text)
            if best is None or value > best[0]:
                best = value, decision
        return best[1]

    def continued(
        self,
        states: Sequence[State],
        starts: Sequence[str],
        rngs: Sequence[np.random.Generator],
        whole: bool,
    ) -> list[Decision]:
        """Write on after each beginning; a decision has the text from its beginning, and the new tokens."""
        if not states:
            return []
        c = self.config
        chats = getattr(self.lm.model, "chat", False)
        prompts = [
            going_on(self.policy.prompt(state), start, chats)
            for state, start in zip(states, starts, strict=True)
        ]
        most = c.max_tokens if whole else min(c.simulation, c.max_tokens)
        written = self.lm.write(prompts, rngs, max_tokens=most, temperature=c.temperature)
        decisions = []
        for start, rest in zip(starts, written, strict=True):
            text = f"{start} {rest.text.strip()}".strip()  # either may be empty
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

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the mean verdict on answers, and their mean length in tokens.

        The decision of a search has the tokens alone that were written last, so the answers are tokenised.
        """
        texts = [decision.text for decision in decisions]
        written = self.lm.as_written([self.policy.prompt(state) for state in states], texts)
        lengths = []
        for decision, whole in zip(decisions, written, strict=True):
            has_no_end = not decision.finished  # one that was cut
            lengths.append(len(whole.tokens) - has_no_end)
        return {"length": float(np.mean(lengths)), "verdict": float(np.mean(self.verdicts(states, texts)))}


def going_on(prompt: Prompt, start: str, chats: bool) -> Prompt:
    """Return the prompt after which an answer goes on from its beginning.

    Args:
        prompt: The prompt of the whole answer.
        start: The beginning of the answer; empty at first.
        chats: The model reads a text as a message of the user. The beginning is then in the model's own turn:
            at the end of the user's it would be answered, and not continued.
    """
    if not start:
        return prompt
    if not chats:
        return extended(prompt, f" {start}")
    messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
    if messages[-1].role == "assistant":
        return extended(messages, f" {start}")
    return (*messages, Message("assistant", start))


def cut(text: str, words: int) -> tuple[str, str]:
    """Return the first words of a continuation, and the continuation up to the next mark after them.

    Without a mark after them the second is all of the text.
    """
    piece = re.match(rf"(?:\s*\S+){{1,{words}}}", text)
    if piece is None:
        return text, text
    mark = MARK.search(text, max(piece.end() - 1, 0))
    return piece[0], text[: mark.end()] if mark else text


METHOD = replace(
    BEST_OF_N,
    name="rain",
    agent_class=RAIN,
    summary="a frozen model writes, judges what it is writing, and rewinds",
    paper="Li et al., RAIN: Your Language Models Can Align Themselves without Finetuning, ICLR 2024",
    roles=("policy", "judge"),
    models={"judge": ("score", "label", "generate", "decide")},
    control="whole texts with as many tokens",
    changeable=("search", "budget", "simulation", "principle", "explore", "temperature"),
)
