"""AlphaProof in propositional logic: what a learned guide proves, beside uniform, breadth-first and a rule.

hunch study proofs
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np

import hunch
from hunch.audition.formaliser import FORMALISER, replaced, statements
from hunch.core import State, World
from hunch.envs import make
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import Goal, counter_model
from hunch.envs.proofs.statements import Statements
from hunch.lm import load
from hunch.methods.solver.alpha_proof import AlphaProof, search
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch.roles.formaliser import READING, Formaliser, parsed, prompt
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.worlds.proofs.decide import witness
from hunch_studies.worlds.proofs.theorems import pool

ID: Final = "hunch/Proof-v0"
TRAINED: Final = 300
HELD: Final = 120
"""Statements to train on, a third of them easy, and hard ones that are held out."""
ROUNDS: Final = 3
BUDGET: Final = 32
BUDGETS: Final = (8, 16, 32, 64, 128, 256)
ARMS: Final[dict[str, dict[str, Any]]] = {
    "learned": {},
    "policy alone": {"value": False},
    "minimum": {"combine": "minimum"},
    "shuffled targets": {"targets": "shuffled"},
}
CONTROLS: Final = ("uniform", "breadth", "rule")
TESTED: Final = 4
VARIANTS: Final = 20
"""Open theorems per seed for test-time RL, and variants of each."""
ERRORS: Final = (0.02, 0.05, 0.1, 0.2)


def trained(label: str, seed: int, scale: Scale, folder: Path) -> tuple[AlphaProof, list[float]]:
    """Train an arm as a run; return the agent, and its proof rate on held-out theorems after each round."""
    n, episodes = max(20, round(TRAINED * scale.share)), scale.episodes(HELD)
    how: dict[str, Any] = {"pool_seed": seed, "whole": True}
    held = make(ID, pool="hard", theorems=episodes, held_out=True, **how)
    tested = hunch.Evaluation([deepcopy(held) for _ in range(episodes)], n, episodes)
    agent, out = AlphaProof(budget=BUDGET, **ARMS[label]), folder / f"{label.replace(' ', '-')}-{seed}"
    env = make(ID, pool="mixed", theorems=n, **how)
    result = hunch.train(
        agent, env, ROUNDS * n, seed=seed, out=out, evaluation=tested, watch=hunch.Watch(progress=False)
    )
    rounds = groupby(result.evaluations, key=lambda episode: episode.step)
    return agent, [float(np.mean([episode.success for episode in part])) for _, part in rounds]


def control(guide: str, seed: int) -> AlphaProof:
    """Return an agent whose guide is a control."""
    agent = AlphaProof(guide=guide, budget=BUDGET)
    agent.begin(World(), seed)
    return agent


def needed(agent: AlphaProof, goals: Sequence[Goal], seed: int) -> list[int | None]:
    """Return the expansions until each goal was proved, at most 256; None if it stayed open.

    A search does not know its budget, so these are the proof rates at every smaller budget, too.
    """
    trees = search(agent.config, agent.guide, goals, (seed, 9), BUDGETS[-1])
    return [tree.expansions if tree.root.proof else None for tree in trees]


def measured(label: str, seed: int, scale: Scale, folder: Path) -> dict[str, Any]:
    """Train an arm, or take a control; return its rates by round and by budget, and what it costs."""
    goals = pool("hard", scale.episodes(HELD), seed, held_out=True)
    pool("mixed", max(20, round(TRAINED * scale.share)), seed)
    start, rounds = process_time(), list[float]()
    if label in CONTROLS:
        agent = control(label, seed)
    else:
        agent, rounds = trained(label, seed, scale, folder)
    learned = process_time() - start
    if label not in CONTROLS and label != "learned":
        return {"rounds": rounds, "seconds": learned}
    return {"rounds": rounds, "seconds": learned, "needed": needed(agent, goals, seed)}


def rate(row: dict[str, Any], budget: int) -> float:
    """Return the proof rate at a budget."""
    return float(np.mean([n is not None and n <= budget for n in row["needed"]]))


def by_budget(scale: Scale, folder: Path) -> str:
    """Return the proof rates of the learned guide and the controls by budget, and by round."""
    labels, seeds = ["learned", *CONTROLS], range(scale.seeds)
    measure = partial(measured, scale=scale, folder=folder)
    rows = {name: kept(folder / "rows.jsonl", [(name, s) for s in seeds], measure) for name in labels}
    curve = [(n, *(over_seeds([rate(row, b) for row in rows[n]]) for b in BUDGETS)) for n in labels]
    told = " | ".join(f"budget {budget}" for budget in BUDGETS)
    lines = rows["learned"]
    rounds = [over_seeds([row["rounds"][i] for row in lines]) for i in range(ROUNDS)]
    ahead = over_pairs([rate(a, BUDGET) - rate(b, BUDGET) for a, b in zip(lines, rows["rule"], strict=True)])
    minutes = sum(row["seconds"] for row in lines) / 60
    draw(curve, folder / "curves.png")
    return "\n\n".join(
        [
            table(f"guide | {told}", curve),
            "By round, at a budget of 32: " + ", ".join(map(Estimate.short, rounds)) + ".",
            f"The learned guide is ahead of the rule by {ahead.short()}. Its training took {minutes:.1f} CPU "
            f"minutes for all seeds, evaluations included.",
            f"![Proof rate by budget]({folder.name}/curves.png)",
        ]
    )


def draw(curve: Sequence[tuple[Any, ...]], path: Path) -> None:
    """Draw proof rates against the budget."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for label, *rates in curve:
        axes.plot(BUDGETS, [r.value for r in rates], marker="o", label=label)
        axes.fill_between(BUDGETS, [r.low for r in rates], [r.high for r in rates], alpha=0.2)
    axes.set(xscale="log", xlabel="expansions per theorem", ylabel="held-out theorems proved", ylim=(0, 1))
    axes.set_xticks(BUDGETS, list(map(str, BUDGETS)))
    axes.legend()
    figure.savefig(path, dpi=120)


