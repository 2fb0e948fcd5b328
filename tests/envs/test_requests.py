"""Requests whose constraints a rule checks, and beginnings of reviews: contract, parts, bad options."""

from __future__ import annotations

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs import check
from hunch.envs.constraints import KINDS, Constraints, possible
from hunch.envs.reviews import beginning

ENVS = ("hunch/Constraints-v0", "hunch/Reviews-v0")


def made(id, **options):
    if id == "hunch/Reviews-v0":
        pytest.importorskip("vaderSentiment", reason="needs the extra 'tasks'")
    return hunch.make(id, **options)


@pytest.mark.parametrize("id", ENVS)
def test_the_contract_and_the_parts(id):
    env = made(id)
    check(env)
    seen = {}
    for part in ("train", "held-out"):
        env = made(id, part=part)
        seen[part] = {env.reset(seed=seed)[0] for seed in range(600)}
        assert env.reset(seed=4) == made(id, part=part).reset(seed=4)
    assert not seen["train"] & seen["held-out"]
    assert min(map(len, seen.values())) > 300, "hundreds of different requests"
    other = made(id, part="held-out", draw=1)
    assert {other.reset(seed=seed)[0] for seed in range(600)} & seen["train"]
    with pytest.raises(UsageError, match=r"No .* is in the part"):
        made(id, part="held-out", held_out=0.0).reset(seed=0)
    with pytest.raises(UsageError, match="part"):
        made(id, part="test")


@pytest.mark.parametrize(
    ("says", "right", "wrong"),
    [
        ("Use exactly 5 words.", "It's a well-known old river.", "A river."),
        ("Use at most 4 words.", "A river.", ""),
        ("Use at least 3 words.", "a b c", "a 1 2 3"),
        ("Use the word 'blue'.", "Blue, it is.", "It is bluer."),
        ("Begin with the word 'blue'.", "'Blue' it is", "It is blue"),
        ("End with the word 'blue'.", "It is blue!", "Blue it is"),
        ("Do not use the letter 'e'.", "A cat sat.", "THE cat"),
        ("Do not use the letter 'a'.", "The top.", "..."),
        ("Write in capital letters only.", "A RIVER.", "A River."),
        ("Write in small letters only.", "a river.", "42"),
        ("Write 2 lines, each beginning with '- '.", "- one\n- two", "- one\n- two\n- three"),
        ("End with a question mark.", "Is it?", "?"),
        ("Put the whole text in double quotes.", '"A river."', '"A" river"'),
    ],
)
def test_each_constraint(says, right, wrong):
    rng = np.random.default_rng(0)
    drawn = (draw(rng) for draw in list(KINDS.values()) * 3_000)
    constraint = next(each for each in drawn if each.says == says)
    assert constraint.holds(right)
    assert not constraint.holds(wrong)


def test_the_reward_is_the_share_of_constraints_that_are_met():
    env = Constraints(kinds="length,word", most=2)
    for seed in range(40):
        request, _ = env.reset(seed=seed)
        if "at least 3 words. Use the word 'blue'" in request.replace("at least 4", "at least 3"):
            break
    env.reset(seed=seed)
    checks = [each.holds("nothing of this") for each in env.constraints]
    _, reward, terminated, _, info = env.step(" nothing of this \n")
    assert reward == np.mean(checks)
    assert terminated
    assert info["success"] == all(checks)
    assert all(
        (each.says in info["event"]) != holds for each, holds in zip(env.constraints, checks, strict=True)
    )
    env.reset(seed=seed)
    assert env.step("blue " * 4_000)[1] == 0
    with pytest.raises(UsageError, match=r"kinds takes length, word, letter, format, .* not 'rhyme'"):
        Constraints(kinds="length,rhyme")
    with pytest.raises(UsageError, match="not 'nothing'"):
        Constraints(kinds=" ,")
    with pytest.raises(UsageError, match="kinds names length twice"):
        Constraints(kinds="length,word,length")


def test_what_excludes_each_other_is_not_asked():
    assert not possible("Use the word 'blue'. Do not use the letter 'e'.")
    assert possible("Use the word 'blue'. Do not use the letter 'a'.")
    assert not possible("Use at most 3 words. Write 4 lines, each beginning with '- '.")


def test_the_sentiment_pays_in_the_wanted_direction():
    liked, hated = "it was wonderful, I loved it", "it was awful, I hated every minute"
    rewards = {}
    for wanted in ("positive", "negative"):
        env = made("hunch/Reviews-v0", wanted=wanted)
        for text in (liked, hated, " "):
            env.reset(seed=0)
            _, rewards[wanted, text], _, _, info = env.step(text)
            assert info["success"] == (rewards[wanted, text] >= 0.5)
    assert rewards["positive", liked] > 0.5 > -0.5 > rewards["positive", hated]
    assert rewards["negative", hated] == -rewards["positive", hated]
    assert rewards["negative", " "] == 0
    with pytest.raises(UsageError, match="wanted"):
        made("hunch/Reviews-v0", wanted="angry")


def test_beginnings_are_neutral():
    judge = pytest.importorskip("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer()
    rng = np.random.default_rng(0)
    scores = [judge.polarity_scores(beginning(rng))["compound"] for _ in range(300)]
    assert np.mean(np.abs(scores)) < 0.2
