"""Studies of "Efficient Reinforcement Learning with Large Language Model Priors" (Yan et al., ICLR "
"2025): online.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hunch import methods
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.study import Part, Scale, Study

PICK: dict[str, Any] = {"games": 8}
SALAD = "hunch/Overcooked-Salad-v0"
TOMATO = "hunch/Overcooked-Tomato-v0"
WRONG = {1.0: 0.0, 0.8: 0.7248, 0.6: 0.8326}
"""Error rate of one answer at which k = 5 answers include the right action with a given probability."""


KITCHENS = {SALAD: 51, TOMATO: 31}
"""The paper's step limits of an episode."""
RECALLS = (1.0, 0.9, 0.8, 0.7, 0.6)
"""recall@5 of the scripted priors in the kitchens, whose errors are noise."""
KEPT_AT = 0.8
"""recall@5 at which kept proposals and systematic errors are compared."""
DRAWS = 8
"""Draws of systematic errors."""


def dqn(env: str, steps: int, env_options: dict[str, Any], **changed: Any) -> Arm:
    """Return the baseline: all admissible actions."""
    options = methods.find("dqn").config_class(**changed)
    return Arm("DQN", RunConfig(method="dqn", env=env, steps=steps, env_options=env_options, options=options))


def dqn_prior(label: str, env: str, lm: str, steps: int, env_options: dict[str, Any], **options: Any) -> Arm:
    """Return DQN-Prior with a model in its role."""
    return Arm(
        label,
        RunConfig(
            method="dqn-prior",
            env=env,
            lm=lm,
            steps=steps,
            env_options=env_options,
            options=DQNPriorConfig(**options),
        ),
    )


def further(
    scale: Scale, env: str, steps: int, env_options: dict[str, Any], **options: Any
) -> tuple[Arm, ...]:
    """Return DQN-Prior with each of the user's models."""
    return tuple(dqn_prior(f"DQN-Prior, {lm}", env, lm, steps, env_options, **options) for lm in scale.lms)


def zero_shot(env: str, lm: str, steps: int, env_options: dict[str, Any]) -> Arm:
    """Return the model alone, without learning."""
    config = ZeroShotConfig()
    return Arm(
        "zero-shot",
        RunConfig(method="zero-shot", env=env, lm=lm, steps=steps, env_options=env_options, options=config),
    )


def _with_minilm(scale: Scale, env: str, title: str) -> Part:
    steps = scale.steps(9_000)
    return Part(
        title,
        (
            dqn(env, steps, PICK),
            dqn_prior("DQN-Prior, random k", env, "uniform", steps, PICK),
            zero_shot(env, "minilm", steps, PICK),
            dqn_prior("DQN-Prior", env, "minilm", steps, PICK),
            *further(scale, env, steps, PICK),
        ),
    )


