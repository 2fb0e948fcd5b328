"""A small network as the guide of a search for proofs: it reads features of formulas.

A tactic applies to a formula (the conclusion, or a hypothesis) with two parts. The features are the
connectives, and how each part relates to the goal: whether the part is a hypothesis or the conclusion, and
whether hypotheses imply or need the part; and how near each subgoal is to a proof. They do not depend on
names of atoms or on the order of hypotheses. Each tactic has a vector; the mean over the goal's tactics
is an input to each tactic's score, and gives the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hunch.core import FloatArray, Saved
from hunch.envs.proofs.logic import FALSE, Formula, Goal
from hunch.envs.proofs.tactics import Tactic, tactics

_NAMES: Final = ("intro", "split", "left", "right", "cases", "use")
_OPS: Final = ("->", "&", "|", "false")


class Lesson(NamedTuple):
    """A training example about a goal: the index of a tactic, -1 for none, and the value."""

    goal: Goal
    tactic: int
    value: float


# ---- features ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def _alone(formula: Formula) -> tuple[float, ...]:
    """What a formula is: its connective, whether it is a negation, and its size."""
    negation = formula.op == "->" and formula.parts[1] == FALSE
    return (*(float(formula.op == op) for op in _OPS), float(negation), formula.size / 4)


@lru_cache(maxsize=1 << 16)
def _ends(formula: Formula) -> frozenset[Formula]:
    """What a hypothesis leads to, when all left sides are proved: its right end, and parts of that."""
    if formula.op == "->":
        return frozenset({formula.parts[1]}) | _ends(formula.parts[1])
    if formula.op == "&":
        return frozenset().union(*map(_ends, formula.parts), formula.parts)
    return frozenset({formula})


@lru_cache(maxsize=1 << 16)
def _atoms(formula: Formula) -> frozenset[str]:
    return frozenset(formula.atoms)


@lru_cache(maxsize=1 << 16)
def _ahead(goal: Goal) -> tuple[float, ...]:
    """How near a subgoal is to its end: closed, or whether and how soon hypotheses lead to its conclusion."""
    if goal.closed:
        return (1.0, 0.0, 0.0, 0.0, 0.0)
    scene = _Scene(goal)
    leads = min(scene.ends[goal.conclusion], 3) / 3
    return (
        0.0,
        float(goal.conclusion in scene.ready),
        len(scene.ready) / 4,
        leads,
        float(FALSE in scene.ready),
    )


class _Scene:
    """What the parts of a goal's formulas are compared with."""

    def __init__(self, goal: Goal) -> None:
        known, self.wanted = goal
        self.known = set(known)
        rules = [formula for formula in known if formula.op == "->"]
        self.needed = Counter(formula.parts[0] for formula in rules)
        self.ends = Counter(end for formula in known for end in _ends(formula))
        ready = {formula.parts[1] for formula in rules if formula.parts[0] in self.known}
        self.ready = ready | {part for f in known if f.op == "&" for part in f.parts}
        size = sum(formula.size for formula in goal.formulas)
        self.all: tuple[float, ...] = (
            *(len(known) / 8, size / 24, len(ready) / 4, float(self.wanted in self.ready)),
            *_alone(self.wanted),
        )

    def seen(self, part: Formula) -> tuple[float, ...]:
        """How a part stands to the goal."""
        atoms, wanted = _atoms(part), _atoms(self.wanted)
        return (
            float(part in self.known),
            float(part == self.wanted),
            float(part in self.ready),
            min(self.ends[part], 3) / 3,
            min(self.needed[part], 3) / 3,
            len(atoms & wanted) / max(1, len(wanted)),
            float(self.wanted in _ends(part)),
            float(FALSE in _ends(part)),
        )

    def tactic(self, tactic: Tactic, left: Sequence[Goal]) -> Iterator[float]:
        """The features of a tactic and its subgoals."""
        formula = tactic.hypothesis or self.wanted
        parts = formula.parts[::-1] if tactic.name == "right" else formula.parts
        yield from (float(tactic.name == name) for name in _NAMES)
        yield from (*_alone(formula), *self.seen(formula))
        for part in parts:
            yield from (*_alone(part), *self.seen(part))
        for i in range(2):
            yield from _ahead(left[i]) if i < len(left) else (0.0,) * 5
        yield from self.all


