"""Comma-separated values that a spreadsheet shows as what they are.

Names of arms, models and environments are texts of others. A spreadsheet takes a cell that begins with one
of ``= + - @`` for a formula, which may read other cells and open addresses. OWASP ("CSV Injection")
recommends an apostrophe before such a cell, and quotes around all texts, so that none begins a cell of its
own.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Final

from hunch.printable import printable, printable_values

_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20].", re.DOTALL)
"""How a formula begins, also with the wide forms of the signs. A sign alone is none."""


def as_csv(names: Sequence[str], records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as comma-separated values with a header; a field that a record lacks is empty."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([_cell(name) for name in names])
    for record in records:
        writer.writerow([_cell(record.get(name, "")) for name in names])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return what stands in a cell: a number as it is, a text with an apostrophe if it begins a formula."""
    if value is None:
        return ""
    if isinstance(value, Real) and not isinstance(value, bool):
        return value
    shown = printable(value) if isinstance(value, str) else str(printable_values(value))
    return f"'{shown}" if _FORMULA.match(shown) and not _is_number(shown) else shown


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
