"""A real pretrained model improved by reinforcement learning on a task with a verifier, beside what could
explain the gain: SFT alone, rewards that are shuffled, selection, and cloning of what was right.

    hunch study trained

So far a recipe: it starts (``--smoke``), and its full runs have not been made. An arm that learns writes
about 2,600 texts of at most 12 tokens. For SmolLM2-135M on two cores we reckon with up to an hour for such an
arm, so four hours for a seed and twelve for three; this is an estimate, not a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hunch.methods.decode.best_of_n import BestOfNConfig
from hunch.methods.tune.grpo import GRPOConfig
from hunch.methods.tune.sft import SFTConfig
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.stored import finished
from hunch_contrib.tune.rest import ReSTConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study, runs_of

TASK: Final = "reasoning:spell_backward?min_word_len=3&max_word_len=6"
"""Short answers in an easy format: of the tasks that models of this size were seen to learn (prime-rl's
reverse-text)."""
MODEL: Final = "smollm2?chat=true&train=lora&rank=16"
ADAPTED: Final = "?chat=true&train=lora&rank=16"
"""Options of the model after SFT, which is a folder."""
TOKENS: Final = 12
SFT_STEPS: Final = 60
"""Updates of SFT, of 16 demonstrations each."""
STREAMS: Final = 32
UPDATES: Final = 40
"""Updates of GRPO, of 64 texts each: eight answers to each of eight questions."""
EPISODES: Final = 64
ROUNDS: Final = 4
"""Rounds of filtered cloning; together they write as many texts as GRPO."""
PAIRS: Final = 600
"""Pairs of texts that best of n learns from: about half as many texts as GRPO writes."""
HELD_OUT: Final = 300
"""Held-out questions on which each run is judged."""
NEVER: Final = 10**9
UNTRAINED: Final = "untrained"
SFT_ONLY: Final = "SFT only"
MAIN: Final = "GRPO after SFT"


def demonstrate(data: Path, share: float) -> None:
    """Train the model on right answers to training questions, unless it is there."""
    if finished(data / "writer") is not None:
        return
    options = SFTConfig(batch_size=16, micro=16, learning_rate=5e-4, max_tokens=TOKENS)
    steps = max(3, round(SFT_STEPS * share))
    execute(
        RunConfig(method="sft", env=TASK, lm=MODEL, envs=1, steps=steps, options=options), data / "writer"
    )


def arms(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """GRPO after SFT, what does not learn, the control, and selection and cloning at about as many texts."""
    updates = max(2, round(UPDATES * scale.share))
    texts = updates * EPISODES
    written = f"hf:{data / 'writer'}{ADAPTED}"

    def arm(label: str, method: str, options: Any, steps: int, lm: str = written) -> Arm:
        steps = -(-steps // STREAMS) * STREAMS
        return Arm(
            label, RunConfig(method=method, env=TASK, lm=lm, envs=STREAMS, steps=steps, options=options)
        )

    grpo = GRPOConfig(
        group=8,
        episodes=EPISODES,
        micro=32,
        max_tokens=TOKENS,
        learning_rate=1e-4,
        kl=0.02,
        drop_flat=True,
        stop_kl=30.0,
        stop_entropy=1e-3,
    )
    alone = replace(grpo, episodes=NEVER)
    each = max(STREAMS, texts // ROUNDS)
    cloning = ReSTConfig(
        episodes=each,
        least=1.0,
        updates=max(2, round(40 * scale.share)),
        batch_size=16,
        micro=16,
        learning_rate=5e-4,
        max_tokens=TOKENS,
    )
    pairs = max(20, round(PAIRS * scale.share))
    select = BestOfNConfig(pairs=pairs, n=8, micro=32, max_tokens=TOKENS)
    return (
        arm(MAIN, "grpo", grpo, texts),
        arm("GRPO after SFT, shuffled rewards", "grpo", replace(grpo, shuffle=True), texts),
        arm(SFT_ONLY, "grpo", alone, STREAMS),
        arm(UNTRAINED, "grpo", alone, STREAMS, lm=MODEL),
        arm("best of 8 after SFT", "best-of-n", select, 2 * pairs + STREAMS),
        arm("filtered cloning after SFT", "rest", cloning, ROUNDS * each),
    )


def judged(listed: Sequence[Arm], seeds: int, folder: Path, *, episodes: int) -> str:
    """Return the held-out score of each arm, and its lead over SFT alone, paired by seed, in Markdown."""
    scores: dict[str, list[float]] = {}
    right: dict[str, list[float]] = {}
    for arm in listed:
        found = [held_out(run, episodes) for run in runs_of(arm, seeds, folder)]
        scores[arm.label] = [score for score, _ in found]
        right[arm.label] = [success for _, success in found]
    rows = []
    for label, own in scores.items():
        base = scores.get(SFT_ONLY)
        lead: Any = ""
        if base is not None and label != SFT_ONLY:
            lead = over_pairs([score - before for score, before in zip(own, base, strict=True)])
        rows.append((label, over_seeds(own), over_seeds(right[label]), lead))
    told = f"On {episodes:,} held-out questions, the same for all runs; {seeds} seeds."
    return f"{told}\n\n{table_of('arm | score | right | score above SFT only', rows)}"


def held_out(run: Path, episodes: int) -> tuple[float, float]:
    """Return the mean score of a run on held-out questions, and the share of right answers."""
    trial = Trial(run=run, env_options={"part": "held-out"}, episodes=episodes, seed=17)
    score = evaluate_run(trial, run.parent / "evaluations" / f"{run.name}-held-out")
    return score.episode_return, score.success.value


def _parts(scale: Scale, data: Path) -> list[Part]:
    listed = arms(scale, data)
    episodes = scale.episodes(HELD_OUT)
    return [
        Part(
            "Spelling backwards",
            listed,
            beside=partial(judged, listed, scale.seeds, episodes=episodes),
            prepare=partial(demonstrate, data, scale.share),
            apart=True,  # a step is a text in one arm and a demonstration in another
        )
    ]


STUDIES = {
    "trained": Study(
        "trained",
        "Does reinforcement learning improve a small real model on unseen questions, beyond SFT?",
        "No table of SmolLM2-135M is published. Nearest: Qwen3-0.6B on reversed text goes from 0.05 to about "
        "0.8 by SFT and reinforcement learning (prime-rl), of which the second is the small part.",
        "Words of three to six letters; 256 demonstrations; adapters of rank 16. All hyper-parameters are "
        "ours, and none was tuned. Arms that learn write 2,560 texts, which we estimate at an hour each on "
        "two cores; it is not measured.",
        _parts,
    )
}
