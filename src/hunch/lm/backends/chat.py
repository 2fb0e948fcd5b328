"""Chat templates of transformers: how messages become the text that a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.prompts import Message, text_of, without_system

TODAY: Final = date(2025, 1, 1)
"""Some templates print the date; a prompt that changed overnight would be another one."""
PROBE: Final = (Message("system", "Be Q7."), Message("user", "Say Q8."))
REPLY: Final = "Q9"


class Template:
    """The chat template of a tokenizer.

    Attributes:
        system: Whether it knows messages of the system; else they go into the user's first one.
        joint: White space between the end of a prompt and the model's reply, where nothing else is.
        moves: Whether a reply begins elsewhere than the prompt ends: after an empty thought, for example, or
            before the thought with which the prompt has the model begin.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Try the template.

        Raises:
            UsageError: if it cannot be used at all.
        """
        self._tokenizer, self._parts = tokenizer, False
        self._see_that_it_prints()
        self.system = self._knows_system()
        self._extra, self._lead, self.joint = self._seam()
        self.moves = bool(self._extra or self._lead)

    def __call__(self, messages: Sequence[Message], replied: bool = False) -> str:
        """Return the text after which the model goes on.

        Args:
            messages: The conversation.
            replied: Whether the text is to end where a reply begins, thoughts aside.
        """
        text = self._render(messages if self.system else without_system(messages))
        if replied and messages[-1].role != "assistant" and text.endswith(self._extra):
            return text[: len(text) - len(self._extra)] + self._lead
        return text

    def _see_that_it_prints(self) -> None:
        """Find out whether what is said goes in as a text or as a list of parts."""
        problem = UsageError("The model's chat template does not print what the user says.")
        for self._parts in (False, True):
            try:
                if PROBE[1].content in self._render(PROBE[1:]):
                    return
            except UsageError as error:
                problem = error
        raise problem

    def _knows_system(self) -> bool:
        try:
            return PROBE[0].content in self._render(PROBE)
        except UsageError:
            return False

    def _seam(self) -> tuple[str, str, str]:
        """What a prompt ends with that stands before no reply, what stands there, and the white space."""
        asked = PROBE if self.system else PROBE[1:]
        prompt = self._render(asked)
        try:
            whole = self._render([*asked, Message("assistant", REPLY)], reply=True)
        except UsageError:  # it takes no replies
            return "", "", ""
        head = whole.rpartition(REPLY)[0]
        differ = (at for at, signs in enumerate(zip(prompt, head, strict=False)) if len({*signs}) > 1)
        shared = prompt[: next(differ, min(len(prompt), len(head)))]
        extra, lead = prompt[len(shared) :], head[len(shared) :]
        if PROBE[1].content not in shared:  # the conversation itself is printed in another way
            return "", "", ""
        return ("", "", lead) if not extra and not lead.strip() else (extra, lead, "")

    def _render(self, messages: Sequence[Message], *, reply: bool = False) -> str:
        goes_on = messages[-1].role == "assistant" and not reply
        try:
            text: str = self._tokenizer.apply_chat_template(
                [{"role": message.role, "content": self._said(message)} for message in messages],
                tokenize=False,
                add_generation_prompt=messages[-1].role != "assistant",
                continue_final_message=goes_on,
                strftime_now=TODAY.strftime,
            )
        except Exception as error:  # a template is a program, and may raise anything
            raise UsageError(f"The model's chat template does not take these messages ({error}).") from error
        return text

    def _said(self, message: Message) -> Any:
        return [{"type": "text", "text": message.content}] if self._parts else message.content


def template_of(tokenizer: Any) -> Template | None:
    """Return the chat template of a tokenizer, None where it has none."""
    return Template(tokenizer) if getattr(tokenizer, "chat_template", None) else None


def rendered(template: Template | None, messages: Sequence[Message]) -> str:
    """Return messages as text: by the template, else joined."""
    return text_of(messages) if template is None else template(messages)
