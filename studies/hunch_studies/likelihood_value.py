"""Study of likelihood times value: a prior with errors, a learnt value, and both together.

hunch study likelihood-value
python -m hunch_studies.likelihood_value docs/assets/studies/likelihood-value-written.jsonl    # recorded rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import State
from hunch.envs import make
from hunch.rl.calibration import brier, reliability
from hunch.rl.episodes import play
from hunch.rl.statistics import compared, contrast, over_seeds
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.result import last_quarter
from hunch.runs.stored import finished, read_run
from hunch_contrib.prior.likelihood_value import LikelihoodValue, LikelihoodValueConfig
from hunch_studies.planners import table
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, kept, loaded, runs_of

LASTING: Final = "?error=0.3&systematic=1"
"""The rule's probabilities are permanently wrong in a share of 0.3 of the situations."""
PLACES: Final = {
    "Frozen Lake": ("hunch/FrozenLake-v0", f"scripted:frozenlake{LASTING}", 2_000, ()),
    "Salad": ("hunch/Overcooked-Salad-v0", f"scripted:kitchen{LASTING}", 4_000, ("minilm", "words")),
}
UNEXPLAINED: Final[dict[str, dict[str, Any]]] = {"Frozen Lake": {"explained": False}}
"""Options of the environment for the blank prompt, where observations state the rules."""
TRIED: Final = 40
"""Episodes in which the values of a trained agent are compared with the outcomes."""


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        label: Its label.
        lm: The model.
        options: Options of the method.
        env_options: Options of the environment.
    """

    label: str
    lm: str
    options: dict[str, Any] = field(default_factory=dict)
    env_options: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> LikelihoodValueConfig:
        """Return the settings; a rule gives likelihoods, an encoder similarities."""
        kind = "likelihood" if "scripted" in self.lm or self.lm == "uniform" else "auto"
        prior = PriorConfig(way=kind)  # type: ignore[arg-type]
        common = {"prior": prior, "floor": 0.1, "epsilon": (0.1, 0.1, 1)}
        return LikelihoodValueConfig(**{**common, **self.options})


def lines(rule: str, lms: Sequence[str]) -> tuple[Line, ...]:
    """Return both factors and each alone; variants of discount and likelihood; encoders, and words."""
    return (
        Line("value alone", "uniform", {"factor": "value"}),
        Line("value alone, gamma 0.8", "uniform", {"factor": "value", "gamma": 0.8}),
        Line("likelihood alone", rule, {"factor": "likelihood"}),
        Line("product", rule),
        Line("product, gamma 0.8", rule, {"gamma": 0.8}),
        Line("product, tau 3", rule, {"tau": 3.0}),
        Line("product, tau 3, gamma 0.8", rule, {"tau": 3.0, "gamma": 0.8}),
        *(Line(f"product, {lm}", lm) for lm in lms),
    )


def real_lines(lms: Sequence[str], unexplained: Mapping[str, Any]) -> tuple[Line, ...]:
    """Return the rows of models that score: as a factor, weakened, alone, after the blank prompt; controls.

    Value alone is the product with an even prior.

    Args:
        lms: The models.
        unexplained: Options of the environment by which its observations leave out the rules.
    """
    own = []
    for name, lm in by_name(lms).items():
        asked = {"prior": PriorConfig(way="likelihood")}
        blank = {"prior": PriorConfig(way="likelihood", blank=True)}
        own += [
            Line(f"product, {name}", lm, asked),
            Line(f"product, tau 3, {name}", lm, {"tau": 3.0, **asked}),
            Line(f"likelihood alone, {name}", lm, {"factor": "likelihood", **asked}),
            Line(f"product, {name}, blank prompt", lm, blank, dict(unexplained)),
            Line(f"product, tau 3, {name}, blank prompt", lm, {"tau": 3.0, **blank}, dict(unexplained)),
        ]
    words = (Line("product, words", "words"), Line("product, tau 3, words", "words", {"tau": 3.0}))
    return (Line("value alone", "uniform", {"factor": "value"}), *words, *own)


def arm(line: Line, env: str, steps: int) -> Arm:
    """Return the runs of a row."""
    config = RunConfig(
        method="likelihood-value",
        env=env,
        env_options=line.env_options,
        lm=line.lm,
        steps=steps,
        options=line.config,
    )
    return Arm(line.label, config)


def learnt(run: Path) -> dict[str, Any]:
    """Return the success of a trained agent, and its values' predictions for further episodes."""
    agent, config = load_agent(run)
    result = finished(run)
    assert isinstance(agent, LikelihoodValue)
    assert result is not None
    late = [e.success for e in last_quarter(result.episodes, config.steps)]
    told, came = foretold(agent, config.env, config.seed)
    everything = [e.success for e in result.episodes]
    return {
        "all": float(np.mean(everything)) if everything else 0.0,
        "late": float(np.mean(late)) if late else 0.0,
        "told": told,
        "came": came,
    }


def foretold(agent: LikelihoodValue, env: str, seed: int) -> tuple[list[float], list[bool]]:
    """Return the value of the first action of further episodes, and their success."""
    player, told, came = agent.player(seed), list[float](), list[bool]()

    def act(state: State) -> str:
        return player.act([state])[0]

    for number in range(TRIED):
        steps = list(play(make(env), act, 1_000 + number))
        first = steps[0]
        q = agent.q(first.state)[first.state.options.index(first.action)]
        told.append(float(np.clip(q, 0.0, 1.0)))
        came.append(steps[-1].success)
    return told, came


