"""``hunch play``: step an environment by hand, alone or beside a trained agent.

Actions are chosen by number, by text, or by as much of the text as tells them apart; Tab completes them where
the terminal can.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hunch.cli.options import split_environment
from hunch.core import Agent, State, UsageError
from hunch.envs import make
from hunch.runs.execute import load_agent
from hunch.runs.rollout import TextEnvironment


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """What to play."""

    env: Annotated[str, tyro.conf.Positional] = ""
    """Environment id; its own options follow as --env.NAME VALUE. Default: that of the run."""
    run: Path | None = None
    """A run's folder: its agent's prior, Q and posterior are shown beside every action."""
    seed: int = 0
    """Of the episode."""


def play(arguments: Sequence[str]) -> None:
    """Play one episode in the terminal."""
    rest, env_options = split_environment(arguments)
    options = tyro.cli(PlayOptions, prog="hunch play", args=rest)
    agent, env_id = None, options.env
    if options.run:
        agent, config = load_agent(options.run)
        env_id, env_options = env_id or config.env, env_options or config.env_options
    if not env_id:
        raise UsageError("Name an environment, as in 'hunch play hunch/FrozenLake-v0'.")
    play_episode(_visible(env_id, env_options), agent, options.seed, Console())


def _visible(env_id: str, options: dict[str, Any]) -> TextEnvironment:
    """Make the environment so that it can be looked at, where it has a text to render."""
    env = make(env_id, **options)
    seen = "ansi" in env.metadata.get("render_modes", ()) and "render_mode" not in options
    return make(env_id, render_mode="ansi", **options) if seen else env


@dataclass(frozen=True, slots=True)
class Moment:
    """An episode at one point of it."""

    env: TextEnvironment
    observation: str
    info: dict[str, Any]
    total: float = 0.0
    over: bool = False

    @property
    def state(self) -> State:
        """What an agent knows now."""
        return State.read(self.observation, self.info)

    def fork(self) -> Moment | None:
        """Return this moment with an environment of its own; None where the environment cannot be copied."""
        try:
            return replace(self, env=copy.deepcopy(self.env))
        except Exception:  # whatever somebody's environment cannot copy
            return None

    def step(self, action: str) -> Moment:
        """Take an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return Moment(self.env, observation, info, self.total + float(reward), terminated or truncated)

    def show(self, console: Console) -> None:
        """Print what there is to see."""
        text = self.env.render() if self.env.render_mode == "ansi" else self.observation
        console.print(f"\n{text}\n", markup=False, highlight=False)


def play_episode(env: TextEnvironment, agent: Agent | None, seed: int, console: Console) -> None:
    """Ask for actions until the episode is over or the player leaves with q; u takes the last one back."""
    now = Moment(env, *env.reset(seed=seed))
    past: list[Moment] = []
    if now.state.task:
        console.print(f"Task: {now.state.task}", markup=False, highlight=False)
    while not now.over:
        now.show(console)
        console.print(_menu(now.state, agent))
        answer = _ask(now.state, agent, console)
        if answer is None:
            return
        if answer == "":
            now = _back(past, console) or now
            continue
        before = now.fork()
        past = [*past, before] if before else []
        now = now.step(answer)
    now.show(console)
    console.print(f"{'Solved' if now.info.get('success') else 'Not solved'}; return {now.total:g}.")


def _back(past: list[Moment], console: Console) -> Moment | None:
    if past:
        return past.pop()
    console.print("There is nothing to take back, or this environment cannot be copied.")
    return None


def _menu(state: State, agent: Agent | None) -> Table:
    """The admissible actions, numbered, with what the agent thinks of each."""
    grid = Table(box=None, pad_edge=False)
    grid.add_column("", justify="right")
    grid.add_column("action")
    if agent is None:
        for number, action in enumerate(state.actions):
            grid.add_row(str(number), action)
        return grid
    opinion = agent.explain(state)
    for heading in ("prior", "Q", "posterior"):
        grid.add_column(heading, justify="right")
    for number, action in enumerate(state.actions):
        figures = (opinion.prior[number], opinion.q[number], opinion.posterior[number])
        bar = "█" * round(10 * float(opinion.posterior[number]))
        grid.add_row(str(number), action, *(f"{x:.3f}" for x in figures), bar)
    return grid


def _ask(state: State, agent: Agent | None, console: Console) -> str | None:
    """Read an action; Enter is the agent's choice, u gives the empty one, which takes back, q gives None."""
    choice = ", Enter for the agent's choice" if agent else ""
    with _completion(state.actions):
        while True:
            try:
                answer = console.input(f"number or action{choice}, u to undo, q to leave: ").strip()
            except EOFError:
                return None
            if not answer and agent:
                action = agent.act([state], explore=False)[0]
                console.print(f"> {action}", markup=False)
                return action
            meant = matches(answer, state.actions)
            if len(meant) == 1:
                return meant[0]
            if answer in ("q", "u") and not meant:
                return None if answer == "q" else ""
            problem = f"could be {', '.join(meant)}" if meant else "is not an admissible action here"
            console.print(f"{answer!r} {problem}.", markup=False)


def matches(answer: str, actions: Sequence[str]) -> list[str]:
    """Return the actions that an answer may mean: its number, its text, or the beginning of its text."""
    if answer in actions:
        return [answer]
    if answer.isdecimal() and int(answer) < len(actions):
        return [actions[int(answer)]]
    if answer in ("", "q", "u"):
        return []
    return [action for action in actions if action.lower().startswith(answer.lower())]


@contextmanager
def _completion(actions: Sequence[str]) -> Iterator[None]:
    """Let Tab complete the actions, where Python was built with readline."""
    with suppress(ImportError):
        import readline

        readline.set_completer_delims("")
        readline.parse_and_bind("tab: complete")
        readline.set_completer(lambda text, i: [*matches(text, actions), None][i] if text else None)
    yield
    with suppress(ImportError):
        import readline

        readline.set_completer(None)
