"""Recorded language models as world models: the state after some actions, in PlanBench's seventh task.

    hunch study planbench-execution --data DIR

``DIR`` is a clone of github.com/karthikv792/LLMs-Planning. Evidence level L2: recorded answers of these
models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hunch.core import UsageError
from hunch.rl.statistics import Estimate, over_episodes
from hunch_studies.recordings.planbench import Recording, executions, records
from hunch_studies.recordings.statements import read_execution
from hunch_studies.study import Part, Scale, Study
from hunch_studies.worlds.strips.pddl import Atom
from hunch_studies.worlds.strips.task import Task

STILL = "none: nothing changes"
"""The control: the initial state, unchanged."""
LONG = 4
"""Number of actions at which lengths are combined."""


class Foretold(NamedTuple):
    """A state that a model predicted, and the true one."""

    actions: int
    said: frozenset[Atom]
    true: frozenset[Atom]
    before: frozenset[Atom]


@dataclass(frozen=True)
class Score:
    """The accuracy of a model.

    Attributes:
        recording: Domain and model.
        n: Problems.
        exact: Share of states with all facts right.
        precision: Mean share of the stated facts that are true.
        recall: Mean share of the true facts that are stated.
        by_length: Exact share by number of actions, with the number of problems; :data:`LONG` or more actions
            are combined.
    """

    recording: Recording
    n: int
    exact: Estimate
    precision: float
    recall: float
    by_length: tuple[tuple[int, float, int], ...]


def foretold(recording: Recording) -> Iterator[Foretold]:
    """Return every recorded state, and the state that our simulator reaches.

    Raises:
        UsageError: if a record is of another form.
    """
    for number, record in records(recording.path):
        said = record.get("extracted_llm_plan")
        if not isinstance(record.get("query"), str) or not isinstance(said, list):
            raise UsageError(f"{recording.path}: problem {number} has no prompt or no list of facts.")
        statement, actions = read_execution(record["query"])
        task = Task(statement.problem)
        verdict = task.verify(actions)
        if verdict.step < len(actions):
            raise UsageError(f"{recording.path}: the actions of problem {number} cannot be carried out.")
        facts = frozenset(tuple(str(fact).split("_")) for fact in said)
        yield Foretold(len(actions), facts, task.true(verdict.state), task.true(task.init))


def score(recording: Recording, found: Sequence[Foretold]) -> Score:
    """Score the states of one recording."""
    exact = [f.said == f.true for f in found]
    lengths = [min(f.actions, LONG) for f in found]
    by_length = tuple(
        (n, float(np.mean([e for e, m in zip(exact, lengths, strict=True) if m == n])), lengths.count(n))
        for n in sorted(set(lengths))
    )
    return Score(
        recording,
        len(found),
        over_episodes(exact),
        float(np.mean([len(f.said & f.true) / max(len(f.said), 1) for f in found])),
        float(np.mean([len(f.said & f.true) / len(f.true) for f in found])),
        by_length,
    )


def markdown(folder: str | Path) -> str:
    """Return the rows as a table in Markdown."""
    lengths = [*range(1, LONG), f"{LONG} and more"]
    columns = ["domain", "recorded model", "n", "exact", "precision", "recall"]
    columns += [f"exact after {n}" for n in lengths]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for recording in executions(folder):
        found = list(foretold(recording))
        still = [f._replace(said=f.before) for f in found]
        lines += [_row(recording.model, score(recording, found)), _row(STILL, score(recording, still))]
    return "\n".join(dict.fromkeys(lines))  # the control gives the same answers for each model


def _row(name: str, s: Score) -> str:
    by = {n: f"{share:.3f} of {count}" for n, share, count in s.by_length}
    exact = f"{s.exact.value:.3f} [{s.exact.low:.3f}, {s.exact.high:.3f}]"
    cells = [s.recording.domain, name, str(s.n), exact, f"{s.precision:.3f}", f"{s.recall:.3f}"]
    return f"| {' | '.join([*cells, *(by.get(n, 'none') for n in range(1, LONG + 1))])} |"


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Recorded states", (), beside=lambda folder: markdown(scale.data))]


STUDIES = {
    "planbench-execution": Study(
        "planbench-execution",
        "How well do recorded language models predict the state after a sequence of actions?",
        "The repository labels every answer; its labels are not used here.",
        "States are the facts that the repository extracted from the answers; the true states are computed "
        "by our simulator. All results are from recorded answers (L2) of the named model.",
        _parts,
        recorded="the results of PlanBench's public repository",
    )
}