def measured(env: str, own: Sequence[Line], steps: int, seeds: int, folder: Path) -> str:
    """Return success by row, the verdict over each factor, and the quality of its values."""
    runs = {line.label: runs_of(arm(line, env, steps), seeds, folder) for line in own}
    keys = [(label, seed) for label in runs for seed in range(seeds)]
    rows_of = kept(folder / "values.jsonl", keys, lambda label, seed: learnt(runs[label][seed]))
    found = {label: [row for row in rows_of if row["key"][0] == label] for label in runs}
    late = {label: [one["late"] for one in runs] for label, runs in found.items()}
    rows = []
    for line in own:
        verdicts = [
            "" if line.label == factor else compared(late[line.label], late[factor], best=1.0)
            for factor in ("value alone", "likelihood alone")
        ]
        evidence = "-" if line.config.factor == "value" else loaded(line.lm).evidence
        every = over_seeds([one["all"] for one in found[line.label]])
        rows.append((line.label, evidence, every, over_seeds(late[line.label]), *verdicts))
    head = "arm | evidence | success, all steps | success, last quarter | over value | over likelihood"
    return f"{table(head, rows)}\n\n{_calibration(found)}"


def measured_real(env: str, own: Sequence[Line], steps: int, seeds: int, folder: Path) -> str:
    """Return success by row, and the leads of each product over value alone, words and its blank prompt."""
    runs = {line.label: runs_of(arm(line, env, steps), seeds, folder) for line in own}
    keys = [(label, seed) for label in runs for seed in range(seeds)]
    rows = kept(folder / "success.jsonl", keys, lambda label, seed: shares(runs[label][seed]))
    return real_table(rows)


def shares(run: Path) -> dict[str, Any]:
    """Return the share of successful episodes of a run, of all and of those in the last quarter."""
    result = finished(run)
    assert result is not None
    config = read_run(run)
    successes = [e.success for e in result.episodes]
    late = [e.success for e in last_quarter(result.episodes, config.steps)]
    return {
        "all": float(np.mean(successes)) if successes else 0.0,
        "late": float(np.mean(late)) if late else 0.0,
    }


def real_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a place with its leads, paired by seed, in Markdown."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        label, seed = row["key"]
        found.setdefault(label, {})[seed] = row
    lines = []
    for label, by_seed in found.items():
        every, late = ([row[name] for row in by_seed.values()] for name in ("all", "late"))
        blank = f"{label}, blank prompt"
        factors = label.rpartition(", ")[0]
        others = ("value alone", f"{factors}, words", blank) if blank in found else ("", "", "")
        cells = [_lead(by_seed, found[other]) if other in found else "" for other in others]
        lines.append((label, over_seeds(every), over_seeds(late), *cells))
    head = "arm | success, all steps | success, last quarter"
    return table(f"{head} | over value alone | over words | over its blank prompt", lines)


def recorded(file: Path) -> str:
    """Return the tables of recorded rows of real models, by place."""
    rows = read_lines(file)
    places = dict.fromkeys(row["part"] for row in rows)
    tables = [real_table([row for row in rows if row["part"] == place]) for place in places]
    return "\n\n".join(f"### {place}\n\n{told}" for place, told in zip(places, tables, strict=True))


def _lead(own: Mapping[int, Mapping[str, Any]], other: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the verdict on the success over all steps, with the lead."""
    ours, theirs = ({seed: row["all"] for seed, row in by_seed.items()} for by_seed in (own, other))
    found = contrast(ours, theirs, best=1.0)
    return f"{found.said}, {found.size}"


def _calibration(found: dict[str, list[dict[str, Any]]]) -> str:
    """Return the quality of V of the first action by row: the Brier score, and bins for the product."""
    rows = []
    for label, runs in found.items():
        told, came = ([x for one in runs for x in one[name]] for name in ("told", "came"))
        mean = float(np.mean(came))
        rows.append((label, f"{np.mean(told):.2f}", f"{mean:.2f}", f"{brier(told, came):.3f}"))
    told, came = ([x for one in found["product"] for x in one[name]] for name in ("told", "came"))
    bins = [(f"{b.predicted:.2f}", f"{b.observed:.2f}", b.n) for b in reliability(told, came)]
    head = "arm | V of the first action | success | Brier score"
    return f"{table(head, rows)}\n\nThe product's values, by predicted probability:\n\n" + table(
        "predicted | observed | episodes", bins
    )


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for title, (env, rule, full, encoders) in PLACES.items():
        own, steps = lines(rule, (*encoders, *scale.lms)), scale.steps(full)
        told = partial(measured, env, own, steps, scale.seeds)
        parts.append(Part(title, tuple(arm(line, env, steps) for line in own), beside=told))
    for title, (env, _, full, _) in PLACES.items() if scale.lms else ():
        own, steps = real_lines(scale.lms, UNEXPLAINED.get(title, {})), scale.steps(full)
        told = partial(measured_real, env, own, steps, scale.seeds)
        listed = tuple(arm(line, env, steps) for line in own)
        parts.append(Part(f"{title}, a real model", listed, beside=told, apart=True))
    return parts


STUDIES = {
    "likelihood-value": Study(
        "likelihood-value",
        "Is likelihood times value better than either factor if the value is learnt while acting?",
        "In SayCan the product is ahead of either factor, with skills that were trained beforehand (Ahn et "
        "al., CoRL 2022).",
        "The environment's own actions replace skills, and the value is learnt from success only. The "
        "rules in the model's place (L0) are permanently wrong in 0.3 of the situations, the same ones for "
        "every seed. `minilm` is a sentence encoder (L3).",
        _parts,
        lm_for="likelihood-value",
        seeds=8,
    )
}

if __name__ == "__main__":
    print_table(recorded, "Likelihood times value with real models.")
