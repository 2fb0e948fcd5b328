"""Is the audition right? Its verdicts and gains beside those of the loop, where no frontier was made.

The way to judge was chosen on some environments and models, and is tested on others.

hunch study audition
python -m hunch_studies.audition docs/assets/studies/audition.json FOLDER   # today's verdicts, kept gains
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.audition.answer import Line
from hunch.audition.hearing import UNINFORMED, audition, hear, stand_ins_of
from hunch.audition.question import Bed
from hunch.audition.roles import role_named
from hunch.lm import load
from hunch.methods import find
from hunch.rl.statistics import over_pairs
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.stored import finished
from hunch_studies.frontiers import learning
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept

WORTH: Final = 0.05
QUESTIONS: Final = 100
SEEDS: Final = (1, 2, 3, 4)
"""Of what is asked and played: one draw of episodes says little."""
WORDS: Final = "bag-of-words"
STEPS: Final = 1_000
METHODS: Final[Mapping[str, dict[str, Any]]] = {
    "zero-shot": {},
    "likelihood-value": {"floor": 0.1, "epsilon": (0.1, 0.1, 1)},
}
ALL: Final = ("minilm", WORDS, "tfidf", "phrases", "scripted:overlap")
CHOSEN: Final[Mapping[str, tuple[str, ...]]] = {
    "Overcooked-Tomato": (*ALL, *(f"scripted:kitchen?systematic=1&error=0.2&draw={d}" for d in (50, 51))),
    **dict.fromkeys(("Blocksworld", "Ferry", "Miconic", "BabyAI-GoToObj", "Household-Pick"), ALL),
}
"""Environments without a frontier, with the models there. The way to judge was chosen on these pairs."""
TESTED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("Household-Examine", "BabyAI-GoToRedBall", "Gripper", "HomeGrid"), ALL),
    **dict.fromkeys(("Household-PickTwo", "BabyAI-OneRoomS8"), ("minilm", WORDS, "tfidf", "phrases")),
    "Overcooked-Tomato, other draws": (
        WORDS,
        *(f"scripted:kitchen?systematic=1&error={e}&draw={d}" for e in (0.1, 0.2) for d in (52, 53, 54)),
    ),
}
"""Others, which were named before a loop was run there. The draws of the rule are in no frontier."""
PLACES: Final = {**CHOSEN, **TESTED}
PRIORS: Final[Mapping[str, dict[str, Any]]] = {"dqn-prior": {"encoder": "phrases", "update_every": 1}}
"""Set as where its frontier was made."""
SUGGESTING: Final = (
    *("Blocksworld", "Gripper", "Household-Examine", "BabyAI-GoToObj"),
    "Overcooked-Tomato, other draws",
)
"""Where models are also tried as priors."""
PRIOR: Final = ", as a prior"
ROWS: Final = "pairs.jsonl"


def arms(
    models: Sequence[str], place: str, scale: Scale, methods: Mapping[str, dict[str, Any]] = METHODS
) -> tuple[Arm, ...]:
    """Return each method with each model."""
    return tuple(
        Arm(
            _label(method, model),
            RunConfig(
                method=method,
                env=env_of(place),
                lm=model,
                steps=scale.steps(STEPS),
                options=find(method).config_class(**options),
            ),
        )
        for method, options in methods.items()
        for model in (UNINFORMED, *models)
    )


def env_of(place: str) -> str:
    """Return the id of the environment of a place."""
    return f"hunch/{place.split(',')[0]}-v0"


def _label(method: str, model: str) -> str:
    return f"{method}, {model}"


def foretold(env: str, models: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what the audition says of models that play in an environment, by model.

    Beside the first draw of episodes stand verdict and lead of each, and whether the answers to single
    questions, which are those of a prior, too, are above those of both stand-ins.
    """
    heard = [
        audition(list(models), ["policy"], env, questions=QUESTIONS, seed=seed, worth=WORTH) for seed in SEEDS
    ]
    said = [{line.heard.model: _plain(line) for line in one.lines} for one in heard]
    answers = _answers(env, models)
    return {
        model: {
            **said[0][model],
            "draws": [[one[model]["verdict"], one[model]["lead"]] for one in said],
            "answers": answers[model],
        }
        for model in models
    }


def _plain(line: Line) -> dict[str, Any]:
    low, high = line.gain or (float("nan"), float("nan"))
    chance = line.uninformed.ability if line.uninformed else float("nan")
    return {
        "ability": round(line.heard.ability, 3),
        "uninformed": round(chance, 3),
        "words": round(line.words.ability, 3) if line.words else None,
        "lead": round(line.heard.ability - chance, 3),
        "predicted": [round(low, 3), round(high, 3)],
        "verdict": line.verdict,
    }


def _answers(env: str, models: Sequence[str]) -> dict[str, bool]:
    asked, seed = role_named("policy"), SEEDS[0]
    bed = next((own for own in asked.beds if own.env == env), Bed(env))
    drawn = asked.draw(bed, QUESTIONS, seed)
    chance, words = stand_ins_of(asked, bed, drawn, seed)
    heard = {model: hear(asked, bed, model, load(model, cache=None), drawn, seed) for model in models}
    return {
        model: bool(own.interval[0] > chance.interval[1] and (words is None or own.ability > words.ability))
        for model, own in heard.items()
    }


