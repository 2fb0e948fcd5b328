"""Study of "Efficient Reinforcement Learning with Large Language Model Priors" (Yan et al., ICLR 2025): a
small causal model that has read searches in other houses, instead of a large one.

Four lengths of training give four priors that write their actions, with measured recall.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import State
from hunch.envs import make
from hunch.lm import load
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl.statistics import over_episodes
from hunch.roles.prior.base import Proposal
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.laboratory.pretrain import PretrainConfig, pretrain
from hunch_studies.priors import PICK, dqn, dqn_prior
from hunch_studies.study import Part, Scale, Seeded, Study
from hunch_studies.transfer import Filling, Transfer

ENV: Final = "hunch/Household-Pick-v0"
TOKENS: Final = (300_000, 1_000_000, 2_000_000, 4_000_000)
"""Training tokens of the priors, from weak to strong."""
STEPS: Final = 9_000
K: Final = 5
WRITES: Final = PriorConfig(way="text-unlisted")
"""The paper's prior: k answers at temperature 1, each mapped to an action. The prompt is the bare transcript,
because the model has read no lists of actions."""
UNSEEN: Final[dict[str, Any]] = {"split": "unseen", "games": 28}
PLACES: Final[dict[str, dict[str, Any]]] = {"seen": PICK, "unseen": UNSEEN}
EPISODES: Final = 50
WORDS: Final = PriorConfig(way="similarity", temperature=0.075)
"""The lexical control at its best temperature (see the study priors-knowledge)."""
SHIPPED: Final = "pocket?corpus=households"
"""The strongest of the models of this study, as it comes with Hunch."""


def recipe(tokens: int) -> PretrainConfig:
    """Return the training settings of a model of this study."""
    return PretrainConfig(
        corpus="households",
        tokens=tokens,
        width=192,
        layers=4,
        stages=((1.0, 192),),
        learning_rate=3e-3,
    )


def train(done: Path, tokens: int) -> None:
    """Train a model, or resume its training, unless it exists already."""
    if not (done / "config.json").exists():
        pretrain(recipe(tokens), done.parent, lambda line: None)


def states(options: dict[str, Any], games: int) -> Iterator[tuple[State, str]]:
    """Return the states on the shortest solution of each game, with the right action."""
    env = make(ENV, **options)
    for seed in range(games):
        observation, info = env.reset(seed=seed)
        for action in env.unwrapped.oracle():  # type: ignore[attr-defined]
            yield State.read(observation, info), action
            observation, _, _, _, info = env.step(action)


def recalls(priors: dict[str, tuple[str, PriorConfig]], games: int, folder: Path) -> str:
    """Return the share of states whose right action is among k proposals, by tasks and verb, in Markdown."""
    lines = ["| prior | tasks | take, open, move | go to | no action named |", "|---|---|---|---|---|"]
    for label, (spec, config) in priors.items():
        prior = build_prior(config, load(spec))
        for place, options in PLACES.items():
            pairs = list(states(options, games))
            rng = np.random.default_rng(0)
            proposals = [prior.propose([state], K, rng)[0] for state, _ in pairs]
            found = [_holds(p, state, action) for p, (state, action) in zip(proposals, pairs, strict=True)]
            cells = []
            for going in (False, True):
                hits = [
                    hit for hit, (_, a) in zip(found, pairs, strict=True) if a.startswith("go to") == going
                ]
                cells.append(str(over_episodes(hits)))
            astray = np.mean([p.fallbacks for p in proposals])
            lines.append(f"| {label} | {place} | {' | '.join(cells)} | {astray:.2f} |")
    told = (
        f"recall@{K} on the shortest ways through {games} games, with the 95 % interval over states. Where "
        "to go is often not in the text; what to take, open and move is."
    )
    return "\n".join([told, "", *lines])


def _holds(proposal: Proposal, state: State, action: str) -> bool:
    return state.options.index(action) in proposal.indices


def _parts(scale: Scale, data: Path) -> list[Part]:
    sizes = TOKENS if not scale.smoke else (4_000,)
    models = {tokens: data / f"households-{tokens}" / "model" for tokens in sizes}
    specs = {f"{tokens / 1e6:g} M tokens": f"pocket?folder={done}" for tokens, done in models.items()}
    steps, strongest = scale.steps(STEPS), list(specs)[-1]

    def train_all() -> None:
        for tokens, done in models.items():
            train(done, tokens)

    def learns(label: str, spec: str) -> Arm:
        return dqn_prior(f"DQN-Prior, {label}", ENV, spec, steps, PICK, prior=WRITES, proposals="visited")

    def alone(label: str, spec: str) -> Arm:
        config = ZeroShotConfig(prior=WRITES)
        run = RunConfig(method="zero-shot", env=ENV, lm=spec, steps=steps, env_options=PICK, options=config)
        return Arm(f"zero-shot, {label}", run)

    others = [label for label in specs if label != strongest]
    arms = (
        learns(strongest, specs[strongest]),
        *(learns(label, specs[label]) for label in others),
        *(alone(label, spec) for label, spec in specs.items()),
        dqn(ENV, steps, PICK),
        dqn_prior("DQN-Prior, random k", ENV, "uniform", steps, PICK),
        dqn_prior("DQN-Prior, words", ENV, "words", steps, PICK, prior=WORDS),
    )
    tuned = (
        dqn_prior("DQN-Prior, pocket", ENV, SHIPPED, steps, PICK, prior=WRITES, proposals="visited"),
        dqn_prior("DQN-Prior, words, for Q as well", ENV, "words", steps, PICK, prior=WORDS, encoder="words"),
    )
    fillings = tuple(
        Filling(label, spec, k, {"prior": WRITES, "proposals": "fresh"})
        for label, spec in specs.items()
        for k in (1, K)
    )
    priors = {**{label: (spec, WRITES) for label, spec in specs.items()}, "words": ("words", WORDS)}
    return [
        Part(
            "Household-Pick",
            arms,
            Transfer(fillings, scale.episodes(EPISODES), UNSEEN),
            beside=partial(recalls, priors, 2 if scale.smoke else 40),
            prepare=train_all,
        ),
        Part("Words, tuned", tuple(Seeded(arm.label, arm.config, settings_by_seed=_pool) for arm in tuned)),
    ]


def _pool(seed: int) -> dict[str, Any]:
    """Return the games of a seed: a pool of its own, those of the demo."""
    return {"env_options": {**PICK, "pool_seed": seed}}


STUDIES = {
    "priors-learned": Study(
        "priors-learned",
        "Does DQN-Prior work with a prior that writes its actions and has not read the games that are "
        "played?",
        "With k = 5 and a 7B model DQN-Prior reaches 0.62 on the training tasks of Pick and 0.38 on unseen "
        "ones, where the model alone has 0.04; its Q lifts a model of 4B parameters from 0 to 0.35 on seen "
        "tasks (Yan et al., ICLR 2025, tables 1 and 2).",
        "The models are our own, with 1.9 million weights (evidence L1). They have read searches in other "
        "generated houses, by a rule that knows where things usually are. Their prompt is the transcript "
        "without a list of actions. Training has 8 games instead of 28, and 9,000 steps. The unseen tasks "
        "are 28 games of the held-out split, whose pairs of thing and place occur in no game of the "
        "corpus.",
        _parts,
    )
}
