"""Prompts of examples: put together, cut to the model's context, and asked again until an answer reads.

A prompt is examples in random order and a query that lacks its last piece. Of each prompt's examples only the
last that fit are kept. An answer that cannot be read, or a prompt without an example, is counted.

Source: Brooks et al., "Large Language Models can Implement Policy Iteration", NeurIPS 2023, and its released
code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final, Literal, TypeVar

import numpy as np

from hunch.core import UsageError
from hunch.lm import require
from hunch.lm.base import LanguageModel, Sampling
from hunch.lm.scoring.choose import softmax
from hunch.lm.usage import count_fallbacks
from hunch.ranges import NonNegativeFloat, PositiveInt, Share

T = TypeVar("T")

CONTEXT: Final = 4000
"""Tokens of the context of a model that does not say: code-davinci-002's, in the released code."""
RESERVE: Final = 100
"""Tokens of the context left free besides those of the completion, as in the released code."""


@dataclass(frozen=True, kw_only=True)
class PromptConfig:
    """How prompts of examples are made and their answers sampled."""

    answers: Literal["write", "choose"] = "write"
    """Let the model write (released code), or draw by likelihood among the possible answers: actions, ends,
    and the rewards that were seen. Next states are always written."""
    resamples: PositiveInt = 3
    """Completions a prediction at most (released code)."""
    prompt_draws: PositiveInt = 5
    """Orders of the examples tried for a prompt that this prediction has not used (released code)."""
    prompts: Literal["per-prediction", "per-episode"] = "per-prediction"
    """Shuffle examples for every prediction (released code), or once per episode, for prefix caches."""
    balance: bool = True
    """Show as many examples of each outcome in prompts for end and reward (released code)."""
    action_constraint: bool = True
    """Show the world model examples of the same action only (released code)."""
    policy_hints: bool = True
    """Show the policy states with their hints, where the environment has hints (released code)."""
    context: PositiveInt | None = None
    """Tokens of the context; prompts leave max_tokens + 100 free. Default: the model's, at most 4000."""
    max_tokens: PositiveInt = 100
    """Tokens a completion at most (released code)."""
    temperature: NonNegativeFloat = 0.1
    """Of the sampling (released code)."""
    policy_temperature: NonNegativeFloat | None = None
    """Of the sampling of actions; at 1 they come as often as the model expects. Default: temperature."""
    top_p: Share = 1.0
    """Of the sampling (released code)."""


@dataclass(slots=True)
class Counts:
    """What went wrong so far.

    Attributes:
        completions: Answers that came.
        unread: Those of them that could not be read.
        failed: Predictions that no answer could be had for.
        bare: Those of them that had no example to show.
        prompts: Prompts that were made.
        cut: Those of them that lost examples to the context.
    """

    completions: int = 0
    unread: int = 0
    failed: int = 0
    bare: int = 0
    prompts: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Blank:
    """A query, the groups of examples for it, and the source of its chance.

    Attributes:
        query: What the prompt ends with.
        groups: Examples; with several groups each has its share of the prompt.
        rng: Orders the examples.
        epoch: What a prompt that lasts an episode depends on besides: how many episodes have ended.
        options: All possible answers, each with its end; empty where they are not known.
    """

    query: str
    groups: Sequence[Sequence[str]]
    rng: np.random.Generator
    epoch: int
    options: Sequence[str] = ()


