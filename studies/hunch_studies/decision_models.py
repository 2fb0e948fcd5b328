"""Models that write, asked as decision models: position, calibration, groups and a final, hand-over.

The questions are states of household games, each with its right action and some wrong ones. The models are
those of the shelf, asked by :func:`hunch.lm.decide`; their answers are recorded in the repository, so that
the rows can be repeated without them. Three controls stand beside them: chance, a rule that compares words,
and the model's own probabilities in a shuffled order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.audition.prior import BEDS
from hunch.audition.question import moments
from hunch.core import FloatArray, State
from hunch.envs import make
from hunch.lm import DecisionQuestion, decide, load
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import LanguageModel
from hunch.lm.decision import grouped, joined
from hunch.lm.ways import Way
from hunch.methods.prior.dqn_prior import DQNConfig, DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl.calibration import calibration_error, error_by_chance, reliability
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.kinds import PriorConfig
from hunch.roles.prior.language import CHOICE, situation
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept

RECORDED: Final = "decision-models.answers.jsonl.gz"
"""The file of recorded answers in the folder of --data."""
HERE: Final = "docs/assets/studies"
"""That folder in the repository."""
BED: Final = BEDS[0]
"""Household-Pick, as the audition of priors asks it."""
MODELS: Final = ("smollm2", "qwen-coder-0.5b", "qwen-coder-1.5b")
LARGEST: Final = "qwen-coder-1.5b"
"""It is slow, so that it is asked about the first pools only, with four options, by letters."""
POOLS: Final = 10
"""Sets of games."""
FEW_POOLS: Final = 5
"""Pools of the largest model, and of questions with many options."""
STATES: Final = 5
"""States of each pool."""
SHOWN: Final = 3
"""Earlier steps that a state shows, so that the questions stay short."""
OPTIONS: Final = 4
"""Options of a question: the right action and wrong ones."""
MANY: Final = 12
"""Options of a question that is also asked in groups."""
SIZES: Final = (4, 6)
"""Sizes of the groups."""
FEW_STATES: Final = 2
"""States of each pool that are asked with many options."""
LAKE: Final = "hunch/FrozenLake-v0"
LAKE_STEPS: Final = 1_000
CELLS: Final = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2), (3, 1), (3, 2))
"""The cells of the lake without holes and goal."""
WRONG: Final = {(0, 0): "Go Up", (2, 0): "Go Down", (2, 2): "Go Right"}
"""What the models of known probabilities favour wrongly: it leads nowhere, or into a hole."""
SURE: Final = 0.9
UNSURE: Final = 0.4
CONFIDENCE: Final = 0.8
"""Threshold of the hand-over, between the two."""


# ---- the questions ----------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A state, its options in the order in which they are asked first, and the place of the right one.

    Attributes:
        state: The situation as the model reads it.
        blank: The same without the task: the blank prompt.
        task: The task.
        options: The options.
        right: Place of the right option.
    """

    state: str
    blank: str
    task: str
    options: tuple[str, ...]
    right: int


@cache
def questions(pool: int, n: int, size: int) -> tuple[Asked, ...]:
    """Draw n states of a pool of games, each with one right action among ``size`` options."""
    rng = np.random.default_rng([pool, size])
    asked: list[Asked] = []
    for moment in moments(BED, 4 * n, pool, each=2):
        wrong = [action for action in moment.state.options if action not in moment.good]
        if len(moment.good) != 1 or len(wrong) < size - 1 or len(asked) == n:
            continue
        own = [*moment.good, *(wrong[i] for i in rng.permutation(len(wrong))[: size - 1])]
        order = rng.permutation(size)
        options = tuple(own[i] for i in order)
        place = int(np.flatnonzero(order == 0)[0])
        state = replace(moment.state, history=moment.state.history[-SHOWN:])
        # The first observation of an episode names the task, too, and may still be among the steps shown.
        blank = situation(aimless(state, BED.manual))
        asked.append(Asked(situation(state), blank, state.task, options, place))
    return tuple(asked)


def answered(
    lm: LanguageModel, asked: Sequence[Asked], orders: Sequence[Sequence[int]], way: Way
) -> FloatArray:
    """Return the probability of each option, shape (states, orders, options), in the first order."""
    n = len(orders[0])
    chosen = decide(
        lm,
        [one.state for one in asked for _ in orders],
        [
            [DecisionQuestion("choice", CHOICE, tuple(one.options[i] for i in order))]
            for one in asked
            for order in orders
        ],
        way=way,
        patience=None,
    )
    p = np.zeros((len(asked), len(orders), n))
    answers = iter(chosen)
    for state in range(len(asked)):
        for number, order in enumerate(orders):
            [choice] = next(answers)
            p[state, number, list(order)] = choice.probabilities
    return p


