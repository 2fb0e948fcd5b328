"""The audition: asks models the questions of each role, and compares the scores with the frontiers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hunch.audition import frontier as frontiers
from hunch.audition import playing
from hunch.audition.answer import (
    BY_CHANCE,
    CALIBRATION_ERROR,
    REPEATS,
    SHARED,
    Audition,
    Heard,
    Line,
    deciding,
)
from hunch.audition.frontier import Frontier, over, verdict
from hunch.audition.placing import check_env, placed_in, read_data
from hunch.audition.playing import PLAYING
from hunch.audition.question import ERROR, USUAL, Bed, Manner, NoQuestionError, Role, Scores, too_long
from hunch.audition.roles import ROLES, role_named
from hunch.core import UsageError
from hunch.lm.answers.cache import Cached, Origins
from hunch.lm.base import LanguageModel
from hunch.lm.budget import Budget, BudgetError, Ledger
from hunch.lm.hearing import USELESS
from hunch.lm.registry import load
from hunch.lm.ways import WAYS, Way
from hunch.ranges import NonNegativeInt, PositiveInt, Share, check_value
from hunch.rl.calibration import Bin, calibration_error, error_by_chance, reliability
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import name_of
from hunch.runs.models import Join, check_specs, load_models

UNINFORMED = "uniform"
OUT_OF_BUDGET = "the budget ended"


def audition(
    lm: str | LanguageModel | Sequence[str | LanguageModel],
    roles: Sequence[str] = (),
    env: str | TextEnvironment | None = None,
    *,
    env_options: Mapping[str, Any] | None = None,
    data: Any = None,
    questions: int = 100,
    seed: int = 0,
    worth: float = 0.05,
    way: Way | Literal["auto"] = "auto",
    blank: bool = False,
    most: int | None = None,
    budget: Budget | None = None,
    join: Join | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Audition:
    """Ask models the questions of each role, and return in which roles they are worth their cost.

        hunch.audition("minilm", roles=["prior", "planner"])

    Args:
        lm: A model or its spec, or several.
        roles: Names of roles; one that is named twice is asked once. Default: all.
        env: Id of an environment, or an environment, for the questions. Default: those of each role.
        env_options: Options of the environment, if it is given by its id.
        data: Recorded episodes of ``env``, or their folder; actions of the successful ones count as right.
        questions: Questions per role, spread over its environments.
        seed: Seed of the questions.
        worth: Smallest gain in success rate for which a model is recommended.
        way: The way of asking, in the roles that have it; auto takes each role's default for the model.
        blank: Ask with the blank prompt, which leaves out objective, task and manual: the control that shows
            whether a model uses them. The stand-ins are asked as usual.
        most: Ask the roles that may pay twice as many questions until that is decided, at most so many
            questions of each. The intervals are wider, so that all rounds together err as seldom as one.
            Default: ask once.
        budget: Limits on the use of the models, over all roles together.
        join: Combines a model with its answers; see :func:`hunch.runs.models.load_models`.
        progress: Called with a description of the next questions, and how long the rest takes.

    Returns:
        The table of abilities and verdicts.

    Raises:
        UsageError: if there is no such model, role or environment, if a number is out of range, or if the
            environment offers no way to judge answers.
        HunchError: if a model fails; earlier answers are kept, and the same call continues after them.
    """
    check_value("questions", questions, PositiveInt)
    check_value("seed", seed, NonNegativeInt)
    check_value("worth", worth, Share)
    check_value("most", most, PositiveInt | None)
    if most is not None and most < questions:
        raise UsageError(f"At most {most} questions cannot be asked {questions} at first: lower questions.")
    models_given = [lm] if isinstance(lm, str) or hasattr(lm, "verbs") else lm
    one_by_one = isinstance(models_given, (list, tuple))
    if not one_by_one or not all(isinstance(one, str) or hasattr(one, "verbs") for one in models_given):
        raise UsageError(f"lm is a model, its spec such as 'minilm', or a list of these, not {lm!r}.")
    if not models_given:
        raise UsageError("lm names no model: give one, or its spec such as 'minilm'.")
    if isinstance(roles, str):
        raise UsageError(f"roles is a list: write roles=[{roles!r}].")
    if way != "auto" and way not in WAYS:
        raise UsageError(f"A way of asking is one of auto, {', '.join(WAYS)}, not {way!r}.")
    manner = Manner(way, blank)
    check_env(env, env_options or {}, data)
    for name in roles:
        check_value("roles", name, str)
    chosen = [role_named(name) for name in dict.fromkeys(roles)] if roles else list(ROLES)
    models = _models(lm, join)
    recorded = read_data(data)
    placed = [placed_in(role, env, env_options or {}, recorded) for role in chosen]
    if not any(beds for _, beds, _ in placed):
        raise UsageError(f"Nothing can be judged: {'; '.join(f'{r.name}: {why}' for r, _, why in placed)}.")
    ledger = Ledger(models, budget)
    if budget is not None:
        budget.check_prices(list(models.values()))
    place = name_of_place(env)
    # Each round may end with a verdict, so all of them together err as seldom as one (Bonferroni).
    misses = ERROR / (1 if most is None else (most // questions).bit_length())
    due = list(placed)
    lines: dict[str, list[Line]] = {role.name: [] for role, _, _ in placed}
    stopped = ""
    with ledger.enforced():
        while due:
            drawn: dict[tuple[Any, str], Any] = {}
            todo = list(_places(due, questions))
            pace = Pace(sum(max(1, n) for _, _, n, _ in todo) * len(models))
            earlier = {role.name: lines[role.name] for role, _, _ in due}
            used = {_asked_of(line.heard): line.heard.usage for own in earlier.values() for line in own}
            for role, _, _ in due:
                lines[role.name] = []
            for role, bed, n, lacking in todo:
                asked: Any = None
                stand_ins: tuple[Heard | None, Heard | None] = (None, None)
                if bed and not stopped:
                    key = role.draw, bed.env
                    try:
                        asked = drawn[key] = drawn[key] if key in drawn else role.draw(bed, n, seed)
                    except NoQuestionError as error:
                        lacking = str(error).rstrip(".")
                    else:
                        stand_ins = stand_ins_of(role, bed, asked, seed, misses)
                for spec, model in models.items():
                    what = f"{role.name} in {bed.env}: {spec}" if bed else f"{role.name}: nothing to ask"
                    progress(f"{what}{pace.left()}")
                    why = lacking or (OUT_OF_BUDGET if stopped else "")
                    heard = Heard(role.name, bed.env if bed else place, spec, why=why, asked=not why)
                    try:
                        if bed is not None and not why:
                            heard = hear(role, bed, spec, model, asked, seed, manner, misses)
                            heard = _counted(heard, role, bed, n)
                            # A role took what all of its rounds took.
                            heard = replace(heard, usage=_sum(heard.usage, used.get(_asked_of(heard), {})))
                    except BudgetError as error:
                        stopped, heard = str(error), replace(heard, why=OUT_OF_BUDGET, asked=False)
                    pace.done += max(1, n)
                    options = bed.options if bed else {}
                    lines[role.name] += _judged(role, Line(heard, *stand_ins), worth, options)
            for name, own in earlier.items():
                # A verdict on fewer questions is better than none.
                if stopped and own and any(line.heard.why == OUT_OF_BUDGET for line in lines[name]):
                    lines[name] = own
            questions *= 2
            more = most is not None and questions <= most and not stopped
            due = [place for place in due if more and _undecided(lines[place[0].name], worth)]
    judged = [line for role, _, _ in placed for line in lines[role.name]]
    return Audition(tuple(judged), worth, seed, ledger.by_name(), stopped, blank)


class Pace:
    """How far an audition is, and how long the rest takes at this pace.

    Attributes:
        done: Number of questions that were asked.

    Args:
        total: Number of questions.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.start = time.monotonic()

    def left(self) -> str:
        """Return in words how much is done, and the time that is left."""
        if not self.done:
            return f" (0 of {self.total:,} questions)"
        seconds = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        rest = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
        return f" ({self.done:,} of {self.total:,} questions, about {rest} left)"