class Completer:
    """Fills in blanks by a model's completions.

    Attributes:
        counts: What went wrong since the beginning.

    Args:
        lm: A model that generates.
        config: How.

    Raises:
        UsageError: if the model cannot generate, or a setting is out of range.
    """

    def __init__(self, lm: LanguageModel, config: PromptConfig) -> None:
        self.lm = require(lm, "generate", needed_by="A prompt of examples")
        if config.answers == "choose":
            require(lm, "score", needed_by="A choice among answers")
        if min(config.resamples, config.prompt_draws) < 1:
            raise UsageError("resamples and prompt_draws must be at least 1.")
        self.config = config
        context = config.context or min(CONTEXT, self.lm.context or CONTEXT)
        self.room = context - config.max_tokens - RESERVE
        if self.room < 1:
            raise UsageError(
                f"A context of {context} tokens has no room for a prompt: "
                f"{config.max_tokens + RESERVE} are left free."
            )
        self.counts, self._told = Counts(), Counts()
        self._tokens = lru_cache(maxsize=1 << 14)(self.lm.count_tokens)

    def fill(
        self,
        blanks: Sequence[Blank],
        stop: str,
        read: Callable[[str], T | None],
        temperature: float | None = None,
    ) -> list[T | None]:
        """Ask for all blanks together, and again for those whose answers cannot be read.

        Args:
            blanks: What to fill in.
            stop: The end of an answer.
            read: Reads an answer.
            temperature: Of the sampling. Default: the setting's.

        Returns:
            What was read, ``None`` where nothing was.
        """
        answers: list[T | None] = [None] * len(blanks)
        open_ = [i for i, blank in enumerate(blanks) if any(blank.groups)]
        self.counts.bare += len(blanks) - len(open_)
        used: list[set[str]] = [set() for _ in blanks]
        degree = self.config.temperature if temperature is None else temperature
        if self.config.answers == "choose" and open_ and all(blanks[i].options for i in open_):
            for i, text in zip(open_, self._choose([blanks[i] for i in open_], degree), strict=True):
                answers[i] = read(text.removesuffix(stop))
            return answers
        sampling = Sampling(self.config.max_tokens, degree, self.config.top_p, (stop,))
        for attempt in range(self.config.resamples):
            if not open_:
                break
            prompts = [self._prompt(blanks[i], used[i], attempt) for i in open_]
            for i, (text,) in zip(open_, self.lm.generate(prompts, 1, sampling, attempt), strict=True):
                answers[i] = read(text)
            self.counts.completions += len(open_)
            open_ = [i for i in open_ if answers[i] is None]
            self.counts.unread += len(open_)
            count_fallbacks(self.lm, len(open_))
        self.counts.failed += sum(answer is None for answer in answers)
        return answers

    def _choose(self, blanks: Sequence[Blank], temperature: float) -> list[str]:
        """Draw one of the possible answers of each blank by its likelihood."""
        prompts = [self._prompt(blank, set(), 0) for blank in blanks]
        scores = self.lm.score(prompts, [blank.options for blank in blanks])
        self.counts.completions += len(blanks)
        chosen = []
        for blank, score in zip(blanks, scores, strict=True):
            shares = softmax(score.logprobs / temperature) if temperature else score.logprobs
            i = blank.rng.choice(len(shares), p=shares) if temperature else np.argmax(shares)
            chosen.append(blank.options[int(i)])
        return chosen

    def metrics(self) -> dict[str, float]:
        """Shares since the last call: completions not read, predictions failed, prompts cut."""
        now, before = self.counts, self._told
        since = {f.name: getattr(now, f.name) - getattr(before, f.name) for f in fields(Counts)}
        self._told = Counts(**{f.name: getattr(now, f.name) for f in fields(Counts)})
        predictions = since["completions"] - since["unread"] + since["failed"]
        shares = {
            "unread": (since["unread"], since["completions"]),
            "failed": (since["failed"], predictions),
            "cut": (since["cut"], since["prompts"]),
        }
        return {name: part / whole for name, (part, whole) in shares.items() if whole}

    def _prompt(self, blank: Blank, used: set[str], attempt: int) -> str:
        """Draw an order of the examples that this prediction has not used, if a few draws find one."""
        lasting = self.config.prompts == "per-episode"
        rng = np.random.default_rng([blank.epoch, attempt]) if lasting else blank.rng
        for _ in range(self.config.prompt_draws):
            prompt, left_out = assemble(balanced(blank.groups, rng), blank.query, self.room, self._tokens)
            if prompt not in used:
                break
        used.add(prompt)
        self.counts.prompts += 1
        self.counts.cut += left_out > 0
        return prompt


def balanced(groups: Sequence[Sequence[T]], rng: np.random.Generator) -> list[T]:
    """Shuffle examples of which each group has its share.

    A shuffled group is repeated, from its beginning, up to the size of the largest one. A single group is
    only shuffled.
    """
    size = max(map(len, groups))
    shares = []
    for group in filter(None, groups):
        order = shuffled(group, rng) if len(group) < size else group
        shares += [order[i % len(order)] for i in range(size)]
    return shuffled(shares, rng)


def shuffled(items: Sequence[T], rng: np.random.Generator) -> list[T]:
    """Return the items in random order."""
    return [items[i] for i in rng.permutation(len(items)).tolist()]


def assemble(examples: Sequence[str], query: str, room: int, tokens: Callable[[str], int]) -> tuple[str, int]:
    """Join examples and query, without the first examples where all do not fit.

    Args:
        examples: In their order.
        query: Always kept.
        room: Tokens of the prompt at most.
        tokens: How many a text has.

    Returns:
        The prompt, and how many examples were left out.
    """
    room -= tokens(query)
    first = len(examples)
    while first and tokens(examples[first - 1]) <= room:
        first -= 1
        room -= tokens(examples[first])
    return "".join(examples[first:]) + query, first
