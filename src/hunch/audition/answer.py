"""The result of an audition: scores, verdicts, and tables of both as text, HTML and plain values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from math import ceil, isnan, nan
from typing import Any, Final, NamedTuple

from hunch.audition.frontier import Frontier, Interval, Verdict, over, verdict
from hunch.audition.playing import LENGTH, STEPS
from hunch.core import EvidenceLevel
from hunch.rl.calibration import Bin

CALIBRATION_ERROR: Final = "calibration error"
"""Name of the column for the expected calibration error of a model that states probabilities."""
BY_CHANCE: Final = "calibration error by chance"
"""Name of the column for the error that 95 in 100 samples of a calibrated model stay below."""
REPEATS: Final = "repeats"
"""Name in the usage of the cached answers that the model gave to the same questions of a role."""
SHARED: Final = "shared"
"""Name in the usage of the cached answers that the model gave earlier in the same audition."""


@dataclass(frozen=True)
class Heard:
    """The scores of one model on the questions of one role in one environment.

    Attributes:
        role: The role.
        env: Id of the environment.
        model: Spec of the model; "words" for a rule that answers by word overlap or look-up.
        evidence: Evidence level of the model.
        ability: Mean score, from 0 to 1; nan if the model was not asked.
        interval: 95 % interval of the ability; a wider one where several rounds were asked for.
        questions: Number of questions.
        columns: Further measures, by name.
        usage: Usage of the model for the answers, see :class:`hunch.lm.Usage`; and of ``cache_hits`` the
            ``repeats`` of the same questions, and those ``shared`` with other questions of the audition.
        why: Why the model was not asked; empty if it was.
        calibration: What the model's probabilities are worth: their mean in each tenth, and how often what
            they stand for came true; empty if it states none.
        way: The way in which the model was asked; empty if the role did not choose one.
        other_ways: The other ways in which the role can ask this model.
        unread: Share of the questions to which no answer could be read.
        asked: False if the model was not asked for a reason that lies in the audition, such as its budget.
        wanted: Number of questions that were to be asked; there may be fewer, such as where hardly an episode
            meets the objective. 0 if that is not known.
        exhausted: True if there are no more questions than these, or hardly any with answers of their own.
    """

    role: str
    env: str
    model: str
    evidence: EvidenceLevel | None = None
    ability: float = nan
    interval: Interval = (nan, nan)
    questions: int = 0
    columns: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    calibration: tuple[Bin, ...] = ()
    way: str = ""
    other_ways: tuple[str, ...] = ()
    unread: float = 0.0
    asked: bool = True
    wanted: int = 0
    exhausted: bool = False

    @property
    def has_score(self) -> bool:
        """True if there is a score."""
        return not isnan(self.ability)

    @property
    def asked_for(self) -> float:
        """The number of questions as ``--questions`` counts them here.

        A policy that plays has a score for each episode; its questions are those that lead to so many.
        """
        return max(self.wanted, self.questions * self.columns.get(LENGTH, STEPS) / STEPS)


@dataclass(frozen=True)
class Line:
    """The verdict on one model in one role and environment, for one method.

    Attributes:
        heard: The model's scores.
        uninformed: Scores of the uninformed stand-in, or None.
        words: Scores of the lexical stand-in, or None.
        frontier: Frontier with which the model is compared; None if there is none for this environment.
        gain: Interval of the predicted gain over the uninformed control.
        over_words: Interval of the predicted gain over words; None without a lexical stand-in.
        verdict: Whether the model pays.
        why: Without a frontier for this environment, why the verdict is at most "may pay"; else empty.
    """

    heard: Heard
    uninformed: Heard | None
    words: Heard | None
    frontier: Frontier | None = None
    gain: Interval | None = None
    over_words: Interval | None = None
    verdict: Verdict = "not measured"
    why: str = ""

    @property
    def method(self) -> str:
        """The frontier's method, with the frontier's environment if abilities are measured in another one."""
        f = self.frontier
        if f is None or f.env == f.bed:
            return f.method if f else ""
        return f"{f.method} in {f.env.removeprefix('hunch/')}"


@dataclass(frozen=True)
class Audition:
    """The result of an audition.

    Attributes:
        lines: Verdicts, one per model, role, environment and method.
        worth: Smallest gain in success rate for which a model is recommended.
        seed: Seed of the questions.
        usage: Usage of each model, by its spec.
        stopped: Why the audition ended early; empty if it did not.
        blank: True if the models were asked with the blank prompt.
    """

    lines: tuple[Line, ...]
    worth: float
    seed: int
    usage: Mapping[str, Mapping[str, float]]
    stopped: str = ""
    blank: bool = False

    def best(self, model: str) -> Line | None:
        """Return a model's line with the largest lower bound of the gain; None if the model never pays."""
        paying = [line for line in self.lines if line.heard.model == model and line.verdict == "pays"]
        return max(paying, key=lambda line: line.gain[0] if line.gain else 0.0, default=None)

    @property
    def models(self) -> list[str]:
        """The models that were tested, in order."""
        return list(dict.fromkeys(line.heard.model for line in self.lines))

    def _repr_html_(self) -> str:
        return table(self)

    def __str__(self) -> str:
        return text(self)