def rotations(n: int) -> list[list[int]]:
    """Return the n cyclic orders of n options: each option stands once at each place."""
    return [[(i + shift) % n for i in range(n)] for shift in range(n)]


# ---- position and calibration -----------------------------------------------------------------------------


def measured(specs: dict[str, str], label: str, way: Way, pool: int) -> dict[str, Any]:
    """Ask one model about the states of one pool, in all cyclic orders, or in one if answers are sampled.

    Each question is also asked with the blank prompt, which leaves out the task: a model that is right as
    often without it does not use it.
    """
    asked = questions(pool, STATES, OPTIONS)
    blank = [one._replace(state=one.blank) for one in asked]
    orders = rotations(OPTIONS)[: 1 if way == "structured" else OPTIONS]
    lm = _model(specs[label])
    return {
        "p": answered(lm, asked, orders, way).round(6).tolist(),
        "blank": answered(lm, blank, orders, way).round(6).tolist(),
        "right": [one.right for one in asked],
    }


@cache
def _model(spec: str) -> Any:
    return load(spec)


def ways_of(label: str) -> tuple[Way, ...]:
    """Return the ways in which a model is asked."""
    return ("label",) if label == LARGEST else ("label", "structured")


def by_words(text: str, asked: Asked) -> float:
    """Return how often the option with the most words of a text is the right one; options that tie share.

    With the words of the task it is the control that needs no model. With those of the last observation it
    says how much an option alone tells, which the blank prompt has, too.
    """
    wanted = set(words(text))
    shared = np.array([len(wanted & set(words(option))) for option in asked.options])
    best = shared == shared.max()
    return float(best[asked.right] / best.sum())


def position_tables(specs: dict[str, str], pools: int, folder: Path) -> str:
    """Return accuracy, position bias and calibration of each model, with the controls."""
    asked_by = [(label, way) for label in specs for way in ways_of(label)]
    keys = [
        (label, way, pool)
        for label, way in asked_by
        for pool in range(min(pools, FEW_POOLS) if label == LARGEST else pools)
    ]
    rows = kept(folder / "rows.jsonl", keys, partial(measured, specs))
    asked = [questions(pool, STATES, OPTIONS) for pool in range(pools)]
    by_rule = [float(np.mean([by_words(one.task, one) for one in pool])) for pool in asked]
    by_sight = [float(np.mean([by_words(one.blank.splitlines()[-1], one) for one in pool])) for pool in asked]
    accuracy, controls, places, calibration = [], [], [], []
    for label, way in asked_by:
        own = [row for row in rows if row["key"][:2] == [label, way]]
        p = [np.array(row["p"]) for row in own]  # per pool: (states, orders, options)
        blank = [np.array(row["blank"]).mean(1) for row in own]  # per pool: (states, options)
        right = [np.array(row["right"]) for row in own]
        first = [x[:, 0] for x in p]
        mean = [x.mean(1) for x in p]
        theirs = by_rule[: len(own)]  # of the same pools
        over_rule = [share - rule for share, rule in zip(_shares(mean, right), theirs, strict=True)]
        averaged = (_right(mean, right), _lead(mean, first, right)) if way == "label" else ("", "")
        accuracy.append((label, way, str(STATES * len(own)), _right(first, right), *averaged))
        controls.append(
            (
                label,
                way,
                _right(blank, right),
                _lead(mean, blank, right),
                _right(_shuffled(mean), right),
                _lead(mean, _shuffled(mean), right),
                over_pairs(over_rule),
            )
        )
        calibration += _calibration(label, way, "one order", first, right)
        if way == "label":
            calibration += _calibration(label, way, "mean of four", mean, right)
            places.append((label, *_places(np.concatenate(p))))
    accuracy += [
        ("words of the task (a rule)", "", str(STATES * pools), over_seeds(by_rule), "", ""),
        ("words of the last observation (a rule)", "", str(STATES * pools), over_seeds(by_sight), "", ""),
        ("chance", "", "", f"{1 / OPTIONS:.2f}", "", ""),
    ]
    return "\n\n".join(
        (
            table(
                "model | asked by | states | right | right, mean of four orders | lead of the mean", accuracy
            ),
            "Controls: the blank prompt (the question without the task), the model's own probabilities in a "
            "shuffled order, and the rule. The lead is that of the model's probabilities, by letters the "
            "mean of four orders:",
            table(
                "model | asked by | right, blank prompt | lead over it | right, shuffled | lead over it | "
                "lead over the rule",
                controls,
            ),
            "Where the model's favourite stands, over all four orders (0.25 each without a bias), and how "
            "often all four orders have one favourite:",
            table("model | first | second | third | fourth | one favourite", places),
            "Calibration of the favourite's probability:",
            table(
                "model | asked by | probabilities | stated | right | error | by chance | curve", calibration
            ),
        )
    )


