"""Commands that train or search with a small real model, and how long they take.

These are the methods whose rows with a real model were not run in full. Each command starts here: the script
makes its first updates, and reckons the hours of the whole.

    python -m hunch_studies.trained_recipes --print                   # the commands in full
    python -m hunch_studies.trained_recipes --out runs/recipes        # starts all: an hour of a core
    python -m hunch_studies.trained_recipes --out runs/recipes --only nlpo
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from hunch.core import HunchError
from hunch.envs.reviews import beginning
from hunch.runs.files import read_lines, write_atomically
from hunch_studies.planners import table as table_of

PUPIL: Final = "smollm2?chat=true&train=lora&rank=16"
"""The model that learns, unless another is named."""
CRITIC: Final = "qwen-coder-1.5b"
"""The model that judges, unless another is named."""
REVIEWS: Final = "--env hunch/Reviews-v0 --envs 32 --max-tokens 32"
PROMPTS: Final = "--env hunch/Prompts-v0 --env.file prompts.jsonl"
QUESTIONS: Final = "--env hunch/Prompting-v0 --env.lm smollm2 --env.file questions.jsonl"
CHOOSING: Final = f'{QUESTIONS} --env.play choose --env.prompts "Think first.|Answer briefly."'
BABYAI: Final = "--env hunch/BabyAI-GoToRedBall-v0 --env.history 0 --envs 8 --learning-rate 1e-4 --micro 8"


@dataclass(frozen=True)
class Recipe:
    """A command, and how to start it.

    Attributes:
        options: What follows ``hunch run``, with ``PUPIL``, ``CRITIC`` and the files of :func:`write_files`
            by name.
        steps: Steps of the whole.
        first: Steps that make two updates.
        shorter: Options, by name, that are smaller at the start, so that learning begins early.
        before: Commands that make what it reads, without the program's name.
    """

    options: str
    steps: int
    first: int
    shorter: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The method."""
        return self.options.split()[0]

    def words(self, steps: int, pupil: str = PUPIL, critic: str = CRITIC) -> list[str]:
        """Return what follows ``hunch run``, for a number of steps and these models."""
        models = {"PUPIL": pupil, "CRITIC": critic}
        words = [models.get(word, word) for word in shlex.split(self.options)]
        return [*words, "--steps", str(steps)]


RECIPES: Final = (
    # Texts that a lexicon of sentiments judges; 40 updates of 64 texts, as GRPO has in the study "trained".
    Recipe(f"ppo-text {REVIEWS} --lm PUPIL --micro 32 --learning-rate 1e-4", 2_560, 128),
    Recipe(f"a2c-text {REVIEWS} --lm PUPIL --micro 32 --learning-rate 1e-4", 2_560, 128),
    Recipe(f"nlpo {REVIEWS} --lm PUPIL --micro 32 --learning-rate 1e-4", 2_560, 128),
    Recipe(f"trpo-text {REVIEWS} --lm PUPIL --micro 32 --learning-rate 1e-4", 2_560, 128),
    Recipe(
        f"rlhf {REVIEWS} --lm PUPIL --pairs 300 --paired --micro 32 --learning-rate 1e-4 --kl 0.02",
        3_160,
        192,
        {"--pairs": "20"},
    ),
    Recipe(
        f"best-of-n {REVIEWS} --lm PUPIL --pairs 300 --paired --n 8 --micro 32",
        1_000,
        128,
        {"--pairs": "20"},
    ),
    Recipe(
        f"rest {REVIEWS} --lm PUPIL --group 8 --keep 1 --episodes 640 --updates 30 --batch-size 16 "
        "--micro 16 --learning-rate 5e-4",
        2_560,
        128,
        {"--episodes": "64", "--updates": "4"},
    ),
    Recipe(
        f"offline-rlhf {PROMPTS} --loss kto --data answers.jsonl --lm PUPIL --batch-size 16 --micro 16 "
        "--max-tokens 32 --learning-rate 1e-4",
        60,
        3,
    ),
    Recipe(
        "constitutional --env hunch/Rudeness-v0 --lm PUPIL --judge CRITIC --labels judge "
        "--principles principles.txt --drafts 256 --pairs 300 --advantage leave_one_out --group 2 --envs 16 "
        "--episodes 64 --max-tokens 32 --micro 16 --learning-rate 1e-4",
        3_472,
        160,
        {"--drafts": "16", "--pairs": "8", "--episodes": "32"},
    ),
    Recipe(
        f"context-distillation {PROMPTS} --lm PUPIL --context-file examples.txt --envs 8 --micro 8 "
        "--max-tokens 32 --learning-rate 1e-4",
        800,
        24,
    ),
    Recipe(
        "rain --env hunch/Rudeness-v0 --lm smollm2?chat=true --judge CRITIC "
        '--principle "The answer is polite." --budget 128 --max-tokens 32',
        100,
        2,
    ),
    Recipe(
        "red-team --env hunch/Attack-v0 --env.target smollm2 --lm PUPIL --envs 32 --max-tokens 24 --micro 32 "
        "--episodes 64 --learning-rate 1e-4",
        2_560,
        128,
    ),
    Recipe(
        "syndicom --env hunch/Repair-v0 --lm PUPIL --batch-size 16 --micro 16 --max-tokens 40 "
        "--learning-rate 5e-4",
        120,
        6,
    ),
    Recipe(
        "compress --env hunch/Compression-v0 --lm PUPIL --envs 36 --micro 32 --learning-rate 1e-4", 5_184, 288
    ),
    Recipe(
        "grpo --env hunch/Simplicity-v0 --env.least 0.5 --lm PUPIL --envs 32 --group 8 --episodes 64 "
        "--max-tokens 32 --micro 32 --learning-rate 1e-4",
        2_560,
        128,
    ),
    # A choice among six or seven listed actions.
    Recipe(f"glam {BABYAI} --lm PUPIL --horizon 40", 10_000, 640),
    Recipe(f"twosome {BABYAI} --lm PUPIL --horizon 40", 10_000, 640),
    Recipe(f"gflan-prior {BABYAI} --lm PUPIL --proposer smollm2", 10_000, 640),
    Recipe(
        "gigpo --env hunch/Household-Pick-v0 --env.max_steps 20 --env.written true --lm PUPIL "
        "--max-tokens 12 --envs 16 --group 8 --episodes 16 --micro 16 --learning-rate 1e-4",
        12_000,
        640,
    ),
    # Prompts of a frozen model.
    Recipe(
        f'tempera {QUESTIONS} --env.play edit --env.words "briefly carefully think first answer only" '
        "--envs 8",
        6_000,
        320,
    ),
    Recipe(
        f"prompt-oirl {CHOOSING} --data answered",
        1_500,
        100,
        before=(f"data collect {CHOOSING} --mix random=1 --steps 200 --out answered",),
    ),
)


