"""The study of recorded proposals in the Game of 24, on small recordings in the form of the public files."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.test_game24 import recorded as recorded  # a fixture: a search of two puzzles

from hunch.core import UsageError
from hunch.runs.files import read_lines
from hunch_studies.game24 import (
    ALL,
    PRIOR,
    STRICT,
    WON,
    Recorded,
    arithmetic,
    by_value,
    good,
    play,
    ranked,
    ratio,
    ratio_table,
    solved,
    steps_to_solve,
    successors,
    tell,
    wins,
)
from hunch_studies.recordings.tree_of_thought import tree
from hunch_studies.study import FULL, SMOKE
from hunch_studies.worlds.game24.rules import numbers, solvable


def within(left, candidates):
    """Whether 24 can be reached by candidates alone, by trying everything."""
    return left == WON or any(within(after, candidates) for after in candidates(left))


def thinned(seed, share):
    """A random part of the successors, the same for the same numbers."""

    def candidates(left):
        rng = np.random.default_rng([seed, *left.encode()])
        return tuple(after for after in successors(left) if rng.random() < share)

    return candidates


@pytest.mark.parametrize("seed", range(6))
def test_a_puzzle_is_solved_just_where_the_candidates_hold_a_solution(seed):
    for puzzle in ("4 5 6 10", "1 1 4 6", "1 1 1 1"):
        candidates = thinned(seed, 0.4)
        steps = steps_to_solve(puzzle, candidates, np.random.default_rng(seed))
        assert (steps is not None) == within(puzzle, candidates)
    every = steps_to_solve("4 5 6 10", successors, np.random.default_rng(seed))
    assert every is not None
    assert every % 3 == 0, "an episode has three steps, and the last one wins"
    assert every == steps_to_solve("4 5 6 10", successors, np.random.default_rng(seed))


def test_good_moves_are_those_that_leave_a_solvable_puzzle():
    assert good("4 6") == {WON}
    left = "1 1 4 6"
    assert good(left) == {after for after in successors(left) if solvable(numbers(after))} != set()


def test_the_fillings_differ_where_gpt4_was_recorded_and_nowhere_else(recorded):
    found = Recorded(tree(recorded))
    own = found.proposals
    assert own["2 4 4"] == ("4 8", "4 6")
    for line, candidates in found.fillings(0).items():
        for left in own:
            assert set(candidates(left)) <= set(successors(left))
            if line not in (ALL, "arithmetic, recall as GPT-4's"):
                assert len(candidates(left)) == len(own[left])
        assert candidates("5 7 9") == (() if line == STRICT else successors("5 7 9"))
    assert found.fillings(0)["random k"]("2 4 4") == found.fillings(0)["random k"]("2 4 4")
    draws = {found.fillings(seed)["random k"]("2 4 4") for seed in range(9)}
    assert len(draws) > 1


def test_the_rule_that_has_the_recall_of_gpt4_needs_no_more_moves_than_that(recorded):
    found = Recorded(tree(recorded))
    wanted = found.recall(3, found.fillings(0)[PRIOR])
    best = {k: found.recall(3, lambda left, k=k: ranked(left, arithmetic(left))[:k]) for k in range(1, 9)}
    assert found.enough[3] == min(k for k, recall in best.items() if recall >= wanted)


def test_the_highest_value_is_followed(recorded):
    """4 + 2 is worth 60 and leads on; 2 * 3 is the only proposal, and 4 6 was solved in the other tree."""
    search = tree(recorded)
    found = Recorded(search)
    assert [by_value(search, puzzle, found.proposals) for puzzle in found.puzzles] == [1.0, 1.0]


def test_ratio_and_wins_by_hand():
    ours = {"a": [10, 10], "b": [20, 20], "c": [None, 5], "d": [6, 6]}
    others = {"a": [40, 40], "b": [80, 80], "c": [7, 7], "d": [6, 6]}
    share, n = ratio({p: ours[p] for p in "abc"}, {p: others[p] for p in "abc"})
    assert (n, share.value) == (2, pytest.approx(0.25))
    assert share.low == pytest.approx(share.high) == pytest.approx(0.25)
    censored, every = ratio({p: ours[p] for p in "abc"}, {p: others[p] for p in "abc"}, longest=245)
    assert (every, censored.value) == (3, pytest.approx((1 / 16 * 5) ** (1 / 3))), "c: (245 * 5)**.5 / 7 = 5"
    assert wins(ours, others) == (2, 1), "a median of never is more than any"
    assert solved(ours, 10) == 5 / 8


def test_the_verdict_turns_with_the_data():
    fast = {puzzle: [3, 3 + i] for i, puzzle in enumerate("abcd")}
    slow = {puzzle: [30, 30 + i] for i, puzzle in enumerate("abcd")}
    assert "GPT-4 (L2) over words: shown." in ratio_table({STRICT: fast, PRIOR: fast, "words": slow})
    assert "GPT-4 (L2) over words: not shown." in ratio_table({STRICT: fast, PRIOR: slow, "words": fast})


def test_same_seeds_same_steps_and_the_page_tells_them(recorded, tmp_path):
    found = Recorded(tree(recorded))
    assert play(found, found.puzzles, 1) == play(found, found.puzzles, 1)
    text = tell(recorded, tmp_path / "out", replace(FULL, seeds=2))
    assert "2 puzzles, 2 seeds each" in text
    rows = read_lines(tmp_path / "out" / "steps.jsonl")
    assert [set(row["steps"]) for row in rows] == [set(found.fillings(0))] * 2


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no recordings of the Game of 24"):
        tell(tmp_path, tmp_path / "out", SMOKE)
    assert not (tmp_path / "out").exists()
