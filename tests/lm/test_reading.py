"""Answers are read as people read them: right ones in many styles, and none that decides on nothing."""

import json
from pathlib import Path

import pytest

from hunch.lm.answers.lines import read_line, spoken
from hunch.lm.answers.reading import read_option

TABLE = json.loads((Path(__file__).parent / "answers.json").read_text())
RIGHT = [(answer, option, group["options"]) for group in TABLE.values() for answer, option in group["right"]]
WRONG = [(answer, group["options"]) for group in TABLE.values() for answer in group["wrong"]]


def read(answer, options):
    index = read_option(answer, options)
    return None if index is None else options[index]


def test_right_answers_of_many_styles_are_read():
    assert len(RIGHT) > 200
    missed = [answer for answer, option, options in RIGHT if read(answer, options) != option]
    assert len(missed) <= len(RIGHT) / 40, missed


def test_no_right_answer_is_read_as_another_option():
    assert [a for a, option, options in RIGHT if read(a, options) not in (option, None)] == []


def test_wrong_and_undecided_answers_are_read_as_nothing():
    assert len(WRONG) > 50
    assert [(answer, read(answer, options)) for answer, options in WRONG if read(answer, options)] == []


@pytest.mark.parametrize("group", TABLE)
def test_options_to_the_letter_are_themselves_in_any_order(group):
    options = TABLE[group]["options"]
    for order in (options, options[::-1]):
        assert [read(option, order) for option in order] == order
        assert [read(f"  {option.upper()}\n", order) for option in order] == order


def test_what_follows_a_number_in_brackets_is_not_an_option():
    assert read("go up [2]", ["go left", "go down", "go up"]) == "go up"


def test_thoughts_are_not_spoken():
    assert spoken("<think>a</think>b").strip() == "b"
    assert spoken("a thought that the prompt opened</think>\nb").strip() == "b"
    assert spoken("<think>without an end") == ""
    assert spoken("b < think > c") == "b < think > c"


def test_lists_and_lines_are_found_in_prose():
    assert read_line("<think>x</think>\n1. `drink`.\n", lambda text: "drink" if text == "drink" else None)
    assert read_line("Sure:\n```\n12\n```", lambda text: int(text) if text.isdigit() else None) == 12
    assert read_line("nothing", lambda text: None) is None
    assert read_line("I would say **12**.", lambda text: int(text) if text.isdigit() else None) == 12


@pytest.mark.parametrize(
    "answer",
    [
        "```text\r\ngo left\r\n```",
        "~~~\ngo left\n~~~",
        "````text\ngo left\n````",
        "1. My move:\n   ```\n   go left\n   ```",
        "> ```\n> go left\n> ```",
        "```{.text}\ngo left\n```",
        '```json\r\n{"action": "go left"}\r\n```',
        "```\ngo left",
    ],
)
def test_options_are_found_in_blocks_of_code(answer):
    assert read(answer, ["go right", "go left", "wait"]) == "go left"
