"""Study of prompts as policies in ``hunch/Prompting-v0``: one for many questions, and one for each.

hunch study prompting
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement
from math import factorial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import FloatArray
from hunch.lm import trainable
from hunch.methods.tune.sft import SFTConfig
from hunch.rl import dataset
from hunch.runs.compare import Arm
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch.runs.record import collect, parse_mix
from hunch.runs.stored import finished
from hunch_contrib.prompt.prompt_oirl import PromptOIRLConfig
from hunch_contrib.prompt.rlprompt import RLPromptConfig
from hunch_contrib.prompt.tempera import TEMPERAConfig
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study, runs_of
from hunch_studies.worlds.prompting import ANSWERS, CANDIDATES, MOST, WORDS, Prompting, request

ENV = "hunch/Prompting-v0"
SCRATCH = "scratch?width=64&layers=2&vocabulary=256"
UPDATES = 2_000
"""Updates of the model that is prompted, of 64 lessons each."""
SCORES = 100
"""Prompts that may be scored, on 16 questions each."""
LAYER: dict[str, Any] = {"lm": "smollm2", "hidden": 2048, "learning_rate": 3e-4}
"""Settings of RLPrompt with Q as a layer on a real model: the best of five on the training questions with
seed 100 (2,048 hidden units at 1e-3 and 3e-4; 64 at 3e-4, 1e-3 and 3e-3)."""
EDITS = 20_000
RESULTS = 600
"""Recorded results of prompts."""


def read_lessons(data: Path, updates: int) -> None:
    """Train the model that is prompted, unless it is there."""
    options = SFTConfig(learning_rate=1e-3)
    run = RunConfig(method="sft", env=ENV, env_options={"play": "read"}, lm=SCRATCH, envs=1, options=options)
    if finished(data / "reader") is None:
        run = replace(run, steps=updates, eval_every=updates, eval_episodes=300)
        execute(run, data / "reader")


def record(data: Path, steps: int, updates: int) -> None:
    """Record results of random candidates for questions of four topics, and of one."""
    read_lessons(data, updates)
    for topics in (4, 1):
        if not (folder := data / f"results-{topics}").exists():
            options = {"play": "choose", "topics": topics, "lm": f"hf:{data / 'reader'}"}
            dataset.save(collect(ENV, options, parse_mix("random=1"), steps), folder)


# ---- every prompt ---------------------------------------------------------------------------------------


def enumerated(data: Path) -> tuple[FloatArray, FloatArray]:
    """Return accuracy on the held-out questions, and number of orders, of all prompts of three words.

    One order stands for all: that of the list of words. Both arrays have shape (1540,).
    """
    import torch

    if (kept := data / "enumerated.npy").exists():
        return tuple(np.load(kept))
    model, asked = trainable(f"hf:{data / 'reader'}"), Prompting(split="held out").questions
    every = list(combinations_with_replacement(WORDS, MOST))
    right, orders = [], []
    for words in every:
        prompts = [request(" ".join(words), own.text) for own in asked]
        with torch.no_grad():
            both = [
                model.evaluate(prompts, model.as_written(prompts, [side] * len(asked))) for side in ANSWERS
            ]
        first, second = (own.logprobs[:, 0].cpu().numpy() for own in both)
        said = np.where(first > second, *ANSWERS)
        right.append(np.mean([one == own.answer for one, own in zip(said, asked, strict=True)]))
        times = [words.count(word) for word in set(words)]
        orders.append(factorial(MOST) / np.prod([factorial(n) for n in times]))
    np.save(kept, np.array([right, orders]))
    return np.array(right), np.array(orders)


def room(data: Path, folder: Path) -> str:
    """Say what there is to find: the best prompt of all, a random one, and the oracle's."""
    right, orders = enumerated(data)
    mean = float(np.average(right, weights=orders))
    best, oracle = right.max(), right[_place(["feather", "anchor", "flour"])]
    return (
        f"All {int(orders.sum()):,} prompts of {MOST} words, accuracy on held-out questions: random "
        f"{mean:.3f}, best {best:.3f}, the oracle's {oracle:.3f}, 95th percentile "
        f"{_quantile(right, orders, 0.95):.3f}. Room: {best - mean:.3f}."
    )


def _place(words: Sequence[str]) -> int:
    every: list[tuple[str, ...]] = list(combinations_with_replacement(WORDS, MOST))
    return every.index(tuple(sorted(words, key=WORDS.index)))


