"""``hunch play``: steps an environment by hand, with or without a trained agent, or lets the agent play.

Actions are chosen by number, by text, or by a unique beginning of the text; Tab completes them if the
terminal supports it. With an agent, actions are sorted by the probability with which it takes them, and
actions that it does not consider are dim.
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
from hunch.core import Agent, Explanation, Player, State, UsageError
from hunch.envs import make, options_of
from hunch.ranges import PositiveInt
from hunch.rl.action_texts import shown_as, typed
from hunch.rl.rollout import Rollout, TextEnvironment
from hunch.runs.environments import refuse_object
from hunch.runs.loading import load_agent
from hunch.runs.stored import read_run


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """Step an environment by hand, or watch the agent of a run."""

    env: Annotated[str, tyro.conf.Positional] = ""
    """Environment id; its options are given as --env.NAME VALUE. Default: the environment of the run."""
    run: Path | None = None
    """Folder of a run. Its agent's numbers, such as prior and Q, are shown next to each action."""
    checkpoint: Literal["last", "best"] = "last"
    """Checkpoint of the run: the last one, or the one of its best evaluation."""
    step: PositiveInt | None = None
    """Environment step of a checkpoint that the run kept (--keep-every); replaces --checkpoint."""
    seed: int = 0
    """Seed of the episode."""
    auto: bool = False
    """With --run: the agent chooses every action; you only watch."""
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


def play(arguments: Sequence[str]) -> None:
    """Play one episode in the terminal."""
    rest, env_options = split_environment(arguments)
    options = read(PlayOptions, prog="hunch play", args=rest)
    agent, env_id = None, options.env
    if options.run:
        config = read_run(options.run)
        if env_id and env_id.rpartition(":")[2] != config.env.rpartition(":")[2]:
            raise UsageError(f"The run in {options.run} uses {config.env}, not {env_id}; leave the id out.")
        refuse_object(config)
        env_id, env_options = config.env, env_options or config.env_options
        agent, _ = load_agent(options.run, checkpoint=options.step or options.checkpoint)
    if not env_id:
        raise UsageError("Name an environment, as in 'hunch play hunch/FrozenLake-v0'.")
    if options.seed < 0 or not options.pause >= 0:
        raise UsageError(f"seed and pause must not be negative, not {options.seed} and {options.pause}.")
    if options.auto and agent is None:
        raise UsageError("--auto needs the agent of a run: give its folder with --run.")
    pause = options.pause if options.auto else None
    try:
        play_episode(_visible(env_id, env_options), agent, options.seed, Console(), pause)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("left the episode; nothing was changed or saved.") from None


def _visible(env_id: str, options: dict[str, Any]) -> TextEnvironment:
    """Make the environment with text rendering, if it has one."""
    env = make(env_id, **options)
    known = options_of(env_id)
    if known is not None and "render_mode" not in known:
        return env
    drawn = options.keys() & {"render_mode", "picture", "reader"}
    if drawn or "ansi" not in env.metadata.get("render_modes", ()):
        return env
    try:
        return make(env_id, render_mode="ansi", **options)
    except UsageError:
        if known is not None:
            raise
        return env  # it takes any option, and passes it on to something that does not


def play_episode(
    env: TextEnvironment, agent: Agent | None, seed: int, console: Console, pause: float | None = None
) -> None:
    """Ask for actions until the episode ends or the player quits.

    Args:
        env: The environment.
        agent: The agent whose values and probabilities are shown, and which can play; None without one.
        seed: Seed of the episode.
        console: The console to print to.
        pause: Seconds between steps while the agent plays; with None the user chooses every action.
    """
    rollout, actions, total, solved = Rollout([env], seeds=[seed]), list[str](), 0.0, False
    player = agent.player(seed) if agent else None
    if rollout.states[0].task:
        console.print(f"Task: {rollout.states[0].task}", markup=False, highlight=False)
    while rollout.states:
        state = rollout.states[0]
        _show(env, state.observation, console)
        console.print(_menu(state, agent))
        answer = "auto" if pause is not None else _ask(state, player, console)
        if answer == "quit":
            return
        if answer == "undo":
            rollout, total = _without_last(env, seed, actions, console)
            continue
        if answer == "auto" and player:
            pause = 0.0 if pause is None else pause
            answer = _chosen(state, player, console)
            time.sleep(pause)
        (step,) = rollout.step([answer])
        actions.append(answer)
        total, solved = total + step.reward, step.success
        if step.done:
            _show(env, step.next_state.observation, console)
    outcome = "[green]Solved[/green]" if solved else "[red]Not solved[/red]"
    console.print(f"{outcome}; {len(actions)} actions, return {total:g}.", highlight=False)


def _chosen(state: State, player: Player, console: Console) -> str:
    """Print and return the agent's choice."""
    action = player.act([state])[0]
    console.print(f"> {action}", markup=False, style="bold")
    return action


def _show(env: TextEnvironment, observation: str, console: Console) -> None:
    """Print the observation or rendering."""
    text = env.render() if env.render_mode == "ansi" else observation
    console.print(f"\n{text}\n", markup=False, highlight=False)


def _without_last(
    env: TextEnvironment, seed: int, actions: list[str], console: Console
) -> tuple[Rollout, float]:
    """Undo the last action by replaying the episode without it."""
    if not actions:
        console.print("There is nothing to undo.")
    del actions[-1:]
    rollout = Rollout([env], seeds=[seed])
    return rollout, sum(rollout.step([action])[0].reward for action in actions)


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
    choice = ", Enter for the agent's choice" if player else ""
    with _completion(state.options):
        while True:
            try:
                answer = console.input(f"number or action{choice} (help, undo, quit): ").strip()
            except EOFError:
                return "quit"
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
                console.print("There is no agent here: use 'hunch play --run DIR'.", markup=False)
            else:
                return command


def _help(player: Player | None, console: Console) -> None:
    """Print the commands."""
    enter = {"Enter": "the agent's choice"} if player else {}
    actions = {"7": "the action with this number", "go n": "the action that begins with this text"}
    for entry, does in {**actions, **enter, **COMMANDS}.items():
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
