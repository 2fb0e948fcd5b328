"""A language model as the policy: the value of pretraining, normalisation by length, and a prior.

hunch study glam | twosome | gflan-prior
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from hunch.methods.policy.twosome import TWOSOMEConfig
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.rl.episodes import evaluate, play
from hunch.rl.statistics import over_seeds
from hunch.roles import LMPolicy, LMPolicyConfig
from hunch.roles.prior.kinds import PriorConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.loading import load_agent
from hunch.runs.stored import finished
from hunch_studies.laboratory.pretrain import PretrainConfig, pretrain
from hunch_studies.ladder import WORDS
from hunch_studies.ladder_kitchen import SAMPLES
from hunch_studies.ladder_lake import BLANK
from hunch_studies.policies_home import ON_WORDS, PPO, STREAMS_PUBLISHED, beginnings, trained
from hunch_studies.study import Part, Scale, Study, by_name, kept

ENV: Final = "hunch/BabyAI-GoToRedBall-v0"
ALONE: Final = "hunch/BabyAI-GoToRedBallNoDists-v0"
"""Only the ball is in the room, and a network that knows nothing learns to go there."""
STEPS: Final = 3_000
STEPS_ALONE: Final = 6_000
"""By a pilot run from scratch, seed 100: success rises from 0.2 after 3,000 steps to 0.8 after 7,000."""
STEPS_PUBLISHED: Final = 250_000
STEPS_LEARNT: Final = 100_000
"""In the run of 250,000 steps, seed 0, the pretrained policy has 0.95 after 90,000."""
STEPS_REDUCED: Final = 60_000
"""By then, each of three seeds that learn for 100,000 steps is above 0.9."""
STEPS_LONG: Final = 20_000
"""Steps in which TWOSOME is to learn: its untrained policy, divided by tokens, has 0.28."""
STREAMS: Final = 8
EVEN: Final[dict[str, Any]] = {"normalise": "token", "temperature": 0.5}
"""For actions of two tokens it is their sum. By the sum itself a network that knows nothing never tries them,
as others have one token: it drops and toggles, earns nothing, and stays there."""
EPISODES: Final = 60
"""Episodes of an evaluation with other tasks."""
AS_IT_IS: Final = PriorConfig(way="likelihood", normalise="token", temperature=0.5)
"""The policy of GLAM before training."""
EQUAL: Final[Mapping[Normalisation, float]] = {"sum": 12.87, "token": 3.91, "word": 5.38}
"""Temperatures at which the policy before training has a mean entropy of 1.3 of at most 1.79 nats."""
ERRING: Final = 500_000
"""Training tokens of a prior that errs; the model that comes with hunch has read four million."""
ELSEWHERE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "GoToRedBall": (ENV, {}),
    "GoToLocal, other targets": ("hunch/BabyAI-GoToLocal-v0", {}),
    "GoToRedBall, synonyms": (ENV, {"wording": "synonyms"}),
}


def arm(
    label: str,
    method: str,
    steps: int,
    options: Any,
    lm: str = "",
    env: str = ENV,
    envs: int = STREAMS,
    **place: Any,
) -> Arm:
    """Return an arm without history."""
    where = {"history": 0, **place}
    config = RunConfig(
        method=method, env=env, lm=lm, steps=steps, envs=envs, env_options=where, options=options
    )
    return Arm(label, config)


# ---- GLAM -------------------------------------------------------------------------------------------------


def glam(scale: Scale, data: Path) -> list[Part]:
    """The network pretrained, with a shuffled vocabulary, and from scratch; and other methods."""
    steps = scale.steps(STEPS)
    lines = (
        arm("GLAM, pretrained", "glam", steps, GLAMConfig(**EVEN)),
        arm("GLAM, vocabulary shuffled", "glam", steps, GLAMConfig(start="shuffled", **EVEN)),
        arm("GLAM, from scratch", "glam", steps, GLAMConfig(start="random", **EVEN)),
        *(arm(f"GLAM, {lm}", "glam", steps, GLAMConfig(**EVEN), lm) for lm in scale.lms),
        arm("pretrained, not trained", "zero-shot", steps, ZeroShotConfig(prior=AS_IT_IS), WALKS),
        arm(PPO, "ppo", steps, ON_WORDS),
        arm("random", "zero-shot", steps, ZeroShotConfig(), "uniform"),
    )
    return [
        Part("GoToRedBall", lines, measure=partial(elsewhere, scale)),
        Part("Only the ball in the room", alone(scale.steps(STEPS_ALONE))),
        Part("As many steps as published", published(scale.steps(STEPS_PUBLISHED)), most=1),
        Part("A hundred thousand steps", published(scale.steps(STEPS_LEARNT))),
        Part("Not trained", untrained(scale)),
        Part("Less to reduce the variance", reduced(scale.steps(STEPS_REDUCED)), most=2),
        Part("Household-Pick, twenty thousand steps", trained(scale.steps(STEPS_LONG)), most=3),
        Part("Household-Pick, not trained", beginnings(scale.steps(STEPS_LONG // 4)), most=3),
    ]


def published(steps: int) -> tuple[Arm, ...]:
    """Return the arms of the first part that learn, with the paper's numbers of steps and of streams."""
    envs = STREAMS_PUBLISHED
    return (
        arm("GLAM, pretrained", "glam", steps, GLAMConfig(**EVEN), envs=envs),
        arm("GLAM, from scratch", "glam", steps, GLAMConfig(start="random", **EVEN), envs=envs),
        arm(PPO, "ppo", steps, ON_WORDS, envs=envs),
    )


