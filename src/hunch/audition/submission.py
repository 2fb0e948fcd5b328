"""Rows of an audition for others: what a model can do in each role, in a file that is checked.

The file has no answers and no paths. It says which model was asked (name, revision, evidence level) and with
which questions (seed and number, drawn in the roles' own environments, so that rows of different models can
be compared), and holds the scores with the usual and with the blank prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from math import inf, isnan
from pathlib import Path
from typing import Any, Final

from hunch.audition.answer import CALIBRATION_ERROR, REPEATS, Audition, Heard
from hunch.audition.roles import ROLES, role_named
from hunch.core import UsageError
from hunch.lm.base import LanguageModel
from hunch.lm.ways import WAYS
from hunch.runs.files import write_atomically

FORMAT: Final = "hunch-audition-1"
FEWEST: Final = 20
"""Questions per role below which a row says too little (ours; the number of the ladder's pilot)."""
LONGEST: Final = 200
"""Maximum characters of a name in the file."""
LARGEST: Final = 10**15
"""Maximum of a count in the file: an integer of JSON may have thousands of digits."""
MARKUP: Final = re.compile(r"[|<>`\[\]]|://")
"""What a page in Markdown would read as more than the name of a model."""
ADDRESS: Final = re.compile(r"\bhttps?://\S*")
"""The address of a server, which the revision of a model behind it begins with."""


@dataclass(frozen=True)
class Row:
    """The scores of a model in one role and environment.

    Attributes:
        role: The role.
        env: Id of the environment.
        way: The way of asking; empty if the role has only one.
        questions: Number of questions.
        ability: Mean score, from 0 to 1.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        uninformed: Mean score of the uninformed stand-in.
        words: Mean score of the stand-in that knows words only; None if there is none.
        blank: Mean score with the blank prompt; None if the role has none, or it could not be asked.
        calibration_error: Expected calibration error; None if no probability is stated.
        unread: Share of the questions without a readable answer.
        tokens_read: Tokens read, over all questions; None if answers were there already, as after an
            interruption, so that the model was not asked all of them.
        tokens_written: Tokens written; None as above.
        seconds: Seconds in the model; None as above.
    """

    role: str
    env: str
    way: str
    questions: int
    ability: float
    low: float
    high: float
    uninformed: float
    words: float | None
    blank: float | None
    calibration_error: float | None
    unread: float
    tokens_read: float | None
    tokens_written: float | None
    seconds: float | None


@dataclass(frozen=True)
class Submission:
    """The rows of one model.

    Attributes:
        model: Its name, without folders and addresses.
        revision: Its revision, without addresses.
        evidence: Its evidence level.
        version: Version of this library.
        seed: Seed of the questions.
        rows: A row for each role and environment in which it could be asked.
    """

    model: str
    revision: str
    evidence: str
    version: str
    seed: int
    rows: tuple[Row, ...]


def submission(model: LanguageModel, usual: Audition, blank: Audition) -> Submission:
    """Return the rows of one model.

    A role of which it was asked too few questions is left out if there is another one: where a model cannot
    be asked in each of a role's environments, it is asked fewer questions than were wanted.

    Args:
        model: The model, the only one of both auditions.
        usual: Its audition with the usual prompts.
        blank: Its audition with the blank prompts.

    Raises:
        UsageError: if there are too few questions in all roles, an audition ended early, or nothing could be
            asked.
    """
    if early := usual.stopped or blank.stopped:
        raise UsageError(f"An audition that ended early makes no rows to submit: {early.rstrip('.')}.")
    without_task = {(line.heard.role, line.heard.env): line.heard for line in blank.lines}
    rows: dict[tuple[str, str], Row] = {}
    for line in usual.lines:
        heard = line.heard
        if not heard.has_score or line.uninformed is None:
            continue
        place = heard.role, heard.env
        rows[place] = Row(
            *(heard.role, heard.env, heard.way, heard.questions),
            heard.ability,
            # Of equal scores, mean and interval differ by rounding.
            *(min(heard.ability, heard.interval[0]), max(heard.ability, heard.interval[1])),
            uninformed=line.uninformed.ability,
            words=_score(line.words),
            blank=_score(without_task.get(place)),
            calibration_error=heard.columns.get(CALIBRATION_ERROR),
            unread=heard.unread,
            tokens_read=_used(heard, "prompt_tokens"),
            tokens_written=_used(heard, "completion_tokens"),
            seconds=_used(heard, "seconds"),
        )
    name = model.name.partition("?")[0].rpartition("/")[2]
    library = version("hunch-rl")
    revision = ADDRESS.sub("", model.revision).strip() or "unknown"
    enough = tuple(row for row in rows.values() if _asked(rows.values(), row.role) >= FEWEST)
    made = Submission(name, revision, model.evidence, library, usual.seed, enough or tuple(rows.values()))
    check(made, "This audition")
    return made


def _asked(rows: Iterable[Row], role: str) -> int:
    """Return the number of questions of a role."""
    return sum(row.questions for row in rows if row.role == role)


def _score(heard: Heard | None) -> float | None:
    return heard.ability if heard is not None and heard.has_score else None


def _used(heard: Heard, name: str) -> float | None:
    """Return what the answers took; None if some were there already, since that would look like less.

    Then they were in the cache, or another role had asked for them, as a prior does for the policy.
    """
    kept = heard.usage.get("cache_hits", 0.0) - heard.usage.get(REPEATS, 0.0)
    if kept > 0 or not heard.usage.get("calls"):
        return None
    return heard.usage.get(name, 0.0)


def check(made: Submission, what: str) -> None:
    """Check that rows can be compared with those of other models.

    Raises:
        UsageError: if they cannot.
    """
    if not made.rows:
        raise UsageError(f"{what} has no scores to submit: the model could be asked in no role.")
    if made.evidence not in ("L1", "L2", "L3"):
        kind = "a scripted model" if made.evidence == "L0" else "no known evidence"
        raise UsageError(f"{what} is of {kind} (evidence level {made.evidence}).")
    if not _is_name(made.model) or not _is_name(made.revision):
        raise UsageError(f"{what} names its model with odd or too many characters.")
    if not _is_name(made.version):
        raise UsageError(f"{what} names the version of the library with odd or too many characters.")
    if not 0 <= made.seed <= LARGEST:
        raise UsageError(f"{what} has no seed from 0 to {LARGEST:.0e}.")
    if MARKUP.search(made.model):
        raise UsageError(f"{what} names its model with characters that are markup on a page.")
    places = [(row.role, row.env) for row in made.rows]
    if len(set(places)) < len(places):
        raise UsageError(f"{what} has two rows for one role and environment.")
    for row in made.rows:
        where = f"{what}, {row.role} in {row.env}"
        if row.role not in {role.name for role in ROLES}:
            raise UsageError(f"{what} has a row for {row.role!r}, which is no role.")
        if row.env not in {bed.env for bed in role_named(row.role).beds}:
            raise UsageError(f"{what} has a row for {row.role} in {row.env!r}, where it is not asked.")
        if row.way and row.way not in WAYS:
            raise UsageError(f"{where}: there is no way of asking {row.way!r}.")
        asked_as = role_named(row.role)
        if row.way and row.way not in asked_as.ways:
            raise UsageError(f"{where}: the role is asked by {', '.join(asked_as.ways)}, not {row.way}.")
        if row.blank is not None and not asked_as.blank:
            raise UsageError(f"{where}: the role has no blank prompt.")
        shares = [row.ability, row.low, row.high, row.uninformed, row.words, row.blank, row.unread]
        shares.append(row.calibration_error)  # a mean difference of probabilities
        if not all(share is None or 0 <= share <= 1 for share in shares):
            raise UsageError(f"{where}: scores are between 0 and 1.")
        if not row.low <= row.ability <= row.high:
            raise UsageError(f"{where}: the ability {row.ability:g} is outside its interval.")
        if row.questions < 1:
            raise UsageError(f"{where}: a row needs at least one question, not {row.questions}.")
        used = [x for x in (row.tokens_read, row.tokens_written, row.seconds) if x is not None]
        if not all(0 <= x < inf for x in used):
            raise UsageError(f"{where}: tokens and seconds are numbers of at least 0.")
        if max([row.questions, *used]) > LARGEST:
            raise UsageError(f"{where}: questions, tokens and seconds are at most {LARGEST:.0e}.")
    for role in dict.fromkeys(row.role for row in made.rows):
        asked = _asked(made.rows, role)
        if asked < FEWEST:
            raise UsageError(f"{what} asked {asked} questions as {role}: a row needs at least {FEWEST}.")


def _is_name(text: str) -> bool:
    """Return whether a text is a short name that fits into a cell of a table."""
    return text.isprintable() and "|" not in text and 0 < len(text.strip()) <= len(text) <= LONGEST


def write(made: Submission, path: Path) -> None:
    """Write a submission as JSON."""
    write_atomically(path, (json.dumps({"format": FORMAT, **asdict(made)}, indent=1) + "\n").encode())


def read(path: Path) -> Submission:
    """Read and check a submission.

    Raises:
        UsageError: if the file is none, or its rows cannot be compared with others.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError(f"{path} is not a file that 'hunch audition --submit' wrote.")
    listed = value.get("rows")
    if not isinstance(listed, list):
        raise UsageError(f"{path} has no list of rows.")
    rows = tuple(_typed(Row, row, path) for row in listed)
    made: Submission = _typed(Submission, {**value, "rows": rows}, path)
    check(made, str(path))
    return made


KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "float | None": (float, int, type(None)),
    "tuple[Row, ...]": (tuple,),
}
"""Types that a value of the file may have, by the type of its field."""


def _typed(made: type[Any], value: Any, path: Path) -> Any:
    """Return an object with the fields of a JSON object, each of its type."""
    if not isinstance(value, dict):
        raise UsageError(f"{path}: a row is an object with names and values.")
    known = {}
    for field in fields(made):
        one = value.get(field.name)
        fits = isinstance(one, KINDS[str(field.type)]) and not isinstance(one, bool)
        if not fits or (isinstance(one, float) and isnan(one)):
            raise UsageError(f"{path}: {field.name!r} has the wrong type, or is missing.")
        known[field.name] = one
    return made(**known)
