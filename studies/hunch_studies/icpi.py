"""Study of "Large Language Models can Implement Policy Iteration" (Brooks et al., NeurIPS 2023): ICPI and its
baselines on their six domains, by the error of a scripted model, and with the pocket model.

The regret of an episode is ``info["optimal"]`` of its start minus its return, discounted by the domain's
``log_gamma``. It is computed by replaying the episode from its seed and actions. A run's result is the mean
over the episodes that ended in the last quarter of its steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch import methods
from hunch.envs import make
from hunch.report.curves import Points, draw
from hunch.rl.episodes import replay
from hunch.rl.rollout import Finished, TextEnvironment
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.result import last_quarter
from hunch.runs.stored import finished
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, rows_beside

DOMAINS = ("Chain", "DistractorChain", "Maze", "MiniCatch", "MiniInvaders", "PointMass")
ERRORS = (0.0, 0.1, 0.3)
SCRIPTED = "scripted:icpi-nearest"
MODELS_IN = ("Chain", "Maze")
"""Domains in which models are compared."""
STEPS = 200
ASKED: Final[Mapping[str, Any]] = {"prompts": "per-episode", "policy_temperature": 0.5}
"""Settings for models that are not scripted: one order of the examples per episode, and a temperature of
actions at which less likely actions occur, but hardly any names that do not exist."""
EARLY = 50
"""Steps of the beginning, with which the last quarter of a run is compared."""
FINAL = ("final", "optimum")
"""Names of a run's results: mean regret and mean optimum of its last quarter."""
CHOOSING: Final[Mapping[str, Any]] = {**ASKED, "answers": "choose", "policy_temperature": 1.0}
"""Settings with which actions, ends and known rewards are drawn by likelihood among the possible ones."""
WRITTEN: Final[Mapping[str, Any]] = {**CHOOSING, "context": 1000}
"""The same with a quarter of the paper's context: a small model on two processors reads such prompts in a
quarter of the time."""
NEW: Final = ("Tug", "Bulbs")
"""Domains of our own, which no training of the pocket model had in view."""
WINDOW = 8
"""Episodes over which the picture's running mean is taken."""


def arm(label: str, domain: str, method: str, lm: str = "", *, hints: bool = True, **options: Any) -> Arm:
    """Return an arm of the study."""
    config = methods.find(method).config_class(**options)
    env, shown = f"hunch/{domain}-v0", {} if hints else {"hints": False}
    return Arm(
        label, RunConfig(method=method, env=env, env_options=shown, lm=lm, steps=STEPS, options=config)
    )


def _arms(domain: str, lms: Sequence[str], hints: bool) -> Iterator[Arm]:
    if hints:
        for error in ERRORS:
            yield arm(f"ICPI, error {error}", domain, "icpi", f"{SCRIPTED}?error={error}")
        yield arm("No ArgMax, error 0", domain, "icpi-no-argmax", f"{SCRIPTED}?error=0.0")
    yield arm("ICPI, knowing nothing", domain, "icpi", "uniform", hints=hints)
    for model in dict.fromkeys(("pocket", *lms)):
        yield arm(f"ICPI, {model}", domain, "icpi", model, hints=hints, **ASKED)
        yield arm(f"No ArgMax, {model}", domain, "icpi-no-argmax", model, hints=hints, **ASKED)
    for label, model in (("knowing nothing", "uniform"), ("pocket", "pocket")):
        yield arm(f"ICPI, {label}, choosing", domain, "icpi", model, hints=hints, **CHOOSING)
    yield arm("Matching Model", domain, "matching", hints=hints)
    yield arm("Tabular Q", domain, "tabular-q", hints=hints)


def _parts(scale: Scale, data: Path) -> list[Part]:
    """Yield each domain as published; for models that are not scripted also with states without hints."""
    parts = []
    for domain in DOMAINS[:1] if scale.smoke else DOMAINS:
        for hints in (True, False):
            title = domain if hints else f"{domain} without hints"
            arms = tuple(_arms(domain, scale.lms, hints))
            parts.append(Part(title, arms, measure=partial(regrets, title)))
    return parts


def _models(scale: Scale, data: Path) -> list[Part]:
    """Yield ICPI by model and by how often prompts are drawn; with states without hints, which are short."""
    parts = []
    for domain in MODELS_IN[:1] if scale.smoke else MODELS_IN:
        models = dict.fromkeys(("uniform", *scale.lms, "pocket"))
        by_model = [arm(m, domain, "icpi", m, hints=False, **ASKED) for m in models]
        by_prompts = [
            arm(f"{model}, {prompts}", domain, "icpi", model, hints=False, **{**ASKED, "prompts": prompts})
            for model in (f"{SCRIPTED}?error=0.0", f"{SCRIPTED}?error=0.1", "pocket")
            for prompts in ("per-episode", "per-prediction")
        ]
        for title, arms in ((domain, by_model), (f"{domain} by prompts", by_prompts)):
            parts.append(Part(title, tuple(arms), measure=partial(regrets, title)))
    return parts


