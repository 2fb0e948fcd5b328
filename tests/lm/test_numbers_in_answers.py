"""Numbers in answers are read as values, in the many ways of writing them, and never as other numbers."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hunch.envs.icpi.texts import Texts
from hunch.lm.answers.numerals import words_of
from hunch.lm.answers.reading import read_items, read_option
from hunch.roles.reward.comparer import read_preference

MOVES = ("move 1", "move 3", "move -1")
APPLES = ("take apple 1", "take pear 2", "look")
BIDS = ("1", "2", "3", "10", "-1")
HOUSE = ("go to shelf 1", "go to shelf 2", "open drawer 1 with key 2", "wait")
READ = [
    (MOVES, "1. move 3", "move 3"),
    (MOVES, "1) move 3", "move 3"),
    (MOVES, "(1) move 3", "move 3"),
    (MOVES, "move one", "move 1"),
    (MOVES, "move minus one", "move -1"),
    (MOVES, "move negative 1", "move -1"),
    (MOVES, "move (-1)", "move -1"),
    (MOVES, "move [\u22121]", "move -1"),
    (MOVES, "move: \u22121", "move -1"),
    (MOVES, "move=-1", "move -1"),
    (MOVES, "move +1", "move 1"),
    (MOVES, "move 1e0", "move 1"),
    (MOVES, "move 01", "move 1"),
    (MOVES, "move \u2460", "move 1"),
    (MOVES, "move \uff11", "move 1"),
    (MOVES, "move \u0661", "move 1"),
    (APPLES, "take apple", "take apple 1"),
    (APPLES, "take the apple.", "take apple 1"),
    (APPLES, "Step 2: take apple", "take apple 1"),
    (APPLES, "2. take apple", "take apple 1"),
    (BIDS, "two", "2"),
    (BIDS, "I say two.", "2"),
    (BIDS, "one", "1"),
    (BIDS, "the best one is 3", "3"),
    (BIDS, "-1", "-1"),
    (BIDS, "minus one", "-1"),
    (BIDS, "2. minus one", "-1"),
    (BIDS, "Answer: \u22121", "-1"),
    (BIDS, "* -1", "-1"),
    (BIDS, "2 + 1 = 3", "3"),
    (BIDS, "$10", "10"),
    (BIDS, "10 euros", "10"),
    (BIDS, "10\u20ac", "10"),
    (BIDS, "+3", "3"),
    (BIDS, "1.0", "1"),
    (BIDS, "2.00", "2"),
    (BIDS, '{"answer": -1}', "-1"),
    (BIDS, '{"answer": 1.0}', "1"),
    (BIDS, '{"answer": 1e1}', "10"),
    (BIDS, "\uff11\uff10", "10"),
    (BIDS, "x=-1", "-1"),
    (BIDS, "10.", "10"),
    (BIDS, "2: because", "2"),
    (BIDS, "(2) it is", "2"),
    (BIDS, "10,0", "10"),
    (HOUSE, "go to shelf one", "go to shelf 1"),
    (HOUSE, "go to shelf 1.", "go to shelf 1"),
    (HOUSE, "go to shelf #2", "go to shelf 2"),
    (HOUSE, "go to shelf-2", "go to shelf 2"),
    (HOUSE, "go to shelf_2", "go to shelf 2"),
    (HOUSE, "open drawer one with key two", "open drawer 1 with key 2"),
    (("turn 0.5", "turn 5", "turn 0"), "turn .5", "turn 0.5"),
    (("turn 0.5", "turn 1"), "turn 0,5", "turn 0.5"),
    (("turn 0.5", "turn 1"), "turn \xbd", "turn 0.5"),
    (("turn 0.5", "turn 1"), "turn half", "turn 0.5"),
    (("turn 0.5", "turn 1"), "turn 1/2", "turn 0.5"),
    (("bet 50%", "bet 25%"), "bet fifty percent", "bet 50%"),
    (("bet 50%", "bet 25%"), "bet 50 %", "bet 50%"),
    (("offer 1000", "offer 5"), "offer 1,000", "offer 1000"),
    (("offer 1000", "offer 5"), "offer $1,000", "offer 1000"),
    (("offer 1000", "offer 5"), "offer 1 000", "offer 1000"),
    (("offer 1000", "offer 1"), "offer 1 000", "offer 1000"),
    (("offer 1000", "offer 5"), "offer 1'000", "offer 1000"),
    (("offer 1000", "offer 5"), "offer one thousand", "offer 1000"),
    (("offer 1000", "offer 5"), "offer 1k", "offer 1000"),
    (("offer 1000", "offer 5"), "offer 1e3", "offer 1000"),
    (("offer 1,000", "offer 1"), "offer 1,000", "offer 1,000"),
    (("offer 1,000", "offer 1"), "I offer 1,000.", "offer 1,000"),
    (("offer 1,000", "offer 1"), "I offer 1000.", "offer 1,000"),
    (("offer 1,000", "offer 1"), "I offer 1.", "offer 1"),
    (("offer 100000", "offer 5"), "offer 1,00,000", "offer 100000"),
    (("go to (1, 2)", "go to (2, 1)"), "go to (1,2)", "go to (1, 2)"),
    (("go to 1,2", "go to 2,1"), "go to (2, 1)", "go to 2,1"),
    (("room 07", "room 7"), "room 7", "room 7"),
    (("room 07", "room 7"), "I go to room 07.", "room 07"),
    (("3rd floor", "4th floor"), "third floor", "3rd floor"),
    (("take one card", "take two cards"), "take 2 cards", "take two cards"),
    (("take one card", "take two cards"), "take 1 card", "take one card"),
    (("move 2", "move 1"), "1", "move 1"),
    (("cook", "wash", "serve"), "3", "serve"),
]
"""Options, an answer, and the option that it names."""
UNCLEAR = [
    (MOVES, "move 1-3"),
    (MOVES, "move 1 - 3"),
    (MOVES, "move 1 to 3"),
    (MOVES, "move 1 or 3"),
    (MOVES, "move 1, 3"),
    (MOVES, "move between 1 and 3"),
    (MOVES, "move 1.5"),
    (MOVES, "move 1:30"),
    (MOVES, "move 1/3"),
    (MOVES, "move 13"),
    (MOVES, "move 1,3"),
    (MOVES, "move"),
    (MOVES, "move 2"),
    (MOVES, "move - 1"),
    (MOVES, "move \u2014 1"),
    (MOVES, "move\u20141"),
    (MOVES, "move --1"),
    (MOVES, "move 1st"),
    (MOVES, "move 1k"),
    (MOVES, "move 1 thousand"),
    (MOVES, "move 1%"),
    (MOVES, "move 1e1"),
    (MOVES, "move 2024-01-03"),
    (MOVES, "move 3/1/2024"),
    (MOVES, "move 1\xb2"),
    (MOVES, "move \u0661\u0662"),
    (MOVES, "move 1{,}000"),
    (MOVES, "move 1\\,000"),
    (MOVES, "move 1&nbsp;000"),
    (MOVES, "move \\frac{1}{3}"),
    (MOVES, "move 10^{3}"),
    (MOVES, "move 1..3"),
    (MOVES, "move 1\u20263"),
    (MOVES, "move 1 point 5"),
    (MOVES, "move one point five"),
    (MOVES, "move one and a half"),
    (MOVES, "move 1 and a half"),
    (MOVES, "move 1 1/2"),
    (MOVES, "move 1\xbd"),
    (MOVES, "move \xb11"),
    (MOVES, "move \u22651"),
    (MOVES, "move <3"),
    (APPLES, "take apple 2"),
    (APPLES, "take apple no. 2"),
    (APPLES, "take apple #2"),
    (APPLES, "take apple number two"),
    (APPLES, "take apple II"),
    (APPLES, "take apple (2)"),
    (APPLES, "take 2 apples"),
    (APPLES, "take apple -1"),
    (APPLES, "take apple two"),
    (APPLES, "I will take apple, the second one."),
    (APPLES, "take apple 1,000"),
    (APPLES, "take apple 1.5"),
    (BIDS, "1.5"),
    (BIDS, "I bid 1.5."),
    (BIDS, "between 1 and 3"),
    (BIDS, "from 1 to 3"),
    (BIDS, "1-3"),
    (BIDS, "1\u20133"),
    (BIDS, "1 to 3"),
    (BIDS, "one of them"),
    (BIDS, "- 1"),
    (BIDS, "Answer: - 1"),
    (BIDS, "On January 2 I decide."),
    (BIDS, "at 2 pm"),
    (BIDS, "10:30"),
    (BIDS, "2 + 1"),
    (BIDS, "10k"),
    (BIDS, "10M"),
    (BIDS, "1 million"),
    (BIDS, "one hundred"),
    (BIDS, "1/2"),
    (BIDS, "v2"),
    (BIDS, "GPT-3"),
    (BIDS, "3D"),
    (BIDS, "100"),
    (BIDS, "1 0"),
    (BIDS, "1_0"),
    (BIDS, "3rd"),
    (BIDS, '{"answer": 1.5}'),
    (BIDS, '{"answer": [1, 2]}'),
    (BIDS, "Score: 2/10"),
    (BIDS, "2 out of 10"),
    (BIDS, "2 of 3"),
    (BIDS, "2nd"),
    (BIDS, "less than 3"),
    (BIDS, "not 3"),
    (BIDS, "twenty"),
    (BIDS, "twenty-one"),
    (BIDS, "3 dozen"),
    (BIDS, "II"),
    (BIDS, "3'000"),
    (BIDS, "3 000"),
    (HOUSE, "go to shelf no. 2"),
    (HOUSE, "open drawer 2 with key 1"),
    (HOUSE, "go to shelf 1 and 2"),
    (HOUSE, "go to shelf 1 or 2"),
    (HOUSE, "go to shelf 12"),
    (HOUSE, "go to shelf 1, then wait"),
    (("turn 0.5", "turn 1"), "turn 50%"),
    (("bet 50%", "bet 25%"), "bet 0.5"),
    (("offer 1000", "offer 5"), "offer 10,00"),
    (("take card 1", "take card 2"), "take the second card"),
    (("left", "right", "wait 1"), "wait 10"),
    (("go left", "bid 2", "bid 1"), "3"),
    (("cook", "wash", "serve"), "\u22123"),
    (("cook", "wash", "serve"), "3%"),
]
"""Options, and an answer that says none of their numbers, several, or one that is not clear."""


def read(answer, options):
    index = read_option(answer, options)
    return None if index is None else options[index]


@pytest.mark.parametrize(("options", "answer", "option"), READ)
def test_a_number_is_read_in_the_usual_ways(options, answer, option):
    assert read(answer, options) == option


@pytest.mark.parametrize(("options", "answer"), UNCLEAR)
def test_no_other_number_is_read(options, answer):
    assert read(answer, options) is None


UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
UNITS += ("twelve", *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")))
TENS = ("-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def spelled(n):
    """Return a whole number in words."""
    if n < 20:
        return UNITS[n]
    if n < 100:
        return TENS[n // 10] + (f"-{UNITS[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{UNITS[n // 100]} hundred" + (f" and {spelled(n % 100)}" if n % 100 else "")
    return f"{spelled(n // 1000)} thousand" + (f" {spelled(n % 1000)}" if n % 1000 else "")


def written(value):
    """Return ways to write a number that mean nothing else, for readers of English and of programs."""
    size = abs(value)
    whole, digits = int(size), str(size).partition(".")[2]
    ways = [str(size)]
    if not digits:
        groups = f"{whole:,}"
        ways += [groups, *(groups.replace(",", mark) for mark in "\u202f\u00a0\u2009'\u2019_")]
        ways += [f"{whole}.0", f"{whole}e0", spelled(whole)]
        ways += ["".join(chr(zero + int(digit)) for digit in str(whole)) for zero in (0x660, 0x966, 0xFF10)]
        if whole and whole % 1000 == 0:
            ways += [f"{whole // 1000}k", f"{whole // 1000} thousand", f"{whole // 1000}e3"]
    else:
        ways += [f"{size}0" if len(digits) != 2 else str(size), f"{whole:,}.{digits}"]
        ways += [f"{spelled(whole)} point {' '.join(UNITS[int(digit)] for digit in digits)}"]
        if not whole:
            ways += [f".{digits}", str(Fraction(size))]
    if value >= 0:
        return [*ways, "+" + str(size)]
    signs = [sign + way for way in ways for sign in ("minus ", "negative ")]
    return signs + [
        sign + way for way in ways if not way[0].isalpha() for sign in "-\u2212\u2013\u2011\uff0d"
    ]


NUMBERS = (
    st.decimals(-999_999, 999_999, places=0) | st.decimals(-30, 30, places=2) | st.decimals(-3, 3, places=1)
)
VALUES = NUMBERS.map(lambda value: Decimal(f"{value.normalize():f}") + 0)
FORMS = st.sampled_from(["{}", "move {}", "turn {} degrees", "offer {} books", "put {} in box 7", "bid {}"])
JOINTS = (" or ", "-", " to ", ", ", " and ", "\u2013", "...", " + ", "/", ":", " * ")
FRAMES = st.sampled_from(
    [
        "{}",
        "{}.",
        "Answer: {}",
        "**{}**",
        "`{}`",
        '{{"answer": "{}"}}',
        "\\boxed{{{}}}",
        "1. {}",
        "* {}",
        "Let me see.\n{}",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6, unique=True), FORMS, FRAMES, st.data())
@example([Decimal(-1), Decimal(1)], "move {}", "{}", None)
def test_an_answer_is_read_as_the_number_that_it_says(values, form, frame, data):
    options = [form.format(value) for value in values]
    if data is None:
        assert read("move \u22121", options) == "move -1"
        return
    own = data.draw(st.sampled_from(values))
    answer = frame.format(form.format(data.draw(st.sampled_from(written(own)))))
    said = read(answer, options)
    assert said in (form.format(own), None)
    others = [value for value in values if value != own]
    if not any(alike(own, other) for other in others):
        assert said == form.format(own)


def alike(own, other):
    """Return whether another convention, or the words of a list, may read one number as another."""
    return abs(own) == abs(other) or abs(own) >= 1000 or abs(own) % 1 != 0 or abs(other) % 1 != 0


@settings(max_examples=400, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6, unique=True), FORMS, FRAMES, VALUES, st.data())
def test_a_number_of_no_option_is_no_option(values, form, frame, other, data):
    options = [form.format(value) for value in values if value != other]
    answer = frame.format(form.format(data.draw(st.sampled_from(written(other)))))
    assert not options or read(answer, options) is None


@settings(max_examples=300, deadline=None)
@given(VALUES, VALUES, FORMS, st.sampled_from(JOINTS))
def test_two_numbers_said_together_are_neither(first, second, form, joint):
    first, second = abs(first), abs(second)
    options = [form.format(value) for value in {first, second}]
    answer = form.format(f"{first}{joint}{second}")
    assert first == second or read(answer, options) is None


def test_lists_of_goals_keep_their_numbers():
    options = ["3 apples", "apples", "-1"]
    assert read_items("1. 3 apples\n2. apples", options) == [("3 apples", "3 apples"), ("apples", "apples")]
    bullets = read_items("- 3 apples\n* apples\n- 1", options)
    assert [item for _, item in bullets] == ["3 apples", "apples", None]


def test_verdicts_are_whole_numbers():
    assert [read_preference(answer) for answer in ("1.5", "1-2", "12", "3 and 4", "-1")] == [None] * 5
    assert [read_preference(answer) for answer in ("1", "2.0", "\uff12", "I prefer 2")] == [1, 2, 2, 2]


def test_predicted_rewards_are_whole_numbers():
    said = ["reward == 1.5", "reward == 1,000", "reward == \u22121", "reward == 1e1", "reward == 1.0"]
    assert [Texts.read_reward(Wording, f"assert {text}") for text in said] == [None, 1000, -1, 10, 1]


class Wording:
    reward_stop = "\n"


def test_the_place_of_an_option_is_not_the_number_that_another_one_has():
    assert read("1", ["go left", "move 2", "move 1"]) is None
    assert read("Option 2", ["go left", "go right"]) == "go right"
    assert read("2", ["bid 5", "bid 10", "pass"]) is None


def test_a_number_beside_the_choice_belongs_to_it():
    options = ["take apple 1", "look"]
    assert read('{"action": "take apple", "number": 1}', options) == "take apple 1"
    assert read('{"action": "take apple", "number": 2}', options) is None


def test_words_keep_their_places():
    text = "turn \u2212\uff15 degrees"
    assert [(word.text, text[word.start : word.end]) for word in words_of(text)] == [
        ("turn", "turn"),
        ("-5", "\u2212\uff15"),
        ("degrees", "degrees"),
    ]