def _undecided(lines: Sequence[Line], worth: float) -> bool:
    """Return whether more questions can decide the verdict on some model in a role."""
    return any(line.verdict == "may pay" and deciding(line, worth) is not None for line in lines)


def name_of_place(env: str | TextEnvironment | None) -> str:
    """Return the name of an environment."""
    return env if isinstance(env, str) else "" if env is None else name_of(env)


@dataclass(frozen=True)
class Answered:
    """What came of putting the questions of one environment to one model.

    Attributes:
        scores: The scores of the answers; None if the model could not be asked.
        why: Why it could not be asked; empty if it could.
        way: The way in which it was asked; empty if the role did not choose one.
        unread: Share of the questions to which no answer could be read.
        columns: Further measures by name, also where there are no scores.
        usage: Usage of the model for the answers.
        repeats: Answers of the cache that were given to these same questions.
        shared: Answers of the cache that the model gave earlier in the same audition.
    """

    scores: Scores | None
    why: str = ""
    way: str = ""
    unread: float = 0.0
    columns: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    repeats: int = 0
    shared: int = 0


def put(
    role: Role, bed: Bed, model: LanguageModel, drawn: Any, seed: int, manner: Manner = USUAL
) -> Answered:
    """Put the questions that were drawn in one environment to a model with a meter.

    A model that cannot be asked has no scores, and neither has one whose answers were empty, or were in more
    than nine of ten cases not what the role can read: that is no ability of 0.

    Args:
        role: The role.
        bed: The environment.
        model: The model.
        drawn: The questions, which were drawn by ``role.draw``.
        seed: Seed of random choices.
        manner: How the questions are asked.

    Raises:
        HunchError: if the model fails.
    """
    lacks = "" if set(role.verbs) & model.verbs else " or ".join(role.verbs)
    if not lacks and bed.needs and bed.needs.isdisjoint(model.verbs):
        lacks = " or ".join(sorted(bed.needs))
    if lacks and model.name != UNINFORMED:
        return Answered(None, f"it cannot {lacks}")
    if why := unable(role, model, manner):
        return Answered(None, why)
    meter: Any = model
    before, answers = copy(meter.usage), meter.heard.answers  # counted up in place
    meter.first_answers.ways.clear()
    origins = _next_part(meter)
    repeats, shared = origins.repeats, origins.shared
    try:
        scores = role.ask(model, drawn, seed, manner)
    except UsageError as error:  # such as a prompt that is longer than its context
        return Answered(None, str(error).rstrip("."))
    usage = (meter.usage - before).as_dict()
    repeats, shared = origins.repeats - repeats, origins.shared - shared
    way = next(iter(meter.first_answers.ways.values()), "")
    if meter.usage.shortened > before.shortened:
        return Answered(None, too_long(model), way, usage=usage, repeats=repeats, shared=shared)
    empty = answers < meter.heard.answers <= answers + meter.heard.mute
    unread = 1.0 if empty else scores.unread
    if meter.speaks and unread > USELESS:
        why = "all answers were empty" if empty else f"{unread:.0%} of the answers could not be read"
        return Answered(None, why, way, unread, scores.columns, usage, repeats, shared)
    return Answered(scores, "", way, unread, scores.columns, usage, repeats, shared)


