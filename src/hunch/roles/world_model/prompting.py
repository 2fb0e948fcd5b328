"""Prompts of examples: built, cut to the model's context, and repeated until an answer can be read.

A prompt consists of examples in random order and a query without its last part. Only the last examples that
fit into the context are kept. Unreadable answers and prompts without examples are counted.

Source: Brooks et al., "Large Language Models can Implement Policy Iteration", NeurIPS 2023, and its released
code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final, Literal, TypeVar

import numpy as np

from hunch.core import UsageError
from hunch.lm import require
from hunch.lm.answers.lines import read_line
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import AskConfig, Asking, listed, room
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling
from hunch.numbers import softmax
from hunch.ranges import NonNegativeFloat, PositiveInt, PositiveShare

T = TypeVar("T")

CONTEXT: Final = 4000
"""Context in tokens for models that do not state theirs: that of code-davinci-002 (released code)."""
RESERVE: Final = 100
"""Tokens of the context left free in addition to the completion, as in the released code."""
SPECIAL: Final = 4
"""Tokens for the special tokens at the beginning of a model's input, which token counts leave out."""
STEP: Final = 16
"""The tokens reserved for answers are a multiple of this, so that prompts rarely change with them."""


@dataclass(frozen=True, kw_only=True)
class PromptConfig(AskConfig):
    """Settings of prompts with examples, and of the sampled answers."""

    answers: Literal["write", "choose"] = "write"
    """Let the model write answers (released code), or draw by likelihood among the possible ones: actions,
    ends, and rewards seen so far. Next states are always written."""
    resamples: PositiveInt = 3
    """Maximum completions per prediction (released code)."""
    prompt_draws: PositiveInt = 5
    """Maximum shuffles of the examples to find a prompt that is new for this prediction (released code)."""
    prompts: Literal["per-prediction", "per-episode"] = "per-prediction"
    """Shuffle examples for every prediction (released code), or once per episode, for prefix caches."""
    balance: bool = True
    """Give all outcomes equal shares of the examples, in prompts for end and reward (released code)."""
    action_constraint: bool = True
    """Show the world model only examples with the same action (released code)."""
    policy_hints: bool = True
    """Show the policy states with the environment's hints, if it has any (released code)."""
    context: PositiveInt | None = None
    """Context in tokens; prompts leave max_tokens + 100 free, or less for shorter answers. Default: that
    of the model, at most 4000."""
    max_tokens: PositiveInt = 100
    """Maximum tokens per completion (released code); for a chat model at least enough for its thoughts."""
    temperature: NonNegativeFloat = 0.1
    """Sampling temperature (released code)."""
    policy_temperature: NonNegativeFloat | None = None
    """Sampling temperature of actions; 1 samples the model's distribution. Default: as for all answers."""
    top_p: PositiveShare = 1.0
    """Probability mass of the tokens to sample from, 0 to 1; 1 for all tokens (released code)."""


@dataclass(slots=True)
class Counts:
    """Statistics of prompts and answers.

    Attributes:
        completions: Number of answers.
        unread: Answers that could not be read.
        failed: Predictions without a readable answer.
        bare: Failed predictions without any example in the prompt.
        prompts: Number of prompts.
        cut: Prompts that lost examples because the context was full.
    """

    completions: int = 0
    unread: int = 0
    failed: int = 0
    bare: int = 0
    prompts: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Blank:
    """A query to complete, with the groups of examples and a random generator.

    Attributes:
        query: The end of the prompt.
        groups: Examples; each of several groups has an equal share of the prompt.
        rng: Orders the examples.
        epoch: Number of finished episodes; a prompt that is kept for an episode depends on it.
        options: All possible answers in full; empty if they are unknown.
    """

    query: str
    groups: Sequence[Sequence[str]]
    rng: np.random.Generator
    epoch: int
    options: Sequence[str] = ()