def reduced(steps: int) -> tuple[Arm, ...]:
    """Return GLAM with one change each of what reduces the variance of its gradient."""
    changes: Mapping[str, Mapping[str, Any]] = {
        "no entropy bonus": {"entropy": 0.0},
        "batches of 256": {"batch_size": 256},
    }
    return tuple(
        arm(f"GLAM, {label}", "glam", steps, GLAMConfig(**EVEN, **options), envs=STREAMS_PUBLISHED)
        for label, options in changes.items()
    )


def untrained(scale: Scale) -> tuple[Arm, ...]:
    """Return the pretrained policy without training, and random play, in as many streams as learners have."""
    steps, envs = scale.steps(STEPS_LEARNT // 5), STREAMS_PUBLISHED
    as_it_is = ZeroShotConfig(prior=AS_IT_IS)
    return (
        arm("pretrained, not trained", "zero-shot", steps, as_it_is, WALKS, envs=envs),
        arm("random", "zero-shot", steps, ZeroShotConfig(), "uniform", envs=envs),
    )


def alone(steps: int) -> tuple[Arm, ...]:
    """Return arms where a network from scratch learns; the pretrained one has nothing left to learn."""
    zero_shot = ZeroShotConfig(prior=AS_IT_IS)
    return (
        arm("GLAM, from scratch", "glam", steps, GLAMConfig(start="random", **EVEN), env=ALONE),
        arm("pretrained, not trained", "zero-shot", steps, zero_shot, WALKS, env=ALONE),
        arm("random", "zero-shot", steps, ZeroShotConfig(), "uniform", env=ALONE),
    )


def elsewhere(scale: Scale, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Success of the trained policies with other targets and other words for the actions, in Markdown."""
    lines = [f"| after training | {' | '.join(ELSEWHERE)} |", "|---|" + "---|" * len(ELSEWHERE)]
    for each in (arm for arm in listed if arm.config.method == "glam"):
        runs = {job.seed: job.folder for job in jobs([each], seeds, folder) if finished(job.folder)}
        keys = [(each.label, seed) for seed in runs]
        found = kept(folder / "elsewhere.jsonl", keys, lambda _, seed, runs=runs: _tried(runs[seed], scale))
        cells = [str(over_seeds([own[place] for own in found])) for place in ELSEWHERE] if found else []
        lines.append(f"| {each.label} | {' | '.join(cells)} |")
    told = f"Success in {scale.episodes(EPISODES)} new episodes per seed, for agents trained in GoToRedBall."
    return "\n".join([told, "", *lines])


def _tried(run: Path, scale: Scale) -> dict[str, Any]:
    """Success of a trained agent in each place."""
    agent, _ = load_agent(run)
    found = {}
    for label, (env, options) in ELSEWHERE.items():
        envs = [make(env, history=0, **options) for _ in range(STREAMS)]
        played = evaluate(agent.player, envs, scale.episodes(EPISODES), 1_000)
        found[label] = float(np.mean([episode.success for episode in played]))
    return found


# ---- TWOSOME ----------------------------------------------------------------------------------------------


def twosome(scale: Scale, data: Path) -> list[Part]:
    """Actions of one to six words, by the divisor of their log-probability, at two temperatures."""
    steps = scale.steps(STEPS * 2 // 3)
    kinds: tuple[Normalisation, ...] = get_args(Normalisation)

    def lines(
        temperatures: Mapping[Normalisation, float], models: Sequence[str], steps: int = steps, envs: int = 8
    ) -> tuple[Arm, ...]:
        how: dict[str, Any] = {"envs": envs, "wording": "lengths"}
        return tuple(
            arm(f"TWOSOME, {kind}{lm and ', '}{lm}", "twosome", steps, config, lm, **how)
            for lm in models
            for kind in kinds
            for config in [TWOSOMEConfig(normalise=kind, temperature=temperatures[kind])]
        )

    def frozen(kind: Normalisation) -> Arm:
        config = ZeroShotConfig(prior=PriorConfig(way="likelihood", normalise=kind, temperature=EQUAL[kind]))
        long, envs = scale.steps(STEPS_LONG // 4), STREAMS_PUBLISHED
        return arm(f"{kind}, not trained", "zero-shot", long, config, WALKS, envs=envs, wording="lengths")

    as_published = dict.fromkeys(kinds, 1.0)
    random = arm("random", "zero-shot", steps, ZeroShotConfig(), "uniform", wording="lengths")
    ppo = arm(PPO, "ppo", scale.steps(STEPS_LONG), ON_WORDS, envs=STREAMS_PUBLISHED, wording="lengths")
    return [
        Part(
            "GoToRedBall, actions of one to six words",
            lines(as_published, ("", *scale.lms)),
            beside=lambda folder: first_policies(as_published),
        ),
        Part(
            "GoToRedBall, equal entropy before training",
            (*lines(EQUAL, ("",)), random),
            beside=lambda folder: first_policies(EQUAL),
        ),
        Part(
            "GoToRedBall, twenty thousand steps",
            (*lines(EQUAL, ("",), scale.steps(STEPS_LONG), STREAMS_PUBLISHED), ppo),
        ),
        Part("Not trained", tuple(map(frozen, kinds))),
    ]


def first_policies(temperatures: Mapping[Normalisation, float]) -> str:
    """Before training, how the policy is spread by normalisation, in Markdown."""
    env, rng = make(ENV, history=0, wording="lengths"), np.random.default_rng(0)
    states: list[State] = []
    for number in range(10):
        episode = play(env, lambda s: s.options[int(rng.integers(len(s.options)))], number)
        states += [t.state for t in episode][:10]
    names = states[0].options
    lines = [f"| normalised by | entropy (nats) | {' | '.join(names)} |", "|---|" + "---|" * (1 + len(names))]
    for kind, temperature in temperatures.items():
        config = LMPolicyConfig(normalise=kind, temperature=temperature, width=8)
        policy = LMPolicy(trainable(WALKS), config, 0)
        shares = policy.logprobs(states).detach().double().exp().numpy()
        entropy = -(shares * np.log(shares)).sum(axis=1).mean()
        cells = " | ".join(f"{share:.3f}" for share in shares.mean(axis=0))
        lines.append(f"| {kind} | {entropy:.2f} | {cells} |")
    told = f"The policy before training, mean over {len(states)} states of random play:"
    return "\n".join([told, "", *lines])


# ---- GFlan-Prior ------------------------------------------------------------------------------------------


def less_trained(done: Path) -> None:
    """Train a prior that errs, by the recipe of the walks with an eighth of the tokens, unless it exists."""
    recipe = PretrainConfig(
        corpus="walks",
        tokens=ERRING,
        width=64,
        layers=2,
        context=512,
        stages=((1.0, 64),),
        learning_rate=4e-3,
    )
    if not (done / "config.json").exists():
        pretrain(recipe, done.parent, lambda line: None)


def gflan_prior(scale: Scale, data: Path) -> list[Part]:
    """A network from scratch alone, regularised towards a pretrained one's proposals, and bound to them."""
    steps, weak = scale.steps(STEPS_ALONE), data / f"walks-{ERRING}" / "model"
    errs = f"pocket?folder={weak}"

    def with_prior(label: str, proposer: str = WALKS, **options: Any) -> Arm:
        config = GFlanPriorConfig(start="random", proposer=proposer, prior=AS_IT_IS, **EVEN, **options)
        return arm(label, "gflan-prior", steps, config, env=ALONE)

    lines = (
        arm("GFlan, from scratch", "glam", steps, GLAMConfig(start="random", **EVEN), env=ALONE),
        with_prior("GFlan-Prior, among proposals", space="proposals", kl=0.0),
        *(with_prior(f"GFlan-Prior, kl {kl}", kl=kl) for kl in (1.0, 0.1, 0.01)),
        with_prior("GFlan-Prior, kl 0.1, uniform proposals", proposer="uniform", kl=0.1),
        with_prior("GFlan-Prior, kl 0.1, a prior that errs", proposer=errs, kl=0.1),
        arm(
            "the prior that errs, alone", "zero-shot", steps, ZeroShotConfig(prior=AS_IT_IS), errs, env=ALONE
        ),
    )
    return [
        Part("Only the ball in the room", lines, prepare=partial(less_trained, weak)),
        Part("Only the ball, written proposals", tuple(written(scale, steps))),
    ]


def written(scale: Scale, steps: int) -> Iterator[Arm]:
    """Yield GFlan-Prior with proposals of a model that writes, even draws, words, and its blank prompt."""

    def proposed(label: str, proposer: str, prior: PriorConfig) -> Arm:
        config = GFlanPriorConfig(start="random", proposer=proposer, prior=prior, kl=0.1, **EVEN)
        return arm(label, "gflan-prior", steps, config, env=ALONE)

    yield proposed("uninformed", "uniform", PriorConfig())
    yield proposed(WORDS, "words", PriorConfig())
    for rung, spec in by_name(scale.lms).items():
        restricted = PriorConfig(way="structured", samples=SAMPLES)
        yield proposed(rung, spec, restricted)
        yield proposed(f"{rung}, {BLANK}", spec, replace(restricted, blank=True))


_OURS = (
    "The model is our own, of 0.12 million weights. It was pretrained on walkthroughs of other levels, "
    "layouts and targets in the same words ([the walks](../pocket.md#the-walks)). Evidence is L1: the study "
    "measures the value of this pretraining in the loop, and says nothing about language models in general. "
    "No history; 30 steps per episode; eight streams."
)

STUDIES = {
    study.name: study
    for study in (
        Study(
            "glam",
            "Does a policy that was pretrained on text about a world act better in it than the same network "
            "without pretraining, and does training improve it further?",
            "Flan-T5 of 780 million weights reaches about 80 % success within 250,000 steps on a mix of "
            "BabyAI tasks; the same network without pretraining, and one without language, do not (Carta et "
            "al., ICML 2023).",
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
            "Does a penalty for the divergence from a frozen model's proposals save steps?",
            "On GoToRedBall GFlan-Prior reaches GFlan's return in a fraction of the steps (Yan et al., ICLR "
            "2025, figures 4, 5, 7 and 9).",
            _OURS,
            gflan_prior,
            lm_for="dqn-prior",  # it proposes, as there; the model that is trained is always ours
            seeds=5,
        ),
    )
}