@lru_cache(maxsize=1 << 16)
def features(goal: Goal) -> NDArray[np.float32]:
    """Return the features of each tactic of a goal, shape (tactics, features)."""
    scene = _Scene(goal)
    rows = [tuple(scene.tactic(tactic, left)) for tactic, left in tactics(goal)]
    return np.array(rows, dtype=np.float32).reshape(len(rows), SIZE if not rows else -1)


SIZE: Final = features(Goal.of((), Formula("->", (FALSE, FALSE)))).shape[1]


# ---- network ----------------------------------------------------------------------------------------------


class _Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(SIZE, width), nn.Linear(width, width)
        self.both, self.tactic = nn.Linear(2 * width, width), nn.Linear(width, 1)
        self.goal, self.value = nn.Linear(2 * width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of tactics, shape (n, k), and logits of values, (n,), of features (n, k, SIZE)."""
        tactic_features = self.second(self.first(x).relu()).relu() * there[..., None]
        mean = tactic_features.sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        logits = self.tactic(
            self.both(torch.cat([tactic_features, mean[:, None].expand_as(tactic_features)], -1)).relu()
        )[..., 0]
        value = self.value(self.goal(torch.cat([mean, tactic_features.amax(1)], -1)).relu())[..., 0]
        return logits.masked_fill(there == 0, -1e9), value


class GuideNetwork(Saved):
    """A guide that learns; an :class:`hunch.rl.evaluator.Evaluator` of goals.

    Args:
        seed: Seed of the weights and of training.
        width: Width of the layers.
        learning_rate: Learning rate of Adam.
    """

    saved = ("rng", "network", "optimiser")

    def __init__(self, seed: int, *, width: int = 128, learning_rate: float = 1e-3) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = _Net(width)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=learning_rate)
        self.rng = np.random.default_rng(seed)

    def evaluate(self, states: Sequence[Goal]) -> tuple[list[FloatArray], list[float]]:
        """Return the priors of each goal's tactics and its value, from 0 to 1."""
        rows = [features(goal) for goal in states]
        with torch.inference_mode():
            logits, values = self.network(*_padded(rows))
            shares = logits.softmax(1).double().numpy()
            worth = values.sigmoid().tolist()
        return [share[: len(row)] for share, row in zip(shares, rows, strict=True)], worth

    def learn(self, lessons: Sequence[Lesson], updates: int, batch: int) -> dict[str, float]:
        """Train on random batches of lessons; return the mean losses as metrics."""
        losses = []
        for _ in range(updates if lessons else 0):
            chosen = [lessons[i] for i in self.rng.integers(len(lessons), size=batch)]
            logits, values = self.network(*_padded([features(lesson.goal) for lesson in chosen]))
            wanted = torch.tensor([lesson.tactic for lesson in chosen])
            policy = cross_entropy(logits, wanted, ignore_index=-1, reduction="sum") / batch
            error = (values.sigmoid() - torch.tensor([lesson.value for lesson in chosen])).square().mean()
            self.optimiser.zero_grad()
            (policy + error).backward()
            self.optimiser.step()
            losses.append((policy.item(), error.item()))
        policy_loss, value_loss = np.mean(losses, axis=0) if losses else (0.0, 0.0)
        return {"policy_loss": float(policy_loss), "value_loss": float(value_loss)}


def _padded(rows: Sequence[NDArray[np.float32]]) -> tuple[Tensor, Tensor]:
    """Return features, shape (n, most tactics, SIZE), and 1 where there is a tactic, else 0."""
    most = max(1, *map(len, rows))
    x = np.zeros((len(rows), most, SIZE), dtype=np.float32)
    there = np.zeros((len(rows), most), dtype=np.float32)
    for i, row in enumerate(rows):
        x[i, : len(row)], there[i, : len(row)] = row.reshape(-1, SIZE), 1.0
    return torch.from_numpy(x), torch.from_numpy(there)
