"""Scripted and uniform models: rules, dials, and scores that agree with samples."""

from __future__ import annotations

import numpy as np
import pytest

from hunch import lm
from hunch.core import UsageError
from hunch.lm import UniformModel, listed_options, rules
from hunch.lm.backends.scripted import REFUSAL, ScriptedModel, first, overlap, situation

OPTIONS = ("go left", "open the fridge", "look", "take the mug")
PROMPT = (
    "Your task is to: take a mug.\n- old item\nNow choose:\n"
    + "\n".join(f"- {o}" for o in OPTIONS)
    + "\nAction:"
)
MANY = [f"Room {i}. {PROMPT}" for i in range(2000)]


def shares(model: ScriptedModel) -> dict[str, float]:
    answers = [own[0] for own in model.generate(MANY)]
    kinds = ["refusal" if a == REFUSAL else "malformed" if a[:1] == "{" else a for a in answers]
    return {kind: kinds.count(kind) / len(kinds) for kind in set(kinds)}


def test_the_options_are_the_last_list() -> None:
    assert listed_options(PROMPT) == OPTIONS
    assert listed_options("no list - here") == ()


def test_without_dials_the_rule_answers() -> None:
    assert shares(ScriptedModel(first)) == {"go left": 1.0}
    assert shares(ScriptedModel(overlap)) == {"take the mug": 1.0}
    assert ScriptedModel(first).generate(["no list"], 2) == [["", ""]]


def test_dials_are_shares_of_the_samples() -> None:
    seen = shares(ScriptedModel(first, error=0.3, refusal=0.2, malformed=0.1))
    wanted = {"go left": 0.4, "refusal": 0.2, "malformed": 0.1} | dict.fromkeys(OPTIONS[1:], 0.1)
    assert seen.keys() == wanted.keys()
    assert all(seen[kind] == pytest.approx(wanted[kind], abs=0.035) for kind in wanted)


def test_an_error_stays_one_at_a_higher_rate() -> None:
    low, high = (ScriptedModel(first, error=rate).generate(MANY) for rate in (0.1, 0.3))
    assert all(h == o for o, h in zip(low, high, strict=True) if o != ["go left"])


def past(i: int, observation: str) -> str:
    """A prompt with a history of its own before the same observation."""
    offered = "\n".join(f"- {option}" for option in OPTIONS)
    return f"Your task is to: x\nRoom {i}.\n> look\n{observation}\nTake one:\n{offered}\n>"


def test_systematic_errors_are_of_the_observation_and_stay() -> None:
    """Whatever was done before, and however often the model is asked; the share of errors is the same."""
    model = ScriptedModel(first, error=0.3, systematic=1.0)
    wrong = []
    for j in range(300):
        answers = {a for own in model.generate([past(i, f"Hall {j}.") for i in range(4)], 5) for a in own}
        assert len(answers) == 1
        wrong.append(answers != {"go left"})
    assert np.mean(wrong) == pytest.approx(0.3, abs=0.08)
    assert situation(past(1, "Hall.")) == situation(past(2, "Hall.")) == "Hall.\nTake one:\n>"


def test_each_draw_has_its_own_systematic_errors() -> None:
    prompts = [past(0, f"Hall {j}.") for j in range(300)]
    answers = {}
    for draw in (0, 1, 2):
        model = lm.load(f"scripted:first?error=0.3&systematic=1&draw={draw}", cache=None)
        answers[draw] = [own[0] != "go left" for own in model.generate(prompts)]
        assert np.mean(answers[draw]) == pytest.approx(0.3, abs=0.08)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = np.mean(np.logical_and(answers[one], answers[other]))
        assert both == pytest.approx(0.09, abs=0.06), "errors of two draws are independent"
    assert answers[0] == [
        own[0] != "go left" for own in ScriptedModel(first, error=0.3, systematic=1.0).generate(prompts)
    ]
    for wrong in (-1, 0.5):
        with pytest.raises(UsageError, match="whole number"):
            lm.load(f"scripted:first?draw={wrong}")
    for wrong in (0.5, float("inf"), float("nan"), None, "first", True):
        with pytest.raises(UsageError, match="place of a scripted model is a whole number"):
            ScriptedModel(first, place=wrong)  # type: ignore[arg-type]


def test_the_dial_says_in_which_share_of_situations_errors_stay() -> None:
    prompts = [past(0, f"Hall {j}.") for j in range(300)]
    alike = {}
    for share in (0.0, 0.5, 1.0):
        own = ScriptedModel(first, error=0.5, systematic=share).generate(prompts, 12)
        alike[share] = np.mean([len(set(answers)) == 1 for answers in own])
    assert alike[0.0] < 0.05
    assert alike[0.5] == pytest.approx(0.5, abs=0.1)
    assert alike[1.0] == 1


