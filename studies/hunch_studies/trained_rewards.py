"""What a learned reward is worth: a reward model that is fitted to comparisons chooses among texts.

Best of n, by a reward model of each seed, beside one that was fitted to shuffled comparisons, and one that
reads words alone. All choose among the same texts of the untrained model, which are written once.

    hunch study trained --part "Reviews, chosen by a reward model"
    python -m hunch_studies.trained_rewards docs/assets/studies/trained-rewards.json   # the recorded rewards
    python -m hunch_studies.trained_rewards ROWS --collect FOLDER-OF-THE-PART  # records them
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import comb, log
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from hunch.core import FloatArray, State, Transition, UsageError
from hunch.envs import make
from hunch.envs.constraints import words
from hunch.methods.decode.best_of_n import BestOfNConfig
from hunch.methods.tune.grpo import GRPOConfig
from hunch.rl.rollout import Rollout
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.reward.settings import RewardModelConfig
from hunch.runs.compare import Arm, folder_name
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch.runs.loading import load_agent
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, finished_runs, kept, runs_of

PAIRS: Final = 600
"""Pairs of texts to which a reward model is fitted."""
STREAMS: Final = 32
HEAD_L2: Final = 3e-3
REQUESTS: Final = 100
"""Held-out requests, to each of which the untrained model writes."""
TEXTS: Final = 16
"""Texts after each of them."""
CHOICES: Final = (1, 2, 4, 8, 16)
"""Numbers of texts among which the reward model chooses."""
MAX_TOKENS: Final = 32
NEVER: Final = 10**9
TOGETHER: Final = 2
"""Requests whose texts are written together."""
FIRST_SEED: Final = 10_000
"""Seed of the first request; the evaluations of runs draw others."""
UNTRAINED: Final = "untrained"
FITTED: Final = "by comparisons"
HARDLY_SHRUNK: Final = "by comparisons, head hardly shrunk"
SHUFFLED: Final = "by shuffled comparisons"
WORDS: Final = "by comparisons, words alone"
FOLDS: Final = 10
"""Parts of the requests; each is scored by what was learnt from the others."""
NORMS: Final = (1e-3, 1e-2, 1e-1)
"""Weights of the squared norm of the words' rewards, of which one is chosen."""
MODELS: Final = (FITTED, HARDLY_SHRUNK, SHUFFLED)
"""The arms with a reward model."""


# ---- texts of the untrained model, and their rewards -------------------------------------------------------


def pool(run: str, number: int = REQUESTS) -> dict[str, Any]:
    """Return held-out requests, and texts that an untrained run writes to them, with their gold rewards.

    Args:
        run: The run's folder.
        number: Number of requests.

    Returns:
        ``requests``, (requests,); ``texts`` and ``gold``, (requests, texts).
    """
    requests: list[str] = []
    texts: list[list[str]] = []
    gold: list[list[float]] = []
    for written in _texts_of(run, number):
        requests.append(written[0].state.observation)
        texts.append([transition.action for transition in written])
        gold.append([round(transition.reward, 4) for transition in written])
    return {"requests": requests, "texts": texts, "gold": gold}


def _texts_of(run: str, number: int) -> list[list[Transition]]:
    """Return what a run writes to each of some requests."""
    agent, config = load_agent(Path(run))
    player = agent.player(FIRST_SEED)
    options = {**config.env_options, "part": "held-out"}
    written: list[list[Transition]] = []
    for first in range(FIRST_SEED, FIRST_SEED + number, TOGETHER):
        seeds = [seed for seed in range(first, first + TOGETHER) for _ in range(TEXTS)]
        rollout = Rollout([make(config.env, **options) for _ in seeds], seeds=seeds)
        transitions = rollout.step(player.act(rollout.states))
        written += [transitions[start : start + TEXTS] for start in range(0, len(seeds), TEXTS)]
    return written


