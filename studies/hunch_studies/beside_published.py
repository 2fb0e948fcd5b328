"""Small models in BabyAI and TextWorld-Express, whose published tables begin at a billion weights.

    hunch study beside-published --lm smollm2
    python -m hunch_studies.beside_published docs/assets/studies/beside-published.jsonl   # the recorded rows

BALROG (BabyAI) and TALES (TextWorld-Express) have tables of zero-shot play by larger models, with prompts of
their own. Their figures stand in a column of their own and are not compared: games, prompts and numbers of
episodes differ. What is compared is a model with its own blank prompt, with words and with random commands,
in the same episodes, and free text with an answer that is restricted to the admissible commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import hunch
from hunch.core import Memoryless, State, World
from hunch.core import Player as Plays
from hunch.methods.prior.zero_shot import ZeroShot, ZeroShotConfig
from hunch.rl.statistics import over_pairs
from hunch.roles.prior.kinds import PriorConfig, PriorWay
from hunch.runs.files import read_lines
from hunch_studies.draws import DRAWS, plays
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, kept, loaded, selected

ARENAS: Final[Mapping[str, Mapping[str, tuple[str, Mapping[str, Any]]]]] = {
    "BabyAI": {
        level: (f"hunch/BabyAI-{level}-v0", {})
        for level in ("GoToObj", "GoToLocal", "PickupDist", "PickupLoc", "PutNextLocal")
    },
    "TextWorld-Express": {
        game: ("hunch/TextWorldExpress-v0", {"game": game, "split": "test"})
        for game in (
            *("coin", "mapreader", "twc", "cookingworld"),
            *("arithmetic", "sorting", "simonsays", "peckingorder"),
        )
    },
}
"""The games of each benchmark."""
EPISODES: Final[Mapping[str, int]] = {"BabyAI": 10, "TextWorld-Express": 5}
"""Episodes of each game, as many as BALROG and TALES play (fifty, and five seeds)."""
RANDOM, TURNING, WORDS, BLANK = "random commands", "random, seldom the last ones", "words", "blank prompt"
MOSTLY_LAST: Final = "random commands, mostly the last of the list"
UNREAD: Final = 0.88
"""Share of SmolLM2's free answers in BabyAI that name no command, so that the last of the list is given."""
WRITTEN: Final = {"max_tokens": 16, "patience": None}
"""How a model is asked that writes: room for a command, and a game goes on where nothing can be read."""
WAYS: Final[tuple[PriorWay, ...]] = ("text", "structured")


class Player(NamedTuple):
    """A model that plays, as an arm."""

    model: str
    way: PriorWay
    blank: bool

    @property
    def label(self) -> str:
        """The name of the arm."""
        named = f"{self.model}, {self.way}"
        return f"{named}, {BLANK}" if self.blank else named


def played(
    specs: Mapping[str, str], arena: str, game: str, label: str, episodes: int, draws: int = 1
) -> dict[str, Any]:
    """Play the episodes of a game.

    Args:
        specs: Specs of the models by name.
        arena: Key of :data:`ARENAS`.
        game: One of its games.
        label: The player's.
        episodes: Number of episodes; each has an environment, so that all states of a step are one batch.
        draws: How often each is played.

    Returns:
        ``scores`` of the episodes, from 0 to 1, and numbers of ``steps``, both as means over
        the draws, and the share of answers that named no command (``unread``).
    """
    id, options = ARENAS[arena][game]
    if label in CONTROLS:
        player, heard = CONTROLS[label](), loaded("uniform").heard
    else:
        asked = next(one for one in players(specs) if one.label == label)
        prior = PriorConfig(way=asked.way, blank=asked.blank, **WRITTEN)  # type: ignore[arg-type]
        player, heard = by(specs[asked.model], prior), loaded(specs[asked.model]).heard
    answers, useless = heard.answers, heard.useless
    envs = [hunch.make(id, **options) for _ in range(episodes)]
    finished = plays(player, envs, episodes, draws)
    scores = np.array([[min(max(one.episode_return, 0.0), 1.0) for one in of_draw] for of_draw in finished])
    steps = np.array([[float(one.length) for one in of_draw] for of_draw in finished])
    for env in envs:
        env.close()
    answers, useless = heard.answers - answers, heard.useless - useless
    return {
        "scores": scores.mean(axis=0).tolist(),
        "steps": steps.mean(axis=0).tolist(),
        "unread": useless / max(answers, 1),
    }