class Completer:
    """Completes queries with a language model.

    Attributes:
        context: Size of the context in tokens.
        answer: Maximum tokens of an answer.
        room: Tokens that any prompt may have; :meth:`spare` may allow more.
        counts: Statistics since the start.

    Args:
        lm: A model that generates.
        config: How prompts are made.
        most: Maximum tokens of a completion, thoughts included. Default: those of the config, or what a chat
            model needs for its thoughts.

    Raises:
        UsageError: if the model cannot generate, or a setting is out of range.
    """

    def __init__(self, lm: LanguageModel, config: PromptConfig, most: int | None = None) -> None:
        self.lm = require(lm, "generate", needed_by="A prompt of examples")
        if config.answers == "choose":
            require(lm, "score", needed_by="A choice among answers")
        if min(config.resamples, config.prompt_draws) < 1:
            raise UsageError("resamples and prompt_draws must be at least 1.")
        self.config = config
        extra = room(lm, 0) if most is None else most
        self.context = config.context or min(CONTEXT + extra, self.lm.context or CONTEXT + extra)
        self.answer = max(config.max_tokens, extra) if most is None else most
        self._asking = Asking(lm, config, tokens=config.max_tokens, most=self.answer, role="world-model")
        self.room = self.context - self.answer - RESERVE
        if self.room < 1:
            raise UsageError(
                f"A context of {self.context} tokens has no room for a prompt, because "
                f"{self.answer + RESERVE} tokens are left free."
            )
        self.counts, self._reported = Counts(), Counts()
        self._tokens = lru_cache(maxsize=1 << 14)(self.lm.count_tokens)

    def fill(
        self,
        blanks: Sequence[Blank],
        stop: str,
        read: Callable[[str], T | None],
        temperature: float | None = None,
    ) -> list[T | None]:
        """Complete all queries in one batch, and ask again for those whose answers cannot be read.

        Args:
            blanks: The queries, with their examples.
            stop: Text at which an answer ends.
            read: Parses an answer.
            temperature: Sampling temperature. Default: that of the settings.

        Returns:
            The parsed answers; ``None`` for answers that could not be read.
        """
        answers: list[T | None] = [None] * len(blanks)
        open_ = [i for i, blank in enumerate(blanks) if any(blank.groups)]
        self.counts.bare += len(blanks) - len(open_)
        used: list[set[str]] = [set() for _ in blanks]
        degree = self.config.temperature if temperature is None else temperature
        spare = self.spare([blanks[i] for i in open_])
        if self.config.answers == "choose" and open_ and all(blanks[i].options for i in open_):
            for i, text in zip(open_, self._choose([blanks[i] for i in open_], degree, spare), strict=True):
                answers[i] = read(text.removesuffix(stop))
            self.counts.unread += sum(answers[i] is None for i in open_)
            self.counts.failed += sum(answer is None for answer in answers)
            return answers
        sampling = self._sampling(min(self.answer, spare - SPECIAL), degree, stop)
        for attempt in range(self.config.resamples):
            if not open_:
                break
            prompts = [self._prompt(blanks[i], used[i], attempt, spare) for i in open_]
            texts = [text for (text,) in self._asking.generate(prompts, 1, attempt, sampling=sampling)]
            for i, text in zip(open_, texts, strict=True):
                answers[i] = _chatted(text, read, stop, blanks[i]) if self._asking.chats else read(text)
            self.counts.completions += len(open_)
            self._asking.hear(texts, [answers[i] for i in open_])
            open_ = [i for i in open_ if answers[i] is None]
            self.counts.unread += len(open_)
        self.counts.failed += sum(answer is None for answer in answers)
        return answers

    def _sampling(self, most: int, temperature: float, stop: str) -> Sampling:
        sampling = self._asking.sampling
        ends = sampling.stop if self._asking.chats or self.config.stop is not None else (stop,)
        return replace(sampling, max_tokens=most, temperature=temperature, top_p=self.config.top_p, stop=ends)

    def spare(self, blanks: Sequence[Blank]) -> int:
        """Return the tokens to reserve for answers: twice the longest possible answer, at most the setting.

        An answer is one of the options, or shorter than an example containing one. ``SPECIAL`` of the tokens
        are for the model's special tokens, the rest for the answer. If the model does not state its context,
        token counts are estimates, and the released code's reserve is kept.
        """
        reserve = self.answer + RESERVE
        if self.lm.context is None or self._asking.chats:
            return reserve
        known = chain.from_iterable([blank.options] if blank.options else blank.groups for blank in blanks)
        longest = max(map(self._tokens, chain.from_iterable(known)), default=reserve)
        return min(reserve, -(-2 * longest // STEP) * STEP)

    def _choose(self, blanks: Sequence[Blank], temperature: float, spare: int) -> list[str]:
        """Draw one of the possible answers of each blank by its likelihood."""
        prompts = [self._prompt(blank, set(), 0, spare) for blank in blanks]
        scores = self.lm.score(prompts, [blank.options for blank in blanks])
        self.counts.completions += len(blanks)
        chosen = []
        for blank, score in zip(blanks, scores, strict=True):
            shares = softmax(score.logprobs / temperature) if temperature else score.logprobs
            i = blank.rng.choice(len(shares), p=shares) if temperature else np.argmax(shares)
            chosen.append(blank.options[int(i)])
        return chosen

    def metrics(self) -> dict[str, float]:
        """Return shares since the last call: unread completions, failed predictions, cut prompts."""
        now, before = asdict(self.counts), asdict(self._reported)
        since = {name: now[name] - before[name] for name in now}
        self._reported = replace(self.counts)
        predictions = since["completions"] - since["unread"] + since["failed"]
        shares = {
            "unread": (since["unread"], since["completions"]),
            "failed": (since["failed"], predictions),
            "cut": (since["cut"], since["prompts"]),
        }
        return {name: part / whole for name, (part, whole) in shares.items() if whole}

    def _prompt(self, blank: Blank, used: set[str], attempt: int, spare: int) -> Prompt:
        """Draw an order of the examples that this prediction has not used, if a few draws find one."""
        lasting = self.config.prompts == "per-episode"
        rng = np.random.default_rng([blank.epoch, attempt]) if lasting else blank.rng
        for _ in range(self.config.prompt_draws):
            examples, room = balanced(blank.groups, rng), self.context - spare
            prompt, left_out = assemble(examples, blank.query, room, self._tokens)
            if prompt not in used:
                break
        used.add(prompt)
        self.counts.prompts += 1
        self.counts.cut += left_out > 0
        return self._asking.prompt(
            prompt,
            examples=prompt.removesuffix(blank.query),
            observation=blank.query,
            actions=listed(blank.options),
        )


def _chatted(text: str, read: Callable[[str], T | None], stop: str, blank: Blank) -> T | None:
    """Read the answer of a chat model, which may say more than the line that is due."""
    value = read_line(text, read, stop)
    if value is not None:
        return value
    index = read_option(text, blank.options)
    return None if index is None else read(blank.options[index].removesuffix(stop))


def balanced(groups: Sequence[Sequence[T]], rng: np.random.Generator) -> list[T]:
    """Return examples in random order, with equal shares for all groups.

    A shuffled group is repeated from its beginning up to the size of the largest group. A single group is
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
    """Join examples and query; if they do not fit into ``room``, the first examples are left out.

    Args:
        examples: The examples in order.
        query: The query, which is always kept.
        room: Maximum tokens of the prompt.
        tokens: Returns the number of tokens of a text.

    Returns:
        The prompt, and the number of examples left out.
    """
    room -= tokens(query)
    first = len(examples)
    while first and tokens(examples[first - 1]) <= room:
        first -= 1
        room -= tokens(examples[first])
    return "".join(examples[first:]) + query, first
