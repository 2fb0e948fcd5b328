"""``hunch play``: step an environment by hand, alone or beside a trained agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

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
    play_episode(make(env_id, **env_options), agent, options.seed, Console())


def play_episode(env: TextEnvironment, agent: Agent | None, seed: int, console: Console) -> None:
    """Ask for actions until the episode ends or the player leaves with q."""
    observation, info = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        state = State.read(observation, info)
        console.print(f"\n{observation}\n", markup=False, highlight=False)
        console.print(_menu(state, agent))
        action = _ask(state, agent, console)
        if action is None:
            return
        observation, reward, terminated, truncated, info = env.step(action)
        total, done = total + float(reward), terminated or truncated
    console.print(f"\n{observation}\n", markup=False, highlight=False)
    console.print(f"{'Solved' if info.get('success') else 'Not solved'}; return {total:g}.")


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
    """Read an action by number or text; Enter lets the agent choose, q leaves."""
    hint = (
        "number or action, Enter for the agent's choice, q to leave: "
        if agent
        else "number or action, q to leave: "
    )
    while True:
        try:
            answer = console.input(hint).strip()
        except EOFError:
            return None
        if answer == "q":
            return None
        if not answer and agent:
            action = agent.act([state], explore=False)[0]
            console.print(f"> {action}", markup=False)
            return action
        if answer in state.actions:
            return answer
        if answer.isdecimal() and int(answer) < len(state.actions):
            return state.actions[int(answer)]
        console.print(f"{answer!r} is not an admissible action here.", markup=False)
