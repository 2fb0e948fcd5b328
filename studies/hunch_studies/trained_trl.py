"""GRPO of the package TRL beside ours: same model, adapters, questions, rewards and settings.

    python -m hunch_studies.trained_trl docs/assets/studies/trained.jsonl    # the recorded rows, and the lead
    pip install "trl>=1.16,<2"
    python -m hunch_studies.trained_trl ROWS --out runs/study-trl            # about 25 minutes per seed

TRL samples, computes advantages, and updates by itself; it only asks a verifier of ours for the rewards. Both
see the same questions in the same order, and start from the same adapters. Groups whose answers all score
alike stay in the update on both sides, because TRL has no setting that leaves them out.

The trained adapters are put into an agent of ours, which is judged as all arms of the study are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import State, UsageError
from hunch.envs import make
from hunch.lm import trainable
from hunch.lm.training.adapters import PREFIX
from hunch.methods.tune.grpo import GRPOConfig
from hunch.rl.episodes import evaluate
from hunch.rl.rollout import episode_seed
from hunch.runs.evaluations import EVALUATION_SEED, Players
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.loading import load_agent
from hunch_studies.planners import table as table_of
from hunch_studies.study import FULL
from hunch_studies.trained import (
    BEDS,
    EPISODES,
    JUDGED,
    MAIN,
    OPTIONS,
    STREAMS,
    UNTRAINED,
    Bed,
    arms,
    lead,
    price,
)

BED: Final = "Sums, Qwen-0.5B"
OURS: Final = "GRPO, 8 updates, flat groups kept"
THEIRS: Final = "TRL's GRPO, 8 updates"
UPDATES: Final = 8
"""Updates of a run: TRL computes a prompt anew for each of its answers, so that an update takes minutes here,
and most of what is learnt is learnt by then."""
QUESTIONS: Final = 150
"""Held-out questions on which both are judged: the first of those on which other arms are."""
IN_16_BITS: Final = "&dtype=bfloat16"
RANK: Final = 16
"""Rank and scale of the adapters, as in the study's models."""


def questions(bed: Bed, seed: int, group: int, updates: int) -> list[tuple[str, int]]:
    """Return the questions of a run of ours in the order of its updates, each with the seed of its episode.

    In a run each group of streams has an episode of its own; when all have answered, the next ones begin.
    """
    groups = STREAMS // group
    rounds = EPISODES // STREAMS
    env = make(bed.env, **bed.options)
    drawn = []
    for number in range(updates * rounds):
        for stream in range(groups):
            of_episode = episode_seed(seed, stream, number)
            observation, _ = env.reset(seed=of_episode)
            drawn.append((observation, of_episode))
    return drawn


def train(bed: Bed, config: GRPOConfig, agent: Any, seed: int, updates: int, folder: Path) -> dict[str, Any]:
    """Train the agent's model with TRL, and return the trained adapters by their names in our model.

    Args:
        bed: The task.
        config: The settings of our GRPO.
        agent: An agent whose adapters are those of the start.
        seed: Seed of the questions and of sampling.
        updates: Number of updates.
        folder: A folder for TRL.
    """
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from trl import GRPOConfig as TheirConfig
    from trl import GRPOTrainer

    policy, lm = agent.policy, agent.lm
    tokenizer = lm.model.tokenizer
    asked = questions(bed, seed, config.group, updates)
    prompts = lm.prompt_tokens([policy.prompt(State(text)) for text, _ in asked], config.max_tokens)
    texts = [tokenizer.decode(tokens) for tokens in prompts]
    if any(tuple(tokenizer(text).input_ids) != tokens for text, tokens in zip(texts, prompts, strict=True)):
        raise UsageError("TRL would not read the same tokens of the prompts as we do.")
    env = make(bed.env, **bed.options)

    def rewards(completions: Sequence[str], episode: Sequence[int], **_: Any) -> list[float]:
        scores = []
        for text, of_episode in zip(completions, episode, strict=True):
            env.reset(seed=of_episode)
            scores.append(float(env.step(text)[1]))
        return scores

    settings = TheirConfig(
        output_dir=str(folder),
        seed=seed,
        use_cpu=not torch.cuda.is_available(),
        max_steps=updates,
        # An update is one gradient step on all texts.
        per_device_train_batch_size=EPISODES,
        gradient_accumulation_steps=1,
        num_generations=config.group,
        max_completion_length=config.max_tokens,
        shuffle_dataset=False,
        temperature=1.0,
        # A = (reward - mean of the group) / standard deviation of the group; mean over all tokens; k3.
        scale_rewards="group",
        loss_type="bnpo",
        beta=config.kl,
        epsilon=config.clip,
        num_iterations=config.epochs,
        # Adam with our constants.
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        adam_epsilon=1e-5,
        max_grad_norm=1.0,
        # What is computed in which numbers: as in our model.
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
    )
    network = lm.adapters.merged()  # a copy without adapters: they change nothing yet
    adapters = LoraConfig(r=RANK, lora_alpha=RANK, target_modules="all-linear", task_type="CAUSAL_LM")
    data = Dataset.from_dict({"prompt": texts, "episode": [of_episode for _, of_episode in asked]})
    trainer = GRPOTrainer(network, rewards, settings, data, processing_class=tokenizer, peft_config=adapters)
    theirs = dict(trainer.model.named_parameters())
    with torch.no_grad():
        for name, weight in lm.state_dict().items():
            theirs[PREFIX + name].copy_(weight)
    trainer.train()
    return {name: theirs[PREFIX + name].detach() for name in lm.state_dict()}


