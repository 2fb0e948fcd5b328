"""Policies as code: a program acts in any Gymnasium environment, and its fitness is its mean return.

In an environment of numbers a program is ``act(observation, memory)``; in a text environment it is
``act(task, observation, commands, history)``, and returns one of the commands.
"""

from __future__ import annotations

import ast
from contextlib import ExitStack
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from hunch.core import HunchError, UsageError
from hunch.envs.design.code import defined_last, flaw
from hunch.envs.design.limit import limit_of, limit_of_steps, made
from hunch.envs.design.own_code import code_of
from hunch.envs.design.plain import ON_TEXTS, plain_policy, plain_text_policy, sections_of, text_of
from hunch.envs.design.played import Game, TextGame, begun, commands_of
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.envs.design.running import TOTAL, box
from hunch.sandbox import ArgumentError

FIRST_SHOWN = 1_500
"""Maximum number of characters that are shown of the first observation of the example."""
LATER_SHOWN = 300
"""Maximum number of characters that are shown of each later one."""
COMMANDS_SHOWN = 20
"""Maximum number of commands that are shown of a list."""
RANDOM_STEPS = 10
"""Steps of the example in a text environment, which are taken at random."""
OTHER_EPISODES = 3
"""Further episodes whose tasks are named, if they differ."""
BLANK = "Write a policy."
"""The task in the blank prompt."""
IMPORTS = "import numpy as np\n\n"
"""Begins a first policy whose actions are vectors."""
_TOLD = ("Description", "Action Space", "Observation Space", "Rewards", "Starting State", "Episode End")


