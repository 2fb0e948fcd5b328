"""Estimates the model calls of a run by playing some of its steps without asking a model.

The agent is that of the run, but answers that are not cached are random, so the policy is nearly
random. The requests are counted and extrapolated to the length of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from hunch.lm.answers.cache import Cached
from hunch.lm.answers.rehearsal import CHARACTERS_PER_TOKEN, Rehearsal
from hunch.methods.program.agent import ProgramConfig
from hunch.runs.callbacks import Watch
from hunch.runs.config import RunConfig
from hunch.runs.execute import execute
from hunch.runs.loading import parts_of
from hunch.runs.models import Asked
from hunch.runs.places import Given, places_of
from hunch.runs.resolve import Resolved, resolve

SAMPLE: Final = 1_000
"""Number of steps to play, enough to include requests after the start of learning."""
FIGURES: Final = ("calls", "cache_hits", "prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True)
class Estimate:
    """The estimated usage of a run, by the names of :class:`hunch.lm.Usage`.

    Attributes:
        steps: Steps of the run.
        sampled: Steps that were played.
        sample: Usage in these steps.
        expected: Usage of the run at the rate of the second half of the sample.
        bound: Usage of the run at the highest rate in the sample.
        once: True if all calls came at one moment of the sample, as in methods that ask once. Then they
            count once in ``expected``, and once per ``sampled`` steps in ``bound``.
        seconds: Wall time of the run without its frozen models, at the speed of the sample.
        trains: True if the method trains a model; this model is really used in the sample.
        unevaluated: True if the run is evaluated, and the first time only after the sample.
    """

    steps: int
    sampled: int
    sample: dict[str, float]
    expected: dict[str, float]
    bound: dict[str, float]
    once: bool
    seconds: float
    trains: bool = False
    unevaluated: bool = False


def estimate(
    config: RunConfig | Resolved, sample: int = SAMPLE, rehearsal: Rehearsal | None = None
) -> Estimate:
    """Estimate a run by its first steps, without asking a model or changing a folder.

    Args:
        config: The settings of the run, or what :func:`hunch.runs.resolve.resolve` made of them.
        sample: Maximum number of steps to play.
        rehearsal: Replaces the models by stand-ins; runs that share it also share answers.

    Raises:
        UsageError: if a setting is invalid.
    """
    resolved = _patient(config if isinstance(config, Resolved) else resolve(config))
    config = resolved.config
    lines: list[dict[str, Any]] = []
    rehearsal = rehearsal or Rehearsal()
    places = places_of(resolved)
    agent, models = resolved.build(rehearsal, parts=parts_of(config))
    updates = config.offline and not models  # each step is a real update of a model
    steps = min(config.steps, sample // 10 if updates else sample)
    evaluation = places.evaluation
    unevaluated = evaluation is not None and evaluation.every > steps
    if unevaluated:
        evaluation = None
    asked = Asked(agent, models, [*places.envs, *(evaluation.places if evaluation else ())])
    given = Given(agent, envs=places.envs, data=places.data, evaluation=evaluation, models=models)
    others = [model for _, _, model in asked.of_environments() if isinstance(model, Cached)]
    shorter = replace(resolved.config, steps=steps, eval_every=0, processes=0)
    with rehearsal.replacing(others):
        execute(replace(resolved, config=shorter), given=given, watch=Watch(report=lines.append))
    done = max(lines[-1]["step"], 1)
    usage = lines[-1]["usage"]
    left = max(0, config.steps - done)
    once = _once(lines, "calls")
    expected = {name: usage[name] + (0 if once else left * _late(lines, name)) for name in FIGURES}
    highest = {name: usage[name] / done if once else _highest(lines, name) for name in FIGURES}
    bound = {name: max(expected[name], config.steps * highest[name]) for name in FIGURES}
    trained = [name for name, model in asked if not isinstance(model, Cached)]
    frozen = usage["seconds"] - sum(lines[-1]["models"][name]["seconds"] for name in trained)
    seconds = max(0.0, lines[-1]["seconds"] - frozen) * config.steps / done
    played = {name: usage[name] for name in FIGURES}
    return Estimate(
        config.steps,
        done,
        played,
        expected,
        bound,
        once,
        seconds,
        trains=bool(trained),
        unevaluated=unevaluated,
    )


def estimates(configs: Sequence[RunConfig | Resolved], sample: int = SAMPLE) -> list[Estimate]:
    """Estimate the model calls of runs, one after the other; later runs reuse answers of earlier ones."""
    rehearsal = Rehearsal()
    return [estimate(config, sample, rehearsal) for config in configs]


def _patient(resolved: Resolved) -> Resolved:
    """Return the run without its limit of failed programs, because the programs of a stand-in always fail."""
    if not isinstance(resolved.options, ProgramConfig):
        return resolved
    options = replace(resolved.options, give_up=0)
    return replace(resolved, options=options, config=replace(resolved.config, options=options))


def _late(lines: list[dict[str, Any]], name: str) -> float:
    """Return the rate per step in the second half of the lines; of all if there is only one line."""
    middle = (len(lines) - 1) // 2 if len(lines) > 1 else None
    step, amount = (0, 0.0) if middle is None else (lines[middle]["step"], lines[middle]["usage"][name])
    return float((lines[-1]["usage"][name] - amount) / max(1, lines[-1]["step"] - step))


def _once(lines: list[dict[str, Any]], name: str) -> bool:
    """Return whether the whole usage came between two neighbouring lines, out of at least ten."""
    amounts = [0.0, *(line["usage"][name] for line in lines)]
    return len(lines) >= 10 and sum(b > a for a, b in pairwise(amounts)) == 1


def _highest(lines: list[dict[str, Any]], name: str) -> float:
    """Return the highest rate per step between two neighbouring lines."""
    marks = [(0, 0.0), *((line["step"], float(line["usage"][name])) for line in lines)]
    return float(max((b - a) / (end - start) for (start, a), (end, b) in pairwise(marks)))


def assumptions(estimated: Estimate, config: RunConfig, seeds: int = 1) -> list[str]:
    """Return the assumptions of an estimate, one sentence each."""
    listed = [
        "Extrapolated, not measured: no model was asked, and random answers replaced those not in the cache.",
        f"{estimated.sampled:,} of {estimated.steps:,} steps were played. {_extrapolated(estimated)}",
        f"A token is counted as {CHARACTERS_PER_TOKEN} characters. A prompt is read once per answer, and an "
        "answer is as long as one of the options in its prompt, or else the maximum length.",
        "The run is assumed to start from the beginning, even if its folder holds a part of it.",
    ]
    if estimated.trains:
        listed.append("The model that is trained was asked and trained: it has no stand-in.")
    if seeds > 1:
        listed.append(
            f"Each of {seeds} seeds is assumed to ask what seed {config.seed} asks, without sharing."
        )
    if estimated.unevaluated:
        listed.append("Evaluations are not counted: the first comes after the steps that were played.")
    return listed


def _extrapolated(estimated: Estimate) -> str:
    if estimated.once:
        return (
            f"All calls came at one moment: expected once, and at most once per {estimated.sampled:,} steps."
        )
    return (
        "Expected: at the rate of their second half. At most: at the highest rate between two of their lines "
        "of metrics."
    )


def wall_time(estimated: Sequence[Estimate], seeds: int = 1) -> str:
    """Return a sentence on the wall time of all runs in sequence."""
    about = _duration(seeds * sum(each.seconds for each in estimated))
    return f"Wall time: about {about} here, one run after the other, plus the models' answering time."


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"
