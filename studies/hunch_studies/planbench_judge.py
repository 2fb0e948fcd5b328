"""Language models as judges of plans: recorded verdicts of PlanBench's third task, checked by our verifier.

    hunch study planbench-judge --data DIR

``DIR`` is a clone of github.com/karthikv792/LLMs-Planning, or a part (Valmeekam et al., NeurIPS 2023).
Evidence level L2: recorded answers of these models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hunch.core import UsageError
from hunch.rl.statistics import Estimate, over_episodes
from hunch_studies.planbench import valid
from hunch_studies.recordings.planbench import records
from hunch_studies.recordings.statements import read_statement
from hunch_studies.study import Part, Scale, Study

_VERDICT = re.compile(r"\bplan is (in)?valid\b", re.IGNORECASE)


@dataclass(frozen=True)
class Judged:
    """A model's verdicts on plans of a domain.

    Attributes:
        domain: As the repository calls it.
        model: As the repository calls it.
        pairs: True if each plan is valid, and whether the model said so; None if it said neither.
    """

    domain: str
    model: str
    pairs: tuple[tuple[bool, bool | None], ...]

    def says_yes(self, truth: bool) -> Estimate:
        """Return the share of the valid, or of the invalid, plans that the model calls valid."""
        return over_episodes([said is True for is_valid, said in self.pairs if is_valid is truth])

    @property
    def precision(self) -> Estimate:
        """Share of valid plans among those that the model calls valid."""
        return over_episodes([is_valid for is_valid, said in self.pairs if said is True])

    @property
    def unread(self) -> int:
        """Answers without a verdict."""
        return sum(said is None for _, said in self.pairs)


def read_verdict(answer: str) -> bool | None:
    """Return whether an answer calls the plan valid; None if it says neither."""
    found = _VERDICT.search(answer)
    return None if found is None else found[1] is None


def judged(path: Path) -> Judged:
    """Score the verdicts of a file.

    Raises:
        UsageError: if it is damaged or of another form.
    """
    pairs = []
    for number, record in records(path):
        query, answer = str(record.get("query", "")), str(record.get("llm_raw_response", ""))
        plans = re.findall(r"\[PLAN\]\n(.*?)\[PLAN END\]", query, re.DOTALL)
        if not plans:
            raise UsageError(f"{path}, problem {number}: the prompt holds no plan.")
        statement = read_statement(query)
        pairs.append((valid(statement, statement.plan_in_words(plans[-1])), read_verdict(answer)))
    return Judged(path.parent.parent.name, path.parent.name, tuple(pairs))


def verdicts(folder: str | Path) -> list[Judged]:
    """The verdicts of all models in a clone.

    Raises:
        UsageError: if there are none.
    """
    root = Path(folder).expanduser()
    paths = sorted([*root.rglob("task_3_*.json"), *root.rglob("task_3_*.json.gz")])
    if not paths:
        raise UsageError(f"{str(folder)!r} holds no verdicts of PlanBench: no files task_3_*.json.")
    return [judged(path) for path in paths]


def markdown(found: Sequence[Judged]) -> str:
    """Return the rates as a table."""
    names = ("domain", "recorded model", "plans", "valid", "true positives", "false positives", "signal left")
    lines = [f"| {' | '.join(names)} | precision | unread |", "|---" * (len(names) + 2) + "|"]
    for one in found:
        right, wrong = one.says_yes(True), one.says_yes(False)
        share = sum(truth for truth, _ in one.pairs) / len(one.pairs)
        lines.append(
            f"| {one.domain} | {one.model} | {len(one.pairs)} | {share:.2f} | {right} | {wrong} "
            f"| {right.value - wrong.value:.2f} | {one.precision} | {one.unread} |"
        )
    return "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Verdicts on plans", (), beside=lambda folder: markdown(verdicts(scale.data)))]


STUDIES = {
    "planbench-judge": Study(
        "planbench-judge",
        "How often do recorded models call valid and invalid plans valid?",
        "PlanBench reports how often models verify plans correctly (Valmeekam et al., NeurIPS 2023).",
        "Recorded answers (L2), one per instance, with one example of each kind of plan in the prompt. "
        "Plans are checked by our verifier. Signal left is the true-positive rate minus the false-positive "
        "rate: the share of a difference in true success between two policies that remains in this judge's "
        "verdicts.",
        _parts,
        recorded="a clone of github.com/karthikv792/LLMs-Planning",
    )
}
