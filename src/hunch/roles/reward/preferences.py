"""Sources of preferences between two texts: the gold reward with noise, chance, a language model, or a file.

A preference is a number: 1 if the first text is better, 0 if the second is, 0.5 for a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from hunch.core import EvidenceLevel, State, Transition, UsageError
from hunch.envs.prompts import numbered, state_of
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.base import LanguageModel
from hunch.roles.reward.comparer import Comparer, CompareWay
from hunch.roles.reward.settings import RewardModelConfig
from hunch.text_files import read_lines

JUDGED: Final = ("judge", "mixed")
"""Values of ``labels`` for which a language model compares all pairs, or half of them."""
PRINCIPLES: Final = ("Choose the answer that does better what was asked.",)


Pairs: TypeAlias = Sequence[tuple[Transition, Transition]]
"""Pairs of steps that were taken in equal states."""


class Compared(NamedTuple):
    """Two texts in the same state, and the preference for the first, from 0 to 1."""

    state: State
    first: str
    second: str
    share: float


class Preferences(Protocol):
    """A source of preferences between texts.

    Attributes:
        lm: The language model that compares; None if none does.
        evidence: The evidence level of the preferences; None without a model.
    """

    lm: LanguageModel | None = None
    evidence: EvidenceLevel | None = None

    def compare(self, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Return the preference for the first step of each pair, from 0 to 1."""


