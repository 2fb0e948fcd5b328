"""Frontiers of the audition: what a method gains over its uninformed control, by the ability of its model.

    hunch study frontiers --out FOLDER
    python -m hunch_studies.frontiers FOLDER src/hunch/audition/frontiers.json
    python -m hunch_studies.frontiers prior src/hunch/audition/frontiers.json # a role, asked anew

The models are rules with a dial for errors. Their ability is measured by the audition's own questions.
Errors that last are the same wrong answer in every state of a class, which every seed draws anew. Errors to
the first or last answer last as well, and all name what is listed there, as those of small models often do: a
judge's are all Yes or all No, a planner takes the first skill. Prose in place of a choice cannot be read, and
comes and goes (``hunch_studies.ladder_errors``).
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
from hunch.core import UsageError
from hunch.lm import load
from hunch.methods.goal.ellm import ELLMConfig
from hunch.methods.in_context.icpi import ICPIConfig
from hunch.methods.planner.inner_monologue import InnerMonologueConfig
from hunch.methods.planner.saycan import SayCanConfig
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.methods.program.code_policy import CodePolicyConfig
from hunch.methods.program.gif_mcts import GIFMCTSConfig
from hunch.methods.program.worldcoder import WorldCoderConfig
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.kwon import KwonConfig
from hunch.report.table import final_return
from hunch.rl.statistics import area, over_pairs
from hunch.roles.goal.suggestions import SuggestionConfig
from hunch.roles.reward.judge import JudgeConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch.runs.result import Result
from hunch.runs.stored import finished
from hunch_contrib.prior.instruct_q import InstructQConfig
from hunch_contrib.prior.likelihood_value import LikelihoodValueConfig
from hunch_studies.planners import KITCHEN, skill_arms, skill_runs
from hunch_studies.study import Part, Scale, Seeded, Study

SEEDS: Final = 10
ASKED: Final = 400
"""Questions by which the ability of a scripted model is measured."""
QUESTIONS: Final = 10_001
"""Their seed, which no audition uses."""
DIALS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)
FILE: Final = "frontier.json"
PLACES: Final[Mapping[Errors, int]] = {"first": 1, "last": -1}
"""The place in the list of the option that errors name."""
NOISE: Final = ("independent", "unread")
"""Kinds of errors that are drawn anew for each answer."""
DRAW: Final = "&draw={}"
"""Draws the states in which a model with lasting errors is wrong."""


def learning(result: Result) -> float:
    """Return the area under the learning curve: success over the whole run."""
    return area([e.step for e in result.episodes], [e.success for e in result.episodes], result.requested)


def late(result: Result) -> float:
    """Return the success in the last quarter of the steps."""
    return result.success.value


def tried(result: Result) -> float:
    """Return the success of the trained policy in the evaluation at the end."""
    return float(np.mean([episode.success for episode in result.evaluations]))


def achieved(result: Result) -> float:
    """Return the share of the sixteen achievements in an episode of the last quarter."""
    return final_return(result) / 16


def winner(result: Result) -> float:
    """Return the fitness of the best program."""
    return max((e.episode_return for e in result.episodes if not np.isnan(e.episode_return)), default=0.0)


def balanced(result: Result) -> float:
    """Return the share of the 500 steps for which the best policy balances the pole."""
    return winner(result) / 500


@dataclass(frozen=True)
class Dialled:
    """A scripted model with a dial for its errors, from 0 to 1.

    Attributes:
        noise: Its spec with errors at random, with the fields ``{error}`` and ``{right}``, 1 - error; empty
            if all of its errors last.
        lasts: Its spec with errors in fixed states; empty if it has no such dial.
        control: Spec of the uninformed model.
        one_sided: Its spec with errors in fixed states that name the option at the place ``{place}`` of the
            list; empty if no frontier of this kind is made.
        unread: Its spec with answers that cannot be read; empty if no frontier of this kind is made.
    """

    noise: str
    lasts: str = ""
    control: str = "uniform"
    one_sided: str = ""
    unread: str = ""

    def form(self, errors: Errors) -> str:
        """Return its spec with errors of a kind; empty if it has none of this kind."""
        forms = {
            "independent": self.noise,
            "lasting": self.lasts,
            "first": self.one_sided,
            "last": self.one_sided,
            "unread": self.unread,
        }
        return forms[errors]

    def specs(self, errors: Errors) -> list[str]:
        """Return the model at each place of the dial."""
        form = self.form(errors)
        return [form.format(error=dial, right=round(1 - dial, 2), place=PLACES.get(errors)) for dial in DIALS]


@dataclass(frozen=True)
class Bed:
    """A method in an environment.

    Attributes:
        method: Name of the method.
        role: Role of its model.
        env: Id of the environment.
        model: The scripted model.
        steps: Steps of a run.
        options: Settings of the method.
        measure: What a run has achieved.
        what: The same in words.
        settings: Other settings of the run.
        asked: Environment in which the model's ability is measured. Default: the same.
        place: The options of a run's command before the model. With ``--reader`` it reads the environment's
            pictures.
    """

    method: str
    role: str
    env: str
    model: Dialled
    steps: int
    options: Any
    measure: Callable[[Result], float] = learning
    what: str = "success over the run"
    settings: Mapping[str, Any] = field(default_factory=dict)
    asked: str = ""
    place: str = "--lm"

    def title(self, errors: Errors) -> str:
        """Name of the part."""
        kinds = {
            "first": "errors to the first option",
            "last": "errors to the last option",
            "unread": "answers that cannot be read",
        }
        return f"{self.method} in {self.env.removeprefix('hunch/')}, {kinds.get(errors, f'{errors} errors')}"

    def arms(self, errors: Errors, scale: Scale) -> tuple[Arm, ...]:
        """The uninformed control, and the method with each model."""
        steps = min(self.steps, scale.steps(self.steps))
        config = RunConfig(
            method=self.method, env=self.env, steps=steps, options=self.options, **self.settings
        )
        if config.eval_every:
            config = replace(config, eval_every=steps)
        models = self.model.specs(errors)
        made = [
            Arm(spec, replace(config, **self.cast(spec)))
            if errors in NOISE
            else Seeded(spec, replace(config, **self.cast(spec)), partial(_own_draw, self, spec))
            for spec in models
        ]
        return (Arm(CONTROL, replace(config, **self.cast(self.model.control))), *made)

    @property
    def reads(self) -> bool:
        """True if the model reads the environment's pictures."""
        return self.place.endswith("--reader")

    def cast(self, spec: str) -> dict[str, Any]:
        """Return the settings that put a model into the role."""
        if not self.reads:
            return {"lm": spec}
        return {"env_options": {**self.settings["env_options"], "reader": spec}}

    def model_of(self, run: RunConfig) -> str:
        """Return the spec of the model that has the role in a run."""
        return run.env_options["reader"] if self.reads else run.lm


