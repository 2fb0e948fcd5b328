"""Study of a model that reads pictures: facts from pictures, and a text method on what is read.

    hunch study vision-facts
    hunch study vision-rewards
    hunch study vision-preferences

The model is our own, ``pocket?corpus=clip``. The controls are the same training with the captions of other
pictures, an untrained network, and a programmer's reader: the nearest tile of the plain skin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.audition.frontier import Errors
from hunch.core import FloatArray, Picture, State, Transition
from hunch.envs.reading import Reader
from hunch.lm import Cached, load
from hunch.lm.pictures import png
from hunch.methods import METHODS
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.q_learning import QLearningConfig
from hunch.rl.statistics import over_seeds
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch.runs.stored import finished
from hunch_contrib.reward.rl_vlm_f import PicturesConfig
from hunch_contrib.reward.vlm_rm import Likeness
from hunch_studies.frontiers import DRAW, FILE, ROOM, WALKS, Bed, Dialled, frontier, late
from hunch_studies.laboratory import clip
from hunch_studies.laboratory.tiles import actions_away, by_tiles
from hunch_studies.study import Part, Scale, Seeded, Study
from hunch_studies.worlds.babyai.facts import SCHEMA, TARGET, at_dusk, steps_from

EYES: Final = "pocket?corpus=clip"
ENV: Final = ROOM
GOAL, BASELINE = steps_from(TARGET, 1), steps_from(TARGET, 8)
PLAYED, LONGER = 600, 2_000
"""Steps of a run of DQN-Prior, and of one in which it can learn where the reader errs."""
TAUGHT: Final = 8_000
"""Steps of a run of Q-learning on rewards."""
PAIRS: Final = 300
"""Pairs of pictures per round of RL-VLM-F, of which a run has eight."""
SHOWN: Final = 400
"""Pictures of unseen layouts on which the facts are measured."""
JUDGED: Final = "Judges that err"
ERRORS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of a judge's verdicts that are wrong, each for itself; the last are verdicts by chance."""
LASTING: Final = (0.2, 0.4)
"""Shares of the pairs of distances in which the verdict is always wrong, drawn anew for each seed."""
SKINS: Final[Mapping[str, Callable[[clip.Pixels], clip.Pixels]]] = {"plain": lambda p: p, "dusk": at_dusk}
Reads = Callable[[clip.Pixels], dict[str, str]]


def by_likeness(model: Cached) -> Reads:
    """Return a reader that takes, of each field, the sentence nearest to the picture."""
    reader = Reader(model, SCHEMA)
    return lambda pixels: reader.facts(png(pixels))


def facts_table(folder: Path, models: Mapping[str, Callable[[], Reads]], shown: int) -> str:
    """Return how often each fact is read, by reader and skin, in Markdown."""
    rooms = [room for room in clip.scenes("held out", 2 * shown, unseen=True, whole=True) if room.facts][
        :shown
    ]
    lines = [f"| reader | skin | {' | '.join(SCHEMA.fields)} | all five |", "|---|---|" + "---|" * 6]
    for name, make in models.items():
        reads = make()
        for skin, changed in SKINS.items():
            found = [reads(changed(room.picture)) for room in rooms]
            right = np.array(
                [[r[f] == room.facts[f] for f in SCHEMA.fields] for r, room in zip(found, rooms, strict=True)]
            )
            cells_ = " | ".join(f"{share:.2f}" for share in (*right.mean(0), right.all(1).mean()))
            lines.append(f"| {name} | {skin} | {cells_} |")
    chance = [1 / len(values) for values in SCHEMA.fields.values()]
    lines.append(f"| chance | | {' | '.join(f'{c:.2f}' for c in (*chance, float(np.prod(chance))))} |")
    return "\n".join([*lines, "", f"{len(rooms)} pictures of unseen layouts with one or two things."])


