"""World models as code: a program predicts the results of actions; its fitness is the predicted share."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.envs import make
from hunch.envs.design.policy import described
from hunch.envs.design.problem import ClassForm, DesignProblem, Trial
from hunch.envs.design.program_model import Patient, read
from hunch.envs.design.running import box
from hunch.envs.design.transitions import collected, given, played, refuse_contradictions
from hunch.rl.world_model import Prediction, Step, alike, right
from hunch.sandbox import Program, ProgramError

START = '''def step(state, action):
    """Nothing changes."""
    return state, 0.0, False
'''
AS_CLASS = ClassForm(
    "Environment",
    {"set_state": ("state",), "step": ("action",)},
    "step_by_class",
    """

def step_by_class(state, action):
    environment = Environment()
    environment.set_state(state)
    return environment.step(action)
""",
)
"""The form of Dainese et al. (2024): an object whose state is set before each step."""
START_OF_CLASS = '''class Environment:
    """Nothing changes."""

    def set_state(self, state):
        self.state = state

    def step(self, action):
        return self.state, 0.0, False
'''


def match(prediction: Prediction, step: Step) -> float:
    """Return the correctly predicted share of a step: next state, reward and end count a third each.

    Each number of the next state counts in proportion. At the end of an episode, reward and end count for a
    half each (Dainese et al. 2024, released code).
    """
    reward = prediction.reward is not None and alike(prediction.reward, step.reward)
    done = prediction.done is step.done
    if step.done:
        return (reward + done) / 2
    return (_state_match(prediction.next_state, step.next_state) + reward + done) / 3


def _state_match(predicted: Any, state: Any) -> float:
    if not isinstance(state, tuple) or not state:
        return float(alike(predicted, state))
    if not isinstance(predicted, tuple) or len(predicted) != len(state):
        return 0.0
    return float(np.mean([alike(a, b) for a, b in zip(predicted, state, strict=True)]))


def weights(steps: Sequence[Step]) -> FloatArray:
    """Return step weights that give every value of the reward the same total (released code), shape (n,)."""
    counts = Counter(step.reward for step in steps)
    return np.array([1 / counts[step.reward] for step in steps]) / len(counts)


class DynamicsCode(DesignProblem):
    """Base class of problems whose programs predict transitions."""

    buffer: list[Step]
    """Transitions that the fitness counts."""
    held_out: list[Step]
    """Further transitions, which the feedback does not show; may be empty."""

    def arguments(self, step: Step) -> tuple[Any, Any]:
        """Return the arguments of a program for a step: its state and action."""
        return step.state, step.action

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def runnable(self, program: str) -> tuple[str, str]:
        """Return the program as it is run, and the name of the function that predicts a step."""
        form = self.problem.as_class
        return (program, "step") if form is None else (program + form.code, form.entry)

    def run(self, program: str, seed: int) -> Trial:
        """Let the program predict every distinct state and action, and compare the predictions here."""
        distinct = {(step.state, step.action): step for step in self.buffer}
        pairs = [self.arguments(step) for step in distinct.values()]
        others = [self.arguments(step) for step in self.held_out]
        runnable, function = self.runnable(program)
        with box().load(runnable, function, state="fresh") as called:
            try:
                values = called.map([*pairs, *others])
                other = [read(value) for value in values[len(pairs) :]]
            except ProgramError:  # a failure on held-out steps only is no failure of the trial
                values = _called(called, pairs)
                other = self._held_out(runnable, function)
        by_pair = dict(zip(distinct, values, strict=False))
        answers = [by_pair[step.state, step.action] for step in self.buffer]
        predictions = [read(answer) for answer in answers]
        components = {}
        if self.held_out:
            exact = [right(*pair) for pair in zip(other, self.held_out, strict=True)]
            components = {
                "held_out": score(other, self.held_out),
                "held_out_exact": float(np.mean(exact)),
            }
        return Trial(
            score(predictions, self.buffer),
            wrong_predictions(predictions, answers, self.buffer),
            components=components,
        )

    def _held_out(self, runnable: str, function: str) -> list[Prediction]:
        with box().load(runnable, function) as called:
            return [read(value) for value in Patient(called).map([*map(self.arguments, self.held_out)])]


class WorldModelCode(DynamicsCode):
    """Write an environment's dynamics as code, from recorded transitions.

    The fitness is the weighted share of the recorded transitions that ``step(state, action)`` predicts; 1
    means all of them. Half of the episodes are played at random; the other half are played optimally if the
    base has few states. Other transitions are held out: ``components["held_out"]`` is the fitness on these,
    which the feedback does not show.

    Args:
        base: A deterministic text environment with ``place``, such as ``hunch/CliffWalking-v0``.
        episodes: Number of episodes to play.
        data: In Python: recorded episodes to use instead; the last fifth of their transitions is held out.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if the base has no ``place``, there are no transitions or none to hold out, or two of them
            contradict each other.
    """

    version = "imports-1"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        base: str = "hunch/CliffWalking-v0",
        episodes: int = 10,
        data: Any = None,
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        env = make(base, history=0)
        info = env.reset(seed=0)[1]
        if not {"raw", "actions"} <= info.keys():
            raise UsageError(
                f"{base} cannot be written as a program: it lists no actions, or shows no raw state."
            )
        listed = info["actions"]
        self.base, self.env, inner = base, env, cast(Any, env.unwrapped)
        self.buffer, self.held_out = collected(env, episodes) if data is None else given(data)
        refuse_contradictions([*self.buffer, *self.held_out])
        if not self.held_out:
            raise UsageError(
                f"All steps of {base} are recorded, and none is left to hold out: take fewer episodes."
            )
        self.actions = tuple(dict.fromkeys([*listed, *(step.action for step in self.buffer)]))
        super().__init__(
            task=f"Write the dynamics of this environment as a program: {inner.task}.",
            interface=_interface(inner, self.buffer, self.actions),
            function="step",
            parameters=("state", "action"),
            start=START,
            target=1.0,
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Return the version of the scoring, and the transitions."""
        return f"{self.version} {self.buffer} {self.held_out}"

    def further(self, episodes: int) -> list[list[Step]]:
        """Return further episodes of the base environment, played at random, on which models are tested."""
        rng = np.random.default_rng(1)
        return [played(self.env, 2_000 + n, None, rng) for n in range(episodes)]


