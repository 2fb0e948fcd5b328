"""How a role asks a model: sampling of answers, prompt files, and detection of a silent model."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from hunch.core import State, UsageError
from hunch.lm.answers.lines import spoken
from hunch.lm.answers.question import Answering, Question
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import count_fallbacks, show
from hunch.lm.prompts import Message, Prompt, as_prompt
from hunch.lm.settings import AskConfig as AskConfig
from hunch.lm.speech import Sampling
from hunch.lm.template import Template

ANSWER: Final = 32
"""Default maximum tokens of an answer of one line (ours)."""
SHORT: Final = 256
"""Maximum tokens of the first try of a chat model that does not think: it may explain its answer (ours)."""


class Asking:
    """Asks a model as the settings say: the one place that decides how many tokens an answer may have.

    A model that continues text gets as many as the answer needs. A chat model may think or explain first, so
    it gets its ``answer_tokens``; if it is known not to think, it is first asked with little room, and with
    all of it only for answers that were cut. ``max_tokens`` of the settings replaces all of this.

    Attributes:
        sampling: How answers are sampled.
        brief: Maximum tokens of the first try; None if there is one try.
        template: The prompt from a file; None for the built-in prompt of the role.
        patience: See :class:`AskConfig`.

    Args:
        lm: The model.
        config: The settings.
        tokens: Maximum tokens of an answer without thoughts, if the config has no value.
        most: Maximum tokens of an answer with thoughts. Default: that of the config, or the model's.
        temperature: Sampling temperature, if the config has no value.
        top_p: See :class:`~hunch.lm.speech.Sampling`.
        stop: Texts that end the answer of a model that continues text.
        role: The role, a key of :data:`hunch.lm.hearing.ANSWERS`.

    Raises:
        UsageError: if the model does not support the reasoning effort, or the prompt cannot be used.
    """

    def __init__(
        self,
        lm: LanguageModel,
        config: AskConfig,
        *,
        tokens: int = ANSWER,
        most: int | None = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        stop: tuple[str, ...] = ("\n",),
        role: str = "prior",
    ) -> None:
        self.lm = lm
        self.role = role
        self.chats = bool(getattr(lm, "answer_tokens", 0))
        is_limited_by_config = most is None and config.max_tokens is not None
        most = most or config.max_tokens or room(lm, tokens)
        if config.temperature is not None:
            temperature = config.temperature
        if config.stop is not None:
            stop = tuple(config.stop)
        elif self.chats:
            stop = ()
        self.sampling = Sampling(most, temperature, top_p, stop, config.effort or "")
        does_not_think = self.chats and getattr(lm, "thinks", None) is False
        self.brief = max(tokens, SHORT) if does_not_think and not is_limited_by_config else None
        if config.effort:
            require_knows(lm, "effort", "reasoning effort")
        self.template = Template.read(config.prompt, config.prompt_fields) if config.prompt else None
        self.patience = config.patience

    def generate(
        self,
        prompts: Sequence[Prompt],
        k: int = 1,
        first: int = 0,
        *,
        sampling: Sampling | None = None,
    ) -> list[list[str]]:
        """Return k answers to each prompt; see :meth:`hunch.lm.base.LanguageModel.generate`.

        A model that does not think is asked with little room, and again with all of it for the answers that
        were cut, so that a model that does not come to an end costs little.

        Args:
            prompts: The prompts.
            k: Number of answers to each.
            first: Number of the first sample.
            sampling: How the answers are sampled. Default: as the settings say.
        """
        return self._twice(prompts, [sampling or self.sampling] * len(prompts), k, first)

    def restricted(
        self,
        prompts: Sequence[Prompt],
        options: Sequence[Sequence[str]],
        k: int = 1,
        first: int = 0,
    ) -> list[list[str]]:
        """Return k answers to each prompt, each restricted to its options.

        Args:
            prompts: The prompts.
            options: The options of each prompt.
            k: Number of answers to each.
            first: Number of the first sample.
        """
        samplings = [replace(self.sampling, choices=tuple(listed_options)) for listed_options in options]
        return self._twice(prompts, samplings, k, first)

    def _twice(
        self, prompts: Sequence[Prompt], samplings: Sequence[Sampling], k: int, first: int
    ) -> list[list[str]]:
        """Ask with little room first, where that is the rule, and then with all of it for what was cut."""
        if self.brief is None or not samplings or self.brief >= samplings[0].max_tokens:
            return _generated(self.lm, prompts, samplings, k, first)
        short = [replace(whole, max_tokens=self.brief) for whole in samplings]
        samples = [(place, number) for place in range(len(prompts)) for number in range(first, first + k)]

        # Answers with all the room that are stored: those of a run that is resumed. They are not cut again.
        long = [each for each in samples if self._holds(_question(prompts, samplings, *each))]
        if long:
            answers = [[""] * k for _ in prompts]
            known = set(long)
            rest = [each for each in samples if each not in known]
            with self._cut_is_no_news():
                self._fill(answers, rest, prompts, short, first)
        else:
            with self._cut_is_no_news():
                answers = _generated(self.lm, prompts, short, k, first)

        unfinished = getattr(self.lm, "unfinished", ())
        cut = [
            (place, number)
            for place, number in samples
            if _question(prompts, short, place, number) in unfinished
        ]
        self._fill(answers, [*long, *cut], prompts, samplings, first)
        return answers

    def _fill(
        self,
        answers: list[list[str]],
        due: Sequence[tuple[int, int]],
        prompts: Sequence[Prompt],
        samplings: Sequence[Sampling],
        first: int,
    ) -> None:
        """Ask for single samples, by place of the prompt and number of the sample, and put them in place."""
        by_number: dict[int, list[int]] = {}
        for place, number in due:
            by_number.setdefault(number, []).append(place)
        for number, places in by_number.items():
            texts = _generated(
                self.lm,
                [prompts[place] for place in places],
                [samplings[place] for place in places],
                1,
                number,
            )
            for place, (text,) in zip(places, texts, strict=True):
                answers[place][number - first] = text

    def _holds(self, question: Question) -> bool:
        holds = getattr(self.lm, "holds", None)
        return holds is not None and holds(question)

    @contextmanager
    def _cut_is_no_news(self) -> Iterator[None]:
        """Keep quiet about answers that are cut in a first try."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*cut an answer at max_tokens={self.brief};")
            yield

    def hear(
        self, answers: Sequence[str], read: Sequence[object], *, abstains: bool = False, rejected: int = 0
    ) -> None:
        """Count answers that could not be read; see :func:`hunch.lm.hearing.count_fallbacks`.

        Args:
            answers: The answers, in order.
            read: What was read in each answer; None if nothing.
            abstains: The role allows other answers: only an answer without words is useless.
            rejected: Parts of usable answers that were rejected.

        Raises:
            HunchError: if too many answers in a row are useless.
        """
        show(self.lm, self.role, answers, read)
        heard: list[tuple[str, bool]] = []  # each answer, with whether it was of use
        abstained = rejected
        for answer, meaning in zip(answers, read, strict=True):
            abstention = meaning is None and abstains and bool(spoken(answer).strip())
            abstained += abstention
            heard.append((answer, meaning is not None or abstention))
        count_fallbacks(self.lm, heard, self.patience, abstained, self.role)

    def prompt(self, default: Prompt, **values: str) -> Prompt:
        """Return the built-in prompt, or the template filled in; a chat model gets the template unchanged."""
        if self.template is None:
            return default
        text = self.template.fill(**values)
        return (Message("user", text),) if self.chats else text


