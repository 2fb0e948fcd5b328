"""Rules in place of a language model, with dials for error rates. Evidence level L0.

A rule reads the prompt and the options and names the best option. With rules, a method can be tested and
debugged without a model, and the dials show how good a model must be.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.backends.sampling import count_words, cut, listed_options, sample_rng
from hunch.lm.base import Model, OptionScores, Verb
from hunch.lm.speech import ONE_LINE, Sampling, choices

Rule: TypeAlias = Callable[[str, tuple[str, ...]], str]
"""Returns the best option, given a prompt and its options."""
Options: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the possible answers to a prompt; empty if there are none."""

RULES: dict[str, Rule] = {}
OPTIONS: dict[str, Options] = {}
"""How options are found, for rules whose options are not the last list in the prompt."""
VERSIONS: dict[str, str] = {}
"""The version of each rule; empty for one that is still being written."""
WRITERS = (
    *("critic", "formaliser", "mentor", "modeller", "mutator"),
    *("onlooker", "player", "recipes", "suggest", "writer"),
)
"""Models that answer a prompt as a whole: writers of programs (:mod:`~hunch_studies.rules.writer`), goals."""
REFUSAL = "I'm sorry, but I can't help with that."
SPREAD = 0.01


def rule(name: str, version: str = "", options: Options = listed_options) -> Callable[[Rule], Rule]:
    """Register a rule, so that ``scripted:<name>`` loads it.

    Args:
        name: Name of the rule.
        version: Version of the rule; see :class:`ScriptedModel`.
        options: Finds the answers among which ``generate`` chooses.
    """

    def register(function: Rule) -> Rule:
        RULES[name] = function
        VERSIONS[name] = version
        OPTIONS[name] = options
        return function

    return register


