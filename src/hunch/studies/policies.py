"""A language model as the policy: the value of pretraining, normalisation by length, and a prior.

hunch study glam | twosome | gflan-prior
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from hunch.core import State
from hunch.envs import make
from hunch.lm import trainable
from hunch.lm.base import Normalisation
from hunch.methods.policy.gflan_prior import GFlanPriorConfig
from hunch.methods.policy.glam import WALKS, GLAMConfig
from hunch.methods.policy.ppo import PerceptronPPOConfig
from hunch.methods.policy.twosome import TWOSOMEConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl.episodes import evaluate, play
from hunch.rl.statistics import over_seeds
from hunch.roles.policy import LMPolicy, LMPolicyConfig
from hunch.roles.prior_kinds import PriorConfig
from hunch.runs.build import load_agent
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig, finished
from hunch.runs.files import read_json, write_atomically
from hunch.studies.study import Part, Scale, Study

ENV: Final = "hunch/BabyAI-GoToRedBall-v0"
STEPS: Final = 3_000
STREAMS: Final = 8
EVEN: Final[dict[str, Any]] = {"normalise": "token", "temperature": 0.5}
"""For actions of two tokens it is their sum. By the sum itself a network that knows nothing never tries them,
as others have one token: it drops and toggles, earns nothing, and stays there."""
EPISODES: Final = 60
"""Episodes of an evaluation with other tasks."""
AS_IT_IS: Final = PriorConfig(kind="likelihood", normalise="token", temperature=0.5)
"""The policy of GLAM before training."""
ELSEWHERE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "GoToRedBall": (ENV, {}),
    "GoToLocal, other targets": ("hunch/BabyAI-GoToLocal-v0", {}),
    "GoToRedBall, synonyms": (ENV, {"wording": "synonyms"}),
}


def arm(label: str, method: str, steps: int, options: Any, lm: str = "", **place: Any) -> Arm:
    """A line, without history and in eight streams."""
    where = {"history": 0, **place}
    config = RunConfig(
        method=method, env=ENV, lm=lm, steps=steps, envs=STREAMS, env_options=where, options=options
    )
    return Arm(label, config)


# ---- GLAM -------------------------------------------------------------------------------------------------


def glam(scale: Scale, data: Path) -> list[Part]:
    """The network with its pretraining, with shuffled words, and with random weights; and other methods."""
    steps = scale.steps(STEPS)
    trained = (
        arm("GLAM, pretrained", "glam", steps, GLAMConfig(**EVEN)),
        arm("GLAM, vocabulary shuffled", "glam", steps, GLAMConfig(start="shuffled", **EVEN)),
        arm("GLAM, from scratch", "glam", steps, GLAMConfig(start="random", **EVEN)),
        *(arm(f"GLAM, {lm}", "glam", steps, GLAMConfig(**EVEN), lm) for lm in scale.lms),
    )
    lines = (
        *trained,
        arm("pretrained, not trained", "zero-shot", steps, ZeroShotConfig(prior=AS_IT_IS), WALKS),
        arm("PPO on bags of words", "ppo", steps, PerceptronPPOConfig(encoder="bag-of-words", horizon=40)),
        arm("random", "zero-shot", steps, ZeroShotConfig(), "uniform"),
    )
    return [Part("GoToRedBall", lines, beside=partial(elsewhere, trained, scale))]


def elsewhere(listed: Sequence[Arm], scale: Scale, folder: Path) -> str:
    """Success of the trained agents with other targets and other words for the actions, in Markdown."""
    lines = [f"| after training | {' | '.join(ELSEWHERE)} |", "|---|" + "---|" * len(ELSEWHERE)]
    for each in listed:
        runs = [job.folder for job in jobs([each], scale.seeds, folder) if finished(job.folder)]
        found = [_tried(run, scale) for run in runs]
        cells = [str(over_seeds([own[place] for own in found])) for place in ELSEWHERE] if found else []
        lines.append(f"| {each.label} | {' | '.join(cells)} |")
    told = f"Success in {scale.episodes(EPISODES)} new episodes per seed, for agents trained in GoToRedBall."
    return "\n".join([told, "", *lines])


def _tried(run: Path, scale: Scale) -> dict[str, float]:
    """Success of a trained agent in each place, from its file or measured now."""
    path = run / "elsewhere.json"
    if (known := read_json(path)) is None:
        agent, _ = load_agent(run)
        known = {}
        for label, (env, options) in ELSEWHERE.items():
            envs = [make(env, history=0, **options) for _ in range(STREAMS)]
            played = evaluate(agent.player, envs, scale.episodes(EPISODES), 1_000)
            known[label] = float(np.mean([episode.success for episode in played]))
        write_atomically(path, json.dumps(known).encode())
    return known


# ---- TWOSOME ----------------------------------------------------------------------------------------------


def twosome(scale: Scale, data: Path) -> list[Part]:
    """Actions of one to six words, by what their log-probability is divided by."""
    steps = scale.steps(STEPS * 2 // 3)
    kinds: tuple[Normalisation, ...] = get_args(Normalisation)
    lines = tuple(
        arm(f"TWOSOME, {kind}{own}", "twosome", steps, TWOSOMEConfig(normalise=kind), lm, wording="lengths")
        for lm, own in (("", ""), *((lm, f", {lm}") for lm in scale.lms))
        for kind in kinds
    )
    return [Part("GoToRedBall, actions of one to six words", lines, beside=lambda folder: first_policies())]


def first_policies() -> str:
    """Before training, how the policy is spread by normalisation, in Markdown."""
    env, rng = make(ENV, history=0, wording="lengths"), np.random.default_rng(0)
    states: list[State] = []
    for number in range(10):
        episode = play(env, lambda s: s.options[int(rng.integers(len(s.options)))], number)
        states += [t.state for t in episode][:10]
    names = states[0].options
    lines = [f"| normalised by | entropy (nats) | {' | '.join(names)} |", "|---|" + "---|" * (1 + len(names))]
    for kind in get_args(Normalisation):
        policy = LMPolicy(trainable(WALKS), LMPolicyConfig(normalise=kind, width=8), 0)
        shares = policy.logprobs(states).detach().double().exp().numpy()
        entropy = -(shares * np.log(shares)).sum(axis=1).mean()
        cells = " | ".join(f"{share:.3f}" for share in shares.mean(axis=0))
        lines.append(f"| {kind} | {entropy:.2f} | {cells} |")
    told = f"The policy before training, mean over {len(states)} states of random play:"
    return "\n".join([told, "", *lines])


# ---- GFlan-Prior ------------------------------------------------------------------------------------------


def gflan_prior(scale: Scale, data: Path) -> list[Part]:
    """A random network alone, pulled towards the pretrained one's proposals, and restricted to them."""
    steps = scale.steps(STEPS)

    def with_prior(label: str, proposer: str = WALKS, **options: Any) -> Arm:
        config = GFlanPriorConfig(start="random", proposer=proposer, prior=AS_IT_IS, **EVEN, **options)
        return arm(label, "gflan-prior", steps, config)

    lines = (
        arm("GFlan, from scratch", "glam", steps, GLAMConfig(start="random", **EVEN)),
        with_prior("GFlan-Prior, among proposals", space="proposals", kl=0.0),
        *(with_prior(f"GFlan-Prior, kl {kl}", kl=kl) for kl in (1.0, 0.1, 0.01)),
    )
    return [Part("GoToRedBall", lines)]


