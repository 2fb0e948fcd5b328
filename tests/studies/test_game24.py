"""The Game of 24, and the files of Tree of Thoughts."""

import gzip
import json
from fractions import Fraction

import pytest

import hunch.envs
from hunch.core import UsageError
from hunch_studies.recordings.tree_of_thought import figures, left_after, right, samples, tree, uniform
from hunch_studies.worlds.game24.env import Game24
from hunch_studies.worlds.game24.rules import numbers, operations, solution, solvable


def test_the_checker_finds_nothing():
    hunch.envs.check(Game24())


def test_every_legal_operation_and_no_other():
    after = operations(numbers("2 3 0"))
    assert after["2 * 3 = 6"] == (0, 6)
    assert after["2 / 3 = 2/3"] == (0, Fraction(2, 3))
    assert after["0 - 3 = -3"] == (-3, 2)
    assert not [text for text in after if "/ 0" in text]
    assert len(after) == 4 + 2 + 2 * (4 + 1)


def test_equal_numbers_give_one_action_each():
    assert list(operations(numbers("4 4"))) == ["4 + 4 = 8", "4 * 4 = 16", "4 - 4 = 0", "4 / 4 = 1"]


def test_fractions_are_exact():
    assert solvable(numbers("3 3 8 8"))  # 8 / (3 - 8/3)
    env = Game24(puzzles=["3 3 8 8"])
    env.reset()
    for action in env.oracle():
        observation, reward, terminated, _, info = env.step(action)
    assert (observation, reward, terminated, info["success"]) == ("Numbers left: 24", 1.0, True, True)
    assert info["puzzle"] == "3 3 8 8"


def test_another_number_at_the_end_is_a_failure():
    env = Game24(puzzles="1 1;4 6")
    observation, _ = env.reset(options={"puzzle": 0})
    assert observation == "Numbers left: 1 1"
    assert env.oracle() is None
    assert env.step("1 + 1 = 2")[1:4] == (0.0, True, False)
    assert env.reset(options={"puzzle": "4 6"})[1]["puzzle"] == "4 6"
    assert env.oracle() == ("4 * 6 = 24",)


def test_known_puzzles():
    assert all(solvable(numbers(p)) for p in ("4 5 6 10", "1 5 5 5", "1 1 4 6"))
    assert not any(solvable(numbers(p)) for p in ("1 1 1 1", "13 13 13 13", "1 1 1 2"))
    assert solution((Fraction(24),)) == ()


def test_the_pool_is_that_of_its_seed():
    assert Game24(games=20).pool == Game24(games=20).pool != Game24(games=20, pool_seed=1).pool
    assert all(solvable(puzzle) for puzzle in Game24(games=20).pool)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"puzzles": ["4 x 6"]}, "4 x 6"),
        ({"puzzles": ["7"]}, "two to 6"),
        ({"puzzles": "1/0 2"}, "two to 6"),
        ({"puzzles": []}, "no puzzle"),
        ({"games": 0}, "from 1 to 1,000"),
        ({"games": 5000}, "not 5,000"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(UsageError, match=said):
        Game24(**options)


def test_bad_reset_options():
    env = Game24()
    for options, said in (({"puzzle": 100}, "no puzzle 100"), ({"game": 1}, "reset option 'game'")):
        with pytest.raises(UsageError, match=said):
            env.reset(options=options)


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        ("Answer: (4 * 5) + (10 - 6) = 24", True),
        ("4 * 5 = 20\nAnswer: 4 * 5 + 10 - 6 = 24\n", True),
        ("Answer: 4 * 6 = 24", False),  # two numbers are left
        ("Answer: 4 * 5 + 10 - 6 + 5 - 5 = 24", False),  # one is used twice
        ("Answer: 4 + 5 + 6 + 10 = 24", False),
        ("Answer: (4 * 5", False),
        ("Answer: __import__('os').getcwd() = 24", False),
        ("Answer: 4 ** 5 * 6 - 10", False),
        ("", False),
        ("(" * 5000, False),
    ],
)
def test_answers_are_judged_exactly(answer, good):
    assert right(answer, numbers("4 5 6 10")) is good


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as file:
        json.dump(data, file)


LOGS = "logs/game24/gpt-4_0.7_"


def record(x, steps, answers):
    return {
        "steps": [
            {"x": x, "ys": ys, "new_ys": list(values), "values": list(values.values())}
            for ys, values in steps
        ],
        "ys": answers,
    }


