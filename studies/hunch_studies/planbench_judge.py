"""Language models as judges of plans: recorded verdicts of PlanBench's third task, checked by our verifier.

    hunch study planbench-judge --data DIR

``DIR`` is a clone of github.com/karthikv792/LLMs-Planning, or a part (Valmeekam et al., NeurIPS 2023).
Evidence level L2: recorded answers of these models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hunch.core import UsageError
from hunch.rl.statistics import Estimate, over_episodes
from hunch_studies.planbench import valid
from hunch_studies.recordings.planbench import records
from hunch_studies.recordings.statements import read_statement
from hunch_studies.study import Part, Scale, Study
from hunch_studies.worlds.strips.pddl import Atom

_VERDICT = re.compile(r"\bplan is (in)?valid\b", re.IGNORECASE)


@dataclass(frozen=True)
class Judged:
    """A model's verdicts on plans of a domain.

    Attributes:
        domain: As the repository calls it.
        model: As the repository calls it; for a control, what it does.
        plans: The plans' actions.
        pairs: True if each plan is valid, and whether the model said so; None if it said neither.
    """

    domain: str
    model: str
    plans: tuple[tuple[Atom, ...], ...]
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


def of_even_length(plan: Sequence[Atom]) -> bool:
    """Return whether a plan has an even number of actions."""
    return len(plan) % 2 == 0


def stacks_last(plan: Sequence[Atom]) -> bool:
    """Return whether the last action stacks a block on another one, in whatever words."""
    return bool(plan) and plan[-1][0] == "stack"


RULES: Final[dict[str, Callable[[Sequence[Atom]], bool]]] = {
    "accepts plans of an even length": of_even_length,
    "accepts plans whose last action stacks": stacks_last,
}
"""Controls: judges that know neither the problem nor what an action needs, and what they accept."""


def by_rule(found: Judged, rule: str) -> Judged:
    """Return the verdicts of a control on the same plans."""
    accepts = RULES[rule]
    pairs = [(truth, accepts(plan)) for (truth, _), plan in zip(found.pairs, found.plans, strict=True)]
    return replace(found, model=rule, pairs=tuple(pairs))


def read_verdict(answer: str) -> bool | None:
    """Return whether an answer calls the plan valid; None if it says neither."""
    found = _VERDICT.search(answer)
    return None if found is None else found[1] is None


def judged(path: Path) -> Judged:
    """Score the verdicts of a file.

    Raises:
        UsageError: if it is damaged or of another form.
    """
    plans = []
    pairs = []
    for number, record in records(path):
        query, answer = str(record.get("query", "")), str(record.get("llm_raw_response", ""))
        shown = re.findall(r"\[PLAN\]\n(.*?)\[PLAN END\]", query, re.DOTALL)
        if not shown:
            raise UsageError(f"{path}, problem {number}: the prompt holds no plan.")
        statement = read_statement(query)
        plan = tuple(statement.plan_in_words(shown[-1]))  # Those before it are examples.
        plans.append(plan)
        pairs.append((valid(statement, plan), read_verdict(answer)))
    return Judged(path.parent.parent.name, path.parent.name, tuple(plans), tuple(pairs))


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
    """Return the rates as a table, with the controls beside each model."""
    names = ("domain", "judge", "plans", "valid", "true positives", "false positives", "signal left")
    lines = [f"| {' | '.join(names)} | precision | unread |", "|---" * (len(names) + 2) + "|"]
    for one in found:
        lines += [_row(one), *[_row(by_rule(one, rule)) for rule in RULES]]
    return "\n".join(dict.fromkeys(lines))  # A control says the same of the same plans for each model.


def _row(one: Judged) -> str:
    right, wrong = one.says_yes(True), one.says_yes(False)
    share = sum(truth for truth, _ in one.pairs) / len(one.pairs)
    return (
        f"| {one.domain} | {one.model} | {len(one.pairs)} | {share:.2f} | {right} | {wrong} "
        f"| {right.value - wrong.value:.2f} | {one.precision} | {one.unread} |"
    )


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
        "verdicts. Two controls judge without the problem: by the number of actions, and by the last one.",
        _parts,
        recorded="a clone of github.com/karthikv792/LLMs-Planning",
    )
}
