"""Study of Bai et al., "Training a Helpful and Harmless Assistant with Reinforcement Learning from Human
Feedback" (2022), in ``hunch/Recipes-v0``: context distillation, rejection sampling, and rounds of preferences
with a policy that is renewed. Each seed has its own writer.

    hunch study hhh
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.methods.decode.best_of_n import BestOfNConfig
from hunch.methods.tune.rlhf import RLHFConfig
from hunch.methods.tune.sft import SFTConfig
from hunch.rl import dataset
from hunch.rl.statistics import over_pairs
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Score
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import write_atomically
from hunch.runs.record import collect, parse_mix
from hunch.runs.stored import finished
from hunch_contrib.tune.context_distillation import ContextDistillationConfig
from hunch_studies.planners import table as table_of
from hunch_studies.rlhf import ENV, RLOO, SCRATCH, STREAMS, mean, score
from hunch_studies.study import Part, Scale, Seeded, Study, place_name, runs_of

WRITER_UPDATES: Final = 600
"""Updates on careless demonstrations, and again on recorded texts with and without their level."""
TEXTS: Final = 2_048
"""Texts of a writer that are recorded, with gold as the reward."""
LEVELS: Final = 5
"""Levels of gold, each with as many texts; the highest is the context to distil."""
DISTILLED: Final = 24
"""Updates of context distillation, on 256 texts each."""
PAIRS: Final = 600
"""Pairs of texts in one round; three rounds have a third of them each."""
UPDATES: Final = 18
"""Updates of the policy on 256 texts, over all rounds."""
AS_FEW: Final = "one round, as few updates as in the last of three"
NS: Final = (1, 4, 16)
"""Texts of which the reward model chooses the best."""
DISTILLING: Final = "Context distillation"


def prepare(data: Path, seeds: int, share: float) -> None:
    """Train the writer of each seed: on demonstrations, then on its texts with and without their level."""
    updates = max(20, round(WRITER_UPDATES * share))
    for seed in range(seeds):
        careless = data / f"careless-{seed}"
        writer = data / f"writer-{seed}"
        texts = data / f"texts-{seed}"
        _sft(careless, seed, updates)
        if not texts.exists():
            dataset.save(_levelled(careless, max(64, round(TEXTS * share)), seed), texts)
        _sft(writer, seed, updates, data=str(texts))


def _sft(out: Path, seed: int, updates: int, data: str = "") -> None:
    """Train a writer from scratch unless it is there; with recorded texts, no environment is played."""
    if finished(out) is None:
        envs = 1 if data else 16
        steps = envs * updates  # one update per step of all streams
        run = RunConfig(method="sft", env=ENV, lm=SCRATCH, envs=envs, steps=steps, options=SFTConfig())
        execute(replace(run, seed=seed, data=data, eval_every=steps, eval_episodes=64), out)


def _levelled(writer: Path, texts: int, seed: int) -> dataset.Dataset:
    """Record texts of a writer; every second one has the level of its gold before its request."""
    recorded = collect(ENV, {}, parse_mix(f"write:hf:{writer}"), texts, seed=seed)
    golds = np.array([sum(episode.rewards) for episode in recorded.episodes])
    edges = np.quantile(golds, np.arange(1, LEVELS) / LEVELS)
    episodes = []
    for i, episode in enumerate(recorded.episodes):
        if i % 2:
            level = int(np.searchsorted(edges, golds[i], side="right"))
            seen = tuple(f"{level} {text}" for text in episode.observations)
            episode = replace(episode, observations=seen)
        episodes.append(episode)
    return replace(recorded, episodes=tuple(episodes))


# ---- arms -------------------------------------------------------------------------------------------------


def of_seed(lm: str, seed: int) -> dict[str, Any]:
    """Return the settings of a seed: the model of its own."""
    return {"lm": lm.format(seed)}


def distilling(data: Path, scale: Scale) -> tuple[Seeded, ...]:
    """Context distillation of the highest level, by another loss, of other contexts, and the teacher."""
    steps = STREAMS * max(3, round(DISTILLED * scale.share))
    run = RunConfig(method="context-distillation", env=ENV, envs=STREAMS, steps=steps)
    run = replace(run, lm=f"hf:{data / 'writer-0'}", eval_every=steps, eval_episodes=64)

    def arm(label: str, context: int, **options: Any) -> Seeded:
        config = ContextDistillationConfig(context=str(context), **options)
        own = replace(run, options=config)
        if config.write == "context":
            own = replace(own, steps=STREAMS, eval_every=STREAMS)
        return Seeded(label, own, partial(of_seed, f"hf:{data}/writer-{{}}"))

    highest = LEVELS - 1
    return (
        arm("distilled", highest),
        arm("distilled by drawn tokens", highest, loss="likelihood"),
        arm("distilled, lowest level", 0),
        arm("under the context", highest, write="context"),
    )


def improving(data: Path, scale: Scale) -> tuple[Seeded, ...]:
    """Preferences in one round or three, with the policy trained further or renewed, and rejection sampling.

    All begin with the distilled writer, and have as many pairs and texts but one: the policy that is renewed
    in the last of three rounds has been updated in that round alone, so it is also compared with one round
    of a third of the updates.
    """
    pairs = max(24, round(PAIRS * scale.share))
    updates = max(3, round(UPDATES * scale.share))
    rounded = -(-2 * pairs // STREAMS) * STREAMS + 3 * STREAMS  # the rounds end in different steps
    run = RunConfig(method="rlhf", env=ENV, envs=STREAMS, steps=rounded + updates * STREAMS, eval_episodes=64)
    distilled = data.parent / place_name(DISTILLING) / place_name("distilled")
    run = replace(run, lm=f"hf:{distilled}/seed-0", eval_every=run.steps)

    def arm(label: str, rounds: int = 1, run: RunConfig = run, **options: Any) -> Seeded:
        own = {**RLOO, "pairs": pairs // rounds, "rounds": rounds, **options}
        return Seeded(label, replace(run, options=RLHFConfig(**own)), lms)

    fewer = -(-2 * pairs // STREAMS) * STREAMS + updates // 3 * STREAMS
    short = replace(run, steps=fewer, eval_every=fewer)
    lms = partial(of_seed, f"hf:{distilled}/seed-{{}}")
    select = replace(run, method="best-of-n", options=BestOfNConfig(pairs=pairs))
    return (
        arm("three rounds, renewed", 3, renew=True),
        arm("three rounds, trained further", 3),
        arm("one round"),
        arm(AS_FEW, run=short),
        arm("one round, shuffled labels", labels="shuffled"),
        Seeded("rejection sampling", replace(select, steps=2 * pairs + 2 * STREAMS), lms),
    )


# ---- tables -----------------------------------------------------------------------------------------------


def judged(
    listed: Sequence[Arm],
    pairs: Sequence[tuple[str, str]],
    seeds: int,
    texts: int,
    before: Path | None,
    folder: Path,
) -> str:
    """Gold, validity and figures of each arm, and the leads of some over others, in Markdown.

    The figures of each seed are written to ``rows.json``. ``before`` names the writers before training.
    """
    scores: dict[str, list[Score]] = {}
    if before is not None:
        runs = [before.with_name(f"{before.name}-{seed}") for seed in range(seeds)]
        scores["no context"] = [score(run, episodes=texts) for run in runs]
    for arm in listed:
        runs = runs_of(arm, seeds, folder)
        for n in NS if arm.config.method == "best-of-n" else (0,):
            label = arm.label if not n else f"best of {n}" if n > 1 else "best of 1, the distilled writer"
            scores[label] = [score(run, n=n, episodes=texts) for run in runs]
    rows = []
    for label, own in scores.items():
        figures = [mean([each.figures.get(name, np.nan) for each in own]) for name in _FIGURES]
        golds = mean([each.episode_return for each in own])
        rows.append((label, golds, mean([each.success.value for each in own]), *figures))
    kept = [
        {"arm": label, "seed": seed, "gold": each.episode_return, "valid": each.success.value, **each.figures}
        for label, own in scores.items()
        for seed, each in enumerate(own)
    ]
    write_atomically(folder / "rows.json", (json.dumps(kept, indent=0) + "\n").encode())
    leads = []
    for one, other in pairs:
        golds_of = ([each.episode_return for each in scores[label]] for label in (one, other))
        leads.append((one, other, over_pairs([a - b for a, b in zip(*golds_of, strict=True)]).short()))
    told = f"Mean over {seeds} seeds with Student's 95 % interval, {texts} texts each; a writer a seed."
    head = "arm | gold | valid | context KL, nats | KL, nats | learned reward | distinct"
    less = table_of("gold of | minus | paired by seed", leads)
    return f"{told}\n\n{table_of(head, rows)}\n\n{less}"


_FIGURES = ("context_kl", "kl", "proxy", "distinct")
_DISTILLED = (
    ("distilled", "no context"),
    ("distilled", "distilled, lowest level"),
    ("distilled", "distilled by drawn tokens"),
    ("under the context", "distilled"),
)
_IMPROVED = (
    ("three rounds, renewed", "one round"),
    ("three rounds, renewed", AS_FEW),
    ("three rounds, renewed", "three rounds, trained further"),
    ("three rounds, renewed", "best of 1, the distilled writer"),
    ("three rounds, renewed", "one round, shuffled labels"),
    ("best of 16", "best of 1, the distilled writer"),
    ("three rounds, renewed", "best of 16"),
)


def _parts(scale: Scale, data: Path) -> list[Part]:
    first, second = distilling(data, scale), improving(data, scale)
    texts = scale.episodes(256)
    return [
        Part(
            DISTILLING,
            first,
            beside=partial(judged, first, _DISTILLED, scale.seeds, texts, data / "writer"),
            prepare=partial(prepare, data, scale.seeds, scale.share),
            apart=True,
        ),
        Part(
            "Rounds of preferences",
            second,
            beside=partial(judged, second, _IMPROVED, scale.seeds, texts, None),
            apart=True,
        ),
    ]


STUDIES = {
    "hhh": Study(
        "hhh",
        "Does a writer do without its context after distillation, and are rounds of preferences worth more "
        "than one?",
        "A context-distilled model nearly behaves as under its prompt (Askell et al., 2021). Rejection "
        "sampling by the preference model and RLHF make it more helpful and harmless, and rounds with data "
        "of the newest policy go on improving it (Bai et al., 2022).",
        "The writer has 100,000 weights and is trained here (L1): it says nothing about language models. Its "
        "context is one word, the level of gold of the text to write, in place of a prompt of 14 dialogues. "
        "Gold is a formula, and preferences are drawn from it with noise. Each seed has its own writer. The "
        "papers distil on given texts, and collect new preferences from people for weeks.",
        _parts,
        seeds=5,
    )
}
