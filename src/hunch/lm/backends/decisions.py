"""Decision models on servers: a state and typed questions in, the probability of each answer out.

========================= ==================== =====================================================
spec                      route                who serves it
========================= ==================== =====================================================
``systemone:<model>``     ``/systemone``       Jev and compatible servers, llama.cpp's server
``decisions:<model>``     ``/decisions``       OpenAI's Decisions API, SGLang
========================= ==================== =====================================================

``base_url`` ends in ``/v1``, as that of ``openai:``. All questions on one state are one request. A reply is
used only if it is beyond doubt: the options are those that were sent, each once, and their probabilities add
up to one. Anything else is one sentence, never a made-up number. A question without an answer is None, which
whoever asked counts as a fallback.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, HunchError, UsageError
from hunch.lm.answers.question import Question
from hunch.lm.backends.http import Line, Request, RequestError
from hunch.lm.backends.loop import wait_for
from hunch.lm.backends.remote import RemoteModel, account
from hunch.lm.backends.replies import same_model
from hunch.lm.base import Backend, Verb
from hunch.lm.decision import DecisionQuestion, grouped, joined
from hunch.lm.speech import text_of
from hunch.lm.usage import Usage, counters

SYSTEMONE: Final = Backend(
    "systemone:<model>",
    f"{__name__}:load_systemone",
    frozenset({"decide"}),
    "a decision model on a server with the route /systemone: Jev and compatible ones",
)
DECISIONS: Final = Backend(
    "decisions:<model>",
    f"{__name__}:load_decisions",
    frozenset({"decide"}),
    "a decision model behind OpenAI's Decisions API, or SGLang's",
)

HOSTED: Final = "https://api.openai.com/v1"
LIMITS: Final = (255, 128, 64, 50, 26, 20, 10)
"""Numbers of options that servers take; after a refusal the next lower one is tried."""
QUESTIONS_PER_REQUEST: Final = 64
"""Questions on one state in one request; OpenAI's limit is 400."""
REFUSED_CONTENT: Final = (400, 413, 422)
"""HTTP states with which servers refuse the content of a request."""
SUM_TOLERANCE: Final = 0.05
"""How far the sum of probabilities may be from 1 (requirement choice.distribution of the format)."""
TEMPLATE: Final = "1"
"""Version of how a question is written; part of the revision, so raise it when that changes."""

Distribution = FloatArray | None
"""Probabilities, shape (number of options,); None if the model refused to answer."""


class Format(NamedTuple):
    """A wire format.

    Attributes:
        path: The route below the base URL.
        body: Makes the request's JSON from model, state, questions, and whether null is sent for "nothing".
        read: Reads the answers, in the order of the questions, from the reply's JSON.
    """

    path: str
    body: Callable[[str, str, Sequence[DecisionQuestion], bool], dict[str, Any]]
    read: Callable[[Sequence[DecisionQuestion], Any], list[Distribution]]


def load_systemone(
    model: str,
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    most_options: int = LIMITS[0],
    concurrency: int = 16,
    timeout: float = 60.0,
    retries: int = 6,
    patience: float = 600.0,
    evidence: EvidenceLevel = "L3",
    price_in: float = 0.0,
    price_out: float = 0.0,
) -> DecisionModel:
    """Load a model of a server with the route ``/systemone``.

    Args:
        model: Name of the model on the server, such as ``jev-latest``.
        base_url: Address of the server, up to ``/v1``. Default: ``SYSTEMONE_BASE_URL``.
        key_env: Environment variable with the key. Default: ``HUNCH_API_KEY``, if it is set.
        most_options: Maximum number of options per question; more are asked in groups. A server that takes
            fewer is noticed.
        concurrency: Maximum number of simultaneous requests.
        timeout: Seconds per attempt.
        retries: Maximum number of attempts after the first.
        patience: Seconds that a request waits in total for a server that asks to retry later.
        evidence: Evidence level of results; a server does not say how its weights were made.
        price_in: Price per million tokens read.
        price_out: Price per million tokens written.

    Raises:
        UsageError: for a wrong option, a missing address or key, or a model that does not decide.
        HunchError: if the server cannot be reached, or its reply cannot be used.
    """
    address = base_url or os.environ.get("SYSTEMONE_BASE_URL")
    if not address:
        raise UsageError(
            f"systemone:{model} needs the address of its server: 'systemone:{model}?base_url=http://…/v1', "
            "or the environment variable SYSTEMONE_BASE_URL."
        )
    line = Line(
        account("openai", address, key_env, HOSTED),
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        patience=patience,
    )
    return _probed(model, line, SYSTEMONE_FORMAT, most_options, evidence, price_in, price_out)


