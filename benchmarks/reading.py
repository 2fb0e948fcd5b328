"""What a reader of a method may come to, and what a user waits for: import closures and start-up times.

For each method: the files that its own file imports, directly and through others (the closure), and their
lines. Imports inside functions and for types count. What is loaded by a name in a string, such as the kinds
of language models, does not. A name that a package takes from a file at its first use counts as an import of
that file. Times are of fresh processes, the best of five: a whole process for ``import hunch`` and for
``hunch --help``, and what a method adds to ``import hunch``. Nothing here is a limit.

    python benchmarks/reading.py              # a line for each method, and the times
    python benchmarks/reading.py dqn-prior    # the files of one method's closure
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hunch.core import UsageError
from hunch.methods import find, names
from hunch.methods.registry import home
from told import told

PACKAGES = ("hunch", "hunch_contrib")
REPEATS = 5
LOAD = """
import time
import hunch
begin = time.perf_counter()
hunch.methods.find({!r})
print(time.perf_counter() - begin)
"""


def sources() -> dict[str, Path]:
    """Return the file of each module of our packages, by its dotted name."""
    found = {}
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            module = ".".join((package, *path.relative_to(root).with_suffix("").parts))
            found[module.removesuffix(".__init__")] = path
    return found


SOURCES = sources()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def at_first_use(package: str) -> Mapping[str, str]:
    """Return the module of each name that a package imports at its first use, by the package's stub."""
    return {
        alias.asname or alias.name: node.module or ""
        for stub in SOURCES[package].parent.glob("*.pyi")
        for node in parsed(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def imported_by(module: str) -> frozenset[str]:
    """Return our modules that a module imports by a statement, wherever it stands in the file."""
    found = set()
    for node in ast.walk(parsed(SOURCES[module])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_package = node.module in SOURCES and SOURCES[node.module].name == "__init__.py"
                later = at_first_use(node.module).get(alias.name) if is_package else None
                found.add(inner if inner in SOURCES else later or node.module)
    return frozenset(found & set(SOURCES) - {module})


def closure(module: str) -> list[str]:
    """Return the modules that a module imports, directly or through others, the nearest first."""
    order, waiting = dict[str, None](), [module]
    while waiting:
        reached = waiting.pop(0)
        if reached not in order:
            order[reached] = None
            waiting += sorted(imported_by(reached))
    return [reached for reached in order if reached != module]


def lines(*modules: str) -> int:
    """Return the number of lines of files together."""
    return sum(len(SOURCES[module].read_text(encoding="utf-8").splitlines()) for module in modules)


def waits(*arguments: str) -> float:
    """Return the milliseconds of a process of Python from its start to its end, the shortest of some."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        times.append(1000 * (time.perf_counter() - begin))
    return min(times)


def loads(method: str) -> float:
    """Return the milliseconds of finding a method where hunch is imported already, the shortest of some."""
    command = [sys.executable, "-c", LOAD.format(method)]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(REPEATS))
    return min(1000 * float(run.stdout) for run in runs)


def startup() -> None:
    """Print how long a user waits for ``import hunch`` and ``hunch --help``."""
    print(f"python alone   {waits('-c', 'pass'):6.0f} ms")
    print(f"import hunch   {waits('-c', 'import hunch'):6.0f} ms")
    print(f"hunch --help   {waits('-m', 'hunch', '--help'):6.0f} ms")


def overview() -> None:
    """Print a line for each method: its own file, what that imports, the closure, and the time to load it."""
    print("\n                           own file        imports        closure  load, ms")
    print("method                        lines   files  lines   files  lines")
    for name in names():
        module = home(name)
        if module not in SOURCES:
            continue  # of another package
        direct, reached = imported_by(module), closure(module)
        print(
            f"{name:24}{lines(module):11,}{len(direct):8}{lines(*direct):7,}"
            f"{len(reached):8}{lines(*reached):7,}{loads(name):10.0f}"
        )


def main() -> None:
    """Print the closure of one method, or the overview of all."""
    if len(sys.argv) == 1:
        startup()
        overview()
        return
    module = home(find(sys.argv[1]).name)
    if module not in SOURCES:
        raise UsageError(f"{sys.argv[1]} is no method of this repository.")
    direct = imported_by(module)
    for reached in (module, *closure(module)):
        mark = "" if reached == module else "imported" if reached in direct else "through others"
        print(f"{lines(reached):6,}  {reached:45} {mark}")


if __name__ == "__main__":
    told(__doc__)
    main()
