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
PACKAGES = {
    "src/hunch": "hunch",
    "contrib/hunch_contrib": "hunch_contrib",
    "studies/hunch_studies": "hunch_studies",
}
"""The packages with code, lowest first: each may import those before it."""
MODULES = {
    ".".join(path.relative_to((ROOT / folder).parent).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in PACKAGES
    for path in sorted((ROOT / folder).rglob("*.py"))
}
"""The files of all modules."""
GROUND = {
    "core",
    "ranges",
    "numbers",
    "seal",
    "plugins",
    "extras",
    "suggest",
    "renamed",
    "warned",
    "lazy",
    "text_files",
    "printable",
    "admitted",
    "little_memory",
    "beginning",
}
BELOW_ROLES = GROUND | {"lm", "sandbox", "rl", "envs"}
METHODS = BELOW_ROLES | {"roles"}
RUNS = METHODS | {"methods"}
ALL = RUNS | {"runs", "pocket"}
MAY_IMPORT = {
    "core": set(),
    "ranges": {"core"},
    "numbers": set(),
    "printable": set(),
    "warned": {"core", "printable"},
    "seal": set(),
    "lazy": set(),
    "suggest": set(),
    "renamed": {"core"},
    "plugins": set(),
    "extras": {"core", "little_memory"},
    "little_memory": set(),
    "beginning": {"little_memory"},
    "admitted": {"core"},
    "text_files": {"core"},
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
    """The modules that a file imports by statement; a package for a name in it that is no module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {module if module in MODULES else node.module for module in inner.values()}
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


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_package_names_a_higher_one(folder):
    """The library finds the others by entry points alone."""
    higher = list(PACKAGES.values())[list(PACKAGES).index(folder) + 1 :]
    paths = [path for kind in ("*.py", "*.pyi") for path in (ROOT / folder).rglob(kind)]
    assert paths
    assert [str(path) for path in paths if any(package in path.read_text() for package in higher)] == []


def test_no_files_import_each_other_in_a_circle():
    """Not even for types alone. What a package imports at its first use, by its stub, counts as well."""
    imports = {}
    for name, path in MODULES.items():
        stubs = path.parent.glob("*.pyi") if path.name == "__init__.py" else ()
        sources = [path.read_text(), *(stub.read_text() for stub in stubs)]
        imports[name] = set().union(*map(modules_imported_by, sources)) & set(MODULES) - {name}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle


def imports_in_functions(source: str) -> list[tuple[int, str, set[str]]]:
    """The imports of our own modules inside functions: line, the comment on it, and the modules."""
    lines, found = source.splitlines(), []
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {node for function in functions for node in ast.walk(function)}
    for node in inside:
        if isinstance(node, ast.ImportFrom | ast.Import):
            comment = " ".join(lines[node.lineno - 1 : node.end_lineno]).partition("# ")[2]
            ours = modules_imported_by(ast.unparse(node)) & set(MODULES)
            found += [(node.lineno, comment, ours)] if ours else []
    return found


def loads_torch(module: str, seen: set[str]) -> bool:
    """Whether importing a module imports torch, by its own statements or those of what it imports."""
    seen.add(module)
    for node in ast.parse(MODULES[module].read_text()).body:
        for name in (
            modules_imported_by(ast.unparse(node)) if isinstance(node, ast.Import | ast.ImportFrom) else ()
        ):
            if name.partition(".")[0] == "torch":
                return True
            if name in MODULES and name not in seen and loads_torch(name, seen):
                return True
    return False


def test_an_import_inside_a_function_says_why():
    """Our own modules are imported at the top of a file; a comment on the line names why one is not."""
    wrong = []
    for name, path in MODULES.items():
        for line, comment, modules in imports_in_functions(path.read_text()):
            if not comment:
                wrong.append(f"{name}, line {line}: no reason")
            elif "loads torch" in comment and not any(loads_torch(module, set()) for module in modules):
                wrong.append(f"{name}, line {line}: it does not load torch")
    assert not wrong


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
