"""Puts the built site beside those of earlier versions, as the theme's list of versions expects them.

``python docs/_ext/versions.py FOLDER [VERSION]`` copies ``site/`` to ``FOLDER/VERSION`` (default: that of
``pyproject.toml``), names it in ``FOLDER/versions.json``, newest first, and lets
``FOLDER/index.html`` lead to the newest. The same version again replaces its pages only.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TO_NEWEST = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/">'
    '<a href="{0}/">Hunch {0}</a>\n'
)


def add(folder: Path, version: str, site: Path) -> list[dict[str, object]]:
    """Add the built site as a version, and return the list of versions.

    Raises:
        ValueError: if the version is not of numbers with points, with letters at most at its end.
        FileNotFoundError: if there is no built site.
    """
    if not re.fullmatch(r"\d+(\.\d+)*\w*", version):
        raise ValueError(f"A version is written as in 0.1.0, not {version!r}.")
    if not (site / "index.html").exists():
        raise FileNotFoundError(f"There is no site in {site}: run 'make docs' first.")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    names = folder / "versions.json"
    known = {each["version"] for each in json.loads(names.read_text())} if names.exists() else set()
    ordered = sorted(known | {version}, key=order, reverse=True)
    versions: list[dict[str, object]] = [
        {"version": each, "title": each, "aliases": ["latest"] if each == ordered[0] else []}
        for each in ordered
    ]
    names.write_text(json.dumps(versions, indent=1) + "\n")
    (folder / "index.html").write_text(TO_NEWEST.format(ordered[0]))
    return versions


def order(version: str) -> list[tuple[int, str]]:
    """Return what sorts versions: numbers by their size, and 0.1.0rc1 before 0.1.0."""
    parts = re.findall(r"\d+|[a-z]\w*", version)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts] + [(0, "")]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python docs/_ext/versions.py FOLDER [VERSION]")
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    try:
        print(*(each["version"] for each in add(Path(sys.argv[1]), [*sys.argv, stated][2], ROOT / "site")))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