def pairs(place: str, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Keep a row per method, model and number of seeds: what was foretold, and the measured gain.

    Returns:
        The rows in Markdown.
    """
    scores = {
        arm.label: [learning(r) for job in jobs([arm], seeds, folder) if (r := finished(job.folder))]
        for arm in listed
    }
    methods = dict.fromkeys(arm.config.method for arm in listed)
    keys = [(method, model, seeds) for method in methods for model in PLACES[place] if model != WORDS]
    said = foretold(env_of(place), PLACES[place])

    def row(method: str, model: str, seeds: int) -> dict[str, Any]:
        own, control, words = (scores[_label(method, m)] for m in (model, UNINFORMED, WORDS))
        gains = [over_pairs([a - b for a, b in zip(own, other, strict=True)]) for other in (control, words)]
        measured = [[round(x, 3) for x in (g.value, g.low, g.high)] for g in gains]
        named = {"method": method, "model": model, "env": place, "seeds": seeds}
        return {**named, "measured": measured[0], "over words": measured[1], **said[model]}

    return _table(kept(folder / ROWS, keys, row))


def pays(row: Mapping[str, Any]) -> bool:
    """Return whether the loop gains what is worth a model, over the uninformed control and over words."""
    return bool(min(row["measured"][0], row["over words"][0]) >= WORTH)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = "method | model | environment | success | uninformed | words | verdict | answers above both"
    head += " | measured gain | over words | pays"
    cells = [
        (
            *(row["method"], f"`{row['model']}`", row["env"]),
            *(row["ability"], row["uninformed"], row["words"], row["verdict"], _yes(row["answers"])),
            *("{:.2f} [{:.2f}, {:.2f}]".format(*row[name]) for name in ("measured", "over words")),
            _yes(pays(row)),
        )
        for row in rows
    ]
    return table(head, cells)


def _yes(so: bool) -> str:
    return "yes" if so else "no"


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

    return float(spearmanr([row["lead"] for row in rows], [row["measured"][0] for row in rows]).statistic)


RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "the verdict: success when it plays": lambda row: row["verdict"] != "does not pay",
    "answers to single states above both stand-ins": lambda row: row["answers"],
    "always no": lambda row: False,
}


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the confusion table, and the balanced accuracy of the verdict and of simpler rules."""
    verdicts = ("pays", "may pay", "does not pay")
    counts = [
        (_yes(true), *(sum(row["verdict"] == v and pays(row) is true for row in rows) for v in verdicts))
        for true in (True, False)
    ]
    true = [pays(row) for row in rows]
    lines = []
    for name, says in RULES.items():
        said = [says(row) for row in rows]
        low, high = interval(said, true) if len(set(true)) > 1 else (float("nan"),) * 2
        lines.append((name, f"{balanced(said, true):.2f} [{low:.2f}, {high:.2f}]"))
    return "\n\n".join(
        [
            f"{len(rows)} pairs; rank correlation of predicted and measured gain {rank(rows):.2f}.",
            f"Balanced accuracy and rank correlation by draw of episodes: {', '.join(_draws(rows))}.",
            table(" | ".join(("pays in the loop", *verdicts)), counts),
            table("rule | balanced accuracy", lines),
        ]
    )


def _draws(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return balanced accuracy and rank correlation of each draw of episodes."""
    found = []
    for i in range(len(SEEDS)):
        own = [{**row, "verdict": row["draws"][i][0], "lead": row["draws"][i][1]} for row in rows]
        said = [row["verdict"] != "does not pay" for row in own]
        found.append(f"{balanced(said, [pays(row) for row in own]):.2f} ({rank(own):.2f})")
    return found


def told(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how right the audition is: pairs of the choice, of the test, by method, and of a prior."""
    play = [row for row in rows if row["method"] in METHODS]
    parts = {
        "The way to judge was chosen on these": [row for row in play if row["env"] in CHOSEN],
        "Tested on others": [row for row in play if row["env"] in TESTED],
        **{f"{method}, all pairs": [r for r in play if r["method"] == method] for method in METHODS},
        "DQN-Prior, by the same games": [row for row in rows if row["method"] in PRIORS],
    }
    return "\n\n".join(f"{title}: {summary(own)}" for title, own in parts.items() if own)


def measured(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a study's folder: of each method and model in a place, that of the most seeds."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for file in sorted(folder.glob(f"*/{ROWS}")):
        for row in read_lines(file):
            pair = row["method"], row["model"], row["env"]
            if pair not in rows or row["seeds"] >= rows[pair]["seeds"]:
                rows[pair] = row
    return list(rows.values())


def together(folder: Path) -> str:
    """Return how right the audition is, and write all rows beside."""
    rows = measured(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "audition.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return told(rows)


def main(stored: str, folder: str = "") -> None:
    """Ask the models of stored pairs again, add the pairs of a study's folder, and print how right it is."""
    rows = [
        row
        for row in json.loads(Path(stored).read_text(encoding="utf-8"))
        if row["method"] in {**METHODS, **PRIORS}
    ]
    if folder:
        more = measured(Path(folder))
        fresh = {(row["method"], row["env"]) for row in more}
        rows = [*(row for row in rows if (row["method"], row["env"]) not in fresh), *more]
    said = {place: foretold(env_of(place), PLACES[place]) for place in dict.fromkeys(r["env"] for r in rows)}
    rows = [{**row, **said[row["env"]][row["model"]]} for row in rows]
    write_atomically(Path(stored), (json.dumps(rows, indent=1) + "\n").encode())
    print(told(rows))


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        *(Part(env, arms(own, env, scale), measure=partial(pairs, env)) for env, own in PLACES.items()),
        *(
            Part(env + PRIOR, arms(own, env, scale, PRIORS), measure=partial(pairs, env))
            for env, own in ((place, PLACES[place]) for place in SUGGESTING)
        ),
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

if __name__ == "__main__":
    main(*sys.argv[1:])