def _called(program: Program, pairs: Sequence[tuple[Any, str]]) -> list[Any]:
    """Return the values of a program; an error names the state and action of the failed call."""
    try:
        return program.map(pairs)
    except ProgramError as error:
        if error.index is None or error.index >= len(pairs):
            raise
        state, action = pairs[error.index]
        where = f"{error.message}, at state {state!r}, action {action!r}"
        raise type(error)(error.type, where, error.line, error.index) from None


def score(predictions: Sequence[Prediction], steps: Sequence[Step]) -> float:
    """Return the weighted match over steps; every value of the reward has the same total weight."""
    matches = [match(prediction, step) for prediction, step in zip(predictions, steps, strict=True)]
    return 1.0 if min(matches) == 1.0 else float(weights(steps) @ np.array(matches))


def wrong_predictions(
    predictions: Sequence[Prediction], answers: Sequence[Any], steps: Sequence[Step]
) -> str:
    """Describe the share of correct steps, and the first wrong one."""
    wrong = [i for i, (p, s) in enumerate(zip(predictions, steps, strict=True)) if not right(p, s)]
    counted = f"{len(steps) - len(wrong)} of {len(steps)} transitions are right."
    if not wrong:
        return counted
    step, answer = steps[wrong[0]], answers[wrong[0]]
    pieces = _wrong_pieces(predictions[wrong[0]], step)
    return (
        f"{counted} One that is not, in {' and '.join(pieces)}:\n"
        f"state: {step.state!r}\naction: {step.action!r}\n"
        f"expected: {(step.next_state, step.reward, step.done)!r}\nreturned: {repr(answer)[:500]}"
    )


def _wrong_pieces(prediction: Prediction, step: Step) -> list[str]:
    after = step.done or alike(prediction.next_state, step.next_state)
    reward = prediction.reward is not None and alike(prediction.reward, step.reward)
    pieces = {"next state": after, "reward": reward, "done": prediction.done is step.done}
    return [name for name, fine in pieces.items() if not fine]


def _interface(env: Any, steps: Sequence[Step], actions: Sequence[str]) -> str:
    inner = getattr(getattr(env, "env", env), "unwrapped", env)
    doc = inspect.getdoc(type(inner)) or ""
    shown = steps[0]
    return "\n\n".join(
        part
        for part in (
            "Interface:\n"
            f"- state: such as {shown.state!r}; lists and arrays are tuples.\n"
            f"- action: str, one of {', '.join(map(repr, actions))}, in the order of their numbers.\n"
            "- Returns (next_state, reward, done): a state of the same form, a float, a bool. It must depend "
            "on its arguments alone.",
            described(doc) or doc,
            f"```python\n{START}```",
        )
        if part
    )
