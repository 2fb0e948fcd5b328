"""Rules in the place of a language model, with dials for how often they fail. Evidence level L0.

A rule looks at the prompt and the options and names the best one. With it a method can be tested and
debugged without any model, and the dials ask how good a model would have to be.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TypeAlias

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.base import (
    ONE_LINE,
    Model,
    OptionScores,
    Sampling,
    Verb,
    choices,
    count_words,
    cut,
    listed_options,
    sample_rng,
)
from hunch.lm.choose import behind_letters

Rule: TypeAlias = Callable[[str, tuple[str, ...]], str]
"""From a prompt and its options to the best option."""
Options: TypeAlias = Callable[[str], tuple[str, ...]]
"""From a prompt to the answers that may be written; empty where there is none."""

RULES: dict[str, Rule] = {}
OPTIONS: dict[str, Options] = {}
"""Where a rule's options are not the last list in the prompt: how they are found."""
ELSEWHERE = dict.fromkeys(("icpi", "icpi-nearest"), "hunch.methods.in_context.scripted")
"""Rules that know environments, and the module that registers them, imported when one is asked for."""
REFUSAL = "I'm sorry, but I can't help with that."
SPREAD = 0.01


def rule(name: str, options: Options = listed_options) -> Callable[[Rule], Rule]:
    """Register a rule, so that ``scripted:<name>`` loads it.

    Args:
        name: Of the rule.
        options: Finds the answers among which ``generate`` chooses.
    """

    def register(function: Rule) -> Rule:
        RULES[name], OPTIONS[name] = function, options
        return function

    return register


class ScriptedModel(Model):
    """A rule that answers like a language model, wrong as often as asked.

    ``generate`` chooses among the last list in the prompt (lines that begin with ``"- "``), or what
    ``options`` finds there. Sample i of a
    prompt draws one number from (prompt, i): a share ``refusal`` of the samples is a refusal, ``malformed``
    is the answer garbled beyond recognition, ``error`` is another option at random, the rest is the rule's
    answer. The draw depends on nothing else, so an error at a low rate remains one at a higher rate. With
    temperature 0 all samples are sample 0.

    ``score`` gives the same errors as probabilities, over n > 1 options: the rule's answer has
    0.99 (1 - error) + 0.01/n, any other 0.99 error/(n - 1) + 0.01/n. Words stand in for tokens. ``label``
    gives the same to the labels of the options that the prompt lists (:func:`hunch.lm.choose.lettered`).

    Attributes:
        refusals: Answers so far that refused or were empty.
    """

    verbs: frozenset[Verb] = frozenset({"generate", "score", "label"})

    def __init__(
        self,
        rule: Rule,
        *,
        error: float = 0.0,
        refusal: float = 0.0,
        malformed: float = 0.0,
        name: str | None = None,
        options: Options = listed_options,
    ) -> None:
        """Wrap a rule.

        Args:
            rule: Any function from (prompt, options) to the best option.
            error: Share of samples that name another option.
            refusal: Share of samples that refuse.
            malformed: Share of samples that no longer name an option.
            name: How tables call this model; by default after the function.
            options: Finds the answers among which ``generate`` chooses.

        Raises:
            UsageError: if a share is not a number, is negative, or the shares sum to more than one.
        """
        shares = {"error": error, "refusal": refusal, "malformed": malformed}
        for dial, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise UsageError(
                    f"The dial {dial} of a scripted model is a share from 0 to 1, not {share!r}."
                )
        if sum(shares.values()) > 1:
            raise UsageError(f"The dials of a scripted model sum to more than 1: {shares}.")
        self.rule, self.options = rule, options
        self.refusals = 0
        self.error, self.refusal, self.malformed = map(float, shares.values())
        self.name = name or f"scripted:{getattr(rule, '__name__', type(rule).__name__)}"
        dials = f"error={self.error},refusal={self.refusal},malformed={self.malformed}"
        own = "" if options is listed_options else _fingerprint(options)
        self.revision = f"{_fingerprint(rule)}{own}:{dials}"

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k answers to each prompt: the samples first, ..., first + k - 1."""
        return [[self._answer(prompt, sampling, i) for i in range(first, first + k)] for prompt in prompts]

    def _answer(self, prompt: str, sampling: Sampling, index: int) -> str:
        options = self.options(prompt)
        best = self._best(prompt, options) if options else ""
        rng = sample_rng(prompt, index if sampling.temperature > 0 else 0)
        draw = rng.random()
        if draw < self.error:
            others = [option for option in options if option != best]
            text = others[rng.integers(len(others))] if others else best
        elif draw < self.error + self.refusal:
            text = REFUSAL
        elif draw < self.error + self.refusal + self.malformed:
            text = "{" + best[: len(best) // 2][::-1]
        else:
            text = best
        answer = cut(text, sampling.stop)
        self.refusals += text == REFUSAL or not answer
        return answer

    def score(self, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return the log-probabilities stated above for each prompt's options."""
        return [self._score(prompt, own) for prompt, own in choices(prompts, options)]

    def _score(self, prompt: str, options: tuple[str, ...]) -> OptionScores:
        n, words = len(options), count_words(options)
        best = options.index(self._best(prompt, options))
        shares: FloatArray = np.full(n, self.error / max(n - 1, 1))
        shares[best] = 1 - self.error if n > 1 else 1.0
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
            raise UsageError(f"The rule of {self.name} answered {best!r}, which is none of its options.")
        return best