# ---- as text and as values --------------------------------------------------------------------------------

HEADS = (
    *("role", "verdict", "environment", "model", "method", "gain"),
    *("ability", "uninformed", "words", "needs", "why"),
)
COMMAND = "hunch {verb} {0.method} --env {0.env} {0.place} {model}"


def cells(line: Line, worth: float) -> tuple[str, ...]:
    """Return the cells of a line of the table, in the order of ``HEADS``."""
    heard, frontier = line.heard, line.frontier
    needed = frontier.needed(worth) if frontier else None
    return (
        heard.role,
        line.verdict,
        heard.env.removeprefix("hunch/"),
        heard.model,
        line.method,
        _interval(line.gain),
        _ability(heard),
        _ability(line.uninformed),
        _ability(line.words),
        "" if frontier is None else "never" if needed is None else f"{needed:.2f}",
        heard.why or line.why,
    )


def _ability(heard: Heard | None) -> str:
    if heard is None or not heard.has_score:
        return ""
    return f"{heard.ability:.2f} {_interval(heard.interval)}"


def _interval(interval: Interval | None) -> str:
    return f"[{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""


CONTROL: Final = (
    "asked with the blank prompt, without objective, task and manual. This is a control: where the ability "
    "is no higher without --blank, the model does not use what the task says."
)
"""What the scores of an audition with the blank prompt are for."""


def advice(audition: Audition, model: str) -> str:
    """Return the best role of a model in a sentence, with the command that runs it.

    After the blank prompt it says instead what the scores are for, as no method is to be run so.
    """
    if audition.blank:
        return f"{model}: {CONTROL}"
    best = audition.best(model)
    if best is None or best.frontier is None or best.gain is None:
        return " ".join([f"{model}: no role in which it surely pays.", *_undecided(audition, model)])
    command = COMMAND.format(best.frontier, verb="run", model=shlex.quote(model))
    return (
        f"{model}: as {best.heard.role} it pays: {best.frontier.method} gains {_interval(best.gain)} in "
        f"{best.frontier.measure}. Run it: {command}"
    )


def _undecided(audition: Audition, model: str) -> list[str]:
    """Return what to do next about the roles in which a model may pay, and what to try if there are none."""
    lines = [line for line in audition.lines if line.heard.model == model]
    measured = [line for line in lines if line.frontier]
    may = [line for line in measured if line.verdict == "may pay"]
    unknown = {line.heard.role for line in lines if line.verdict == "may pay" and not line.frontier}
    by_questions: list[str] = []
    close: list[Line] = []  # more questions would decide, but so many that a loop is the shorter way
    by_loop: list[Line] = []
    for role in sorted({line.heard.role for line in may}):
        questions = deciding_role([line for line in lines if line.heard.role == role], audition.worth)
        lines_of_role = [line for line in may if line.heard.role == role]
        if questions is None:
            by_loop += lines_of_role
        elif questions > MOST_ASKED:
            close += lines_of_role
        else:
            by_questions.append(role)
    sentences = []
    if by_questions:
        roles = ", ".join(by_questions)
        sentences += [f"It may pay as {roles}: ask until it is known, with --until decided."]
    if close:
        what = _close(close)
        sentences += [f"It may pay as {what}, and only a loop can tell, as in {_comparison(close, model)}"]
    if by_loop:
        roles = ", ".join(_roles(by_loop))
        sentences += [f"It may pay as {roles}, and only a loop can tell, as in {_comparison(by_loop, model)}"]
    if by_own_loop := unknown - {line.heard.role for line in may}:
        roles = ", ".join(sorted(by_own_loop))
        sentences += [f"It may pay as {roles}: no frontier was made here, so only hunch compare can tell."]
    if measured and not may and not unknown:
        sentences += ["Another model, another --way, or a method without a model is the next thing to try."]
    return sentences


