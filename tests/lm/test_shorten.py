"""A prompt that is too long loses its oldest part, and no more than it must."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hunch.lm import Message
from hunch.lm.shorten import GAP, SHORTEST, shortened


def size(prompt):
    return len(prompt) if isinstance(prompt, str) else sum(len(message.content) for message in prompt)


def to(prompt, most):
    return shortened(prompt, lambda part: size(part) <= most)


@given(st.text(max_size=600), st.integers(SHORTEST, 700))
def test_a_text_fits_or_is_unchanged(text, most):
    part = to(text, most)
    assert size(part) <= most
    assert (part == text) == (len(text) <= most)


@given(st.lists(st.text(max_size=90), min_size=1, max_size=9), st.integers(200, 900), st.booleans())
def test_a_conversation_keeps_its_instruction_and_its_last_question(texts, most, system):
    roles = ["user" if place % 2 == 0 else "assistant" for place in range(len(texts))]
    talk = [Message(role, text) for role, text in zip(roles, texts, strict=True)]
    talk = [Message("system", "Be brief."), *talk] if system else talk
    part = to(talk, most)
    assert size(part) <= most or size(part) <= SHORTEST * len(part)
    assert not system or part[0] == talk[0]
    assert part[-1].role == talk[-1].role
    if size(talk) <= most:
        assert part == tuple(talk)


def test_the_oldest_steps_go_first_and_only_as_many_as_must():
    steps = [f"You see room {number}.\n> go {number}\n" for number in range(9)]
    text = f"Your task is to: win\n{''.join(steps)}You see the door.\n>"
    part = to(text, len(text) - 1)
    kept = "".join(steps[2:])
    assert part == f"Your task is to: win\n{steps[0]}{GAP}\n{kept}You see the door.\n>"


def test_the_oldest_turns_go_first():
    talk = [Message("user" if place % 2 == 0 else "assistant", f"{place}" * 20) for place in range(7)]
    assert to(talk, 100) == (talk[0], *talk[3:])
    begun = [*talk, Message("assistant", "I")]
    assert to(begun, 45)[-2:] == tuple(begun[-2:])


def test_of_one_long_line_beginning_and_end_stay():
    part = to("task " + "word " * 500 + "question", 120)
    assert part.startswith("task ")
    assert part.endswith(" question")
    assert GAP in part
