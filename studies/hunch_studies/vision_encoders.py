"""Study of encoders of pictures: what DQN learns from their vectors, from facts read, and from true facts.

    hunch study vision-encoders

Only what Q sees differs. The controls are the same network untrained, plain pixels, and a second skin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hunch.methods import METHODS
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.study import Part, Scale, Study
from hunch_studies.vision import ENV, EYES, Model, models, played

STEPS: Final = 8_000
"""Steps of a run of DQN."""


def arms(scale: Scale, untrained: Model) -> dict[str, tuple[Arm, ...]]:
    """Return the arms in the plain skin and in the other one, by title."""

    def arm(label: str, encoder: str = "phrases", reader: str = "", **env: Any) -> Arm:
        env |= {"reader": reader} if reader else {}
        env |= {} if encoder == "phrases" else {"picture": True, "tile": 8}
        options = METHODS["dqn"].config_class(encoder=encoder)
        shown = {"history": 0, **env}
        steps = scale.steps(STEPS)
        return Arm(label, RunConfig(method="dqn", env=ENV, env_options=shown, steps=steps, options=options))

    def seen(suffix: str = "", **env: Any) -> tuple[Arm, ...]:
        return (
            arm("facts by clip" + suffix, reader=EYES, **env),
            arm("clip" + suffix, "eyes", **env),
            arm("untrained" + suffix, f"eyes?folder={untrained.place / 'model'}", **env),
            arm("pixels" + suffix, "eyes?side=16", **env),
        )

    return {
        "Encoders of pictures": (arm("true facts"), *seen()),
        "Encoders of pictures at dusk": seen(", dusk", skin="dusk"),
    }


def parts(scale: Scale, data: Path) -> Sequence[Part]:
    """The encoders in two skins."""
    _, untrained, _ = models(scale, data)
    listed = arms(scale, untrained)
    return [replace(played(scale, title, own), prepare=untrained.prepare) for title, own in listed.items()]


STUDIES = {
    "vision-encoders": Study(
        "vision-encoders",
        "Which encoder of pictures lets DQN learn soonest?",
        "None; the comparison is ours.",
        "The model is our own, of 0.31 million weights, in rooms of its own kind (L1). Pixels go to the same "
        "perceptron as all vectors: no network of convolutions is trained on them.",
        parts,
        seeds=5,
    )
}