def _quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weights[order]) / weights.sum(), share)])


# ---- the parts ------------------------------------------------------------------------------------------


def written(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """A prompt for many questions: soft Q, chance, and edits of the best, at equal scores."""
    steps = max(20, round(SCORES * scale.share))
    run = RunConfig(method="rlprompt", env=ENV, env_options={"lm": f"hf:{data / 'reader'}"}, steps=steps)
    run = replace(run, eval_every=steps, eval_episodes=2)
    arms = {
        "RLPrompt": RLPromptConfig(),
        "random search": RLPromptConfig(search="random"),
        "edits of the best": RLPromptConfig(search="edits"),
        "RLPrompt, a layer on SmolLM2": RLPromptConfig(**LAYER),
    }
    return tuple(Arm(label, replace(run, options=options)) for label, options in arms.items())


def editors(run: RunConfig, steps: int) -> tuple[Arm, ...]:
    """A prompt for each question: the policy, random edits and none, which learn nothing.

    Args:
        run: Model and questions.
        steps: Edits of the policy.
    """
    run = replace(run, method="tempera", envs=16)
    arms = {"TEMPERA": "policy", "random edits": "random", "no edits": "none"}
    listed = []
    for label, edits in arms.items():
        n = steps if label == "TEMPERA" else 64
        options = TEMPERAConfig(edits=edits)  # type: ignore[arg-type]
        listed.append(Arm(label, replace(run, steps=n, options=options)))
    return tuple(listed)


def edited(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """A prompt for each of our questions."""
    options = {"play": "edit", "lm": f"hf:{data / 'reader'}"}
    run = RunConfig(method="tempera", env=ENV, env_options=options, eval_episodes=16)
    listed = editors(run, scale.steps(EDITS))
    return tuple(replace(arm, config=replace(arm.config, eval_every=arm.config.steps)) for arm in listed)


FIXED: Final = "best fixed prompt"
ANY: Final = "random prompt"
CHOOSERS: Final[Mapping[str, PromptOIRLConfig]] = {
    "Prompt-OIRL, words and their pairs": PromptOIRLConfig(),
    "Prompt-OIRL, bag of words": PromptOIRLConfig(encoder="bag-of-words"),
    "Prompt-OIRL, MiniLM": PromptOIRLConfig(encoder="minilm"),
    FIXED: PromptOIRLConfig(choose="fixed"),
    ANY: PromptOIRLConfig(choose="random"),
}
"""Who chooses a prompt from recorded results: by words, by a language model, or without reading."""
CHOOSING_STEPS: Final = 1_500
"""Updates of those that read questions."""


def chosen(scale: Scale, data: Path, topics: int) -> tuple[Arm, ...]:
    """One of six prompts for each question, from recorded results."""
    run = RunConfig(method="prompt-oirl", env=ENV, data=str(data / f"results-{topics}"), eval_episodes=16)
    steps = scale.steps(CHOOSING_STEPS)
    run = replace(run, steps=steps, eval_every=steps)
    return tuple(Arm(label, replace(run, options=config)) for label, config in CHOOSERS.items())


def accuracies(
    listed: Sequence[Arm], seeds: int, folder: Path, episodes: int, **options: Any
) -> list[FloatArray]:
    """Return the accuracy on held-out questions of each arm's runs."""
    runs = [runs_of(arm, seeds, folder) for arm in listed]
    return [np.array([accuracy(run, episodes, **options) for run in of_arm]) for of_arm in runs]


def accuracy(run: Path, episodes: int, **options: Any) -> float:
    """Return the accuracy of a run on held-out questions; ``options`` change those of its environment."""
    trial = Trial(run=run, env_options={"split": "held out", **options}, episodes=episodes, seed=17)
    score = evaluate_run(trial, run.parent / "evaluations" / run.name)
    # An episode of a prompt for many questions pays its accuracy; another asks one question.
    return score.episode_return if options.get("measure") == "accuracy" else score.success.value


def written_table(listed: Sequence[Arm], seeds: int, data: Path, folder: Path) -> str:
    """The table of prompts for many questions, with the percentile among all prompts."""
    right, orders = enumerated(data)
    found = accuracies(listed, seeds, folder, 1, count=0, measure="accuracy")
    rows = [
        (
            arm.label,
            with_range(own),
            with_range(np.array([100 * np.average(right <= a + 1e-9, weights=orders) for a in own]), 1),
        )
        for arm, own in zip(listed, found, strict=True)
    ]
    return f"{room(data, folder)}\n\n{table_of('arm | accuracy, held out | percentile among all', rows)}"


def plain_table(listed: Sequence[Arm], seeds: int, episodes: int, folder: Path) -> str:
    """A table of accuracies on held-out questions."""
    found = accuracies(listed, seeds, folder, episodes)
    rows = [(arm.label, with_range(own)) for arm, own in zip(listed, found, strict=True)]
    return table_of("arm | accuracy, held out", rows)


def chosen_table(
    listed: Sequence[Arm], seeds: int, episodes: int, data: Path, topics: int, folder: Path
) -> str:
    """The same with the oracle of the prompts, and what it would be by chance alone."""
    env = Prompting(play="choose", topics=topics, split="held out", lm=f"hf:{data / 'reader'}")
    table = []
    for own in env.questions:
        env.asked = [own]
        table.append([env.scores(prompt)[1][0] for prompt in CANDIDATES])
    results = np.array(table)
    oracle = f"Oracle by question {results.max(1).mean():.3f}; by chance alone {chance_oracle(results):.3f}."
    return f"{plain_table(listed, seeds, episodes, folder)}\n\n{oracle}"


def chance_oracle(results: FloatArray, draws: int = 4_000) -> float:
    """Return the oracle where the same prompt is best for every question, and results are chance otherwise.

    The model is Rasch's: every prompt has a strength and every question an ease, normally distributed, fitted
    by marginal likelihood.

    Args:
        results: Whether the answer was right, shape (questions, prompts).
        draws: Questions that are simulated.
    """
    import torch

    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    at, share = torch.tensor(nodes), torch.tensor(weights / weights.sum()).log()
    known = torch.tensor(results, dtype=torch.float64)
    strengths, spread = (
        torch.zeros(results.shape[1], dtype=torch.float64),
        torch.zeros((), dtype=torch.float64),
    )
    fitted = [strengths.requires_grad_(), spread.requires_grad_()]
    optimiser = torch.optim.Adam(fitted, lr=0.1)
    for _ in range(300):
        logits = strengths[None] + spread.exp() * at[:, None]
        each = known[:, None] * torch.nn.functional.logsigmoid(logits)
        each = each + (1 - known[:, None]) * torch.nn.functional.logsigmoid(-logits)
        loss = -torch.logsumexp(each.sum(2) + share, dim=1).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    rng = np.random.default_rng(0)
    drawn = strengths.detach().numpy() + float(spread.detach().exp()) * rng.standard_normal((draws, 1))
    return float((rng.random(drawn.shape) < 1 / (1 + np.exp(-drawn))).any(1).mean())


def with_range(values: FloatArray, digits: int = 3) -> str:
    """Return the mean over seeds, with the smallest and the largest value where there are several."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} [{values.min():.{digits}f}, {values.max():.{digits}f}]"


def _parts(scale: Scale, data: Path) -> list[Part]:
    updates = max(20, round(UPDATES * scale.share))
    lessons, results = (
        partial(read_lessons, data, updates),
        partial(record, data, max(60, round(RESULTS * scale.share)), updates),
    )
    many, each = written(scale, data), edited(scale, data)
    n = scale.episodes(200)
    parts = [
        Part(
            "One prompt",
            many,
            beside=partial(written_table, many, scale.seeds, data),
            prepare=lessons,
            apart=True,
        ),
        Part(
            "Edits", each, beside=partial(plain_table, each, scale.seeds, n // 2), prepare=lessons, apart=True
        ),
    ]
    for topics, title in ((4, "Choices"), (1, "Choices in one topic")):
        arms = chosen(scale, data, topics)
        told = partial(chosen_table, arms, scale.seeds, n, data, topics)
        parts.append(Part(title, arms, beside=told, prepare=results, apart=True))
    return parts


STUDIES = {
    "prompting": Study(
        "prompting",
        "What do policies over prompts find that search at equal calls does not?",
        "Learnt prompts beat those of search and of people (RLPrompt, EMNLP 2022; TEMPERA, ICLR 2023), "
        "and a prompt chosen by question beats the best fixed one (Prompt-OIRL, ICLR 2024).",
        "The model that is prompted has 100,000 weights and is trained here, on lessons whose structure is "
        "ours (L1): it says nothing about language models. All hyper-parameters are ours.",
        _parts,
        seeds=5,
    )
}
