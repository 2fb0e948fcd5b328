"""The world model: does the model predict what an action does, from examples?

Prompts and readers are those of ICPI (:class:`hunch.roles.world_model.text.InContextWorldModel`). The model
is shown steps of random play, and predicts other episodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hunch.audition.question import POOL, Bed, Role, Scores
from hunch.lm.base import LanguageModel
from hunch.rl.world_model import LookUp, Prediction, Step, WorldModel, alike, right
from hunch.roles.world_model.prompting import PromptConfig
from hunch.runs.foretell import Foretelling, Recording, in_context, recorded, text_steps

BEDS = (Bed("hunch/Chain-v0"), Bed("hunch/Maze-v0"), Bed("hunch/MiniCatch-v0"))
SHOWN = 64
"""Steps that the model is shown."""


def predictions(lm: LanguageModel, bed: Bed, n: int, seed: int) -> Scores:
    """Return for each step whether end, reward and next state are predicted."""
    recording = _recorded(bed, n, seed)
    return _scored(in_context(lm, recording, PromptConfig()), recording, n, seed)


def by_look_up(bed: Bed, n: int, seed: int) -> Scores:
    """Predict what came of the same step the last time."""
    recording = _recorded(bed, n, seed)
    return _scored(LookUp(text_steps(recording.shown)), recording, n, seed)


def _recorded(bed: Bed, n: int, seed: int) -> Recording:
    """Play at random: the steps to show, and episodes to predict."""
    episodes = max(2, n)
    return recorded(
        Foretelling(env=bed.env, examples=SHOWN, episodes=episodes, seed=POOL + seed), dict(bed.options)
    )


def _scored(model: WorldModel, recording: Recording, n: int, seed: int) -> Scores:
    steps, groups = _questions(recording, n)
    rngs = [np.random.default_rng([seed, i]) for i in range(len(steps))]
    found = model.step([s.state for s in steps], [s.action for s in steps], rngs)
    known = {(t.state.observation, t.action) for t in recording.shown}
    values = np.array([float(right(p, s)) for p, s in zip(found, steps, strict=True)])
    new = values[[(s.state, s.action) not in known for s in steps]]
    unseen = float(new.mean()) if len(new) else float("nan")
    return Scores(values, groups, {**_fields(found, steps), "unseen steps": unseen})


def _questions(recording: Recording, n: int) -> tuple[list[Step], list[int]]:
    told = [(step, i) for i, episode in enumerate(recording.held) for step in text_steps(episode)][:n]
    return [step for step, _ in told], [i for _, i in told]


def _fields(found: Sequence[Prediction], steps: Sequence[Step]) -> dict[str, float]:
    """Return the share of ends, rewards and next states that are right, each where it was predicted."""
    pairs = list(zip(found, steps, strict=True))
    ends = [p.done is s.done for p, s in pairs]
    rewards = [p.reward is not None and alike(p.reward, s.reward) for p, s in pairs]
    states = [p.next_state is not None and alike(p.next_state, s.next_state) for p, s in pairs if not s.done]
    return {
        "end": float(np.mean(ends)),
        "reward": float(np.mean(rewards)),
        "next state": float(np.mean(states)),
    }


WORLD_MODEL = Role(
    "world-model",
    "share of steps whose end, reward and next state are predicted",
    ("generate",),
    BEDS,
    predictions,
    by_look_up,
    requests=3.0,
)
