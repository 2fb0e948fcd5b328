"""Study of prompts for a real model: SmolLM2 says whether a snippet of a film review is great or terrible.

The task is that of RLPrompt's classification experiments: a snippet, the prompt, and one of two words, with
snippets that people rated (:mod:`hunch_studies.film_snippets`).

    hunch study film-prompts
    python -m hunch_studies.film_prompts docs/assets/studies/film-prompts.jsonl    # the recorded rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.rl.rollout import Rollout
from hunch.rl.statistics import over_pairs
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.resolve import resolve
from hunch.runs.stored import read_run
from hunch_contrib.prompt.rlprompt import RLPromptConfig
from hunch_studies.film_snippets import QUESTIONS, frequent
from hunch_studies.planners import table as table_of
from hunch_studies.prompting import LAYER, with_range
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, kept, model_of, runs_of
from hunch_studies.worlds.prompting import Prompting, Question

MODEL: Final = "smollm2"
"""The model that is prompted, unless another is named."""
FORM: Final = "{question} {prompt}"
"""What the model reads; the answer follows, as in RLPrompt's template for models that continue text."""
LENGTH: Final = 5
"""Words of a prompt (RLPrompt)."""
WORDS: Final = 100
"""Words that prompts are made of: the most frequent ones of the training snippets."""
SCORES: Final = 100
"""Prompts that may be scored."""
PER_PROMPT: Final = 16
"""Questions on which a prompt is scored."""
BY_HAND: Final = (
    "It was",
    "Overall, it was",
    "The film is",
    "In summary, the film was",
    "All in all, the film is",
    "My verdict:",
    "Sentiment:",
    "I thought it was",
    "The reviewer found it",
    "Is it great or terrible? It is",
    "One word for this film:",
    "A film that is",
)
"""Prompts that we wrote; "It was" is the usual one (Gao et al., LM-BFF).

Five had been tried in nearly these words on 120 snippets in a first look: "It was", "Overall, it was", "The
film is", "In summary, the film was" and "Sentiment:".
"""
BEST_BY_HAND: Final = "by hand, the best of twelve on the training snippets"
TRIED: Final = ", the best prompt that it tried"
"""What the searches end with; RLPrompt ends with the prompt of the largest Q."""
NO_PROMPT: Final = "no prompt"
RANDOM: Final = "random search"
LEARNT: Final = "RLPrompt, a layer on SmolLM2"


def options(model: str, balanced: bool = True) -> dict[str, Any]:
    """Return the options of the environment."""
    words = " ".join(frequent(WORDS))
    asked: dict[str, Any] = {"lm": model, "file": str(QUESTIONS), "form": FORM, "way": "likelihood"}
    asked |= {"words": words, "length": LENGTH, "count": PER_PROMPT}
    return {**asked, "balanced": True} if balanced else asked


def arms(model: str, scores: int, balanced: bool) -> tuple[Arm, ...]:
    """Return RLPrompt, the same without a language model, and the searches at as many scores."""
    # The environment is evaluated by the study, on other questions.
    where = options(model, balanced)
    run = partial(RunConfig, method="rlprompt", env="hunch/Prompting-v0", env_options=where, steps=scores)
    settings = {
        LEARNT: RLPromptConfig(length=LENGTH, **LAYER),
        "RLPrompt, Q reads counts of words": RLPromptConfig(length=LENGTH),
        RANDOM: RLPromptConfig(length=LENGTH, search="random"),
        "edits of the best": RLPromptConfig(length=LENGTH, search="edits"),
    }
    return tuple(Arm(label, run(options=own)) for label, own in settings.items())


def prompt_of(run: Path, tried: bool = False) -> str:
    """Return the prompt that a run ended with, or the one with the best score among those that it tried."""
    agent: Any
    agent, config = load_agent(run)
    if tried:
        return str(agent.spelled(agent.best()))
    states = Rollout(resolve(config).environments(1), seeds=[0]).states
    return str(agent.player(0).act(states)[0])


def luck(run: Path) -> float | None:
    """Return the correlation of a run's scores with the share of questions drawn whose answer is "great".

    It is None where the draws are balanced, or all scores equal.
    """
    episodes = [row for row in read_lines(run / "episodes.jsonl") if not row["evaluation"]]
    env = Prompting(**{**read_run(run).env_options, "lm": "uniform"})  # no model is asked at a reset
    shares = []
    for row in episodes:
        env.reset(seed=row["seed"])
        shares.append(np.mean([own.answer == "great" for own in env.asked]))
    returns = [row["return"] for row in episodes]
    if np.ptp(shares) == 0 or np.ptp(returns) == 0:
        return None
    return float(np.corrcoef(shares, returns)[0, 1])


def in_turn(env: Prompting, seed: int) -> list[Question]:
    """Return the questions in an order that is drawn by the seed, with the two answers in turn."""
    rng = np.random.default_rng(seed)
    great, terrible = (rng.permutation(places) for places in env.of_answer)
    return [env.questions[place] for pair in zip(great, terrible, strict=True) for place in pair]


def by_hand(model: str, seed: int) -> str:
    """Return which of our prompts is best on training questions, with as many calls as a search has."""
    env = Prompting(**options(model))
    of_each_answer = SCORES * PER_PROMPT // len(BY_HAND) // 2
    env.asked = in_turn(env, seed)[: 2 * of_each_answer]
    return max(BY_HAND, key=lambda prompt: env.scores(prompt)[0].mean())


@lru_cache(maxsize=1)
def held_out(model: str) -> Prompting:
    """Return the environment that asks all questions that are held out, with the model, loaded once."""
    env = Prompting(**{**options(model), "split": "held out", "count": 0})
    env.asked = env.questions
    return env


