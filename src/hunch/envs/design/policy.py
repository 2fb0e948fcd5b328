"""Policies as code: a program acts in any Gymnasium environment, and its fitness is its mean return."""

from __future__ import annotations

import ast
import contextlib
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from hunch.core import HunchError, UsageError
from hunch.envs.design.code import defined_last, flaw
from hunch.envs.design.limit import limit_of, made
from hunch.envs.design.plain import plain_policy, sections_of, text_of
from hunch.envs.design.problem import DesignProblem, OutsideError, Trial
from hunch.envs.design.running import TOTAL, box
from hunch.numbers import number
from hunch.sandbox import ArgumentError

SHOWN = 3
"""Number of steps of the worst episode in the feedback, from its beginning and from its end."""
SHORT = 100
"""Maximum number of entries of an array that is shown in full."""
IMPORTS = "import numpy as np\n\n"
"""Begins a first policy whose actions are vectors."""
_TOLD = ("Description", "Action Space", "Observation Space", "Rewards", "Starting State", "Episode End")


class PolicyCode(DesignProblem):
    """Write a policy for a Gymnasium environment.

    The fitness is the mean return over a fixed set of episodes; the problem is solved at the
    environment's reward threshold. The environment runs here; the program sees only observations.

    Args:
        base: Id of the Gymnasium environment, with discrete or continuous actions.
        episodes: Number of episodes per program.
        split: ``train`` or ``test``: different episodes.
        max_steps: Step limit of an episode. Default: that of the environment, or 2,000 if it has none.
        about: With ``--request plain``: the task, and what the numbers of an observation mean. Default: from
            the environment's own text.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.
    """

    version = "defaults-1"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        base: str = "CartPole-v1",
        episodes: int = 10,
        split: Literal["train", "test"] = "train",
        max_steps: int | None = None,
        about: str = "",
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        if episodes < 1 or split not in ("train", "test"):
            raise UsageError("episodes must be at least 1, and split train or test.")
        self.base, self.split = base, split
        self.limit = {} if max_steps is None else {"max_episode_steps": max_steps}
        self.seeds = [n + (10_000 if split == "test" else 0) for n in range(episodes)]
        env = self._made()
        self.guard = limit_of(env)
        threshold = env.spec.reward_threshold if env.spec else None
        super().__init__(
            task=f"Write a policy that earns as much reward as possible in {base}.",
            interface=_interface(env),
            function="act",
            parameters=("observation", "memory"),
            start=_start(env) if isinstance(env.action_space, gym.spaces.Discrete) else IMPORTS + _start(env),
            plain=plain_policy(base, text_of(env), env, about),
            target=np.inf if threshold is None else threshold,
            trials=trials,
            render_mode=render_mode,
        )
        env.close()

    def _made(self) -> gym.Env[Any, Any]:
        env = made(self.base, "a policy", **self.limit)
        space = env.action_space
        if not isinstance(space, (gym.spaces.Discrete, gym.spaces.Box)):
            kind = "texts" if isinstance(space, gym.spaces.Text) else f"of {space}"
            raise UsageError(
                f"A policy cannot give the actions of {self.base}, which are {kind}: it gives one whole "
                "number (Discrete) or a vector (Box)."
            )
        if not _is_shown(env.observation_space):
            raise UsageError(
                f"A policy cannot be shown the observations of {self.base}, which are of "
                f"{env.observation_space}: flatten them first, such as with "
                "gymnasium.wrappers.FlattenObservation."
            )
        return env

    def identity(self) -> str:
        """Return the version of the scoring, environment and episodes."""
        return f"{self.version} {gym.__version__} {self.base}{self.guard} {self.limit} {self.seeds}"

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def run(self, program: str, seed: int) -> Trial:
        """Play all episodes in parallel, with one call of the program per step.

        A program whose function takes the observation alone returns the action alone. A second parameter
        with a default is its own, unless it is called ``memory`` or its default is None.
        """
        remembers = _remembers(program)
        games = [_Game(self._made(), seed) for seed in self.seeds]
        with box().load(program, "act", total=TOTAL) as policy:
            while live := [game for game in games if not game.over]:
                try:
                    given = [
                        (game.observation, game.memory) if remembers else (game.observation,) for game in live
                    ]
                    answers = policy.map(given)
                except ArgumentError as error:
                    if all(game.memory is None for game in live):
                        raise HunchError(f"The observations of {self.base} are too large. {error}") from None
                    raise ValueError(f"the memory is too large: {error}") from None
                for game, answer in zip(live, answers, strict=True):
                    game.step(answer if remembers else (answer, None))
        returns = [game.total for game in games]
        worst = games[int(np.argmin(returns))]
        shown = ", ".join(f"{game.total:g} in {game.steps} steps" for game in games)
        limits = sum(game.truncated for game in games)
        ends = f"{len(games) - limits} ended by the rules of the environment, {limits} at the limit of steps"
        return Trial(
            float(np.mean(returns)),
            f"return of each episode: {shown}.\nEpisodes: {ends}.\nThe worst episode:\n{worst.summary()}",
            tuple(returns),
            {"steps": float(np.mean([game.steps for game in games]))},
        )


