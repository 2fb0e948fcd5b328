"""A real pretrained model improved by reinforcement learning on tasks with a verifier, beside what could
explain the gain: SFT alone, rewards that are shuffled, selection, and cloning of what was right.

    hunch study trained
    python -m hunch_studies.trained docs/assets/studies/trained.jsonl   # the tables of recorded rows
    python -m hunch_studies.trained ROWS --collect runs/study-trained   # records rows of finished runs

The model is SmolLM2-135M-Instruct. On one H100, with up to fourteen runs beside it and NVIDIA's multi-process
service, an arm that learns took two minutes ("Spelling backwards") to five ("Reviews"); without the service
sixteen runs side by side made hardly any progress. On one core an arm of "Sums" took ten minutes, one of
"Reviews" about an hour.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.envs import make
from hunch.methods.tune.grpo import GRPOConfig
from hunch.methods.tune.offline_rlhf import OfflineRLHFConfig
from hunch.methods.tune.ppo_text import PPOTextConfig
from hunch.methods.tune.rlhf import RLHFConfig
from hunch.methods.tune.sft import SFTConfig
from hunch.rl import dataset
from hunch.rl.episodes import evaluate
from hunch.rl.rollout import Rollout
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.reward.rewarded import Rewarded
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.loading import load_agent
from hunch.runs.record import collect, parse_mix
from hunch.runs.resolve import resolve
from hunch.runs.stored import finished
from hunch_contrib.tune.a2c_text import A2CTextConfig
from hunch_contrib.tune.nlpo import NLPOConfig
from hunch_contrib.tune.rest import ReSTConfig
from hunch_contrib.tune.trpo_text import TRPOTextConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import FULL, Part, Scale, Study, finished_runs, kept, place_name, runs_of, selected
from hunch_studies.trained_choices import KINDS, choices
from hunch_studies.trained_choices import MODEL as CHOOSER
from hunch_studies.trained_rewards import selection

OPTIONS: Final = "?chat=true&train=lora&rank=16"
"""How the model is loaded, and how the folder that SFT writes."""
OF_TRAINING: Final = ("chat", "train", "rank", "alpha", "end", "dtype", "recompute")
"""Options of a model that the folder has, too, that SFT of it writes."""
MODEL: Final = f"smollm2{OPTIONS}"
"""The model, unless another is named with its options: any that can be trained."""
LARGER: Final = f"qwen-coder-0.5b{OPTIONS}&dtype=bfloat16"
"""A model of four times the size."""
SUMS: Final = "reasoning:chain_sum?min_terms=2&max_terms=2&min_digits=1&max_digits=2"
STREAMS: Final = 32
UPDATES: Final = 40
"""Updates of GRPO, unless a bed has fewer."""
EPISODES: Final = 64
"""Texts per update: eight answers to each of eight questions."""
ROUNDS: Final = 4
"""Rounds of filtered cloning; together they write as many texts as GRPO."""
RECORDED: Final = 512
"""Texts that are written before training, in groups of eight, for DPO to compare."""
PAIRS: Final = 15 / 64
"""Pairs of texts to which the reward model of RLHF is fitted, for each text of GRPO: 600 for 2,560. They
count among its texts: RLHF writes as many as GRPO in all."""
HELD_OUT: Final = 300
"""Held-out questions on which each run is judged."""
JUDGED: Final = 17
"""Seed of the held-out questions, and of what is drawn in answering them."""
SHOWN: Final = 5
"""Held-out questions whose answers are shown."""
NEVER: Final = 10**9
UNTRAINED: Final = "untrained"
SFT_ONLY: Final = "SFT only"
MAIN: Final = "GRPO"
SHUFFLED: Final = "GRPO, shuffled rewards"
DPO: Final = "DPO"
FIRMER: Final = "DPO, beta 1"
"""To test whether DPO's usual beta, 0.1, is too little for answers of three tokens."""
LEARNED: Final = "RLHF"
LEARNED_SHUFFLED: Final = "RLHF, shuffled labels"
CHOSEN: Final = "Reviews, chosen by a reward model"


