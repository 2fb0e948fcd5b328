"""How a role asks a model: sampling of answers, prompt files, and detection of a silent model."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from hunch.core import State, UsageError
from hunch.lm.answers.lines import spoken
from hunch.lm.answers.question import Question
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
    """Asks a model as the settings say.

    Attributes:
        sampling: How answers are sampled.
        first_try: How they are sampled first, with little room; None if there is one try.
        template: The prompt from a file; None for the built-in prompt of the role.
        patience: See :class:`AskConfig`.

    Args:
        lm: The model.
        config: The settings.
        tokens: Maximum tokens of an answer without thoughts, if the config has no value.
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
        temperature: float = 1.0,
        top_p: float = 1.0,
        stop: tuple[str, ...] = ("\n",),
        role: str = "prior",
    ) -> None:
        self.lm, self.role = lm, role
        self.chats = bool(getattr(lm, "answer_tokens", 0))
        heat = temperature if config.temperature is None else config.temperature
        most = config.max_tokens or room(lm, tokens)
        ends = (() if self.chats else stop) if config.stop is None else tuple(config.stop)
        self.sampling = Sampling(most, heat, top_p, ends, config.effort or "")
        # A chat model that is known not to think needs no room for thoughts. If an answer is cut, it gets it.
        short = self.chats and getattr(lm, "thinks", None) is False and not config.max_tokens
        self.first_try = replace(self.sampling, max_tokens=min(most, max(tokens, SHORT))) if short else None
        if config.effort:
            require_knows(lm, "effort", "reasoning effort")
        self.template = Template.read(config.prompt, config.prompt_fields) if config.prompt else None
        self.patience = config.patience

    def generate(self, prompts: Sequence[Prompt], k: int = 1, first: int = 0) -> list[list[str]]:
        """Return k answers to each prompt; see :meth:`hunch.lm.base.LanguageModel.generate`.

        A model that does not think is asked with little room, and again with all of it for the answers that
        were cut, so that a model that does not come to an end costs little.
        """
        if self.first_try is None:
            return self.lm.generate(prompts, k, self.sampling, first)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*cut an answer at max_tokens={self.first_try.max_tokens};")
            answers = self.lm.generate(prompts, k, self.first_try, first)
        for prompt, row in zip(prompts, answers, strict=True):
            for i, answer in enumerate(row):
                asked = Question("generate", (as_prompt(prompt), self.first_try.key()), first + i)
                if answer.strip() and asked in getattr(self.lm, "unfinished", ()):
                    ((row[i],),) = self.lm.generate([prompt], 1, self.sampling, first + i)
        return answers

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
        known = [meaning is not None for meaning in read]
        told = zip(answers, known, strict=True)
        usable = [ok or (abstains and bool(spoken(answer).strip())) for answer, ok in told]
        pairs, abstained = zip(answers, usable, strict=True), sum(usable) - sum(known) + rejected
        count_fallbacks(self.lm, pairs, self.patience, abstained, self.role)

    def prompt(self, default: Prompt, **values: str) -> Prompt:
        """Return the built-in prompt, or the template filled in; a chat model gets the template unchanged."""
        if self.template is None:
            return default
        text = self.template.fill(**values)
        return (Message("user", text),) if self.chats else text


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