def _right(p: Sequence[FloatArray], right: Sequence[Any]) -> Estimate:
    """Return the share of states whose favourite is right, over pools."""
    return over_seeds(_shares(p, right))


def _lead(p: Sequence[FloatArray], other: Sequence[FloatArray], right: Sequence[Any]) -> Estimate:
    """Return by how much more often the favourites of ``p`` are right, paired by pool."""
    pairs = zip(_shares(p, right), _shares(other, right), strict=True)
    return over_pairs([one - two for one, two in pairs])


def _shares(p: Sequence[FloatArray], right: Sequence[Any]) -> list[float]:
    """Return for each pool the share of states whose favourite is right; favourites that tie share."""
    shares = []
    for own, places in zip(p, right, strict=True):
        best = own == own.max(1, keepdims=True)  # (states, options)
        shares.append(float((best[np.arange(len(own)), places] / best.sum(1)).mean()))
    return shares


def _shuffled(p: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the same probabilities, each state's in an order drawn at random."""
    rng = np.random.default_rng(0)
    return [rng.permuted(own, axis=1) for own in p]


def _places(p: FloatArray) -> list[str]:
    """Return how often the favourite stands at each place, and how often all orders agree on it."""
    n = p.shape[2]
    favourites = p.argmax(2)  # (states, orders), as numbers of the first order
    shown = np.array(rotations(n))  # (orders, places)
    places = [
        int(np.flatnonzero(shown[order] == favourites[state, order])[0])
        for state in range(len(p))
        for order in range(n)
    ]
    shares = np.bincount(places, minlength=n) / len(places)
    agree = float(np.mean((favourites == favourites[:, :1]).all(1)))
    return [*(f"{share:.2f}" for share in shares), f"{agree:.2f}"]


def _calibration(
    label: str, way: str, what: str, p: Sequence[FloatArray], right: Sequence[Any]
) -> list[tuple[str, ...]]:
    stated = np.concatenate([own.max(1) for own in p])
    came = np.concatenate([own.argmax(1) == places for own, places in zip(p, right, strict=True)])
    curve = reliability(stated, came)
    told = "; ".join(f"{own.predicted:.2f}: {own.observed:.2f} ({own.n})" for own in curve)
    figures = (stated.mean(), came.mean(), calibration_error(curve), error_by_chance(stated))
    return [(label, way, what, *(f"{figure:.2f}" for figure in figures), told)]


# ---- groups and a final -----------------------------------------------------------------------------------


def in_groups(lm: LanguageModel, asked: Sequence[Asked], size: int) -> FloatArray:
    """Return the probabilities of options asked in groups and a final, shape (states, options)."""
    n = len(asked[0].options)
    parts = grouped(n, size)
    heats = []  # for each group (states, options of the group)
    for part in parts:
        own = [one._replace(options=tuple(one.options[i] for i in part)) for one in asked]
        heats.append(answered(lm, own, [range(len(part))], "label")[:, 0])
    found = []
    for state, one in enumerate(asked):
        groups = [heat[state] for heat in heats]
        favourites = [part[int(p.argmax())] for part, p in zip(parts, groups, strict=True)]
        final = one._replace(options=tuple(one.options[i] for i in favourites))
        found.append(joined(groups, answered(lm, [final], [range(len(parts))], "label")[0, 0]))
    return np.array(found)


def compared(specs: dict[str, str], label: str, pool: int) -> dict[str, Any]:
    """Ask one model questions with many options at once, in another order, and in groups with a final."""
    asked = questions(pool, FEW_STATES, MANY)
    lm = _model(specs[label])
    orders = [list(range(MANY)), list(range(MANY))[::-1]]
    at_once = answered(lm, asked, orders, "label")  # (states, orders, options)
    found = {"at once": at_once[:, 0], "other order": at_once[:, 1]}
    found |= {f"groups of {size}": in_groups(lm, asked, size) for size in SIZES}
    return {**{name: p.round(6).tolist() for name, p in found.items()}, "right": [one.right for one in asked]}


def group_tables(specs: dict[str, str], pools: int, folder: Path) -> str:
    """Return how far groups and a final are from one question, beside another order of the one question."""
    keys = [(label, pool) for label in specs for pool in range(pools)]
    rows = kept(folder / "rows.jsonl", keys, partial(compared, specs))
    lines = []
    for label in specs:
        own = [row for row in rows if row["key"][0] == label]
        for name in ("at once", "other order", *(f"groups of {size}" for size in SIZES)):
            apart, same, right = [], [], []
            for row in own:
                once, other = np.array(row["at once"]), np.array(row[name])
                apart.append(float(np.abs(once - other).sum(1).mean() / 2))
                same.append(float((once.argmax(1) == other.argmax(1)).mean()))
                right.append(float((other.argmax(1) == row["right"]).mean()))
            gap = ("", "") if name == "at once" else (over_seeds(apart), over_seeds(same))
            lines.append((label, name, *gap, over_seeds(right)))
    return table("model | asked | total variation to one question | same favourite | right", lines)


# ---- hand-over --------------------------------------------------------------------------------------------


def known_models(target: Path) -> None:
    """Write the answers of models whose probabilities are known: right in eight of eleven cells of the lake.

    The calibrated one is sure where it is right only. The overconfident one has the same favourites, and is
    equally sure of all. The third is the calibrated one with the probabilities of each cell in another order.
    """
    rng = np.random.default_rng(0)
    env = make(LAKE)
    env.reset(seed=0)
    lines = []
    for cell in CELLS:
        observation, info = env.unwrapped.place(cell)  # type: ignore[attr-defined]
        state = State.read(observation, info)
        plan = env.unwrapped.oracle()  # type: ignore[attr-defined]
        favourite = state.options.index(WRONG.get(cell, plan[0]))
        unsure, sure = _peaked(favourite, UNSURE), _peaked(favourite, SURE)
        calibrated = unsure if cell in WRONG else sure
        shuffled = [calibrated[i] for i in rng.permutation(4)]
        question = list(DecisionQuestion("choice", CHOICE, state.options))
        for model, p in (("calibrated", calibrated), ("overconfident", sure), ("shuffled", shuffled)):
            about = {"model": model, "revision": "1", "evidence": "L0", "verb": "decide", "sample": 0}
            lines.append(json.dumps({**about, "request": [situation(state), question], "value": p}))
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, "".join(f"{line}\n" for line in lines).encode())