@dataclass(frozen=True)
class Bed:
    """A task with a verifier.

    Attributes:
        env: The environment; it has a ``part`` of held-out requests.
        max_tokens: Maximum number of tokens per text.
        sft: Updates of SFT on demonstrations before all arms but one, of 16 demonstrations each; 0 for none.
        updates: Updates of GRPO.
        least: Score of a text that is right, for filtered cloning; None if scores have no such mark.
        model: The model, if another than :data:`MODEL`, unless one is named on the command line.
        options: Options of the environment.
        learning_rate: Of GRPO and RLHF, for adapters.
        with_values: Whether the four algorithms that RL4LMs compares, which learn a value, are arms too.
    """

    env: str
    max_tokens: int
    sft: int = 0
    updates: int = UPDATES
    least: float | None = None
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float = 1e-4
    with_values: bool = False


BEDS: Final[Mapping[str, Bed]] = {
    # Short answers in an easy format: of the tasks that models of this size were seen to learn (prime-rl).
    "Spelling backwards": Bed("reasoning:spell_backward?min_word_len=3&max_word_len=6", 12, sft=60),
    "Sums": Bed(SUMS, 8, sft=60, least=1.0),
    # An instructed model follows some constraints without SFT, so it learns from its own texts alone.
    # At 1e-4 two seeds hardly moved (0.17 and 0.20 of the constraints, untrained 0.14): half of the groups
    # score alike, and teach nothing.
    "Constraints": Bed("hunch/Constraints-v0", 40, learning_rate=5e-4),
    # The bed of RL4LMs: beginnings of reviews, whose continuations a lexicon of sentiments judges.
    "Reviews": Bed("hunch/Reviews-v0", 32, with_values=True),
    # A larger model, which is right half of the time without SFT: half as many updates, because each takes
    # four times as long.
    "Sums, Qwen-0.5B": Bed(SUMS, 8, updates=20, least=1.0, model=LARGER),
}
"""The beds, fixed before the first full run."""
ELSEWHERE: Final = (
    "reasoning:letter_counting?max_words=5",
    "reasoning:number_sorting?min_numbers=3&max_numbers=3",
)
"""Tasks that no arm trains on: what a gain costs elsewhere."""
PASSAGES: Final = (
    "The kettle had begun to whistle before anyone in the house was awake, and the cat left the window.",
    "Water freezes at zero degrees Celsius, and it boils at a hundred, unless the pressure is changed.",
    "If you want to reach the station before noon, take the second road on the left and follow the river.",
    "In the spring of that year the old bridge was closed, so the farmers had to bring their milk by boat.",
    "A triangle has three sides; when all of them have the same length, its angles are equal as well.",
    "She opened the letter slowly, read it twice, and put it back into the drawer without saying a word.",
    "Most plants need light, water and air; some of them, however, catch insects to obtain what is missing.",
    "The program reads a list of numbers, removes those that occur twice, and prints the rest in order.",
    "My grandfather used to say that a good tool is one that you can lend to a neighbour and get back.",
    "After the match the players shook hands, although the last goal had been disputed for ten minutes.",
    "Copper conducts electricity better than iron does, which is why cables are rarely made of iron.",
    "There was nothing on the shelf but a broken radio, two candles and a map of a country long gone.",
)
"""Plain sentences, ours, whose perplexity is measured before and after training."""


# ---- what all arms of a bed start from ---------------------------------------------------------------------


