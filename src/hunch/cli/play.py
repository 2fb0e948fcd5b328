"""``hunch play``: steps an environment by hand, with or without a trained agent, or lets the agent play.

Actions are chosen by number, by text, or by a unique beginning of the text; Tab completes them if the
terminal supports it. With an agent, actions are sorted by the probability with which it takes them, and
actions that it does not consider are dim. Where any text is an action, what is typed is the action, and
commands begin with a slash. In a game of several players the agent plays the other seats.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hunch.cli.environment import split_environment
from hunch.cli.options import read
from hunch.core import Agent, Explanation, Player, State, Transition, UsageError, World
from hunch.envs import TextWrapper, make, options_of
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch.rl.action_texts import shown_as, typed
from hunch.rl.rollout import Rollout, TextEnvironment
from hunch.runs.config import RunConfig
from hunch.runs.data import options_with_data
from hunch.runs.environments import refuse_object
from hunch.runs.loading import load_agent
from hunch.runs.processes import stoppable
from hunch.runs.resolve import resolve
from hunch.runs.stored import read_run


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """Step an environment by hand, or watch a model or the agent of a run."""

    env: Annotated[str, tyro.conf.Positional] = ""
    """Environment id; its options are given as --env.NAME VALUE. Default: the environment of the run."""
    run: Path | None = None
    """Folder of a run. Its agent's numbers, such as prior and Q, are shown next to each action."""
    checkpoint: Literal["last", "best"] = "last"
    """Checkpoint of the run: the last one, or the one of its best evaluation."""
    step: PositiveInt | None = None
    """Environment step of a checkpoint that the run kept (--keep-every); replaces --checkpoint."""
    lm: str = ""
    """Language model that plays, as the method zero-shot does, in place of the agent of a run."""
    seat: NonNegativeInt = 0
    """Your seat in a game of several players. With --run or --lm the agent plays the others."""
    seed: int = 0
    """Seed of the episode."""
    auto: bool = False
    """With --run or --lm: the agent chooses every action; you only watch."""
    pause: float = 0.5
    """With --auto: seconds between steps."""


COMMANDS = {
    "help": "these commands",
    "undo": "undo the last action",
    "auto": "let the agent play until the end",
    "quit": "leave",
}
"""Commands that can be typed instead of an action, if no action begins with the same letters. The first
letter is enough."""


class Command(str):
    """What the user typed is a command, and no action of the same text."""

    __slots__ = ()


def play(arguments: Sequence[str]) -> None:
    """Play one episode in the terminal."""
    with stoppable("left the episode; nothing was changed or saved."):
        _play(arguments)


def _play(arguments: Sequence[str]) -> None:
    rest, env_options = split_environment(arguments)
    options = read(PlayOptions, prog="hunch play", args=rest)
    agent, env_id = None, options.env
    if options.run:
        config = read_run(options.run)
        if env_id and env_id.rpartition(":")[2] != config.env.rpartition(":")[2]:
            raise UsageError(f"The run in {options.run} uses {config.env}, not {env_id}; leave the id out.")
        refuse_object(config)
        env_id, env_options = config.env, {**options_with_data(config), **env_options}
        agent, _ = load_agent(options.run, checkpoint=options.step or options.checkpoint)
    if options.lm and options.run:
        raise UsageError("--run and --lm both name who plays: leave one of them out.")
    if not options.run and (options.step or options.checkpoint != "last"):
        raise UsageError("--step and --checkpoint name the agent of a run: add --run DIR.")
    if not env_id:
        raise UsageError("Name an environment, as in 'hunch play hunch/FrozenLake-v0'.")
    if options.seed < 0 or not options.pause >= 0:
        raise UsageError(f"seed and pause must not be negative, not {options.seed} and {options.pause}.")
    if options.auto and agent is None and not options.lm:
        raise UsageError("--auto needs a player: a model with --lm, or the folder of a run with --run.")
    pause = options.pause if options.auto else None
    env = _visible(env_id, env_options)
    if options.lm:
        agent = _zero_shot(options.lm, options.seed)
    play_episode(env, agent, options.seed, Console(), pause, seat=options.seat)


def _visible(env_id: str, options: dict[str, Any]) -> TextEnvironment:
    """Make the environment with text rendering, if it has one."""
    env = make(env_id, **options)
    known = options_of(env_id)
    if known is not None and "render_mode" not in known:
        return env
    drawn = options.keys() & {"render_mode", "picture", "reader"}
    inner = env.unwrapped
    # A wrapper shows its text in any mode, but hands the mode on to what it wraps.
    drawing = inner.env if isinstance(inner, TextWrapper) else env
    if drawn or "ansi" not in drawing.metadata.get("render_modes", ()):
        return env
    try:
        return make(env_id, render_mode="ansi", **options)
    except UsageError:
        if known is not None:
            raise
        return env  # it takes any option, and passes it on to something that does not