def _fingerprint(rule: Rule | Options) -> str:
    """Hash a rule's source. What the rule calls is not seen: rename the rule when that changes."""
    try:
        code = inspect.getsource(rule)
    except (OSError, TypeError):
        code = repr(getattr(rule, "__qualname__", type(rule)))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


@rule("first")
def first(prompt: str, options: tuple[str, ...]) -> str:
    """Take the first option."""
    return options[0]


@rule("overlap")
def overlap(prompt: str, options: tuple[str, ...]) -> str:
    """Take the option that shares most words with the task, the earlier one of equals.

    The task is the last line of the form "... task ...: TASK", or else the prompt without its lists.
    """
    tasks = re.findall(r"(?im)^[^:\n]*\btask\b[^:\n]*:[ \t]*(\S.*)$", prompt)
    text = tasks[-1] if tasks else re.sub(r"(?m)^- .*$", "", prompt)
    words = _words(text)
    return max(options, key=lambda option: len(words & _words(option)))


@rule("frozenlake")
def frozenlake(prompt: str, options: tuple[str, ...]) -> str:
    """Move towards the bottom right corner, never into a hole, downwards rather than sideways.

    It reads the look-ahead sentences of the FrozenLake text environment, such as "Go Down leads to position
    (1, 0), a frozen cell (F).", and reaches the goal of the standard 4x4 map.
    """

    def promise(option: str) -> tuple[bool, int, int]:
        found = re.findall(rf"{re.escape(option)} leads to position \((\d+), (\d+)\), ([^.\n]*)", prompt)
        row, column, cell = found[-1] if found else (0, 0, "a hole")
        return "hole" not in cell, int(row) + int(column), int(row)

    return max(options, key=promise)


@rule("kitchen")
def kitchen(prompt: str, options: tuple[str, ...]) -> str:
    """Cook the dish of the Overcooked environments: chop each food on its own board, then fill the bowl.

    It reads the last description of the kitchen in the prompt and remembers nothing.
    """
    scene = "".join(re.findall(r"there (?:is a|are two) fixed .*", prompt.lower())[-1:])
    held = "".join(re.findall(r"carrying (.*?)(?: in hand)?\.", scene))
    foods = [food for food in ("tomato", "lettuce") if any(food in option for option in options)]
    if "bowl" in held:
        missing = [food for food in foods if food not in held]
        return _naming(options, f"put the {missing[0]}") if missing else _naming(options, "serve")
    if held:
        board = "second" if "lettuce" in held else "cutting board"
        return _naming(options, board if "unchopped" in held else "bowl")
    if "unchopped" in scene:
        return _naming(options, "chop the")
    raw = [food for food in foods if f"chopped {food} is on" not in scene]
    if raw or len(foods) == 1:
        return _naming(options, f"pick up the {(raw or foods)[0]}")
    return _naming(options, "bowl")


def _naming(options: tuple[str, ...], words: str) -> str:
    """The first option with these words; the first of all where there is none."""
    return next((option for option in options if words in option), options[0])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def load(name: str, *, error: float = 0.0, refusal: float = 0.0, malformed: float = 0.0) -> ScriptedModel:
    """Load the model ``scripted:<name>``.

    Raises:
        UsageError: if there is no such rule, or a dial is not a share.
    """
    if name in ELSEWHERE:
        import_module(ELSEWHERE[name])
    if name not in RULES:
        known = ", ".join(sorted({*RULES, *ELSEWHERE}))
        raise UsageError(f"There is no rule {name!r} for scripted models; there are {known}.")
    return ScriptedModel(
        RULES[name],
        error=error,
        refusal=refusal,
        malformed=malformed,
        name=f"scripted:{name}",
        options=OPTIONS.get(name, listed_options),
    )