_OURS = (
    "The model is our own, of 0.12 million weights, pretrained on walkthroughs of other levels, seeds and "
    "targets in the same words ([the walks](../pocket.md#the-walks)): evidence L1, which says what reading "
    "walkthroughs is worth to this loop, and nothing about language models at large. No history; 30 steps an "
    "episode; eight streams."
)

STUDIES = {
    study.name: study
    for study in (
        Study(
            "glam",
            "Does a policy that has read about a world learn to act in it sooner than the same network "
            "without?",
            "Flan-T5 of 780 million weights comes to about 80 % success within 250,000 steps on a mix of "
            "BabyAI tasks; the same network without its pretraining, and one without language, do not (Carta "
            "et al., ICML 2023).",
            _OURS,
            glam,
            lm_for="glam",
            seeds=5,
        ),
        Study(
            "twosome",
            "Does dividing by the length of an action help where actions have one to six words?",
            "With word or token normalisation TWOSOME learns faster than PPO; without any its return stays "
            "near 0 (Tan et al., ICLR 2024, and its author in issue 9 of the released code).",
            _OURS,
            twosome,
            lm_for="twosome",
            seeds=5,
        ),
        Study(
            "gflan-prior",
            "Does pulling a policy towards a frozen model's proposals save steps?",
            "On GoToRedBall GFlan-Prior reaches GFlan's return in a fraction of the steps (Yan et al., ICLR "
            "2025, figures 4, 5, 7 and 9).",
            _OURS,
            gflan_prior,
            seeds=5,
        ),
    )
}
