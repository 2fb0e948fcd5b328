"""Questions about made-up worlds: each has its world's answer, and no law is part of the corpus."""

import re
from random import Random

import pytest

from hunch.lm import load
from hunch_studies import families
from hunch_studies.laboratory import processes


@pytest.mark.parametrize("family", families.LAWS)
def test_a_lawful_process_follows_its_law(family):
    for i in range(20):
        rng = Random(i)
        process = families.lawful(families.LAWS[family], rng)
        size = process.numbers[0].size
        state = process.start(rng)
        for action in process.actions:
            following = process.step(state, action, rng)[2]
            assert following == families.LAWS[family](state, action, size)
            assert all(0 <= value < size for value in following)


@pytest.mark.parametrize("family", [*families.KINDS, *families.LAWS])
def test_a_question_shows_steps_and_asks_for_one_more(family):
    for i in range(5):
        steps, query, answer = families.question(family, "next state", 6, Random(i))
        assert len(steps) == 6
        assert all(step.endswith("\n\n") for step in steps)
        assert query.count("\n") in (2, 3), "a state and an action, which may be of two lines"
        assert {step.count("\n") for step in steps} <= {4, 5}
        assert re.search(r"\d", answer)
        assert "\n" not in answer


def test_no_drawn_process_obeys_a_held_out_law():
    """Of 300 processes none moves its numbers by one of the laws from every state of a few."""
    for i in range(300):
        rng = Random(i)
        process = processes.draw(rng, ease=0.3)
        size = process.numbers[0].size
        if len(process.numbers) < 2 or process.things or size < 5:
            continue
        states = [process.start(rng) for _ in range(12)]
        for law in families.LAWS.values():
            wanted = [law(state, 0, size) for state in states]
            assert wanted == states or [process.step(s, 0, rng)[2] for s in states] != wanted


def test_unfinished_episodes_show_actions_and_fit():
    lm = load("uniform")
    for i in range(20):
        prompt, known = families.unfinished(lm, 300, Random(i))
        assert prompt.endswith("\n")
        assert any(f"{action}\n" in prompt for action in known)
        assert lm.count_tokens(prompt) <= 300


def test_every_temperature_is_asked_about_the_same_episodes():
    shares = list(families.name_actions(load("uniform"), (0.1, 1.0), questions=3))
    assert [share.value for share in shares] == [0.0, 0.0], "it says nothing that could be an action"