def load_decisions(
    model: str,
    *,
    base_url: str | None = None,
    key_env: str | None = None,
    most_options: int = LIMITS[0],
    concurrency: int = 16,
    timeout: float = 60.0,
    retries: int = 6,
    patience: float = 600.0,
    evidence: EvidenceLevel = "L3",
    price_in: float = 0.0,
    price_out: float = 0.0,
) -> DecisionModel:
    """Load a model behind OpenAI's Decisions API; see :func:`load_systemone` for the options.

    Without ``base_url`` and ``OPENAI_BASE_URL`` the server is OpenAI's, with the key in ``OPENAI_API_KEY``.
    """
    line = Line(
        account("openai", base_url, key_env, HOSTED),
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        patience=patience,
    )
    return _probed(model, line, DECISIONS_FORMAT, most_options, evidence, price_in, price_out)


def _probed(
    model: str,
    line: Line,
    form: Format,
    most_options: int,
    evidence: EvidenceLevel,
    price_in: float,
    price_out: float,
) -> DecisionModel:
    if isinstance(most_options, bool) or not isinstance(most_options, int) or most_options < 2:
        raise UsageError(f"most_options must be a whole number of at least 2, not {most_options!r}.")
    loaded = DecisionModel(
        model, line, form, most_options, evidence=evidence, price_in=price_in, price_out=price_out
    )
    wait_for(loaded.probe())
    return loaded


