"""Studies of methods whose model writes recipes, all from the writer of :mod:`hunch_studies.rlhf`:
losses on recorded texts, four algorithms with gold as the reward, and few good demonstrations against many.

    hunch study offline-rlhf
    hunch study rl4lms
    hunch study lima
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hunch.methods.tune.offline_rlhf import OfflineRLHFConfig
from hunch.methods.tune.ppo_text import PPOTextConfig
from hunch.methods.tune.sft import SFTConfig
from hunch.rl import dataset
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.record import collect, parse_mix
from hunch_contrib.tune.a2c_text import A2CTextConfig
from hunch_contrib.tune.nlpo import NLPOConfig
from hunch_contrib.tune.trpo_text import TRPOTextConfig
from hunch_studies.rlhf import ENV, SCRATCH, judged, known_golds, write_well
from hunch_studies.study import Part, Scale, Study

TEXTS, GROUP = 4_000, 8
"""Recorded texts of the writer, and how many of them answer the same request."""
UPDATES = 300
"""Updates on recorded texts."""
LEVELED, LEVELS = "writer-levels", "0 1 2 3 4"
"""The writer again, with words for the levels of a conditioned training, which begins with it."""
NATS = 4.0
"""KL from the writer, per text, at which PPO and NLPO are compared: what PPO has with a fixed weight."""


def record(data: Path, scale: Scale) -> None:
    """Train the writer, and record its texts with gold rewards, unless they are there."""
    updates = max(20, round(1_000 * scale.share))
    write_well(data, updates)
    write_well(data, updates, LEVELED, more_words=LEVELS)
    if not (out := data / "texts").exists():
        texts = max(1, round(TEXTS / GROUP * scale.share)) * GROUP
        mix = parse_mix(f"write:hf:{data / 'writer'}")
        dataset.save(collect(ENV, {}, mix, texts, group=GROUP), out)


def from_records(data: Path, scale: Scale, method: str, lm: str = "") -> RunConfig:
    """Return a run on the recorded texts, which evaluates at its end only."""
    steps = max(3, round(UPDATES * scale.share))
    run = RunConfig(method=method, env=ENV, lm=lm or f"hf:{data / 'writer'}", envs=1, steps=steps)
    return replace(run, data=str(data / "texts"), eval_every=steps, eval_episodes=64)


def offline(data: Path, scale: Scale) -> tuple[Arm, ...]:
    """The losses, and two of them on rewards of other texts."""

    def arm(loss: Any, lm: str = "", label: str = "", **options: Any) -> Arm:
        run = from_records(data, scale, "offline-rlhf", lm)
        return Arm(label or loss, replace(run, options=OfflineRLHFConfig(loss=loss, **options)))

    leveled = f"hf:{data / LEVELED}"
    return (
        *(arm(loss) for loss in ("likelihood", "filter", "weighted", "dpo", "kto")),
        arm("filter", label="filter, shuffled rewards", shuffle=True),
        arm("dpo", label="dpo, shuffled rewards", shuffle=True),
        arm("likelihood", leveled, "likelihood, writer with levels"),
        arm("conditioned", leveled, "conditioned, highest level"),
        arm("conditioned", leveled, "conditioned, lowest level", request=0),
    )


def algorithms(data: Path, scale: Scale) -> tuple[Arm, ...]:
    """The four algorithms with as many texts, and PPO on the rewards of other texts."""
    steps = 64 * max(3, round(48 * scale.share))

    def arm(label: str, method: str, options: Any) -> Arm:
        run = RunConfig(method=method, env=ENV, lm=f"hf:{data / 'writer'}", envs=64, steps=steps)
        return Arm(label, replace(run, eval_every=steps, eval_episodes=256, options=options))

    return (
        arm("PPO", "ppo-text", PPOTextConfig()),
        arm("NLPO", "nlpo", NLPOConfig()),
        arm("PPO, KL aimed at", "ppo-text", PPOTextConfig(kl_aim=NATS)),
        arm("NLPO, KL aimed at", "nlpo", NLPOConfig(kl_aim=NATS)),
        arm("A2C", "a2c-text", A2CTextConfig()),
        arm("TRPO", "trpo-text", TRPOTextConfig()),
        arm("PPO, shuffled rewards", "ppo-text", PPOTextConfig(shuffle=True)),
    )


def demonstrations(data: Path, scale: Scale) -> tuple[Arm, ...]:
    """The best of the recorded texts, and as many or ten times as many at random, for new models."""
    few = max(4, round(200 * scale.share))

    def arm(label: str, **options: Any) -> Arm:
        return Arm(label, replace(from_records(data, scale, "sft", SCRATCH), options=SFTConfig(**options)))

    return (
        arm("200 curated", curated=few),
        arm("200 at random", drawn=few),
        arm("2,000 at random", drawn=10 * few),
        arm("all 4,000"),
    )


def _study(name: str, make: Callable[[Path, Scale], tuple[Arm, ...]], question: str, published: str) -> Study:
    def parts(scale: Scale, data: Path) -> list[Part]:
        listed = make(data, scale)

        def told(folder: Path) -> str:
            table = judged(listed, scale.seeds, folder, episodes=scale.episodes(400))
            return f"{known_golds(data / 'writer')}\n\n{table}"

        return [Part("Recipes", listed, beside=told, prepare=partial(record, data, scale), apart=True)]

    return Study(name, question, published, _OURS, parts, seeds=5)


_OURS = (
    "The writer has 100,000 weights and is trained here (L1); gold is a formula, and all hyper-parameters "
    "are ours."
)
STUDIES = {
    own.name: own
    for own in (
        _study(
            "offline-rlhf",
            offline,
            "Which losses on recorded texts and their rewards beat the likelihood of all texts?",
            "Hu et al. (2023) find filtering, weighting and conditioning on rewards more stable than PPO, "
            "and conditioning the best. DPO (Rafailov et al., NeurIPS 2023) needs no reward model.",
        ),
        _study(
            "rl4lms",
            algorithms,
            "Which of PPO, NLPO, A2C and TRPO gains most from as many texts?",
            "NLPO is ahead of PPO in most tasks of GRUE (Ramamurthy et al., ICLR 2023, table 2).",
        ),
        _study(
            "lima",
            demonstrations,
            "Are few good demonstrations worth more than many at random?",
            "1,000 curated examples are enough to align a model of 65 billion weights (Zhou et al., NeurIPS "
            "2023).",
        ),
    )
}
