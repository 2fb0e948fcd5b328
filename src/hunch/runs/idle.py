"""What is said of a run that learns nothing: it is too short for an update, or its groups score alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hunch.core import Agent
from hunch.roles.wrapper import Wrapper
from hunch.runs.config import RunConfig

NEARLY_ALL: Final = 0.9
"""Share of flat groups in the last quarter of a run from which on it is said."""


def too_short(agent: Agent, config: RunConfig) -> str:
    """Say that a run ends before the first update of its agent; empty if it does not.

    A run on recorded data alone learns from its first step on.
    """
    last_step = -(-config.steps // config.streams) * config.streams  # all streams go on together
    if config.offline or last_step >= agent.first_update:
        return ""
    learner = agent
    while isinstance(learner, Wrapper):
        learner = learner.agent
    setting = learner.waits_for
    if setting == "episodes":
        first = f"takes {agent.first_update:,} episodes (--episodes)"
    else:
        # A method with a reward of its own lets DQN learn, whose settings have a prefix.
        prefix = "dqn." if learner is not agent and setting == "warmup" else ""
        first = f"comes at step {agent.first_update:,} (--{prefix}{setting.replace('_', '-')})"
    return (
        f"This run makes no update, so its agent learns nothing: the first one {first}, and the run ends at "
        f"step {last_step:,} (--steps)."
    )


def flat(shares: Sequence[tuple[int, float]], steps: int) -> str:
    """Say that nearly all groups were flat at the end of a run; empty if they were not.

    Args:
        shares: Steps with the share of flat groups in the updates before each of them.
        steps: The steps of the run.
    """
    late = [share for step, share in shares if step > 0.75 * steps]
    if not late:
        return ""
    mean = sum(late) / len(late)
    if mean < NEARLY_ALL:
        return ""
    return (
        f"In the last quarter of the steps {mean:.2f} of the groups were flat: groups whose answers all "
        "score alike teach nothing."
    )
