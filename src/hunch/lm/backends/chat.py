"""Chat templates of the transformers library, which turn messages into the text format of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.backends import seam
from hunch.lm.prompts import Message, forms, without_system

TODAY: Final = date(2025, 1, 1)
"""Date for templates that print one; with the real date, the prompt would change every day."""
CODES: Final = {code: TODAY.strftime(f"%{code}") for code in "aAbBdmyYHIpMSjUwW"} | {"-d": "1", "-m": "1"}
CLOCK: Final = "".join(
    [
        "{% macro strftime_now(format) %}{{ format",
        *(f"|replace('%{code}', '{value}')" for code, value in CODES.items()),
        " }}{% endmacro %}\n",
    ]
)
"""Template code that replaces transformers' function for the current date."""
PROBE: Final = (Message("system", "Be Q7."), Message("user", "Say Q8."))
"""Messages with which templates are tried; their texts are unlikely to stand in one."""
REPLY: Final = "Q9"
"""An answer to them."""
NEXT: Final = "Say Q6."
"""What the user says next."""


class Template:
    """The chat template of a tokenizer.

    Attributes:
        system: True if the template accepts system messages; else their text joins the first user message.
        joint: White space between the end of a prompt and the reply, if nothing else stands between them.
        moves: True if a reply does not begin at the end of the prompt: for example after an empty thought, or
            before a thought that the prompt opens.
        control: Finds the tokens that the model reads as control tokens; None if there are none.
        end: The token that ends a reply; None if that is a text.
        stop: The text that ends a reply, if no token does: the header of the next turn. Else empty.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Try the template.

        Raises:
            UsageError: if it cannot be used.
        """
        self._tokenizer = tokenizer
        self._template = CLOCK + tokenizer.get_chat_template()
        self._parts = self._wants_parts()
        self.system = self._knows_system()
        self._extra, self._lead, self.joint = self._seam()
        self.moves = bool(self._extra or self._lead)
        self.control = seam.control_tokens(tokenizer, self._render(PROBE if self.system else PROBE[1:]))
        self.end, self.stop = self._ending()

    def __call__(self, messages: Sequence[Message], replied: bool = False) -> str:
        """Return the text after which the model's reply begins or continues.

        Args:
            messages: The conversation.
            replied: True to end the text where a reply begins, without an open thought.
        """
        text = self._accepted(messages)
        if replied and messages[-1].role != "assistant" and text.endswith(self._extra):
            return text[: len(text) - len(self._extra)] + self._lead
        return text

    def parts(self, messages: Sequence[Message], replied: bool = False) -> list[tuple[str, bool]]:
        """Return the same text in parts, each with whether it is a control token that a message holds.

        A message may hold the text of a control token, as an observation may. It must stay a text: otherwise
        an observation could end its turn and speak as the user or as the model.
        """
        contents = "\n".join(message.content for message in messages)
        if self.control is None or not self.control.search(contents):
            return [(self(messages, replied), False)]
        # The template gets a private sign in place of each mark, so that marks of its own can be told apart.
        unused = (chr(number) for number in range(0xE000, 0xF8FF) if chr(number) not in contents)
        marks = dict.fromkeys(self.control.findall(contents))
        sign_of = dict(zip(marks, unused, strict=False))
        mark_of = {sign: mark for mark, sign in sign_of.items()}
        signed = [
            message._replace(content=self.control.sub(lambda mark: sign_of[mark[0]], message.content))
            for message in messages
        ]
        pieces: list[str] = re.split(f"([{''.join(mark_of)}])", self(signed, replied))
        return [(mark_of.get(piece, piece), piece in mark_of) for piece in pieces if piece]

    def _ending(self) -> tuple[int | None, str]:
        """Return the token that ends a reply, or the text that does.

        The tokenizer's end token ends a text, which need not be a turn. The template says how a turn ends.
        """
        for closing in self._closings():
            token = self.control.match(closing.lstrip()) if self.control else None
            if token:
                return int(self._tokenizer.convert_tokens_to_ids(token[0])), ""
            if closing.strip():
                return None, closing.rstrip()
        return None, ""

    def _closings(self) -> Iterator[str]:
        """Yield what stands after a reply: at the end of a conversation, and before the user's next turn."""
        asked = PROBE if self.system else PROBE[1:]
        talk = [*asked, Message("assistant", REPLY)]
        for more in ([], [Message("user", NEXT)]):
            try:
                text = self._render([*talk, *more], reply=True)
            except UsageError:  # the template accepts no replies
                return
            yield text.rpartition(REPLY)[2].partition(NEXT)[0]

    def _accepted(self, messages: Sequence[Message]) -> str:
        """Return the text of messages in the first form that the template accepts and prints in full.

        Raises:
            UsageError: if it accepts none.
        """
        problem = UsageError("The model's chat template leaves out a part of these messages.")
        incomplete: list[str] = []
        for form in forms(messages) if self.system else [without_system(messages)]:
            try:
                text = self._render(form)
            except UsageError as error:
                problem = error
                continue
            # An earlier answer may lose its thoughts, but a template that drops a request drops it silently.
            if all(message.content.strip() in text for message in form if message.role != "assistant"):
                return text
            incomplete.append(text)
        if not incomplete:
            raise problem
        return incomplete[0]

    def _wants_parts(self) -> bool:
        """Return whether the template takes content as a list of parts, and not as text.

        Raises:
            UsageError: if it prints neither.
        """
        problem = UsageError("The model's chat template leaves out the user's messages.")
        for parts in (False, True):
            self._parts = parts
            try:
                if PROBE[1].content in self._render(PROBE[1:]):
                    return parts
            except UsageError as error:
                problem = error
        raise problem

    def _knows_system(self) -> bool:
        try:
            return PROBE[0].content in self._render(PROBE)
        except UsageError:
            return False

    def _seam(self) -> tuple[str, str, str]:
        """Return a prompt's end that no reply has before it, what a reply has instead, and white space."""
        asked = PROBE if self.system else PROBE[1:]
        prompt = self._render(asked)
        try:
            answered = self._render([*asked, Message("assistant", REPLY)], reply=True)
        except UsageError:  # the template accepts no replies
            return "", "", ""
        before_reply = answered.rpartition(REPLY)[0]
        shared = _common_beginning(prompt, before_reply)
        if PROBE[1].content not in shared:  # the template prints the conversation itself differently
            return "", "", ""
        extra = prompt[len(shared) :]
        lead = before_reply[len(shared) :]
        if not extra and not lead.strip():
            return "", "", lead
        return extra, lead, ""

    def _render(self, messages: Sequence[Message], *, reply: bool = False) -> str:
        """Print messages; the text ends where the model's turn begins or goes on, or with ``reply`` after it.

        Raises:
            UsageError: if the template rejects the messages.
        """
        is_begun = messages[-1].role == "assistant"  # the model goes on with its last message
        try:
            text: str = self._tokenizer.apply_chat_template(
                [{"role": message.role, "content": self._content(message)} for message in messages],
                tokenize=False,
                add_generation_prompt=not is_begun and not reply,
                continue_final_message=is_begun and not reply,
                chat_template=self._template,
            )
        except Exception as error:  # a template is a program, and may raise anything
            raise UsageError(f"The model's chat template rejects these messages ({error}).") from error
        return text

    def _content(self, message: Message) -> Any:
        return [{"type": "text", "text": message.content}] if self._parts else message.content


def _common_beginning(one: str, other: str) -> str:
    length = 0
    for sign, twin in zip(one, other, strict=False):
        if sign != twin:
            break
        length += 1
    return one[:length]


def template_of(tokenizer: Any) -> Template | None:
    """Return the chat template of a tokenizer, or None if it has none."""
    if not getattr(tokenizer, "chat_template", None):  # some tokenizers lack the attribute
        return None
    return Template(tokenizer)
