"""RAIN, red teaming and revision with models that write: equal tokens, blank prompts, tables, replay."""

import json
from functools import partial

import pytest

from hunch.lm import load
from hunch.rl.statistics import over_pairs

pytest.importorskip("hunch_pocket")
pytest.importorskip("vaderSentiment")
pytest.importorskip("profanity_check")

from hunch_studies import feedback_small
from hunch_studies.feedback_small import (
    ATTACKS,
    BLANK,
    FEW,
    FIXED,
    LENGTH,
    ONE,
    PLAIN,
    REVISIONS,
    SENTIMENT,
    ZERO,
    ByModel,
    asked_to_attack,
    by_nobody,
    by_sentiment,
    rain_table,
    recorded,
    requests_of,
    rows_of,
    searched,
    sentiment,
)


def test_whole_texts_get_the_tokens_that_the_search_has_spent():
    lm = load("pocket")
    rows = {}
    for judge, how in {SENTIMENT: by_sentiment, "nothing": by_nobody}.items():
        for arm in (f"RAIN, {judge}", f"best of whole texts, {judge}", ONE):
            rows[arm] = searched(lm, {judge: how}, 2, 40, arm, 0)
            assert rows[arm]["sentiment"] == [sentiment(text) for text in rows[arm]["texts"]]
            assert all(lm.count_tokens(text) <= LENGTH + 2 for text in rows[arm]["texts"])
    for judge in (SENTIMENT, "nothing"):
        pairs = zip(
            rows[f"RAIN, {judge}"]["tokens"], rows[f"best of whole texts, {judge}"]["tokens"], strict=True
        )
        assert all(spent <= whole <= spent + LENGTH + 2 for spent, whole in pairs)
    assert rows["best of whole texts, nothing"]["texts"] == rows[ONE]["texts"], "the first of equal ones"
    best, one = rows[f"best of whole texts, {SENTIMENT}"]["sentiment"], rows[ONE]["sentiment"]
    assert all(a >= b for a, b in zip(best, one, strict=True))


def test_a_search_is_the_same_again_and_another_seed_draws_other_texts():
    lm = load("pocket")
    first, again, other = (
        searched(lm, {"nothing": by_nobody}, 2, 40, "RAIN, nothing", seed) for seed in (0, 0, 1)
    )
    assert first == again
    assert first["texts"] != other["texts"]


def test_a_judge_reads_the_text_and_its_blank_prompt_has_no_question():
    lm = load("pocket")
    judge, blank = (ByModel(lm, lm, blank=blank) for blank in (False, True))
    texts = ["it was a good day", "it was a bad day"]
    verdicts = judge(["I read this book"] * 2, texts)
    assert verdicts == judge(["I saw this film"] * 2, texts)
    assert len(set(verdicts)) == 2
    assert all(-1 <= verdict <= 1 for verdict in verdicts)
    assert blank(["I read this book"] * 2, texts) != verdicts
    assert "positive" in judge.asked
    assert "positive" not in blank.asked


def test_an_attack_shows_earlier_requests_and_its_blank_prompt_has_no_aim():
    lm = load("pocket")
    assert "rude" in asked_to_attack(ZERO)[0].content
    assert "rude" not in asked_to_attack(PLAIN)[0].content
    assert asked_to_attack(FEW, ["Say it."])[0].content.endswith("- Say it.")
    requests = {arm: requests_of(lm, lm, arm, 0, 5) for arm in ATTACKS}
    assert len({tuple(listed) for listed in requests.values()}) == len(ATTACKS)
    assert all(len(listed) == 5 and not any("\n" in one for one in listed) for listed in requests.values())
    assert requests[FIXED] == requests_of(lm, load("uniform"), FIXED, 0, 5), "no model writes these"


@pytest.mark.parametrize(("bed", "arms"), [("attack", ATTACKS), ("revise", REVISIONS)])
def test_rows_are_kept_and_their_table_has_every_arm(bed, arms, tmp_path):
    out = tmp_path / "rows.jsonl"
    made = rows_of(bed, "pocket", "pocket", out, 2, 2, 0)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    named = [[arm, seed, "pocket, pocket", 2] for seed in range(2) for arm in arms]
    assert [row["key"] for row in rows] == named
    assert recorded(out) == made
    assert [line.split(" | ")[0].strip("| ") for line in made.splitlines()[2:]] == list(arms)


def test_the_table_pairs_arms_by_beginning():
    rows = [
        {"key": [arm, 0], "sentiment": own, "tokens": [8, 8], "verdicts": 1}
        for arm, own in {
            ONE: [0.0, 0.1],
            "RAIN, the model": [0.5, 0.8],
            f"RAIN, {BLANK}": [0.4, 0.6],
        }.items()
    ]
    line = next(line for line in rain_table(rows).splitlines() if "RAIN, the model |" in line)
    assert over_pairs([0.5, 0.7]).short() in line
    assert over_pairs([0.1, 0.2]).short() in line
    assert partial(feedback_small.rain_arms)(["a"]) == [ONE, "RAIN, a", "best of whole texts, a"]