class PolicyCode(DesignProblem):
    """Write a policy for a Gymnasium environment.

    The fitness is the mean return over a fixed set of episodes; the problem is solved at the
    environment's reward threshold, which counts for episodes with the environment's own limit of steps. The
    environment runs here; the program sees only observations.

    In a text environment (:class:`~hunch.envs.base.TextEnv`) a program sees the task, the observation, the
    commands that are possible now, and the last 200 commands taken with what each led to. The request shows
    the beginning of an episode and a few commands taken at random.

    Args:
        base: Id of the Gymnasium environment: with discrete or continuous actions, or with texts and a list
            of commands.
        episodes: Number of episodes per program.
        split: ``train`` or ``test``: different episodes.
        max_steps: Step limit of an episode. Default: that of the environment, or 2,000 if it has none.
        about: With ``--request plain``: the task, and what the numbers of an observation mean. Default: from
            the environment's own text.
        blank: Leave the task out of what a writer reads: the control that shows whether it reads the task.
            The form of observations and actions stays, without what they mean.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.
    """

    version = "arrays-1"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        base: str = "CartPole-v1",
        episodes: int = 10,
        split: Literal["train", "test"] = "train",
        max_steps: int | None = None,
        about: str = "",
        blank: bool = False,
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        if episodes < 1 or split not in ("train", "test"):
            raise UsageError("episodes must be at least 1, and split train or test.")
        if max_steps is not None and max_steps < 1:  # Gymnasium takes -1 for no limit at all
            raise UsageError(f"max_steps must be at least 1, not {max_steps}.")
        self.base, self.split = base, split
        self.limit = {} if max_steps is None else {"max_episode_steps": max_steps}
        self.seeds = [n + (10_000 if split == "test" else 0) for n in range(episodes)]
        env = self._made()
        self.guard = limit_of(env)
        self.code_of_base = code_of(env)
        self.is_text = isinstance(env.action_space, gym.spaces.Text)
        registered = gym.registry.get(env.spec.id) if env.spec else None
        # That is of whole episodes: where each step costs 1, short ones reach it standing still.
        is_whole = registered is not None and max_steps in (None, registered.max_episode_steps)
        threshold = registered.reward_threshold if registered is not None and is_whole else None
        if blank and about:
            raise UsageError("about says what the task is, and blank leaves it out: give one of them.")
        name, doc = ("", "") if blank else (base, text_of(env))
        parameters: tuple[str, ...]
        if self.is_text:
            example = _example(env)
            shown = "" if blank else example
            interface, start, parameters = _text_interface(doc, shown), TEXT_START, ON_TEXTS
            plain = plain_text_policy(name, doc, shown, about)
        else:
            interface, start, parameters = _interface(doc, env), _start(env), ("observation", "memory")
            start = start if isinstance(env.action_space, gym.spaces.Discrete) else IMPORTS + start
            plain = plain_policy(name, doc, env, about)
        super().__init__(
            task=f"Write a policy that earns as much reward as possible in {base}." if name else BLANK,
            interface=interface,
            function="act",
            parameters=parameters,
            start=start,
            plain=plain,
            target=np.inf if threshold is None else threshold,
            trials=trials,
            render_mode=render_mode,
        )
        env.close()

    def _made(self) -> gym.Env[Any, Any]:
        env = made(self.base, "a policy", **self.limit)
        space = env.action_space
        if isinstance(space, gym.spaces.Text) and isinstance(env.observation_space, gym.spaces.Text):
            return env
        if not isinstance(space, (gym.spaces.Discrete, gym.spaces.Box)):
            kind = "texts" if isinstance(space, gym.spaces.Text) else f"of {space}"
            raise UsageError(
                f"A policy cannot give the actions of {self.base}, which are {kind}: it gives one whole "
                "number (Discrete), a vector (Box), or, where observations are texts, one of the commands."
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
        base = f"{self.base}{self.guard}{self.code_of_base}"
        return f"{self.version} {gym.__version__} {base} {self.limit} {self.seeds}"

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def run(self, program: str, seed: int) -> Trial:
        """Play all episodes in parallel, with one call of the program per step.

        A program whose function takes the observation alone returns the action alone. A second parameter
        with a default is its own, unless it is called ``memory`` or its default is None. In a text
        environment a program fails whose answers were never a command.
        """
        games = self._played(program)
        text_games = [game for game in games if isinstance(game, TextGame)]
        if text_games and all(game.wasted == game.steps for game in text_games):
            raise ValueError(text_games[0].complaint)
        returns = [game.total for game in games]
        worst = games[int(np.argmin(returns))]
        shown = ", ".join(f"{game.total:g} in {game.steps} steps" for game in games)
        components = {"steps": float(np.mean([game.steps for game in games]))}
        if text_games:
            components["success"] = float(np.mean([game.success for game in text_games]))
            components["wasted"] = sum(game.wasted for game in text_games) / sum(
                game.steps for game in text_games
            )
        limits = sum(game.truncated for game in games)
        ends = f"{len(games) - limits} ended by the rules of the environment, {limits} at the limit of steps"
        return Trial(
            float(np.mean(returns)),
            f"return of each episode: {shown}.\nEpisodes: {ends}.\nThe worst episode:\n{worst.summary()}",
            tuple(returns),
            components,
        )

    def _played(self, program: str) -> list[Game]:
        """Play all episodes to their ends; no environment stays open, whatever the program does."""
        remembers = not self.is_text and _remembers(program)
        with ExitStack() as opened:
            games = [self._game(seed, remembers, opened) for seed in self.seeds]
            policy = opened.enter_context(box().load(program, "act", total=TOTAL))
            while live := [game for game in games if not game.over]:
                try:
                    answers = policy.map([game.given() for game in live])
                except ArgumentError as error:
                    if all(game.memory is None for game in live):
                        raise HunchError(f"The observations of {self.base} are too large. {error}") from None
                    raise ValueError(f"the memory is too large: {error}") from None
                for game, answer in zip(live, answers, strict=True):
                    game.step(answer)
        return games

    def _game(self, seed: int, remembers: bool, opened: ExitStack) -> Game:
        env = self._made()
        opened.callback(env.close)
        return TextGame(env, seed, limit_of_steps(env)) if self.is_text else Game(env, seed, remembers)


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


def _is_shown(space: gym.Space[Any]) -> bool:
    """Return whether the observations of a space can be passed to a program."""
    if isinstance(space, gym.spaces.Tuple):
        return all(map(_is_shown, space))
    kinds = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
    return isinstance(space, kinds)


def _interface(doc: str, env: gym.Env[Any, Any]) -> str:
    space = env.observation_space
    form = "as a tuple" if isinstance(space, gym.spaces.Tuple) else "as numpy array or int"
    lines = [
        f"Interface:\n- observation: {space}, {form}.",
        "- memory: what act returned as memory one step before; None at the beginning of an episode.",
        f"- Returns (action, memory): action is of {env.action_space}, memory any plain value.",
        described(doc),
        f"```python\n{IMPORTS}{_start(env)}```",
    ]
    return "\n\n".join(line for line in lines if line)


TEXT_START = """def act(task, observation, commands, history):
    return commands[len(history) % len(commands)]
"""
"""A first policy in a text environment: it goes through the list of commands."""


def _text_interface(doc: str, example: str) -> str:
    arguments = "\n".join(
        [
            "Interface:",
            "- task: the task, a text.",
            "- observation: the last observation, a text.",
            "- commands: the commands that are possible now, a list of texts.",
            "- history: the commands taken so far, a list of pairs (command, the observation after it).",
            "- Returns one of the commands.",
        ]
    )
    lines = [arguments, described(doc), example, f"```python\n{TEXT_START}```"]
    return "\n\n".join(line for line in lines if line)


def _example(env: gym.Env[Any, Any]) -> str:
    """Return the beginning of an episode, and what a few commands lead to.

    They are taken at random, those first whose first word has not been taken: so the example shows many
    kinds of commands, and nothing of how the task is solved. Where tasks differ from episode to episode, some
    others are named, or a model takes the first for the only one.
    """
    chance = np.random.default_rng(0)
    observation, info = begun(env, 0)
    task = str(info.get("task", ""))
    commands, words = commands_of(env, info), set[str]()
    shown = ", ".join(map(repr, commands[:COMMANDS_SHOWN]))
    more = f", and {len(commands) - COMMANDS_SHOWN} more" if len(commands) > COMMANDS_SHOWN else ""
    lines = [
        "An episode begins like this:",
        f"task = {task!r}",
        f"observation = {str(observation)[:FIRST_SHOWN]!r}",
        f"commands = [{shown}{more}]",
        "Some commands, taken at random, and the observations after them:",
    ]
    for _ in range(RANDOM_STEPS):
        new = [command for command in commands if command.partition(" ")[0] not in words] or commands
        command = new[int(chance.integers(len(new)))]
        words.add(command.partition(" ")[0])
        observation, _, terminated, truncated, info = env.step(command)
        lines.append(f"{command!r}: {str(observation)[:LATER_SHOWN]!r}")
        if terminated or truncated:
            break
        commands = commands_of(env, info)
    others = {str(begun(env, seed)[1].get("task", "")): None for seed in range(1, OTHER_EPISODES + 1)}
    others.pop(task, None)
    if others:
        lines.append(f"In other episodes the task is another one: {', '.join(map(repr, others))}.")
    return "\n".join(lines)


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