class DecisionModel(RemoteModel):
    """A model that answers typed questions with probabilities.

    Attributes:
        most_options: Maximum number of options per question; it falls if the server refuses so many.
    """

    verbs: frozenset[Verb] = frozenset({"decide"})
    unnamed = RemoteModel.unnamed | {"most_options"}
    prompting = "the state as text, with typed questions"

    def __init__(
        self,
        model: str,
        line: Line,
        form: Format,
        most_options: int,
        *,
        evidence: EvidenceLevel,
        price_in: float = 0.0,
        price_out: float = 0.0,
    ) -> None:
        super().__init__(model, line, evidence=evidence, price_in=price_in, price_out=price_out)
        self.kind = form.path.strip("/")
        self.form, self.most_options = form, most_options
        self.name = f"{self.kind}:{model}"
        self._sends_null = True  # in place of a description; some servers want a text

    @property
    def revision(self) -> str:  # type: ignore[override]
        """The address, and the version of how questions are written."""
        described = "" if self._sends_null else " described"  # each option by itself
        return f"{self.line.account.base_url} {self.kind}-{TEMPLATE}{described}"

    # ---- asking -------------------------------------------------------------------------------------------

    async def _ask(
        self,
        questions: Sequence[Question],
        known: Callable[[Question], bool] | None,
        arrived: Callable[[tuple[Question, Any]], None],
    ) -> None:
        """Send the questions to the server, those on one state together."""
        by_state: dict[Any, list[Question]] = {}
        for question in questions:
            by_state.setdefault(question.request[0], []).append(question)
        waiting = iter(
            state_questions[start : start + QUESTIONS_PER_REQUEST]
            for state_questions in by_state.values()
            for start in range(0, len(state_questions), QUESTIONS_PER_REQUEST)
        )
        failures: list[Exception] = []

        def needless(together: Sequence[Question]) -> bool:
            """Return whether questions need not be sent, or sent again: after a failure nothing is."""
            # Every question passes the gate, which counts it towards the budget.
            return bool(failures) or (known is not None and _all_known(known, together))

        async def work() -> None:
            for together in waiting:
                if failures:
                    return
                skip = partial(needless, together)
                state = text_of(together[0].request[0])
                try:
                    answers = await self._decided(state, [q.request[1] for q in together], skip)
                except Exception as error:
                    failures.append(error)
                    return
                if answers is not None:
                    for question, answer in zip(together, answers, strict=True):
                        arrived((question, answer))

        await asyncio.gather(*(work() for _ in range(min(self.line.concurrency, len(by_state)))))
        if failures:
            raise failures[0]

    async def _decided(
        self, state: str, questions: Sequence[DecisionQuestion], skip: Callable[[], bool] | None = None
    ) -> list[Distribution] | None:
        """Return the answers to questions on one state; long lists of options in groups and a final."""
        while True:
            try:
                return await self._in_groups(state, questions, skip)
            except RequestError as error:
                longest = max(len(question.options) for question in questions)
                if not self._lower_limit(min(longest, self.most_options), error):
                    raise

    def _lower_limit(self, tried: int, error: RequestError) -> bool:
        """Return whether a refusal may be due to the number of options, after lowering the limit."""
        if error.status not in REFUSED_CONTENT or tried <= LIMITS[-1]:
            return False
        said = re.search(r"at most (\d+)", str(error))
        stated = int(said[1]) if said else 0
        lower = stated if 2 <= stated < tried else next(limit for limit in LIMITS if limit < tried)
        if lower < self.most_options:
            self._warn(f"refuses {tried} options, so at most {lower} are asked at once, in groups")
            self.most_options = lower
        return True

    async def _in_groups(
        self, state: str, questions: Sequence[DecisionQuestion], skip: Callable[[], bool] | None
    ) -> list[Distribution] | None:
        groups: list[list[list[int]]] = [
            grouped(len(question.options), self.most_options) if question.kind == "choice" else [[]]
            for question in questions
        ]
        # First round: each question whole, or each of its groups.
        heats = [
            question if len(heats_of_question) == 1 else question.only(indices)
            for question, heats_of_question in zip(questions, groups, strict=True)
            for indices in heats_of_question
        ]
        answers = await self._sent(state, heats, skip)
        if answers is None:
            return None
        remaining = iter(answers)
        by_question = [[next(remaining) for _ in heats_of_question] for heats_of_question in groups]

        # Final: the favourites of each question's groups, all finals together.
        finals: dict[int, DecisionQuestion] = {}
        for i, (heats_of_question, heat_answers) in enumerate(zip(groups, by_question, strict=True)):
            if len(heats_of_question) > 1 and all(answer is not None for answer in heat_answers):
                favourites = [
                    indices[int(np.argmax(answer))]
                    for indices, answer in zip(heats_of_question, heat_answers, strict=True)
                    if answer is not None
                ]
                finals[i] = questions[i].only(favourites)
        final_answers = await self._in_groups(state, list(finals.values()), None) if finals else []
        by_final = dict(zip(finals, final_answers or [], strict=True))

        decided: list[Distribution] = []
        for i, (heats_of_question, heat_answers) in enumerate(zip(groups, by_question, strict=True)):
            answered = [answer for answer in heat_answers if answer is not None]
            if len(heats_of_question) == 1:
                decided.append(heat_answers[0])
            elif (final := by_final.get(i)) is None or len(answered) < len(heats_of_question):
                decided.append(None)
            else:
                decided.append(joined(answered, final))
        return decided

    async def _sent(
        self, state: str, questions: Sequence[DecisionQuestion], skip: Callable[[], bool] | None
    ) -> list[Distribution] | None:
        """Send one request; a question that the reply leaves out is asked once more, alone."""
        # One option needs no model, and servers refuse such a question.
        asked = [i for i, question in enumerate(questions) if len(question.options) > 1]
        answers: list[Distribution] = [np.ones(1)] * len(questions)
        if not asked:
            return answers
        reply = await self.line.send(self._request(state, [questions[i] for i in asked]), skip, self._count)
        if reply is None:
            return None
        for i, answer in zip(asked, reply, strict=True):
            answers[i] = answer
            if answer is None and len(asked) > 1:
                alone = await self.line.send(self._request(state, [questions[i]]), None, self._count)
                answers[i] = alone[0]
        self.refusals += sum(answer is None for answer in answers)
        return answers

    def _request(self, state: str, questions: Sequence[DecisionQuestion]) -> Request:
        body = self.form.body(self.model, state, questions, self._sends_null)
        return Request(self.form.path, body, partial(self._read, list(questions)), unique_keys=True)

    def _read(self, questions: Sequence[DecisionQuestion], reply: Any) -> list[Distribution]:
        try:
            return self.form.read(questions, reply)
        except DoubtfulError as doubt:
            raise RequestError(f"{self.line.account.host} {doubt}.", passing=False) from None

    def _check_origin(self, request: Request, reply: dict[str, Any]) -> None:
        """Keep what a reply says of its origin; a name such as jev-latest stands for another."""
        stated = str(reply.get("model") or "")
        self.told = self.line.clean(f"model={stated}") if stated else ""
        alias = self.model.endswith(("-latest", "-preview"))
        if stated and not alias and not same_model(self.model, stated):
            self._warn(f"answers as another model, {self.line.clean(stated)!r}")

    # ---- loading ------------------------------------------------------------------------------------------

    async def probe(self) -> None:
        """Ask two small questions, to find out whether the server decides and how it wants to be asked.

        Raises:
            HunchError: if it does not answer as its format demands.
        """
        attempts, self.line.attempts = self.line.attempts, 2
        try:
            try:
                await self._decided("The sky is blue.", PROBES)
            except RequestError as error:
                if error.status not in REFUSED_CONTENT:
                    raise
                self._sends_null = False
                try:
                    await self._decided("The sky is blue.", PROBES)
                except HunchError:
                    raise error from None
                self._warn("wants a description of each option, so an option without one describes itself")
        except RequestError as error:
            if error.status == 501:
                raise UsageError(
                    f"{self.line.account.host} serves {self.model!r}, but it is no decision model (HTTP "
                    f"501): load it as openai:{self.model}."
                ) from None
            raise
        finally:
            self.line.attempts = attempts
        self.loading = counters(self) + Usage(calls=len(PROBES) + self.line.retries)
        self.states = self._counted > 0
        self.tokens_read = self.tokens_written = self.line.retries = self.refusals = 0

    def leaks(self) -> list[str]:
        """Ask one question in other company, and return what moved its answer though it should not.

        Some faults cannot be seen in one answer: the question's id, the number of questions or their order
        may reach the model. The same question is asked again, alone, under another id, and in another order.

        Returns:
            What the server does, in words that follow "the server": for each kind of company that moves the
            probability of an option by more than 0.02, and for answers that are random or missing.
        """
        return wait_for(self._leaks())

    async def _leaks(self) -> list[str]:
        state, first, other = "The sky is blue, and the grass is wet.", *PROBES
        together = [first, other]
        reference = (await self._asked_as(state, together, "question"))[0]
        again = (await self._asked_as(state, together, "question"))[0]
        if reference is None or again is None:
            return ["does not answer a plain question"]
        noise = float(np.abs(again - reference).max())
        trials = {
            "the id of a question": (await self._asked_as(state, together, "another"))[0],
            "how many questions are asked": (await self._asked_as(state, [first], "question"))[0],
            "the order of questions": (await self._asked_as(state, [other, first], "question"))[1],
        }
        said = []
        if noise > MOVED:
            said.append(f"answers at random: the same request moves a probability by {noise:.2f}")
        for what, answer in trials.items():
            if answer is None:
                said.append(
                    "leaves all but the first question of a request unanswered, so each is asked alone"
                )
                continue
            moved = float(np.abs(answer - reference).max())
            if moved > max(MOVED, 2 * noise):
                said.append(
                    f"lets {what} move a probability by {moved:.2f}, though it says nothing of the state"
                )
        return said

    async def _asked_as(
        self, state: str, questions: Sequence[DecisionQuestion], prefix: str
    ) -> list[Distribution]:
        """Ask under other ids than usual."""
        body = self.form.body(self.model, state, questions, self._sends_null)
        renamed = _renamed(body, prefix)
        read = self._read_renamed if isinstance(renamed["questions"], dict) else None
        request = Request(
            self.form.path,
            renamed,
            partial(read, prefix, list(questions)) if read else partial(self._read, list(questions)),
            unique_keys=True,
        )
        answers: list[Distribution] = await self.line.send(request, None, self._count)
        return answers

    def _read_renamed(self, prefix: str, questions: Sequence[DecisionQuestion], reply: Any) -> Any:
        answers = reply["answers"]
        usual = {f"q{i}": answers[f"{prefix}{i}"] for i in range(len(questions)) if f"{prefix}{i}" in answers}
        return self._read(questions, {**reply, "answers": usual})