def rounds(asked: Sequence[Hashable]) -> list[list[int]]:
    """Return the places of what is asked in rounds, in none of which two are equal.

    An answer is a function of its prompt and its number, and all prompts of a request have the same numbers.
    So equal prompts that need answers of their own are asked in turn.

    Args:
        asked: Prompts, or states of which the prompts are made.
    """
    seen = Counter[Hashable]()
    places: list[list[int]] = []
    for place, one in enumerate(asked):
        if seen[one] == len(places):
            places.append([])
        places[seen[one]].append(place)
        seen[one] += 1
    return places


def _question(prompts: Sequence[Prompt], samplings: Sequence[Sampling], place: int, number: int) -> Question:
    """Return the request of one sample."""
    return Question("generate", (as_prompt(prompts[place]), samplings[place].key()), number)


def _generated(
    lm: LanguageModel, prompts: Sequence[Prompt], samplings: Sequence[Sampling], k: int, first: int
) -> list[list[str]]:
    """Return k answers to each prompt, each prompt with a sampling of its own.

    All prompts are asked at once where the model can be asked so, else with one call per kind of sampling.
    """
    kinds: dict[Sampling, list[int]] = {}  # places of the prompts that are sampled alike
    for place, sampling in enumerate(samplings):
        kinds.setdefault(sampling, []).append(place)
    if len(kinds) > 1 and isinstance(lm, Answering):
        return lm.generate_each(prompts, samplings, k, first)
    answers: list[list[str]] = [[] for _ in prompts]
    for sampling, places in kinds.items():
        texts = lm.generate([prompts[place] for place in places], k, sampling, first)
        for place, of_prompt in zip(places, texts, strict=True):
            answers[place] = of_prompt
    return answers


def room(lm: LanguageModel, tokens: int) -> int:
    """Return the maximum tokens of an answer: as given, or more for a chat model that may think first."""
    return max(tokens, getattr(lm, "answer_tokens", 0))


def require_knows(lm: LanguageModel, setting: str, words: str) -> None:
    """Check that a model supports a setting.

    Raises:
        UsageError: if it does not; the message names both.
    """
    if setting not in getattr(lm, "takes", frozenset()):
        raise UsageError(f"{lm.name} does not support {words}: only chat models of openai: do.")


def about(state: State) -> dict[str, str]:
    """Return the fields of a template that a state fills."""
    return {
        "task": state.aim,
        "history": "\n".join(f"{seen}\n> {action}" for seen, action in state.history),
        "observation": state.observation,
        "actions": "" if state.actions is None else listed(state.actions),
        "examples": examples(state.raw),
    }


def listed(items: Collection[str]) -> str:
    """Return items as a list, one per line, for the field ``{actions}``."""
    return "\n".join(f"- {item}" for item in items)


def examples(pairs: Any) -> str:
    """Return examples of instructions with plans, for the field ``{examples}``; empty without examples."""
    many = (tuple, list)
    if not isinstance(pairs, many) or not all(isinstance(pair, many) and len(pair) == 2 for pair in pairs):
        return ""
    return "\n".join(f"{task}: {', '.join(map(str, plan))}" for task, plan in pairs)
