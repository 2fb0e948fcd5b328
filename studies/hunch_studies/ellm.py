"""Study of "Guiding Pretraining in Reinforcement Learning with Large Language Models" (Du et al., ICML 2023):
how many different things an agent learns to do without the environment's reward.

    hunch study ellm
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hunch.core import Agent
from hunch.envs import make
from hunch.lm import load
from hunch.methods.goal.ellm import ELLM, ELLMConfig, SuggestionConfig
from hunch.methods.q_learning import QLearning, QLearningConfig
from hunch.methods.reward.count_bonus import CountBonus, CountBonusConfig
from hunch.methods.reward.rnd import RNDConfig
from hunch.report.table import final_return
from hunch.rl.episodes import advance, world_of
from hunch.rl.rollout import Rollout
from hunch.rl.statistics import above, over_seeds
from hunch.roles.reward.rewarded import Rewarded
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig, finished
from hunch_studies.code_world_models import kept
from hunch_studies.cost import COST, cost, spent
from hunch_studies.novelty import START
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study

ENV = "hunch/Craft-v0"
STEPS = 6_000
LATER = 3_000
"""Steps on the environment's reward, after the pretraining."""
SCRATCH = "nothing"
RULE = "scripted:suggest"
ALL = SuggestionConfig(goals=70, samples=150, temperature=1.0)
"""Number of random goals that covers nearly every action."""
SOME = SuggestionConfig(samples=5, temperature=1.0)