def _roles(scale: Scale, data: Path) -> list[Part]:
    """Yield each domain, with the pocket model in both roles, in one of them, and in none, and look-up."""
    model = scale.lms[0] if scale.lms else "pocket"
    parts = []
    for domain in DOMAINS[:1] if scale.smoke else (*DOMAINS, *NEW):
        filled = (
            ("knowing nothing", "uniform", "uniform"),
            (model, model, model),
            (f"{model} as the world model only", model, SCRIPTED),
            (f"{model} as the policy only", SCRIPTED, model),
            ("rules", SCRIPTED, SCRIPTED),
        )
        arms = (
            *(
                arm(label, domain, "icpi", world, hints=False, policy_lm=policy, **CHOOSING)
                for label, world, policy in filled
            ),
            arm("Matching Model", domain, "matching", hints=False),
        )
        parts.append(Part(domain, arms, measure=partial(regrets, domain)))
    return parts


def _written(scale: Scale, data: Path) -> list[Part]:
    """Yield two domains, with a model that writes in both roles or in one, and one that knows nothing."""
    named, parts = by_name(scale.lms), []
    for domain in MODELS_IN[:1] if scale.smoke else MODELS_IN:
        rows = [("knowing nothing", "uniform", "uniform"), ("rules", SCRIPTED, SCRIPTED)]
        # Random rollouts of a right world model are worth something. So beside a model in one role stands one
        # that knows nothing, in the same role. As the world model it names no next state: its rollouts end at
        # once, and whatever the policy, it acts as one that knows nothing in both roles.
        for name, model in (("knowing nothing", "uniform"), *named.items()):
            rows.append((f"{name} as the world model only", model, SCRIPTED))
            rows.append((f"{name} as the policy only", SCRIPTED, model))
        rows.extend((name, lm, lm) for name, lm in named.items())
        arms = [
            arm(label, domain, "icpi", world, hints=False, policy_lm=policy, **WRITTEN)
            for label, world, policy in rows
        ]
        # The paper's baselines: the policy of the last episodes acts by itself; look-up; Q-learning.
        arms += [
            arm(f"{name}, No ArgMax", domain, "icpi-no-argmax", lm, hints=False, **WRITTEN)
            for name, lm in named.items()
        ]
        arms.append(arm("Matching Model", domain, "matching", hints=False))
        arms.append(arm("Tabular Q", domain, "tabular-q", hints=False))
        parts.append(Part(domain, tuple(arms), measure=partial(_recorded, domain)))
    return parts


