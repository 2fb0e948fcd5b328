"""A judge of pairs, asked in each way that its model has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchError, State, UsageError, World
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.base import Model, OptionScores
from hunch.lm.settings import PATIENCE
from hunch.lm.speech import ONE_LINE, Sampling
from hunch.methods.reward.motif import PreferenceConfig
from hunch.roles.goal.suggestions import SuggestionConfig, Suggestions
from hunch.roles.reward.comparer import Comparer

P = {"1": 0.6, "2": 0.1, "none": 0.3, "A": 0.6, "B": 0.1, "C": 0.3, "Yes": 0.9, "No": 0.1}


class Judge(Model):
    """Knows which of two things is better, and is asked in any way."""

    verbs = frozenset({"generate", "score", "label"})
    takes = frozenset({"choices"})
    name, revision, evidence = "judge", "1", "L0"
    messages = True

    def __init__(self, chats: bool = True) -> None:
        self.answer_tokens = 64 if chats else 0
        self.asked: list[tuple[Any, Sampling]] = []

    def generate(
        self, prompts: Sequence[Any], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        self.asked += [(prompt, sampling) for prompt in prompts]
        said = sampling.choices[0] if sampling.choices else "I think that 2 is better."
        return [[said] * k for _ in prompts]

    def score(self, prompts: Sequence[Any], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        ones = np.ones(len(options[0]), dtype=np.int64)
        return [OptionScores(np.log([P[option] for option in own]), ones, ones) for own in options]

    def label(self, prompts: Sequence[Any], labels: Sequence[Sequence[str]]) -> list[Any]:
        return [np.log([P[letter] for letter in own]) for own in labels]


def comparer(model: Judge, **options: Any) -> Comparer:
    cached = lm.Cached(model)
    return Comparer(cached, Asking(cached, AskConfig(), role="preference"), **options)


@pytest.mark.parametrize(
    ("way", "preference", "verdict"),
    [("structured", 1.0, 1), ("text", 0.0, 2), ("label", 0.75, 1), ("likelihood", 0.75, 1)],
)
def test_a_preference_in_each_way(way: Any, preference: float, verdict: int) -> None:
    judge = comparer(Judge(), way=way)
    assert judge.preferences(["First: a. Second: b.", None]) == pytest.approx([preference, 0.5])
    assert judge.verdicts(["First: a. Second: b.", None]) == [verdict, 0]
    assert judge.decides == (way in ("label", "likelihood"))


def test_auto_restricts_a_chat_model_and_lets_others_and_those_that_explain_write() -> None:
    model = Judge()
    assert comparer(model).way == "structured"
    comparer(model).verdicts(["First: a. Second: b."])
    assert [sampling.choices for _, sampling in model.asked] == [("1", "2", "none")]
    assert comparer(model, last=True).way == "text"
    assert comparer(Judge(chats=False)).way == "text"


def test_a_way_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="way decision needs the verb decide; judge does not have it"):
        comparer(Judge(), way="decision")
    with pytest.raises(UsageError, match="one of auto, decision, structured"):
        comparer(Judge(), way="similarity")
    assert PreferenceConfig().way == "auto"


@pytest.mark.parametrize("way", ["likelihood", "label", "structured"])
def test_goals_are_asked_for_in_each_way(way: Any) -> None:

    goals = Suggestions(lm.Cached(Judge()), SuggestionConfig(how="ask", way=way))
    goals.begin(World(), 0)
    assert goals.suggest([State("A tree.", "", ("chop tree", "sleep"))]) == [("chop tree", "sleep")]
    with pytest.raises(UsageError, match="decide"):
        Suggestions(lm.Cached(Judge()), SuggestionConfig(how="ask", way="decision"))


class Mute(Judge):
    """Says nothing to some questions."""

    def generate(
        self, prompts: Sequence[Any], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        return [["" if "silence" in str(prompt) else "1"] * k for prompt in prompts]


def test_silence_now_and_then_is_no_series_of_useless_answers() -> None:
    judge = comparer(Mute(), way="text")
    for number in range(2 * PATIENCE):
        questions = [f"{number}: a or b?", f"{number}: silence?", f"{number}: b or c?"]
        assert judge.verdicts(questions) == [1, None, 1]
    assert judge.lm.usage.fallbacks == 2 * PATIENCE
    assert judge.lm.usage.silent == 0


@pytest.mark.filterwarnings("ignore:20 answers")
def test_a_series_of_silence_stops_a_run() -> None:
    judge = comparer(Mute(), way="text")
    questions = [f"{number}: silence?" for number in range(PATIENCE)]
    with pytest.raises(HunchError, match=f"{PATIENCE} answers .* in a row"):
        judge.verdicts(questions)
