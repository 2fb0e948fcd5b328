"""A room never imports upwards, and importing the library stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import hunch

SOURCE = Path(hunch.__file__).parent
MAY_IMPORT = {
    "core": set(),
    "lm": {"core"},
    "envs": {"core"},
    "rl": {"core"},
    "roles": {"core", "lm"},
    "methods": {"core", "lm", "envs", "rl", "roles"},
    "runs": {"core", "lm", "envs", "rl", "roles", "methods"},
    "report": {"core", "lm", "envs", "rl", "roles", "methods", "runs"},
    "studies": {"core", "lm", "envs", "rl", "roles", "methods", "runs", "report"},
    "cli": {"core", "lm", "envs", "rl", "roles", "methods", "runs", "report", "studies"},
}


def rooms_imported_by(path: Path) -> set[str]:
    """The rooms that a file imports from, wherever in the file."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "hunch":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hunch."):
            rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("hunch.")}
    return rooms


def test_no_room_imports_upwards():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in MAY_IMPORT:
            wrong += [
                (str(path.relative_to(SOURCE)), other)
                for other in rooms_imported_by(path) - MAY_IMPORT[room] - {room}
            ]
    assert not wrong


def test_every_room_has_a_layer():
    rooms = {p.name for p in SOURCE.iterdir() if p.is_dir() and p.name != "__pycache__"} | {"core"}
    assert rooms == set(MAY_IMPORT)


def test_import_is_light():
    """The libraries that take long to load are loaded where they are first needed."""
    code = (
        "import hunch, sys; "
        "heavy = {'torch', 'transformers', 'scipy', 'matplotlib', 'minigrid', 'tyro', 'rich'}; "
        "print(*heavy & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == []


def test_core_is_short():
    assert len((SOURCE / "core.py").read_text().splitlines()) < 300