def _roles(lines: Sequence[Line]) -> list[str]:
    """Return the roles of lines, each once."""
    return list(dict.fromkeys(line.heard.role for line in lines))


def _close(lines: Sequence[Line]) -> str:
    """Return the roles of lines which more questions than are asked by default would decide, and why."""
    at_chance = [line for line in lines if _near_chance(line)]
    near = _roles(at_chance)
    roles = _roles(lines)
    if near == roles:
        why = "where its ability is near chance"
    elif near:
        why = f"where its ability is near chance (as {', '.join(near)}) or too close to call"
    else:
        why = "where its ability is too close to call"
    return f"{', '.join(roles)}, {why}: {MOST_ASKED:,} questions would not decide it"


def _near_chance(line: Line) -> bool:
    """Return whether the ability of the uninformed stand-in is within the interval of the model's."""
    chance, (low, high) = line.uninformed, line.heard.interval
    return chance is not None and low <= chance.ability <= high


def _comparison(lines: Sequence[Line], model: str) -> str:
    """Return the command that compares a model in a loop, where the gain may be the largest."""
    most = max(lines, key=lambda line: line.gain[1] if line.gain else 0.0)
    return COMMAND.format(most.frontier, verb="compare", model=shlex.quote(model))


# ---- a line per role --------------------------------------------------------------------------------------

ORDER: Final[tuple[Verdict, ...]] = ("pays", "may pay", "does not pay", "could not be asked", "not measured")
WIDTH: Final = 80
"""Maximum characters of a line."""
MOST: Final = 100_000
"""Questions per environment above which a verdict counts as one that no number of questions decides."""
MOST_ASKED: Final = 1_600
"""Maximum questions per role of ``--until decided``, unless ``--most`` is given (ours). Where a verdict takes
more, a loop is recommended in their place."""
BRIEF: Final = ("role", "verdict", "way", "ability", "cost", "next")


def deciding(line: Line, worth: float) -> int | None:
    """Return about how many questions in this environment decide a verdict "may pay".

    The intervals of the abilities are as wide as one over the root of the number of questions, or narrower
    where all answers are right or all wrong, see :func:`_narrowed`. None if the verdict is another one, or no
    number of questions decides it: where no frontier was made, where the frontier itself is too uncertain at
    this ability, or where there are no more questions. Then only a loop can tell.
    """
    heard, frontier = line.heard, line.frontier
    if line.verdict != "may pay" or frontier is None or not heard.questions or heard.exhausted:
        return None
    n = 2 * heard.questions
    while n <= MOST:
        times = n / heard.questions
        gain = frontier.gain(_narrowed(heard, times))
        words = line.words if line.words and line.words.has_score else None
        above = over(gain, frontier.gain(_narrowed(words, times))) if words else None
        if verdict(gain, above, worth) != "may pay":
            return ceil(times * heard.asked_for)
        n *= 2
    return None


def _narrowed(heard: Heard, times: float) -> Interval:
    """Return the interval of an ability as it would be with so many times the questions.

    Each side shrinks by the root of that number. Of answers that are all right, or all wrong, the interval is
    Wilson's, n / (n + z^2) to 1 or 0 to z^2 / (n + z^2), and z^2 / n follows from its width.
    """
    low, high = heard.interval
    if heard.ability == 1:
        return times * low / (times * low + 1 - low), 1.0
    if heard.ability == 0:
        return 0.0, high / (high + times * (1 - high))
    factor = times**-0.5
    return heard.ability - factor * (heard.ability - low), heard.ability + factor * (high - heard.ability)


def deciding_role(lines: Sequence[Line], worth: float) -> int | None:
    """Return about how many ``--questions`` decide "may pay" in a role, where the fewest are needed.

    Args:
        lines: The lines of one model in one role: its questions are spread over these environments.
        worth: Smallest gain in success rate for which a model is recommended.
    """
    places = len({line.heard.env for line in lines})
    most = max((line.heard.asked_for for line in lines), default=0)
    needed = [(line.heard.asked_for, deciding(line, worth)) for line in lines]
    # Where a number of questions is not divisible by that of the environments, some have fewer.
    return min((ceil(n * places * most / asked) for asked, n in needed if n), default=None)


