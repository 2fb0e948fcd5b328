"""Chat templates of the transformers library, which turn messages into the text format of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.prompts import Message, text_of, without_system

TODAY: Final = date(2025, 1, 1)
"""Date for templates that print one; with the real date, the prompt would change every day."""
CLOCK: Final = re.compile(r"""strftime_now\(\s*(["'])(.*?)\1\s*\)""")
PROBE: Final = (Message("system", "Be Q7."), Message("user", "Say Q8."))
REPLY: Final = "Q9"


class Template:
    """The chat template of a tokenizer.

    Attributes:
        system: True if it accepts system messages; otherwise they go into the first user message.
        joint: Text between the end of a prompt and the model's reply.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Try the template.

        Raises:
            UsageError: if it cannot be used.
        """
        self._tokenizer = tokenizer
        self._template = CLOCK.sub(
            lambda asked: repr(TODAY.strftime(asked[2])), tokenizer.get_chat_template()
        )
        self.system = self._knows_system()
        asked = PROBE if self.system else PROBE[1:]
        prompt, whole = self._render(asked), self._render([*asked, Message("assistant", REPLY)], reply=True)
        between = whole[len(prompt) :].partition(REPLY)[0] if whole.startswith(prompt) else ""
        self.joint = between if not between.strip() else ""

    def __call__(self, messages: Sequence[Message]) -> str:
        """Return the text after which the model's reply begins or continues."""
        return self._render(messages if self.system else without_system(messages))

    def _knows_system(self) -> bool:
        try:
            return PROBE[0].content in self._render(PROBE)
        except UsageError:
            return False

    def _render(self, messages: Sequence[Message], *, reply: bool = False) -> str:
        goes_on = messages[-1].role == "assistant" and not reply
        try:
            text: str = self._tokenizer.apply_chat_template(
                [{"role": message.role, "content": message.content} for message in messages],
                tokenize=False,
                add_generation_prompt=messages[-1].role != "assistant",
                continue_final_message=goes_on,
                chat_template=self._template,
            )
        except Exception as error:  # a template is a program, and may raise anything
            raise UsageError(f"The model's chat template rejects these messages ({error}).") from error
        return text


def template_of(tokenizer: Any) -> Template | None:
    """Return the chat template of a tokenizer, or None if it has none."""
    return Template(tokenizer) if getattr(tokenizer, "chat_template", None) else None


def rendered(template: Template | None, messages: Sequence[Message]) -> str:
    """Return messages as text, by the template if there is one, else joined."""
    return text_of(messages) if template is None else template(messages)
