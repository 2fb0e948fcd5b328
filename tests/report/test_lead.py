"""What a model saves, paired by seed, from the episodes of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hunch.methods import DQNConfig, DQNPriorConfig
from hunch.report.lead import leads
from hunch.rl.rollout import Finished
from hunch.rl.statistics import over_episodes
from hunch.runs.compare import Arm, Job, Outcome
from hunch.runs.execute import RunConfig
from hunch.runs.result import Result

LAKE = "hunch/FrozenLake-v0"
DQN = Arm("dqn", RunConfig(method="dqn", env=LAKE, options=DQNConfig()))
PRIOR = Arm("dqn-prior", RunConfig(method="dqn-prior", env=LAKE, lm="minilm", options=DQNPriorConfig()))
STEPS = 1_000


def run(arm: Arm, seed: int, fails: int) -> Outcome:
    """A run of 1,000 episodes of one step, the first of which fail."""
    episodes = [Finished(0, n + 1, float(n >= fails), 1, n >= fails, ("Go Up",), n) for n in range(STEPS)]
    success = over_episodes([episode.success for episode in episodes[750:]])
    result = Result(STEPS, STEPS, success, episodes, [], {}, {}, 1.0, None)
    return Outcome(Job(arm, seed, Path(f"seed-{seed}")), result)


def test_steps_and_area_are_paired_by_seed() -> None:
    """Half of 50 episodes have succeeded 25 episodes after the last failure."""
    (lead,) = leads([run(DQN, 0, 375), run(PRIOR, 0, 175), run(PRIOR, 1, 55), run(DQN, 1, 775)])
    assert (lead.arm, lead.baseline, lead.seeds) == ("dqn-prior", "dqn", 2)
    assert lead.share.value == pytest.approx((200 / 400 + 80 / 800) / 2)
    assert lead.area.value == pytest.approx((0.200 + 0.720) / 2)
    assert lead.area.low < lead.area.value < lead.area.high
    assert "2 pairs: lead in area 0.46" in str(lead)


def test_a_run_that_never_got_there_counts_with_all_of_its_steps() -> None:
    (lead,) = leads([run(arm, seed, fails) for seed in (0, 1) for arm, fails in ((DQN, STEPS), (PRIOR, 225))])
    assert lead.share.value == pytest.approx(0.25)
    (neither,) = leads([run(arm, seed, STEPS) for seed in (0, 1) for arm in (DQN, PRIOR)])
    assert neither.share.value != neither.share.value
    assert "steps to half" not in str(neither)


def test_one_pair_has_a_lead_and_no_interval() -> None:
    (lead,) = leads([run(DQN, 0, 375), run(PRIOR, 0, 175)])
    assert str(lead) == "dqn-prior beside dqn, 1 pair: lead in area 0.20; 0.50 of its steps to half"


def test_without_a_pair_of_seeds_or_a_baseline_nothing_is_said() -> None:
    assert not leads([run(DQN, 0, 100), run(DQN, 1, 100), run(PRIOR, 2, 50), run(PRIOR, 3, 50)])
    assert not leads([run(PRIOR, 0, 50), run(PRIOR, 1, 50)])
    failed = Outcome(Job(PRIOR, 0, Path("seed-0")), None, "it failed")
    assert not leads([run(DQN, 0, 100), failed, run(PRIOR, 1, 50)])
