"""What a run would ask of its language models: some of its steps are played, without asking any.

The agent is the run's own, with random answers in the place of those that the cache does not hold, so the
policy is about a random one. What it asks is counted, and carried on to the length of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from hunch.lm.answers.rehearsal import CHARACTERS_A_TOKEN, Rehearsal
from hunch.runs.config import RunConfig, check
from hunch.runs.execute import build, environments, evaluation, recorded
from hunch.runs.loop import train

SAMPLE: Final = 1_000
"""Steps that are played: enough to see what a method asks once it has begun to learn."""
FIGURES: Final = ("calls", "cache_hits", "prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True)
class Estimate:
    """What a run would ask, by the names of :class:`hunch.lm.Usage`.

    Attributes:
        steps: Steps of the run.
        sampled: Steps that were played.
        sample: What they asked.
        expected: What the run asks, if the rate of the second half of the sample goes on.
        bound: What it asks, if the rate of the most demanding stretch goes on.
        seconds: Wall time of the run without the models' own, at the pace of the sample.
    """

    steps: int
    sampled: int
    sample: dict[str, float]
    expected: dict[str, float]
    bound: dict[str, float]
    seconds: float


def estimate(config: RunConfig, sample: int = SAMPLE, rehearsal: Rehearsal | None = None) -> Estimate:
    """Play the first steps of a run without asking a model or touching a folder.

    Args:
        config: The run.
        sample: Steps to play, at most.
        rehearsal: Puts stand-ins in the place of the models; runs of one rehearsal share what they ask.

    Raises:
        UsageError: on settings that cannot be met.
    """
    check(config)
    config = _patient(config)
    lines: list[dict[str, Any]] = []
    steps = min(config.steps, sample)
    agent, models = build(config, rehearsal or Rehearsal())
    data = recorded(config)
    envs = [] if data and not config.online else environments(config, config.envs)
    judge = evaluation(config) if config.eval_every <= steps else None
    train(
        agent, envs, steps, data=data, seed=config.seed, evaluation=judge, models=models, report=lines.append
    )
    done = max(lines[-1]["step"], 1)
    usage = lines[-1]["usage"]
    left = max(0, config.steps - done)
    expected = {name: usage[name] + left * _late(lines, name) for name in FIGURES}
    bound = {name: max(expected[name], config.steps * _highest(lines, name)) for name in FIGURES}
    seconds = max(0.0, lines[-1]["seconds"] - usage["seconds"]) * config.steps / done
    return Estimate(config.steps, done, {name: usage[name] for name in FIGURES}, expected, bound, seconds)


def estimates(configs: list[RunConfig], sample: int = SAMPLE) -> list[Estimate]:
    """Estimate runs that share one cache, one after the other: what one asked, the next finds there."""
    rehearsal = Rehearsal()
    return [estimate(config, sample, rehearsal) for config in configs]


def _patient(config: RunConfig) -> RunConfig:
    """The run without its patience for programs that fail: a stand-in writes none that runs."""
    if not hasattr(config.options, "give_up"):
        return config
    return replace(config, options=replace(config.options, give_up=0))


def _late(lines: list[dict[str, Any]], name: str) -> float:
    """The rate a step in the second half of the lines; the whole rate where there is one line only."""
    middle = (len(lines) - 1) // 2 if len(lines) > 1 else None
    step, amount = (0, 0.0) if middle is None else (lines[middle]["step"], lines[middle]["usage"][name])
    return float((lines[-1]["usage"][name] - amount) / max(1, lines[-1]["step"] - step))


def _highest(lines: list[dict[str, Any]], name: str) -> float:
    """The highest rate a step between two neighbouring lines."""
    marks: list[tuple[int, float]] = [
        (0, 0.0),
        *((line["step"], float(line["usage"][name])) for line in lines),
    ]
    return max((b - a) / (end - start) for (start, a), (end, b) in pairwise(marks))


def assumptions(found: Estimate, config: RunConfig, seeds: int = 1) -> list[str]:
    """What an estimate rests on, one sentence each."""
    listed = [
        "No model was asked. Random answers stood in for those that the cache does not hold.",
        f"{found.sampled:,} of {found.steps:,} steps were played. Expected: the rate of their second half "
        "goes on. At most: the rate of the most demanding stretch goes on.",
        f"A token is {CHARACTERS_A_TOKEN} characters. A prompt is read once an answer, and an answer is as "
        "long as one of the options in its prompt, or else as long as allowed.",
        "The run is taken to begin anew: what a folder holds of it is not counted as done.",
    ]
    if seeds > 1:
        listed.append(f"Each of {seeds} seeds asks what seed {config.seed} asks, and they share nothing.")
    if config.eval_every > found.sampled:
        listed.append("Evaluations are not counted: the first is beyond the steps that were played.")
    return listed


def wall_time(found: Sequence[Estimate], seeds: int = 1) -> str:
    """How long runs take one after the other, in a sentence."""
    about = _duration(seeds * sum(each.seconds for each in found))
    return f"Wall time: about {about} here, one run after the other, and what the models take to answer."


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"