def _recorded(title: str, arms: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Write a row for each finished run into ``rows.jsonl``; return the table of all rows there, in Markdown.

    Rows of other arms, which an earlier command ran into the same folder, are kept.
    """
    env = make(arms[0].config.env)
    rows = rows_beside(folder / "rows.jsonl", [arm.label for arm in arms], seeds)
    for job in jobs(arms, seeds, folder):
        result = finished(job.folder)
        if result is None:
            continue
        played = [(episode, *regret(env, episode)) for episode in result.episodes]
        final = _points(played)
        early = [value for episode, value, _ in played if episode.step <= EARLY]
        late = last_quarter(result.episodes, STEPS)
        figures = {
            "regret": float(final["final"][-1]),
            "early": float(np.mean(early)),
            "optimum": float(final["optimum"][-1]),
            "success": float(np.mean([episode.success for episode in late])),
        }
        row = {"part": title, "arm": job.arm.label, "seed": job.seed}
        rounded = {name: round(figure, 4) for name, figure in figures.items()}
        rows.append({**row, **rounded, "episodes": len(result.episodes)})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    write_atomically(folder / "rows.jsonl", lines.encode())
    return f"{written(rows)}\n\n{regrets(title, arms, seeds, folder)}"


def regrets(title: str, arms: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Draw regret over steps; return the picture with a table of the final regret, in Markdown."""
    env = make(arms[0].config.env)
    lines = ["| arm | seeds | optimum | final regret |", "|---|---|---|---|"]
    curves: dict[Arm, list[Points]] = {}
    for job in jobs(arms, seeds, folder):
        result = finished(job.folder)
        if result is not None:
            played = [(episode, *regret(env, episode)) for episode in result.episodes]
            curves.setdefault(job.arm, []).append(_points(played))
    for line, runs in curves.items():
        final, optimum = (over_seeds([float(run[name][-1]) for run in runs]) for name in FINAL)
        lines.append(f"| {line.label} | {len(runs)} | {optimum.value:.2f} | {final} |")
    draw({title: curves}, folder / "regret.png", y="regret")
    return "\n".join(lines) + f"\n\n![Regret in {title}]({folder.name}/regret.png)"


def regret(env: TextEnvironment, episode: Finished) -> tuple[float, float]:
    """Replay an episode; return its regret and the optimum of its start."""
    gamma: float = env.unwrapped.wording.log_gamma  # type: ignore[attr-defined]
    rewards = [t.reward for t in replay(env, episode)]
    optimum = float(env.unwrapped.optimal)  # type: ignore[attr-defined]
    return optimum - sum(gamma**t * reward for t, reward in enumerate(rewards)), optimum


def _points(played: Sequence[tuple[Finished, float, float]]) -> Points:
    """Return a run's running mean of the regret; its final regret and optimum are repeated at every point."""
    steps, values = np.array([(episode.step, value) for episode, value, _ in played]).T
    late = set(last_quarter([episode for episode, _, _ in played], STEPS))
    final = [(value, optimum) for episode, value, optimum in played if episode in late]
    mean, optimum = np.mean(final, axis=0)
    running = [values[max(0, i - WINDOW + 1) : i + 1].mean() for i in range(len(values))]
    same = np.ones_like(steps)
    return {"steps": steps, "regret": np.array(running), "final": mean * same, "optimum": optimum * same}


STUDIES = {
    "icpi": Study(
        "icpi",
        "Does a frozen model that sees only its own episodes improve a policy, and how good must it be?",
        "With code-davinci-002, ICPI's regret falls in all six domains within a few hundred steps; none of "
        "the three baselines learns in all of them, and smaller models do not learn (figures 2 and 3).",
        "No Codex: `scripted:icpi-nearest` predicts by the domain's rules with the stated error rate, and "
        "its policy repeats the action shown in the nearest state (L0); `pocket` is our own small model "
        "(L1). Prompts of `pocket` are drawn once per episode; the original's states have hints. All "
        "settings and their sources: [ICPI](../methods/icpi.md#settings).",
        _parts,
        seeds=8,
        lm_for="icpi",
    ),
    "icpi-models": Study(
        "icpi-models",
        "Which models learn with ICPI, and does drawing prompts only once per episode change the result?",
        "code-davinci-002 learns, code-cushman-001 sometimes; GPT-J, InCoder and OPT-30B do not (figure 3). "
        "The original draws prompts anew for every prediction.",
        "Two domains, without hints. `--lm SPEC SPEC ...` adds models, such as `pocket` models of several "
        "trainings.",
        _models,
        seeds=8,
        lm_for="icpi",
    ),
    "icpi-roles": Study(
        "icpi-roles",
        "Which role of ICPI does a model fill well enough, the world model or the policy?",
        "The paper has no such experiment: one model fills both roles.",
        "States have no hints, prompts are drawn once per episode, and actions, ends and known rewards are "
        "drawn by likelihood among the possible ones. The other role is filled by `scripted:icpi-nearest` "
        "without errors (L0). Tug and Bulbs are our own; no training of `pocket` had them in view.",
        _roles,
        seeds=8,
        lm_for="icpi",
    ),
    "icpi-written": Study(
        "icpi-written",
        "Does a small model that writes improve a policy with ICPI, in both roles or in one of them?",
        "code-davinci-002 learns; GPT-J, InCoder and OPT-30B do not (figure 3).",
        "Two domains, without hints, and 1,000 tokens of context, where the paper has 4,000. Prompts are "
        "drawn once per episode; actions, ends and known rewards are drawn by likelihood among the possible "
        "ones. Where a model fills one role, `scripted:icpi-nearest` without errors fills the other (L0).",
        _written,
        lm_for="icpi",
    ),
}


def written(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return each recorded arm's final regret, its fall, and its leads over two controls, in Markdown."""
    by_arm: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        by_arm.setdefault(row["arm"], {})[row["seed"]] = row
    others = [name for name in by_arm if name == "knowing nothing" or name.endswith("No ArgMax")]
    head = ["arm", "seeds", "success", "final regret", f"fall since the first {EARLY} steps"]
    head += [f"below {name}" for name in others]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, own in by_arm.items():
        cells = [name, str(len(own)), f"{np.mean([row['success'] for row in own.values()]):.2f}"]
        cells.append(str(over_seeds([row["regret"] for row in own.values()])))
        falls = [row["early"] - row["regret"] for row in own.values()]
        cells.append(over_pairs(falls).short() if len(falls) > 1 else "")
        for other in others:
            seeds = sorted(set(own) & set(by_arm[other]))
            gaps = [by_arm[other][seed]["regret"] - own[seed]["regret"] for seed in seeds]
            cells.append(over_pairs(gaps).short() if name != other and len(gaps) > 1 else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print_table(lambda file: written(read_lines(file)), "Final regret of ICPI with a model that writes.")