# ---- what the commands read --------------------------------------------------------------------------------


def write_files(folder: Path) -> None:
    """Write the small files that the commands read, each a sample of what a user would bring."""
    rng = np.random.default_rng(0)
    requests = [beginning(rng) for _ in range(200)]
    good, bad = " it was wonderful, and I would go again.", " it was awful, and I left early."
    sums = [(int(a), int(b)) for a, b in rng.integers(1, 50, size=(64, 2))]
    lines: Mapping[str, list[dict[str, object]]] = {
        "prompts.jsonl": [{"prompt": request, "answer": good} for request in requests],
        "answers.jsonl": [
            {"prompt": request, "completion": good if likes else bad, "label": likes}
            for request in requests
            for likes in (True, False)
        ],
        "questions.jsonl": [{"prompt": f"{a} + {b} =", "answer": str(a + b)} for a, b in sums],
    }
    for name, rows in lines.items():
        write_atomically(folder / name, "".join(json.dumps(row) + "\n" for row in rows).encode())
    write_atomically(folder / "principles.txt", b"Prefer the polite answer.\n")
    write_atomically(folder / "examples.txt", f"{requests[0]}{good}\n{requests[1]}{good}\n".encode())


# ---- starting a recipe -------------------------------------------------------------------------------------


def start(recipe: Recipe, folder: Path, pupil: str = PUPIL, critic: str = CRITIC) -> dict[str, float]:
    """Make the first updates of a recipe, in a folder that holds the files.

    Returns:
        ``seconds`` of the start, without the time to load models; ``hours`` of the whole at this speed.

    Raises:
        HunchError: if a command fails, with what it printed.
    """
    for command in recipe.before:
        _hunch(shlex.split(command), folder)
    words = recipe.words(recipe.first, pupil, critic)
    for option, value in recipe.shorter.items():
        words[words.index(option) + 1] = value
    run = f"run-{recipe.method}"
    _hunch(["run", *words, "--out", run], folder)
    seconds = read_lines(folder / run / "metrics.jsonl")[-1]["seconds"]
    return {"seconds": seconds, "hours": seconds / recipe.first * recipe.steps / 3600}


def _hunch(words: Sequence[str], folder: Path) -> None:
    """Run the command in a folder.

    Raises:
        HunchError: if it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "hunch", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise HunchError(f"hunch {shlex.join(words)} failed: {done.stderr.strip()[-1_000:]}")


def started(folder: Path, only: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Start the recipes whose method is named, or all; yield method, steps, seconds and hours of each."""
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder)
    for recipe in RECIPES:
        if only and recipe.method not in only:
            continue
        try:
            took = start(recipe, folder)
        except HunchError as error:
            print(error, file=sys.stderr)
            yield recipe.method, f"{recipe.steps:,}", "failed", ""
        else:
            yield recipe.method, f"{recipe.steps:,}", f"{took['seconds']:.0f}", f"{took['hours']:.1f}"


def main() -> None:
    """Start recipes, and print a table of their hours."""
    parser = argparse.ArgumentParser(description="Start commands that train with a small real model.")
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"))
    parser.add_argument("--only", nargs="*", default=(), help="methods; all by default")
    parser.add_argument("--print", action="store_true", help="print the commands, and start nothing")
    asked = parser.parse_args()
    if asked.print:
        for recipe in RECIPES:
            for command in recipe.before:
                print(f"hunch {command}")
            print(shlex.join(["hunch", "run", *recipe.words(recipe.steps)]))
        return
    rows = []
    for row in started(asked.out, asked.only):
        print(*row, sep="  ", flush=True)
        rows.append(row)
    print(table_of("method | steps | seconds of the start | hours at this speed", rows))


if __name__ == "__main__":
    main()