@pytest.mark.parametrize(
    ("place", "named"), [(1, "go left"), (-1, OPTIONS[-1]), (99, OPTIONS[-1]), (-99, "go left")]
)
def test_errors_of_a_place_name_the_option_there(place: int, named: str) -> None:
    second = ScriptedModel(lambda prompt, options: options[1], error=0.4, place=place)
    answers = [text for (text,) in second.generate(MANY)]
    assert set(answers) == {OPTIONS[1], named}
    assert np.mean([text == named for text in answers]) == pytest.approx(0.4, abs=0.035)
    probabilities = np.exp(second.score(MANY[:1], [OPTIONS])[0].logprobs)
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities[OPTIONS.index(named)] == pytest.approx(0.99 * 0.4 + 0.01 / len(OPTIONS))
    right = ScriptedModel(lambda prompt, options: named, error=0.4, place=place)
    assert {text for (text,) in right.generate(MANY)} == {named}
    assert np.exp(right.score(MANY[:1], [OPTIONS])[0].logprobs).max() > 0.99


def test_scores_of_a_systematic_error_are_sure_of_it() -> None:
    model = ScriptedModel(first, error=0.5, systematic=1.0)
    for prompt, (answer,) in zip(MANY[:20], model.generate(MANY[:20]), strict=True):
        score = model.score([prompt], [OPTIONS])[0]
        assert OPTIONS[int(np.argmax(score.logprobs))] == answer
        assert np.exp(score.logprobs).max() > 0.99


def test_greedy_samples_are_one() -> None:
    own = ScriptedModel(first, error=0.5).generate(MANY[:20], 5, lm.Sampling(temperature=0))
    assert all(len(set(texts)) == 1 for texts in own)


def test_scores_are_as_stated() -> None:
    scores = ScriptedModel(overlap, error=0.3).score([PROMPT, PROMPT], [OPTIONS, OPTIONS[:1]])
    other = 0.99 * 0.1 + 0.01 / 4
    np.testing.assert_allclose(np.exp(scores[0].logprobs), [other, other, other, 0.99 * 0.7 + 0.01 / 4])
    np.testing.assert_allclose(scores[1].logprobs, [0.0], atol=1e-12)


@pytest.mark.parametrize("dials", [{"error": 1.2}, {"refusal": -0.1}, {"malformed": "x"}, {"error": True}])
def test_bad_dials(dials: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        ScriptedModel(first, **dials)


def test_dials_beyond_one() -> None:
    with pytest.raises(UsageError, match="sum to more than 1"):
        ScriptedModel(first, error=0.7, refusal=0.7)


def test_a_rule_must_choose_an_option() -> None:
    with pytest.raises(UsageError, match="answered"):
        ScriptedModel(lambda prompt, options: "fly").score(["a"], [["b"]])


def test_own_rules_by_name() -> None:
    @rules.rule("last-of-all")
    def last(prompt: str, options: tuple[str, ...]) -> str:
        return options[-1]

    try:
        assert lm.load("scripted:last-of-all").generate([PROMPT]) == [["take the mug"]]
    finally:
        del rules.RULES["last-of-all"]


def test_another_rule_is_another_revision() -> None:
    revisions = {ScriptedModel(rule, error=e).revision for rule in (first, overlap) for e in (0.0, 0.1)}
    assert len(revisions) == 4


def test_uniform_knows_nothing() -> None:
    model = UniformModel()
    scores = model.score([PROMPT], [["a", "a long option", "b c"]])[0]
    np.testing.assert_allclose(np.exp(scores.logprobs), 1 / 3)
    answers = [own[0] for own in model.generate(MANY)]
    assert all(answers.count(option) / len(MANY) == pytest.approx(0.25, abs=0.04) for option in OPTIONS)
    assert model.generate(["no list"]) == [[""]]


def test_a_rule_has_its_written_version_and_a_draft_that_of_its_source():
    assert lm.load("scripted:first").revision.partition(":")[0] == rules.RULES["first"].version != ""

    def draft(prompt, options):
        return options[0]

    def other(prompt, options):
        return options[-1]

    drafts = [ScriptedModel(rule).revision for rule in (draft, draft, other)]
    assert drafts[0] == drafts[1] != drafts[2]
    assert ScriptedModel(draft, version="2").revision.startswith("2:")