def prepare(bed: Bed, model: str, data: Path, share: float, with_texts: bool) -> None:
    """Train the model on right answers to training questions, and record texts of it, unless it is done.

    Texts are for DPO alone, and are written one by one, so they are left out where DPO is not asked for.
    """
    data.mkdir(parents=True, exist_ok=True)
    writer = data / "writer"
    if bed.sft and finished(writer) is None:
        options = SFTConfig(batch_size=16, micro=16, learning_rate=5e-4, max_tokens=bed.max_tokens)
        steps = max(3, round(bed.sft * share))
        execute(_run(bed, "sft", model, options, steps, streams=1), writer)
    if with_texts and not (data / "texts").exists():
        texts = 8 * max(1, round(RECORDED / 8 * share))
        mix = parse_mix(f"write:{start(bed, model, data)}=1")  # the share, after a spec with "="
        recorded = collect(bed.env, {**bed.options}, mix, texts, group=8, max_tokens=bed.max_tokens)
        dataset.save(recorded, data / "texts")


def start(bed: Bed, model: str, data: Path) -> str:
    """Return the spec of the model from which the arms start: after SFT, if the bed has it."""
    if not bed.sft:
        return model
    options = [part for part in model.partition("?")[2].split("&") if part.partition("=")[0] in OF_TRAINING]
    return f"hf:{data / 'writer'}?{'&'.join(options)}"


