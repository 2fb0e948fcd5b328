"""RLPrompt: a small network writes the prompt of a frozen model token by token, and learns from its score.

Algorithm (Deng et al., "RLPrompt: Optimizing Discrete Text Prompts with RL", EMNLP 2022)::

    repeat
        prompt  ~  softmax Q(token | tokens so far),  one token after the other
        R       <- score of the model's answers after this prompt
        R       <- standardised over the prompts so far, times scale (the paper: over those of a batch)
        descend on the errors of soft Q (:mod:`hunch_contrib.prompt.soft_q`), on prompts drawn from
        those so far
    the result is the prompt of the tokens with the largest Q

With ``lm``, Q is a layer on a frozen language model, as in the paper. Without one it reads the place and the
words so far (ours). The prompts so far are replayed (ours), because a score costs more than an update.

Controls at the same number of scores: ``search=random`` draws prompts, ``search=edits`` changes a word of the
best one so far; the result of both is the prompt with the highest mean score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import (
    Agent,
    EvidenceLevel,
    IntArray,
    Memoryless,
    State,
    Transition,
    UsageError,
    World,
)
from hunch.lm import trainable
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share


@dataclass(frozen=True, kw_only=True)
class RLPromptConfig:
    """Settings of RLPrompt."""

    lm: str = ""
    """Frozen causal model on which Q is a layer: hf:<name or folder>, or a name of the shelf (paper:
    DistilGPT-2). Default: none; Q reads the place and the words so far."""
    length: PositiveInt = 3
    """Number of words in a prompt (ours; paper: 5)."""
    words: str = ""
    """Words that a prompt may contain, separated by spaces. Default: those of the environment."""
    search: Literal["soft-q", "random", "edits"] = "soft-q"
    """Source of prompts: soft-q (the method), or a control, random or edits (of the best prompt so far)."""
    warmup: NonNegativeInt = 30
    """Random prompts before Q writes prompts (our choice)."""
    updates: PositiveInt = 10
    """Updates of Q after the prompts of each step, one from each stream (our choice)."""
    batch_size: PositiveInt = 32
    """Prompts per update (our choice)."""
    scale: PositiveFloat = 5.0
    """Factor of the standardised score, which is an inverse temperature (ours; paper: 0 to 5)."""
    hidden: PositiveInt = 64
    """Width of the perceptron's hidden layer (ours; paper: 2,048)."""
    learning_rate: PositiveFloat = 3e-3
    """Adam learning rate (our choice; paper: 5e-5)."""
    decay: NonNegativeFloat = 0.3
    """Weight decay of Q, against overfitting to the few scores (our choice)."""
    target: Share = 0.05
    """Share by which the target network moves towards Q per update (our choice; paper: 0.001)."""


class RLPrompt(Agent):
    """The agent of RLPrompt.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = RLPromptConfig
    saved: ClassVar[tuple[str, ...]] = ("rng", "q", "tried")

    def __init__(self, config: Any = None, **options: Any) -> None:
        self.config: RLPromptConfig = configure(type(self), config, options)
        self.lm = trainable(self.config.lm) if self.config.lm else None
        self.models = {"lm": self.lm} if self.lm else {}

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the model below Q; None if Q writes no prompts, as in the controls."""
        return self.lm.evidence if self.lm and self.config.search == "soft-q" else None

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained Q and no prompts.

        Raises:
            UsageError: if there are no words for prompts.
        """
        from hunch_contrib.prompt.soft_q import Counts, FrozenLM, SoftQ  # loads torch

        c = self.config
        self.words = tuple(dict.fromkeys(c.words.split() or world.things))
        if len(self.words) < 2:
            raise UsageError("A prompt needs at least two words to choose from: name them with words.")
        if several := [word for word in self.words if len(word.split()) != 1]:
            raise UsageError(f"A prompt is made of single words, and {several[0]!r} is none: set words.")
        self.rng = np.random.default_rng(seed)
        features = FrozenLM(self.lm, self.words, c.length) if self.lm else Counts(len(self.words), c.length)
        self.q = SoftQ(features, c.hidden, c.learning_rate, c.decay, c.target, seed)
        self.tried: list[tuple[list[int], float]] = []

    def act(self, states: Sequence[State]) -> list[str]:
        """Propose a prompt for each stream."""
        return [self.spelled(self.proposed()) for _ in states]

    def proposed(self) -> IntArray:
        """Return the words of the next prompt, as indices, shape (length,)."""
        c, n = self.config, len(self.words)
        if c.search == "random" or len(self.tried) < (c.warmup if c.search == "soft-q" else 1):
            return self.rng.integers(n, size=c.length)
        if c.search == "soft-q":
            return self.q.write(self.rng)
        text = self.best().copy()
        place = self.rng.integers(c.length)
        other = self.rng.integers(n - 1)  # of the words but the one that is there
        text[place] = other + (other >= text[place])
        return text

    def spelled(self, text: IntArray) -> str:
        """Return the text of a prompt that is given by word indices."""
        return " ".join(self.words[i] for i in text)

    def best(self) -> IntArray:
        """Return the prompt with the highest mean score so far, as indices; if none, the first word only."""
        known: dict[tuple[int, ...], list[float]] = {}
        for text, score in self.tried:
            known.setdefault(tuple(text), []).append(score)
        best = max(known, key=lambda text: float(np.mean(known[text])), default=(0,) * self.config.length)
        return np.array(best, dtype=np.int64)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Store the scores of prompts."""
        places = {word: i for i, word in enumerate(self.words)}
        for t in transitions:
            if not np.isfinite(t.reward):
                raise UsageError(f"The score of {t.action!r} is {t.reward}: it must be finite.")
            words = t.action.split()
            if len(words) == self.config.length and all(word in places for word in words):
                self.tried.append(([places[word] for word in words], float(t.reward)))

    @property
    def first_update(self) -> int:
        """The first step at which Q may be updated; its controls have no Q."""
        return int(self.config.warmup) if self.config.search == "soft-q" else 0

    def learn(self) -> dict[str, float]:
        """Update Q on the prompts so far, and return metrics."""
        c = self.config
        if c.search != "soft-q" or len(self.tried) < c.warmup or not self.tried:
            return {}
        texts = np.array([text for text, _ in self.tried])  # (tried, length): indices of words
        scores = np.array([score for _, score in self.tried])  # (tried,)
        rewards = c.scale * (scores - scores.mean()) / (scores.std() + 1e-8)  # (tried,)
        losses = []
        for _ in range(c.updates):
            rows = self.rng.integers(len(rewards), size=c.batch_size)  # (batch_size,)
            losses.append(self.q.update(texts[rows], rewards[rows]))
        return {"loss": float(np.mean(losses))}

    def player(self, seed: int) -> Memoryless:
        """Return a player that always answers with the best prompt."""
        text = self.spelled(self.q.write(None) if self.config.search == "soft-q" else self.best())
        return Memoryless(lambda states, rng: [text] * len(states), seed)

    def records(self) -> list[dict[str, Any]]:
        """Return all prompts with their scores, oldest first."""
        return [
            {"prompt": self.spelled(np.array(text)), "score": round(score, 6)} for text, score in self.tried
        ]


METHOD = Method(
    "rlprompt",
    RLPrompt,
    "soft Q-learning writes the prompt of a frozen model, token by token",
    "Deng et al., RLPrompt: Optimizing Discrete Text Prompts with Reinforcement Learning, EMNLP 2022",
    leaf="RL4LLM / prompt",
    acts="text",
    environments="free text of one step that scores a prompt",
    control="prompts at random, and edits of the best one",
    data="none",
)
