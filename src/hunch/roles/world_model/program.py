"""A world model of two programs, one for the next state and one for the reward, and their evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hunch.envs.design.code import quoted
from hunch.envs.design.plain import Plain
from hunch.envs.design.problem import Problem
from hunch.envs.design.program_model import Patient, state_or_none
from hunch.envs.design.running import box
from hunch.numbers import number
from hunch.rl.world_model import Prediction, Step, alike
from hunch.roles.writer.programs import Attempt
from hunch.roles.writer.search import Thompson
from hunch.sandbox import ProgramError

NO_WAY = " But by these programs there is no way to a reward from where the mission begins."
"""Feedback on a program that explains all steps but does not satisfy optimism."""
EXAMPLES = 8
"""Steps that a plain request shows (ours)."""
_TASKS = {
    "transition": ("dynamics", ("state", "action"), "the next state, of the same form"),
    "reward": ("reward", ("state", "action", "next_state"), "(reward, done): a float and a bool"),
}


class CodedModel:
    """A world model of two programs, ``transition(state, action)`` and ``reward(state, action, next)``."""

    def __init__(self, transition: Patient, reward: Patient) -> None:
        self.transition, self.reward = transition, reward

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator] = ()
    ) -> list[Prediction]:
        """Predict the next states, then their rewards; a prediction is empty if either program fails."""
        # s' = transition(s, a)
        pairs = list(zip(states, actions, strict=True))
        next_states = [state_or_none(value) for value in self.transition.map(pairs)]

        # r, done = reward(s, a, s'), where there is an s'
        known = [i for i, next_state in enumerate(next_states) if next_state is not None]
        rewards = self.reward.map([(*pairs[i], next_states[i]) for i in known])
        predictions = [Prediction() for _ in pairs]
        for i, value in zip(known, rewards, strict=True):
            reward, done = earning(value)
            if reward is not None:
                predictions[i] = Prediction(done, reward, next_states[i])
        return predictions


def earning(value: Any) -> tuple[float | None, bool | None]:
    """Return reward and end from a reward program's result, if it is a number and a bool; else two Nones."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None, None
    reward = number(value[0])
    done = value[1]
    if reward is None or type(done) is not bool:
        return None, None
    return reward, done


_PLAIN_RETURNS = {
    "transition": "It returns the next state, in the same form as state. It keeps nothing between calls.",
    "reward": "It returns two values: the reward (a float), and whether the episode ends (True or False). It "
    "keeps nothing between calls.",
}


def problem_of(function: str, mission: str, steps: Sequence[Step], actions: Sequence[str]) -> Problem:
    """Return the design problem of one of the two functions.

    Args:
        function: ``transition`` or ``reward``.
        mission: The mission, in words.
        steps: Steps of the mission. A plain request shows some of them, the other one the form of a state.
        actions: All actions, by name.
    """
    what, parameters, returns = _TASKS[function]
    state = steps[0].state
    shown = "\n".join(f"- {_shown(function, step)}" for step in examples(function, steps))
    text = (
        f"The task of this environment: {mission}. state is such as {state!r}; lists and arrays are tuples. "
        f"action is a text, one of {', '.join(map(repr, actions))}.\n\nSteps that were seen:\n{shown}"
    )
    return Problem(
        f"Write the {what} of this environment as a program: {mission}.",
        "Interface:\n"
        f"- {', '.join(name for name in parameters if name != 'action')}: such as {state!r}; lists and "
        "arrays are tuples.\n"
        f"- action: str, one of {', '.join(map(repr, actions))}.\n"
        f"- Returns {returns}. It must depend on its arguments alone.",
        function=function,
        parameters=parameters,
        plain=Plain(text, parameters, _PLAIN_RETURNS[function]),
    )


