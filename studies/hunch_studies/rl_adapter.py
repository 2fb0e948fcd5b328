"""Study of "AdaRefiner: Refining Decisions of Language Models with Adaptive Feedback" (Zhang and Lu, NAACL
2024; first RLAdapter): what the closed loop of adapter and score adds to sub-goals.

    hunch study rl-adapter
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import EvidenceLevel
from hunch.envs.craft import RULES
from hunch.methods import find
from hunch.methods.policy.ppo import PPOConfig
from hunch.methods.q_learning import QLearningConfig
from hunch.rl.statistics import compared, over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.loading import load_agent
from hunch.runs.result import last_quarter, mean_return
from hunch.runs.stored import finished
from hunch_contrib.goal.adapter import Sayer
from hunch_contrib.goal.rl_adapter import (
    SUMMARIES,
    Mentor,
    MentorConfig,
    RLAdapter,
    RLAdapterConfig,
)
from hunch_studies.cost import COST, cost, spent
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept, runs_of

__all__ = ["RULED", "STUDIES", "AdapterByRule"]

ENV: Final = "hunch/Craft-v0"
STEPS: Final = 6_000
STEPS_LONG: Final = 30_000
"""By a pilot run, seed 100, PPO that is told right sub-goals learns no more after 20,000."""
RULE: Final = "scripted:mentor"
BEDS: Final = {
    "Sub-goals that are seen": (True, STEPS),
    "Thirty thousand steps": (True, STEPS_LONG),
    "Sub-goals alone are rewarded": (False, STEPS),
}
"""Whether the sub-goals are seen (paper), or unseen and the only reward; and steps."""
CLOSED: Final = "closed loop"
PPO_SETTINGS: Final = PPOConfig(gamma=0.95, gae=0.65, learning_rate=1e-3)
"""The paper's discounts; its learning rate is a tenth, for millions of steps."""