def by(spec: str, prior: PriorConfig) -> Callable[[int], Plays]:
    """Return what makes zero-shot players of a model from their seeds."""
    agent = ZeroShot.build(ZeroShotConfig(prior=prior), {"lm": loaded(spec)})
    agent.begin(World(), 0)
    return agent.player


def mostly_last() -> Callable[[int], Plays]:
    """Return what makes players that fall back as often as a model whose answers cannot be read."""

    def choose(states: Sequence[State], rng: np.random.Generator) -> list[str]:
        unread = rng.random(len(states)) < UNREAD
        options = [state.options for state in states]
        return [
            of[-1] if last else of[int(rng.integers(len(of)))]
            for of, last in zip(options, unread, strict=True)
        ]

    return partial(Memoryless, choose)


CONTROLS: Final[Mapping[str, Callable[[], Callable[[int], Plays]]]] = {
    RANDOM: lambda: by("uniform", PriorConfig()),
    # Words turn from commands that were just given; this is that rule without the words.
    TURNING: lambda: by("uniform", PriorConfig(way="novelty")),
    # What is left of chance where nine of ten answers cannot be read.
    MOSTLY_LAST: mostly_last,
    WORDS: lambda: by("words", PriorConfig()),
}
"""Players that ask no model that writes."""


def players(specs: Mapping[str, str]) -> list[Player]:
    """Return each model in both ways, with its usual prompt and without the task."""
    return [Player(name, way, blank) for name in specs for way in WAYS for blank in (False, True)]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the score of each player, and its leads over the controls, paired by episode, in Markdown."""
    tables = []
    for arena in dict.fromkeys(row["key"][0] for row in rows):
        here = [row for row in rows if row["key"][0] == arena]
        games = list(dict.fromkeys(row["key"][1] for row in here))
        by_label: dict[str, dict[str, Mapping[str, Any]]] = {}
        for row in here:
            by_label.setdefault(row["key"][2], {})[row["key"][1]] = row
        # One number for each episode, in the same order for all players.
        scores = {
            label: np.concatenate([own[game]["scores"] for game in games])
            for label, own in by_label.items()
            if set(own) == set(games)
        }
        lines = []
        for label, achieved in scores.items():
            own = by_label[label]
            cells = [label, over_pairs(list(achieved)).short()]
            cells.append(f"{np.mean([row['unread'] for row in own.values()]):.2f}")
            for other in (RANDOM, WORDS, f"{label}, {BLANK}"):
                shown = other in scores and other != label and not label.endswith(BLANK) and label != RANDOM
                cells.append(over_pairs(list(achieved - scores[other])).short() if shown else "")
            lines.append([*cells, *(f"{np.mean(own[game]['scores']):.2f}" for game in games)])
        head = f"{arena}, player | score | unread | over {RANDOM} | over {WORDS} | over its {BLANK}"
        tables.append(table_of(" | ".join([head, *games]), lines))
    return "\n\n".join(tables)


def _results(arena: str, specs: Mapping[str, str], scale: Scale, folder: Path) -> str:
    episodes = max(2, round(EPISODES[arena] * scale.share))
    labels = selected((player.label for player in players(specs)), scale.arms)
    keys: list[tuple[Any, ...]] = [
        (arena, game, label, episodes, DRAWS) for label in CONTROLS for game in ARENAS[arena]
    ]
    keys += [
        (arena, game, player.label, episodes)
        for player in players(specs)
        for game in ARENAS[arena]
        if player.label in labels
    ]
    return table(kept(folder / "rows.jsonl", keys, partial(played, specs)))


def _parts(scale: Scale, data: Path) -> list[Part]:
    specs = by_name(scale.lms)
    labels = tuple(player.label for player in players(specs))
    return [
        Part(arena, (), beside=partial(_results, arena, specs, scale), players=labels) for arena in ARENAS
    ]


STUDIES = {
    "beside-published": Study(
        "beside-published",
        "What do small models that write score in BabyAI and TextWorld-Express, beside published tables?",
        "Zero-shot: in BALROG's BabyAI Llama-3.2-1B has 0.08, 3B 0.20, Llama-3.1-8B 0.36; in TALES's "
        "TextWorld-Express 0.19, 0.42 and 0.50.",
        "Five levels with one room and ten episodes each, not BALROG's five; eight games with five seeds and "
        "50 steps. The prompts are ours, answers are drawn at temperature 1, and a model reads the latest "
        "observations and commands only.",
        _parts,
        lm_for="zero-shot",
    )
}

if __name__ == "__main__":
    print_table(lambda file: table(read_lines(file)), "Scores beside published tables.")