def likeness_table(folder: Path, models: Mapping[str, str]) -> str:
    """Return how well likeness to the goal agrees with the true distance, by model and alpha, in Markdown."""
    rooms = list(clip.unseen_states())
    apart = [actions_away(room.facts) for room in rooms]
    blank = State("", actions=())
    states = [State("", actions=(), pictures=(Picture.read(png(room.picture)),)) for room in rooms]
    steps = [Transition(blank, "", 0.0, state, False, False) for state in states]
    lines = ["| model | alpha 0 | alpha 0.5 | alpha 1 |", "|---|---|---|---|"]
    for name, spec in models.items():
        model = load(spec, cache=None)
        found = [Likeness(model, GOAL, BASELINE, alpha).rewards(steps) for alpha in (0.0, 0.5, 1.0)]
        agree = [-spearman(np.array(own), np.array(apart, float)) for own in found]
        lines.append(f"| {name} | {' | '.join(f'{value:.2f}' for value in agree)} |")
    return "\n".join([*lines, "", f"Spearman's correlation over all {len(rooms)} states of unseen layouts."])


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Return the rank correlation of two series; equal values share their mean rank."""
    ranks = [np.unique(values.round(6), return_inverse=True, return_counts=True)[1:] for values in (x, y)]
    first, second = ((np.cumsum(counts) - counts / 2)[place] for place, counts in ranks)
    return float(np.corrcoef(first, second)[0, 1])


@dataclass(frozen=True)
class Model:
    """A model with eyes, and the recipe of a control that is trained unless it is there."""

    name: str
    spec: str
    recipe: clip.ClipConfig | None = None
    place: Path = Path()

    def prepare(self) -> None:
        """Train the control."""
        if self.recipe and not (self.place / "model" / "config.json").exists():
            clip.train(self.recipe, self.place, lambda line: None)

    def reader(self) -> Reads:
        """Return the reader by likeness."""
        return by_likeness(load(self.spec, cache=None))


def models(scale: Scale, data: Path) -> tuple[Model, Model, Model]:
    """The model that is shipped, one that is not trained, and one that saw the captions of other pictures."""
    updates = max(1, round(clip.ClipConfig().updates * scale.share))

    def control(name: str, **options: Any) -> Model:
        place = data / name.partition(" ")[0]
        return Model(name, f"pocket?folder={place / 'model'}", clip.ClipConfig(**options), place)

    return (
        Model("clip", EYES),
        control("untrained", updates=0),
        control("shuffled captions", updates=updates, shuffled=True),
    )


def arms(scale: Scale, known: Sequence[Model]) -> tuple[tuple[Arm, ...], ...]:
    """DQN-Prior on true facts and on what readers read, further controls, and longer runs."""

    def arm(
        label: str, reader: str = "", lm: str = WALKS, skin: str = "plain", steps: int = scale.steps(PLAYED)
    ) -> Arm:
        options = {"history": 0, "skin": skin} | ({"reader": reader} if reader else {})
        config = DQNPriorConfig(encoder="phrases")
        return Arm(
            label,
            RunConfig(method="dqn-prior", env=ENV, env_options=options, lm=lm, steps=steps, options=config),
        )

    untrained = known[1]
    clip_, blank, shuffled = (arm(model.name, model.spec) for model in known)
    dusk = arm("clip, dusk", EYES, skin="dusk")
    return (
        (arm("true facts"), clip_, blank),
        (dusk, shuffled, arm("true facts, uniform prior", lm="uniform")),
        tuple(
            arm(f"{name}, {LONGER:,} steps", reader, steps=scale.steps(LONGER))
            for name, reader in (("true facts", ""), ("clip", EYES), ("untrained", untrained.spec))
        ),
    )


def succeeded(folder: Path, listed: Sequence[Arm], seeds: int) -> str:
    """Return the success of runs in the last quarter of their steps, by arm, in Markdown."""
    lines = ["| arm | evidence | success | calls of the reader |", "|---|---|---|---|"]
    for one in listed:
        done = [result for job in jobs([one], seeds, folder) if (result := finished(job.folder))]
        asked = sum(result.models["reader"]["calls"] for result in done if "reader" in result.models)
        share = over_seeds([result.success.value for result in done])
        lines.append(f"| {one.label} | {done[0].evidence} | {share} | {asked or ''} |")
    return "\n".join(lines)


def played(scale: Scale, title: str, own: tuple[Arm, ...]) -> Part:
    """Return arms as a part that tells their success."""
    return Part(title, own, beside=partial(succeeded, listed=own, seeds=scale.seeds), apart=True)


def facts(scale: Scale, data: Path) -> Sequence[Part]:
    """The facts, and a text method on them. The control that is trained is a part of its own."""
    known = ours, untrained, shuffled = models(scale, data)
    shown = scale.episodes(SHOWN)
    first_arms, more, longer = arms(scale, known)

    readers = {"nearest tile of the plain skin": lambda: by_tiles}
    first = {model.name: model.reader for model in (ours, untrained)} | readers
    last = {shuffled.name: shuffled.reader}
    return (
        Part("Facts", (), beside=partial(facts_table, models=first, shown=shown), prepare=untrained.prepare),
        Part(
            "Facts by shuffled captions",
            (),
            beside=partial(facts_table, models=last, shown=shown),
            prepare=shuffled.prepare,
        ),
        played(scale, "A text method on what is read", first_arms),
        played(scale, "A text method, further controls", more),
        replace(played(scale, "A text method for longer", longer), prepare=untrained.prepare),
    )


def taught(scale: Scale, method: str, label: str, lm: str = "", **options: Any) -> Arm:
    """Return Q-learning in a table on a method's rewards."""
    steps = scale.steps(TAUGHT)
    table = QLearningConfig(epsilon=(1.0, 0.05, steps // 2))
    config = table if method == "q-learning" else METHODS[method].config_class(table=table, **options)
    shown = {"history": 0, "tile": 8} | ({} if method == "q-learning" else {"picture": True})
    run = RunConfig(method=method, env=ENV, env_options=shown, lm=lm, steps=steps, options=config)
    return Arm(label, run)


def judges(scale: Scale, data: Path) -> Sequence[Part]:
    """RL-VLM-F with judges that err or abstain and with our model, and rewards without a judge."""
    ours, untrained, _ = models(scale, data)
    asked = PicturesConfig(pairs=PAIRS, most=10_000)
    rule = partial(taught, scale, "rl-vlm-f", pictures=asked)
    source = partial(taught, scale, "rewarded")
    here = "hunch_studies.laboratory.tiles"
    parts = {
        "Without a judge": (
            taught(scale, "q-learning", "the environment's reward"),
            source("-1 per step", reward=f"{here}:Constant"),
            source("true distance", reward=f"{here}:Distance"),
        ),
        JUDGED: (
            *(rule(f"error {share}", f"scripted:onlooker?error={share}") for share in ERRORS),
            *(
                Seeded(arm.label, arm.config, partial(_drawn, arm.config.lm))
                for share in LASTING
                for arm in [rule(f"error {share}, lasting", f"scripted:onlooker?error={share}&systematic=1")]
            ),
        ),
        "A judge that abstains": (rule("abstains 0.5", "scripted:onlooker?abstain=0.5"),),
        "A small model as the judge": tuple(
            rule(f"{own.name} judges", own.spec, pictures=replace(asked, goal=GOAL))
            for own in (ours, untrained)
        ),
    }
    return [
        replace(
            played(scale, title, arms),
            prepare=untrained.prepare,
            measure=judges_frontier if title == JUDGED else None,
        )
        for title, arms in parts.items()
    ]


def _drawn(spec: str, seed: int) -> dict[str, str]:
    return {"lm": spec + DRAW.format(seed)}


def judges_frontier(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Write what RL-VLM-F gains by the judge's ability, over verdicts by chance; say so in Markdown."""
    done = [arm for arm in listed if all(finished(job.folder) for job in jobs([arm], seeds, folder))]
    right, *some, chance = (arm for arm in done if not isinstance(arm, Seeded))
    lasting = [arm for arm in done if isinstance(arm, Seeded)]
    by: dict[Errors, tuple[Path, list[Arm]]]
    by = {"independent": (folder, [right, *some])}
    if lasting:
        by["lasting"] = (folder / "lasting", [right, *lasting])
    bed = Bed(
        "rl-vlm-f",
        "preference",
        ENV,
        Dialled("", control=chance.config.lm),
        TAUGHT,
        chance.config.options,
        late,
        "success in the last quarter",
        place="--env.picture --env.history 0 --env.tile 8 --lm",
    )
    lines = []
    for errors, (place, arms) in by.items():
        found = frontier(bed, errors, (chance, *arms), seeds, folder)
        specs = {arm.label: arm.config.lm for arm in arms}
        points = [replace(point, model=specs.get(point.model, point.model)) for point in found.points]
        place.mkdir(exist_ok=True)
        write_atomically(place / FILE, json.dumps(asdict(replace(found, points=tuple(points)))).encode())
        lines += [
            f"- `{p.model}`: ability {p.ability:.2f}, gain {p.gain:.2f} [{p.low:.2f}, {p.high:.2f}]"
            for p in points
        ]
    return "\n".join(lines)


def rewards(scale: Scale, data: Path) -> Sequence[Part]:
    """How well likeness agrees with the true distance, and what a policy learns from it alone."""
    ours, untrained, shuffled = models(scale, data)

    def table(*own: Model) -> Callable[[Path], str]:
        return partial(likeness_table, models={model.name: model.spec for model in own})

    likeness = partial(taught, scale, "vlm-rm", goal=GOAL, baseline=BASELINE)
    shown = tuple(likeness(model.name, model.spec, constant=0.0) for model in (ours, untrained, shuffled))
    paper = likeness("clip, 1 per step as published", ours.spec)

    def controls() -> None:
        untrained.prepare()
        shuffled.prepare()

    return (
        Part("Likeness", (), beside=table(ours, untrained), prepare=untrained.prepare),
        Part("Likeness by shuffled captions", (), beside=table(shuffled), prepare=shuffled.prepare),
        replace(played(scale, "A policy on likeness alone", (*shown, paper)), prepare=controls),
    )


STUDIES = {
    "vision-facts": Study(
        "vision-facts",
        "Does a small model with eyes read the facts that a policy needs, and does a text method run on "
        "them?",
        "None; the reader is ours. RL-VLM-F and VLM-RM use such models for rewards and read no facts.",
        "The model is our own, trained on rendered rooms and captions that we generate ([the "
        "eyes](../pocket.md#the-eyes)). Evidence is L1: it says nothing about other models that see.",
        facts,
    ),
    "vision-preferences": Study(
        "vision-preferences",
        "How good must a judge of pictures be before the reward fitted to its preferences teaches a policy?",
        "With preferences of GPT-4V or Gemini policies succeed in seven tasks, ahead of rewards by likeness "
        "(Wang et al., ICML 2024).",
        "The judges are rules that read the picture as a programmer would, with dials for their errors (L0), "
        "and our own small model (L1). Nothing here says how good a real model's judgement is.",
        judges,
    ),
    "vision-rewards": Study(
        "vision-rewards",
        "Is the likeness of a picture to a sentence about the goal a good reward?",
        "With the largest CLIP a humanoid learns to kneel from a sentence, and goal-baseline regularisation "
        "helps small models most (Rocamonde et al., ICLR 2024).",
        "The model is our own, in rooms of its own kind. Success ends an episode, which the paper's tasks do "
        "not, so that the published constant of 1 per step is left out but in one arm.",
        rewards,
    ),
}