def judged(model: str, prompt: str) -> dict[str, Any]:
    """Return how a prompt does on all questions that are held out.

    Returns:
        The ``prompt``, ``accuracy``, mean ``gap``, the share of answers that are ``great``, and ``right``: a
        digit for each question.
    """
    env = held_out(model)
    gaps, right = env.scores(prompt)
    great = [(gap > 0) == (own.answer == "great") for gap, own in zip(gaps, env.asked, strict=True)]
    return {
        "prompt": prompt,
        "accuracy": float(right.mean()),
        "gap": float(gaps.mean()),
        "great": float(np.mean(great)),
        "right": "".join("1" if one > 0.5 else "0" for one in right),
    }


# ---- rows -------------------------------------------------------------------------------------------------


def measured(model: str, listed: Sequence[Arm], folder: Path, arm: str, seed: int) -> dict[str, Any]:
    """Return the row of an arm and a seed: of a run, or of our own prompts."""
    if arm == NO_PROMPT:
        return judged(model, "")
    if arm == BEST_BY_HAND:
        return judged(model, by_hand(model, seed))
    own = next(one for one in listed if one.label == arm.removesuffix(TRIED))
    run = runs_of(own, seed + 1, folder)[seed]
    return {**judged(model, prompt_of(run, tried=arm.endswith(TRIED))), "luck": luck(run)}


def of_arms(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Return the rows of each arm by seed."""
    by_arm: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        arm, seed = row["key"]
        by_arm.setdefault(arm, {})[seed] = row
    return by_arm


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the rows, and the leads that were asked for, in Markdown."""
    by_arm = of_arms(rows)
    base = {seed: row["accuracy"] for seed, row in by_arm.get(RANDOM, {}).items()}
    bare = [row["accuracy"] for row in by_arm.get(NO_PROMPT, {}).values()]
    lines = []
    for arm, own in by_arm.items():
        scores = [row["accuracy"] for row in own.values()]
        shared = [row["accuracy"] - base[seed] for seed, row in own.items() if seed in base]
        # No prompt has one row for all seeds: the seed of that row would pick one search out of several.
        lead = "" if arm in (RANDOM, NO_PROMPT) or not shared else over_pairs(shared).short()
        over_bare = (
            over_pairs([score - bare[0] for score in scores]).short() if bare and arm != NO_PROMPT else ""
        )
        ends = with_range(np.array(scores))
        great = np.mean([row["great"] for row in own.values()])
        by_luck = [row["luck"] for row in own.values() if row.get("luck") is not None]
        correlation = f"{np.mean(by_luck):.2f}" if by_luck else ""
        first = json.dumps(next(iter(own.values()))["prompt"])
        lines.append((arm, len(own), ends, f"{great:.2f}", lead, over_bare, correlation, first))
    head = 'arm | seeds | right [range] | said "great" | ahead of random search | ahead of no prompt | luck'
    head += " | first seed's prompt"
    return table_of(head, lines)


def tabulated(model: str, every: int, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Judge arms on the questions that are held out, and return the table.

    Args:
        model: Spec of the model that is prompted.
        every: Number of arms in all; where fewer are listed, our own prompts are not judged beside them.
        listed: The arms.
        seeds: Runs of each arm.
        folder: Folder of the runs, in which the rows are kept.
    """
    labels = [arm.label for arm in listed]
    labels += [f"{label}{TRIED}" for label in labels if label.startswith("RLPrompt")]
    keys = [(label, seed) for label in labels for seed in range(seeds)]
    if len(listed) == every:
        keys += [*((BEST_BY_HAND, seed) for seed in range(seeds)), (NO_PROMPT, 0)]
    return table(kept(folder / "judged.jsonl", keys, partial(measured, model, listed, folder)))


# ---- the study --------------------------------------------------------------------------------------------


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for model in scale.lms or (MODEL,):
        for title, balanced in (("Balanced draws", True), ("Random draws", False)):
            listed = arms(model, max(20, round(SCORES * scale.share)), balanced)
            measure = partial(tabulated, model, len(listed))
            parts.append(Part(f"{title}, {model_of(model)}", listed, measure=measure, apart=True))
    return parts


STUDIES = {
    "film-prompts": Study(
        "film-prompts",
        "Which prompts make a small real model a better judge of film reviews, at equal calls?",
        "RLPrompt is ahead of prompts written by people, of search and of soft prompts on seven tasks of "
        "classification with RoBERTa-large, MR (film reviews) among them (Deng et al., EMNLP 2022).",
        "SmolLM2-135M in place of RoBERTa-large; a hundred scores in place of 12,000 steps; a hundred words "
        "in place of the model's tokens; the score is the gap of probabilities alone.",
        _parts,
        lm_for="zero-shot",
        seeds=5,
    )
}


def ahead_of(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> str:
    """Return how far each arm is ahead of the same arm among other rows, paired by seed, in Markdown."""
    of_key = {tuple(row["key"]): row["accuracy"] for row in others}
    leads: dict[str, list[float]] = {}
    for row in rows:
        arm, seed = row["key"]
        if (arm, seed) in of_key:
            leads.setdefault(arm, []).append(row["accuracy"] - of_key[arm, seed])
    return table_of("arm | ahead by", [(arm, over_pairs(own).short()) for arm, own in leads.items()])


def recorded(file: Path, other: Path | None = None) -> str:
    """Return the table of recorded rows, with the leads over those of another file, in Markdown."""
    rows = read_lines(file)
    if other is None:
        return table(rows)
    leads = ahead_of(rows, read_lines(other))
    return f"{table(rows)}\n\nAhead of the same arm in {other}, paired by seed:\n\n{leads}"


if __name__ == "__main__":
    print_table(recorded, "Prompts for a judge of film reviews, and leads over a second file.", at_most=2)
