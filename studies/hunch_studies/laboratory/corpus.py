"""The pocket model's corpus: an endless stream of documents, each about a different random world.

A document resembles a prompt of an in-context method (Brooks et al., NeurIPS 2023): examples of the results
of one or all actions; balanced rewards and ends; episodes and their parts. No document states the rules, so
only reading the examples helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from random import Random
from typing import Final, NamedTuple, TypeAlias

from hunch_studies.laboratory import instructions, policies, processes, wording
from hunch_studies.laboratory.processes import MOST_STEPS, Process, Vector
from hunch_studies.laboratory.wording import Wording

CONTEXT_WEIGHT: Final = 0.1
"""Loss weight of the given parts of an example, such as its state; the parts to predict have weight 1."""


class Piece(NamedTuple):
    """Part of a document, of whole lines.

    Attributes:
        text: The text.
        answer: True if a model would be asked for it.
    """

    text: str
    answer: bool


class Step(NamedTuple):
    """One step of an episode."""

    state: Vector
    action: int
    reward: float
    done: bool
    next_state: Vector


Document: TypeAlias = list[Piece]
Shape: TypeAlias = Callable[[Random, Process, Wording, int], Document]


def document(seed: str, length: int, ease: float = 0.0, shape: str | None = None) -> Document:
    """Write the document of a seed.

    Args:
        seed: The same seed gives the same document.
        length: Minimum number of characters.
        ease: Share of simple worlds and wordings, from 0 to 1.
        shape: One of :data:`SHAPES`; None draws one.
    """
    rng = Random(seed)
    if shape is None and rng.random() < 0.05 * (1 - ease):
        return errands(rng, length)
    name = shape or rng.choices(list(SHAPES), WEIGHTS)[0]
    process = processes.draw(rng, ease)
    while not _telling(name, process) and rng.random() < 0.7:
        process = processes.draw(rng, ease)
    return SHAPES[name](rng, process, wording.draw(rng, process, ease), length)


def _telling(name: str, process: Process) -> bool:
    """Return whether a shape has much to tell about a process: ends that occur, rewards by two numbers."""
    if name == "ends":
        return process.can_end
    return name != "rewards" or process.goal.kind == "meet"


def errands(rng: Random, length: int) -> Document:
    """Return decisions of errands in a household."""
    return [Piece(text, answer) for text, answer in instructions.document(rng, length)]


def text(document: Sequence[Piece]) -> str:
    """Join the pieces of a document."""
    return "".join(piece.text for piece in document)


def experience(rng: Random, process: Process) -> Iterator[Step]:
    """Yield random steps from random starts without end."""
    while True:
        state = process.start(rng)
        for _ in range(rng.randint(1, MOST_STEPS)):
            action = rng.choice(process.actions)
            reward, done, following = process.step(state, action, rng)
            yield Step(state, action, reward, done, following)
            if done:
                break
            state = following


def states(rng: Random, process: Process, words: Wording, length: int) -> Document:
    """Return examples of next states, of one action that never ends the episode, or sometimes of all."""
    single = rng.random() < 0.85
    steps = _steps(rng, process, single, lambda step: not step.done)
    return _examples(rng, words, steps, lambda step: words.state(step.next_state), length)


def rewards(rng: Random, process: Process, words: Wording, length: int) -> Document:
    """Return examples of the rewards of one action, balanced: of steps that end alike, or of all.

    Where all of these steps have one reward, others are shown.
    """
    for keep in rng.sample(ENDING, len(ENDING)):
        steps = _steps_of_both(rng, process, lambda step: step.reward, keep)
        if len({step.reward for step in steps}) > 1:
            break
    return _examples(rng, words, steps, lambda step: words.reward(step.reward), length)


def ends(rng: Random, process: Process, words: Wording, length: int) -> Document:
    """Return examples of whether the episode ends after one action, balanced."""
    steps = _steps_of_both(rng, process, lambda step: step.done, lambda step: True)
    return _examples(rng, words, steps, lambda step: words.end(step.done), length)


def transitions(rng: Random, process: Process, words: Wording, length: int) -> Document:
    """Return examples of end, reward and next state of one action."""
    steps = _steps(rng, process, rng.random() < 0.7, lambda step: True)

    def told(step: Step) -> str:
        return words.end(step.done) + words.reward(step.reward) + words.state(step.next_state)

    return _examples(rng, words, steps, told, length)


def episodes(rng: Random, process: Process, words: Wording, length: int) -> Document:
    """Return parts of episodes of a policy that makes fewer and fewer mistakes, or none, in any order."""
    policy, told_end = policies.draw(rng, process), rng.random() < 0.4
    last_state = rng.random() < 0.4
    share = rng.choice((0.0, 0.5, 1.0))
    runs = [_episode(rng, process, policy, mistakes=share * (1 - 0.13 * i)) for i in range(1, 8)]
    parts = [run[i:j] for run in runs for i, j in combinations(range(len(run) + 1), 2)]
    written: Document = []
    size = 0
    while size < length:
        for part in rng.sample(parts, len(parts)):
            written.append(Piece(words.reset, False))
            for step in part:
                written.append(Piece(words.state(step.state), False))
                written.append(Piece(words.actions[step.action], True))
                written.append(Piece(words.reward(step.reward), True))
                if told_end:
                    written.append(Piece(words.end(step.done), True))
                if step.done and last_state:
                    written.append(Piece(words.state(step.next_state), True))
            size += sum(len(piece.text) for piece in written[-3 * len(part) - 1 :])
            if size >= length:
                break
    return written


ENDING: Final[Sequence[Callable[[Step], bool]]] = (
    lambda step: step.done,
    lambda step: not step.done,
    lambda step: True,
)
"""Which steps a document about rewards shows."""
SHAPES: dict[str, Shape] = {
    "states": states,
    "rewards": rewards,
    "ends": ends,
    "episodes": episodes,
    "transitions": transitions,
}
WEIGHTS: Final = (0.2, 0.28, 0.1, 0.34, 0.08)


def _steps(rng: Random, process: Process, single: bool, keep: Callable[[Step], bool]) -> list[Step]:
    """Remember some steps of the process, all of one action if ``single``."""
    action, found = rng.choice(process.actions), []
    wanted = rng.choice((8, 25, 50, 80))
    for tried, step in enumerate(experience(rng, process)):
        if (not single or step.action == action) and keep(step):
            found.append(step)
        if len(found) == wanted or (tried > 400 and found):
            return found
        if tried > 1000:
            action, keep = rng.choice(process.actions), lambda step: True
    raise AssertionError("unreachable: experience has no end")


def _steps_of_both(
    rng: Random, process: Process, outcome: Callable[[Step], float], keep: Callable[[Step], bool]
) -> list[Step]:
    """Collect steps, with equal numbers of each outcome in most cases."""
    for _ in range(rng.choice((1, 6, 6))):
        steps = _steps(rng, process, rng.random() < 0.85, keep)
        if len({outcome(step) for step in steps}) > 1:
            break
    return _even(rng, steps, outcome)


def _even(rng: Random, steps: Sequence[Step], outcome: Callable[[Step], float]) -> list[Step]:
    """Repeat the steps of rarer outcomes until all outcomes are equally frequent."""
    groups: dict[float, list[Step]] = {}
    for step in steps:
        groups.setdefault(outcome(step), []).append(step)
    size = max(map(len, groups.values()))
    return [group[i % len(group)] for group in groups.values() for i in range(size)]


def _examples(
    rng: Random,
    words: Wording,
    steps: Sequence[Step],
    answer: Callable[[Step], str],
    length: int,
) -> Document:
    """Return examples in random order, repeated in other orders until they are long enough."""
    written: Document = []
    size = 0
    while size < length:
        for step in rng.sample(steps, len(steps)):
            given = words.state(step.state) + words.actions[step.action]
            told = answer(step)
            written += [Piece(given, False), Piece(told, True), Piece("\n", False)]
            size += len(given) + len(told) + 1
            if size >= length:
                break
    return written


def _episode(rng: Random, process: Process, policy: policies.Policy, mistakes: float) -> list[Step]:
    state, run = process.start(rng), []
    for _ in range(rng.randint(2, 8)):
        action = rng.choice(process.actions) if rng.random() < mistakes else policy(state)
        reward, done, following = process.step(state, action, rng)
        run.append(Step(state, action, reward, done, following))
        if done:
            break
        state = following
    return run