def _next_part(model: Any) -> Origins:
    """Begin to count which answers of the cache are repeats; a model without a cache has none."""
    origins: Origins = getattr(model, "origins", None) or Origins()
    origins.part += 1
    if isinstance(model, Cached):
        model.origins = origins
    return origins


def hear(
    role: Role,
    bed: Bed,
    spec: str,
    model: LanguageModel,
    drawn: Any,
    seed: int,
    manner: Manner = USUAL,
    error: float = ERROR,
) -> Heard:
    """Put questions to a model as :func:`put` does, and return its scores under the name ``spec``.

    Share ``error`` of the intervals miss the ability.
    """
    answered = put(role, bed, model, drawn, seed, manner)
    scores = {"columns": answered.columns} if answered.scores is None else _values_of(answered.scores, error)
    used = answered.way or "text"  # a role that does not choose a way has answers written
    usage = dict(answered.usage)
    if usage:
        usage |= {REPEATS: answered.repeats, SHARED: answered.shared}
    return Heard(
        role.name,
        bed.env,
        spec,
        model.evidence,
        **scores,
        usage=usage,
        why=answered.why,
        way=answered.way,
        other_ways=tuple(way for way in role.ways_of(model) if way != used),
        unread=answered.unread,
        exhausted=answered.scores is not None and answered.scores.repetitive,
    )


def _asked_of(heard: Heard) -> tuple[str, str, str]:
    """Return who was asked what: role, environment and model."""
    return heard.role, heard.env, heard.model