def examples(function: str, steps: Sequence[Step]) -> list[Step]:
    """Return the steps that a plain request shows: for a reward up to half of them with rewards or ends.

    Args:
        function: ``transition`` or ``reward``.
        steps: The steps that were seen, first to last; of each kind the first ones are taken.
    """
    notable = [step for step in steps if step.reward or step.done] if function == "reward" else []
    others = [step for step in steps if step not in notable]
    half = notable[: max(EXAMPLES // 2, EXAMPLES - len(others))]
    return [*half, *others[: EXAMPLES - len(half)]]


def _shown(function: str, step: Step) -> str:
    """Return a step in words, with the result that the function is to return."""
    known = f"state {step.state!r}, action {step.action!r}"
    if function == "transition":
        return f"{known}: next state {step.next_state!r}"
    return f"{known}, next state {step.next_state!r}: reward {step.reward!r}, ends {step.done!r}"


@dataclass
class Piece:
    """One of the two functions, with the programs that were tried for it.

    Attributes:
        problem: The design problem whose solution is the function.
        attempts: All programs, in order.
        search: Chooses the program to refine; restarted when new steps arrive.
        current: The current program: the latest of those that explain most.
        since: Number of the first attempt of the current search.
    """

    problem: Problem
    attempts: list[Attempt] = field(default_factory=list)
    search: Thompson = field(default_factory=Thompson)
    current: Attempt | None = None
    since: int = 0

    def add(self, attempt: Attempt, rng: np.random.Generator) -> None:
        """Add a program that was evaluated on the steps so far."""
        self.attempts.append(attempt)
        self.search.tell([attempt], rng)
        if self.current is None or _fitness(attempt) >= _fitness(self.current):
            self.current = attempt

    def state(self) -> dict[str, Any]:
        """Return the programs and the state of the search as plain values."""
        lines = [attempt.line() for attempt in self.attempts]
        return {"attempts": lines, "since": self.since, "current": self.current and self.current.line()}


def _fitness(attempt: Attempt) -> float:
    return -1.0 if attempt.fitness is None else attempt.fitness


def tried(attempt: Attempt, problem: Problem, steps: Sequence[Step]) -> Attempt:
    """Return the attempt with the share of steps that its program explains, as its only component."""
    flaw = problem.flaw(attempt.program)
    if flaw:
        return replace(attempt, fitness=None, error=flaw, components={})
    try:
        with box().load(attempt.program, problem.function, state="fresh") as called:
            answers = called.map([arguments(problem.function, step) for step in steps])
    except ProgramError as error:
        why = f"{error.type}: {error.message}{quoted(attempt.program, error.line)}"
        return replace(attempt, fitness=None, error=why, components={})
    share, feedback = judged(problem.function, answers, steps)
    return replace(attempt, fitness=share, error="", feedback=feedback, components={"explained": share})


def arguments(function: str, step: Step) -> tuple[Any, ...]:
    """Return the arguments of a function at a step."""
    pair = step.state, step.action
    return pair if function == "transition" else (*pair, step.next_state)


def judged(function: str, answers: Sequence[Any], steps: Sequence[Step]) -> tuple[float, str]:
    """Return the share of steps that a function's results explain, and describe the first wrong one."""
    wrong: list[tuple[Any, Step, list[str]]] = []  # the result, the step, and what is wrong in it
    for answer, step in zip(answers, steps, strict=True):
        pieces = _wrong(function, answer, step)
        if pieces:
            wrong.append((answer, step, pieces))

    feedback = f"{len(steps) - len(wrong)} of {len(steps)} transitions are right."
    if wrong:
        answer, step, pieces = wrong[0]
        expected = step.next_state if function == "transition" else (step.reward, step.done)
        where = "" if function == "transition" else f"next state: {step.next_state!r}\n"
        feedback += (
            f" One that is not, in {' and '.join(pieces)}:\nstate: {step.state!r}\naction: {step.action!r}\n"
            f"{where}expected: {expected!r}\nreturned: {repr(answer)[:500]}"
        )
    return 1 - len(wrong) / len(steps), feedback


def _wrong(function: str, answer: Any, step: Step) -> list[str]:
    """Return the names of what a function's result says wrongly about a step."""
    if function == "transition":
        return [] if alike(state_or_none(answer), step.next_state) else ["next state"]
    reward, done = earning(answer)
    pieces = {"reward": reward is not None and alike(reward, step.reward), "done": done is step.done}
    return [name for name, fine in pieces.items() if not fine]
