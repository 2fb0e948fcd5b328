"""Prints tables of recorded rows: ``python -m hunch_studies.MODULE FILE``."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hunch.core import HunchError


def json_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a compressed file of JSON lines."""
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def print_table(table: Callable[..., str], description: str, *, at_most: int = 1) -> None:
    """Print the table of the files that are named on the command line.

    Args:
        table: Called with the paths; returns text.
        description: What is printed, in a sentence.
        at_most: Maximum number of files.

    Raises:
        SystemExit: with a sentence, if a file is missing or damaged, or there are too many.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("rows", type=Path, nargs="+", help="JSON lines, as in docs/assets/studies")
    files: list[Path] = parser.parse_args().rows
    if len(files) > at_most:
        parser.error(f"at most {at_most} of these files can be read at once")
    for file in files:
        if not file.is_file():
            parser.error(f"there is no file {str(file)!r}")
    try:
        print(table(*files))
    except HunchError as error:
        parser.error(str(error))
    except (ValueError, LookupError, TypeError) as error:
        names = ", ".join(map(str, files))
        parser.error(f"{names}: these are not the rows of this study ({type(error).__name__}: {error})")
