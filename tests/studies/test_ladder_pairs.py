"""Pairs of an audition and a loop: both are read by one rule, and what did not run does not count."""

from hunch_studies.ladder_pairs import ahead, kappa, page


def pair(audition, loop):
    named = dict.fromkeys(("role", "rung", "way", "bed", "over", "command"), "-")
    return {**named, "audition": audition, "questions": 20, "loop": loop}


def test_only_an_interval_above_zero_is_ahead():
    assert ahead([0.1, 0.01, 0.2])
    assert not ahead([0.5, 0.0, 1.0])
    assert not ahead([-0.3, -0.5, -0.1])


def test_kappa_is_one_for_raters_that_agree_and_zero_for_one_who_always_says_the_same():
    assert kappa([True, False, True], [True, False, True]) == 1
    assert kappa([True, True, True, True], [True, False, True, False]) == 0
    assert kappa([True, False], [False, True]) == -1
    assert kappa([True], [True]) != kappa([True], [True])


def test_pairs_that_ran_are_counted_and_the_others_are_shown():
    lead, none = [0.2, 0.1, 0.3], [0.0, -0.1, 0.1]
    text = page([pair(lead, lead), pair(lead, none), pair(none, none), pair(none, None)])
    assert "3 of 4 pairs ran; the audition is right in 0.67" in text
    assert text.count("not run") == 1
