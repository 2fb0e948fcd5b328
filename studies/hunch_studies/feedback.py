"""Study of five ways in which feedback improves a text or its writer: compression by a reward without
references, critique by principles, attack, search with rewind, and repair.

    hunch study feedback
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hunch.core import State
from hunch.envs.recipes import gold, is_valid, requests, split_clauses
from hunch.methods.tune.compress import CompressConfig
from hunch.methods.tune.constitutional import ConstitutionalConfig
from hunch.methods.tune.rlhf import RLHFConfig
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig
from hunch.runs.loading import load_agent
from hunch_studies.planners import table as table_of
from hunch_studies.rlhf import ENV as RECIPES
from hunch_studies.rlhf import RLOO, mean, write_well
from hunch_studies.rules.critic import harms
from hunch_studies.study import Part, Scale, Study, runs_of

# ---- compression ------------------------------------------------------------------------------------------

COMPRESSION = "hunch/Compression-v0"
READER = "scratch?width=64&layers=2&vocabulary=128"
CHOICES, GROUP = 24_000, 9
"""Rewards that each arm may ask for, and choices for a sentence in each update."""
STREAMS = 16 * GROUP
SENTENCES = 300
"""Held-out sentences; climbing meets each about 80 times."""


def compressing(scale: Scale) -> tuple[Arm, ...]:
    """The policy, parts of its reward, and the controls; climbing works on the sentences it is tested on."""
    steps = max(3, round(CHOICES * scale.share / STREAMS)) * STREAMS
    run = RunConfig(method="compress", env=COMPRESSION, lm=READER, envs=STREAMS, steps=steps)
    run = replace(run, eval_every=steps, eval_episodes=64)

    def arm(label: str, env: dict[str, Any] | None = None, short: bool = False, **options: Any) -> Arm:
        own = replace(run, steps=STREAMS, eval_every=STREAMS) if short else run
        config = CompressConfig(learning_rate=1e-3, group=GROUP, **options)
        return Arm(label, replace(own, env_options=env or {}, options=config))

    held: dict[str, Any] = {"split": "held out", "sentences": SENTENCES}
    return (
        arm("compress"),
        arm("compress, shuffled rewards", shuffle=True),
        arm("compress, without fluency", {"parts": "content,length"}),
        arm("compress, without content", {"parts": "fluency,length"}),
        arm("hill climbing, the same sentences", held, choose="climb"),
        arm("first words", short=True, choose="first"),
        arm("random words", short=True, choose="random"),
    )


def compressed(listed: Sequence[Arm], seeds: int, episodes: int, folder: Path) -> str:
    """F1, whole reward and words of each arm on held-out sentences, in Markdown."""
    rows = []
    for arm in listed:
        scores = {
            measure: [
                evaluated(run, episodes, split="held out", sentences=SENTENCES, measure=measure)
                for run in runs_of(arm, seeds, folder)
            ]
            for measure in ("gold", "reward")
        }
        told = [mean([own.episode_return for own in scores[name]]) for name in ("gold", "reward")]
        kept = mean([own.figures["kept"] for own in scores["gold"]])
        rows.append((arm.label, *told, kept, mean([own.success.value for own in scores["gold"]])))
    return table_of("arm | F1 against gold | reward, all parts | words | valid", rows)


def evaluated(run: Path, episodes: int, **env: Any) -> Any:
    """Return the score of a run in a changed environment, with the same episodes for all runs."""
    options = {"parts": "fluency,content,length"} if "measure" in env else {}
    name = "-".join([run.name, *(str(value).replace(" ", "-") for value in env.values())])
    trial = Trial(run=run, env_options={**options, **env}, episodes=episodes, seed=17)
    return evaluate_run(trial, run.parent / "evaluations" / name)


# ---- Constitutional AI ------------------------------------------------------------------------------------

HELPFUL = "foods,spice,close,length"
"""What people label in this part; harm is the judge's alone."""
PRINCIPLES = {
    "diet": "The answer uses no food that the diet of the request forbids.",
    "sea": "The answer sounds like the sea.",
}
DRAFTS, PAIRS, UPDATES = 2_048, 600, 16
ERRORS = (0.1, 0.3, 0.5)
"""Shares of the critic's critiques and verdicts that are wrong."""


def state_principles(data: Path, updates: int) -> None:
    """Train the careless writer, and write the principles down."""
    write_well(data, updates)
    for name, text in PRINCIPLES.items():
        (data / f"{name}.txt").write_text(text + "\n")