def rows_of(bed: Bed, title: str, seed: int, updates: int, episodes: int, folder: Path) -> dict[str, Any]:
    """Return the rows of both sides with a seed, by arm.

    Args:
        bed: The task.
        title: Its name.
        seed: The seed.
        updates: Number of updates.
        episodes: Number of held-out requests.
        folder: Folder for the runs, which are continued.
    """
    if not (folder / "start").exists():  # a folder loads faster than a GGUF file
        trainable(bed.model).save(folder / "start")
    lm = f"hf:{folder / 'start'}{OPTIONS}{IN_16_BITS}"
    scale = replace(FULL, share=updates / bed.updates)
    by_label = {arm.label: replace(arm.at(seed), lm=lm) for arm in arms(bed, lm, scale, folder)}
    grpo: GRPOConfig = replace(by_label[MAIN].options, drop_flat=False)
    row = {"bed": title, "seed": seed}

    ours = folder / "ours" / f"seed-{seed}"
    execute(replace(by_label[MAIN], options=grpo), ours)
    ours_row = judged(*load_agent(ours), episodes)

    untrained = folder / "untrained" / f"seed-{seed}"
    execute(by_label[UNTRAINED], untrained)
    agent, config = load_agent(untrained)
    adapters = train(bed, grpo, agent, seed, updates, folder / "trl" / f"seed-{seed}")
    agent.lm.load_state_dict(adapters)  # type: ignore[attr-defined]
    theirs_row = judged(agent, config, episodes)
    return {OURS: {**row, "arm": OURS, **ours_row}, THEIRS: {**row, "arm": THEIRS, **theirs_row}}


def judged(agent: Any, config: RunConfig, episodes: int) -> dict[str, Any]:
    """Return of an agent what :func:`hunch_studies.trained.measured` returns of its run."""
    envs = [make(config.env, **config.env_options, part="held-out") for _ in range(STREAMS)]
    players = Players(agent)
    played = evaluate(players, envs, episodes, JUDGED + EVALUATION_SEED)
    return {
        "score": float(np.mean([episode.episode_return for episode in played])),
        "right": float(np.mean([episode.success for episode in played])),
        "kl": players.figures().get("kl", 0.0),
        **price(agent, config, episodes, others=False),
    }


def main() -> None:
    """Print the recorded rows of both sides; with --out, train and judge those that are missing first."""
    parser = argparse.ArgumentParser(description="GRPO of TRL beside ours.")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--out", type=Path, help="folder of the runs; without it nothing is trained")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=UPDATES, help="updates of a run; for a first try, 2")
    parser.add_argument("--episodes", type=int, default=QUESTIONS, help="held-out questions")
    asked = parser.parse_args()
    rows = {(row["bed"], row["arm"], row["seed"]): row for row in read_lines(asked.rows)}
    missing = [seed for seed in range(asked.seeds) if (BED, THEIRS, seed) not in rows] if asked.out else []
    if missing and find_spec("trl") is None:
        raise SystemExit("This compares with TRL: pip install 'trl>=1.16,<2'")
    bed = BEDS[BED]
    for seed in missing:
        made = rows_of(bed, BED, seed, asked.updates, asked.episodes, asked.out)
        rows |= {(BED, label, seed): row for label, row in made.items()}
        write_atomically(asked.rows, "".join(json.dumps(row) + "\n" for row in rows.values()).encode())
    print(compared(list(rows.values())))


def compared(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of both sides and the lead of ours, in Markdown."""
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in (OURS, THEIRS)}
    lines = [
        (arm, row["seed"], f"{row['score']:.2f}", f"{row['kl']:.2f}")
        for arm, own in by_arm.items()
        for row in own
    ]
    table = table_of("arm | seed | held-out score | KL, nats", lines)
    return f"{table}\n\nOurs over TRL's, paired by seed: {lead(by_arm[OURS], by_arm[THEIRS])}"


if __name__ == "__main__":
    main()
