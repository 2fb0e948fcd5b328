"""Rules in place of a language model, with dials for error rates. Evidence level L0.

A rule reads the prompt and the options and names the best option. With rules, a method can be tested and
debugged without a model, and the dials show how good a model must be. ``scripted:first`` and
``scripted:overlap`` use only words and work in any environment; :mod:`hunch.lm.rules` finds the others.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.backends.sampling import count_words, cut, listed_options, sample_rng
from hunch.lm.base import Backend, Model, OptionScores, Verb
from hunch.lm.rules import NamedWriter, Options, Rule, find, rule
from hunch.lm.speech import ONE_LINE, Sampling, choices
from hunch.ranges import check_value
from hunch.suggest import suggest

BACKEND = Backend(
    "scripted:<rule>",
    f"{__name__}:load",
    frozenset({"generate", "score", "label", "see"}),
    "a rule, with dials for error, refusal and malformed output",
    costly=False,
)
DIALS: Final = ("error", "refusal", "malformed", "systematic", "draw", "place")
"""The dials of a rule that chooses an option."""
SPEAKS: Final = "speaks"
"""At 1 a rule can only generate, like a chat model: its probabilities are shares of its answers."""
REFUSAL: Final = "I'm sorry, but I can't help with that."
SPREAD: Final = 0.01
"""Share of the probability that :meth:`ScriptedModel.score` spreads evenly over all options."""


def load(name: str, **dials: float) -> Model:
    """Load the model ``scripted:<name>``: a rule that chooses an option, or one that answers as a whole.

    Raises:
        UsageError: if there is no such rule or dial, or a dial is not in its range.
    """
    for dial, value in dials.items():
        check_value(f"The dial {dial} of scripted:{name}", value, float)
    named = find(name)
    known = named.dials if isinstance(named, NamedWriter) else (*DIALS, SPEAKS)
    for dial in dials:
        if dial not in known:
            raise UsageError(f"The rule {name!r} has no option {dial!r}; {suggest(dial, known)}")
    if isinstance(named, NamedWriter):
        return named.make(**dials)
    speaks = dials.pop(SPEAKS, 0)
    model = ScriptedModel(
        named.choose,
        name=f"scripted:{name}",
        options=named.options or listed_options,
        version=named.version,
        **dials,
    )
    if speaks:
        model.verbs = frozenset({"generate"})
    return model


def check_shares(name: str, dials: Mapping[str, float], unbounded: Sequence[str] = ()) -> None:
    """Check that dials are numbers from 0 to 1, or from 0 for those without an upper bound.

    Raises:
        UsageError: if one is not.
    """
    for dial, share in dials.items():
        most = np.inf if dial in unbounded else 1
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= most:
            raise UsageError(f"The dial {dial} of scripted:{name} must be from 0 to {most:g}, not {share!r}.")


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
    With ``place`` all errors name the option at this place of the list, as small models do that say No to
    every question or take what is listed first; where the rule's answer stands there, nothing is wrong. It is
    the list of that call: asked by letters in several orders, such errors average out.

    ``score`` returns the same errors as probabilities, over n > 1 options: the rule's answer has
    0.99 (1 - error) + 0.01/n, any other 0.99 error/(n - 1) + 0.01/n; with ``place`` only that one has a share
    of the error. Words are counted as tokens. ``label`` does the same for the labels of the options that the
    prompt lists (:func:`hunch.lm.scoring.choose.lettered`).

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
        place: float = 0,
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
            place: Place of the option that errors name: 1 for the first, -1 for the last; 0 for any other
                than the rule's answer.
            name: Name of the model in tables. Default: the name of the function.
            options: Finds the answers among which ``generate`` chooses.
            version: Version of the rule, part of the model's revision and so of the keys of stored answers.
                Change it whenever the rule, or what it calls, answers differently. Default: a digest of the
                rule's source, so that no answer of an earlier draft is used.

        Raises:
            UsageError: if a share is not a number, is negative, or the shares sum to more than one; if the
                number of the draw is not a whole number from 0, or the place no whole number.
        """
        shares = {"error": error, "refusal": refusal, "malformed": malformed}
        for dial, share in {**shares, "systematic": systematic}.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise UsageError(f"The dial {dial} of a scripted model must be from 0 to 1, not {share!r}.")
        if sum(shares.values()) > 1:
            raise UsageError(f"The dials of a scripted model sum to more than 1: {shares}.")
        if not _is_whole(draw) or draw < 0:
            raise UsageError(f"The dial draw of a scripted model is a whole number from 0, not {draw!r}.")
        if not _is_whole(place):
            raise UsageError(f"The dial place of a scripted model is a whole number, not {place!r}.")
        self.rule, self.options = rule, options
        self.refusals = 0
        self.error, self.refusal, self.malformed = map(float, shares.values())
        self.name = name or f"scripted:{getattr(rule, '__name__', type(rule).__name__)}"
        self.systematic, self.draw, self.place = float(systematic), int(draw), int(place)
        dials = f"error={self.error},refusal={self.refusal},malformed={self.malformed}"
        dials += f",systematic={self.systematic}" if systematic else ""
        dials += f",draw={self.draw}" if draw else ""
        dials += f",place={self.place}" if place else ""
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
            text = self._wrong(best, options, rng)
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
        return [self._score(prompt, listed) for prompt, listed in choices(prompts, options)]

    def _score(self, prompt: str, options: tuple[str, ...]) -> OptionScores:
        n, words = len(options), count_words(options)
        best, error = self._best(prompt, options), self.error
        rng = self._fixed(prompt)
        if rng is not None:  # every sample is wrong here, or none
            if rng.random() < error:
                best = self._wrong(best, options, rng)
            error = 0.0
        if self.place:
            shares: FloatArray = np.zeros(n)
            shares[_index(self.place, n)] = error
            shares[options.index(best)] += 1 - error
        else:
            shares = np.full(n, error / max(n - 1, 1))
            shares[options.index(best)] = 1 - error if n > 1 else 1.0
        return OptionScores(np.log((1 - SPREAD) * shares + SPREAD / n), words, words)

    def label(self, prompts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return the log-probabilities stated above for each prompt's labels."""
        return [
            self._score(prompt, behind_letters(prompt, listed)).logprobs
            for prompt, listed in choices(prompts, labels)
        ]

    def _wrong(self, best: str, options: Sequence[str], rng: np.random.Generator) -> str:
        """Return what an error names."""
        if self.place and options:
            return options[_index(self.place, len(options))]
        return _other(best, options, rng)

    def _best(self, prompt: str, options: tuple[str, ...]) -> str:
        best = self.rule(prompt, options)
        if best not in options:
            raise UsageError(f"The rule of {self.name} answered {best!r}, which is not one of its options.")
        return best


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


class ScriptedWriter(Model):
    """A function that writes texts, in place of a language model.

    Args:
        name: Name in ``scripted:<name>``.
        write: Returns an answer, given a prompt and a random generator.
        dials: The dials, which are part of its revision.
    """

    verbs: frozenset[Verb] = frozenset({"generate"})

    def __init__(self, name: str, write: Callable[[str, np.random.Generator], str], dials: str = "") -> None:
        self.name, self.write = f"scripted:{name}", write
        self.revision = f"1:{name}:{dials}"

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k answers to each prompt; the randomness of sample i depends on (writer, prompt, i)."""
        return [
            [
                cut(self.write(prompt, sample_rng(self.revision, prompt, i)), sampling.stop)
                for i in range(first, first + k)
            ]
            for prompt in prompts
        ]


def behind_letters(prompt: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the options that the prompt lists behind letters, or the labels if it lists none."""
    texts_by_label = [re.findall(rf"(?m)^{re.escape(label)}\) (.*)$", prompt) for label in labels]
    return tuple(texts[-1] for texts in texts_by_label) if all(texts_by_label) else tuple(labels)


def situation(prompt: str) -> str:
    """Return the last observation of a prompt: the text after the last action, without task and lists."""
    lines = [line for line in prompt.splitlines() if not line.startswith(("- ", "Your task is to:"))]
    acted = [i for i, line in enumerate(lines) if line.startswith("> ")]
    return "\n".join(lines[acted[-1] + 1 :] if acted else lines)


def _is_whole(value: object) -> bool:
    """Return whether a value is a whole number, as an int or a float."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _index(place: int, n: int) -> int:
    """Return the index of a place, counted from 1, or from -1 at the end; lists may be shorter."""
    return min(place, n) - 1 if place > 0 else max(n + place, 0)


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


@rule("first", "7a50d00cf6b04afd")
def first(prompt: str, options: tuple[str, ...]) -> str:
    """Take the first option."""
    return options[0]


@rule("overlap", "c2766ee2a3386e3a")
def overlap(prompt: str, options: tuple[str, ...]) -> str:
    """Take the option that shares most words with the task, the earlier one of equals.

    The task is the last line of the form "... task ...: TASK", or else the prompt without its lists.
    """
    tasks = re.findall(r"(?im)^[^:\n]*\btask\b[^:\n]*:[ \t]*(\S.*)$", prompt)
    text = tasks[-1] if tasks else re.sub(r"(?m)^- .*$", "", prompt)
    words = _words(text)
    return max(options, key=lambda option: len(words & _words(option)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
