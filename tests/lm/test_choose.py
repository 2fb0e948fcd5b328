"""Choosing: estimators that agree where they must, and say what they are where they cannot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunch import lm
from hunch.core import FloatArray, UsageError
from hunch.lm import Cached, Store, choose
from hunch.lm.backends.scripted import ScriptedModel, behind_letters, first, overlap
from hunch.lm.base import Model
from hunch.lm.scoring.choose import CHOOSING, LABELS, lettered, way_of_choosing
from hunch.lm.ways import Way, best_way

PROMPT = "Your task is to: open the fridge."
OPTIONS = ("go left", "open the fridge", "look")
MANY = tuple(f"go to shelf {i}" for i in range(50))


class Letters(Model):
    """A server that lists only its likeliest letters, and favours early ones by ``bias``."""

    name, revision, verbs = "letters", "1", frozenset({"label"})

    def __init__(self, worth: dict[str, float], bias: float = 0.0, listed: int = 20) -> None:
        self.worth, self.bias, self.listed, self.asked = worth, bias, listed, 0

    def label(self, prompts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        self.asked += len(prompts)
        return [self._label(prompt, own) for prompt, own in zip(prompts, labels, strict=True)]

    def _label(self, prompt: str, labels: Sequence[str]) -> FloatArray:
        assert len(labels) <= 20
        worths = np.array([self.worth.get(option, 0.0) for option in behind_letters(prompt, labels)])
        weights = np.exp(worths - self.bias * np.arange(len(labels)))
        logprobs = np.log(0.9 * weights / weights.sum())
        logprobs[np.argsort(-logprobs)[self.listed :]] = -np.inf
        return logprobs


@pytest.mark.parametrize("way", ["likelihood", "label", "text"])
def test_every_estimator_finds_what_the_rule_names(way: str) -> None:
    model = ScriptedModel(overlap, error=0.1)
    choices = choose(model, [PROMPT, PROMPT], [OPTIONS, OPTIONS[::-1]], way=way, samples=9)
    for choice, own in zip(choices, (OPTIONS, OPTIONS[::-1]), strict=True):
        assert own[int(choice.probabilities.argmax())] == "open the fridge"
        assert choice.probabilities.sum() == pytest.approx(1)
        assert choice.way == way
        assert choice.normalised_over


def test_scored_and_labelled_agree_for_a_rule() -> None:
    """Two routes to one number: the dials of a scripted model are the same behind letters."""
    model = ScriptedModel(overlap, error=0.3)
    scored, labelled = (
        choose(model, [PROMPT], [OPTIONS], way=way)[0].probabilities for way in ("likelihood", "label")
    )
    np.testing.assert_allclose(scored, labelled)


def test_auto_takes_what_the_model_can_do() -> None:
    assert choose(lm.load("uniform"), [PROMPT], [OPTIONS])[0].way == "decision"
    assert choose(lm.load("scripted:first"), [PROMPT], [OPTIONS])[0].way == "likelihood"
    assert choose(Letters({}), [PROMPT], [OPTIONS])[0].way == "label"
    bare = Model()
    bare.name, bare.verbs = "bare", frozenset({"embed"})
    with pytest.raises(UsageError, match="decide or generate or label or score; bare does not have it"):
        choose(bare, [PROMPT], [OPTIONS])
    with pytest.raises(UsageError, match="verb generate; letters does not have it: it can be asked by label"):
        choose(Letters({}), [PROMPT], [OPTIONS], way="text")
    with pytest.raises(UsageError, match="auto, decision, likelihood, label, structured, text, not"):
        choose(Letters({}), [PROMPT], [OPTIONS], way="guessed")


class Able(Model):
    """A model with some verbs, which is only looked at."""

    name, revision = "able", "1"

    def __init__(self, verbs: str, chats: bool = False, restricts: bool = False, declared: Way | None = None):
        self.verbs = frozenset(verbs.split())
        self.answer_tokens = 100 if chats else 0
        self.takes = frozenset(("choices",) if restricts else ())
        self.best_way = declared


@pytest.mark.parametrize(
    ("model", "proposing", "choosing"),
    [
        (Able("generate score label decide", chats=True, restricts=True), "decision", "decision"),
        (Able("generate score label", chats=True, restricts=True), "structured", "structured"),
        (Able("generate score label", chats=True), "label", "label"),
        (Able("generate", chats=True), "text", "text"),
        (Able("generate label", restricts=True), "structured", "structured"),
        (Able("generate score label", restricts=True), "likelihood", "likelihood"),
        (Able("generate score embed"), "likelihood", "likelihood"),
        (Able("generate score label", declared="text"), "text", "likelihood"),  # a stand-in
        (Able("generate score decide", declared="text"), "text", "decision"),  # a stand-in
    ],
)
def test_one_rule_says_which_way_is_best(model: Able, proposing: Way, choosing: Way) -> None:
    """Roles that read proposals and choices by probability differ only in what a stand-in declares."""
    assert best_way(model) == proposing
    assert best_way(model, CHOOSING) == proposing
    assert way_of_choosing(model) == choosing


def test_a_scoring_model_scores_letters(folders: dict[str, object]) -> None:
    model = lm.load(f"hf:{folders['gpt2']}", cache=None)
    choice = choose(model, [PROMPT], [OPTIONS], way="label")[0]
    exact = model.score([lettered(PROMPT, OPTIONS)], [LABELS[:3]])[0].logprobs
    np.testing.assert_allclose(choice.probabilities, np.exp(exact) / np.exp(exact).sum())
    assert choice.answered == pytest.approx(np.exp(exact).sum())


def test_normalisations_of_scores(folders: dict[str, object]) -> None:
    model = lm.load(f"hf:{folders['gpt2']}", cache=None)
    options = [*OPTIONS, "rummage under xylophones"]
    by = {n: choose(model, [PROMPT], [options], normalise=n)[0] for n in ("sum", "token", "word")}
    assert len({tuple(choice.probabilities) for choice in by.values()}) == 3
    assert "a token" in by["token"].normalised_over
    assert "summed" in by["sum"].normalised_over


def test_letters_that_were_not_listed() -> None:
    few = choose(Letters({"look": 2.0, "go left": 1.0}, listed=2), [PROMPT], [OPTIONS])[0]
    assert few.probabilities[1] == 0
    assert few.probabilities.sum() == pytest.approx(1)
    assert few.fallbacks == 0
    assert few.answered < 0.9
    none = choose(Letters({}, listed=0), [PROMPT], [OPTIONS])[0]
    assert none.probabilities.tolist() == pytest.approx([1 / 3] * 3)
    assert (none.answered, none.fallbacks) == (0, 1)


def test_rotation_removes_the_bias_for_early_letters() -> None:
    model = Letters({}, bias=1.0)
    once, all_orders = (choose(model, [PROMPT], [OPTIONS], rotations=r)[0] for r in (1, 3))
    assert once.probabilities[0] > 0.6
    np.testing.assert_allclose(all_orders.probabilities, 1 / 3)
    assert "3 orders" in all_orders.normalised_over
    model.asked = 0
    choose(model, [PROMPT], [OPTIONS], rotations=30)
    assert model.asked == 3, "there are no more orders than options"


@given(st.integers(2, 50), st.integers(1, 4), st.integers(0, 49))
def test_rotation_keeps_every_option_in_its_place(n: int, rotations: int, best: int) -> None:
    worth = {MANY[best % n]: 4.0}
    choice = choose(Letters(worth), [PROMPT], [MANY[:n]], rotations=rotations)[0]
    assert int(choice.probabilities.argmax()) == best % n
    assert choice.probabilities.shape == (n,)
    assert choice.probabilities.sum() == pytest.approx(1)


def test_more_options_than_letters_go_through_groups_and_a_final() -> None:
    model = Letters({MANY[31]: 3.0})
    choices = choose(model, [PROMPT] * 3, [MANY, OPTIONS, MANY[:21]])
    assert model.asked == 3 + 1 + 1 + 2 + 1
    assert [len(choice.probabilities) for choice in choices] == [50, 3, 21]
    assert choices[0].probabilities.argmax() == 31
    assert "3 groups" in choices[0].normalised_over
    assert "groups" not in choices[1].normalised_over
    at_once = np.exp(3) / (np.exp(3) + 49)  # as if all 50 had been asked together
    assert choices[0].probabilities[31] == pytest.approx(at_once)


def test_more_than_twenty_groups() -> None:
    crowd = tuple(f"take mug {i} now" for i in range(900))
    choice = choose(Letters({crowd[777]: 5.0}), [PROMPT], [crowd])[0]
    assert choice.probabilities.argmax() == 777
    assert choice.probabilities.sum() == pytest.approx(1)


def test_votes_are_shares_and_strays_are_counted() -> None:
    model = lm.load("scripted:first?error=0.3&refusal=0.2", cache=None)
    before = model.usage.fallbacks
    choice = choose(model, [PROMPT], [OPTIONS], way="text", samples=200)[0]
    assert choice.probabilities[0] == pytest.approx(0.5 / 0.8, abs=0.1)
    assert 20 <= choice.fallbacks <= 60
    assert choice.answered == 1 - choice.fallbacks / 200
    assert model.usage.fallbacks - before == choice.fallbacks == model.usage.refusals
    silent = choose(ScriptedModel(first, refusal=1.0), [PROMPT], [OPTIONS], way="text")[0]
    assert silent.probabilities.tolist() == pytest.approx([1 / 3] * 3)
    assert (silent.answered, silent.fallbacks) == (0, 5)


def test_a_prompt_that_lists_its_options_is_voted_on_as_it_is() -> None:
    listing = PROMPT + "\n" + "\n".join(f"- {option}" for option in OPTIONS) + "\n>"
    model = Cached(ScriptedModel(overlap))
    choose(model, [listing], [OPTIONS], way="text", samples=2)
    model.generate([listing], 2)
    assert model.usage.calls == 2


@pytest.mark.parametrize(
    ("prompts", "options", "more", "sentence"),
    [
        ([PROMPT], [[]], {}, "no options"),
        ([PROMPT], [["a", " "]], {}, "blank option"),
        ([PROMPT], [], {}, "1 prompts, 0 lists"),
        ([PROMPT], [OPTIONS], {"rotations": 0}, "at least one rotation"),
        ([PROMPT], [OPTIONS], {"samples": 0}, "one sample"),
    ],
)
def test_bad_questions(prompts: list[str], options: list[list[str]], more: dict, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        choose(lm.load("uniform"), prompts, options, **more)


@pytest.mark.parametrize("way", ["likelihood", "label", "text"])
def test_choices_are_the_same_from_disk(tmp_path: object, way: str) -> None:
    def asked() -> tuple[list[float], int]:
        model = Cached(ScriptedModel(overlap, error=0.4), Store(tmp_path / "a.sqlite"))
        found = choose(model, [PROMPT], [MANY], way=way, rotations=2)[0].probabilities
        return found.tolist(), model.usage.calls

    (fresh, calls), (stored, again) = asked(), asked()
    assert fresh == stored
    assert calls > again == 0


def test_empty_batch() -> None:
    assert all(choose(lm.load("uniform"), [], [], way=way) == [] for way in ("likelihood", "label", "text"))
