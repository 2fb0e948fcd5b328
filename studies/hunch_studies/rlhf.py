"""Study of reinforcement learning from preferences in ``hunch/Recipes-v0``: what the policy gains, what
selection gains, and where the learned reward goes on rising while the gold one falls.

    hunch study rlhf
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hunch.methods.decode.best_of_n import BestOfNConfig
from hunch.methods.tune.grpo import GRPOConfig
from hunch.methods.tune.rlhf import RLHFConfig
from hunch.methods.tune.sft import SFTConfig
from hunch.rl.statistics import over_pairs
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Score, Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.stored import finished
from hunch_contrib.tune.rest import ReSTConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Seeded, Study, runs_of
from hunch_studies.worlds.recipes import Recipes, careful, gold, requests

ENV = "hunch/Recipes-v0"
SCRATCH = "scratch?width=64&layers=2&vocabulary=128"
STREAMS = 256
UPDATES = 24
"""Updates of the policy, of 256 texts each."""
RLOO = {"advantage": "leave_one_out", "group": 8, "episodes": STREAMS, "learning_rate": 1e-3}
"""Eight answers to each of 32 prompts. One step of RLOO takes a fifth of the time of PPO's 32."""
PAIRS = 2_000
GOLD_UPDATES = 120
"""Updates of 256 texts where gold is the reward."""
ROUNDS = 16
"""Rounds of 3,072 texts where gold is the reward; ten of them write as many texts as these updates."""
MAIN = "Learned rewards"
WRITERS = "Other writers"
"""Title of the part in which each seed has a writer of its own."""
SPLITS = ("training", "held out")
NS = (1, 4, 16, 64)
"""Texts of which the best is chosen; one is the model after SFT."""


def write_well(data: Path, updates: int, name: str = "writer", more_words: str = "", seed: int = 0) -> None:
    """Train the writer on careless demonstrations, unless it is there."""
    steps = 16 * updates
    options = SFTConfig(more_words=more_words)
    run = RunConfig(method="sft", env=ENV, lm=SCRATCH, envs=16, steps=steps, options=options, seed=seed)
    if finished(data / name) is None:
        execute(replace(run, eval_every=steps, eval_episodes=1_000), data / name)