def _zero_shot(spec: str, seed: int) -> Agent:
    """Load a model, and let it play as the method zero-shot does."""
    agent, _ = resolve(RunConfig(method="zero-shot", env="", lm=spec)).build()
    agent.begin(World(), seed)
    return agent


def play_episode(
    env: TextEnvironment,
    agent: Agent | None,
    seed: int,
    console: Console,
    pause: float | None = None,
    *,
    seat: int = 0,
) -> None:
    """Ask for actions until the episode ends or the player quits.

    Args:
        env: The environment.
        agent: The agent whose values and probabilities are shown, and which can play; None without one.
        seed: Seed of the episode.
        console: The console to print to.
        pause: Seconds between steps while the agent plays; with None the user chooses every action.
        seat: The user's seat in an environment of several players; an agent plays the others.

    Raises:
        UsageError: if there is no such seat.
    """
    episode = _Episode(env, agent, seed)
    rollout = episode.rollout
    if seat >= rollout.players:
        raise UsageError(f"There is no seat {seat}: this environment has {rollout.players}, numbered from 0.")
    if rollout.states[0].task:
        console.print(f"Task: {rollout.states[0].task}", markup=False, highlight=False)
    while episode.rollout.states:
        state = episode.rollout.states[0]
        is_others = agent is not None and rollout.players > 1 and state.seat != seat
        if rollout.players > 1:
            console.print(f"\nPlayer {state.seat}:", highlight=False)
        _show(env, state.observation, console)
        if state.actions is not None:
            console.print(_menu(state, agent))
        plays = pause is not None or is_others
        answer = Command("auto") if plays else _ask(state, episode.player, console)
        command = str(answer) if isinstance(answer, Command) else ""
        if command == "quit":
            return
        if command == "undo":
            if not episode.undo(seat if agent else None):
                console.print("There is nothing to undo.")
            continue
        if command == "auto" and episode.player:
            if not is_others and pause is None:
                pause = 0.0
            answer = _chosen(state, episode.player, console)
            time.sleep(pause or 0.0)
        for step in episode.step(answer):
            if step.done and step.state.seat == state.seat:
                _show(env, step.next_state.observation, console)
    outcome = "[green]Solved[/green]" if episode.solved else "[red]Not solved[/red]"
    returns = ", ".join(f"{total:g}" for _, total in sorted(episode.totals.items()))
    each = "returns" if rollout.players > 1 else "return"
    console.print(f"{outcome}; {len(episode.actions)} actions, {each} {returns}.", highlight=False)


class _Episode:
    """An episode that can be undone: it is played again from its seed.

    Attributes:
        rollout: The environment in its present state.
        player: Who plays, if there is an agent; it has seen the episode.
        actions: The actions so far, of all seats.
        movers: The seat of each action.
        totals: Return so far by seat.
        solved: True if the task is solved.
    """

    def __init__(self, env: TextEnvironment, agent: Agent | None, seed: int) -> None:
        self.env, self.agent, self.seed = env, agent, seed
        self._begin()

    def _begin(self) -> None:
        self.rollout = Rollout([self.env], seeds=[self.seed])
        self.player = self.agent.player(self.seed) if self.agent else None
        self.actions: list[str] = []
        self.movers: list[int] = []
        self.totals = dict.fromkeys(range(self.rollout.players), 0.0)
        self.solved = False

    def step(self, action: str) -> list[Transition]:
        """Take an action; return the transitions that it completes."""
        self.movers.append(self.rollout.states[0].seat)
        self.actions.append(action)
        transitions = self.rollout.step([action])
        for transition in transitions:
            self.totals[transition.state.seat] += transition.reward
            self.solved = transition.success
        if self.player:
            self.player.observe(transitions)
        return transitions

    def undo(self, seat: int | None) -> bool:
        """Take back the last action, or the last one of a seat; return whether there was one."""
        several = seat is not None and self.rollout.players > 1
        places = [i for i, mover in enumerate(self.movers) if not several or mover == seat]
        if not places:
            return False
        kept = self.actions[: places[-1]]
        self._begin()
        for action in kept:
            self.step(action)
        return True


def _chosen(state: State, player: Player, console: Console) -> str:
    """Print and return the agent's choice."""
    action = player.act([state])[0]
    console.print(f"> {action}", markup=False, style="bold")
    return action