class Gold(Preferences):
    """Draws preferences from the environment's reward, as in the model of Bradley and Terry (1952).

    Args:
        temperature: The first of two steps is preferred with probability
            1 / (1 + exp((reward of the second - that of the first) / temperature)); 0 means no noise.
    """

    def __init__(self, temperature: float = 0.5) -> None:
        self.temperature = temperature

    def compare(self, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Draw a preference for each pair."""
        difference = np.array([first.reward - second.reward for first, second in pairs])  # (n,)
        if not self.temperature:
            return [float(share) for share in np.sign(difference) / 2 + 0.5]
        # p(first > second) = sigmoid((r_1 - r_2) / temperature)
        p = 1 / (1 + np.exp(-difference / self.temperature))
        return [float(first_wins) for first_wins in rng.random(len(pairs)) < p]


class Shuffled(Gold):
    """The control: preferences of :class:`Gold`, shuffled over the pairs, so that they are uninformative."""

    def compare(self, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Draw preferences by the gold reward, and shuffle them."""
        return [float(share) for share in rng.permutation(super().compare(pairs, rng))]


class Judged(Preferences):
    """Asks a language model to compare by a principle, drawn per pair (Bai et al., Constitutional AI, 2022).

    Args:
        lm: A model that generates, or decides: then a preference is a probability.
        principles: Sentences that state which text is better.
        config: How the model is asked.
        way: The way of asking for a verdict.
    """

    def __init__(
        self,
        lm: LanguageModel,
        principles: Sequence[str] = PRINCIPLES,
        config: AskConfig | None = None,
        way: CompareWay = "auto",
    ) -> None:
        self.lm = lm
        self.principles = tuple(principles)
        self.evidence = lm.evidence
        asks = config or AskConfig()
        asking = Asking(lm, asks, tokens=16, temperature=0.1, stop=(), role="preference")
        self.comparer = Comparer(lm, asking, way=way)

    def compare(self, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Ask the model about all pairs; equal texts are a tie without a question."""
        principles = [self.principles[int(i)] for i in rng.integers(len(self.principles), size=len(pairs))]
        prompts = [
            None if first.action == second.action else self.prompt(first, second, principle)
            for (first, second), principle in zip(pairs, principles, strict=True)
        ]
        return self.comparer.preferences(prompts)

    def prompt(self, first: Transition, second: Transition, principle: str) -> str:
        """Return the question about two texts."""
        request = f"{first.state.aim}\n{first.state.text()}".strip()
        asked = f"Request: {request}\n" if request else ""
        principle = f"\n{principle}" if principle else ""
        pair = f"{asked}Two answers:\n1: {first.action}\n2: {second.action}{principle}"
        return pair if self.comparer.decides else f"{pair}\n- 1\n- 2\n- none\nAnswer:"


class Mixed(Preferences):
    """Compares each pair by one of two sources, such as people and a model, each for half of the pairs.

    Args:
        one: Source for one half.
        lm: The model that compares for the other half.
        principles: As for :class:`Judged`.
    """

    def __init__(self, one: Preferences, lm: LanguageModel, principles: Sequence[str]) -> None:
        self.one = one
        self.other = Judged(lm, principles)
        self.lm = lm
        self.evidence = lm.evidence

    def compare(self, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Draw half of the pairs at random for each source, and let both compare."""
        order = rng.permutation(len(pairs))
        half = len(pairs) // 2
        shares = np.zeros(len(pairs))
        shares[order[:half]] = self.one.compare([pairs[i] for i in order[:half]], rng)
        shares[order[half:]] = self.other.compare([pairs[i] for i in order[half:]], rng)
        return [float(share) for share in shares]


def read_principles(file: str) -> tuple[str, ...]:
    """Read principles, one per line.

    Raises:
        UsageError: if the file has no principles.
    """
    try:
        lines = tuple(line.strip() for line in read_lines(file) if line.strip())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: name a file with a principle a line.") from error
    if not lines:
        raise UsageError(f"{file} holds no principle: write one per line.")
    return lines


def read_pairs(file: str) -> list[Compared]:
    """Read compared texts from JSON lines in TRL's columns: ``prompt``, ``chosen`` and ``rejected``.

    Raises:
        UsageError: if there are none, or a line has other columns.
    """
    pairs = list[Compared]()
    for number, row in numbered(file, "chosen"):
        both = row["chosen"], row.get("rejected")
        if not all(isinstance(text, str) for text in both):
            raise UsageError(f"Line {number} of {file} needs chosen and rejected, two texts.")
        pairs.append(Compared(state_of(row["prompt"]), str(both[0]), str(both[1]), 1.0))
    return pairs


def require_contrast(pairs: Sequence[Compared]) -> None:
    """Check that pairs carry information before a model is fitted to them.

    Raises:
        UsageError: if there are none, all have equal texts, or all preferences are ties.
    """
    if not pairs:
        raise UsageError("There are no pairs to compare: no prompt was answered twice.")
    if all(pair.first == pair.second for pair in pairs):
        raise UsageError(f"Both texts are equal in each of {len(pairs):,} pairs, so nothing can be learned.")
    if all(pair.share == 0.5 for pair in pairs):
        raise UsageError(f"All {len(pairs):,} preferences are ties, so nothing can be learned from them.")


def check_labels(config: RewardModelConfig) -> None:
    """Check the files of the settings before a model is loaded.

    Raises:
        UsageError: if a file cannot be used; the message names it.
    """
    if config.principles and config.labels not in JUDGED:
        raise UsageError("principles are for a judge: set labels to judge.")
    if config.principles:
        read_principles(config.principles)
    if config.labels not in ("gold", "shuffled", *JUDGED):
        require_contrast(read_pairs(config.labels))


def preferences_of(config: RewardModelConfig, judge: LanguageModel | None) -> Preferences | str:
    """Return the source of preferences, or the file of compared texts."""
    if config.labels in JUDGED:
        if judge is None:
            raise UsageError(f"labels={config.labels} needs a language model that compares.")
        principles = read_principles(config.principles) if config.principles else PRINCIPLES
        mixed = config.labels == "mixed"
        return Mixed(Gold(config.noise), judge, principles) if mixed else Judged(judge, principles)
    noisy = {"gold": Gold, "shuffled": Shuffled}.get(config.labels)
    return noisy(config.noise) if noisy else config.labels