def _run(bed: Bed, method: str, lm: str, options: Any, steps: int, streams: int = STREAMS) -> RunConfig:
    steps = -(-steps // streams) * streams  # whole steps of all streams
    return RunConfig(
        method=method,
        env=bed.env,
        env_options={**bed.options},
        lm=lm,
        envs=streams,
        steps=steps,
        options=options,
    )


# ---- arms --------------------------------------------------------------------------------------------------


def arms(bed: Bed, model: str, scale: Scale, data: Path) -> tuple[Arm, ...]:
    """GRPO, what does not learn, the control, and what else learns from about as many texts or fewer."""
    updates = max(2, round(bed.updates * scale.share))
    texts = updates * EPISODES
    lm = start(bed, model, data)

    grpo = GRPOConfig(
        group=8,
        episodes=EPISODES,
        micro=32,
        max_tokens=bed.max_tokens,
        learning_rate=bed.learning_rate,
        kl=0.02,
        drop_flat=True,
        stop_kl=60.0,
        stop_entropy=1e-3,
    )
    alone = replace(grpo, episodes=NEVER)  # an agent that writes, and is never updated
    cloning = ReSTConfig(
        episodes=max(STREAMS, texts // ROUNDS),
        # The best of eight answers to each question. Without groups nearly every question is met once, and
        # nothing would be left out.
        group=8,
        keep=1,
        least=bed.least,
        updates=max(2, round(30 * scale.share)),
        batch_size=16,
        micro=16,
        learning_rate=5e-4,
        max_tokens=bed.max_tokens,
    )
    pairs = max(20, round(PAIRS * texts))
    rlhf = RLHFConfig(
        pairs=pairs,
        paired=True,  # thousands of prompts: hardly two texts would answer the same
        # Four passes of PPO over each text would take four times as long.
        advantage="leave_one_out",
        group=8,
        episodes=EPISODES,
        kl=0.02,
        micro=32,
        learning_rate=bed.learning_rate,
        max_tokens=bed.max_tokens,
    )
    rlhf_steps = max(2 * pairs + 2 * EPISODES, texts)  # two steps are a pair; then at least two updates
    compared = OfflineRLHFConfig(
        loss="dpo", batch_size=16, micro=16, learning_rate=1e-4, max_tokens=bed.max_tokens
    )
    dpo = _run(bed, "offline-rlhf", lm, compared, max(3, round(60 * scale.share)), streams=1)
    listed = [
        Arm(MAIN, _run(bed, "grpo", lm, grpo, texts)),
        Arm(SHUFFLED, _run(bed, "grpo", lm, replace(grpo, shuffle=True), texts)),
        Arm(UNTRAINED, _run(bed, "grpo", model, alone, STREAMS)),
        Arm("filtered cloning", _run(bed, "rest", lm, cloning, ROUNDS * cloning.episodes)),
        Arm(DPO, replace(dpo, data=str(data / "texts"))),
        Arm(FIRMER, replace(dpo, data=str(data / "texts"), options=replace(compared, beta=1.0))),
        Arm(LEARNED, _run(bed, "rlhf", lm, rlhf, rlhf_steps)),
        Arm(LEARNED_SHUFFLED, _run(bed, "rlhf", lm, replace(rlhf, labels="shuffled"), rlhf_steps)),
    ]
    if bed.sft:
        listed.insert(2, Arm(SFT_ONLY, _run(bed, "grpo", lm, alone, STREAMS)))
    if bed.with_values:
        # Each with its own number of texts per update and passes over them; the rest as in GRPO.
        same: dict[str, Any] = {
            "kl": 0.02,
            "micro": 32,
            "max_tokens": bed.max_tokens,
            "learning_rate": bed.learning_rate,
        }
        a2c = A2CTextConfig(**same)
        listed += [
            Arm("PPO", _run(bed, "ppo-text", lm, PPOTextConfig(**same), texts)),
            Arm("NLPO", _run(bed, "nlpo", lm, NLPOConfig(**same), texts)),
            Arm("A2C", _run(bed, "a2c-text", lm, a2c, texts)),
            Arm("A2C, shuffled rewards", _run(bed, "a2c-text", lm, replace(a2c, shuffle=True), texts)),
            Arm("TRPO", _run(bed, "trpo-text", lm, TRPOTextConfig(**same), texts)),
        ]
    return tuple(listed)


# ---- judged on held-out requests ---------------------------------------------------------------------------


def judged(
    bed: Bed, listed: Sequence[Arm], seeds: int, folder: Path, *, episodes: int, workers: int = 6
) -> str:
    """Return the held-out score of each arm, its lead, its price elsewhere, and texts of it, in Markdown."""
    runs = {(arm.label, seed): run for arm in listed for seed, run in enumerate(runs_of(arm, seeds, folder))}
    rows = kept(
        folder / "judged.jsonl",
        [(str(run), episodes) for run in runs.values()],
        measured,
        workers=workers,
    )
    of_run = dict(zip(runs, rows, strict=True))
    by_arm = {arm.label: [of_run[arm.label, seed] for seed in range(seeds)] for arm in listed}
    return f"On {episodes:,} held-out requests, the same for all runs.\n\n{tabulated(bed, by_arm)}"


def tabulated(bed: Bed, by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the table of the rows of each arm, seed by seed, and what the arms wrote, in Markdown.

    Rows are those of :func:`measured`, in the order of the seeds or with their ``seed``. The lead is over the
    seeds that both arms have.
    """
    before = SFT_ONLY if bed.sft else UNTRAINED
    lines = []
    for label, own in by_arm.items():
        over_before: Any = ""
        if label != before and before in by_arm:
            over_before = lead(own, by_arm[before])
        cells = [over_seeds([row[name] for row in own]) for name in ("score", "right", "kl", "perplexity")]
        elsewhere: Any = ""
        if all(row["elsewhere"] for row in own):
            elsewhere = over_seeds([float(np.mean(row["elsewhere"])) for row in own])
        lines.append((label, len(own), cells[0], cells[1], over_before, *cells[2:], elsewhere))
    head = f"arm | seeds | score | right | score above {before} | KL, nats | perplexity | other tasks"
    explained = (
        "Lead: paired by seed, with Student's 95 % interval. KL: from where the arm started, per text. "
        f"Perplexity: of {len(PASSAGES)} plain sentences. Other tasks: mean score in {len(ELSEWHERE)} tasks "
        "that no arm was trained on."
    )
    over_others = [
        f"- {MAIN} over {label}: {lead(by_arm[MAIN], own)}"
        for label, own in by_arm.items()
        if MAIN in by_arm and label != MAIN
    ]
    if LEARNED in by_arm and LEARNED_SHUFFLED in by_arm:
        over_shuffled = lead(by_arm[LEARNED], by_arm[LEARNED_SHUFFLED])
        over_others.append(f"- {LEARNED} over {LEARNED_SHUFFLED}: {over_shuffled}")
    return "\n\n".join([explained, table_of(head, lines), "\n".join(over_others), shown(by_arm)])


def lead(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> str:
    """Return the lead in the score over another arm, paired by the seeds that both have."""
    base = {row.get("seed", n): row["score"] for n, row in enumerate(others)}
    scores = {row.get("seed", n): row["score"] for n, row in enumerate(rows)}
    return over_pairs([score - base[seed] for seed, score in scores.items() if seed in base]).short()


def shown(by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return what the arms wrote to the same held-out requests, with the first seed, in Markdown."""
    first = {label: own[0]["texts"] for label, own in by_arm.items()}
    requests = [request for request, _ in next(iter(first.values()))]
    lines = []
    for number, request in enumerate(requests):
        lines.append(f"- {json.dumps(request, ensure_ascii=False)}")
        lines += [
            f"    - {label}: {json.dumps(texts[number][1], ensure_ascii=False)}"
            for label, texts in first.items()
        ]
    return "What they wrote, with seed 0:\n\n" + "\n".join(lines)


def measured(run: str, episodes: int, others: bool = True) -> dict[str, Any]:
    """Judge a run: on held-out requests, on other tasks, and on plain sentences.

    Args:
        run: The run's folder.
        episodes: Number of held-out requests.
        others: Whether to judge it on other tasks, which takes as long as the rest.

    Returns:
        Mean ``score``, share ``right``, ``kl`` per text, ``perplexity`` of the sentences, mean scores
        ``elsewhere``, and ``texts``: held-out requests with what the run wrote.
    """
    folder = Path(run)
    trial = Trial(run=folder, env_options={"part": "held-out"}, episodes=episodes, seed=JUDGED)
    evaluations = folder.parent / "evaluations"
    score = evaluate_run(trial, evaluations / f"{folder.name}-held-out")
    agent, config = load_agent(folder)
    return {
        "score": score.episode_return,
        "right": score.success.value,
        "kl": score.figures.get("kl", 0.0),
        **price(agent, config, episodes, others),
    }


def price(agent: Any, config: RunConfig, episodes: int, others: bool) -> dict[str, Any]:
    """Return what of :func:`measured` is not the score: ``perplexity``, ``elsewhere`` and ``texts``.

    Args:
        agent: The agent.
        config: Settings of its run.
        episodes: Number of held-out requests of the score.
        others: See :func:`measured`.
    """
    return {
        "perplexity": perplexity(agent),
        "elsewhere": [answered(agent, env, episodes // 3) for env in ELSEWHERE] if others else [],
        "texts": examples(agent, replace(config, env_options={**config.env_options, "part": "held-out"})),
    }


def perplexity(agent: Any) -> float:
    """Return the perplexity of the passages per token, each after an empty user message."""
    import torch  # loaded with the agent

    writer: Any = agent.agent if isinstance(agent, Rewarded) else agent
    policy = writer.policy
    with torch.no_grad():
        mean = [float(policy.likelihood([""], [text])) for text in PASSAGES]
    return float(np.exp(-np.mean(mean)))


def answered(agent: Any, env: str, episodes: int) -> float:
    """Return the agent's mean score on held-out requests of another task."""
    envs = [make(env, part="held-out") for _ in range(min(STREAMS, episodes))]
    played = evaluate(agent.player, envs, episodes, JUDGED)
    return float(np.mean([episode.episode_return for episode in played]))


def examples(agent: Any, config: RunConfig) -> list[tuple[str, str]]:
    """Return held-out requests, drawn by a seed, with what the agent writes to each."""
    envs = resolve(config).environments(SHOWN)
    states = Rollout(envs, seeds=[1_000 + number for number in range(SHOWN)]).states
    texts = agent.player(JUDGED).act(states)
    return [(state.observation, text) for state, text in zip(states, texts, strict=True)]


# ---- the study ---------------------------------------------------------------------------------------------


def _parts(scale: Scale, data: Path) -> list[Part]:
    models = scale.lms or (MODEL,)
    parts = []
    for model in models:
        for name, bed in BEDS.items():
            title = name if len(models) == 1 else f"{name}, {model}"
            place = data / place_name(title)
            learner = model if scale.lms else bed.model or model
            listed = arms(bed, learner, scale, place)
            measure = partial(judged, bed, episodes=scale.episodes(HELD_OUT))
            with_texts = bool(selected([DPO, FIRMER], scale.arms))
            ready = partial(prepare, bed, learner, place, scale.share, with_texts)
            # Apart: a step is a text in one arm and a demonstration in another.
            parts.append(Part(title, listed, measure=measure, prepare=ready, apart=True))
        title = CHOSEN if len(models) == 1 else f"{CHOSEN}, {model}"
        parts.append(selection(title, BEDS["Reviews"].env, model, scale))
        chooser = model if scale.lms else CHOOSER
        for name, kind in KINDS.items():
            title = name if len(models) == 1 else f"{name}, {model}"
            parts.append(choices(title, kind, chooser, scale, data / place_name(title)))
    return parts


STUDIES = {
    "trained": Study(
        "trained",
        "Does reinforcement learning improve a small real model on unseen requests, beyond SFT?",
        "No table of SmolLM2-135M is published. Nearest: Qwen3-0.6B on reversed text goes from 0.05 to about "
        "0.8 by SFT and reinforcement learning (prime-rl), of which the second is the small part.",
        "Words of three to six letters, sums of two numbers below 100, constraints and sentiments that a "
        "rule checks; 256 demonstrations; adapters of rank 16. The settings are ours, and none was tuned but "
        "the rate for constraints. GRPO, RLHF and filtered cloning write 2,560 texts each, RLHF with those "
        "of its 600 pairs; Qwen half as many.",
        _parts,
        lm_for="grpo",
    )
}


def recorded(file: Path) -> str:
    """Return the tables of recorded rows, bed by bed, in Markdown."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    parts = []
    for name in dict.fromkeys(row["bed"] for row in rows):
        by_arm: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["bed"] == name:
                by_arm.setdefault(row["arm"], []).append(row)
        parts.append(f"### {name}\n\n{tabulated(BEDS[name], by_arm)}")
    return "\n\n".join(parts)


def add_rows(study: Path, file: Path, others: bool = True) -> None:
    """Judge the finished runs of a study's folder, and add their rows to a file; judged ones are kept.

    Args:
        study: The study's folder.
        file: The rows, a line of JSON each.
        others: See :func:`measured`.
    """
    known = {(row["bed"], row["arm"], row["seed"]): row for row in read_lines(file)}
    for part in _parts(FULL, study / "data"):
        if part.title not in BEDS:
            continue
        for arm in part.arms:
            for seed, run in finished_runs(study / part.folder / arm.folder).items():
                key = (part.title, arm.label, seed)
                if key not in known:
                    row = measured(str(run), HELD_OUT, others)
                    known[key] = {"bed": part.title, "arm": arm.label, "seed": seed, **row}
                    write_atomically(file, "".join(json.dumps(row) + "\n" for row in known.values()).encode())


def main() -> None:
    """Print the tables of recorded rows, after adding those of a study's folder if one is named."""
    parser = argparse.ArgumentParser(description="Tables of a small real model in training.")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--collect", type=Path, metavar="FOLDER", help="the study, whose runs are judged")
    parser.add_argument("--held-out-only", action="store_true", help="judge runs on no other tasks")
    asked = parser.parse_args()
    if asked.collect:
        add_rows(asked.collect, asked.rows, others=not asked.held_out_only)
    print(recorded(asked.rows))


if __name__ == "__main__":
    main()