def _sum(usage: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of two usages."""
    names = dict.fromkeys((*usage, *more))
    return {name: usage.get(name, 0) + more.get(name, 0) for name in names}


def _counted(heard: Heard, role: Role, bed: Bed, wanted: int) -> Heard:
    """Return scores with the number of questions that were wanted, and whether there are no others.

    Stored questions, and those of recorded episodes, come to an end. Games that are played do not.
    """
    ends = bed.stored or (bool(bed.data) and role is not PLAYING)
    none_left = ends and heard.questions < wanted
    return replace(heard, wanted=wanted, exhausted=heard.exhausted or none_left)


def unable(role: Role, model: LanguageModel, manner: Manner) -> str:
    """Return why a role cannot put its questions to a model in this manner; empty if it can."""
    if manner.blank and role is PLAYING:
        return playing.WITH_ITS_TASK
    if manner.blank and not role.blank:
        return "its questions have no objective that could be left out"
    if manner.way == "auto" or manner.way in role.ways_of(model):
        return ""
    if manner.way not in role.ways:
        return f"the role is asked by {', '.join(role.ways)}"
    return f"it cannot be asked by {manner.way}"


def _values_of(scores: Scores, error: float) -> dict[str, Any]:
    columns = dict(scores.columns)
    curve: tuple[Bin, ...] = ()
    if scores.stated is not None and scores.came is not None and len(scores.stated):
        curve = tuple(reliability(scores.stated, scores.came))
        columns[CALIBRATION_ERROR] = calibration_error(curve)
        columns[BY_CHANCE] = error_by_chance(scores.stated)
    return {
        "ability": scores.ability,
        "interval": scores.within(error),
        "columns": columns,
        "questions": len(scores.values) * scores.each,
        "calibration": curve,
    }


def _models(
    given: str | LanguageModel | Sequence[str | LanguageModel], join: Join | None
) -> dict[str, LanguageModel]:
    """Load the models, each once, by spec or name; one without a meter gets one."""
    one = isinstance(given, str) or hasattr(given, "verbs")
    named: Sequence[Any] = [given] if one else list(given)  # type: ignore[arg-type]
    specs = {spec: spec for spec in named if isinstance(spec, str)}
    every = tuple(dict.fromkeys(verb for role in ROLES for verb in role.verbs))
    check_specs("An audition", specs, dict.fromkeys(specs, every))
    whole = [model for model in named if not isinstance(model, str)]
    if len({model.name for model in whole}) < len(whole):
        raise UsageError("Two of the models have the same name: give them different names.")
    metered = {model.name: model if hasattr(model, "usage") else Cached(model) for model in whole}
    loaded = {**load_models(specs, join), **metered}
    return {name: loaded[name] for name in (m if isinstance(m, str) else m.name for m in named)}


def _places(
    placed: Sequence[tuple[Role, Sequence[Bed], str]], questions: int
) -> Iterator[tuple[Role, Bed | None, int, str]]:
    """Yield role and bed with the number of questions; or no bed, and why the role cannot be judged."""
    for role, beds, why in placed:
        if not beds:
            yield role, None, 0, why
        for i, bed in enumerate(beds[:questions]):
            yield role, bed, questions // len(beds) + (i < questions % len(beds)), ""


def stand_ins_of(
    role: Role, bed: Bed, drawn: Any, seed: int, error: float = ERROR
) -> tuple[Heard, Heard | None]:
    """Return the scores of the uninformed and the lexical stand-in on the same questions, as :func:`hear`."""
    uninformed = hear(role, bed, UNINFORMED, load(UNINFORMED, cache=None), drawn, seed, USUAL, error)
    if isinstance(role.lexical, str):
        words = load(role.lexical, cache=None)
        return uninformed, hear(role, bed, role.lexical, words, drawn, seed, USUAL, error)
    values = _values_of(role.lexical(drawn, seed), error)
    return uninformed, Heard(role.name, bed.env, "words", "L0", **values)


def _judged(role: Role, line: Line, worth: float, options: Mapping[str, Any]) -> list[Line]:
    """Return a line for each method with a frontier here; one that says so if there is none.

    Args:
        role: The role.
        line: The scores of the model and of the stand-ins.
        worth: Smallest gain in success rate for which a model is recommended.
        options: Options of the environment.
    """
    heard = line.heard
    if not heard.has_score:
        return [replace(line, verdict="could not be asked") if heard.asked else line]
    known = [_difference(line, options)] if role is PLAYING else frontiers.of(heard.role, heard.env)
    if not known:
        return [replace(line, verdict="may pay", why=frontiers.elsewhere(heard.role))]
    chosen = frontiers.likeliest(known, frontiers.kind(heard.columns))
    return [_held(role, line, frontier, worth) for frontier in chosen]


def _difference(line: Line, options: Mapping[str, Any]) -> Frontier:
    chance, heard = line.uninformed, line.heard
    assert chance is not None
    steps = round(heard.questions * heard.columns[playing.LENGTH])
    return playing.frontier(heard.env, chance.ability, steps, options)


def _held(role: Role, line: Line, frontier: Frontier, worth: float) -> Line:
    gain, words = frontier.gain(line.heard.interval), line.words
    above = over(gain, frontier.gain(words.interval)) if words and words.has_score else None
    said = verdict(gain, above, worth)
    stand_ins = [other.ability for other in (line.uninformed, words) if other and other.has_score]
    if role is PLAYING and said == "may pay" and line.heard.ability - max(stand_ins) < worth:
        said = "does not pay"
    return replace(line, frontier=frontier, gain=gain, over_words=above, verdict=said)
