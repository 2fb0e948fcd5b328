"""What a sentence encoder as the action prior knows beyond equality of words.

The encoder and three lexical controls (:mod:`hunch_studies.encoders.words`) are used by the same rule, the
similarity prior, each with its best temperature on separate pools of games. Everything is paired by pool: the
same games, episodes and seeds for each model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hunch.audition.prior import BEDS
from hunch.core import FloatArray, HunchError, State
from hunch.envs import make
from hunch.lm import load
from hunch.lm.backends.bag_of_words import words
from hunch.methods.prior.zero_shot import ZeroShot
from hunch.rl.episodes import evaluate, play
from hunch.rl.statistics import Estimate, over_pairs
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.kinds import PriorConfig
from hunch.roles.prior.similarity import SimilarityPrior
from hunch.runs.compare import Arm, Job, compare
from hunch.runs.files import write_atomically
from hunch.runs.processes import processors
from hunch_studies.planners import table as table_of
from hunch_studies.priors import PICK, dqn_prior
from hunch_studies.study import Part, Scale, Study, kept

ENV = "hunch/Household-Pick-v0"
ENCODER = "minilm"
CONTROLS = ("words", "tfidf", "random-words")
MODELS = (ENCODER, *CONTROLS)
PLACEMENTS = ("typical", "uniform")
TUNING = tuple(range(100, 104))
REPORTED = tuple(range(20, 40))
"""Pools on which nothing was tuned."""
LEARNT = tuple(range(20, 60))
"""Pools that DQN-Prior plays: enough of them to show a lead of 0.1."""
ALL_WORDS = "words, for Q as well"
"""The strongest lexical control: the bag of words is the prior and the encoder of Q."""
LEARNERS = (ENCODER, "words", ALL_WORDS)
BLANK = ", blank prompt"
"""Ends the name of a model that is not told the task."""
HOUSEHOLD = next(bed for bed in BEDS if bed.env == ENV)
TEMPERATURES = (0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
EPISODES = {True: 96, False: 192}
"""Episodes of a zero-shot evaluation, for tuning and for the report."""


@dataclass(frozen=True)
class Size:
    """The size of the study."""

    tuning: Sequence[int]
    pools: Sequence[int]
    learnt: Sequence[int]
    episodes: dict[bool, int]
    steps: int

    @classmethod
    def of(cls, scale: Scale) -> Size:
        """Return the full size, or a minimal one for the smoke run."""
        if not scale.smoke:
            return cls(TUNING, REPORTED, LEARNT, EPISODES, 9_000)
        return cls(TUNING[:1], REPORTED[:2], LEARNT[:2], {True: 4, False: 4}, 200)


FEW = Size(TUNING[:1], REPORTED[:8], (), {True: 96, False: 96}, 0)
"""The size for other encoders, which are slow: one pool for tuning, eight to report."""


@dataclass(frozen=True)
class Shot:
    """A zero-shot evaluation: a ~ p(a|s) at a temperature, on a pool of eight games."""

    model: str
    placement: str
    pool: int
    temperature: float
    episodes: int


class WithoutTask(SimilarityPrior):
    """The control: the same prior with the audition's blank prompt, which leaves out the task."""

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return super()._compute([aimless(state, HOUSEHOLD.manual) for state in states])


def play_shot(*key: Any) -> dict[str, float]:
    """Return the success rate of an evaluation."""
    shot = Shot(*key)
    model = shot.model.removesuffix(BLANK)
    kind = SimilarityPrior if model == shot.model else WithoutTask
    agent = ZeroShot(kind(_table(model), temperature=shot.temperature))
    envs = [make(ENV, **PICK, pool_seed=shot.pool, placement=shot.placement) for _ in range(16)]
    played = evaluate(agent.player, envs, shot.episodes, seed=shot.pool)
    return {"success": float(np.mean([episode.success for episode in played]))}


@cache
def _table(model: str) -> TextTable:
    return TextTable(load(model))


def play_shots(shots: Sequence[Shot], file: Path) -> dict[Shot, float]:
    """Return success rates of evaluations, each played once, on one thread."""
    rows = kept(file, map(astuple, shots), play_shot, workers=processors())
    return {shot: row["success"] for shot, row in zip(shots, rows, strict=True)}


Way = tuple[str, str]
"""A model, and a placement."""
Found = dict[Way, dict[int, float]]
"""Success by model and placement, then by pool."""
WAYS: tuple[Way, ...] = tuple((model, placement) for placement in PLACEMENTS for model in MODELS)


