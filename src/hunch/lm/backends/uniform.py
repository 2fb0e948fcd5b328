"""The uninformed model, the control of every study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hunch.core import FloatArray
from hunch.lm.backends.sampling import count_words, cut, listed_options, sample_rng
from hunch.lm.base import Backend, Model, OptionScores, Verb
from hunch.lm.decision import DecisionQuestion
from hunch.lm.prompts import Prompt
from hunch.lm.speech import ONE_LINE, Sampling, choices, text_of

BACKEND = Backend(
    "uniform",
    f"{__name__}:UniformModel",
    frozenset({"generate", "score", "label", "decide"}),
    "the uninformed model: all options are equally likely",
    costly=False,
)


class UniformModel(Model):
    """Gives every option the same probability. Evidence level L0.

    ``score`` and ``label`` give each of n options the total log-probability -log n, whatever its length;
    words are counted as tokens. ``generate`` writes a random item of the last list in the prompt (lines that
    begin with ``"- "``), and an empty text if there is no list.
    """

    verbs: frozenset[Verb] = frozenset({"generate", "score", "label", "decide"})
    best_way = "text"  # a control answers as the model that it stands for

    speaks = False
    name, revision = "uniform", "1"

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k random items of each prompt's list: samples number ``first`` to ``first + k - 1``."""
        return [[self._pick(prompt, sampling, i) for i in range(first, first + k)] for prompt in prompts]

    def _pick(self, prompt: Prompt, sampling: Sampling, index: int) -> str:
        items = listed_options(text_of(prompt))
        if not items:
            return ""
        draw = sample_rng(self.revision, prompt, sampling, index).integers(len(items))
        return cut(items[draw], sampling.stop)

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return -log n for each of a prompt's n options."""
        return [self._equal(listed) for _, listed in choices(prompts, options)]

    def label(self, prompts: Sequence[Prompt], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return -log n for each of a prompt's n labels."""
        return [np.full(len(listed), -np.log(len(listed))) for _, listed in choices(prompts, labels)]

    def decide(
        self, states: Sequence[Prompt], questions: Sequence[Sequence[DecisionQuestion]]
    ) -> list[list[FloatArray | None]]:
        """Return 1/n for each of a question's n options."""
        return [[np.full(len(q.options), 1 / len(q.options)) for q in listed] for listed in questions]

    @staticmethod
    def _equal(options: Sequence[str]) -> OptionScores:
        words = count_words(options)
        return OptionScores(np.full(len(options), -np.log(len(options))), words, words)