def brief(audition: Audition) -> list[str]:
    """Return a line for each model and role: verdict, way of asking, cost and what to do next.

    Of several environments, the one with the best verdict counts.
    """
    lines: list[str] = []
    for model in audition.models:
        rows = [
            _brief(audition, model, role)
            for role in dict.fromkeys(line.heard.role for line in audition.lines)
        ]
        lines += ["", model] if len(audition.models) > 1 else []
        lines += [row if len(row) <= WIDTH else f"{row[: WIDTH - 1]}…" for row in _columns(BRIEF, rows)]
    return lines[1:] if lines[:1] == [""] else lines


def _brief(audition: Audition, model: str, role: str) -> tuple[str, ...]:
    """Return the cells of the line of a model in a role."""
    lines_of_role = [line for line in audition.lines if (line.heard.model, line.heard.role) == (model, role)]
    line = _first_of(lines_of_role, audition.worth)
    asked = {line.heard.env: line.heard for line in lines_of_role}
    seconds = sum(heard.usage.get("seconds", 0.0) for heard in asked.values())
    cost = sum(heard.usage.get("cost", 0.0) for heard in asked.values())
    spent = f"{cost:.4f}" if cost else f"{seconds:,.0f} s"
    ability = f"{line.heard.ability:.2f}" if line.heard.has_score else ""
    following = "" if audition.blank else _next(line, deciding_role(lines_of_role, audition.worth))
    return role, line.verdict, line.heard.way, ability, spent, following


def _first_of(lines_of_role: Sequence[Line], worth: float) -> Line:
    """Return the line for a role: the best verdict, of these the one that the fewest questions decide."""

    def rank(line: Line) -> tuple[float, ...]:
        return (
            ORDER.index(line.verdict),
            deciding(line, worth) or MOST + 1,
            -(line.gain or (0.0, 0.0))[0],
        )

    return min(lines_of_role, key=rank)


def _next(line: Line, questions: int | None) -> str:
    """Return in a few words what to do next.

    Args:
        line: The line that stands for the role.
        questions: About how many questions decide a verdict "may pay"; None if no number does.
    """
    if line.verdict == "pays" and line.frontier:
        return f"hunch run {line.frontier.method}"
    if line.verdict == "may pay":
        return f"{questions:,} questions" if questions and questions <= MOST_ASKED else "hunch compare"
    if line.verdict == "could not be asked" and line.heard.unread:
        return "another --way" if line.heard.other_ways else "another model"
    return ""


def reasons(audition: Audition) -> list[str]:
    """Return in sentences why models were not asked in roles, below a table without a column for it."""
    roles: dict[tuple[str, str], list[str]] = {}
    for model in audition.models:
        of_model = [line for line in audition.lines if line.heard.model == model]
        for role in dict.fromkeys(line.heard.role for line in of_model):
            lines_of_role = [line for line in of_model if line.heard.role == role]
            heard = _first_of(lines_of_role, audition.worth).heard
            out_of_budget = audition.stopped and not heard.asked
            if heard.why and not heard.has_score and not heard.unread and not out_of_budget:
                roles.setdefault((model, heard.why), []).append(role)
    return [f"{model} was not asked as {', '.join(own)}: {why}." for (model, why), own in roles.items()]


COSTS = ("model", "role", "questions", "requests", "repeats", "cached", "tokens", "cost", "seconds")


class Cost(NamedTuple):
    """What a role took: questions, requests, repeats, cached answers and tokens; price and seconds.

    Repeats are requests that the model had answered earlier in the same audition. Cached answers were there
    before it.
    """

    questions: float = 0.0
    requests: float = 0.0
    repeats: float = 0.0
    cached: float = 0.0
    tokens: float = 0.0
    price: float = 0.0
    seconds: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        return Cost(*(one + more for one, more in zip(self, other, strict=True)))


def costs(audition: Audition) -> list[tuple[str, ...]]:
    """Return the cost of each model in each role in which it was asked; of each model the highest first."""
    cost_of: dict[str, dict[str, Cost]] = {}
    asked = {(x.heard.model, x.heard.role, x.heard.env): x.heard for x in audition.lines if x.heard.usage}
    for heard in asked.values():
        of_roles = cost_of.setdefault(heard.model, {})
        of_roles[heard.role] = of_roles.get(heard.role, Cost()).plus(_cost(heard))
    rows = []
    for model, of_roles in cost_of.items():
        highest = sorted(of_roles.items(), key=lambda own: (-own[1].price, -own[1].tokens, -own[1].seconds))
        for role, cost in highest:
            counts = (f"{count:,.0f}" for count in cost[:5])
            rows.append((model, role, *counts, f"{cost.price:,.4f}", f"{cost.seconds:,.1f}"))
    return rows


