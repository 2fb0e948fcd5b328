"""Requests that a rule makes and a rule, a lexicon, a classifier or an encoder judges: contract, parts, bad
options."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs import check, simplicity
from hunch.envs.constraints import KINDS, Constraints, possible
from hunch.envs.reviews import beginning
from hunch.envs.rudeness import DEEDS, PEOPLE, REQUESTS, masked
from hunch.envs.simplicity import ACTIONS, ENDINGS, THINGS, WHO, learned, plain, reading_ease, syllables
from hunch.extras import NotInstalledError

ENVS = ("hunch/Constraints-v0", "hunch/Reviews-v0", "hunch/Rudeness-v0", "hunch/Simplicity-v0")
NEEDS = {
    "hunch/Reviews-v0": ("vaderSentiment", "tasks"),
    "hunch/Rudeness-v0": ("profanity_check", "rudeness"),
    "hunch/Simplicity-v0": ("pyphen", "tasks"),
}
"""Package and extra of each environment that needs one."""


def made(id, **options):
    if id in NEEDS:
        package, extra = NEEDS[id]
        pytest.importorskip(package, reason=f"needs the extra {extra!r}")
    if id == "hunch/Simplicity-v0":
        options = {"judge": "words", **options}
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


@pytest.mark.parametrize("id", NEEDS)
def test_a_missing_package_is_one_sentence_with_its_extra(id, monkeypatch):
    package, extra = NEEDS[id]
    simplicity.dictionary.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    for name in (package, "vaderSentiment.vaderSentiment"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalledError, match=rf"pip install .*\[{extra}\]"):
        hunch.make(id)


def test_rude_and_polite_texts_are_paid_as_wanted():
    rewards = {}
    for wanted in ("polite", "rude"):
        env = made("hunch/Rudeness-v0", wanted=wanted)
        for text in ("You play very well.", "You stupid idiot!", " "):
            env.reset(seed=0)
            _, rewards[wanted, text], terminated, _, info = env.step(text)
            assert terminated
            assert info["success"] == (rewards[wanted, text] >= 0.5)
        assert rewards[wanted, " "] == 0
    assert rewards["polite", "You play very well."] > 0.9
    assert rewards["rude", "You stupid idiot!"] > 0.9
    for text in ("You play very well.", "You stupid idiot!"):
        assert rewards["polite", text] == pytest.approx(1 - rewards["rude", text])
    with pytest.raises(UsageError, match="wanted"):
        made("hunch/Rudeness-v0", wanted="angry")


def test_rude_words_are_masked_and_no_request_has_one():
    env = made("hunch/Rudeness-v0", render_mode="ansi")
    assert masked("You stupid idiot, play on.") == "You s****d i***t, play on."
    assert masked("") == ""
    words = " ".join([*REQUESTS, *PEOPLE, *DEEDS])
    assert masked(words) == words
    request, _ = env.reset(seed=0)
    assert env.render() == request
    env.step("You idiot!")
    assert env.render() == "You i***t!"
    env.reset(seed=0)
    assert env.render() == request


def test_a_simpler_sentence_with_the_same_meaning_pays():
    env = made("hunch/Simplicity-v0", least=0.1)
    for seed in range(5):
        env.reset(seed=seed)
        sentence = env.unwrapped.sentence
        unlike = "The cat sat on a mat."
        for text in (sentence, plain(sentence), unlike, " ", "... 42!"):
            env.reset(seed=seed)
            _, reward, terminated, _, info = env.step(text)
            assert terminated
            assert info["success"] == (text == plain(sentence))
            assert (reward > 0) == info["success"]
    ease = (reading_ease(plain(sentence)) - reading_ease(sentence)) / 100
    assert ease > 0.2
    env.reset(seed=seed)
    (text,) = env.unwrapped.oracle()
    meaning = env.unwrapped.meaning(text)
    assert env.step(text)[1] == pytest.approx(min(ease, 1) * meaning)
    assert env.unwrapped.models["judge"].usage.calls > 0
    with pytest.raises(UsageError, match="The judge of meaning needs a model with the verb 'embed'"):
        made("hunch/Simplicity-v0", judge="uniform")


def test_reading_ease_is_that_of_the_formula():
    pytest.importorskip("pyphen", reason="needs the extra 'tasks'")
    assert [syllables(word) for word in ("bridge", "table", "festival", "commencement")] == [1, 2, 3, 3]
    assert reading_ease("The table. The bridge!") == pytest.approx(206.835 - 1.015 * 2 - 84.6 * 5 / 4)
    assert reading_ease("The table: 3.50 the bridge") == pytest.approx(206.835 - 1.015 * 4 - 84.6 * 5 / 4)


def test_every_learned_part_has_plain_words():
    rng = np.random.default_rng(0)
    parts = [long for choices in (WHO, ACTIONS, THINGS, ENDINGS) for long in choices]
    for _ in range(300):
        sentence = learned(rng)
        assert sum(long in sentence for long in parts) >= 4
        assert not [long for long in parts if long in plain(sentence)]