def criticised(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """The first stage, its controls and wrong critics; then both stages, a control, and gold labels."""
    drafts, pairs = (max(8, round(n * scale.share)) for n in (DRAFTS, PAIRS))
    run = RunConfig(method="constitutional", env=RECIPES, lm=f"hf:{data / 'writer'}", envs=256)
    rl: dict[str, Any] = {**RLOO, "pairs": pairs}
    later = -(-2 * pairs // 256) * 256 + 256 * max(2, round(UPDATES * scale.share))

    def arm(
        label: str, second: bool = False, principle: str = "diet", error: float = 0.0, **more: Any
    ) -> Arm:
        given: dict[str, Any] = {"judge": f"scripted:critic?error={error}", "principles": str(data / f"{principle}.txt")}
        own = ConstitutionalConfig(compare=second, drafts=drafts, demonstrations=100, **given, **rl, **more)
        steps = -(-drafts // 256) * 256 + later * second
        env = {"terms": HELPFUL}
        return Arm(
            label, replace(run, steps=steps, eval_every=steps, eval_episodes=64, env_options=env, options=own)
        )

    people = replace(
        run, method="rlhf", options=RLHFConfig(**rl), steps=later, eval_every=later, eval_episodes=64
    )
    return (
        arm("revisions"),
        arm("revisions, another principle", principle="sea"),
        arm("revisions, no critique", critique=False),
        *(arm(f"revisions, critic error {error}", error=error) for error in ERRORS),
        arm("both stages", True),
        arm("both stages, another principle", True, "sea"),
        Arm("RLHF, gold labels of everything", people),
    )


def harmed(listed: Sequence[Arm], seeds: int, texts: int, data: Path, folder: Path) -> str:
    """Harmful clauses per answer, helpful gold, and validity of each arm, in Markdown."""
    every = {"the writer before": [data / "writer"]} | {a.label: runs_of(a, seeds, folder) for a in listed}
    rows = []
    for label, runs in every.items():
        each = np.array([[*harm(run, texts), harm(run, texts, "held out")[0]] for run in runs])
        rows.append((label, *(mean(list(column)) for column in each.T)))
    return table_of(
        "arm | harmful clauses | helpful gold | valid | distinct | harmful, held-out requests", rows
    )


def harm(run: Path, n: int, split: Literal["training", "held out"] = "training") -> tuple[float, ...]:
    """Return harmful clauses an answer, helpful gold, and shares of valid and distinct ones, of n answers."""
    agent, _ = load_agent(run)
    known, rng = requests(split), np.random.default_rng(5)
    asked = [known[i] for i in rng.integers(len(known), size=n)]
    texts = agent.player(7).act([State(str(own)) for own in asked])
    both = list(zip(asked, texts, strict=True))
    helps = [gold(own, text, tuple(HELPFUL.split(","))) for own, text in both]
    valid = [is_valid(split_clauses(text)) for text in texts]
    harmful = [len(harms(str(own), text)) for own, text in both]
    return float(np.mean(harmful)), float(np.mean(helps)), float(np.mean(valid)), len(set(texts)) / n


def _parts(scale: Scale, data: Path) -> list[Part]:
    updates, texts = max(20, round(1_000 * scale.share)), scale.episodes(1_000)
    short, taught = compressing(scale), criticised(scale, data)
    told = partial(compressed, short, scale.seeds, scale.episodes(600))
    return [
        Part("Compression", short, beside=told, apart=True),
        Part(
            "Constitutional AI",
            taught,
            beside=partial(harmed, taught, scale.seeds, texts, data),
            prepare=partial(state_principles, data, updates),
            apart=True,
        ),
    ]


STUDIES = {
    "feedback": Study(
        "feedback",
        "What do rewards without references, critique, attack, rewind and repair bring?",
        "Each system is above its baselines (Ghalandari et al., ACL 2022; Bai et al., Constitutional AI, "
        "2022; Perez et al., EMNLP 2022; Li et al., RAIN, ICLR 2024; Richardson et al., SYNDICOM, "
        "SIGDIAL 2023).",
        "All models have about 100,000 weights and are trained here, and critics are rules with an error "
        "rate: nothing here is about language models. All hyper-parameters are ours.",
        _parts,
        seeds=5,
    )
}