def learned(run: str, requests: Sequence[str], texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the rewards that the reward model of a run of best of n gives to texts.

    Returns:
        ``learned``, (requests, texts); ``accuracy``, the share of held-out preferences that it predicts.
    """
    agent, _ = load_agent(Path(run))
    source: Any = agent.source  # type: ignore[attr-defined]
    rewards = [
        source.score([State(request)] * len(several), list(several))
        for request, several in zip(requests, texts, strict=True)
    ]
    return {
        "learned": [[float(f"{reward:.6g}") for reward in of_request] for of_request in rewards],
        "accuracy": round(source.records()[-1]["accuracy"], 4),
    }


def best_of(n: int, by: FloatArray, of: FloatArray) -> float:
    """Return the mean of ``of`` for the best by ``by`` of n texts that are drawn without replacement.

    With the texts of a request in falling order of ``by``, text r (from 0) is the best of n drawn ones with
    probability C(N - 1 - r, n - 1) / C(N, n): the other n - 1 are among those behind it. This is the mean
    over all draws of n, so it has less noise than one draw (Nakano et al., WebGPT, 2021).

    Args:
        n: Number of texts that are drawn.
        by: The reward that chooses, shape (requests, N).
        of: The reward that is reported, shape (requests, N).
    """
    total = by.shape[1]  # N
    ranked = np.take_along_axis(of, np.argsort(-by, axis=1, kind="stable"), axis=1)  # (requests, N)
    probs = [comb(total - 1 - rank, n - 1) / comb(total, n) for rank in range(total)]  # (N,)
    return float((ranked @ np.array(probs)).mean())


# ---- the lexical control -----------------------------------------------------------------------------------


def words_reward(differences: FloatArray, prefers_first: FloatArray, l2: float) -> FloatArray:
    """Fit a reward that is a sum over words to preferences, by the loss of Bradley and Terry (1952).

    Args:
        differences: Counts of each word in the first text less those in the second, shape (pairs, words).
        prefers_first: 1 where the first text is preferred, else 0, shape (pairs,).
        l2: Weight of the squared norm.

    Returns:
        The reward of each word, shape (words,).
    """
    sides = 2 * prefers_first - 1  # (pairs,), 1 or -1

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margins = sides * (differences @ weights)  # (pairs,)
        value = np.logaddexp(0, -margins).mean() + l2 / 2 * weights @ weights
        gradient = -(sides * expit(-margins)) @ differences / len(sides) + l2 * weights
        return float(value), gradient

    start = np.zeros(differences.shape[1])
    weights: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return weights


def by_words(
    texts: Sequence[Sequence[str]], gold: FloatArray, seed: int, pairs: int = PAIRS
) -> dict[str, Any]:
    """Return the rewards of texts by their words, learned from as many comparisons as the models have.

    Nothing is written for this control. The requests are cut into ten folds. The texts of each fold are
    scored by a reward that has learned from comparisons of texts to the requests of the other nine. Of these
    comparisons nine tenths fit it, and the others choose the weight of its norm, out of :data:`NORMS`, by
    which most of them are predicted.

    Args:
        texts: Texts, shape (requests, texts).
        gold: Their gold rewards, from which preferences are drawn, shape (requests, texts).
        seed: Seed of the pairs and preferences.
        pairs: Comparisons to learn from.

    Returns:
        As :func:`learned`; ``accuracy`` is that of comparisons of texts to requests that were left out.
    """
    rng = np.random.default_rng(seed)
    number, several = gold.shape
    counts = _counted(texts)  # (requests, texts, words)

    # Pairs of different texts to one request, and a preference for each.
    drawn = [(row, *pair) for row in range(number) for pair in rng.permutation(several).reshape(-1, 2)]
    row, first, second = rng.permutation(np.array(drawn)).T
    chances = expit((gold[row, first] - gold[row, second]) / RewardModelConfig.noise)
    preferred = (rng.random(len(row)) < chances).astype(float)
    differences = counts[row, first] - counts[row, second]  # (pairs, words)

    rewards = np.zeros_like(gold)
    right = np.zeros(len(row))
    for fold in range(FOLDS):
        here = np.flatnonzero(row % FOLDS != fold)[:pairs]
        fitted, checked = np.split(here, [round(0.9 * len(here))])
        candidates = [words_reward(differences[fitted], preferred[fitted], l2) for l2 in NORMS]  # (words,)
        agree = [
            ((differences[checked] @ weights > 0) == preferred[checked]).mean() for weights in candidates
        ]
        best = candidates[int(np.argmax(agree))]
        rewards[fold::FOLDS] = counts[fold::FOLDS] @ best
        left_out = row % FOLDS == fold
        right[left_out] = (differences[left_out] @ best > 0) == preferred[left_out]
    return {"learned": rewards.tolist(), "accuracy": round(float(right.mean()), 4)}


def _counted(texts: Sequence[Sequence[str]]) -> FloatArray:
    """Return how often each word is in each text, shape (requests, texts, words)."""
    split = [[words(text) for text in of_request] for of_request in texts]
    place = {word: i for i, word in enumerate(sorted({w for row in split for text in row for w in text}))}
    counts = np.zeros((len(split), len(split[0]), len(place)))
    for request, row in enumerate(split):
        for number, text in enumerate(row):
            np.add.at(counts[request, number], [place[word] for word in text], 1.0)
    return counts


# ---- the part ----------------------------------------------------------------------------------------------


def selection(title: str, env: str, model: str, scale: Scale) -> Part:
    """Return a part of the study ``trained`` in which a reward model chooses among texts."""
    pairs = max(20, round(PAIRS * scale.share))
    select = BestOfNConfig(pairs=pairs, paired=True, n=1, micro=STREAMS, max_tokens=MAX_TOKENS)
    alone = GRPOConfig(group=8, episodes=NEVER, max_tokens=MAX_TOKENS)  # writes, and is never updated

    def run(method: str, options: Any, steps: int) -> RunConfig:
        return RunConfig(method=method, env=env, lm=model, envs=STREAMS, steps=steps, options=options)

    steps = 2 * pairs + STREAMS  # two texts are a pair; whole rounds of all streams
    steps = -(-steps // STREAMS) * STREAMS
    arms = (
        Arm(FITTED, run("best-of-n", select, steps)),
        # The weight that suits models of under a million weights.
        Arm(HARDLY_SHRUNK, run("best-of-n", replace(select, head_l2=HEAD_L2), steps)),
        Arm(SHUFFLED, run("best-of-n", replace(select, labels="shuffled"), steps)),
        Arm(UNTRAINED, run("grpo", alone, STREAMS)),
    )
    beside = partial(judged, arms, scale.seeds, requests=scale.episodes(REQUESTS))
    # Apart: the arm that never learns has one round of steps.
    return Part(title, arms, beside=beside, apart=True)


def judged(arms: Sequence[Arm], seeds: int, folder: Path, requests: int = REQUESTS) -> str:
    """Return the tables of what the reward models choose, in Markdown; keep their rewards in a file."""
    for arm in arms:
        runs_of(arm, seeds, folder)  # all of them are finished
    file = folder / "rewards.json"
    collect(folder, file, requests)
    return recorded(file)


def collect(folder: Path, file: Path, requests: int = REQUESTS) -> None:
    """Write what the finished runs of the part choose among, and by which rewards, to a file.

    Args:
        folder: The part's folder; the texts of the untrained model, and the rewards, are kept in it.
        file: JSON, see :func:`pool` and :func:`learned`.
        requests: Number of held-out requests.

    Raises:
        UsageError: if no run of the untrained model, or with comparisons, is finished.
    """
    runs = {label: finished_runs(folder / folder_name(label)) for label in (*MODELS, UNTRAINED)}
    for label in (UNTRAINED, FITTED):
        if not runs[label]:
            raise UsageError(f"{folder} holds no finished run of {label!r}.")
    write = partial(pool, number=requests)
    (written,) = kept(folder / "texts.jsonl", [(str(next(iter(runs[UNTRAINED].values()))),)], write)
    texts = {name: written[name] for name in ("requests", "texts", "gold")}
    measure = partial(learned, requests=texts["requests"], texts=texts["texts"])
    by_arm = {}
    for label in MODELS:
        rows = kept(folder / "learned.jsonl", [(str(run),) for run in runs[label].values()], measure)
        by_arm[label] = {
            str(seed): {name: row[name] for name in ("learned", "accuracy")}
            for seed, row in zip(runs[label], rows, strict=True)
        }
    write_atomically(file, json.dumps({**texts, "by_arm": by_arm}).encode())


def tabulated(gold: FloatArray, by_arm: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the gold and the learned reward of the best of n texts, in Markdown.

    Args:
        gold: Gold rewards, shape (requests, texts).
        by_arm: By arm and seed what :func:`learned` returns; the leads are those of the first arm.
    """
    rewards_of = {
        label: {seed: np.array(row["learned"]) for seed, row in rows.items()}
        for label, rows in by_arm.items()
        if rows
    }  # by arm and seed, (requests, texts)
    fitted = rewards_of[FITTED]

    lines = []
    for n in CHOICES:
        of_seeds = [best_of(n, rewards, gold) for rewards in fitted.values()]
        proxies = [best_of(n, rewards, rewards) for rewards in fitted.values()]
        lead = over_pairs([of_seed - best_of(1, gold, gold) for of_seed in of_seeds]).short()
        kl = f"{log(n) - (n - 1) / n:.2f}"
        by_gold = f"{best_of(n, gold, gold):.2f}"
        over_words = _ahead(n, fitted, rewards_of.get(WORDS, {}), gold)
        lines.append((n, kl, over_seeds(of_seeds), lead, over_words, by_gold, over_seeds(proxies)))
    head = "best of | KL at most, nats | gold | lead over one text | lead over words | gold, chosen by gold"
    head += " | learned reward"

    most = CHOICES[-1]
    models = []
    for label, rewards_of_seeds in rewards_of.items():
        accuracy = [row["accuracy"] for row in by_arm[label].values()]
        fits = [correlation(rewards, gold) for rewards in rewards_of_seeds.values()]
        of_seeds = [best_of(most, rewards, gold) for rewards in rewards_of_seeds.values()]
        lead = "" if label == FITTED else _ahead(most, fitted, rewards_of_seeds, gold)
        figures = (over_seeds(accuracy), over_seeds(fits), over_seeds(of_seeds), lead)
        models.append((label, len(rewards_of_seeds), *figures))
    of_models = (
        "reward model | seeds | held-out comparisons predicted | correlation with gold | "
        f"gold of best of {most} | lead of the first"
    )
    explained = (
        f"On {gold.shape[0]:,} held-out requests with {gold.shape[1]} texts each, the same for all seeds. "
        f"First the reward model {FITTED!r}, for each number of texts. Intervals are over reward models; the "
        "correlation is within requests."
    )
    return "\n\n".join([explained, table_of(head, lines), table_of(of_models, models)])


def _ahead(
    n: int, rewards: Mapping[str, FloatArray], others: Mapping[str, FloatArray], gold: FloatArray
) -> str:
    """Return the lead in gold of the best of n by some rewards over that by others, paired by seed."""
    leads = [
        best_of(n, rewards[seed], gold) - best_of(n, other, gold)
        for seed, other in others.items()
        if seed in rewards
    ]
    return over_pairs(leads).short() if leads else ""


def correlation(learned: FloatArray, gold: FloatArray) -> float:
    """Return the correlation of two rewards of texts within requests; nan where one is always the same.

    Both have the shape (requests, texts). What differs between requests does not count, because only texts
    of one request are chosen from.
    """
    one = learned - learned.mean(axis=1, keepdims=True)
    other = gold - gold.mean(axis=1, keepdims=True)
    size = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / size) if size > 0 else float("nan")


def recorded(file: Path) -> str:
    """Return the tables of recorded rewards, in Markdown."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    gold = np.array(rows["gold"])
    lexical = {seed: by_words(rows["texts"], gold, int(seed)) for seed in rows["by_arm"][FITTED]}
    return tabulated(gold, {**rows["by_arm"], WORDS: lexical})


def main() -> None:
    """Print the tables of recorded rewards, after writing those of a study's folder if one is named."""
    parser = argparse.ArgumentParser(description="Tables of what reward models choose.")
    parser.add_argument("rewards", type=Path)
    parser.add_argument(
        "--collect", type=Path, metavar="FOLDER", help="folder of the part, whose runs are read"
    )
    asked = parser.parse_args()
    if asked.collect:
        collect(asked.collect, asked.rewards)
    print(recorded(asked.rewards))


if __name__ == "__main__":
    main()