def _own_draw(bed: Bed, spec: str, seed: int) -> dict[str, Any]:
    return bed.cast(spec + DRAW.format(seed))


CONTROL: Final = "control"


def _rule(name: str) -> Dialled:
    return Dialled(f"scripted:{name}?error={{error}}", f"scripted:{name}?systematic=1&error={{error}}")


def _chooses(name: str) -> Dialled:
    """Return a rule of a role whose audition tells errors to one answer, and prose, from others."""
    return replace(
        _rule(name),
        one_sided=f"scripted:{name}?systematic=1&error={{error}}&place={{place}}",
        unread=f"scripted:{name}?malformed={{error}}",
    )


_SPEAKER = Dialled("scripted:errands?speaks=1&error={error}")
"""Asked for one answer at a time: the best of its probabilities would be right at any rate of errors."""
_TABLE = QLearningConfig(epsilon=(1.0, 0.05, 2_500))
_EXPLORE = QLearningConfig(epsilon=(1.0, 0.1, 3_000))
_JUDGED: dict[str, Any] = {
    "method": "kwon",
    "role": "judge",
    "model": _chooses("judge"),
    "steps": 5_000,
    "options": KwonConfig(table=_TABLE, judge=JudgeConfig(temperature=1.0)),
    "measure": tried,
    "what": "success of the trained policy",
    "settings": {"eval_every": 1, "eval_episodes": 200},
}
_WEIGHED = LikelihoodValueConfig(floor=0.1, epsilon=(0.1, 0.1, 1))
_LEANS = InstructQConfig(learning_rate=0.1)
ROOM: Final = "hunch/BabyAI-GoToRedBallNoDists-v0"
WALKS: Final = "pocket?corpus=walks"
_LAKE, _SALAD = "hunch/FrozenLake-v0", "hunch/Overcooked-Salad-v0"
_CODE = "hunch/WorldModelCode-v0"
_WRITER = Dialled(
    "scripted:modeller?bugs={error}&crash={error}&repair={right}&break={error}",
    "scripted:modeller?bugs=0&repair=1&blind={error}",
    "scripted:mutator",
)
_CODER = replace(_WRITER, control="scripted:modeller?malformed=1")
"""WorldCoder has no first program that could be changed at random."""
BEDS: Final = (
    Bed(env="hunch/MatrixGame-v0", **_JUDGED),
    Bed(env="hunch/Ultimatum-v0", **_JUDGED),
    Bed("zero-shot", "policy", _LAKE, _chooses("frozenlake"), 2_000, ZeroShotConfig()),
    Bed("zero-shot", "policy", _SALAD, _chooses("kitchen"), 2_000, ZeroShotConfig()),
    Bed("likelihood-value", "policy", _LAKE, _rule("frozenlake"), 500, _WEIGHED),
    Bed("instruct-q", "policy", _LAKE, _rule("frozenlake"), 500, _LEANS),
    Bed(
        "dqn-prior",
        "prior",
        _LAKE,
        _chooses("frozenlake"),
        800,
        DQNPriorConfig(encoder="phrases", update_every=1),
    ),
    Bed(
        "ellm",
        "goal",
        "hunch/Craft-v0",
        Dialled("scripted:suggest?error={error}", "scripted:suggest?lasting={error}"),
        6_000,
        ELLMConfig(table=_EXPLORE, suggestions=SuggestionConfig()),
        achieved,
        "share of the achievements per episode",
    ),
    Bed("icpi", "world-model", "hunch/Chain-v0", _rule("icpi-nearest"), 200, ICPIConfig()),
    Bed("icpi", "world-model", "hunch/Maze-v0", _rule("icpi-nearest"), 200, ICPIConfig()),
    Bed("gif-mcts", "writer", _CODE, _WRITER, 20, GIFMCTSConfig(give_up=0), winner, "fitness of the best"),
    Bed(
        "code-policy",
        "writer",
        "hunch/PolicyCode-v0",
        _WRITER,
        10,
        CodePolicyConfig(give_up=0),
        balanced,
        "steps of balance of the best, of 500",
    ),
    Bed("worldcoder", "writer", _LAKE, _CODER, 300, WorldCoderConfig(), asked=_CODE),
    Bed(
        "dqn-prior",
        "reader",
        ROOM,
        Dialled("", "scripted:onlooker?misread={error}", "scripted:onlooker?misread=1"),
        600,
        DQNPriorConfig(encoder="phrases"),
        late,
        "success in the last quarter",
        {"lm": WALKS, "env_options": {"history": 0}},
        place=f'--env.history 0 --encoder phrases --lm "{WALKS}" --env.picture --reader',
    ),
    Bed("saycan", "planner", KITCHEN, _SPEAKER, 2_000, SayCanConfig()),
    Bed("inner-monologue", "planner", KITCHEN, _SPEAKER, 2_000, InnerMonologueConfig()),
)
ERRORS: Final[tuple[Errors, ...]] = ("independent", "lasting", "first", "last", "unread")


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part(
            bed.title(errors),
            bed.arms(errors, scale),
            measure=partial(_measured, bed, errors),
            prepare=partial(_train, data, scale) if bed.role == "planner" else None,
        )
        for bed in (_skilled(bed, data, scale) for bed in BEDS)
        for errors in ERRORS
        if bed.model.form(errors)
    ]