def _with_rule(scale: Scale, env: str, title: str, rule: str, full: int, k: int) -> Part:
    """Return DQN and DQN-Prior with a rule whose error rate gives this recall@k.

    The encoder of Q is ``phrases``: for MiniLM the texts of the lake's cells are nearly equal, and DQN does
    not learn to distinguish them within the steps. Q is updated at every step, and DQN explores
    epsilon-greedily: with the settings of the other parts it never finds the goal in two of five seeds.
    """
    steps = scale.steps(full)
    shared: dict[str, Any] = {"encoder": "phrases", "update_every": 1}
    own = {**shared, "k": k}
    lines = [
        dqn(env, steps, {}, **shared, explore="epsilon", epsilon=(1.0, 0.05, steps // 2)),
        dqn_prior("DQN-Prior, random k", env, "uniform", steps, {}, **own),
    ]
    for recall in WRONG:
        error = round((1 - recall) ** (1 / k), 4)
        label, model = f"DQN-Prior, recall@{k} {recall}", f"scripted:{rule}?error={error}"
        lines.append(dqn_prior(label, env, model, steps, {}, **own))
    return Part(title, (*lines, *further(scale, env, steps, {}, **own)))


def error(recall: float, k: int, systematic: float = 0.0) -> float:
    """Return the error rate of one answer at which k answers include the right action with this probability.

    In a share ``systematic`` of the situations all answers are equal, so k of them are no better than one.
    """
    from scipy.optimize import brentq

    def surplus(rate: float) -> float:
        return systematic * rate + (1 - systematic) * rate**k - (1 - recall)

    return round(float(brentq(surplus, 0.0, 1.0)), 4)


def _kitchen(scale: Scale, env: str, history: int) -> Part:
    """Return DQN and DQN-Prior by recall, by when proposals are drawn, and by the kind of errors."""
    steps, place = scale.steps(12_000), {"history": history, "max_steps": KITCHENS[env]}

    def informed(how: str, recall: float, share: float = 0.0) -> Arm:
        lm = f"scripted:kitchen?error={error(recall, 5, share)}&systematic={share:g}"
        kind = "systematic errors" if share else "noise"
        return dqn_prior(f"{how}, recall@5 {recall}, {kind}", env, lm, steps, place, proposals=how)

    lines = (
        dqn(env, steps, place),
        *(informed("visited", recall) for recall in RECALLS),
        informed("kept", KEPT_AT),
        informed("visited", KEPT_AT, share=1.0),
        informed("kept", KEPT_AT, share=1.0),
    )
    return Part(f"{env.split('/')[1].removesuffix('-v0')}, history {history}", lines)


def _systematic(scale: Scale) -> Part:
    """Return Salad with priors whose errors stay, in several draws of these errors."""
    steps, place = scale.steps(12_000), {"history": 3, "max_steps": KITCHENS[SALAD]}
    rule = f"scripted:kitchen?error={error(KEPT_AT, 5, 1.0)}&systematic=1&draw="
    lines = [
        dqn_prior(f"draw {n}", SALAD, f"{rule}{n}", steps, place, proposals="visited") for n in range(DRAWS)
    ]
    return Part("Salad, systematic errors", tuple(lines))


def _online(scale: Scale, data: Path) -> list[Part]:
    return [
        *(_kitchen(scale, env, history) for env, history in ((SALAD, 3), (SALAD, 0), (TOMATO, 3))),
        _systematic(scale),
        _with_rule(scale, "hunch/FrozenLake-v0", "FrozenLake", "frozenlake", 4_000, k=2),
        _with_minilm(scale, "hunch/Household-Pick-v0", "Household-Pick"),
        _with_minilm(scale, "hunch/Household-Examine-v0", "Household-Examine"),
    ]


def _by_k(scale: Scale, data: Path) -> list[Part]:
    env, steps = "hunch/Household-Pick-v0", scale.steps(9_000)
    lines = [dqn_prior(f"k = {k}", env, "minilm", steps, PICK, k=k, proposals="kept") for k in (1, 3, 5, 10)]
    return [Part("Household-Pick by number of proposals", tuple(lines))]


def _by_temperature(scale: Scale, data: Path) -> list[Part]:
    env, steps = "hunch/Household-Pick-v0", scale.steps(9_000)
    alphas = (0.005, 0.02, 0.1, 0.5)
    lines = [
        dqn_prior(f"alpha = {alpha}", env, "minilm", steps, PICK, alpha=alpha, proposals="kept")
        for alpha in alphas
    ]
    return [Part("Household-Pick by temperature of the posterior", tuple(lines))]


def _cache(scale: Scale, data: Path) -> list[Part]:
    steps, rule = scale.steps(3_000), f"scripted:kitchen?error={WRONG[0.8]}"
    lines = [
        dqn_prior(f"proposals {how}", SALAD, rule, steps, {}, proposals=how) for how in ("kept", "fresh")
    ]
    return [Part("Overcooked-Salad, proposals kept or fresh", tuple(lines))]


_OURS = (
    "Household games are generated with ALFWorld's words and rules and a limit of 50 steps, so scores are "
    "not ALFWorld scores. `minilm` is a sentence encoder with our similarity prior; it replaces a "
    "generating model with 7 billion parameters. Scripted models (L0) know the right action and err with "
    "the stated rate: they show how good a model would have to be, but nothing about real models. All "
    "other settings and their sources: [DQN-Prior](../methods/dqn_prior.md#settings)."
)

STUDIES = {
    study.name: study
    for study in (
        Study(
            "priors-online",
            "Does confining Q-learning to a model's proposals save environment steps, and how good must "
            "the model be?",
            "DQN-Prior with k = 5 and a 7B model reaches 0.62 on the training tasks of Pick and 0.38 on "
            "unseen ones; DQN without a prior does not start (section 4, tables 1 and 2).",
            _OURS,
            _online,
            lm_for="dqn-prior",
            seeds=8,
        ),
        Study(
            "priors-k",
            "How many proposals?",
            "k = 5 is the paper's choice; larger k approaches DQN, k = 1 is the model alone.",
            _OURS,
            _by_k,
        ),
        Study(
            "priors-temperature",
            "How sharp should the posterior softmax(Q / alpha) be?",
            "alpha from 0.01 to 0.1, by environment.",
            _OURS,
            _by_temperature,
        ),
        Study(
            "priors-cache",
            "How much does keeping a state's proposals save, and what does it cost?",
            "With kept answers 434 queries and 13.8 minutes; without, 2,933 queries and 31.1 minutes. The "
            "return is the same or better with kept answers.",
            _OURS,
            _cache,
        ),
    )
}
