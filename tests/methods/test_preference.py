"""Preferences between captions: fitted rewards agree with the judge, and bad judges and data are told of."""

import numpy as np
import pytest
from tests.begun import begun

from hunch import lm
from hunch.core import HunchError, HunchWarning, State, Transition, World
from hunch.lm import Cached
from hunch.lm.backends.scripted import ScriptedModel
from hunch.lm.base import Model
from hunch.methods.reward.motif import Preference, PreferenceConfig, cycles, read_preference

SMALL = PreferenceConfig(pairs=300, collect=80)
ORDER = ("bad thing", "plain thing", "good thing", "best thing")


def better(prompt, options):
    lines = [line[3:] for line in prompt.splitlines() if line.startswith(("1: ", "2: "))]
    ranks = [ORDER.index(line) for line in lines]
    return options[0] if ranks[0] > ranks[1] else options[1]


def data(*captions):
    s = State("here", "the goal", ("a",))
    return [
        [Transition(s, "a", 0.0, s, i == len(captions) - 1, False, event=c) for i, c in enumerate(captions)]
    ]


def fitted(rule=better, config=SMALL, captions=ORDER, **dials):
    source = begun(Preference(Cached(ScriptedModel(rule, **dials)), lm.load("bag-of-words"), config))
    source.begin(World(task="the goal", data=data(*captions * 5)), 0)
    return source


@pytest.mark.parametrize(
    ("answer", "verdict"), [("1", 1), ("It is 2.", 2), ("none", 0), ("Neither one", 0), ("12 of them", None)]
)
def test_verdicts_are_read(answer, verdict):
    assert read_preference(answer) == verdict


def test_the_last_verdict_counts_where_models_explain_themselves():
    assert read_preference("1 is a wall, 2 a door. Verdict: 2", last=True) == 2


@pytest.mark.parametrize("error", [0.0, 0.2])
def test_rewards_have_the_order_of_the_judge(error):
    source = fitted(error=error)
    rewards = [source.rewards(data(caption)[0])[0] for caption in ORDER]
    assert rewards == sorted(rewards)
    assert source.report["accuracy"] > 0.7
    (line,) = source.records()
    assert np.mean([line["captions"][c] for c in ORDER]) == pytest.approx(0, abs=1e-6)
    assert line["cycles"] == 0


@pytest.mark.parametrize("soft", [True, False])
def test_rewards_are_fitted_to_the_probabilities_where_the_model_gives_them(soft):
    """p(first is better), from both orders of a pair, is the model's; or nearly 1 with the verdicts alone."""

    class Unsure(Model):
        """Decides for the better caption with probability 0.7."""

        name = "unsure"
        revision = "1"
        evidence = "L0"
        verbs = frozenset({"decide"})

        def decide(self, states, questions):
            first_is_better = [better(state, ("1", "2")) == "1" for state in states]
            p = {True: np.array([0.7, 0.3, 0.0]), False: np.array([0.3, 0.7, 0.0])}
            return [[p[first]] for first in first_is_better]

    config = PreferenceConfig(pairs=2_000, collect=80, soft=soft)  # enough to converge
    source = begun(Preference(Cached(Unsure()), lm.load("bag-of-words"), config))
    source.begin(World(task="the goal", data=data(*ORDER[1:3] * 10)), 0)
    margin = source.values["good thing"] - source.values["plain thing"]
    p = 1 / (1 + np.exp(-margin))
    assert p == pytest.approx(0.7, abs=0.05) if soft else p > 0.9
    (record,) = source.records()
    assert record["accuracy"] == 1.0  # against the verdicts, in both


def test_identical_captions_are_ties_and_not_sent():
    source = fitted()
    pairs = source.judged([("bad thing", "bad thing"), ("bad thing", "good thing")])
    assert [pair.verdict for pair in pairs] == [0, 2]
    before = source.lm.usage.calls
    source.judged([("plain thing", "plain thing")])
    assert source.lm.usage.calls == before


def test_a_step_without_a_caption_is_worth_nothing():
    assert fitted().rewards(data("")[0]) == [0.0]


def test_unread_answers_are_asked_again_then_ties_and_counted():
    with pytest.warns(HunchWarning, match="preferred neither"):
        source = fitted(malformed=1.0)
    assert source.report["unread"] == 1.0
    assert source.lm.usage.fallbacks == source.report["sent"]


def test_a_judge_that_always_names_the_first_is_seen():
    with pytest.warns(HunchWarning, match=r"said 1 to all of \d+ pairs"):
        source = fitted(lambda prompt, options: options[0])
    assert source.report["first"] == 1.0


def test_contradictions_are_measured():
    circle = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1)]
    assert cycles(circle) == 1.0
    assert cycles([*circle[:2], ("a", "c", 1)]) == 0.0
    assert cycles(circle[:2]) is None


@pytest.mark.parametrize("captions", [("bad thing",), ("",)])
def test_nothing_to_compare_is_one_sentence(captions):
    with pytest.raises(HunchError, match="nothing to compare"):
        fitted(captions=captions)
