"""Answers of models in a loop, and of those who mean harm: read in time that grows with their length."""

import time

import pytest

from hunch.envs.design.code import extract
from hunch.lm.answers.lines import as_json, read_line, spoken
from hunch.lm.answers.reading import read_items, read_option
from hunch.lm.speaker import action_in
from hunch.roles.reward.comparer import read_preference

ACTIONS = ("go left", "go right", "take apple 1", "take pear 2", "open in/on the table")
AMOUNTS = ("1,000", "2,000", "-1", "1/2", "bid 5")
READERS = {
    "option": lambda answer: read_option(answer, ACTIONS),
    "letter": lambda answer: read_option(answer, ("A", "B", "C")),
    "number": lambda answer: read_option(answer, AMOUNTS),
    "items": lambda answer: read_items(answer, ACTIONS),
    "preference": read_preference,
    "program": lambda answer: extract(spoken(answer), "act"),
    "action": action_in,
    "line": lambda answer: read_line(answer, lambda line: None),
    "json": as_json,
}
REPEATED = (
    *("```{", "```{\n", "~~~", "```\n", "{", "[{", '{"a":', '"', "“", "**", "* ", "- \n", "(", "...", "_"),
    *("a_", "wrong_a ", "\n", "\nx", "<think>", "<|"),
    *("Answer: ", "the ", "take pear, ", "go left, ", "not go left. ", "say ", "- go left\n"),
)
NUMBERS = ("½", "1,", "1,000 ", "1. ", "two ", "10:30 ", "\u202f1")
"""The slowest to read: all readers of options read them by the same code."""
LENGTH = 20_000


def seconds(read, answer, times=1):
    """The processor time of reading an answer, the best of several."""
    spent = []
    for _ in range(times):
        begin = time.process_time()
        read(answer)
        spent.append(time.process_time() - begin)
    return min(spent)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_reading_takes_at_most_three_times_as_long_for_twice_the_text(reader):
    assert quadratic(READERS[reader], REPEATED) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(
            reader, marks=pytest.mark.thorough if reader in ("letter", "items", "preference") else ()
        )
        for reader in READERS
    ],
)
def test_reading_takes_at_most_three_times_as_long_for_twice_the_numbers(reader):
    assert quadratic(READERS[reader], NUMBERS) == []


def quadratic(read, texts):
    """The texts that take more than three times as long if they are twice as long, with both times."""
    read("go left")  # patterns are compiled at first use
    slow = []
    for text in texts:
        answer = "x " + text * (LENGTH // len(text)) + " y"
        for times in (1, 5):  # again, if something else took the processor
            once, twice = seconds(read, answer, times), seconds(read, answer + answer, times)
            too_slow = twice > 3 * once + 0.02 or twice > 2.0
            if not too_slow:
                break
        if too_slow:
            slow.append((text, once, twice))
    return slow


@pytest.mark.parametrize("depth", [60, 300, 900, 2_000, 100_000])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":[', "]}"), ('{"a":', "}")])
def test_deeply_nested_answers_decide_on_nothing(depth, opens, closes):
    answer = opens * depth + "1" + closes * depth
    assert as_json(answer) is None
    assert read_option(answer, ACTIONS) is None
    assert {option for _, option in read_items(answer, ACTIONS)} == {None}


def test_the_decision_of_a_long_answer_is_read():
    thoughts = "The lamp is on. The door is shut. " * 1_000
    assert read_option(f"{thoughts}\nAnswer: go right", ACTIONS) == 1
    assert read_option('{"reasoning": "' + thoughts + '", "action": "go right"}', ACTIONS) == 1
    assert read_option("-" * 5_000 + " go right", ACTIONS) == 1
