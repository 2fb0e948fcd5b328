"""Writes an episode of a trained agent as an animated picture, with its task and actions in words.

``python -m hunch_studies.episode_gif RUN FILE [--seed N]``, for environments that can be drawn.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from hunch import make
from hunch.core import UsageError
from hunch.rl.rollout import Rollout
from hunch.rl.world import advance
from hunch.runs.loading import load_agent
from hunch.runs.stored import read_run

LINES = 52
"""Height of the words below the picture."""
INK, PAPER = (32, 32, 32), (250, 250, 247)


def frames(run: Path, seed: int) -> Iterator[Image.Image]:
    """Play an episode, and draw it before the first step and after each.

    Raises:
        UsageError: if the run's environment cannot be drawn.
    """
    config = read_run(run)
    env = make(config.env, **config.env_options)
    if "rgb_array" not in env.metadata["render_modes"]:
        raise UsageError(f"{config.env} cannot be drawn.")
    env = make(config.env, render_mode="rgb_array", **config.env_options)
    agent, _ = load_agent(run)
    player, rollout = agent.player(seed), Rollout([env], seeds=[seed])
    task = rollout.states[0].task
    yield captioned(env.render(), task, "")
    while rollout.states:
        (step,) = advance(rollout, player)
        solved = " - solved" if step.success else ""
        yield captioned(env.render(), task, step.action + solved)


def captioned(picture: Any, task: str, action: str) -> Image.Image:
    """Return a picture with two lines of words below it."""
    drawn = Image.fromarray(picture)
    whole = Image.new("RGB", (max(drawn.width, 360), drawn.height + LINES), PAPER)
    whole.paste(drawn, ((whole.width - drawn.width) // 2, 0))
    brush, font = ImageDraw.Draw(whole), ImageFont.load_default(15)
    for line, text in enumerate((f"Task: {task}", f"> {action}" if action else "")):
        brush.text((8, drawn.height + 6 + 22 * line), text, fill=INK, font=font)
    return whole.quantize(64)


def main() -> None:
    """Read the command line, play, and write the file."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    first, *rest = frames(options.run, options.seed)
    times = [1500, *[900] * (len(rest) - 1), 2500]
    first.save(options.file, save_all=True, append_images=rest, duration=times, loop=0)
    print(f"{options.file}: {1 + len(rest)} pictures, {options.file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