def _show(env: TextEnvironment, observation: str, console: Console) -> None:
    """Print the observation or rendering."""
    text = env.render() if env.render_mode == "ansi" else observation
    console.print(f"\n{text}\n", markup=False, highlight=False)


def _menu(state: State, agent: Agent | None) -> Table:
    """Return a table of the admissible actions with the agent's numbers, the most likely first."""
    grid = Table(box=None, pad_edge=False)
    grid.add_column("", justify="right")
    grid.add_column("action")
    opinion = agent.explain(state) if agent else Explanation()
    grid.caption, grid.caption_justify = opinion.note or None, "left"
    chosen = {} if opinion.chosen is None else {"posterior": opinion.chosen}
    columns = {**opinion.columns, **chosen}
    for heading in columns:
        grid.add_column(heading, justify="right")
    share = np.zeros(len(state.options)) if opinion.chosen is None else opinion.chosen
    for number in np.argsort(-share, kind="stable"):
        figures = [f"{column[number]:.3f}" for column in columns.values()]
        bar = ["█" * round(10 * float(share[number]))] if chosen else []
        style = "" if not chosen else "bold cyan" if share[number] == share.max() else ""
        style = "dim" if chosen and not share[number] > 0 else style
        grid.add_row(str(number), Text(state.options[number]), *figures, *bar, style=style)
    return grid


def _ask(state: State, player: Player | None, console: Console) -> str:
    """Read an action or a command; Enter takes the agent's choice."""
    if state.actions is None:
        return _ask_text(state, player, console)
    choice = ", Enter for the agent's choice" if player else ""
    with _completion(state.options):
        while True:
            try:
                answer = console.input(f"number or action{choice} (help, undo, quit): ").strip()
            except EOFError:
                return Command("quit")
            if not answer and player:
                return _chosen(state, player, console)
            meant = matches(answer, state.options)
            if len(meant) == 1:
                return meant[0]
            command = next((name for name in COMMANDS if answer and name.startswith(answer)), None)
            if meant or command is None:
                problem = f"could be {', '.join(meant)}" if meant else "is not an admissible action here"
                console.print(f"{answer!r} {problem}.", markup=False)
            elif command == "help":
                _help(player, console)
            elif command == "auto" and player is None:
                console.print(
                    "There is no agent here: use 'hunch play --run DIR' or --lm SPEC.", markup=False
                )
            else:
                return Command(command)


def _ask_text(state: State, player: Player | None, console: Console) -> str:
    """Read an action where any text is one; a command begins with a slash."""
    choice = ", Enter for the agent's choice" if player else ""
    while True:
        try:
            answer = console.input(f"action{choice} (/help, /undo, /quit): ").strip()
        except EOFError:
            return Command("quit")
        if not answer:
            if player:
                return _chosen(state, player, console)
            continue
        if not answer.startswith("/"):
            return answer
        command = next((name for name in COMMANDS if answer[1:] and name.startswith(answer[1:])), None)
        if command is None:
            console.print(f"There is no command {answer!r}: type /help.", markup=False)
        elif command == "help":
            _help(player, console, mark="/")
        elif command == "auto" and player is None:
            console.print("There is no agent here: use 'hunch play --run DIR' or --lm SPEC.", markup=False)
        else:
            return Command(command)


def _help(player: Player | None, console: Console, mark: str = "") -> None:
    """Print the commands; ``mark`` stands before each."""
    enter = {"Enter": "the agent's choice"} if player else {}
    actions = {"7": "the action with this number", "go n": "the action that begins with this text"}
    if mark:
        actions = {"text": "any text that does not begin with a slash is the action"}
    commands = {f"{mark}{name}": does for name, does in COMMANDS.items()}
    for entry, does in {**actions, **enter, **commands}.items():
        console.print(f"  {entry:<6} {does}", markup=False, highlight=False)


def matches(answer: str, actions: Sequence[str]) -> list[str]:
    """Return the actions that an answer may mean, by number, by text, or by the beginning of the text."""
    if (action := shown_as(answer, actions)) is not None:
        return [action]
    answer = answer.strip()
    if answer.isdecimal() and int(answer) < len(actions):
        return [actions[int(answer)]]
    if answer in ("", "q", "u", *COMMANDS):
        return []
    return typed(answer, actions)


@contextmanager
def _completion(actions: Sequence[str]) -> Iterator[None]:
    """Let Tab complete the actions, if Python was built with readline."""
    with suppress(ImportError):
        import readline

        readline.set_completer_delims("")
        readline.parse_and_bind("tab: complete")
        readline.set_completer(lambda text, i: [*matches(text, actions), None][i] if text else None)
    yield
    with suppress(ImportError):
        import readline

        readline.set_completer(None)
