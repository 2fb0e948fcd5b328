"""Study of "Reward Design with Language Models" (Kwon et al., ICLR 2023): the accuracy that a judge needs,
and that of GPT-3's recorded verdicts.

    hunch study kwon
    hunch study kwon-recorded --data DIR

``DIR`` is a clone of github.com/minaek/reward_design_with_llms, which has no licence: bring your own. Its
pickles are read without running anything that is in them.
"""

from __future__ import annotations

import ast
import io
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hunch.core import UsageError
from hunch.envs.games import CONCEPTS, GAMES, JOINT, Concept, Game, Rule, good_outcomes, wanted
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.kwon import KwonConfig
from hunch.methods.reward.rewarded import RewardedLearnerConfig
from hunch.rl.statistics import Estimate, over_episodes, over_seeds
from hunch.roles.reward.judge import JudgeConfig
from hunch.runs.compare import Arm, jobs
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.runs.stored import finished
from hunch_studies.cost import COST, cost, spent
from hunch_studies.kwon_reader import options_named
from hunch_studies.study import Part, Scale, Study, model_of

ERRORS = (0.0, 0.1, 0.2, 0.3, 0.4)
LASTING = (0.1, 0.3)
"""Error rates at which the same outcome is always judged in the same way."""
SUPERVISED = "hunch_studies.laboratory.supervised"
WORDED = "hunch_studies.laboratory.worded:Worded"
"""The lexical control of a language model."""
PLACES: Mapping[str, tuple[str, Mapping[str, Any], int]] = {
    "Matrix games": ("hunch/MatrixGame-v0", {}, 8_000),
    "Ultimatum, share of the money": ("hunch/Ultimatum-v0", {"rule": "percentage", "threshold": 0.3}, 5_000),
}
TRIED = 200
"""Episodes with which a trained policy is tried."""