def _cost(heard: Heard) -> Cost:
    def used(name: str) -> float:
        return heard.usage.get(name, 0.0)

    tokens = used("prompt_tokens") + used("completion_tokens")
    repeats = used(REPEATS) + used(SHARED)
    return Cost(
        questions=heard.questions,
        requests=used("calls"),
        repeats=repeats,
        cached=used("cache_hits") - repeats,
        tokens=tokens,
        price=used("cost"),
        seconds=used("seconds"),
    )


CALIBRATION = ("model", "role", "environment", "calibration error", "by chance", "stated: came true (of)")


def calibrations(audition: Audition) -> list[tuple[str, ...]]:
    """Return the calibration of each model in each role in which it stated probabilities."""
    rows: list[tuple[str, ...]] = []
    for heard in stating(audition):
        curve = "  ".join(
            f"{tenth.predicted:.2f}: {tenth.observed:.2f} ({tenth.n})" for tenth in heard.calibration
        )
        error = heard.columns[CALIBRATION_ERROR]
        chance = heard.columns[BY_CHANCE]
        env = heard.env.removeprefix("hunch/")
        rows.append((heard.model, heard.role, env, f"{error:.3f}", f"{chance:.3f}", curve))
    return rows


def stating(audition: Audition) -> list[Heard]:
    """Return the scores with stated probabilities, each once."""
    heard = {
        (x.heard.model, x.heard.role, x.heard.env): x.heard for x in audition.lines if x.heard.calibration
    }
    return list(heard.values())


def notes(audition: Audition) -> list[str]:
    """Return the sentences below the table, which explain it."""
    ended = (
        [f"Ended early: {audition.stopped} The same command with a larger budget goes on."]
        if audition.stopped
        else []
    )
    return [*ended, *_unheard(audition), *(advice(audition, model) for model in audition.models)]


def _unheard(audition: Audition) -> list[str]:
    """Return a sentence on each model whose answers in a role could not be read, and what to try."""
    roles: dict[tuple[str, str], dict[str, None]] = {}
    scored = {(line.heard.model, line.heard.role) for line in audition.lines if line.heard.has_score}
    for line in audition.lines:
        heard = line.heard
        if heard.unread and not heard.has_score:
            another = heard.other_ways[0] if heard.other_ways else ""
            elsewhere = (heard.model, heard.role) in scored
            where = f" in {heard.env.removeprefix('hunch/')}" if elsewhere else ""
            roles.setdefault((heard.model, another), {})[f"{heard.role}{where}"] = None
    return [
        f"{model} could not be asked as {', '.join(unasked)}, which says nothing of its ability: the way of "
        "asking failed. "
        + (
            f"Try another one, as in --way {another}."
            if another
            else "It can be asked in no other one there: another model is the next thing to try."
        )
        for (model, another), unasked in roles.items()
    ]


def text(audition: Audition) -> str:
    """Return the tables as text."""
    verdicts = [cells(line, audition.worth) for line in audition.lines]
    lines = [*_columns(HEADS, verdicts), "", *_columns(COSTS, costs(audition))]
    stated = calibrations(audition)
    if stated:
        lines += ["", *_columns(CALIBRATION, stated)]
    return "\n".join([*lines, "", *notes(audition)])


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]


def plain(audition: Audition) -> dict[str, Any]:
    """Return the whole result as JSON values; nan becomes None."""
    said = {"best": {model: advice(audition, model) for model in audition.models}}
    return dict(_finite(asdict(audition) | said))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def table(audition: Audition) -> str:
    """Return the tables and their notes as HTML."""
    said = "".join(f"<p>{escape(note)}</p>" for note in notes(audition))
    verdicts = [cells(line, audition.worth) for line in audition.lines]
    stated = calibrations(audition)
    calibrated = _html(CALIBRATION, stated) if stated else ""
    return f"{said}{_html(HEADS, verdicts)}{_html(COSTS, costs(audition))}{calibrated}"


def _html(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