def arms(steps: int, pastimes: int, lms: Sequence[str], short: bool) -> tuple[Arm, ...]:
    """ELLM by its source of goals, and novelty; the same learner in all, and no reward of the task."""
    table = QLearningConfig(epsilon=(1.0, 0.1, steps // 2))
    high = replace(table, initial=START)

    def arm(label: str, method: str, options: Any, lm: str = "") -> Arm:
        config = RunConfig(
            method=method, env=ENV, env_options={"pastimes": pastimes}, lm=lm, steps=steps, options=options
        )
        return Arm(label, config)

    def ellm(label: str, lm: str, **options: Any) -> Arm:
        return arm(label, "ellm", ELLMConfig(table=table, **options), lm)

    def count(label: str, own: QLearningConfig, weight: float = 1.0) -> Arm:
        return arm(label, "count-bonus", CountBonusConfig(table=own, extrinsic=0.0, weight=weight))

    both = (
        ellm("ELLM", RULE),
        ellm("every action a goal", "uniform", suggestions=ALL),
        *(ellm(f"ELLM, {lm}", lm) for lm in lms),
    )
    if short:
        return both
    return (
        *both,
        ellm("ELLM, error 0.3", f"{RULE}?error=0.3"),
        ellm("goals like the state, minilm", "minilm"),
        ellm("goals like the state, words", "bag-of-words"),
        ellm("uniform goals", "uniform", suggestions=SOME),
        ellm("nonsense goals", "uniform", nonsense=("make peace", "collect time", "eat the moon")),
        count("count of states", table),
        count(f"count of states, Q from {START:.0f}", high),
        count(f"Q from {START:.0f} alone", high, weight=0.0),
        arm("RND", "rnd", RNDConfig(table=high, extrinsic=0.0, weight=1.0)),
    )


def achieved(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Different achievements in an episode of the last quarter, by line, in Markdown."""
    found = {arm: [r for job in jobs([arm], seeds, folder) if (r := finished(job.folder))] for arm in listed}
    scores = {arm: [final_return(result) for result in results] for arm, results in found.items()}
    head = f"arm | evidence | achievements | {listed[0].label} is above | calls per step | {COST}"
    rows = []
    for arm, results in found.items():
        runs = [spent(result, "lm") for result in results]
        share = sum(run["calls"] for run in runs) / sum(result.steps for result in results)
        beaten = "" if arm is listed[0] else "yes" if above(scores[listed[0]], scores[arm]) else "not shown"
        evidence = results[0].evidence or "-"
        rows.append((arm.label, evidence, over_seeds(scores[arm]), beaten, f"{share:.1%}", cost(runs)))
    return f"Of 16, in an episode of the last quarter of the steps.\n\n{table_of(head, rows)}"


# ---- after the pretraining --------------------------------------------------------------------------------


def agents(steps: int) -> dict[str, Agent]:
    """Return the methods pretrained without the environment's reward, and the one without pretraining."""
    table = QLearningConfig(epsilon=(1.0, 0.1, steps // 2))
    words = load("bag-of-words")
    return {
        "ELLM": ELLM(load(RULE), ELLMConfig(table=table), words),
        "every action a goal": ELLM(load("uniform"), ELLMConfig(table=table, suggestions=ALL), words),
        "count of states": CountBonus(CountBonusConfig(table=table, extrinsic=0.0, weight=1.0), words),
        SCRATCH: QLearning(table),
    }


def downstream(steps: int, more: int, label: str, seed: int) -> dict[str, float]:
    """Pretrain for some steps, then train on the environment's reward only; return final return and cost.

    An agent from scratch is trained for the later steps only.
    """
    agent, begun = agents(more if label == SCRATCH else steps)[label], time.perf_counter()
    rollout = Rollout([make(ENV)], seed)
    agent.begin(world_of(rollout, rollout.fleet.envs[0], steps + more, ()), seed)
    if label != SCRATCH:
        _go_on(agent, rollout, steps)
        rewarded: Any = agent if isinstance(agent, Rewarded) else agent.agent  # type: ignore[attr-defined]
        rewarded.weight, rewarded.extrinsic = 0.0, 1.0
    before = rollout.steps
    rollout.take_finished()
    _go_on(agent, rollout, before + more)
    late = [e.episode_return for e in rollout.take_finished() if e.step > before + 0.75 * more]
    lm = getattr(agent, "models", {}).get("lm")
    return {
        "achieved": float(np.mean(late)) if late else 0.0,
        "calls": lm.usage.calls if lm else 0,
        "hits": lm.usage.cache_hits if lm else 0,
        "seconds": time.perf_counter() - begun,
    }


def _go_on(agent: Agent, rollout: Rollout, until: int) -> None:
    while rollout.steps < until:
        advance(rollout, agent)
        agent.learn()


def after(steps: int, more: int, seeds: int, folder: Path) -> str:
    """Return the effect of each kind of pretraining on the task of all achievements, in Markdown."""
    keys = [(label, seed) for label in agents(steps) for seed in range(seeds)]
    found = kept(folder / "runs.jsonl", keys, partial(downstream, steps, more))
    by = {label: [run for run in found if run["key"][0] == label] for label, _ in keys}
    scratch = [run["achieved"] for run in by[SCRATCH]]
    rows = []
    for label, runs in by.items():
        own = [run["achieved"] for run in runs]
        ahead = "" if label == SCRATCH else "yes" if above(own, scratch) else "not shown"
        rows.append((label, over_seeds(own), ahead, cost(runs)))
    return table_of(f"pretrained by | achievements | above no pretraining | {COST}", rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for title, pastimes in (("With pastimes", 12), ("Without pastimes", 0)):
        listed = arms(scale.steps(STEPS), pastimes, scale.lms, short=not pastimes)
        parts.append(Part(title, listed, measure=achieved))
    later = partial(after, scale.steps(STEPS), scale.steps(LATER), scale.seeds)
    return [*parts, Part("After the pretraining", (), beside=later)]


STUDIES = {
    "ellm": Study(
        "ellm",
        "Do goals that a model suggests lead to more achievements than novelty or nonsense goals?",
        "On Crafter without rewards, ELLM reaches more different achievements than novelty methods, and its "
        "pretraining helps later tasks at least as much (Du et al., ICML 2023).",
        "The craft world is ours, and the learner is a table, not DQN. `scripted:suggest` knows the recipes "
        "(L0) and says nothing about language models; `minilm` (L3) suggests what resembles the observation, "
        "and the bag of words is its lexical control. Goals are suggested once per state.",
        _parts,
        lm_for="ellm",
        seeds=8,
    )
}
