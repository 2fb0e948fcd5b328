"""AlphaProof with a small real model as the guide of the search, beside its blank prompt, words and rules.

    hunch study proofs-written --lm smollm2
    python -m hunch_studies.proofs_written docs/assets/studies/proofs-written.jsonl   # the recorded rows

The guide scores the names of the tactics of a goal, and is not trained. Theorems are the held-out ones of
:mod:`hunch_studies.proofs`, so that what its learned guide and its controls prove is known for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import FloatArray
from hunch.envs.proofs.logic import Goal
from hunch.envs.proofs.tactics import named, shown, tactics
from hunch.lm import load
from hunch.methods.solver.alpha_proof import AlphaProofConfig, search
from hunch.numbers import softmax
from hunch.rl.evaluator import Evaluator
from hunch.rl.statistics import Estimate, over_pairs
from hunch.roles.guide import UNTRAINED, VALUE, LanguageGuide
from hunch.runs.files import read_lines
from hunch_studies.planners import table as table_of
from hunch_studies.proofs import HELD
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, kept, loaded, selected
from hunch_studies.worlds.proofs.theorems import pool

THEOREMS: Final = 40
"""Theorems per seed, the first of the held-out ones."""
BUDGET: Final = 32
SHOWN: Final = (8, 16, 32)
"""Expansions per theorem, and the budgets that the table shows."""
WORDS, BLANK, LEARNED = "words", "blank prompt", "learned"
CONTROLS: Final = ("uniform", "rule", WORDS)
SHARP: Final = 0.1
"""Temperature of the similarity of words, as that of a prior by similarity."""


class Words:
    """A guide that compares only words: a hypothesis that shares symbols with what is to be proved."""

    def __init__(self) -> None:
        self.model = load("bag-of-words")

    def evaluate(self, states: Sequence[Goal]) -> tuple[list[FloatArray], list[float]]:
        """Return the softmax of the similarity of tactics and goal, and the constant value."""
        return [self._priors(goal) for goal in states], [VALUE] * len(states)

    def _priors(self, goal: Goal) -> FloatArray:
        names = [named(goal, tactic) for tactic, _ in tactics(goal)]
        if not names:
            return np.zeros(0)
        *hypotheses, wanted = shown(goal).splitlines()
        formulas = dict(line.split(": ", 1) for line in hypotheses)
        told = [f"{name} {formulas.get(name.split()[-1], '')}" for name in names]
        own, *of_tactics = self.model.embed([wanted, *told])
        return softmax(np.stack(of_tactics) @ own / SHARP)


def guides(specs: Mapping[str, str]) -> dict[str, Callable[[], Evaluator]]:
    """Return what makes the guide of each arm, by its label."""
    arms: dict[str, Callable[[], Evaluator]] = {
        "uniform": lambda: UNTRAINED["uniform"],
        "rule": lambda: UNTRAINED["rule"],
        WORDS: Words,
    }
    for name, spec in specs.items():
        arms[name] = lambda spec=spec: LanguageGuide(loaded(spec))  # type: ignore[misc]
        arms[f"{name}, {BLANK}"] = lambda spec=spec: LanguageGuide(loaded(spec), blank=True)  # type: ignore[misc]
    return arms


def needed(specs: Mapping[str, str], label: str, seed: int, theorems: int) -> dict[str, Any]:
    """Return the expansions until each theorem was proved; None where :data:`BUDGET` were not enough."""
    goals = pool("hard", HELD, seed, held_out=True)[:theorems]
    trees = search(AlphaProofConfig(), guides(specs)[label](), goals, (seed, 9), BUDGET)
    return {"needed": [tree.expansions if tree.root.proof else None for tree in trees]}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the share of proved theorems by budget, and each guide's leads over theorems, in Markdown."""
    proved = {tuple(row["key"][:2]): row["needed"] for row in rows}
    labels = list(dict.fromkeys(row["key"][0] for row in rows))
    cells = []
    for label in labels:
        own = [label, str(sum(len(of) for (arm, _), of in proved.items() if arm == label))]
        own += [_rate(proved, label, budget) for budget in SHOWN]
        own += [_lead(proved, label, other) for other in (f"{label}, {BLANK}", *CONTROLS)]
        cells.append(own)
    told = " | ".join(f"budget {budget}" for budget in SHOWN)
    ahead = " | ".join(f"over {other}" for other in ("its blank prompt", *CONTROLS))
    return table_of(f"guide | theorems | {told} | {ahead}", cells)


def _rate(proved: Mapping[tuple[Any, ...], Sequence[int | None]], label: str, budget: int) -> str:
    every = [n is not None and n <= budget for (arm, _), of in proved.items() if arm == label for n in of]
    return f"{np.mean(every):.2f}"


def _lead(proved: Mapping[tuple[Any, ...], Sequence[int | None]], label: str, other: str) -> str:
    """Return the lead over another guide at the whole budget, on the theorems that both attempted."""
    seeds = [seed for arm, seed in proved if arm == label and (other, seed) in proved]
    if label == other or not seeds:
        return ""
    less: list[float] = []
    for seed in seeds:
        ours, theirs = proved[label, seed], proved[other, seed]
        less += [float(a is not None) - float(b is not None) for a, b in zip(ours, theirs, strict=False)]
    lead: Estimate = over_pairs(less)
    return lead.short()


def _results(specs: Mapping[str, str], scale: Scale, folder: Path) -> str:
    theorems = scale.episodes(THEOREMS)
    labels = [label for label in guides(specs) if label in CONTROLS or label in _asked(specs, scale)]
    keys = [(label, seed, theorems) for seed in range(scale.seeds) for label in labels]

    def measure(label: str, seed: int, theorems: int) -> dict[str, Any]:
        return needed(specs, label, seed, theorems)

    return table(kept(folder / "rows.jsonl", keys, measure))


def _asked(specs: Mapping[str, str], scale: Scale) -> set[str]:
    return selected([label for label in guides(specs) if label not in CONTROLS], scale.arms)


def _parts(scale: Scale, data: Path) -> list[Part]:
    specs = by_name(scale.lms, (*CONTROLS, LEARNED))
    players = tuple(label for label in guides(specs) if label not in CONTROLS)
    return [Part("Guided by a model", (), beside=partial(_results, specs, scale), players=players)]


STUDIES = {
    "proofs-written": Study(
        "proofs-written",
        "Does a small real model guide a search for proofs better than rules that do not read the goal?",
        "AlphaProof's guide is a language model that was trained on formal mathematics (Hubert et al., "
        "Nature 2025).",
        "Propositional logic; the model scores the names of the tactics and is not trained.",
        _parts,
        lm_for="alpha-proof",
        seeds=3,
    )
}


def recorded(rows: Path, learned: Path | None = None) -> str:
    """Return the table of recorded rows, with what the learned guide of another study proves of them."""
    own = read_lines(rows)
    learned = learned or rows.with_name("proofs.json")
    if learned.is_file():
        theirs = json.loads(learned.read_text(encoding="utf-8"))["by-budget"]
        theorems = {row["key"][1]: len(row["needed"]) for row in own}
        for row in theirs:
            label, seed = row["key"]
            if label == LEARNED and seed in theorems:
                limited = [n if n is not None and n <= BUDGET else None for n in row["needed"]]
                own.append({"key": [LEARNED, seed], "needed": limited[: theorems[seed]]})
    return table(own)


if __name__ == "__main__":
    print_table(recorded, "Theorems proved with a real model as the guide.", at_most=2)