def _train(data: Path, scale: Scale) -> None:
    """Train the skills of a planner, unless they are there."""
    skill_runs(data, 0, scale)


def _skilled(bed: Bed, data: Path, scale: Scale) -> Bed:
    """Give a planner's bed trained skills, the same for every seed."""
    if bed.role != "planner":
        return bed
    skills = tuple(str(jobs([arm], 1, data)[-1].folder) for arm in skill_arms(scale))
    return replace(bed, options=replace(bed.options, skills=skills))


def _measured(bed: Bed, errors: Errors, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Write the frontier into the part's folder; return it in Markdown."""
    found = frontier(bed, errors, listed, seeds, folder)
    write_atomically(folder / FILE, json.dumps(asdict(found)).encode())
    lines = ["| model | ability | gain over the uninformed control |", "|---|---|---|"]
    lines += [
        f"| `{p.model}` | {p.ability:.2f} | {p.gain:.2f} [{p.low:.2f}, {p.high:.2f}] |" for p in found.points
    ]
    spread = "Student's 95 % interval" if errors in NOISE else "the range over the draws"
    return f"Gain in {bed.what}, paired by seed, with {spread}.\n\n" + "\n".join(lines)


def frontier(bed: Bed, errors: Errors, listed: Sequence[Arm], seeds: int, folder: Path) -> Frontier:
    """Return the frontier of finished runs; the first arm is the uninformed control.

    Raises:
        UsageError: if the control was left out.
    """
    if listed[0].label != CONTROL:
        raise UsageError(f"The gains of a frontier are over {CONTROL!r}: name this arm as well.")
    runs = {arm: [finished(job.folder) for job in jobs([arm], seeds, folder)] for arm in listed}
    control, *models = ([bed.measure(r) for r in own if r] for own in runs.values())
    asked, questions = bed.asked or bed.env, _questions(bed, errors)
    points = [Point(bed.model.control, _ability(bed, questions, [bed.model.control]), 0.0, 0.0, 0.0)]
    for arm, own in zip(listed[1:], models, strict=True):
        drawn = list(dict.fromkeys(bed.model_of(arm.at(seed)) for seed in range(seeds)))
        gains = [a - b for a, b in zip(own, control, strict=True)]
        points.append(Point(arm.label, _ability(bed, questions, drawn), *_spread(gains, errors)))
    code = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "log", "-1", "--format=%cs"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return Frontier(
        bed.method,
        bed.role,
        bed.env,
        asked,
        errors,
        bed.what,
        listed[0].config.steps,
        len(control),
        code,
        tuple(sorted(points, key=lambda p: p.ability)),
        bed.place,
    )


def _spread(gains: Sequence[float], errors: Errors) -> tuple[float, float, float]:
    """Return the mean gain with its interval; with errors that last, with the range of the draws.

    A model has one draw of the states in which it is always wrong, so the interval of their mean says little.
    """
    lead = over_pairs(gains)
    return (lead.value, lead.low, lead.high) if errors in NOISE else (lead.value, min(gains), max(gains))


def _questions(bed: Bed, errors: Errors) -> Any:
    """Draw the audition's questions; fewer where several models answer them, or programs are run."""
    role = role_named(bed.role)
    place = next(own for own in role.beds if own.env == (bed.asked or bed.env))
    n = ASKED if bed.role != "writer" else ASKED // 4
    return role.draw(place, n if errors in NOISE else n // 4, QUESTIONS)


def _ability(bed: Bed, questions: Any, models: Sequence[str]) -> float:
    """Return the mean ability of models."""
    ask = role_named(bed.role).ask
    return float(np.mean([ask(load(model, cache=None), questions, QUESTIONS).ability for model in models]))


def asked_again(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the abilities of its models measured anew: its questions or their score changed.

    Raises:
        UsageError: for a row of another study.
    """
    bed = next((own for own in BEDS if (own.method, own.env) == (row["method"], row["env"])), None)
    if bed is None:
        raise UsageError(f"The frontier of {row['method']} in {row['env']} is not from this study.")
    questions, points = _questions(bed, row["errors"]), []
    for point in row["points"]:
        drawn = [point["model"]]
        if row["errors"] not in NOISE and point["model"] != bed.model.control:
            drawn = [point["model"] + DRAW.format(seed) for seed in range(row["seeds"])]
        points.append({**point, "ability": _ability(bed, questions, drawn)})
    return {**row, "points": sorted(points, key=lambda point: point["ability"])}


def main(source: str, stored: str) -> None:
    """Put the frontiers of a study's folder among those of the package, or ask a role's models anew."""
    kept = json.loads(Path(stored).read_text(encoding="utf-8"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(Path(source).rglob(FILE))]
    found += [asked_again(row) for row in kept if row["role"] == source]
    rows = {_key(row): row for row in [*kept, *found]}
    write_atomically(Path(stored), (json.dumps(list(rows.values()), indent=1) + "\n").encode())


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["method"], row["env"], row["errors"]


STUDIES = {
    "frontiers": Study(
        name="frontiers",
        question="How good must the model in a role be before the loop pays?",
        published="Nothing: these curves are ours. They are what `hunch audition` holds a model against.",
        deviations="Scripted models err at random, or always in the same states, there also always with the "
        "first or the last answer, or answer in prose; real models do all of this. Errors that last are in "
        "other states for every seed.",
        parts=_parts,
        seeds=SEEDS,
    )
}

if __name__ == "__main__":
    main(*sys.argv[1:])
