"""Evaluates a trained agent, optionally with another model, other proposals, or other tasks.

Proposals and Q are separate, so a Q that was trained with one model's proposals can choose among
another's (Yan et al., ICLR 2025, table 2). Nothing is learnt here, and the run's folder is only read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hunch.core import EvidenceLevel, UsageError
from hunch.lm.tally import Tally
from hunch.methods import reads_raw
from hunch.ranges import PositiveInt, check_settings
from hunch.rl.episodes import evaluate
from hunch.rl.success import Estimate, over_episodes
from hunch.runs.checkpoints import Checkpoint, file_of
from hunch.runs.config import RunConfig, Seed
from hunch.runs.data import options_with_data
from hunch.runs.differences import differences, leaves
from hunch.runs.evaluations import EVALUATION_SEED, Players
from hunch.runs.files import read_json, write_json, writing
from hunch.runs.first_answers import first_answers
from hunch.runs.loading import load_agent, refill
from hunch.runs.models import Asked, refuse_known_games
from hunch.runs.resolve import resolve
from hunch.runs.result import ledger, mean_return
from hunch.runs.stored import read_run

FILE = "evaluation.json"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Settings of an evaluation: a trained agent, its model, and the episodes.

    Attributes:
        run: Folder of the run, finished or not.
        lm: Model to use instead of the run's model; empty for the latter.
        options: Changed options of the method, among its ``changeable`` ones.
        env_options: Changed options of the environment, for other tasks.
        episodes: Number of episodes.
        seed: Seed of the episodes and of the agent. Default: the run's seed, which gives the episodes
            of the run's own evaluations.
        checkpoint: ``last``, ``best`` (of the best evaluation), or a step whose checkpoint was kept.
    """

    run: Path
    lm: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)
    episodes: PositiveInt = 100
    seed: Seed | None = None
    checkpoint: Checkpoint = "last"


@dataclass(frozen=True, kw_only=True)
class Score:
    """The result of an evaluation.

    Attributes:
        tasks: ``seen`` if the environment has the same options as in the run, otherwise ``unseen``.
        episodes: Number of episodes.
        success: Success rate with its Wilson interval over episodes.
        episode_return: Mean return.
        usage: Usage of the language models, by the names of :class:`hunch.lm.Usage`.
        seconds: Wall time in seconds.
        evidence: Weakest evidence level of the models in a role and of those that the environment asks.
        figures: Metrics that the agent reports on the episodes, by name, such as a KL divergence.
        first_answers: How each role asks its model, and what the model said first, in words.
    """

    tasks: Literal["seen", "unseen"]
    episodes: int
    success: Estimate
    episode_return: float
    usage: dict[str, float]
    seconds: float
    evidence: EvidenceLevel | None
    figures: dict[str, float] = field(default_factory=dict)
    first_answers: tuple[str, ...] = ()

    def __str__(self) -> str:
        n = self.episodes
        figures = "".join(f", {name} {value:.3g}" for name, value in self.figures.items())
        return (
            f"success {self.success} on {n:,} episode{'s' * (n != 1)} of {self.tasks} tasks, "
            f"return {self.episode_return:.2f}{figures}; {ledger(self.usage)}; {self.seconds:.0f} s; "
            f"evidence level {self.evidence or 'none'}"
        )


def evaluate_run(trial: Trial, out: str | Path | None = None) -> Score:
    """Play episodes with the agent of a run, without learning.

    Args:
        trial: The evaluation.
        out: Folder for ``evaluation.json``; if it already holds this evaluation, the result is read from it.

    Raises:
        UsageError: if the method has no such option or role, the model cannot fill it, the environment has no
            such option, the checkpoint does not fit, a model was trained on the games to play, or ``out``
            holds something else.
        HunchError: if the folder holds no run, or no checkpoint yet.
    """
    check_settings(trial)
    trained = read_run(trial.run)
    before = options_with_data(trained)
    config = replace(
        refill(trained, trial.lm, trial.options),
        env_options={**before, **trial.env_options},
        seed=trained.seed if trial.seed is None else trial.seed,
    )
    question = _question(trial, trained, config)
    known = _stored(Path(out), trial.run, question) if out is not None else None
    if known is not None:
        return known
    score = _play(trial, config, "seen" if config.env_options == before else "unseen")
    if out is not None:
        write_json(Path(out) / FILE, {"run": str(trial.run), "evaluation": question, **asdict(score)})
    return score


def _play(trial: Trial, config: RunConfig, where: Literal["seen", "unseen"]) -> Score:
    envs = resolve(config).environments(min(config.streams, trial.episodes))
    agent, _ = load_agent(trial.run, trial.lm, trial.options, checkpoint=trial.checkpoint)
    asked = Asked(agent, {}, envs)
    refuse_known_games(asked)
    tally = Tally(asked)
    began = time.monotonic()
    players = Players(agent)
    played = evaluate(
        players,
        envs,
        trial.episodes,
        config.seed + EVALUATION_SEED,
        episodes_per_player=config.episodes_per_player,
        lifetime=config.lifetime,
        task_seed=config.task_seed,
        raw=reads_raw(agent),
    )
    return Score(
        tasks=where,
        episodes=len(played),
        success=over_episodes([episode.success for episode in played]),
        episode_return=mean_return(played).get("return", float("nan")),
        usage=tally.total(),
        seconds=round(time.monotonic() - began, 3),
        evidence=asked.evidence,
        figures=players.figures(),
        first_answers=tuple(map(str, first_answers(asked))),
    )


def _question(trial: Trial, trained: RunConfig, config: RunConfig) -> dict[str, Any]:
    """Return everything that determines the result."""
    checkpoint = Path(trial.run) / file_of(trial.checkpoint)
    digest = hashlib.sha256(checkpoint.read_bytes()).hexdigest()[:16] if checkpoint.exists() else ""
    now = config.settings()
    changed = {name: now[name] for name in ("lm", "options", "env_options", "seed")}
    return {"of": trained.settings(), "checkpoint": digest, "episodes": trial.episodes, "with": changed}


def _stored(out: Path, run: Path, question: dict[str, Any]) -> Score | None:
    """Read the score of the same evaluation; None if the folder is free."""
    inside = Path(run).resolve() in (out.resolve(), *out.resolve().parents)
    if inside or (out / "config.json").exists():
        raise UsageError(
            f"{out} is the folder of a run, which an evaluation must not change: choose another --out."
        )
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    record = read_json(out / FILE)
    if record is None:
        return None
    there = record.get("evaluation")
    if not isinstance(there, dict):
        raise UsageError(f"{out / FILE} is not an evaluation: choose another --out.")
    if not question["checkpoint"]:  # an evaluation outlives the agent, as in the archive of a study
        question = {**question, "checkpoint": there.get("checkpoint", "")}
    if there != question:
        what = differences(leaves(there), leaves(question))
        raise UsageError(f"{out} holds another evaluation ({what}): choose another --out.")
    figures = {name: record[name] for name in Score.__dataclass_fields__ if name in record}
    figures["first_answers"] = tuple(figures.get("first_answers", ()))
    return Score(**{**figures, "success": Estimate(**record["success"])})
