"""A room never imports upwards, nothing names the studies, and importing the library stays light."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import hunch

ROOT = Path(__file__).parent.parent
SOURCE = Path(hunch.__file__).parent
GROUND = {"core", "ranges", "numbers", "seal", "plugins", "extras", "suggest", "warned", "lazy"}
BELOW_ROLES = GROUND | {"lm", "sandbox", "rl", "envs"}
METHODS = BELOW_ROLES | {"roles"}
RUNS = METHODS | {"methods"}
ALL = RUNS | {"runs", "pocket"}
MAY_IMPORT = {
    "core": set(),
    "ranges": {"core"},
    "numbers": set(),
    "warned": {"core"},
    "seal": set(),
    "lazy": set(),
    "suggest": set(),
    "plugins": set(),
    "extras": {"core"},
    "lm": GROUND,
    "sandbox": GROUND,
    "rl": GROUND,
    "envs": GROUND | {"lm", "sandbox", "rl"},  # a model that an environment asks is counted
    "roles": BELOW_ROLES,
    "pocket": GROUND | {"lm", "envs", "rl"},
    "methods": METHODS,
    "runs": RUNS,
    "audition": ALL,
    "report": ALL,
    "ext": GROUND | {"lm", "envs"},  # how a checkpoint of transformers generates is known in lm
    "cli": ALL | {"audition", "report", "ext"},
}


def rooms_imported_by(source: str) -> set[str]:
    """The rooms that a file imports from, wherever in the file, by statement or by the name in a string."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "hunch":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hunch."):
            rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("hunch.")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            rooms |= {match[1] for match in [re.fullmatch(r"hunch\.(\w+)[\w.]*(:\w+)?", node.value)] if match}
    return rooms


def modules_imported_by(source: str) -> set[str]:
    """What a file may import by statement: modules, and names in them that may be modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_imports_by_string_are_seen():
    source = "from hunch.core import State\nRULES = 'hunch.methods.in_context.scripted'\n'Read hunch.runs.'"
    assert rooms_imported_by(source) == {"core", "methods"}


def test_no_room_imports_upwards():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in MAY_IMPORT:
            wrong += [
                (str(path.relative_to(SOURCE)), other)
                for other in (rooms_imported_by(path.read_text()) & set(MAY_IMPORT))
                - MAY_IMPORT[room]
                - {room}
            ]
    assert not wrong


PACKAGES = {
    "src/hunch": "hunch",
    "contrib/hunch_contrib": "hunch_contrib",
    "studies/hunch_studies": "hunch_studies",
}
"""The packages with code, lowest first: each may import those before it."""


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_package_names_a_higher_one(folder):
    """The library finds the others by entry points alone."""
    higher = list(PACKAGES.values())[list(PACKAGES).index(folder) + 1 :]
    paths = [path for kind in ("*.py", "*.pyi") for path in (ROOT / folder).rglob(kind)]
    assert paths
    assert [str(path) for path in paths if any(package in path.read_text() for package in higher)] == []


def test_no_files_import_each_other_in_a_circle():
    """Not even for types alone. What a package shows in its ``__init__`` is left out."""
    homes = {".".join(p.relative_to(SOURCE.parent).with_suffix("").parts): p for p in SOURCE.rglob("*.py")}
    files = {name: path.read_text() for name, path in homes.items() if not name.endswith("__init__")}
    imports = {name: (modules_imported_by(source) & set(files)) - {name} for name, source in files.items()}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle


def test_every_room_has_a_layer():
    rooms = {
        p.stem
        for p in SOURCE.iterdir()
        if p.name not in ("__init__.py", "__main__.py", "__pycache__", "py.typed", "names.pyi")
    }
    assert rooms - set(MAY_IMPORT) == set()


def test_import_is_light():
    """The libraries that take long to load are loaded where they are first needed."""
    code = (
        "import hunch, sys; "
        "heavy = {'torch', 'transformers', 'scipy', 'matplotlib', 'minigrid', 'tyro', 'rich'}; "
        "print(*heavy & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == []
