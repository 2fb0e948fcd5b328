"""Texts that no model wrote, as a control of the beds on which a small model is trained."""

from __future__ import annotations

import pytest

from hunch_studies.trained_fixed import best_text, judged, piece, texts


def test_the_chosen_text_scores_more_than_another_on_requests_it_was_not_chosen_on() -> None:
    text = best_text("Constraints", first=4, second=60)
    assert text in texts("Constraints")
    assert judged("Constraints", lambda request: text) > judged("Constraints", lambda request: "water")


def test_an_empty_text_scores_nothing() -> None:
    assert judged("Constraints", lambda request: " ") == pytest.approx(0.0)


def test_a_piece_of_the_request_is_sent_back() -> None:
    rule = piece("Constraints", "x")
    assert rule("Write one sentence about rain. End with the word 'far'.") == "far"
    assert rule("Write one sentence about rain. Use at least 3 words.") == "x"
    pytest.importorskip("reasoning_gym")
    spelled = piece("Spelling backwards", "x")
    request = "Spell this word backward (example: sun -> nus): Ting\nAnswer with the result only."
    assert spelled(request) == "Ting"
    assert judged("Spelling backwards", spelled) > judged("Spelling backwards", lambda request: "x")
