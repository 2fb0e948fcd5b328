"""Study of "Motif: Intrinsic Motivation from Artificial Intelligence Feedback" (Klissarov, D'Oro et al., ICLR
2024): whether preferences between captions help with sparse rewards, and how much noise they tolerate.

    hunch study motif
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import Episode, World
from hunch.envs import make
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.lm.ways import Way, ways_of
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.count_bonus import CountBonusConfig
from hunch.methods.reward.motif import MotifConfig, Pair, Preference, PreferenceConfig
from hunch.methods.reward.rnd import RNDConfig
from hunch.rl.episodes import play, replay
from hunch.rl.rollout import Finished
from hunch.rl.statistics import over_seeds
from hunch.roles.reward.comparer import comparing
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.result import Result, last_quarter
from hunch.runs.stored import finished
from hunch_studies.cost import COST, cost, spent
from hunch_studies.novelty import START
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept

ENV = "hunch/DoorKey-v0"
STEPS = 10_000
TABLE = QLearningConfig(epsilon=(0.05, 0.05, 1), alpha=0.02)
RULE = "scripted:captions"
NOISE = (0.0, 0.1, 0.3)
RECENT = 10
"""Episodes over which success is looked at."""
GOAL = "use the key to open the door and then get to the goal"
"""The mission of the level."""
TIDY = "put things down"
"""A goal other than the mission."""
LONGER = "Motif, label noise 0.1, captions of 3,000 steps"
SHORT = 50
"""Steps of an episode in which a random walk seldom finds the goal; the level's own limit is 250."""


def _arm(label: str, method: str, options: Any, steps: int, lm: str = "", **env_options: Any) -> Arm:
    config = RunConfig(method=method, env=ENV, env_options=env_options, lm=lm, steps=steps, options=options)
    return Arm(label, config)


def arms(steps: int, lms: Sequence[str] = (), **env_options: Any) -> tuple[Arm, ...]:
    """Motif by noise, without its parts, and what it is compared with; the same learner in all."""

    def motif(label: str, lm: str, **options: Any) -> Arm:
        return _arm(label, "motif", MotifConfig(table=TABLE, **options), steps, lm, **env_options)

    def count(label: str, initial: float = 0.0, **options: Any) -> Arm:
        config = CountBonusConfig(table=replace(TABLE, initial=initial), **options)
        return _arm(label, "count-bonus", config, steps, **env_options)

    def rnd(weight: float) -> Arm:
        config = RNDConfig(table=replace(TABLE, initial=START * weight), weight=weight)
        return _arm(f"RND, weight {weight:g}", "rnd", config, steps, **env_options)

    high = START * 0.01
    return (
        *(motif(f"Motif, label noise {noise}", f"{RULE}?error={noise}") for noise in NOISE),
        motif("Motif, uninformed judge", "uniform"),
        motif("Motif without counts", f"{RULE}?error=0.1", beta=0.0),
        motif("Motif without threshold", f"{RULE}?error=0.1", quantile=None),
        count("sparse reward alone", weight=0.0),
        count("count of states", weight=0.01),
        count("count of events", weight=0.01, of="event"),
        count(f"count of states, Q from {high}", weight=0.01, initial=high),
        count(f"Q from {high} alone", weight=0.0, initial=high),
        rnd(0.01),
        # With the weight of Motif's rewards.
        count("count of states, weight 0.1", weight=0.1),
        count("count of events, weight 0.1", weight=0.1, of="event"),
        rnd(0.1),
        *(motif(f"Motif, {lm}", lm) for lm in lms),
    )


def judged_by(lms: Sequence[str], steps: int) -> tuple[Arm, ...]:
    """Return Motif with real models, asked by letters, beside the blank prompt, a rule and no knowledge.

    By letters each pair of captions is one request. Written verdicts would be drawn, one for each of the
    2,000 pairs, so a model without letters is refused.
    """

    def motif(label: str, lm: str, **asked: Any) -> Arm:
        options = MotifConfig(table=TABLE, preference=PreferenceConfig(**asked))
        return _arm(label, "motif", options, steps, lm)

    real = [
        motif(f"Motif, {lm}{words}", lm, way="label", **goal)
        for lm in lms
        for words, goal in (("", {}), (", blank prompt", {"goal": ""}))
    ]
    return (*real, motif("Motif, a rule", RULE), motif("Motif, uninformed judge", "uniform"))


def hard_to_find(steps: int) -> tuple[Arm, ...]:
    """Motif with 10 % of wrong labels, and its controls, in episodes of ``SHORT`` steps."""
    left_out = ("noise 0.0", "noise 0.3", "without")
    longer = MotifConfig(table=TABLE, preference=PreferenceConfig(collect=3_000))
    return (
        *(arm for arm in arms(steps, max_steps=SHORT) if not any(words in arm.label for words in left_out)),
        _arm(LONGER, "motif", longer, steps, f"{RULE}?error=0.1", max_steps=SHORT),
    )


