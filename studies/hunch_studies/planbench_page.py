"""The tables of the study of PlanBench.

    hunch study planbench --data DIR

``DIR`` is a clone of github.com/karthikv792/LLMs-Planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hunch.rl.statistics import Estimate
from hunch_studies.planbench import BestOf, Findings, Renamed, Repaired, Score, study
from hunch_studies.planbench_bandit import Policy
from hunch_studies.study import Part, Scale, Study


def markdown(findings: Findings) -> str:
    """The rows as tables in Markdown."""
    parts = ["### Success by model", _scores(findings.scores)]
    for place, best in findings.best.items():
        parts += [f"### Best of k planners: {place[0]}, {place[1]}", _best(best)]
    parts += ["### The same problems in other words", _renamed(findings.renamed)]
    for place, policies in findings.policies.items():
        parts += [f"### A bandit over planners: {place[0]}, {place[1]}", _policies(policies)]
    parts += ["### Repair after feedback of a verifier", _repaired(findings.repaired)]
    if findings.left_out:
        parts += ["### Left out", "\n".join(f"- {line}" for line in findings.left_out)]
    return "\n\n".join(parts) + "\n"


def _table(head: str, rows: Iterable[Iterable[object]]) -> str:
    columns = head.split(" | ")
    lines = [columns, ["---"] * len(columns), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _scores(scores: Sequence[Score]) -> str:
    rows = (
        (*s.recording.key, s.months or "not said", s.n, s.answered, _three(s.success), s.wrong_truths)
        for s in sorted(scores, key=lambda s: s.recording.key)
    )
    head = "domain | recorded model | prompt | recorded | n | answered | success | wrong solutions given"
    return _table(head, rows)


def _three(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _best(rows: Sequence[BestOf]) -> str:
    cells = ((r.k, _three(r.random), f"{r.greedy:.3f}", r.added) for r in rows)
    return _table("k | k at random | best k in hindsight | added", cells)


def _renamed(rows: Sequence[Renamed]) -> str:
    cells = (
        (r.domain, r.model, r.prompt, r.n, f"{r.plain:.3f}", f"{r.other:.3f}", _three(r.lost)) for r in rows
    )
    return _table("domain | recorded model | prompt | n | usual words | other words | lost", cells)


def _policies(rows: Sequence[Policy]) -> str:
    cells = ((r.name, f"{r.success:.3f}", f"{r.cost:.3f}", _three(r.worth)) for r in rows)
    return _table("policy | success | cost | success less cost", cells)


def _repaired(rows: Sequence[Repaired]) -> str:
    cells = (
        (
            *(*r.recording.key, r.n),
            *(f"{r.by_round[min(i, len(r.by_round) - 1)]:.3f}" for i in (0, 1, 2)),
            _three(r.last),
            len(r.by_round),
        )
        for r in rows
    )
    head = "domain | recorded model | feedback | n | first plan | after 1 round | after 2 | at the end"
    return _table(f"{head} | most plans", cells)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Recorded plans", (), beside=lambda folder: markdown(study(scale.data)))]


STUDIES = {
    "planbench": Study(
        "planbench",
        "How often is a recorded plan of a real model valid, and how much do several models and a verifier "
        "help?",
        "The PlanBench repository labels every answer; differences to our results are listed below.",
        "Plans are those that the repository extracted from the answers, executed in our environment. All "
        "results are from recorded answers (L2) of the named model and month.",
        _parts,
        recorded="the results of PlanBench's public repository",
    )
}
