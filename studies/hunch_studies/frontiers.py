"""Frontiers of the audition: what a method gains over its uninformed control, by the ability of its model.

    hunch study frontiers
    python -m hunch_studies.frontiers studies/frontiers > src/hunch/audition/frontiers.json

The models are rules with a dial for errors. Their ability is measured by the audition's own questions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.audition.frontier import Errors, Frontier, Point
from hunch.audition.roles import role_named
from hunch.lm import load
from hunch.methods.goal.ellm import ELLMConfig, SuggestionConfig
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.kwon import KwonConfig
from hunch.report.table import final_return
from hunch.rl.statistics import area, over_pairs
from hunch.roles.reward.judge import JudgeConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig, finished
from hunch.runs.files import write_atomically
from hunch.runs.result import Result
from hunch_studies.study import Part, Scale, Study

SEEDS: Final = 10
ASKED: Final = 400
"""Questions by which the ability of a scripted model is measured."""
DIALS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)
LASTING: Final = "systematic=1&error="
"""The dial with which a rule errs always in the same states."""
FILE: Final = "frontier.json"


def learning(result: Result) -> float:
    """Return the area under the learning curve: success over the whole run."""
    return area([e.step for e in result.episodes], [e.success for e in result.episodes], result.asked)


def tried(result: Result) -> float:
    """Return the success of the trained policy in the evaluation at the end."""
    return float(np.mean([episode.success for episode in result.evaluations]))


def achieved(result: Result) -> float:
    """Return the share of the sixteen achievements in an episode of the last quarter."""
    return final_return(result) / 16


@dataclass(frozen=True)
class Bed:
    """A method in an environment.

    Attributes:
        method: Name of the method.
        role: Role of its model.
        env: Id of the environment.
        rule: The scripted model, without dials.
        steps: Steps of a run.
        options: Settings of the method.
        lasting: Settings in place of these for errors that last; None if dials alone make them last.
        measure: What a run has achieved.
        what: The same in words.
        settings: Other settings of the run.
    """

    method: str
    role: str
    env: str
    rule: str
    steps: int
    options: Any
    measure: Callable[[Result], float] = learning
    what: str = "success over the run"
    settings: Mapping[str, Any] = field(default_factory=dict)
    lasting: Any = None

    def title(self, errors: Errors) -> str:
        """Name of the part."""
        return f"{self.method} in {self.env.removeprefix('hunch/')}, {errors} errors"

    def models(self, errors: Errors) -> list[str]:
        """The scripted models."""
        alone = errors == "independent" or self.lasting is not None
        return [f"{self.rule}?{'error=' if alone else LASTING}{dial}" for dial in DIALS]

    def arms(self, errors: Errors, scale: Scale) -> tuple[Arm, ...]:
        """The uninformed control, and the method with each model."""
        options = self.lasting if errors == "lasting" and self.lasting is not None else self.options
        steps = scale.steps(self.steps)
        config = RunConfig(method=self.method, env=self.env, steps=steps, options=options, **self.settings)
        if config.eval_every:
            config = replace(config, eval_every=steps)
        models = ["uniform", *self.models(errors)]
        return tuple(Arm(model, replace(config, lm=model)) for model in models)


_TABLE = QLearningConfig(epsilon=(1.0, 0.05, 2_500))
_EXPLORE = QLearningConfig(epsilon=(1.0, 0.1, 3_000))
_NOISE, _LASTS = JudgeConfig(temperature=1.0), JudgeConfig(temperature=0.0)
_JUDGED: dict[str, Any] = {
    "method": "kwon",
    "role": "judge",
    "rule": "scripted:judge",
    "steps": 5_000,
    "options": KwonConfig(table=_TABLE, judge=_NOISE),
    "lasting": KwonConfig(table=_TABLE, judge=_LASTS),
    "measure": tried,
    "what": "success of the trained policy",
    "settings": {"eval_every": 1, "eval_episodes": 200},
}
_LAKE = DQNPriorConfig(encoder="phrases", update_every=1)
BEDS: Final = (
    Bed(env="hunch/MatrixGame-v0", **_JUDGED),
    Bed(env="hunch/Ultimatum-v0", **_JUDGED),
    Bed("zero-shot", "policy", "hunch/FrozenLake-v0", "scripted:frozenlake", 2_000, ZeroShotConfig()),
    Bed("zero-shot", "policy", "hunch/Overcooked-Salad-v0", "scripted:kitchen", 2_000, ZeroShotConfig()),
    Bed("dqn-prior", "prior", "hunch/FrozenLake-v0", "scripted:frozenlake", 2_000, _LAKE),
    Bed(
        "ellm",
        "goal",
        "hunch/Craft-v0",
        "scripted:suggest",
        6_000,
        ELLMConfig(table=_EXPLORE, suggestions=SuggestionConfig()),
        achieved,
        "share of the achievements per episode",
    ),
)
ERRORS: Final[tuple[Errors, ...]] = ("independent", "lasting")


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part(bed.title(errors), bed.arms(errors, scale), measure=partial(_measured, bed, errors))
        for bed in BEDS
        for errors in ERRORS
        if errors == "independent" or bed.method != "ellm"  # its rule has one kind of error
    ]


def _measured(bed: Bed, errors: Errors, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Write the frontier into the part's folder; return it in Markdown."""
    found = frontier(bed, errors, listed, seeds, folder)
    write_atomically(folder / FILE, json.dumps(asdict(found)).encode())
    lines = ["| model | ability | gain over the uninformed control |", "|---|---|---|"]
    lines += [
        f"| `{p.model}` | {p.ability:.2f} | {p.gain:.2f} [{p.low:.2f}, {p.high:.2f}] |" for p in found.points
    ]
    return f"Gain in {bed.what}, paired by seed, with Student's 95 % interval.\n\n" + "\n".join(lines)