def chosen(size: Size, file: Path, ways: Sequence[Way] = WAYS) -> dict[Way, float]:
    """Return the temperature with the highest success on the pools for tuning, the lowest among equals."""
    shots = {
        (way, t): [Shot(*way, pool, t, size.episodes[True]) for pool in size.tuning]
        for way in ways
        for t in TEMPERATURES
    }
    success = play_shots([shot for own in shots.values() for shot in own], file)
    mean = {key: sum(success[shot] for shot in own) for key, own in shots.items()}
    return {way: max(TEMPERATURES, key=lambda t: mean[way, t]) for way in ways}


def by_pool(size: Size, best: dict[Way, float], file: Path) -> Found:
    """Return the zero-shot success on the pools to report."""
    shots = {way: [Shot(*way, pool, best[way], size.episodes[False]) for pool in size.pools] for way in best}
    success = play_shots([shot for own in shots.values() for shot in own], file)
    return {way: {shot.pool: success[shot] for shot in own} for way, own in shots.items()}


def other_encoders(lms: Sequence[str], scale: Scale, folder: Path) -> str:
    """Return the zero-shot success of other encoders beside words and their blank prompts, in Markdown.

    Each has its best temperature on the pools for tuning. The leads are in ``leads.json``.
    """
    size = Size.of(scale) if scale.smoke else FEW
    folder.mkdir(parents=True, exist_ok=True)
    ways = [(model, "typical") for lm in lms for model in (lm, f"{lm}{BLANK}")]
    ways.append(("words", "typical"))
    best = chosen(size, folder / "zero_shot.jsonl", ways)
    found = by_pool(size, best, folder / "zero_shot.jsonl")
    lines = []
    leads = {}
    for (model, placement), scores in found.items():
        temperature = best[model, placement]
        cells = [f"`{model}`", temperature, len(scores), f"{np.mean(list(scores.values())):.2f}"]
        for over in ("words", f"{model}{BLANK}"):
            if model not in lms:  # a control
                cells.append("")
                continue
            ahead = lead(scores, found[over, placement])
            leads[f"{model} over {over}"] = [ahead.value, ahead.low, ahead.high]
            cells.append(ahead.short())
        lines.append(cells)
    write_atomically(folder / "leads.json", json.dumps(leads, indent=1).encode())
    head = "model | temperature | pools | success, mean | over words | over its blank prompt"
    return f"{table_of(head, lines)}\n\nSuccess by pool:\n\n{pools_table(found)}"


def report(folder: Path, scale: Scale) -> str:
    """Execute the rest of the study, and return the results in Markdown; ``found.md`` holds those so far."""
    size = Size.of(scale)
    folder.mkdir(parents=True, exist_ok=True)
    best = chosen(size, folder / "zero_shot.jsonl")
    best[ALL_WORDS, "typical"] = best["words", "typical"]
    alone = by_pool(size, best, folder / "zero_shot.jsonl")
    text = _written(folder, size, best, alone, {})
    for learnt in learn(folder, size, best):
        text = _written(folder, size, best, alone, learnt)
    return text


def _written(folder: Path, size: Size, best: dict[Way, float], alone: Found, learnt: Found) -> str:
    """Write the results so far, as text and as numbers."""
    told = f"Temperatures were chosen on pools {_span(size.tuning)} by zero-shot success."
    parts = ["#### Zero-shot", told, table(alone, best), "Success by pool:", pools_table(alone)]
    if learnt:
        parts += ["#### DQN-Prior", table(learnt, best), "Success by pool:", pools_table(learnt)]
    found = {"zero-shot": alone, "dqn-prior": learnt}
    plain = {name: {", ".join(way): own for way, own in each.items()} for name, each in found.items()}
    write_atomically(folder / "table.json", (json.dumps(plain, indent=1) + "\n").encode())
    text = "\n\n".join(parts)
    write_atomically(folder / "found.md", text.encode())
    return text


def learn(folder: Path, size: Size, best: dict[Way, float]) -> Iterator[Found]:
    """Train DQN-Prior with each model, one seed per pool; yield all results after each pool."""
    found: Found = {}
    for pool in size.learnt:
        ways = [(model, "typical") for model in LEARNERS]
        todo = {way: _job(folder, *way, pool, best[way], size.steps) for way in ways}
        for way, outcome in zip(todo, compare(list(todo.values())), strict=True):
            if outcome.result is None:
                raise HunchError(f"{outcome.job.arm.label} failed: {outcome.reason}")
            found.setdefault(way, {})[pool] = outcome.result.success.value
        yield found


def _job(folder: Path, model: str, placement: str, pool: int, temperature: float, steps: int) -> Job:
    place: dict[str, Any] = {**PICK, "pool_seed": pool, "placement": placement}
    prior = PriorConfig(way="similarity", temperature=temperature)
    lm, encoder = ("words", "words") if model == ALL_WORDS else (model, ENCODER)
    label = f"{model}, {placement}, pool {pool}"
    arm: Arm = dqn_prior(label, ENV, lm, steps, place, prior=prior, encoder=encoder)
    return Job(arm, 0, folder / arm.folder)


