"""The world model: does the model predict the results of actions, given examples?

Prompts and readers are those of ICPI (:class:`hunch.roles.world_model.text.InContextWorldModel`). The model
gets steps of random play as examples, and predicts other episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hunch.audition.question import POOL, USUAL, Bed, Manner, Role, Scores, in_words
from hunch.lm.base import LanguageModel
from hunch.rl.world_model import LookUp, Prediction, Step, WorldModel, alike, right
from hunch.roles.world_model.prompting import PromptConfig
from hunch.runs.foretell import Foretelling, Recording, in_context, recorded, text_steps

BEDS = (Bed("hunch/Chain-v0"), Bed("hunch/Maze-v0"))
FIELDS = 3
"""Number of questions per step: end, reward and next state."""
SHOWN = 64
"""Number of example steps for the model."""


class Asked(NamedTuple):
    """The recording, the steps that the model predicts, and the episode index of each."""

    recording: Recording
    steps: list[Step]
    episodes: list[int]


def steps(bed: Bed, n: int, seed: int) -> Asked:
    """Record random play: example steps, and steps of other episodes with n fields to predict."""
    config = Foretelling(env=bed.env, examples=SHOWN, episodes=max(2, n), seed=POOL + seed)
    recording = recorded(config, dict(bed.options))
    steps = [(step, i) for i, episode in enumerate(recording.held) for step in text_steps(episode)]
    steps = steps[: -(-n // FIELDS)]
    return Asked(recording, [step for step, _ in steps], [i for _, i in steps])


def predictions(lm: LanguageModel, drawn: Asked, seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each step whether end, reward and next state are all predicted correctly, as scores."""
    in_words(manner)
    config = PromptConfig(patience=None, resamples=1)
    return _scored(in_context(lm, drawn.recording, config, manner.max_tokens), drawn, seed)


def by_look_up(drawn: Asked, seed: int) -> Scores:
    """Return the scores of a look-up of the latest result of the same step."""
    return _scored(LookUp(text_steps(drawn.recording.shown)), drawn, seed)


def _scored(model: WorldModel, drawn: Asked, seed: int) -> Scores:
    recording, asked, groups = drawn
    rngs = [np.random.default_rng([seed, i]) for i in range(len(asked))]
    predicted = model.step([s.state for s in asked], [s.action for s in asked], rngs)
    known = {(t.state.observation, t.action) for t in recording.shown}
    values = np.array([float(right(p, s)) for p, s in zip(predicted, asked, strict=True)])
    new = values[[(s.state, s.action) not in known for s in asked]]
    unseen = float(new.mean()) if len(new) else float("nan")
    columns = {**_fields(predicted, asked), "unseen steps": unseen}
    unread = float(np.mean([p.done is None for p in predicted]))
    return Scores(values, groups, columns, each=FIELDS, unread=unread)


def _fields(predicted: Sequence[Prediction], steps: Sequence[Step]) -> dict[str, float]:
    """Return the share of ends, rewards and next states that are right, each where it was predicted."""
    pairs = list(zip(predicted, steps, strict=True))
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
    steps,
    predictions,
    by_look_up,
)