def parts(data: Path, scale: Scale) -> dict[str, tuple[Arm, ...]]:
    """Return the arms by part: learned rewards and their controls first."""
    pairs, updates = round(PAIRS * scale.share), max(3, round(UPDATES * scale.share))
    run = RunConfig(method="rlhf", env=ENV, lm=f"hf:{data / 'writer'}", envs=STREAMS, eval_episodes=256)

    def arm(label: str, share: float = 1.0, **options: Any) -> Arm:
        own = max(20, round(pairs * share))
        first = options.get("rounds", 1) * -(-(2 * own + STREAMS) // STREAMS) * STREAMS
        config = RLHFConfig(pairs=own, **{**RLOO, **options})
        steps = first + updates * STREAMS
        return Arm(label, replace(run, steps=steps, eval_every=updates * STREAMS // 3, options=config))

    select = replace(
        run, method="best-of-n", steps=2 * pairs + 2 * STREAMS, options=BestOfNConfig(pairs=pairs)
    )
    steps = 256 * max(3, round(GOLD_UPDATES * scale.share))
    direct = GRPOConfig(kl=0.0, entropy=0.02, learning_rate=1e-3, episodes=256, micro=256, max_tokens=40)
    on_gold = replace(run, method="grpo", envs=256, steps=steps, options=direct)
    each = round(3_072 * scale.share) // STREAMS * STREAMS or STREAMS

    def rest(label: str, **options: Any) -> Arm:
        config = ReSTConfig(episodes=each, micro=256, max_tokens=40, **options)
        steps = each * max(2, round(ROUNDS * scale.share))
        return Arm(label, replace(run, method="rest", steps=steps, eval_every=2 * each, options=config))

    ppo: dict[str, Any] = {"advantage": "gae", "group": 1, "learning_rate": 3e-4}
    learned = (arm("RLOO"), arm("RLOO, shuffled labels", labels="shuffled"))
    return {
        MAIN: learned,
        "Selection": (Arm("best of n", select),),
        "Gold as the reward": (
            Arm("GRPO on gold", on_gold),
            rest("ReST on gold"),
            rest("ReST, shuffled rewards", shuffle=True),
        ),
        "Weight of the divergence": (arm("KL 0.02", kl=0.02), arm("KL 0", kl=0.0)),
        "Number of pairs": (arm("600 pairs", 0.3), arm("60 pairs", 0.03)),
        "Other algorithms": (arm("PPO", **ppo), arm("ptx 0.5", ptx=0.5), arm("3 rounds", 0.33, rounds=3)),
        WRITERS: tuple(Seeded(own.label, own.config, partial(_own_writer, data)) for own in learned),
    }


def _own_writer(data: Path, seed: int) -> dict[str, Any]:
    return {"lm": f"hf:{data / writer_of(seed)}"}


def writer_of(seed: int) -> str:
    """Return the name of the run of a seed's own writer."""
    return f"writer-{seed}"


# ---- tables -----------------------------------------------------------------------------------------------


def judged(listed: Sequence[Arm], seeds: int, folder: Path, *, episodes: int) -> str:
    """Gold, learned reward, divergence, validity and variety of each arm at the end, in Markdown.

    The figures of each seed are written to ``rows.json`` in the folder.
    """
    rows, kept = [], []
    for arm in listed:
        runs = runs_of(arm, seeds, folder)
        for n in NS if arm.config.method == "best-of-n" else (0,):
            label = arm.label if not n else "SFT" if n == 1 else f"best of {n}"
            texts = max(2, episodes // max(1, n // 4))
            scores = [[score(run, split, n, texts) for run in runs] for split in SPLITS]
            golds = [mean([own.episode_return for own in each]) for each in scores]
            figures = [mean([own.figures.get(name, np.nan) for own in scores[0]]) for name in _FIGURES]
            rows.append((label, *golds, *figures, mean([own.success.value for own in scores[0]]), texts))
            kept += [
                {"arm": label, "seed": seed, "split": split, "gold": own.episode_return}
                | {"valid": own.success.value, "texts": texts, **own.figures}
                for split, each in zip(SPLITS, scores, strict=True)
                for seed, own in enumerate(each)
            ]
    write_atomically(folder / "rows.json", (json.dumps(kept, indent=0) + "\n").encode())
    head = (
        "arm | gold | gold, held-out requests | learned reward | KL, nats | distinct | tokens | valid | texts"
    )
    told = f"Mean over {seeds} seeds with Student's 95 % interval; texts a cell and seed in the last column."
    return f"{told}\n\n{table_of(head, rows)}"


_FIGURES = ("proxy", "kl", "distinct", "length")


def score(run: Path, split: str = SPLITS[0], n: int = 0, episodes: int = 400) -> Score:
    """Return the result of a run in one of the splits; ``n`` is best-of-n's."""
    options = {"n": n} if n else {}
    name = f"{run.name}-{split.replace(' ', '-')}-{n}"
    trial = Trial(run=run, env_options={"split": split}, options=options, episodes=episodes, seed=17)
    return evaluate_run(trial, run.parent / "evaluations" / name)


def mean(values: Sequence[float]) -> str:
    """Return the mean over seeds with Student's 95 % interval; a dash if there is no value."""
    from scipy.stats import t

    known = [value for value in values if value == value]
    if len(known) < 2:
        return f"{known[0]:.2f}" if known else "-"
    half = float(t.ppf(0.975, len(known) - 1) * np.std(known, ddof=1) / len(known) ** 0.5)
    return f"{np.mean(known):.2f} [{np.mean(known) - half:.2f}, {np.mean(known) + half:.2f}]"


def known_golds(writer: Path) -> str:
    """Say what demonstrations, the best known texts, and the writer earn, also at a lower temperature."""
    asked = {str(own): own for own in requests("training")}
    shown = [gold(asked[str(ask)], text) for ask, texts in Recipes().examples for text in texts]
    best = [gold(own, careful(own)) for own in asked.values()]
    written = [_written(writer, heat) for heat in (1.0, 0.5)]
    return (
        f"Gold of the {len(shown):,} demonstrations {np.mean(shown):.2f}; of the best known texts "
        f"{np.mean(best):.2f}, which is the most that the formula allows; of the writer, in 1,000 texts, "
        f"{written[0]}, and at temperature 0.5 {written[1]}."
    )


def _written(writer: Path, heat: float) -> str:
    trial = Trial(run=writer, options={"temperature": heat}, episodes=1_000, seed=17)
    own = evaluate_run(trial, writer.parent / "evaluations" / f"temperature-{heat}")
    return f"{own.episode_return:.2f} ({own.success.value:.2f} valid)"


def curve(run: Path) -> list[tuple[float, float, float, float]]:
    """Return divergence, learned reward, gold and its standard error at each evaluation of stage 3."""
    told = {line["step"]: line for line in read_lines(run / "metrics.jsonl") if "eval_proxy" in line}
    golds: dict[int, list[float]] = {}
    for line in read_lines(run / "episodes.jsonl"):
        if line["evaluation"] and line["step"] in told:
            golds.setdefault(line["step"], []).append(line["return"])
    return [
        (
            told[step]["eval_kl"],
            told[step]["eval_proxy"],
            float(np.mean(own)),
            float(np.std(own) / len(own) ** 0.5),
        )
        for step, own in sorted(golds.items())
    ]


def turn(points: Sequence[tuple[float, float, float, float]]) -> float | None:
    """Return the divergence at which gold is highest, if it falls later while the learned reward does not.

    The fall counts if it is more than twice the standard error of the difference.
    """
    if not points:
        return None
    best = max(points, key=lambda point: point[2])
    last = points[-1]
    fall = best[2] - last[2]
    error = float(np.hypot(best[3], last[3]))
    return best[0] if fall > 2 * error and last[1] >= best[1] else None


def overoptimised(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Gold and learned reward along the training, and where gold turns, in Markdown."""
    rows = []
    for arm in listed:
        if arm.config.method != "rlhf":
            continue
        for seed, run in enumerate(runs_of(arm, seeds, folder)):
            points = curve(run)
            path = ", ".join(f"{kl:.1f}: {gold:.2f} / {proxy:.2f}" for kl, proxy, gold, _ in points)
            at = turn(points)
            rows.append((arm.label, seed, path, "not shown" if at is None else f"{at:.1f}"))
    text = "KL in nats: gold / learned reward, 256 texts each; then the KL at which gold turns."
    return f"{text}\n\n{table_of('arm | seed | along the training | turns at', rows)}"


def over_writers(data: Path, listed: Sequence[Arm], seeds: int, folder: Path, *, episodes: int) -> str:
    """Return gold with a writer of its own for each seed, and what each arm adds to its writer, in Markdown.

    So the intervals are over writers, labels, policies and evaluations together.
    """
    runs = {"SFT": [data / writer_of(seed) for seed in range(seeds)]}
    runs |= {arm.label: runs_of(arm, seeds, folder) for arm in listed}
    golds = {
        label: [score(run, episodes=episodes).episode_return for run in own] for label, own in runs.items()
    }
    first, control = (arm.label for arm in listed)
    pairs = ((first, "SFT"), (first, control), (control, "SFT"))
    leads = [
        (f"{label} minus {other}", over_pairs(list(np.subtract(golds[label], golds[other]))))
        for label, other in pairs
    ]
    rows = [(label, mean(own), ", ".join(f"{gold:.2f}" for gold in own)) for label, own in golds.items()]
    shown = table_of("arm | gold | by writer", rows)
    return f"{shown}\n\n{table_of('difference, writer by writer | gold', leads)}"


def _write_several(data: Path, updates: int, seeds: int) -> None:
    for seed in range(seeds):
        write_well(data, updates, writer_of(seed), seed=seed)


def _tables(listed: Sequence[Arm], seeds: int, folder: Path, *, episodes: int) -> str:
    told = judged(listed, seeds, folder, episodes=episodes), overoptimised(listed, seeds, folder)
    return "\n\n".join((known_golds(folder.parent / "data" / "writer"), *told))


def _parts(scale: Scale, data: Path) -> list[Part]:
    updates = max(20, round(1_000 * scale.share))
    one = partial(write_well, data, updates)
    several = partial(_write_several, data, updates, scale.seeds)
    episodes = scale.episodes(400)
    return [
        Part(
            title,
            listed,
            beside=partial(over_writers, data, listed, scale.seeds, episodes=episodes)
            if title == WRITERS
            else partial(_tables, listed, scale.seeds, episodes=episodes),
            prepare=several if title == WRITERS else one,
            apart=True,  # their budgets differ by the texts that are compared
        )
        for title, listed in parts(data, scale).items()
    ]


STUDIES = {
    "rlhf": Study(
        "rlhf",
        "What does a policy gain from a reward model beyond selection, and where does its gold reward turn?",
        "A policy trained on a reward model is preferred to SFT (Ouyang et al., NeurIPS 2022). Along the "
        "training the learned reward rises while the gold reward first rises and then falls, sooner with "
        "fewer pairs (Gao et al., Scaling Laws for Reward Model Overoptimization, ICML 2023).",
        "The writer has 100,000 weights and is trained here (L1): it says nothing about language models. "
        "Gold is a formula, and preferences are drawn from it with noise. All hyper-parameters are ours.",
        _parts,
        seeds=5,
    )
}