def arms(env: str, env_options: Mapping[str, Any], steps: int, lms: Sequence[str] = ()) -> tuple[Arm, ...]:
    """The true reward, judges of several error rates, and judges that know nothing."""
    table = QLearningConfig(epsilon=(1.0, 0.05, steps // 2))

    def arm(label: str, lm: str = "", **judge: Any) -> Arm:
        options = KwonConfig(table=table, judge=JudgeConfig(**judge)) if lm else table
        return Arm(
            label,
            RunConfig(
                method="kwon" if lm else "q-learning",
                env=env,
                env_options=dict(env_options),
                lm=lm,
                steps=steps,
                eval_every=steps,
                eval_episodes=TRIED,
                options=options,
            ),
        )

    def supervised(label: str, reward: str) -> Arm:
        run = replace(arm(label).config, method="rewarded")
        return Arm(label, replace(run, options=RewardedLearnerConfig(reward=reward, table=table)))

    def judged_by(lm: str) -> tuple[Arm, Arm]:
        """Return a language model as judge, and the control: its blank prompt, without the objective."""
        name = model_of(lm)
        return arm(name, lm), arm(f"{name}, blank prompt", lm, objective="")

    rule = "scripted:judge"
    return (
        arm("true reward"),
        *(arm(f"judge, error {e}", f"{rule}?error={e}", temperature=1.0) for e in ERRORS),
        *(arm(f"judge, lasting error {e}", f"{rule}?error={e}") for e in LASTING),
        arm("judge, blank prompt", rule, objective=""),
        arm("uninformed judge", "uniform", temperature=1.0),
        *(supervised(f"supervised, {n} labels", f"{SUPERVISED}:Labelled{n}") for n in (10, 30)),
        supervised("judge by words", WORDED),
        *(judge for lm in lms for judge in judged_by(lm)),
    )


def alignment(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return how often labels, and policies trained on them, agree with the objective, in Markdown."""
    lines = [
        f"| arm | evidence | labels right | policy right | {COST} |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in listed:
        found = [(job, result) for job in jobs([arm], seeds, folder) if (result := finished(job.folder))]
        labels = [labels_right(job.folder) for job, _ in found]
        policies = [float(np.mean([e.success for e in result.evaluations])) for _, result in found]
        told = "" if np.isnan(labels).any() else str(over_seeds(labels))
        cells = (arm.label, found[0][1].evidence or "-", told, over_seeds(policies))
        lines.append(f"| {' | '.join(map(str, cells))} | {cost(spent(result) for _, result in found)} |")
    return "\n".join(lines)


def labels_right(run: Path) -> float:
    """Return the share of a run's verdicts that agree with the environment; nan without a judge."""
    told = [line["judge_agrees"] for line in read_lines(run / "metrics.jsonl") if "judge_agrees" in line]
    return float(np.mean(told)) if told else float("nan")


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for title, (env, options, steps) in PLACES.items():
        listed = arms(env, options, scale.steps(steps), scale.lms)
        parts.append(Part(title, listed, measure=alignment))
    return parts


# ---- recorded verdicts ------------------------------------------------------------------------------------


class _Plain(pickle.Unpickler):
    """Reads lists, tuples, texts and numbers, and refuses whatever would run something."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds {module}.{name}")


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Prompts and answers of a recorded file.

    Raises:
        UsageError: if the file holds something else.
    """
    try:
        pairs = [(prompt, answer) for prompt, answer in _Plain(io.BytesIO(path.read_bytes())).load()]
    except (
        OSError,
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
    ) as error:
        raise UsageError(f"{path} holds no prompts with answers: {error}.") from error
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise UsageError(f"{path} holds no prompts with answers: some are not text.")
    return pairs


@dataclass(frozen=True)
class Verdicts:
    """Recorded verdicts on one objective.

    Attributes:
        name: Domain and objective.
        right: True if each label is right, recomputed by our rules.
        unread: Answers that could not be read; they count as wrong.
        as_copied: True if the options are those that the authors copied from the answer by hand; None if
            the clone does not say.
    """

    name: str
    right: tuple[bool, ...]
    unread: int
    as_copied: bool | None = None

    @property
    def share(self) -> Estimate:
        """Share of right labels."""
        return over_episodes(self.right)


def recorded(folder: str | Path) -> list[Verdicts]:
    """Score the recorded verdicts of a clone.

    Raises:
        UsageError: if there are none, or a file cannot be read.
    """
    root = Path(folder).expanduser()
    found = [*_matrix(root), *_ultimatum(root)]
    if not found:
        raise UsageError(f"{folder} is not a clone of reward_design_with_llms: it has no recorded answers.")
    return found


def _matrix(root: Path) -> list[Verdicts]:
    found, copied = [], copied_by_hand(root)
    for concept in CONCEPTS:
        for game in GAMES:
            path = root / "matrix" / "zs_lm_responses" / "regular" / f"{concept}_{game}.pkl"
            if path.exists():
                named = [options_named(answer) for _, answer in read_pairs(path)]
                right = [label for own in named for label in _labels(own, game, concept)]
                own = copied.get((game, concept))
                alike = None if own is None else all(options == own for options in named)
                found.append(Verdicts(f"{game}, {concept}", tuple(right), named.count(None), alike))
    return found


def copied_by_hand(root: Path) -> dict[tuple[str, str], set[int]]:
    """The options that the authors copied from the answers, by game and concept; the file is never run.

    Raises:
        UsageError: if the file cannot be read.
    """
    path = root / "matrix" / "matrix.py"
    try:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "gpt3_rewards":
                return {key: set(options) for key, options in ast.literal_eval(node.value).items()}
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"{path} holds no labels: {error}.") from error
    return {}


def _labels(named: set[int] | None, game: Game, concept: Concept) -> list[bool]:
    """Return whether each outcome is labelled as it should be."""
    good = good_outcomes(GAMES[game], concept)
    return [named is not None and (i in named) == (i in good) for i in range(len(JOINT))]


_SPLITS: Mapping[str, Rule] = {
    "low_high_percentage": "percentage",
    "low_high_payoff": "payoff",
    "inequity_aversion": "equality",
}


def _ultimatum(root: Path) -> list[Verdicts]:
    found = []
    for path in sorted((root / "ultimatum" / "lm_responses").glob("*.pkl")):
        named = re.fullmatch(r"(\w+)_([\d.]+|None)", path.stem)
        if named is None or named[1] not in _SPLITS:
            continue  # labels for training, copied from these by hand
        threshold = 0.0 if named[2] == "None" else float(named[2])
        right, unread = [], 0
        for prompt, answer in read_pairs(path):
            money = [float(amount) for amount in re.findall(r"\$([\d.]*\d)", prompt.splitlines()[-1])]
            verdict = re.search(r"\b(yes|no)\b", answer.lower())
            unread += verdict is None or len(money) < 2
            refused = verdict is not None and verdict[1] == "yes"  # yes: the split is to be punished
            truth = len(money) >= 2 and wanted(_SPLITS[named[1]], threshold, *money[:2]) == "reject"
            right.append(verdict is not None and len(money) >= 2 and refused == truth)
        found.append(Verdicts(f"Ultimatum, {path.stem}", tuple(right), unread))
    return found


def markdown(found: Sequence[Verdicts]) -> str:
    """The verdicts as a table."""
    lines = ["| objective | labels | right | all right | unread | read as by hand |", "|---" * 6 + "|"]
    told = {True: "yes", False: "no", None: ""}
    for v in found:
        cells = (v.name, len(v.right), v.share, told[all(v.right)], v.unread, told[v.as_copied])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    known = [v.as_copied for v in found if v.as_copied is not None]
    alike = f"{sum(known)} of {len(known)} answers are read as the authors read them by hand."
    return "\n".join([*lines, "", alike] if known else lines)


def _recorded_parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Recorded verdicts", (), beside=lambda folder: markdown(recorded(scale.data)))]


STUDIES = {
    "kwon": Study(
        "kwon",
        "How good must a judge be, for a policy trained on its verdicts to do what the user wants?",
        "Policies trained on GPT-3's verdicts agree with the user's objective more often than those "
        "trained on a supervised reward model with as many examples (Kwon et al., ICLR 2023).",
        "The judge is a rule with a dial for its error (L0), and says nothing about language models. The "
        "learner is a table, not DQN on numbers. All sixteen matrix games are one environment. The third "
        "domain of the paper, negotiation, is left out. Lasting errors are one draw, the same in all seeds.",
        _parts,
        lm_for="kwon",
        seeds=5,
    ),
    "kwon-recorded": Study(
        "kwon-recorded",
        "How often are the verdicts right that GPT-3 gave in Kwon et al.?",
        "The authors copied labels from the answers by hand.",
        "Recorded answers (L2) of text-davinci-002 of 2022, read by a rule: the last verdict on each option, "
        "or the first yes or no. Labels are recomputed by our rules.",
        _recorded_parts,
        recorded="a clone of github.com/minaek/reward_design_with_llms",
    ),
}
