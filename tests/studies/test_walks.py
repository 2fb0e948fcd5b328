"""The walks that the pocket model was trained on."""

from __future__ import annotations

import pytest

import hunch
from hunch.core import State

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from hunch.roles.prior.language import prompt  # noqa: E402
from hunch_studies.laboratory import walks  # noqa: E402


def test_the_walks_are_prompts_of_a_policy_and_leave_some_targets_out():
    env = hunch.make("hunch/BabyAI-GoToLocal-v0", history=0)
    state = State.read(*env.reset(seed=3))
    assert walks.prompt(state) == prompt(state)
    for number in range(100):
        asked, answer, _ = walks.document(str(number), 0)
        assert not any(f"{target}\n" in asked.text.partition("You see")[0] for target in walks.HELD_OUT)
        assert f"\n-{answer.text}\n" in asked.text
    trained, judged = (walks.document("a", 0, shape=level) for level in (None, "GoToObj"))
    assert trained != judged