@pytest.fixture
def recorded(tmp_path):
    """A search of two puzzles, in the form of the public files."""
    add = "4 + 2 = 6 (left: 4 6)\n"
    rounded = "2 / 3 = 0.67 (left: 0.67 4)\n"
    first = record(
        "2 4 4",
        [
            ([""], {"2 * 4 = 8 (left: 4 8)\n": 1.0, add: 60.0, "4 / 4 = 2 (left: 2 2)\n": 0.003}),
            ([add], {add + "4 * 6 = 24 (left: 24)\n": 60.0, add + "what now?\n": 0.0}),
        ],
        [add + "4 * 6 = 24 (left: 24)\nAnswer: 4 * (4 + 2) = 24\n"],
    )
    second = record(
        "2 3 4",
        [
            ([""], {rounded: 0.002, "2 * 3 = 6 (left: 4 6)\n": 20.0}),
            ([rounded], {rounded + "0.67 * 4 = 2.68 (left: 2.68)\n": 0.0}),
        ],
        ["Answer: 2 * 3 + 4 = 24\n", "Answer: 2 * 3 + 4"],
    )
    write(tmp_path / f"{LOGS}propose1_value3_greedy5_start900_end1000.json.gz", [first, second])
    answers = [{"ys": ["Answer: 4 * (2 + 4) = 24", "Answer: 24"]}, {"ys": ["Answer: 2 * 3 * 4 = 24", ""]}]
    write(tmp_path / f"{LOGS}naive_standard_sample_100_start900_end1000.json", answers)
    write(tmp_path / f"{LOGS}naive_cot_sample_100_start900_end1000.json", answers[::-1])
    return tmp_path


def test_proposals_are_legal_operations_at_numbers_left(recorded):
    found = tree(recorded)
    assert found.puzzles == (numbers("2 4 4"), numbers("2 3 4"))
    assert found.proposals == {
        numbers("2 4 4"): ("2 * 4 = 8", "2 + 4 = 6"),
        numbers("2 3 4"): ("2 * 3 = 6",),
        numbers("4 6"): ("4 * 6 = 24",),  # proposed in the first tree, of use in the second too
        (Fraction("0.67"), Fraction(4)): ("67/100 * 4 = 67/25",),  # rounded: exact play never gets there
    }
    assert found.values[numbers("4 6")] == (60.0, 20.0)
    assert found.found == (True, False)
    env = Game24(puzzles=["2 4 4"])
    env.reset()
    assert set(found.proposals[env.left]) <= set(env.action_space.actions)


def test_chances_within_the_proposals(recorded):
    found = tree(recorded)
    assert [found.within(puzzle) for puzzle in found.puzzles] == [True, True]
    assert [found.uniform(puzzle) for puzzle in found.puzzles] == [0.5, 1.0]
    assert uniform(numbers("4 6")) == pytest.approx(1 / 6)


def test_figures(recorded):
    found = figures(recorded)
    assert found["tree search solves"] == 0.5
    assert found["uniform over the proposals"] == 0.75
    assert found["one answer, standard"] == 0.5
    assert found["one answer, cot"] == 0.0  # the answers are to the other puzzles
    assert samples(recorded, "standard") == [(True, False), (True, False)]


def test_numbers_left():
    assert left_after("a\n4 + 2 = 6 (left: 4 6)\n") == (4, 6)
    assert left_after("6 / 4 = 1.5 (left: 1.5)") == (Fraction(3, 2),)
    assert left_after("8 / 3 = about 2.7 (left: about 2.7)") is None
    assert left_after("no idea") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:50]), "damaged"),
        (lambda path: write(path, []), "no records"),
        (lambda path: write(path, {"a": 1}), "no records"),
        (lambda path: write(path, [{"ys": []}]), "no list of steps"),
        (lambda path: write(path, [{"steps": [{}], "ys": []}]), "other form"),
        (lambda path: path.unlink(), "no recordings"),
    ],
)
def test_damaged_files_say_so(recorded, change, said):
    change(recorded / f"{LOGS}propose1_value3_greedy5_start900_end1000.json.gz")
    with pytest.raises(UsageError, match=said):
        tree(recorded)


def test_a_folder_that_is_not_there():
    with pytest.raises(UsageError, match="no folder"):
        tree("there/is/none")
