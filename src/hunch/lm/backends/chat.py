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
REPLY: Final = "Q9"
NEXT: Final = "Say Q6."


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
        self._tokenizer, self._parts = tokenizer, False
        self._template = CLOCK + tokenizer.get_chat_template()
        self._see_that_it_prints()
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
        contents = "\n".join(said.content for said in messages)
        if self.control is None or not self.control.search(contents):
            return [(self(messages, replied), False)]
        # The template gets a private sign in place of each mark, so that marks of its own can be told apart.
        free = (chr(number) for number in range(0xE000, 0xF8FF) if chr(number) not in contents)
        sign_of = dict(zip(dict.fromkeys(self.control.findall(contents)), free, strict=False))
        mark_of = {sign: mark for mark, sign in sign_of.items()}
        quoted = [
            said._replace(content=self.control.sub(lambda found: sign_of[found[0]], said.content))
            for said in messages
        ]
        pieces: list[str] = re.split(f"([{''.join(mark_of)}])", self(quoted, replied))
        return [(mark_of.get(piece, piece), piece in mark_of) for piece in pieces if piece]

    def _ending(self) -> tuple[int | None, str]:
        """Return the token that ends a reply, or the text that does.

        The tokenizer's end token ends a text, which need not be a turn. The template says how a turn ends.
        """
        for after in self._closings():
            begins = self.control.match(after.lstrip()) if self.control else None
            if begins:
                return int(self._tokenizer.convert_tokens_to_ids(begins[0])), ""
            if after.strip():
                return None, after.rstrip()
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
        ways = forms(messages) if self.system else [without_system(messages)]
        printed = []
        for way in ways:
            try:
                text = self._render(way)
            except UsageError as error:
                problem = error
                continue
            # An earlier answer may lose its thoughts, but a template that drops a request drops it silently.
            if all(said.content.strip() in text for said in way if said.role != "assistant"):
                return text
            printed.append(text)
        if not printed:
            raise problem
        return printed[0]

    def _see_that_it_prints(self) -> None:
        """Find out whether the template takes content as text or as a list of parts."""
        problem = UsageError("The model's chat template leaves out the user's messages.")
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
        """Return a prompt's end that no reply has before it, what a reply has instead, and white space."""
        asked = PROBE if self.system else PROBE[1:]
        prompt = self._render(asked)
        try:
            whole = self._render([*asked, Message("assistant", REPLY)], reply=True)
        except UsageError:  # the template accepts no replies
            return "", "", ""
        head = whole.rpartition(REPLY)[0]
        differ = (at for at, signs in enumerate(zip(prompt, head, strict=False)) if len({*signs}) > 1)
        shared = prompt[: next(differ, min(len(prompt), len(head)))]
        extra, lead = prompt[len(shared) :], head[len(shared) :]
        if PROBE[1].content not in shared:  # the template prints the conversation itself differently
            return "", "", ""
        return ("", "", lead) if not extra and not lead.strip() else (extra, lead, "")

    def _render(self, messages: Sequence[Message], *, reply: bool = False) -> str:
        goes_on = messages[-1].role == "assistant" and not reply
        opens = messages[-1].role != "assistant" and not reply
        try:
            text: str = self._tokenizer.apply_chat_template(
                [{"role": message.role, "content": self._said(message)} for message in messages],
                tokenize=False,
                add_generation_prompt=opens,
                continue_final_message=goes_on,
                chat_template=self._template,
            )
        except Exception as error:  # a template is a program, and may raise anything
            raise UsageError(f"The model's chat template rejects these messages ({error}).") from error
        return text

    def _said(self, message: Message) -> Any:
        return [{"type": "text", "text": message.content}] if self._parts else message.content


def template_of(tokenizer: Any) -> Template | None:
    """Return the chat template of a tokenizer, or None if it has none."""
    return Template(tokenizer) if getattr(tokenizer, "chat_template", None) else None
