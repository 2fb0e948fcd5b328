"""ADaPT: recorded decompositions of a language model, executed in the rebuilt crafting world.

    hunch study adapt --data DIR

``DIR`` is a clone of github.com/archiki/ADaPT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hunch.rl.statistics import Estimate, over_episodes
from hunch_studies.adapt_records import Episode, Node, again, agreement, flaw, recorded
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study

REACHES: Final = {0: "to the letter", 1: "one recipe at a time", 2: "two recipes", 9: "any number: a search"}
"""Number of consecutive recipes that an executor works out by itself."""
LEVELS: Final = (0, 1, 2, 3)
"""Number of nested decompositions."""


def markdown(model: str, episodes: Sequence[Episode]) -> str:
    """Return all tables of a model's recorded episodes."""
    return "\n\n".join(
        [
            f"Recorded model `{model}`, {len(episodes)} episodes, evidence L2.",
            _agreed(episodes),
            "### Executed again",
            _again(episodes),
            "### The decompositions",
            _decompositions(episodes),
            "### Kinds of failure",
            _failures(episodes),
            "### The model's own verdict",
            _word(episodes),
        ]
    )


def _three(estimate: Estimate) -> str:
    return estimate.short(digits=3)


def _agreed(episodes: Sequence[Episode]) -> str:
    same = [agreed for episode in episodes for agreed in agreement(episode)]
    return (
        f"Of {len(same):,} recorded commands our world answers {sum(same):,} as they were answered "
        f"({sum(same) / max(1, len(same)):.3f})."
    )


def _again(episodes: Sequence[Episode]) -> str:
    rows = []
    for reach, name in REACHES.items():
        won = [over_episodes([again(e, reach, levels) for e in episodes]) for levels in LEVELS]
        rows.append((name, *map(_three, won)))
    deep = [over_episodes([e.success and _depth(e.root) <= levels for e in episodes]) for levels in LEVELS]
    rows.append(("the model's own, as recorded", *map(_three, deep)))
    told = " | ".join("none" if n == 0 else f"{n} deep" for n in LEVELS)
    return table(f"who carries out the steps | {told}", rows)


def _depth(node: Node) -> int:
    return 1 + max(map(_depth, node.tried), default=0) if node.steps else 0


def _decomposed(node: Node, level: int = 1) -> Iterator[tuple[int, Node]]:
    """Return all decomposed steps with their depths."""
    if node.steps:
        yield level, node
    for part in node.tried:
        yield from _decomposed(part, level + 1)


def _decompositions(episodes: Sequence[Episode]) -> str:
    found = [(level, flaw(e.book, n.task, n.steps)) for e in episodes for level, n in _decomposed(e.root)]
    kinds = [kind for kind, _ in Counter(wrong for _, wrong in found if wrong).most_common()]
    rows = []
    for level in sorted({level for level, _ in found}):
        own = [wrong for at, wrong in found if at == level]
        shares = [f"{own.count(kind) / len(own):.2f}" for kind in kinds]
        rows.append((level, len(own), _three(over_episodes([not wrong for wrong in own])), *shares))
    return table(" | ".join(["depth", "n", "right", *kinds]), rows)


def _failures(episodes: Sequence[Episode]) -> str:
    failed = [e for e in episodes if not e.success]
    kinds = Counter(_failure(e) for e in failed)
    rows = [(kind, n, f"{n / len(failed):.2f}") for kind, n in kinds.most_common()]
    return table("failure | n | share", rows)


def _failure(episode: Episode) -> str:
    """Return why an episode failed: because of its plan, or its execution."""
    if again(episode, 1, len(LEVELS)):
        return "execution: without errors the recorded plan reaches the goal"
    if any(flaw(episode.book, node.task, node.steps) for _, node in _decomposed(episode.root)):
        return "plan: a decomposition is wrong"
    return "plan: the next necessary step was never decomposed"


def _word(episodes: Sequence[Episode]) -> str:
    at_once = [e for e in episodes if e.root.said]
    false = over_episodes([not e.success for e in at_once])
    return (
        f"Of the whole task the model said {len(at_once)} times at its first try that it was done; of these "
        f"{sum(not e.success for e in at_once)} were not ({_three(false)}). Only of the whole task does the "
        "record hold the world's own word beside the model's."
    )


def _told(folder: str) -> str:
    return "\n\n".join(markdown(model, episodes) for model, episodes in recorded(folder).items())


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("Recorded decompositions", (), beside=lambda folder: _told(scale.data))]


STUDIES = {
    "adapt": Study(
        "adapt",
        "How often do a real model's recorded decompositions reach the goal if single steps are executed "
        "without error?",
        "ADaPT decomposes a step only after it failed. With gpt-3.5-turbo-instruct it crafts 52.0 % of 200 "
        "targets of TextCraft, according to its file of results (Prasad et al., 2023).",
        "The world is rebuilt from the commands that each episode shows. The model's actions within a step "
        "are not recorded, so our own executor carries out the steps. Decompositions exist only where the "
        "model's own executor failed, and only as far as it got.",
        _parts,
        recorded="the results of ADaPT's public repository",
    )
}