def frontier(bed: Bed, errors: Errors, listed: Sequence[Arm], seeds: int, folder: Path) -> Frontier:
    """Return the frontier of finished runs; the first arm is the uninformed control."""
    scores = {
        arm.label: [bed.measure(r) for job in jobs([arm], seeds, folder) if (r := finished(job.folder))]
        for arm in listed
    }
    control = scores.pop("uniform")
    points = [_point(bed, model, own, control) for model, own in scores.items()]
    nothing = Point("uniform", ability(bed, "uniform"), 0.0, 0.0, 0.0)
    ordered = tuple(sorted([nothing, *points], key=lambda p: p.ability))
    code = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "log", "-1", "--format=%cs"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return Frontier(
        bed.method, bed.role, bed.env, errors, bed.what, listed[0].config.steps, len(control), code, ordered
    )


def _point(bed: Bed, model: str, own: Sequence[float], control: Sequence[float]) -> Point:
    lead = over_pairs([a - b for a, b in zip(own, control, strict=True)])
    return Point(model, ability(bed, model), lead.value, lead.low, lead.high)


def ability(bed: Bed, model: str) -> float:
    """Return a model's ability by the questions of the audition, drawn by a seed that no audition uses."""
    role = role_named(bed.role)
    place = next(own for own in role.beds if own.env == bed.env)
    return role.ask(load(model, cache=None), place, ASKED, 10_001).ability


def main(folder: str) -> None:
    """Print the frontiers of a study's folder as the package keeps them."""
    files = sorted(Path(folder).glob(f"*/{FILE}"))
    print(json.dumps([json.loads(file.read_text()) for file in files], indent=1))


STUDIES = {
    "frontiers": Study(
        name="frontiers",
        question="How good must the model in a role be before the loop pays?",
        published="Nothing: these curves are ours. They are what `hunch audition` holds a model against.",
        deviations="Scripted models err at random, or always in the same states; real models do both.",
        parts=_parts,
        seeds=SEEDS,
    )
}

if __name__ == "__main__":
    main(sys.argv[1])