def table(found: Found, temperatures: dict[Way, float]) -> str:
    """Return the success of each model over pools, the encoder's lead over the others, and the verdicts."""
    heads = ["placement", "model", "evidence", "temperature", "pools", "success, mean"]
    heads.append(f"lead of {ENCODER}, paired")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for (model, placement), scores in found.items():
        success = f"{np.mean(list(scores.values())):.2f}"
        level = "L3" if model == ENCODER else "L0"
        cells = [placement, f"`{model}`", level, temperatures[model, placement], len(scores), success]
        cells.append("" if model == ENCODER else lead(found.get((ENCODER, placement), {}), scores))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    verdicts = [f"- {line}." for line in verdict(found)]
    return "\n".join([*lines, *(["", *verdicts] if verdicts else [])])


def verdict(found: Found) -> list[str]:
    """Say whether the encoder is shown to be ahead of each control: the interval over pools is above 0."""
    lines = []
    for placement in PLACEMENTS:
        own = found.get((ENCODER, placement), {})
        leads = {
            model: lead(own, scores)
            for (model, where), scores in found.items()
            if where == placement and model != ENCODER
        }
        said = [
            f"over {model}: {'shown' if by.low > 0 else 'not shown'}"
            for model, by in leads.items()
            if np.isfinite(by.low)
        ]
        lines += [f"{ENCODER}, {placement} (L3) {'; '.join(said)}"] if said else []
    return lines + _of_places(found)


def _of_places(found: Found) -> list[str]:
    """Return how much of the encoder's lead disappears with uniform placement: its knowledge of places."""
    typical, uniform = (found.get((ENCODER, placement), {}) for placement in PLACEMENTS)
    gone = []
    for model in CONTROLS:
        at_home, anywhere = (found.get((model, placement), {}) for placement in PLACEMENTS)
        pools = [pool for pool in at_home if all(pool in own for own in (typical, uniform, anywhere))]
        lost = [typical[p] - at_home[p] - uniform[p] + anywhere[p] for p in pools]
        gone += [f"{over_pairs(lost)} of the lead over {model}"] if len(lost) > 1 else []
    return [f"{ENCODER}: with uniform placement goes {', '.join(gone)}"] if gone else []


def lead(scores: dict[int, float], others: dict[int, float]) -> Estimate:
    """Return the mean lead of scores over others on common pools, with Student's 95 % interval."""
    return over_pairs([scores[pool] - others[pool] for pool in others if pool in scores])


def pools_table(found: Found) -> str:
    """Return the success of each model on each pool."""
    pools = sorted({pool for scores in found.values() for pool in scores})
    lines = ["| placement | model | " + " | ".join(map(str, pools)) + " |", "|---" * (len(pools) + 2) + "|"]
    for (model, placement), scores in found.items():
        cells = [f"{scores[pool]:.2f}" if pool in scores else "" for pool in pools]
        lines.append(f"| {placement} | `{model}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _span(pools: Sequence[int]) -> str:
    return f"{pools[0]} to {pools[-1]}" if len(pools) > 1 else str(pools[0])


def documents(pools: Iterable[int] = range(1000, 1010), episodes: int = 20) -> list[str]:
    """Return the different texts of random walks through generated games of all kinds."""
    found = dict[str, None]()
    for pool in pools:
        env, rng = make("hunch/Household-v0", pool_seed=pool), np.random.default_rng(pool)
        walk = partial(_any, rng)
        for t in chain.from_iterable(play(env, walk, seed) for seed in range(episodes)):
            found |= dict.fromkeys((t.state.task, *t.state.lines(), *t.state.options))
    return list(found)


def _any(rng: np.random.Generator, state: State) -> str:
    return str(rng.choice(state.options))


def document_frequencies(texts: Sequence[str]) -> dict[str, Any]:
    """Return the number of texts, and the number of texts with each word, for the model ``tfidf``."""
    counts: dict[str, int] = {}
    for text in texts:
        for word in set(words(text)):
            counts[word] = counts.get(word, 0) + 1
    return {"documents": len(texts), "holding": dict(sorted(counts.items()))}


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = [Part("Household-Pick", (), beside=lambda folder: report(folder, scale))]
    if scale.lms:
        others = partial(other_encoders, scale.lms, scale)
        parts.append(Part("Other encoders, zero-shot", (), beside=others))
    return parts


STUDIES = {
    "priors-knowledge": Study(
        "priors-knowledge",
        "What does a sentence encoder know, as the action prior, beyond which words are equal?",
        "The paper has no such control.",
        "One seed per pool, so the variation is that of the games. The similarity prior and the games, in "
        "ALFWorld's words, are ours. Q uses embeddings of `minilm` unless an arm says otherwise.",
        _parts,
        lm_for="zero-shot",
        seeds=1,
    )
}
