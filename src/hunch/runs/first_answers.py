"""How the models of a run are asked, and their first answers as they were read: said once, kept with the run.

A model whose answers are read wrongly spoils a run silently. So whoever starts a run sees in which way each
role asks its model, and the first answers, each with what the role made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from hunch.core import HunchError
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import NOTED, SHOWN
from hunch.lm.usage import Metered
from hunch.lm.ways import CALLING, DESCRIPTIONS, Way
from hunch.printable import printable
from hunch.runs.files import read_json, write_json

FILE: Final = "first_answers.json"


@dataclass(frozen=True)
class FirstAnswers:
    """How a role asks a model, and the model's first answers.

    Attributes:
        option: Name of the option that holds the model's spec, such as ``lm``.
        model: Name of the model.
        role: The role that the model fills.
        way: The way of asking; empty if the role has one way only.
        automatic: Whether the way was chosen for the model.
        answers: Each answer with what was read in it; None if nothing.
    """

    option: str
    model: str
    role: str
    way: str
    automatic: bool
    answers: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        parts = []
        if self.way:
            chosen = "auto chose the way" if self.automatic else "asked in the way"
            words = CALLING.get(self.way) or DESCRIPTIONS[cast("Way", self.way)]
            parts.append(f"{chosen} {self.way} ({words})")
        if self.answers:
            parts.append("first answers: " + "; ".join(_read(*pair) for pair in self.answers))
        return f"{self.model} as {self.role}: {'. '.join(parts)}."


def _read(answer: str, meaning: str | None) -> str:
    """Return an answer in one short line, with what was read in it unless that is the same."""
    said = answer.strip()
    short = _shortened(said)
    if not said:
        return "an empty answer"
    if meaning is None:
        return f"{short!r} (read as nothing)"
    if meaning == said or said.startswith(f"{meaning} "):
        return repr(short)
    if "\n" in meaning:  # a program; the answer shows how it begins
        return f"{short!r} (read as {len(meaning.splitlines())} lines)"
    return f"{short!r} (read as {printable(_shortened(meaning))})"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


class Listening:
    """Collects the first answers of a run's models until there are enough in each role.

    Args:
        folder: Folder of the run, which keeps them; None if there is none. What an earlier session kept there
            is not said again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.file = None if folder is None else folder / FILE
        self.kept = {(row.option, row.role): row for row in ([] if folder is None else kept_in(folder))}

    def news(self, models: Iterable[tuple[str, LanguageModel]], *, final: bool = False) -> list[FirstAnswers]:
        """Return the roles whose first answers are complete, each once; at the end, all that is left."""
        new = [
            row
            for row in first_answers(models)
            if (row.option, row.role) not in self.kept and (final or len(row.answers) >= NOTED)
        ]
        if new:
            self.kept |= {(row.option, row.role): row for row in new}
            if self.file is not None:
                write_json(self.file, {"roles": [as_record(row) for row in self.kept.values()]})
        return new


def first_answers(models: Iterable[tuple[str, LanguageModel]]) -> list[FirstAnswers]:
    """Return what the roles of some models noted so far, by option and model; stand-ins are left out."""
    rows = []
    for option, model in models:
        if not isinstance(model, Metered) or not model.speaks:
            continue
        noted = model.first_answers
        for role, heard in noted.answers.items():
            if not heard:  # a role that was prepared, and has not asked
                continue
            way = noted.ways.get(role, "")
            answers = tuple(heard)
            automatic = role in noted.automatic
            rows.append(FirstAnswers(option, cast("Any", model).name, role, way, automatic, answers))
    return rows


def as_record(row: FirstAnswers) -> dict[str, Any]:
    """Return a row as plain data."""
    return {**vars(row), "answers": [list(pair) for pair in row.answers]}


def kept_in(folder: Path) -> list[FirstAnswers]:
    """Return what a run's folder keeps; nothing for a run of an earlier version.

    Raises:
        HunchError: if the file is damaged.
    """
    record = read_json(folder / FILE)
    if record is None:
        return []
    try:
        return [_row(row) for row in record["roles"]]
    except (KeyError, TypeError, ValueError) as error:
        raise HunchError(f"{folder / FILE} is damaged: delete it, the run does not need it.") from error


def _row(record: dict[str, Any]) -> FirstAnswers:
    pairs: Sequence[Sequence[Any]] = record["answers"]
    answers = tuple((str(answer), None if read is None else str(read)) for answer, read in pairs)
    names = ("option", "model", "role", "way")
    option, model, role, way = (str(record[name]) for name in names)
    return FirstAnswers(option, model, role, way, bool(record["automatic"]), answers)
