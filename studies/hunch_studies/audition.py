"""Is the audition right? Its verdicts and gains beside those of the loop, where no frontier was made.

hunch study audition
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.audition.answer import Line
from hunch.audition.frontier import verdict
from hunch.audition.hearing import audition
from hunch.methods import find
from hunch.rl.statistics import over_pairs
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig, finished
from hunch.runs.files import read_lines
from hunch_studies.frontiers import learning
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept

WORTH: Final = 0.05
QUESTIONS: Final = 100
SEED: Final = 1
UNINFORMED, WORDS = "uniform", "bag-of-words"
STEPS: Final = 1_000
METHODS: Final[Mapping[str, dict[str, Any]]] = {
    "zero-shot": {},
    "likelihood-value": {"floor": 0.1, "epsilon": (0.1, 0.1, 1)},
}
ALL: Final = ("minilm", WORDS, "tfidf", "phrases", "scripted:overlap")
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "Overcooked-Tomato": (*ALL, *(f"scripted:kitchen?systematic=1&error=0.2&draw={d}" for d in (50, 51))),
    "Blocksworld": ALL,
    "Ferry": ALL,
    "Miconic": ALL,
    "BabyAI-GoToObj": ALL,
    "Household-Pick": ALL,
}
"""Environments without a frontier, with the models there; the draws of the rule are in no frontier."""
ROWS: Final = "pairs.jsonl"
ASSETS: Final = Path(__file__).parents[2] / "docs" / "assets" / "studies"


def arms(env: str, scale: Scale) -> tuple[Arm, ...]:
    """Return each method with each model."""
    return tuple(
        Arm(
            _label(method, model),
            RunConfig(
                method=method,
                env=f"hunch/{env}-v0",
                lm=model,
                steps=scale.steps(STEPS),
                options=find(method).config_class(**options),
            ),
        )
        for method, options in METHODS.items()
        for model in (UNINFORMED, *PLACES[env])
    )


def _label(method: str, model: str) -> str:
    return f"{method}, {model}"


def foretold(role: str, env: str, models: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what the audition says of models in an environment, by method and model."""
    found = audition(list(models), [role], f"hunch/{env}-v0", questions=QUESTIONS, seed=SEED, worth=WORTH)
    return {(line.frontier.method, line.heard.model): _plain(line) for line in found.lines if line.frontier}


def _plain(line: Line) -> dict[str, Any]:
    low, high = line.gain or (float("nan"), float("nan"))
    above = line.uninformed is not None and line.heard.interval[0] > line.uninformed.interval[1]
    beyond = line.words is None or line.heard.ability > line.words.ability
    return {
        "ability": round(line.heard.ability, 3),
        "uninformed": round(line.uninformed.ability, 3) if line.uninformed else None,
        "words": round(line.words.ability, 3) if line.words else None,
        "predicted": [round(low, 3), round(high, 3)],
        "frontier": line.frontier.env if line.frontier else "",
        "by frontier": verdict((low, high), line.over_words, WORTH),
        "verdict": line.verdict,
        "apart": bool(above),
        "beyond words": bool(beyond),
    }


