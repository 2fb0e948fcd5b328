"""Writes a notebook and its output as a page: ``python docs/_ext/notebook.py`` in the repository's root.

The page lies beside the notebook, its pictures in the assets; a test compares them with the notebook.
"""

import base64
import json
from pathlib import Path

ASSETS = Path("docs/assets")
NOTEBOOKS = Path("docs/notebooks")


def page(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook, and its pictures by file name."""
    pictures: dict[str, bytes] = {}
    parts = [f"<!-- Written from {notebook.name} by docs/_ext/notebook.py. -->"]
    for cell in json.loads(notebook.read_text())["cells"]:
        source = "".join(cell["source"]).strip()
        parts.append(source if cell["cell_type"] == "markdown" else _fenced("python", source))
        parts += [_shown(output, notebook.stem, pictures) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n", pictures


def _shown(output: dict, stem: str, pictures: dict[str, bytes]) -> str:
    """Return an output as Markdown: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}_{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        return f"![The output of the cell](../assets/{name})"
    if "text/html" in data:
        return "".join(data["text/html"])
    return _fenced("text", "".join(output.get("text", data.get("text/plain", ""))).replace("\r", "").strip())


def _fenced(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```"


if __name__ == "__main__":
    for notebook in NOTEBOOKS.glob("*.ipynb"):
        text, pictures = page(notebook)
        notebook.with_suffix(".md").write_text(text)
        for name, data in pictures.items():
            (ASSETS / name).write_bytes(data)
