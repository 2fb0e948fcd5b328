"""Study of "Exploration by Random Network Distillation" (Burda et al., ICLR 2019), a control of other
studies: whether it finds what random play does not, and which of its parts a table of Q needs for that.

    hunch study novelty
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.count_bonus import CountBonusConfig
from hunch.methods.reward.rnd import RNDConfig
from hunch.rl.statistics import compared, over_seeds
from hunch.runs.compare import SEED, Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.result import Result
from hunch.runs.stored import finished
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study

ENV: Final = "hunch/DoorKey-v0"
ROOM: Final = {"size": 6, "max_steps": 50, "layout_seed": SEED}
"""One layout in a run; random play reached the goal in none of 600 episodes of three other layouts."""
STEPS: Final = 10_000
START: Final = 30.0
"""Q before any step, in units of the bonus's weight; chosen on layouts 20 to 27."""
PLAY: Final = "random play"


def arms(steps: int) -> tuple[Arm, ...]:
    """RND, random play, and RND with one part switched off at a time; the same learner in all."""
    weight = RNDConfig().weight
    greedy = QLearningConfig(epsilon=(0.05, 0.05, 1), initial=START * weight)

    def arm(label: str, method: str, options: Any) -> Arm:
        return Arm(label, RunConfig(method=method, env=ENV, env_options=ROOM, steps=steps, options=options))

    def rnd(label: str, **options: Any) -> Arm:
        return arm(label, "rnd", replace(RNDConfig(table=greedy, weight=weight), **options))

    return (
        rnd("RND"),
        arm(PLAY, "q-learning", QLearningConfig(epsilon=(1.0, 1.0, 1))),
        rnd("RND, Q starts at 0", table=replace(greedy, initial=0.0)),
        rnd("RND, errors not scaled", rnd_scaled=("input",)),
        rnd("RND, input not scaled", rnd_scaled=("errors",)),
        rnd("RND, no warm-up", rnd_warmup=0),
        rnd("RND, one update per batch", rnd_epochs=1),
        rnd("the start of Q alone", weight=0.0, rnd_warmup=0),
        arm("count of states", "count-bonus", CountBonusConfig(table=greedy)),
    )


def steps_to_first(result: Result) -> float:
    """Steps until an episode succeeded; all if none did."""
    return float(next((e.step for e in result.episodes if e.success), result.requested))


def first(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Steps to the first success, and success in the end, of each arm, in Markdown."""
    by = {arm: [r for job in jobs([arm], seeds, folder) if (r := finished(job.folder))] for arm in listed}
    play = [r.success.value for arm, own in by.items() if arm.label == PLAY for r in own]
    rows = []
    for arm, own in by.items():
        late, steps = [r.success.value for r in own], over_seeds([steps_to_first(r) for r in own])
        never = sum(not any(e.success for e in r.episodes) for r in own)
        told = f"{steps.value:,.0f} [{steps.low:,.0f}, {steps.high:,.0f}]"
        verdict = "" if arm.label == PLAY else compared(late, play, best=1.0)
        rows.append((arm.label, told, f"{never} of {len(own)}", over_seeds(late), verdict))
    return table_of("arm | steps to the first success | never | success | over random play", rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("A key, a door and a goal", arms(scale.steps(STEPS)), measure=first)]


STUDIES = {
    "novelty": Study(
        "novelty",
        "Does random network distillation find what random play does not, and what does it need for that?",
        "On Montezuma's Revenge RND finds rooms that agents without a bonus never see (Burda et al., ICLR "
        "2019).",
        "A room of MiniGrid in words with one layout per run, a table of Q instead of PPO, and bags of words "
        "instead of pictures. One Q holds both rewards, so reaching the goal ends the sum of bonuses.",
        _parts,
        seeds=10,
    )
}