class Rule(Sayer):
    """Says what is true: the later summary, the more achievements a player had last."""

    evidence: EvidenceLevel = "L0"

    def __init__(self, summaries: Sequence[str]) -> None:
        self.summaries = summaries

    def say(self, prompt: str, rng: np.random.Generator) -> str:
        """The next summary for every four achievements that the prompt tells of."""
        did = prompt.partition(". Told to")[0]
        number = sum(rule.action in did for rule in RULES)
        return self.summaries[min(number // 4, len(self.summaries) - 1)]

    def state_dict(self) -> dict[str, Any]:
        """Nothing: it learns nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up nothing."""


class Ruled(Mentor):
    """A mentor with the rule in the adapter's place."""

    def _adapter(self, seed: int) -> Sayer:
        return Rule(self.config.summaries)


class AdapterByRule(RLAdapter):
    """The agent with the rule in the adapter's place."""

    mentor_class = Ruled


RULED = replace(find("rl-adapter"), name=f"{__name__}:RULED", agent_class=AdapterByRule)


@dataclass(frozen=True)
class Line:
    """A line of the table; without a model it is the learner alone."""

    label: str
    lm: str = RULE
    mentor: dict[str, Any] = field(default_factory=dict)
    method: str = "rl-adapter"


def lines(lms: tuple[str, ...]) -> tuple[Line, ...]:
    """The closed loop, what is left of it without its parts, and rules in the adapter's place."""
    return (
        Line(CLOSED),
        Line("trained on all", mentor={"keep": 1.0}),
        Line("frozen adapter", mentor={"adapter": "frozen"}),
        Line("no adapter", mentor={"adapter": "none"}),
        Line("the rule in the adapter's place", method=RULED.name),
        Line("always new", mentor={"summaries": SUMMARIES[:1]}, method=RULED.name),
        Line("random sub-goals", "uniform", {"adapter": "none"}),
        Line("no sub-goals", ""),
        *(Line(f"{CLOSED}, {lm}", lm) for lm in lms),
    )


def config(seen: bool, steps: int, mentor: MentorConfig) -> RLAdapterConfig:
    """Settings in which the sub-goals are seen (paper), or unseen and the only reward."""
    if seen:
        return RLAdapterConfig(mentor=mentor, ppo=PPO_SETTINGS)
    table = QLearningConfig(epsilon=(1.0, 0.1, steps // 2), see_task=False)
    return RLAdapterConfig(mentor=mentor, learner="table", table=table, weight=1.0, extrinsic=0.0)


def listed(seen: bool, lms: tuple[str, ...]) -> list[Line]:
    """Return the lines of a part; without any reward nothing is learnt."""
    return [line for line in lines(lms) if line.lm or seen]


def arm(line: Line, seen: bool, steps: int) -> Arm:
    """Return the runs of a line."""
    own = config(seen, steps, MentorConfig(**line.mentor))
    if line.lm:
        run = RunConfig(method=line.method, env=ENV, lm=line.lm, steps=steps, options=own)
    else:
        run = RunConfig(method="ppo", env=ENV, steps=steps, options=replace(own.ppo, encoder=own.encoder))
    return Arm(line.label, run)


def learnt(run: Path) -> dict[str, Any]:
    """Achievements in an episode of the last quarter, and the score in the first and the last fifth."""
    agent, run_config = load_agent(run)
    result = finished(run)
    assert result is not None
    told = read_lines(run / "metrics.jsonl")
    scores = [line["comprehension"] for line in told if "comprehension" in line]
    fifth = max(1, len(scores) // 5)
    first, last = (float(np.mean(part)) if part else None for part in (scores[:fifth], scores[-fifth:]))
    late = last_quarter(result.episodes, run_config.steps)
    achieved = mean_return(late)["return"] if late else 0.0
    told_of = {"achieved": achieved, "first": first, "last": last, "summaries": _summaries(agent)}
    return {**told_of, "evidence": result.evidence, **spent(result, "lm")}


def _summaries(agent: Any) -> list[str]:
    """What an adapter says in the end of players who have done little, and much."""
    mentor = getattr(agent, "mentor", None)
    if mentor is None or mentor.adapter is None:
        return []
    rng = np.random.default_rng(0)
    prompts = [lesson.prompt for lesson in mentor.lessons.values()] * 20
    return [mentor.adapter.say(prompt, rng) for prompt in prompts]


def measured(own: Sequence[Arm], seeds: int, folder: Path) -> str:
    """A row for each line: achievements, and how the score moved, in Markdown."""
    trained = {arm.label: runs_of(arm, seeds, folder) for arm in own}
    keys = [(label, seed) for label in trained for seed in range(seeds)]
    kept_rows = kept(folder / "learnt.jsonl", keys, lambda label, seed: learnt(trained[label][seed]))
    found = [(label, [row for row in kept_rows if row["key"][0] == label]) for label in trained]
    closed = found[0][1]
    rows = []
    for label, runs in found:
        achieved = [one["achieved"] for one in runs]
        verdict = "" if runs is closed else compared(_of(closed, "achieved"), achieved)
        scores = [f"{over_seeds(_of(runs, n))}" if runs[0][n] is not None else "-" for n in ("first", "last")]
        rose = over_pairs([one["last"] - one["first"] for one in runs]) if runs[0]["first"] else "-"
        said = [text for one in runs for text in one["summaries"]]
        most = max(set(said), key=said.count) if said else "-"
        evidence = runs[0]["evidence"] or "-"
        rows.append((label, evidence, over_seeds(achieved), verdict, *scores, rose, most, cost(runs)))
    head = "arm | evidence | achievements | closed loop over it | score, first fifth | last fifth"
    return f"Of 16.\n\n{table(f'{head} | rose by | says most in the end | {COST}', rows)}"


def _of(runs: list[dict[str, Any]], name: str) -> list[float]:
    return [one[name] for one in runs]


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for title, (seen, steps) in BEDS.items():
        own = tuple(arm(line, seen, scale.steps(steps)) for line in listed(seen, scale.lms))
        parts.append(Part(title, own, beside=partial(measured, own, scale.seeds)))
    return parts


STUDIES = {
    "rl-adapter": Study(
        "rl-adapter",
        "Does an adapter that learns how well sub-goals are followed lead to more achievements?",
        "On Crafter at 5 M steps RLAdapter is about as good as SPRING, with GPT-4 above ELLM; at 1 M steps "
        "it is above all baselines except ELLM (Zhang and Lu).",
        "`scripted:mentor` is a rule (L0) whose sub-goals suit the player that the summary describes; the "
        "adapter is a new model of a million weights (L1) that chooses among four summaries. PPO has 6,000 "
        "or 30,000 steps, not millions. In the last part a table does not see the sub-goals, but is rewarded "
        "for them. This says nothing about large models.",
        _parts,
        lm_for="rl-adapter",
        seeds=8,
    )
}