def reached(result: Result, wins: int) -> float:
    """Steps after which so many of ten episodes succeeded; all where it never came to that."""
    won = [episode.success for episode in result.episodes]
    for i in range(RECENT, len(won) + 1):
        if sum(won[i - RECENT : i]) >= wins:
            return float(result.episodes[i - 1].step)
    return float(result.requested)


def speeds(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Steps to half and to nine tenths of the episodes by line, in Markdown."""
    names = ("arm", "evidence", "steps to half", "steps to nine tenths", "never", "success")
    lines = [f"| {' | '.join(names)} | {COST} |", "|---" * (len(names) + 3) + "|"]
    for arm in listed:
        found = [r for job in jobs([arm], seeds, folder) if (r := finished(job.folder))]
        nine = [reached(r, 9) for r in found]
        never = sum(steps >= r.requested for steps, r in zip(nine, found, strict=True))
        late = over_seeds([r.success.value for r in found])
        lines.append(
            f"| {arm.label} | {found[0].evidence or '-'} | {_steps([reached(r, 5) for r in found])} "
            f"| {_steps(nine)} | {never} of {len(found)} | {late} | {cost(spent(r, 'lm') for r in found)} |"
        )
    told = (
        "Steps until five, or nine, of ten episodes succeeded; a run that never did counts in full. Never: "
        "runs that did not reach nine. Calls, cache hits and seconds are of all seeds together."
    )
    return "\n".join([told, "", *lines])


def _steps(values: Sequence[float]) -> str:
    mean = over_seeds(values)
    return f"{mean.value:,.0f} [{mean.low:,.0f}, {mean.high:,.0f}]"


def steering(steps: int) -> tuple[Arm, ...]:
    """Two goals for the judge, and no reward of the environment."""
    goals = {"the mission": None, TIDY: TIDY}
    return tuple(
        _arm(
            f"Motif, {label}",
            "motif",
            MotifConfig(table=TABLE, extrinsic=0.0, preference=PreferenceConfig(goal=goal)),
            steps,
            f"{RULE}?error=0.1",
        )
        for label, goal in goals.items()
    )


def behaviours(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the events in the episodes of the last quarter, by goal, in Markdown."""
    told = {"succeeds": "You reach the goal.", "unlocks": "You unlock", "puts down": "You put down"}
    lines = [f"| arm | {' | '.join(told)} | {COST} |", "|---|" + "---|" * (len(told) + 3)]
    env = make(ENV)
    for arm in listed:
        found = [r for job in jobs([arm], seeds, folder) if (r := finished(job.folder))]
        late = [[_events(env, e) for e in last_quarter(r.episodes, r.requested)] for r in found]
        cells = [str(over_seeds([_mean(words, events) for events in late])) for words in told.values()]
        lines.append(f"| {arm.label} | {' | '.join(cells)} | {cost(spent(r, 'lm') for r in found)} |")
    return "Counts per episode of the last quarter.\n\n" + "\n".join(lines)


def _events(env: Any, episode: Finished) -> Counter[str]:
    return Counter(t.event for t in replay(env, episode))


def _mean(words: str, episodes: Sequence[Counter[str]]) -> float:
    """How often an event that begins so came in an episode."""
    times = [sum(n for event, n in seen.items() if event.startswith(words)) for seen in episodes]
    return float(np.mean(times)) if times else float("nan")


def fits(seeds: int, folder: Path) -> str:
    """How well the fitted rewards agree with the judge, and with one that is never wrong, in Markdown."""
    lines = [
        f"| label noise | right by the judge | right by a judge without noise | Brier | cycles | {COST} |",
        "|---" * 8 + "|",
    ]
    for noise in (*NOISE, 0.4):
        found = [_fit(noise, seed) for seed in range(seeds)]
        cells = [
            str(over_seeds([fit[name] for fit in found])) for name in ("judge", "clean", "brier", "cycles")
        ]
        lines.append(f"| {noise} | {' | '.join(cells)} | {cost(found)} |")
    return "Held-out pairs of captions of random play, 2,000 pairs per seed.\n\n" + "\n".join(lines)


def _fit(noise: float, seed: int) -> dict[str, float]:
    """Fit to pairs of captions of random play, and return agreement, calibration, cycles and cost."""
    data = _random_play(seed)
    judge, begun = load(f"{RULE}?error={noise}"), time.perf_counter()
    source = Preference(judge, load("bag-of-words"))
    source.begin(World(task=GOAL, data=data), seed)
    seconds, told = time.perf_counter() - begun, source.report
    names = list(told["captions"])
    clean = Preference(load(RULE), load("bag-of-words"))
    pairs = clean.judged([(a, b) for a in names for b in names if a != b])
    right = [_agrees(pair, told["captions"]) for pair in pairs if pair.verdict]
    return {
        "judge": told["accuracy"],
        "clean": float(np.mean(right)),
        "brier": told["brier"],
        "cycles": told["cycles"] or 0.0,
        "calls": judge.usage.calls,
        "hits": judge.usage.cache_hits,
        "seconds": seconds,
    }


JUDGED: Final[tuple[Way, ...]] = ("label", "likelihood")
"""Ways in which a real model is asked for verdicts, of those that it has: those that ask each pair once."""


def verdict_table(models: Sequence[str], folder: Path) -> str:
    """Return how often models are right on all pairs of captions of random play, in Markdown.

    Each pair is asked in both orders, with the goal and with the blank prompt, which leaves it out. A rule
    that knows the order of the captions says what is right; pairs that are level for it are left out.
    """
    ways = {model: ways_of(load(model), JUDGED) for model in models}
    goals = {"goal": GOAL, "blank prompt": ""}
    keys = [(model, way, prompt) for model in models for way in ways[model] for prompt in goals]
    rows = kept(
        folder / "verdicts.jsonl", keys, lambda model, way, prompt: _verdicts(model, way, goals[prompt])
    )
    head = "judge | asked by | prompt | verdicts | right | first of the two | pairs right by both orders"
    lines = [
        (*row["key"], row["n"], f"{row['right']:.2f}", f"{row['first']:.2f}", f"{row['both']:.2f}")
        for row in rows
    ]
    return table(head, lines)


def _verdicts(model: str, way: str, goal: str) -> dict[str, float]:
    captions = dict.fromkeys(t.event for episode in _random_play(0) for t in episode if t.event)
    ordered = [(a, b) for a in captions for b in captions if a != b]
    by_rule = _judged(load(RULE), PreferenceConfig(), ordered)
    by_model = _judged(load(model), PreferenceConfig(way=comparing(way), goal=goal), ordered)
    decided = [pair for pair in by_rule if pair.verdict]
    verdicts = {(pair.first, pair.second): pair for pair in by_model}
    right = [verdicts[pair.first, pair.second].verdict == pair.verdict for pair in decided]
    # By both orders: p(first) less what the reverse order gives it; a bias to either place falls out.
    leads = [
        verdicts[pair.first, pair.second].target - verdicts[pair.second, pair.first].target
        for pair in decided
    ]
    both = [
        0.5 if lead == 0 else float((lead > 0) == (pair.verdict == 1))
        for lead, pair in zip(leads, decided, strict=True)
    ]
    return {
        "n": len(decided),
        "right": float(np.mean(right)),
        "first": float(np.mean([pair.verdict == 1 for pair in by_model])),
        "both": float(np.mean(both)),
    }


def _judged(judge: LanguageModel, config: PreferenceConfig, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    source = Preference(judge, load("bag-of-words"), config)
    source.begin(World(task=GOAL), 0)
    return source.judged(pairs)


def _random_play(seed: int) -> list[Episode]:
    """Return eight episodes of random play."""
    env, rng = make(ENV), np.random.default_rng(seed)
    return [
        Episode(tuple(play(env, lambda s: s.options[int(rng.integers(len(s.options)))], 100 * seed + i)))
        for i in range(8)
    ]


def _agrees(pair: Pair, rewards: dict[str, float]) -> bool:
    return (rewards[pair.first] > rewards[pair.second]) == (pair.verdict == 1)


def _parts(scale: Scale, data: Path) -> list[Part]:
    steps = scale.steps(STEPS)
    listed, hard, goals = arms(steps, scale.lms), hard_to_find(steps), steering(scale.steps(STEPS // 2))
    real = judged_by(scale.lms, steps)
    judges = Part("Real judges", real, measure=speeds, beside=partial(verdict_table, scale.lms), apart=True)
    return [
        Part("The fit by noise", (), beside=lambda folder: fits(scale.seeds, folder)),
        Part("DoorKey-5x5", listed, measure=speeds),
        Part(f"Episodes of {SHORT} steps", hard, measure=speeds),
        Part("Two goals", goals, measure=behaviours),
        *([judges] if scale.lms else []),
    ]


STUDIES = {
    "motif": Study(
        "motif",
        "Do preferences between captions help to find a sparse reward sooner, and how much noise do they "
        "tolerate?",
        "On NetHack, agents that learn from the fitted reward alone score higher than those that learn from "
        "the score; with both they make progress where rewards are sparse (Klissarov et al., ICLR 2024).",
        "MiniGrid's DoorKey-5x5 in words, not NetHack; a table instead of a recurrent network; 2,000 pairs "
        "from the first 1,000 steps, which count. The judge is a rule (L0): this says nothing about models.",
        _parts,
        lm_for="motif",
        seeds=5,
    )
}