def ablations(scale: Scale, folder: Path) -> str:
    """Return what the parts of the method are worth, paired by seed with the whole."""
    seeds = range(min(3, scale.seeds))
    measure = partial(measured, scale=scale, folder=folder)
    whole = kept(folder.parent / "by-budget" / "rows.jsonl", [("learned", s) for s in seeds], measure)
    lines = []
    for label in list(ARMS)[1:]:
        rows = kept(folder / "rows.jsonl", [(label, s) for s in seeds], measure)
        less = [b["rounds"][-1] - a["rounds"][-1] for a, b in zip(whole, rows, strict=True)]
        lines.append((label, over_seeds([row["rounds"][-1] for row in rows]), over_pairs(less)))
    return table("arm | after three rounds | less the whole method", lines)


# ---- test-time RL -----------------------------------------------------------------------------------------


def at_test_time(arm: str, seed: int, scale: Scale, folder: Path) -> dict[str, Any]:
    """Return which of some open theorems are proved: with variants, unrelated statements, a longer search."""
    guide, _ = trained("learned", seed, scale, folder)
    goals = pool("hard", scale.episodes(HELD), seed, held_out=True)
    trees = search(guide.config, guide.guide, goals, (seed, 9), BUDGET)
    open_ = [goal for goal, tree in zip(goals, trees, strict=True) if not tree.root.proof][:TESTED]
    others = list(map(str, pool("hard", VARIANTS, 1_000 + seed)))
    return {"found": [_attempted(arm, guide, goal, others, seed) for goal in open_]}


def _attempted(arm: str, guide: AlphaProof, goal: Goal, others: list[str], seed: int) -> int | None:
    """Return the expansions that proved a goal, variants included; None if all were used up in vain."""
    most = BUDGET * (1 + ROUNDS * (VARIANTS + 1))
    if arm == "longer search":
        (tree,) = search(guide.config, guide.guide, [goal], (seed, 9), most)
        return tree.expansions if tree.root.proof else None
    agent = AlphaProof(budget=BUDGET, updates=100, variants=VARIANTS * (arm == "variants"))
    agent.begin(World(problem=Statements((str(goal),))), seed)
    if agent.network and guide.network:
        agent.network.network.load_state_dict(guide.network.network.state_dict())
    for number in range(ROUNDS + 1):
        if agent.act([State(str(goal))])[0]:
            return agent.spent
        agent.given.append(str(goal))
        agent.learn()
        if not number and arm == "unrelated":
            agent.extra = others
    return None


def test_time(scale: Scale, folder: Path) -> str:
    """Return how many open theorems each arm proves, at equal expansions."""
    arms, keys = ("variants", "unrelated", "longer search"), range(scale.seeds)
    measure = partial(at_test_time, scale=scale, folder=folder.parent / "by-budget")
    rows = {arm: kept(folder / "rows.jsonl", [(arm, s) for s in keys], measure) for arm in arms}
    proved = {a: [sum(n is not None for n in row["found"]) for row in own] for a, own in rows.items()}
    n = sum(len(row["found"]) for row in rows["variants"])
    less = {a: over_pairs([x - y for x, y in zip(proved["variants"], proved[a], strict=True)]) for a in arms}
    return table(
        f"arm | proved of {n} | variants less the arm, per seed",
        [(arm, sum(proved[arm]), "-" if arm == "variants" else less[arm]) for arm in arms],
    )


# ---- statements in English --------------------------------------------------------------------------------


ASKED: Final = ((1, 0), (5, 0), (5, 5), (30, 0))
"""Readings, and translations of each different one back into English: the last two take as many calls."""
READ: Final = 40
"""Statements per seed that a model reads: held-out ones, or the audition's, which are short."""
OURS: Final = "pocket?corpus=statements"
WORDS: Final = "a symbol for each word"
MATCHED: Final = {"hard": 0.005, "audition": 0.15}
"""Errors of the rule with which a single reading is about as often wrong as one of our model."""


