"""The documentation is true: its programs run, its links lead somewhere, its settings are the code's."""

import ast
import importlib
import re
import shlex
import sys
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from itertools import pairwise, takewhile
from pathlib import Path

import nbformat
import pytest
from jevcompat.mock import MockConfig, Running
from nbclient import NotebookClient

from hunch.cli.commands import COMMANDS
from hunch.cli.comparison import CompareOptions
from hunch.cli.help import common, options
from hunch.cli.run import RunOptions
from hunch.core import HunchError
from hunch.methods import find
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.registry import CONTRIB, OURS, home
from hunch.plugins import installed
from tests.started import run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
STUDIES = sorted((DOCS / "studies").glob("*.md"))
PROGRAMS = [ROOT / "README.md", DOCS / "index.md", *sorted((DOCS / "guides").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHOWN = [*EXAMPLES, *sorted((ROOT / "examples" / "verifiers").glob("*.py"))]
"""Those of verifiers need an environment of its own: tests/ext/test_verifiers.py runs them."""
STEPS = 20
DECISIONS = "http://localhost:8755"
"""The address that the pages give a decision model. The tests start one elsewhere: that port may be taken."""
MORE = {"runs.md": 200}
"""Pages whose programs need more: a checkpoint of step 150."""
SAVED_AS = {"README.md": "mine.py"}
"""Pages that tell the reader to save their program under a name."""


def blocks(page):
    """The Python blocks of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def shortened(code, steps=STEPS):
    """The same program with fewer steps, also between two updates."""
    counts = r'(steps=|"steps": |HORIZON = )([\d_]+)'
    return re.sub(counts, lambda found: f"{found[1]}{min(steps, int(found[2]))}", code)


def name(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What a model answered on one page is known on the next."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("page", PROGRAMS, ids=name)
def test_programs_run(page, tmp_path, cache):
    """Blocks that begin with "# <file>.py" are saved under that name; the others are one program."""
    program = ""
    for code in (shortened(block, MORE.get(page.name, STEPS)) for block in blocks(page)):
        file = re.match(r"# (\w+\.py)\n", code)
        if file:
            (tmp_path / file[1]).write_text(code)
        else:
            program += code
    with Running(MockConfig()) if DECISIONS in program else nullcontext() as server:
        saved_as = SAVED_AS.get(page.name, "program.py")
        (tmp_path / saved_as).write_text(program.replace(DECISIONS, server.url) if server else program)
        done = run(tmp_path, saved_as, HUNCH_CACHE=cache)
    assert done.returncode == 0, done.stderr


def test_programs_of_environments_run(tmp_path, monkeypatch):
    """The first program of each page; some need a package that is not there, one another page's run."""
    monkeypatch.chdir(tmp_path)
    for page in sorted((DOCS / "environments").glob("*.md")):
        for code in blocks(page)[:1]:
            try:
                exec(compile(code, page.name, "exec"), {})
            except HunchError as error:
                if not re.search("needs the package|There is no folder 'runs/", str(error)):
                    raise AssertionError(page) from error


@pytest.mark.parametrize("page", ["models.md", "training.md", "methods/ppo.md", "api/rules.md"])
def test_programs_about_models_run(page, tmp_path, monkeypatch):
    """With a model that needs no download."""
    monkeypatch.chdir(tmp_path)
    code = re.sub(r"hf:[\w./-]+", "pocket", shortened("".join(blocks(DOCS / page))))
    exec(compile(code, page, "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=name)
def test_notebooks_run(notebook, tmp_path, cache, monkeypatch):
    """From the first cell to the last, and they show what came of it."""
    monkeypatch.setenv("HUNCH_CACHE", cache)
    book = nbformat.read(notebook, as_version=4)
    if any("stable_baselines3" in cell.source for cell in book.cells):
        pytest.importorskip("stable_baselines3")
    shown = [bool(cell.outputs) for cell in book.cells if cell.cell_type == "code"]
    for cell in book.cells:
        cell.source = shortened(cell.source)
    client = NotebookClient(book, timeout=None, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert [bool(cell.outputs) for cell in book.cells if cell.cell_type == "code"] == shown
    assert all(cell.execution_count for cell in book.cells if cell.cell_type == "code")


def test_the_pages_of_notebooks_are_theirs():
    sys.path.insert(0, str(DOCS / "_ext"))
    from notebook import page

    for notebook in (DOCS / "notebooks").glob("*.ipynb"):
        text, pictures = page(notebook)
        assert notebook.with_suffix(".md").read_text() == text, "run: python docs/_ext/notebook.py"
        assert {name: (DOCS / "assets" / name).read_bytes() for name in pictures} == pictures


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run(example, tmp_path, cache):
    if "GRPOTrainer" in example.read_text():
        pytest.skip("needs TRL, and a model of a hub: tests/ext/test_trl.py runs it with a small one")
    if "stable_baselines3" in example.read_text():
        pytest.importorskip("sb3_contrib")
    for file in EXAMPLES:
        (tmp_path / file.name).write_text(shortened(file.read_text()))
    done = run(tmp_path, example.name, HUNCH_CACHE=cache)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", SHOWN, ids=name)
def test_examples_are_those_of_the_pages(example):
    assert example.read_text() in [code for page in PAGES for code in blocks(page)]


def test_the_script_of_the_page_on_scaling_is_the_example():
    page = (DOCS / "guides" / "scaling.md").read_text()
    assert f"```bash\n{(ROOT / 'examples' / 'seeds.sbatch').read_text()}```" in page


def test_the_examples_are_listed():
    worked = (DOCS / "guides" / "worked_examples.md").read_text()
    assert set(re.findall(r"^\| `(\w+\.py)` \|", worked, re.MULTILINE)) == {path.name for path in EXAMPLES}


def commands(page, verb=""):
    """The commands in the shell blocks of a page, each as its words; lines that end in a backslash go on."""
    text = "\n".join(re.findall(r"^ *```bash\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL))
    for line in text.replace("\\\n", " ").replace("$verb", verb).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["hunch"]:
            yield words[1:]


def flags(words):
    """The long options among the words, without those of an environment."""
    found = (word.partition("=")[0][2:] for word in words if word.startswith("--"))
    return {flag for flag in found if not flag.startswith(("env.", "help", "config"))}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=name)
def test_commands_have_the_options_that_there_are(page):
    for command, *words in commands(page):
        assert command in {*COMMANDS, *installed("hunch.commands")}, command
        assert not any("<" in word for word in words), f"a shell reads from a file there: {words}"
        if command not in ("run", "compare") or not words or words[0].startswith("-"):
            continue
        named = [w for w in takewhile(lambda w: not w.startswith("-"), words) if re.fullmatch(r"[\w-]+", w)]
        cls = RunOptions if command == "run" else CompareOptions
        known = {option.flag for listed in common(cls).values() for option in listed} | {"reader", "module"}
        for method in map(find, named):
            own = {option.flag for option in options(method.config_class)}
            known |= own | {f"{method.name}.{flag}" for flag in own}
        if named:
            assert {"--env", "--config", "--help"} & set(words), words
            assert not {re.sub(r"(^|\.)no-", r"\1", flag) for flag in flags(words)} - known, words


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "methods"], ids=name)
def test_options_that_are_said_to_be_those_of_another_page_exist(page):
    """As in "`episodes` and `kl` are those of [GRPO](grpo.md)"."""
    lists = re.findall(r"((?:`\w+`(?:,\s|\sand\s)?)+)\s(?:is that|are those)\sof\s+\[", page.read_text())
    said = {option.replace("_", "-") for listed in lists for option in re.findall(r"`(\w+)`", listed)}
    if said:
        run = {words[1] for words in commands(page) if words[0] == "run" and not words[1].startswith("-")}
        shown = {page.stem.replace("_", "-")} & run or run  # others of the page prepare what its method needs
        known = [option.flag for method in map(find, shown) for option in options(method.config_class)]
        assert said <= {*known, *(flag.partition(".")[0] for flag in known)}  # "table" of "table.rate"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=name)
def test_switches_have_no_value(page):
    """As in ``--shuffle`` and ``--no-listed``; options of an environment have values."""
    text = page.read_text()
    assert not re.findall(r"--(?!env\.)[a-z][a-z0-9.-]* (?:true|false)\b", text)


def folders(page):
    """The folders under runs/ and data/ that commands of a page write, with their environments, and read."""
    wrote, read = {}, set()
    loop = re.search(r"for verb in (.*); do", page.read_text())
    for verb in shlex.split(loop[1]) if loop else [""]:
        for words in commands(page, verb):
            for before, word in pairwise(words):
                if before == "--out":
                    wrote[word] = words[words.index("--env") + 1] if "--env" in words else ""
                else:
                    read |= set(re.findall(r"(?:^|[:=])((?:runs|data)/[^=/]+)(?:/|$)", word))
    return wrote, read


def test_folders_that_commands_read_are_written_by_a_command():
    """A reader can follow the pages in any order: no two of them write the same folder with another world."""
    each = {page: folders(page) for page in [*PAGES, ROOT / "README.md"]}
    wrote = {"runs/demo": {""}}  # by `make demo`
    for made, _ in each.values():
        for folder, env in made.items():
            wrote.setdefault(folder, set()).add(env)
    assert not {folder: envs for folder, envs in wrote.items() if len(envs) > 1}
    lost = {(name(page), one) for page, (_, read) in each.items() for one in read - set(wrote)}
    assert not lost, sorted(lost)


def anchor(heading):
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=name)
def test_links_resolve(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        path, _, fragment = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if fragment:
            assert fragment in map(anchor, re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)), target


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "log"], ids=name)
def test_figures_of_older_code_have_a_date(page):
    """Only we know which code "the version before" was; a date and a commit say it to everybody."""
    assert "version before" not in " ".join(page.read_text().split())


def test_the_table_of_systems_has_one_sentence_a_cell():
    rows = [line for line in (DOCS / "systems.md").read_text().splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in row.strip("|").split(" | ")]
    assert len(cells) > 200
    assert not [cell for cell in cells if re.search(r"[.!?] +[A-Z*]", cell)]


def test_every_system_has_one_of_three_verdicts():
    """What a bed cannot show names what it lacks; further claims may follow."""
    rows = [line for line in (DOCS / "systems.md").read_text().splitlines() if "](studies/" in line]
    found = [row.strip("| ").split(" | ")[8] for row in rows if row.startswith("| ")]
    assert len(found) > 50
    verdict = r"(not )?shown\b.*|cannot be shown here: .+"
    assert not [cell for cell in found if not re.fullmatch(verdict, cell)]
    lacking = [claim for cell in found for claim in re.findall(r"cannot be shown[^;]*", cell)]
    assert not [claim for claim in lacking if not re.fullmatch(r"cannot be shown here: .{10,}", claim)]


@pytest.mark.parametrize("page", STUDIES, ids=name)
def test_a_study_fits_on_a_screen(page):
    """Question, picture if there is one, table, verdict and command; all else is folded."""
    text = page.read_text()
    if "**No result yet" in text:
        return
    first, _, folded = text.partition("<details markdown>")
    assert folded.rstrip().endswith("</details>")
    assert len(first.split()) <= 480
    assert re.findall(r"^##+ .*", first, re.MULTILINE) == ["## Command"]
    order = [first.find(mark) for mark in ("\n![", "\n|", "\n**", "\n## Command", "\n```bash")]
    assert -1 not in order[1:]
    assert order == sorted(order)
    assert "![" not in folded or order[0] > 0, "the first picture stands above"


@pytest.mark.parametrize("page", STUDIES, ids=name)
def test_a_study_says_no_figure_with_its_interval_twice(page):
    """Tables have cells that are alike; beside them a figure is named without the interval."""
    text = page.read_text()
    figure = r"(-?\d[\d,.]*\s\[-?\d[^\]()]*\])(?!\()"
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    told = [" ".join(found.split()) for found in re.findall(figure, prose)]
    assert not set(told) & set(re.findall(figure, rows))
    assert len(told) == len(set(told))


def test_the_log_is_out_of_search():
    """What was tried on the way would bury the pages that say what holds; a month is a page."""
    months = sorted((DOCS / "log").glob("*.md"))
    assert all(re.fullmatch(r"\d{4}-\d\d", month.stem) for month in months)
    assert all(month.read_text().startswith("---\nsearch:\n  exclude: true\n---\n") for month in months)


def test_the_navigation_has_eight_entries():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert len(re.findall(r"^  - ", nav, re.MULTILINE)) == 8


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert set(re.findall(r": (\S+\.md)$", nav, re.MULTILINE)) == {str(p.relative_to(DOCS)) for p in PAGES}


def test_the_reference_has_every_method():
    listed = re.findall(r"^::: (\S+)$", (DOCS / "api" / "methods.md").read_text(), re.MULTILINE)
    assert set(OURS.values()) <= set(listed)
    assert len(listed) == len(set(listed))
    listed = re.findall(r"^::: (\S+)$", (DOCS / "api" / "contrib.md").read_text(), re.MULTILINE)
    assert {home(name) for name in CONTRIB} <= set(listed)
    assert len(listed) == len(set(listed))


def settings(config, prefix=""):
    """Every option of a config with its default, nested ones with a dotted name."""
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            yield from settings(value, f"{field.name}.")
        else:
            yield prefix + field.name, str(value)


def imported(program):
    """The names of ours that a program imports, with their modules."""
    nodes = [node for node in ast.walk(ast.parse(program.read_text())) if isinstance(node, ast.ImportFrom)]
    return [(n.module, a.name) for n in nodes if (n.module or "").startswith("hunch.") for a in n.names]


@pytest.mark.parametrize("program", sorted((ROOT / "benchmarks").glob("*.py")), ids=name)
def test_benchmarks_import_what_there_is(program):
    for module, name in imported(program):
        there = hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}")
        assert there, f"{module} has no {name}"


def test_settings_of_dqn_prior_are_those_of_the_code():
    table = (DOCS / "methods" / "dqn_prior.md").read_text().partition("## Settings")[2].partition("\n## ")[0]
    own = dict(settings(DQNPriorConfig()))
    assert dict(re.findall(r"^\| `(\S+)` \| `(.+?)` \|", table, re.MULTILINE)) == own
