"""Docstrings as Markdown: the few marks in our source that Markdown would show as they stand.

A griffe extension, used when the API pages are built.
"""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|data|func|meth|mod):`~?([\w.]+)`")
LITERAL = re.compile(r"::$", re.MULTILINE)
TABLE = re.compile(r"^=+(?: =+)+\n(?:.+\n)+?(?=^\n|\Z)", re.MULTILINE)


def markdown(text: str) -> str:
    """Rewrite references, literal blocks and simple tables."""
    return LITERAL.sub(":", ROLE.sub(r"`\1`", TABLE.sub(table, text + "\n")))


def table(found: re.Match[str]) -> str:
    """Rewrite a simple table, whose columns begin where the runs of "=" do."""
    rows = found[0].splitlines()
    starts = [run.start() for run in re.finditer(r"=+", rows[0])]
    cells = [_cells(row, starts) for row in rows if not row.startswith("=")]
    headed = rows[2].startswith("=")
    head = cells.pop(0) if headed else [" "] * len(starts)
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(starts), *cells]) + "\n"


def _cells(row: str, starts: list[int]) -> list[str]:
    ends = [*starts[1:], len(row)]
    cells = [row[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [cell.replace("|", "\\|") for cell in cells]


class Docstrings(griffe.Extension):
    """Applies :func:`markdown` to every docstring."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