def read_back(error: float, readings: int, returns: int, scale: Scale) -> dict[str, Any]:
    """Return what became of English statements that the rule reads."""
    model = load(f"scripted:formaliser?error={error}")
    return became(pool("hard", scale.episodes(200), 0), Formaliser(model, readings, returns))


def became(goals: Sequence[Goal], reader: Formaliser | None) -> dict[str, Any]:
    """Return what became of statements in English: faithful, theorems, refuted, proved by the rule.

    Without a reader a symbol takes the place of each word.
    """
    texts = list(map(english, goals))
    found = reader.read(texts) if reader else list(map(replaced, texts))
    usable = [goal for goal in found if goal is not None and witness(goal) is None]
    agent = control("rule", 0)
    open_ = [goal for goal in dict.fromkeys(usable) if not goal.closed]
    trees = search(agent.config, agent.guide, open_, (0,), 64)
    proved = {goal for goal, tree in zip(open_, trees, strict=True) if tree.root.proof}
    proved |= {goal for goal in usable if goal.closed}
    both = [goal == own for goal, own in zip(found, goals, strict=True) if goal in proved]
    return {
        "faithful": float(np.mean([goal == own for goal, own in zip(found, goals, strict=True)])),
        "theorem": len(usable) / len(goals),
        "refuted": float(np.mean([goal is not None and counter_model(goal) is not None for goal in found])),
        "proved": len(both) / len(goals),
        "proved_and_meant": sum(both) / len(goals),
    }


FATES: Final = ("faithful", "theorem", "refuted", "proved", "proved_and_meant")
COLUMNS: Final = "faithful | a theorem | refuted | proved | proved and meant"


def formal(scale: Scale, folder: Path) -> str:
    """Return what became of English statements by the error of the reader, its readings and round trips."""
    keys = [(error, *asked) for error in ERRORS for asked in ASKED]
    rows = kept(folder / "rows.jsonl", keys, partial(read_back, scale=scale))
    lines = [(*key, *(f"{row[name]:.2f}" for name in FATES)) for key, row in zip(keys, rows, strict=True)]
    return table(f"error | readings | returns | {COLUMNS}", lines)


def read_by_model(reader: str, kind: str, readings: int, seed: int, scale: Scale) -> dict[str, Any]:
    """Return what became of statements that a model reads, none of which ours was trained on.

    ``among`` is the share of statements whose meaning is among the readings, whatever the vote says.
    """
    n = scale.episodes(READ)
    short = kind == "audition"
    goals = statements(FORMALISER.beds[0], n, seed) if short else pool("hard", n, seed, held_out=True)
    if reader == WORDS:
        row = became(goals, None)
        return row | {"among": row["faithful"]}
    model = load(reader)
    answers = model.generate([prompt(english(goal)) for goal in goals], readings, READING)
    told = [{parsed(answer) for answer in own} for own in answers]
    among = float(np.mean([goal in own for goal, own in zip(goals, told, strict=True)]))
    return became(goals, Formaliser(model, readings)) | {"among": among}


def by_a_model(kind: str, scale: Scale, folder: Path) -> str:
    """Return what became of statements that our model reads, beside a rule that is as often wrong."""
    readers = OURS, f"scripted:formaliser?error={MATCHED[kind]}"
    arms = [*((reader, kind, n) for reader in readers for n in (1, 5, 30)), (WORDS, kind, 1)]
    measure, lines = partial(read_by_model, scale=scale), []
    for arm in arms:
        rows = kept(folder / "rows.jsonl", [(*arm, seed) for seed in range(scale.seeds)], measure)
        lines.append((*arm, *(over_seeds([row[name] for row in rows]) for name in ("among", *FATES))))
    return table(f"reader | statements | readings | among them | {COLUMNS}", lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part("By budget", (), beside=partial(by_budget, scale)),
        Part("Statements in English", (), beside=partial(formal, scale)),
        Part("Read by a model", (), beside=partial(by_a_model, "hard", scale)),
        Part("Short ones read by a model", (), beside=partial(by_a_model, "audition", scale)),
        Part("Ablations", (), beside=partial(ablations, scale)),
        Part("Test-time RL", (), beside=partial(test_time, scale)),
    ]


STUDIES = {
    "proofs": Study(
        "proofs",
        "Does a guide that learns from its own proofs prove more than a rule, at equal budgets?",
        "AlphaProof solved three of the five non-geometry problems of IMO 2024, at a silver-medal standard "
        "(Hubert et al., Nature 2025).",
        "Propositional logic instead of Lean and mathlib; a network of 90,000 weights on features of "
        "formulas instead of a language model; see the page.",
        _parts,
        seeds=5,
    )
}
