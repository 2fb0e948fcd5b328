"""``hunch pretrain``: trains the model that comes with hunch, or a larger one in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hunch.cli.options import read
from hunch.core import UsageError
from hunch.ranges import check_settings
from hunch.runs.folder import require_folder
from hunch.runs.processes import stoppable
from hunch_studies.laboratory import clip
from hunch_studies.laboratory import pretrain as recipe
from hunch_studies.laboratory.clip import ClipConfig
from hunch_studies.laboratory.pretrain import PretrainConfig

STOPPED = "stopped; {} holds the training up to its last checkpoint, and the same command goes on from there."


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(PretrainConfig):
    """Training of the pocket model, and its folder."""

    out: Path = Path("runs/pocket")
    """Folder of checkpoint, metrics and model; the same command resumes training in it."""


@dataclass(frozen=True, kw_only=True)
class ClipOptions(ClipConfig):
    """Training of the model with eyes, and its folder."""

    out: Path = Path("runs/clip")
    """Folder of checkpoint and model; the same command resumes training in it."""


def pretrain(arguments: Sequence[str]) -> None:
    """Train the model, or resume training, and print its folder."""
    if arguments and arguments[0] in ("-h", "--help"):
        arguments = ["pocket", "--help"]
    if not arguments or arguments[0] not in ("pocket", "clip"):
        raise UsageError("Name what to train: 'hunch pretrain pocket' or 'hunch pretrain clip'.")
    if arguments[0] == "clip":
        return _clip(arguments[1:])
    options = read(PretrainOptions, prog="hunch pretrain pocket", args=list(arguments[1:]))
    check_settings(options)
    require_folder(options.out)
    with stoppable(STOPPED.format(options.out)):
        folder = recipe.pretrain(options, options.out, _tell)
    print(f"Model: {folder}; use it as --lm 'pocket?folder={folder}' or 'hf:{folder}'.")


def _clip(arguments: Sequence[str]) -> None:
    options = read(ClipOptions, prog="hunch pretrain clip", args=list(arguments))
    check_settings(options)
    require_folder(options.out)
    own = {entry.name: getattr(options, entry.name) for entry in fields(ClipConfig)}
    with stoppable(STOPPED.format(options.out)):
        folder = clip.train(ClipConfig(**own), options.out, lambda line: print(line, flush=True))
    print(f"Model: {folder}; use it as --reader 'pocket?folder={folder}' or --lm 'hf:{folder}'.")


def _tell(line: dict[str, Any]) -> None:
    """Print a line of metrics."""
    told = ("step", "tokens", "tokens_a_second", "loss")
    shares = "  ".join(f"{name} {share:.2f}" for name, share in line.items() if name not in told)
    speed = f"{line['tokens_a_second']:,} per second"
    print(f"{line['tokens']:>13,} tokens, {speed}: loss {line['loss']:.3f}  {shares}", flush=True)