def _remembers(program: str) -> bool:
    """Return whether a program's function takes a memory, and so returns one beside the action."""
    if flaw(program, "act", ("observation", "memory")):
        return False
    definition = defined_last(ast.parse(program).body, "act")
    assert definition is not None
    named = (*definition.args.posonlyargs, *definition.args.args)
    has_default = len(named) > 1 and len(definition.args.defaults) > len(named) - 2
    if not has_default or named[1].arg == "memory":
        return True
    default = definition.args.defaults[1 - len(named)]
    return isinstance(default, ast.Constant) and default.value is None


class _Game:
    """An episode in progress."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        self.env = env
        try:
            observation, _ = env.reset(seed=seed)
        except Exception as error:
            raise HunchError(f"The environment raised {type(error).__name__} in reset(): {error}") from error
        self.observation = _plain(observation)
        self.memory: Any = None
        self.total, self.steps, self.over = 0.0, 0, False
        self.truncated = False
        self.lines: list[str] = []

    def step(self, answer: Any) -> None:
        """Take the action in a program's answer, if it is valid.

        Raises:
            ValueError: if it is not.
            OutsideError: if the environment fails, so that no writer looks for the error in its program.
        """
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ValueError("act must return (action, memory)")
        action, self.memory = answer
        before, taken = self.observation, _action(action, self.env.action_space)
        try:
            observation, reward, terminated, truncated, _ = self.env.step(taken)
        except (Exception, SystemExit) as error:
            raise OutsideError(f"the environment raised {type(error).__name__}: {error}") from error
        rewarded = number(reward, finite=True)
        if rewarded is None:
            raise OutsideError(
                f"the environment gave {_short(reward)} as the reward after the action {_short(taken)}, "
                "and a reward has to be a finite number"
            )
        self.observation = _plain(observation)
        self.total += rewarded
        self.steps += 1
        self.over = terminated or truncated
        self.truncated = truncated and not terminated
        self.lines.append(f"observation {_short(before)}, action {_short(taken)}, reward {rewarded:g}")
        if self.over:
            self.env.close()

    def summary(self) -> str:
        """Describe the first and last steps, and why the episode ended."""
        lines = self.lines
        if len(lines) > 2 * SHOWN:
            lines = [*lines[:SHOWN], "...", *lines[-SHOWN:]]
        why = "at the limit of steps" if self.truncated else "by the rules of the environment"
        return "\n".join([*lines, f"It ended after {self.steps} steps, {why}."])


def _action(action: Any, space: gym.Space[Any]) -> Any:
    """Return the action in the form that the environment expects.

    Raises:
        ValueError: if it is not an action.
    """
    if isinstance(space, gym.spaces.Discrete):
        fits = isinstance(action, (bool, int)) or (isinstance(action, float) and action == int(action))
        if not fits or not space.contains(int(action)):
            raise ValueError(
                f"the action {_named(action)} no integer from {space.start} to {space.start + space.n - 1}"
            )
        return int(action)
    assert isinstance(space, gym.spaces.Box)
    row = None
    if isinstance(action, (int, float, list, tuple, np.ndarray)):
        with contextlib.suppress(ValueError):  # lists of different lengths are no array
            row = np.atleast_1d(np.asarray(action))
    if row is not None and row.shape == (int(np.prod(space.shape)),):  # a plain request asks for a list
        row = row.reshape(space.shape)
    if row is None or row.dtype.kind not in "iufb" or row.shape != space.shape:
        raise ValueError(f"the action {_named(action)} no array of shape {space.shape}")
    with np.errstate(over="ignore"):
        taken = np.clip(row, space.low, space.high).astype(space.dtype)
    if not np.isfinite(taken).all():
        raise ValueError(f"the action {_short(action)} is too large for numbers of type {space.dtype}")
    return taken


def _plain(observation: Any) -> Any:
    """Return an observation in a form that can be passed to a program."""
    if isinstance(observation, np.ndarray):
        return observation.astype(float)
    if isinstance(observation, tuple):
        return tuple(_plain(part) for part in observation)
    if isinstance(observation, (int, np.integer, np.bool_)):
        return int(observation)
    if isinstance(observation, (float, np.floating)):  # of a box that holds a single number
        return float(observation)
    raise HunchError(f"A policy cannot be shown an observation of type {type(observation).__name__}.")


def _is_shown(space: gym.Space[Any]) -> bool:
    """Return whether the observations of a space can be passed to a program."""
    if isinstance(space, gym.spaces.Tuple):
        return all(map(_is_shown, space))
    kinds = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
    return isinstance(space, kinds)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = np.round(value, 3).tolist() if 0 < value.size <= SHORT else f"array of shape {value.shape}"
    return str(value)[:120]


def _named(action: Any) -> str:
    """Begin a sentence about what an action is not; of a text of digits it says that it is a text."""
    return f"{_short(repr(action))} is a text, and" if isinstance(action, str) else f"{_short(action)} is"


def _interface(env: gym.Env[Any, Any]) -> str:
    lines = [
        f"Interface:\n- observation: {env.observation_space}, as numpy array or int.",
        "- memory: what act returned as memory one step before; None at the beginning of an episode.",
        f"- Returns (action, memory): action is of {env.action_space}, memory any plain value.",
        described(text_of(env)),
        f"```python\n{IMPORTS}{_start(env)}```",
    ]
    return "\n\n".join(line for line in lines if line)


def described(doc: str, without: tuple[str, ...] = ()) -> str:
    """Return the environment's description, without history, arguments and the named sections."""
    return "\n\n".join(
        f"{name}:\n{text}" for name, text in sections_of(doc).items() if name in _TOLD and name not in without
    )


def _start(env: gym.Env[Any, Any]) -> str:
    """Return a first policy, which uses one number of the observation."""
    space, seen = env.action_space, _one_number("observation", env.observation_space)
    if isinstance(space, gym.spaces.Discrete):
        high = int(space.start + space.n - 1)
        answer = f"{high} if score > 0.0 else {int(space.start)}"
    else:
        answer = f"np.full({space.shape}, score)"
    return f"def act(observation, memory):\n    score = 1.0 * {seen}\n    return ({answer}), memory\n"


def _one_number(name: str, space: gym.Space[Any]) -> str:
    """Return the expression for the first number of an observation."""
    if isinstance(space, gym.spaces.Tuple):
        return _one_number(f"{name}[0]", space[0])
    return name + "[0]" * len(space.shape or ())