MOVED: Final = 0.02
"""Difference of probabilities above which company is said to move an answer (ours)."""
PROBES: Final = (
    DecisionQuestion("choice", "What colour is the sky?", ("blue", "green")),
    DecisionQuestion("yes_no", "Is the sky blue?"),
)


def _all_known(known: Callable[[Question], bool], together: Sequence[Question]) -> bool:
    """Ask of every question whether its answer is known, as each has to be counted; True if all are."""
    answers = [known(question) for question in together]
    return all(answers)


def _renamed(body: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return a request whose questions have other ids."""
    questions = body["questions"]
    if isinstance(questions, dict):
        renamed: Any = {f"{prefix}{i}": question for i, question in enumerate(questions.values())}
    else:
        renamed = [{**question, "name": f"{prefix}{i}"} for i, question in enumerate(questions)]
    return {**body, "questions": renamed}


class DoubtfulError(Exception):
    """A reply contradicts its format; the message continues the name of the server."""


# ---- /systemone -------------------------------------------------------------------------------------------


def _systemone_body(
    model: str, state: str, questions: Sequence[DecisionQuestion], sends_null: bool
) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for i, question in enumerate(questions):
        entry: dict[str, Any] = {"instructions": question.instructions}
        if question.kind == "yes_no":
            entry["type"] = "noul"
        elif question.kind == "levels":
            entry["type"] = "score"
            entry["criteria"] = list(question.options)
        else:
            entry["type"] = "choice"
            entry["criteria"] = {
                option: description if description or sends_null else option
                for option, description in question.described()
            }
        asked[f"q{i}"] = entry
    return {"model": model, "state": state, "questions": asked}


def _read_systemone(questions: Sequence[DecisionQuestion], reply: Any) -> list[Distribution]:
    answers = reply["answers"]
    if not isinstance(answers, dict):
        raise DoubtfulError("sends answers that are no object")
    return [
        None if answers.get(f"q{i}") is None else _systemone_answer(question, answers[f"q{i}"])
        for i, question in enumerate(questions)
    ]


def _systemone_answer(question: DecisionQuestion, answer: Any) -> FloatArray:
    kind = {"yes_no": "noul", "levels": "score", "choice": "choice"}[question.kind]
    if answer.get("type") != kind:
        raise DoubtfulError(f"answers a question of the type {kind} with the type {answer.get('type')!r}")
    if kind == "noul":
        return _yes_no(answer["noul"])
    stated = answer["probabilities"]
    if not isinstance(stated, dict):
        raise DoubtfulError("sends probabilities that are no object")
    names = question.options if kind == "choice" else tuple(map(str, range(len(question.options))))
    probabilities = _distribution([_probability(value) for value in _in_order(names, stated.items())])
    if kind == "choice":
        _check_favourite(names, probabilities, answer.get("choice"))
    else:
        _check_expectation(probabilities, answer.get("score"))
    return probabilities


# ---- /decisions -------------------------------------------------------------------------------------------


def _decisions_body(
    model: str, state: str, questions: Sequence[DecisionQuestion], sends_null: bool
) -> dict[str, Any]:
    asked: list[dict[str, Any]] = []
    for i, question in enumerate(questions):
        entry: dict[str, Any] = {"name": f"q{i}", "instructions": question.instructions}
        # This format leaves an unknown description out; null is no text.
        described = [
            ((option, {"description": description}) if description else (option, {}))
            for option, description in question.described()
        ]
        if question.kind == "yes_no":
            entry["type"] = "predicate"
        elif question.kind == "levels":
            entry["type"] = "score"
            entry["levels"] = [{"label": option, **more} for option, more in described]
        else:
            entry["type"] = "choice"
            entry["choices"] = [{"value": option, **more} for option, more in described]
        asked.append(entry)
    return {"model": model, "input": state, "questions": asked}


def _read_decisions(questions: Sequence[DecisionQuestion], reply: Any) -> list[Distribution]:
    answers = reply["answers"]
    if not isinstance(answers, list) or len(answers) != len(questions):
        count = len(answers) if isinstance(answers, list) else "no list of"
        raise DoubtfulError(f"sends {count} answers to {len(questions)} questions")
    return [_decisions_answer(i, question, answers[i]) for i, question in enumerate(questions)]


def _decisions_answer(place: int, question: DecisionQuestion, answer: Any) -> Distribution:
    name = answer.get("name")
    if name is not None and not re.fullmatch(rf"[a-z]+{place}", str(name)):
        raise DoubtfulError(f"sends its answers in another order: {str(name)[:40]!r} stands at place {place}")
    if answer.get("type") == "refusal":
        return None
    kind = {"yes_no": "predicate", "levels": "score", "choice": "choice"}[question.kind]
    if answer.get("type") != kind:
        raise DoubtfulError(f"answers a question of the type {kind} with the type {answer.get('type')!r}")
    if kind == "predicate":
        return _yes_no(answer["probability"])
    key = "value" if kind == "choice" else "label"
    stated = [(entry[key], entry["probability"]) for entry in answer["probabilities"]]
    probabilities = _distribution([_probability(value) for value in _in_order(question.options, stated)])
    if kind == "choice":
        _check_favourite(question.options, probabilities, answer.get("choice"))
    return probabilities


SYSTEMONE_FORMAT: Final = Format("/systemone", _systemone_body, _read_systemone)
DECISIONS_FORMAT: Final = Format("/decisions", _decisions_body, _read_decisions)


# ---- what a reply must keep -------------------------------------------------------------------------------


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise DoubtfulError(f"gives {str(value)[:40]} as a probability")
    return float(value)


def _yes_no(value: Any) -> FloatArray:
    yes = _probability(value)
    return np.array([yes, 1 - yes])


def _in_order(names: Sequence[str], stated: Any) -> list[Any]:
    """Return the values of the named options, in their order.

    A server may write an option in another Unicode form. Any other difference is refused, as it is not known
    which option was meant.
    """
    values: dict[str, Any] = {}
    for option, value in stated:
        normal = unicodedata.normalize("NFC", str(option))
        if normal in values:
            raise DoubtfulError(f"gives two probabilities for the option {normal[:60]!r}")
        values[normal] = value
    wanted = [unicodedata.normalize("NFC", name) for name in names]
    if len(set(wanted)) < len(wanted):
        raise DoubtfulError("is asked options that differ in their Unicode form only")
    missing = [name for name in wanted if name not in values]
    added = values.keys() - set(wanted)
    if missing:
        raise DoubtfulError(f"gives no probability for the option {missing[0][:60]!r}")
    if added:
        raise DoubtfulError(f"gives a probability for {min(added)[:60]!r}, which is no option")
    return [values[name] for name in wanted]


def _distribution(values: list[float]) -> FloatArray:
    """Return probabilities that sum to one; the rounding of a reply is removed.

    Raises:
        DoubtfulError: if they add up to something else than rounding explains.
    """
    total = math.fsum(values)
    tolerance = max(SUM_TOLERANCE, len(values) * _rounding(values))
    if not abs(total - 1) <= tolerance or total <= 0:
        raise DoubtfulError(f"gives probabilities that add up to {total:.3g}")
    return np.array(values) / total


def _rounding(values: Sequence[float]) -> float:
    """Return half a unit of the last decimal to which all values are rounded; 0 if they are not."""
    for decimals in range(2, 7):
        if all(abs(value - round(value, decimals)) < 1e-7 for value in values):
            return 0.5 * 10.0**-decimals
    return 0.0


def _check_favourite(options: Sequence[str], probabilities: FloatArray, choice: Any) -> None:
    """Refuse a reply whose choice is not its most probable option: one of the two is wrong."""
    if choice is None:
        return
    normal = unicodedata.normalize("NFC", str(choice))
    chosen = next((i for i, o in enumerate(options) if unicodedata.normalize("NFC", o) == normal), None)
    if chosen is None:
        raise DoubtfulError(f"chooses {normal[:60]!r}, which is no option")
    if probabilities[chosen] < probabilities.max() - 2 * _rounding(probabilities.tolist()) - 1e-6:
        likelier = options[int(probabilities.argmax())]
        raise DoubtfulError(f"chooses {normal[:60]!r}, but gives {likelier[:60]!r} a higher probability")


def _check_expectation(probabilities: FloatArray, score: Any) -> None:
    """Refuse a reply whose score is not the mean level: score or probabilities are wrong."""
    if score is None:
        return
    expected = float(np.arange(len(probabilities)) @ probabilities)
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise DoubtfulError(f"gives {str(score)[:40]} as a score")
    levels = len(probabilities)
    tolerance = SCORE_TOLERANCE + _rounding(probabilities.tolist()) * (1 + levels * (levels - 1) / 2)
    if abs(score - expected) > tolerance:
        raise DoubtfulError(
            f"gives the score {score:.3g}, but its probabilities have the mean {expected:.3g}"
        )


SCORE_TOLERANCE: Final = 0.05
"""How far a score may be from the mean of its probabilities, besides rounding (ours)."""
