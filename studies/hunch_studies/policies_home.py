"""Arms of the studies of trained policies in household games, with the model that has read of such games."""

from __future__ import annotations

from typing import Any, Final

from hunch.methods.policy.glam import GLAMConfig
from hunch.methods.policy.ppo import PPOConfig
from hunch.methods.policy.twosome import TWOSOMEConfig
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.agents import ENV, LIMIT, NEVER, TRAINED

PPO: Final = "PPO on bags of words"
ON_WORDS: Final = PPOConfig(encoder="bag-of-words", horizon=40)
"""The lexical control of a trained policy."""
STREAMS_PUBLISHED: Final = 32


def trained(steps: int) -> tuple[Arm, ...]:
    """Return GLAM, TWOSOME and controls in household games, by the bare transcript (as it was read)."""
    glam, scratch = GLAMConfig(listed=False), GLAMConfig(listed=False, start="random")
    twosome = TWOSOMEConfig(listed=False, normalise="token")
    return (
        home("GLAM, pretrained", "glam", steps, glam, TRAINED),
        home("TWOSOME, pretrained", "twosome", steps, twosome, f"{TRAINED}&train=lora"),
        home("GLAM, from scratch", "glam", steps, scratch, TRAINED),
        home(PPO, "ppo", steps, ON_WORDS),
    )


def beginnings(steps: int) -> tuple[Arm, ...]:
    """Return GLAM and TWOSOME without an update."""
    glam = GLAMConfig(listed=False, horizon=NEVER)
    twosome = TWOSOMEConfig(listed=False, normalise="token", horizon=NEVER)
    return (
        home("GLAM, not trained", "glam", steps, glam, TRAINED),
        home("TWOSOME, not trained", "twosome", steps, twosome, f"{TRAINED}&train=lora"),
    )


def home(label: str, method: str, steps: int, options: Any, lm: str = "") -> Arm:
    """Return an arm in the household games of the study of agents."""
    config = RunConfig(
        method=method,
        env=ENV,
        env_options={"max_steps": LIMIT},
        lm=lm,
        steps=steps,
        envs=STREAMS_PUBLISHED,
        options=options,
    )
    return Arm(label, config)
