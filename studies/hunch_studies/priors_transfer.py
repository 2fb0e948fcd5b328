"""Study of "Efficient Reinforcement Learning with Large Language Model Priors" (Yan et al., ICLR 2025): a Q
trained with one model's proposals, used with another's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hunch.roles.prior.kinds import PriorConfig
from hunch_studies.priors import PICK, SALAD, WRONG, dqn_prior
from hunch_studies.study import Part, Scale, Study
from hunch_studies.transfer import Filling, Transfer

EPISODES = 50
UNSEEN = {"pool_seed": 7, "games": 28}
HELD_OUT = {"split": "unseen", "games": 28}
"""Games whose pairs of thing and place occur in no training game."""
GAMES = (8, 28, 112)
"""Number of training games (paper: 28)."""
TRAINED = 0.5
"""Error rate of the rule with which Q is trained on Overcooked; k = 5 proposals include the right action with
probability 0.97."""


def _fillings(
    scale: Scale, ks: tuple[int, ...], models: dict[str, tuple[str, PriorConfig]]
) -> tuple[Filling, ...]:
    """Return each model alone and with more proposals, which are drawn anew at every use."""
    models = models | {lm: (lm, PriorConfig()) for lm in scale.lms}
    return tuple(
        Filling(label, lm, k, {"prior": prior, "proposals": "fresh"})
        for label, (lm, prior) in models.items()
        for k in ks
    )


def _pick(scale: Scale) -> Part:
    models = {
        "similarity, as in training": ("minilm", PriorConfig()),
        "similarity without the rule against repetition": ("minilm", PriorConfig(repeat=0.0)),
        "the rule alone": ("uniform", PriorConfig(way="novelty")),
        "uniform": ("uniform", PriorConfig()),
    }
    return Part(
        "Household-Pick",
        (dqn_prior("DQN-Prior", "hunch/Household-Pick-v0", "minilm", scale.steps(9_000), PICK),),
        Transfer(
            _fillings(scale, (1, 5) if scale.smoke else (1, 5, 10), models), scale.episodes(EPISODES), UNSEEN
        ),
    )


def _by_games(
    scale: Scale, games: int, ks: tuple[int, ...] = (1, 5, 10, 15), variant: str = "", **options: Any
) -> Part:
    """Return a Q trained on some games, on these and on games with other goals, by number of proposals."""
    models = {"similarity": ("minilm", options.get("prior", PriorConfig()))}
    env, steps = "hunch/Household-Pick-v0", scale.steps(9_000)
    return Part(
        f"Household-Pick, {games} games{variant}",
        (dqn_prior("DQN-Prior", env, "minilm", steps, {"games": games}, **options),),
        Transfer(
            _fillings(scale, (1, 5) if scale.smoke else ks, models), scale.episodes(2 * EPISODES), HELD_OUT
        ),
    )


def _why(scale: Scale) -> list[Part]:
    """Return two differences from the paper, one at a time: the input of Q, and the rule of the prior."""
    prior = PriorConfig(repeat=0.0)
    return [
        _by_games(scale, 28, (1, 5), ", state and action as one text", joint=True),
        _by_games(scale, 28, (1, 5, 10), ", without the rule against repetition", prior=prior),
    ]


def _salad(scale: Scale) -> Part:
    models = {
        f"rule, error {error}": (f"scripted:kitchen?error={error}", PriorConfig())
        for error in (TRAINED, WRONG[0.8], WRONG[0.6])
    }
    return Part(
        "Overcooked-Salad",
        (dqn_prior("DQN-Prior", SALAD, f"scripted:kitchen?error={TRAINED}", scale.steps(6_000), {}),),
        Transfer(
            _fillings(scale, (1, 5), {**models, "uniform": ("uniform", PriorConfig())}),
            scale.episodes(EPISODES),
        ),
    )


def _transfer(scale: Scale, data: Path) -> list[Part]:
    return [_pick(scale), _salad(scale), *(_by_games(scale, games) for games in GAMES), *_why(scale)]


STUDIES = {
    "priors-transfer": Study(
        "priors-transfer",
        "Does a Q that was trained with one model's proposals improve other models, on seen and unseen "
        "tasks?",
        "With k = 5 and the 7B model that it was trained with, DQN-Prior reaches 0.62 on the training tasks "
        "of Pick and 0.38 on unseen ones; its Q lifts a model of 4B parameters from 0 to 0.35 on seen tasks "
        "and from 0 to 0.08 on unseen ones (table 2).",
        "Training is as in [DQN-Prior](../methods/dqn_prior.md#settings), where each setting has its "
        "source: k = 5, alpha 0.02, gamma 0.9; 9,000 steps of Household-Pick, 6,000 of Overcooked-Salad. "
        "Where a part names its number of games, unseen tasks are 28 games of the held-out split, whose "
        "pairs of thing and place are in no training game. In the part Household-Pick they are the 28 games "
        "of pool 7, which may share goals with the eight seen ones of pool 0. "
        "Household games are generated with ALFWorld's words, so scores are not ALFWorld "
        "scores. `minilm` with our similarity prior replaces models with 4 to 7 billion parameters: with "
        "and without the rule against repetition it is a stronger and a weaker prior over one model, not "
        "two models. The rule alone, the uniform prior and the scripted models (L0) are controls and "
        "support no claim about language models. Overcooked has a single task. `--lm SPEC` adds any other "
        "model.",
        _transfer,
        lm_for="dqn-prior",
    )
}
