"""Decision models: a reference server, with each of its faults, too, and servers that bend the format."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jevcompat.mock import FAULTS, MockConfig, make_server
from tests.lm.decider import Replying, served
from tests.started import answering

from hunch import lm
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm.decision import YES_NO, DecisionQuestion, grouped, joined

COLOURS = DecisionQuestion("choice", "Où est le Chat?", ("sous l'évier", "Go Left", "go right"))
TRUE = DecisionQuestion("yes_no", "Is it so?")
LEVELS = DecisionQuestion("levels", "How good is it?", ("bad", "fair", "good"))
MANY = DecisionQuestion("choice", "Which?", tuple(f"option {i}" for i in range(100)))
QUESTIONS = (COLOURS, TRUE, LEVELS, MANY)
STATES = ("The cat sleeps.", "The cat is awake.")
KEY = "sk-decision-4711-secret"


@contextmanager
def reference(*faults: str, key: str | None = None, **settings: Any) -> Iterator[str]:
    """The address of the reference server."""
    with answering(make_server(MockConfig(faults=frozenset(faults), key=key, **settings))) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


def load(url: str, **options: Any) -> Any:
    return lm.load("systemone:jev-latest", cache=None, base_url=url, **options)


@pytest.fixture(scope="module")
def right() -> list[list[Any]]:
    with reference() as url:
        answers: list[list[Any]] = load(url).decide(STATES, [QUESTIONS] * 2)
    return answers


def test_answers_are_distributions_over_the_options(right: list[list[Any]]) -> None:
    for own in right:
        for question, answer in zip(QUESTIONS, own, strict=True):
            assert answer.shape == (len(question.options),)
            assert answer.sum() == pytest.approx(1, abs=1e-12)
    assert not np.allclose(right[0][0], right[1][0])  # the state counts


def test_alone_and_in_company_are_equal(right: list[list[Any]]) -> None:
    with reference() as url:
        model = load(url)
        for question, answer in zip(QUESTIONS, right[0], strict=True):
            ((alone,),) = model.decide(STATES[:1], [[question]])
            assert np.array_equal(alone, answer)


NEVER_ANSWERED = {
    "wrong-route": "No route /v1/systemone",
    "xssi-200": "malformed reply",
    "auth-rejects-header": "takes no key",
    "auth-x-api-key": "Must supply an API key",
    "reject-jev-latest": "Model not served",
    "boolean-type": "with the type 'boolean'",
    "noul-range": "as a probability",
    "choice-sum": "add up to 1.",
    "choice-second": "a higher probability",
}
"""Faults that keep a server from being loaded, with what the sentence says."""
PARTLY = {
    "cap-5-levels": "at most 5",
    "choice-key-case": "no probability for the option 'Go Left'",
    "score-keys-1-based": "no probability for the option '0'",
    "score-sum": "add up to 0.8",
    "score-argmax": "the mean",
}
"""Faults in one kind of question, with what the sentence says."""
LEAKS = {"id-leaks": "the id", "batch-leaks": "how many", "order-leaks": "the order"}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_each_fault_is_met_with_a_right_answer_or_a_sentence(
    fault: str, right: list[list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = KEY if fault.startswith("auth-") else None
    if key:
        monkeypatch.setenv("HUNCH_API_KEY", KEY)
    server = reference(fault, key=None if fault == "auth-rejects-header" else key)
    with server as url, warnings.catch_warnings():
        warnings.simplefilter("ignore", HunchWarning)
        if fault in NEVER_ANSWERED:
            with pytest.raises(HunchError, match=NEVER_ANSWERED[fault]) as error:
                load(url)
            assert KEY not in str(error.value)
            return
        model = load(url)
        refused = []
        six_levels = DecisionQuestion("levels", "How good?", tuple("abcdef"))
        for question, answer in zip((*QUESTIONS, six_levels), (*right[0], None), strict=True):
            try:
                ((given,),) = model.decide(STATES[:1], [[question]])
            except HunchError as error:
                refused.append(str(error))
                continue
            # Servers that leak, or want a description, are asked another question in effect.
            if answer is not None and fault not in (*LEAKS, "no-null-description"):
                assert np.allclose(given, answer, atol=1e-9)
        said = model.model.leaks()
    assert bool(refused) == (fault in PARTLY)
    assert all(PARTLY[fault] in sentence and "127.0.0.1" in sentence for sentence in refused)
    if fault in LEAKS:
        assert any(LEAKS[fault] in sentence for sentence in said)
    elif fault == "first-question-only":
        assert "unanswered" in said[0]
    else:
        assert said == []


def test_a_description_that_is_wanted_is_said_and_is_another_model() -> None:
    with reference("no-null-description") as url, pytest.warns(HunchWarning, match="wants a description"):
        described = load(url)
    with reference() as url:
        plain = load(url)
    assert described.revision.endswith("described")
    assert not plain.revision.endswith("described")


def test_more_options_than_the_server_takes_are_asked_in_groups(right: list[list[Any]]) -> None:
    with reference("cap-64") as url:
        model = load(url)
        with pytest.warns(HunchWarning, match="at most 64 are asked at once"):
            ((answer,),) = model.decide(STATES[:1], [[MANY]])
    assert model.model.most_options == 64
    assert np.allclose(answer, right[0][3], atol=1e-9)


@given(
    logits=st.lists(st.floats(-20, 20), min_size=1, max_size=60),
    most=st.integers(2, 30),
)
@settings(max_examples=200, deadline=None)
def test_groups_and_a_final_equal_one_question(logits: list[float], most: int) -> None:
    scores = np.array(logits)

    def softmax(values: Any) -> Any:
        weights = np.exp(values - values.max())
        return weights / weights.sum()

    def asked(indices: list[int]) -> Any:
        if len(indices) <= most:
            return softmax(scores[indices])
        parts = [[indices[i] for i in part] for part in grouped(len(indices), most)]
        groups = [asked(part) for part in parts]
        favourites = [part[int(group.argmax())] for part, group in zip(parts, groups, strict=True)]
        return joined(groups, asked(favourites))

    assert np.allclose(asked(list(range(len(logits)))), softmax(scores), atol=1e-9)


def test_two_thousand_options() -> None:
    question = DecisionQuestion("choice", "Which?", tuple(f"option {i}" for i in range(2000)))
    with reference() as url:
        ((in_groups,),) = load(url, most_options=26).decide(["s"], [[question]])
        ((other_groups,),) = load(url).decide(["s"], [[question]])
    assert np.allclose(in_groups, other_groups, atol=1e-12)


def test_answers_are_cached_metered_and_replayed(tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    with reference() as url:
        first = lm.load("systemone:jev-latest", cache=file, base_url=url, price_in=1.0)
        once = first.decide(STATES, [QUESTIONS] * 2)
        assert first.usage.calls == 8
        assert first.usage.prompt_tokens > 0
        assert first.usage.cost == pytest.approx(first.usage.prompt_tokens / 1e6)
        again = lm.load("systemone:jev-latest", cache=file, base_url=url)
        answers = again.decide(STATES, [QUESTIONS] * 2)
        assert again.usage.calls == 0
        for own, other in zip(once, answers, strict=True):
            for one, two in zip(own, other, strict=True):
                assert np.array_equal(one, two)


def test_a_busy_server_is_waited_for(right: list[list[Any]]) -> None:
    with reference(busy_every=2) as url:
        answers = load(url).decide(STATES, [QUESTIONS] * 2)
    assert np.array_equal(answers[0][0], right[0][0])


# ---- servers that keep the letter and break the spirit -------------------------------------------------


@contextmanager
def bending(bend: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """A server whose replies are what ``bend`` makes of right ones; a text is sent as it is."""

    class Handler(Replying):
        def answer(self, body: dict[str, Any]) -> None:
            answers: dict[str, Any] = {}
            for name, asked in body["questions"].items():
                if asked["type"] == "noul":
                    answers[name] = {"type": "noul", "noul": 0.75}
                    continue
                options = list(asked["criteria"])
                shares = [0.5] + [0.5 / (len(options) - 1)] * (len(options) - 1)
                told = dict(zip(options, shares, strict=True))
                answers[name] = {"type": "choice", "choice": options[0], "probabilities": told}
            bent = bend({"model": "m", "answers": answers, "usage": {"input_tokens": 9, "output_tokens": 1}})
            status, text = bent if isinstance(bent, tuple) else (200, bent)
            self.reply(text, status)

    with served(Handler) as url:
        yield url


def _changed(change: Callable[[dict[str, float]], dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
    def bend(reply: dict[str, Any]) -> dict[str, Any]:
        for answer in reply["answers"].values():
            if "probabilities" in answer:
                answer["probabilities"] = change(answer["probabilities"])
                answer.pop("choice")
        return reply

    return bend


THREE = DecisionQuestion("choice", "Which?", ("one", "two", "three"))


def test_another_order_of_options_is_no_other_answer() -> None:
    with bending(_changed(lambda told: dict(reversed(told.items())))) as url:
        ((answer,),) = lm.load("systemone:m", cache=None, base_url=url).decide(["s"], [[THREE]])
    assert answer.tolist() == [0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (_changed(lambda told: {**told, "another": 0.0}), "'another', which is no option"),
        (_changed(lambda told: dict(list(told.items())[1:])), "no probability for the option"),
        (_changed(lambda told: {option: float("nan") for option in told}), "nan as a probability"),
        (_changed(lambda told: {option: str(p) for option, p in told.items()}), "as a probability"),
        (_changed(lambda told: dict.fromkeys(told, True)), "True as a probability"),
        (_changed(lambda told: {option: -p for option, p in told.items()}), "as a probability"),
        (_changed(lambda told: dict.fromkeys(told, 0.0)), "add up to 0"),
        (lambda reply: json.dumps(reply).replace('"green": 0.5', '"blue": 0.5'), "malformed"),
        (lambda reply: {**reply, "answers": []}, "no object"),
        (lambda reply: (501, {"error": {"message": "not a decision model"}}), "is no decision model"),
        (lambda reply: (413, {"detail": {"error_type": "x", "message": "too long"}}), "HTTP 413: too long"),
        (lambda reply: (400, {"detail": {"error_type": "x", "message": "no such"}}), "HTTP 400: no such"),
        (lambda reply: (422, {"detail": [{"loc": ["body", "state"], "msg": "bad"}]}), "body.state: bad"),
    ],
)
def test_a_reply_in_doubt_is_one_sentence(bend: Callable[[dict[str, Any]], Any], says: str) -> None:
    with bending(bend) as url, pytest.raises(HunchError, match=says):
        lm.load("systemone:m", cache=None, base_url=url, retries=0).decide(["s"], [[THREE]])


def test_a_question_without_an_answer_is_a_fallback_and_no_number() -> None:
    def silent(reply: dict[str, Any]) -> dict[str, Any]:
        answers = {name: answer for name, answer in reply["answers"].items() if "noul" not in answer}
        return {**reply, "answers": answers}

    with bending(silent) as url:
        model = lm.load("systemone:m", cache=None, base_url=url)
        ((answered, missing),) = model.decide(["s"], [[THREE, TRUE]])
        assert answered.tolist() == [0.5, 0.25, 0.25]
        assert missing is None
        ((choice, fallback),) = lm.decide(model, ["s"], [[THREE, TRUE]])
    assert (choice.fallbacks, fallback.fallbacks, fallback.answered) == (0, 1, 0)
    assert model.usage.fallbacks == 1


def test_openai_decisions() -> None:
    seen: list[Any] = []

    class Handler(Replying):
        def answer(self, body: dict[str, Any]) -> None:
            seen.append((self.path, body))
            answers: list[Any] = []
            for asked in body["questions"]:
                if asked["type"] == "predicate":
                    answers.append({"type": "predicate", "name": asked["name"], "probability": 0.75})
                elif asked["type"] == "score":
                    answers.append({"type": "refusal", "name": asked["name"]})
                else:
                    values = [choice["value"] for choice in asked["choices"]]
                    told = [{"value": value, "probability": 1 / len(values)} for value in reversed(values)]
                    answers.append(
                        {"type": "choice", "name": None, "choice": values[0], "probabilities": told}
                    )
            usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}
            self.reply({"model": "gpt-6-luna", "answers": answers, "usage": usage})

    with served(Handler) as url:
        model = lm.load("decisions:gpt-6-luna", cache=None, base_url=url)
        described = THREE._replace(descriptions=("the first", None, None))
        ((choice, yes, refused),) = model.decide(["s"], [[described, TRUE, LEVELS]])
    assert choice.tolist() == pytest.approx([1 / 3] * 3)
    assert yes.tolist() == [0.75, 0.25]
    assert refused is None
    path, body = seen[-2]
    assert path == "/v1/decisions"
    assert body["questions"][0]["choices"][:2] == [
        {"value": "one", "description": "the first"},
        {"value": "two"},
    ]


# ---- any model -----------------------------------------------------------------------------------------


def test_other_models_answer_by_what_they_can() -> None:
    model = lm.load("scripted:overlap")
    ((choice, yes),) = lm.decide(
        model, ["You see a mug."], [[DecisionQuestion("choice", "Next?", ("take mug", "open door")), TRUE]]
    )
    assert choice.way == "likelihood"
    assert choice.probabilities[0] > choice.probabilities[1]
    assert yes.probabilities.shape == (2,)
    ((native,),) = lm.decide(lm.load("uniform"), ["s"], [[THREE]])
    assert native.way == "decision"
    assert native.probabilities.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (DecisionQuestion("choice", "?", ()), "needs more options"),
        (DecisionQuestion("choice", "?", ("a", "a")), "listed twice"),
        (DecisionQuestion("choice", "?", ("a", " ")), "blank option"),
        (DecisionQuestion("choice", "?", ("a", "b"), ("x",)), "have 1 descriptions"),
        (DecisionQuestion("yes_no", "?", ("true", "false")), "has the options"),
        (DecisionQuestion("guess", "?", YES_NO), "not 'guess'"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_question_is_refused(question: DecisionQuestion, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        lm.load("uniform").decide(["s"], [[question]])


@pytest.mark.parametrize("spec", ["uniform", "scripted:overlap"])
@pytest.mark.parametrize(
    ("states", "questions"),
    [(["s"], [TRUE]), (["s"], [TRUE, THREE]), (["s", "t"], [[TRUE]]), (["s"], [])],
)
def test_each_state_needs_a_list_of_questions(spec: str, states: list[str], questions: Any) -> None:
    with pytest.raises(UsageError, match=re.escape("decide([state], [[question]])")):
        lm.decide(lm.load(spec), states, questions)


def test_an_address_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYSTEMONE_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="needs the address of its server"):
        lm.load("systemone:jev-latest")