def behind_letters(prompt: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the options that the prompt lists behind letters, or the labels if it lists none."""
    found = [re.findall(rf"(?m)^{re.escape(label)}\) (.*)$", prompt) for label in labels]
    return tuple(texts[-1] for texts in found) if all(found) else tuple(labels)


DIALS = ("error", "refusal", "malformed", "systematic", "draw")


class RuleWriter(Model):
    """A rule that writes free text. With temperature 0 all samples of a prompt are sample 0."""

    verbs: frozenset[Verb] = frozenset({"generate"})

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k answers to each prompt: samples number ``first`` to ``first + k - 1``."""
        samples = [0] * k if sampling.temperature == 0 else range(first, first + k)
        return [[self.answer(prompt, sample) for sample in samples] for prompt in prompts]

    def answer(self, prompt: str, sample: int) -> str:
        """Return one answer; its randomness depends only on the prompt and the sample index."""
        raise NotImplementedError


class ScriptedModel(Model):
    """A rule that answers like a language model, with a given error rate.

    ``generate`` chooses among the last list in the prompt (lines that begin with ``"- "``), or among the
    result of ``options``. Sample i of a prompt draws one number from (prompt, i): a share ``refusal`` of the
    samples is a refusal, ``malformed`` is a garbled answer, ``error`` is another random option, and the rest
    is the rule's answer. The draw depends on nothing else, so an error at a low rate is also an error at a
    higher rate. With temperature 0 all samples are sample 0.

    Such errors are noise: asked again, the model may be right. In a share ``systematic`` of the situations,
    errors are persistent. There every sample, whatever was done before, draws the same number from the last
    observation in the prompt (:func:`situation`), and so is always wrong or never; ``draw`` numbers them.

    ``score`` returns the same errors as probabilities, over n > 1 options: the rule's answer has
    0.99 (1 - error) + 0.01/n, any other 0.99 error/(n - 1) + 0.01/n. Words are counted as tokens. ``label``
    does the same for the labels of the options that the prompt lists
    (:func:`hunch.lm.scoring.choose.lettered`).

    Attributes:
        refusals: Number of answers so far that refused or were empty.
    """

    verbs: frozenset[Verb] = frozenset({"generate", "score", "label"})
    best_way = "text"  # a rule's answers are what its studies read

    def __init__(
        self,
        rule: Rule,
        *,
        error: float = 0.0,
        refusal: float = 0.0,
        malformed: float = 0.0,
        systematic: float = 0.0,
        draw: float = 0,
        name: str | None = None,
        options: Options = listed_options,
        version: str = "",
    ) -> None:
        """Wrap a rule.

        Args:
            rule: A function of (prompt, options) that returns the best option.
            error: Share of samples that name another option.
            refusal: Share of samples that refuse.
            malformed: Share of samples that do not name an option.
            systematic: Share of the situations in which all samples are equal.
            draw: Number of the draw of these situations and their errors.
            name: Name of the model in tables. Default: the name of the function.
            options: Finds the answers among which ``generate`` chooses.
            version: Version of the rule, part of the model's revision and so of the keys of stored answers.
                Change it whenever the rule, or what it calls, answers differently. Default: a digest of the
                rule's source, so that no answer of an earlier draft is used.

        Raises:
            UsageError: if a share is not a number, is negative, or the shares sum to more than one; if the
                number of the draw is not a whole number from 0.
        """
        shares = {"error": error, "refusal": refusal, "malformed": malformed}
        for dial, share in {**shares, "systematic": systematic}.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise UsageError(f"The dial {dial} of a scripted model must be from 0 to 1, not {share!r}.")
        if sum(shares.values()) > 1:
            raise UsageError(f"The dials of a scripted model sum to more than 1: {shares}.")
        if isinstance(draw, bool) or draw != int(draw) or draw < 0:
            raise UsageError(f"The dial draw of a scripted model is a whole number from 0, not {draw!r}.")
        self.rule, self.options = rule, options
        self.refusals = 0
        self.error, self.refusal, self.malformed = map(float, shares.values())
        self.name = name or f"scripted:{getattr(rule, '__name__', type(rule).__name__)}"
        self.systematic, self.draw = float(systematic), int(draw)
        dials = f"error={self.error},refusal={self.refusal},malformed={self.malformed}"
        dials += f",systematic={self.systematic}" if systematic else ""
        dials += f",draw={self.draw}" if draw else ""
        self.revision = f"{version or _draft(rule, options)}:{dials}"

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k answers to each prompt: samples number ``first`` to ``first + k - 1``."""
        return [[self._answer(prompt, sampling, i) for i in range(first, first + k)] for prompt in prompts]

    def _answer(self, prompt: str, sampling: Sampling, index: int) -> str:
        options = self.options(prompt)
        best = self._best(prompt, options) if options else ""
        rng = self._fixed(prompt) or sample_rng(prompt, index if sampling.temperature > 0 else 0)
        draw = rng.random()
        if draw < self.error:
            text = _other(best, options, rng)
        elif draw < self.error + self.refusal:
            text = REFUSAL
        elif draw < self.error + self.refusal + self.malformed:
            text = "{" + best[: len(best) // 2][::-1]
        else:
            text = best
        answer = cut(text, sampling.stop)
        self.refusals += text == REFUSAL or not answer
        return answer

    def _fixed(self, prompt: str) -> np.random.Generator | None:
        """Return the draws of a situation in which all samples are equal; None if they differ."""
        rng = sample_rng(situation(prompt), "systematic", *([self.draw] if self.draw else []))
        return rng if rng.random() < self.systematic else None

    def score(self, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return the log-probabilities stated above for each prompt's options."""
        return [self._score(prompt, own) for prompt, own in choices(prompts, options)]

    def _score(self, prompt: str, options: tuple[str, ...]) -> OptionScores:
        n, words = len(options), count_words(options)
        best, error = self._best(prompt, options), self.error
        if (rng := self._fixed(prompt)) is not None:
            best, error = _other(best, options, rng) if rng.random() < error else best, 0.0
        shares: FloatArray = np.full(n, error / max(n - 1, 1))
        shares[options.index(best)] = 1 - error if n > 1 else 1.0
        return OptionScores(np.log((1 - SPREAD) * shares + SPREAD / n), words, words)

    def label(self, prompts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return the log-probabilities stated above for each prompt's labels."""
        return [
            self._score(prompt, behind_letters(prompt, own)).logprobs
            for prompt, own in choices(prompts, labels)
        ]

    def _best(self, prompt: str, options: tuple[str, ...]) -> str:
        best = self.rule(prompt, options)
        if best not in options:
            raise UsageError(f"The rule of {self.name} answered {best!r}, which is not one of its options.")
        return best


def situation(prompt: str) -> str:
    """Return the last observation of a prompt: the text after the last action, without task and lists."""
    lines = [line for line in prompt.splitlines() if not line.startswith(("- ", "Your task is to:"))]
    acted = [i for i, line in enumerate(lines) if line.startswith("> ")]
    return "\n".join(lines[acted[-1] + 1 :] if acted else lines)


def _other(best: str, options: Sequence[str], rng: np.random.Generator) -> str:
    others = [option for option in options if option != best]
    return others[rng.integers(len(others))] if others else best


def _draft(rule: Rule, options: Options) -> str:
    """Return a digest of the source of a rule without a version, and of how it finds its options."""
    parts: list[Callable[..., object]] = [rule] if options is listed_options else [rule, options]
    return "".join(hashlib.sha256(_source(part).encode()).hexdigest()[:16] for part in parts)


def _source(function: Callable[..., object]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # it was typed into a prompt, or is an object
        return repr(getattr(function, "__qualname__", type(function)))
