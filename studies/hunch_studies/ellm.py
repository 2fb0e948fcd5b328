"""Study of "Guiding Pretraining in Reinforcement Learning with Large Language Models" (Du et al., ICML 2023):
how many different things an agent learns to do without the environment's reward.

    hunch study ellm
    python -m hunch_studies.ellm docs/assets/studies/ellm.answers.jsonl.gz   # what a model's goals copy
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hunch.core import Transition, World
from hunch.methods import find
from hunch.methods.goal.ellm import ELLM, ELLMConfig
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.count_bonus import CountBonus, CountBonusConfig
from hunch.methods.reward.rnd import RNDConfig
from hunch.ranges import NonNegativeInt
from hunch.report.table import final_return
from hunch.rl.statistics import compared, over_seeds
from hunch.roles.goal.suggestions import SuggestionConfig
from hunch.roles.reward.rewarded import Rewarded
from hunch.roles.wrapper import Wrapper
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.result import Result
from hunch.runs.stored import finished
from hunch_studies.cost import COST, cost, spent
from hunch_studies.novelty import START
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import json_lines, print_table
from hunch_studies.study import Part, Scale, Study, runs_of

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
    head = f"arm | evidence | achievements | {listed[0].label} over it | calls per step | {COST}"
    rows = []
    for arm, results in found.items():
        runs = [spent(result, "lm") for result in results]
        share = sum(run["calls"] for run in runs) / sum(result.steps for result in results)
        verdict = "" if arm is listed[0] else compared(scores[listed[0]], scores[arm])
        evidence = results[0].evidence or "-"
        rows.append((arm.label, evidence, over_seeds(scores[arm]), verdict, f"{share:.1%}", cost(runs)))
    return f"Of 16, in an episode of the last quarter of the steps.\n\n{table_of(head, rows)}"


# ---- after the pretraining --------------------------------------------------------------------------------


class Turning(Wrapper):
    """Mixin for an agent that learns from the environment's reward alone once its pretraining is over."""

    config: Any

    @property
    def settings(self) -> dict[str, Any]:
        """The config and the models; the weights of the rewards change and are left out."""
        models = getattr(self, "models", {})
        return {**asdict(self.config), "models": {name: model.name for name, model in models.items()}}

    def begin(self, world: World, seed: int) -> None:
        """Begin with the pretraining."""
        self.gone = 0
        self._turn()
        super().begin(world, seed)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Count the steps."""
        super().observe(transitions)
        self.gone += len(transitions)

    def learn(self) -> dict[str, float]:
        """Learn; the next step may be the first after the pretraining."""
        told = super().learn()
        self._turn()
        return told

    def _turn(self) -> None:
        c, over = self.config, self.gone >= self.config.pretraining
        rewarded: Any = self if isinstance(self, Rewarded) else self.agent
        rewarded.weight, rewarded.extrinsic = (0.0, 1.0) if over else (c.weight, c.extrinsic)

    def state_dict(self) -> dict[str, Any]:
        """Return the agent's state and the number of steps."""
        return {**super().state_dict(), "gone": self.gone}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.gone = state["gone"]
        self._turn()


@dataclass(frozen=True, kw_only=True)
class TurningELLMConfig(ELLMConfig):
    """ELLM, and then the environment's reward."""

    pretraining: NonNegativeInt = 0
    """Steps before it."""


@dataclass(frozen=True, kw_only=True)
class TurningCountConfig(CountBonusConfig):
    """The count of states, and then the environment's reward."""

    pretraining: NonNegativeInt = 0
    """Steps before it."""


class TurningELLM(Turning, ELLM):
    """ELLM, and then the environment's reward."""

    config_class = TurningELLMConfig


class TurningCount(Turning, CountBonus):
    """The count of states, and then the environment's reward."""

    config_class = TurningCountConfig


TURNING = replace(find("ellm"), name=f"{__name__}:TURNING", agent_class=TurningELLM)
COUNTING = replace(find("count-bonus"), name=f"{__name__}:COUNTING", agent_class=TurningCount)


def later(steps: int, more: int) -> tuple[Arm, ...]:
    """Return agents pretrained without the environment's reward, and one that has only the later steps."""
    table = QLearningConfig(epsilon=(1.0, 0.1, steps // 2))
    ellm = TurningELLMConfig(table=table, pretraining=steps)
    count = TurningCountConfig(table=table, pretraining=steps, extrinsic=0.0, weight=1.0)
    run = RunConfig(method=TURNING.name, env=ENV, steps=steps + more)
    scratch = QLearningConfig(epsilon=(1.0, 0.1, more // 2))
    return (
        Arm("ELLM", replace(run, lm=RULE, options=ellm)),
        Arm("every action a goal", replace(run, lm="uniform", options=replace(ellm, suggestions=ALL))),
        Arm("count of states", replace(run, method=COUNTING.name, options=count)),
        Arm(SCRATCH, replace(run, method="q-learning", steps=more, options=scratch)),
    )


def after(listed: Sequence[Arm], more: int, seeds: int, folder: Path) -> str:
    """Return the effect of each kind of pretraining on the task of all achievements, in Markdown."""
    by = {
        arm.label: [
            _achieved(result, more) for run in runs_of(arm, seeds, folder) if (result := finished(run))
        ]
        for arm in listed
    }
    scratch = [run["achieved"] for run in by[SCRATCH]]
    rows = []
    for label, runs in by.items():
        own = [run["achieved"] for run in runs]
        verdict = "" if label == SCRATCH else compared(own, scratch)
        rows.append((label, over_seeds(own), verdict, cost(runs)))
    return table_of(f"pretrained by | achievements | over no pretraining | {COST}", rows)


def _achieved(result: Result, more: int) -> dict[str, Any]:
    """Return the return in the last quarter of the later steps, and the cost of all."""
    late = [e.episode_return for e in result.episodes if e.step > result.requested - 0.25 * more]
    return {"achieved": float(np.mean(late)) if late else 0.0, **spent(result, "lm")}


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for title, pastimes in (("With pastimes", 12), ("Without pastimes", 0)):
        listed = arms(scale.steps(STEPS), pastimes, scale.lms, short=not pastimes)
        parts.append(Part(title, listed, measure=achieved))
    steps, more = scale.steps(STEPS), scale.steps(LATER)
    listed = later(steps, more)
    told = partial(after, listed, more, scale.seeds)
    return [*parts, Part("After the pretraining", listed, beside=told, apart=True)]


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


ITEM = re.compile(r"^- ?(.+?) *$", re.MULTILINE)


def copied(file: Path) -> str:
    """Return how many recorded answers name the first things of the list in the request, in its order.

    Args:
        file: Recorded answers, an export of the cache.
    """
    copies, unread = 0, 0
    answers = json_lines(file)
    for row in answers:
        listed = ITEM.findall(row["request"][0])
        named = [item for item in ITEM.findall(row["value"])[:5] if item in listed]
        unread += not named
        copies += len(named) > 1 and named == listed[: len(named)]
    n = len(answers)
    return (
        f"{n} answers: {copies / n:.2f} name the first things of the list in its order, "
        f"{unread / n:.2f} name none."
    )


if __name__ == "__main__":
    print_table(copied, "How many recorded answers copy the list of goals.")