def _peaked(favourite: int, p: float) -> list[float]:
    return [p if i == favourite else (1 - p) / 3 for i in range(4)]


def lake_arms(known: Path, steps: int, lms: Sequence[str]) -> tuple[Arm, ...]:
    """Return DQN, a calibrated model alone, and hand-over to it, to other known models, and to yours."""
    prior = PriorConfig(way="decision")
    learning: dict[str, Any] = {"warmup": 100}
    hand_over = DQNPriorConfig(confidence=CONFIDENCE, prior=prior, **learning)

    def arm(label: str, method: str, options: Any, spec: str = "") -> Arm:
        lm: dict[str, Any] = {"lm": spec} if spec else {}
        return Arm(label, RunConfig(method=method, env=LAKE, steps=steps, options=options, **lm))

    def table_of(name: str) -> str:
        return f"replay:{known}?model={name}"

    yours = DQNPriorConfig(confidence=CONFIDENCE, **learning)

    return (
        arm("DQN", "dqn", DQNConfig(**learning)),
        arm("calibrated model alone", "zero-shot", ZeroShotConfig(prior=prior), table_of("calibrated")),
        arm("hand-over, calibrated", "dqn-prior", hand_over, table_of("calibrated")),
        arm("hand-over, overconfident", "dqn-prior", hand_over, table_of("overconfident")),
        arm("hand-over, shuffled", "dqn-prior", hand_over, table_of("shuffled")),
        *(arm(f"hand-over, {lm.partition('?')[0]}", "dqn-prior", yours, lm) for lm in lms),
    )


# ---- the study --------------------------------------------------------------------------------------------


def _parts(scale: Scale, data: Path) -> list[Part]:
    source = Path(scale.data or HERE) / RECORDED
    live = {spec.partition("?")[0]: spec for spec in scale.lms}
    stored = {name: f"replay:{source}?model={name}" for name in MODELS}
    specs = live if live and not source.is_file() else {**stored, **live}
    small = {label: spec for label, spec in specs.items() if label != LARGEST}
    known = data / "known.answers.jsonl"
    pools = max(2, round(POOLS * scale.share))
    return [
        Part("Four options", (), beside=partial(position_tables, specs, pools)),
        Part("Twelve options", (), beside=partial(group_tables, small, min(pools, FEW_POOLS))),
        Part(
            "Hand-over",
            lake_arms(known, scale.steps(LAKE_STEPS), scale.lms),
            prepare=partial(known_models, known),
        ),
    ]


STUDIES = {
    "decision-models": Study(
        "decision-models",
        "What are the probabilities of small models worth that are asked as decision models?",
        "No published figures: decision models are new. Models that answer by letters favour some letters "
        "(Zheng et al., ICLR 2024).",
        "The models write, and decide by the probability of a letter (label) or by five answers that are "
        "restricted to the options (structured).",
        _parts,
        lm_for="dqn-prior",
        seeds=5,
        recorded=f"the recorded answers in {HERE} of the repository",
    )
}
