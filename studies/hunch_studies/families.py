"""What a model can infer about random worlds, of kinds inside and outside the pocket model's corpus.

Every question has a new random world and wording. Steps of one action are shown, and one more is to be
predicted. The held-out kinds of dynamics are not in :mod:`hunch_studies.laboratory.processes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, TypeAlias

from hunch.lm.base import LanguageModel
from hunch.lm.speech import Sampling
from hunch.rl.statistics import Estimate, over_episodes
from hunch.roles.world_model.prompting import Completer, PromptConfig, assemble
from hunch_studies.laboratory import corpus, processes, wording
from hunch_studies.laboratory.processes import Goal, Number, Process, Vector

Law: TypeAlias = Callable[[Vector, int, int], Vector]
"""Returns the next state, given a state, an action and the number of values of a number."""
SHAPES: Final = {"next state": "states", "reward": "rewards", "end": "ends"}
LINE: Final = Sampling(max_tokens=60, temperature=0.0, top_p=1.0, stop=("\n",))
LONGEST: Final = 800
"""Maximum characters of a step."""


@dataclass(frozen=True)
class Told:
    """A model's accuracy on worlds of a family, with the interval over the questions."""

    family: str
    piece: str
    share: Estimate


@dataclass(frozen=True)
class Lawful(Process):
    """A process whose next state follows a given law."""

    law: Law = lambda state, action, size: state

    def step(self, state: Vector, action: int, rng: Random) -> tuple[float, bool, Vector]:
        """Return reward, end and next state."""
        reward, done, _ = super().step(state, action, rng)
        return reward, done, self.law(state, action, self.numbers[0].size)


def mirrored(state: Vector, action: int, size: int) -> Vector:
    """Mirror the first or the second number within its range."""
    which = action % 2
    return tuple(size - 1 - value if i == which else value for i, value in enumerate(state))


def swapped(state: Vector, action: int, size: int) -> Vector:
    """Swap the first two numbers, or reverse the order of all."""
    return (state[1], state[0], *state[2:]) if action % 2 == 0 else state[::-1]


def doubled(state: Vector, action: int, size: int) -> Vector:
    """Double or triple the first number, modulo its range."""
    return (state[0] * (2 + action % 2) % size, *state[1:])


def by_parity(state: Vector, action: int, size: int) -> Vector:
    """Increase an even number and decrease an odd one, or the other way round, modulo the range."""
    return ((state[0] + (1 if state[0] % 2 == action % 2 else -1)) % size, *state[1:])


LAWS: Final[Mapping[str, Law]] = {
    "mirrored": mirrored,
    "swapped": swapped,
    "doubled": doubled,
    "by parity": by_parity,
}
KINDS: Final[Mapping[str, Callable[[Process], bool]]] = {
    "shifts, clipped": lambda p: _only(p, "shift") and all(n.edge == "clip" for n in p.numbers),
    "shifts, in a circle": lambda p: _only(p, "shift") and all(n.edge == "wrap" for n in p.numbers),
    "walls": lambda p: bool(p.walls),
    "tables": lambda p: p.numbers[0].kind == "table",
    "a place and its speed": lambda p: p.numbers[0].kind == "drift",
    "things that fall": lambda p: p.things and any(n.kind == "countdown" for n in p.numbers),
}


def measure(lm: LanguageModel, *, shown: int = 16, questions: int = 40, seed: int = 0) -> Iterator[Told]:
    """Ask a model about steps of worlds of each family, at temperature 0.

    Args:
        lm: A model that generates.
        shown: Number of steps shown.
        questions: Questions per family and predicted part.
        seed: Seed of worlds, wordings and steps; the same for every model.

    Raises:
        UsageError: if the model cannot generate.
    """
    room = Completer(lm, PromptConfig(max_tokens=LINE.max_tokens)).room
    for family in (*KINDS, *LAWS):
        for piece in SHAPES:
            if family in LAWS and piece != "next state":
                continue
            asked = [question(family, piece, shown, Random(f"{seed} {family} {i}")) for i in range(questions)]
            prompts = [assemble(steps, query, room, lm.count_tokens)[0] for steps, query, _ in asked]
            answers = lm.generate(prompts, 1, LINE)
            right = [text == answer for (text,), (*_, answer) in zip(answers, asked, strict=True)]
            yield Told(family, piece, over_episodes(right))


def name_actions(
    lm: LanguageModel, temperatures: Sequence[float], *, questions: int = 40, seed: int = 0
) -> Iterator[Estimate]:
    """Ask a model for the next action of invented episodes; yield how often it names an existing action.

    Args:
        lm: A model that generates.
        temperatures: Sampling temperatures; one result each.
        questions: Questions per temperature.
        seed: Seed of worlds, wordings and episodes; the same for every model and temperature.

    Raises:
        UsageError: if the model cannot generate.
    """
    room = Completer(lm, PromptConfig(max_tokens=LINE.max_tokens)).room
    asked = [unfinished(lm, room, Random(f"{seed} action {i}")) for i in range(questions)]
    for temperature in temperatures:
        answers = lm.generate([prompt for prompt, _ in asked], 1, replace(LINE, temperature=temperature))
        yield over_episodes([text in known for (text,), (_, known) in zip(answers, asked, strict=True)])


def unfinished(lm: LanguageModel, room: int, rng: Random) -> tuple[str, set[str]]:
    """Draw as many episodes of a policy as fit, up to an action; return the actions' first lines, too."""
    process = processes.draw(rng, ease=0.0)
    words = wording.draw(rng, process, ease=0.0)
    text, prompt = "", ""
    for piece in corpus.episodes(rng, process, words, LONGEST * 4):
        if piece.text in words.actions:
            if lm.count_tokens(text) > room:
                break
            prompt = text
        text += piece.text
    return prompt, {action.partition("\n")[0] for action in words.actions}


def question(family: str, piece: str, shown: int, rng: Random) -> tuple[list[str], str, str]:
    """Draw a world of a family; return the steps to show, the question, and the answer's first line."""
    process = lawful(LAWS[family], rng) if family in LAWS else _drawn(KINDS[family], rng)
    words = wording.draw(rng, process)
    document = corpus.SHAPES[SHAPES[piece]](rng, process, words, LONGEST * (shown + 1))
    *steps, (given, told, _) = (document[3 * i : 3 * i + 3] for i in range(shown + 1))
    return list(map(corpus.text, steps)), given.text, told.text.partition("\n")[0]


def lawful(law: Law, rng: Random) -> Process:
    """Draw a process of whole numbers from 0 that follows a law."""
    size, actions = rng.randint(5, 11), rng.choice((2, 3))
    numbers = tuple(Number(0, size, "wrap", "shift") for _ in range(rng.choice((2, 2, 3))))
    goal = Goal("equal", (float(rng.randrange(size)),), None)
    moves = ((0,) * len(numbers),) * actions
    return Lawful(numbers, moves, {}, frozenset(), goal, 1, ends=False, always_ends=False, law=law)


def _drawn(kind: Callable[[Process], bool], rng: Random) -> Process:
    while not kind(process := processes.draw(rng, ease=0.3)):
        pass
    return process


def _only(process: Process, kind: str) -> bool:
    return not process.things and not process.walls and all(n.kind == kind for n in process.numbers)