def pairs(env: str, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Keep a row per method and model: what was foretold, and the measured gain; return them in Markdown."""
    scores = {
        arm.label: [learning(r) for job in jobs([arm], seeds, folder) if (r := finished(job.folder))]
        for arm in listed
    }
    keys = [(method, model) for method in METHODS for model in PLACES[env] if model != WORDS]
    said = foretold("policy", env, PLACES[env]) if keys else {}

    def row(method: str, model: str) -> dict[str, Any]:
        own, control, words = (scores[_label(method, m)] for m in (model, UNINFORMED, WORDS))
        gains = [over_pairs([a - b for a, b in zip(own, other, strict=True)]) for other in (control, words)]
        measured = [[round(x, 3) for x in (g.value, g.low, g.high)] for g in gains]
        return {
            "method": method,
            "model": model,
            "env": env,
            "role": "policy",
            "measured": measured[0],
            "over words": measured[1],
            **said[method, model],
        }

    return _table(kept(folder / ROWS, keys, row))


def pays(row: Mapping[str, Any]) -> bool:
    """Return whether the loop gains what is worth a model, over the uninformed control and over words."""
    return bool(min(row["measured"][0], row["over words"][0]) >= WORTH)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = "method | model | environment | ability | uninformed | words | predicted gain | verdict"
    head += " | measured gain | over words | pays"
    cells = [
        (
            *(
                row["method"],
                f"`{row['model']}`",
                row["env"],
                row["ability"],
                row["uninformed"],
                row["words"],
            ),
            "[{:.2f}, {:.2f}]".format(*row["predicted"]),
            row["verdict"],
            *("{:.2f} [{:.2f}, {:.2f}]".format(*row[name]) for name in ("measured", "over words")),
            "yes" if pays(row) else "no",
        )
        for row in rows
    ]
    return table(head, cells)


# ---- how right it is --------------------------------------------------------------------------------------


def balanced(said: Sequence[bool], true: Sequence[bool]) -> float:
    """Return the mean of the shares of both truths that are said; nan if one does not occur."""
    told, real = np.array(said, dtype=bool), np.array(true, dtype=bool)
    if real.all() or not real.any():
        return float("nan")
    return float((told[real].mean() + (~told[~real]).mean()) / 2)


def interval(said: Sequence[bool], true: Sequence[bool]) -> tuple[float, float]:
    """Return the 95 % interval of the balanced accuracy, by a bootstrap over pairs."""
    rng, n = np.random.default_rng(0), len(true)
    drawn = [rng.integers(n, size=n) for _ in range(2_000)]
    values = [balanced([said[i] for i in own], [true[i] for i in own]) for own in drawn]
    low, high = np.nanquantile(values, (0.025, 0.975))
    return float(low), float(high)


def rank(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return Spearman's correlation of the predicted gains with the measured ones."""
    from scipy.stats import spearmanr

    told = [float(np.mean(row["predicted"])) for row in rows]
    return float(spearmanr(told, [row["measured"][0] for row in rows]).statistic)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the confusion table, and the balanced accuracy of the verdicts and of simpler rules."""
    verdicts = ("pays", "may pay", "does not pay")
    counts = [
        (
            by,
            "pays" if true else "does not pay",
            *(sum(row[by] == v and pays(row) is true for row in rows) for v in verdicts),
        )
        for by in ("by frontier", "verdict")
        for true in (True, False)
    ]
    sure = [row for row in rows if row["by frontier"] != "may pay"]
    rules = {
        "the frontier's verdict, where it is sure": (sure, [row["by frontier"] == "pays" for row in sure]),
        "the frontier's verdict, 'may pay' as no": (rows, [row["by frontier"] == "pays" for row in rows]),
        "the middle of the predicted gain is worth it": (
            rows,
            [float(np.mean(row["predicted"])) >= WORTH for row in rows],
        ),
        "ability above uninformed, intervals apart": (rows, [row["apart"] for row in rows]),
        "ability above words": (rows, [row["beyond words"] for row in rows]),
        "both, which is the verdict": (rows, [row["verdict"] == "may pay" for row in rows]),
        "always no": (rows, [False] * len(rows)),
    }
    lines = []
    for name, (own, said) in rules.items():
        true = [pays(row) for row in own]
        low, high = interval(said, true) if len(set(true)) > 1 else (float("nan"),) * 2
        lines.append((name, len(own), f"{balanced(said, true):.2f} [{low:.2f}, {high:.2f}]"))
    return "\n\n".join(
        [
            f"{len(rows)} pairs; rank correlation of predicted and measured gain {rank(rows):.2f}.",
            table(" | ".join(("said", "the loop", *verdicts)), counts),
            table("rule | pairs | balanced accuracy", lines),
        ]
    )


# ---- rows of other studies --------------------------------------------------------------------------------


def earlier() -> list[dict[str, Any]]:
    """Return the pairs whose measured gain comes from the rows of the study of ICPI."""
    rows = json.loads((ASSETS / "icpi-choosing.json").read_text())
    return [
        _icpi(domain, said, [row for row in rows if row["domain"] == domain])
        for domain in ("DistractorChain", "MiniCatch", "PointMass")
        for (method, _), said in foretold("world-model", domain, ("pocket",)).items()
        if method == "icpi"
    ]


def _icpi(domain: str, said: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row; the measure is the share of the optimum, and there is no loop with words."""
    own, control = (
        [1 - row["regret"] / row["optimum"] for row in rows if row["arm"] == f"ICPI, {name}, choosing"]
        for name in ("pocket", "knowing nothing")
    )
    gain = over_pairs([a - b for a, b in zip(own, control, strict=True)])
    measured = [round(x, 3) for x in (gain.value, gain.low, gain.high)]
    named = {"method": "icpi", "model": "pocket", "env": domain, "role": "world-model"}
    return {**named, "measured": measured, "over words": measured, **said}


def together(folder: Path) -> str:
    """Return how right the audition is over all pairs, and write their rows beside."""
    rows = [row for env in PLACES for row in read_lines(folder.parent / Part(env, ()).folder / ROWS)]
    more = earlier()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "audition.json").write_text(json.dumps([*rows, *more], indent=1))
    by_method = {m: [r for r in [*rows, *more] if r["method"] == m] for m in (*METHODS, "icpi")}
    ranks = table(
        "method | pairs | rank correlation", [(m, len(r), f"{rank(r):.2f}") for m, r in by_method.items()]
    )
    return "\n\n".join(["Rows of other studies:", _table(more), "All:", summary([*rows, *more]), ranks])


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        *(Part(env, arms(env, scale), measure=partial(pairs, env)) for env in PLACES),
        Part("All pairs", (), beside=together),
    ]


STUDIES = {
    "audition": Study(
        "audition",
        "Does the audition say which models pay, where no frontier was made?",
        "Nothing: the audition is ours.",
        "The models that can be run here are small. A pair pays if the mean gain of its loop, over the "
        f"uninformed control and over a bag of words, is at least {WORTH}.",
        _parts,
        seeds=4,
    )
}
