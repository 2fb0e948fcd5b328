"""The library and contrib are tested, and the guides run, without the studies."""

import ast
import re
from pathlib import Path

import pytest

from hunch.envs import OF_STUDIES as ENVS
from hunch.lm.registry import OF_STUDIES as KINDS
from hunch.lm.rules import OF_STUDIES as RULES
from tests.test_docs import PROGRAMS, blocks, name

TESTS = Path(__file__).parent
NAMED = {
    "test_studies_apart.py": "this test",
    "test_layers.py": "the layers of all packages",
    "test_wheel.py": "what the wheel says that it does not hold",
    "envs/test_contract.py": "every environment that is installed, but for those with tests of their own",
}
"""Tests that name the studies without needing them."""
FILES = [path for path in sorted(TESTS.rglob("*.py")) if path.relative_to(TESTS).parts[0] != "studies"]
PICTURES = "pictures.md"
"""Its model with eyes is in hunch-rl-pocket, and knows the words of a world of the studies."""


def of_studies(text):
    """What a text names of the studies: the package, environments, rules, or kinds of models."""
    parts = [rf"hunch/{re.escape(env)}-v0" for env in ENVS]
    parts += [rf"scripted:{rule}" for rule in RULES]
    parts += ["hunch_studies", *(rf"[\"']{kind}\b" for kind in KINDS)]
    return sorted(set(re.findall(rf"(?:{'|'.join(parts)})(?![\w-])", text)))


def strings(source):
    """The strings and imports of a program, one a line; its comments name what they like."""
    nodes = list(ast.walk(ast.parse(source)))
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = [f"'{text}" for text in found]
    return "\n".join(
        [*found, *(ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))]
    )


def test_what_is_of_the_studies_is_seen():
    assert of_studies("import hunch_studies.rules") == ["hunch_studies"]
    assert of_studies("'scripted:critic?error=0.1', 'scripted:first'") == ["scripted:critic"]
    assert of_studies("hunch/Proof-v0 hunch/FrozenLake-v0") == ["hunch/Proof-v0"]
    assert of_studies("lm.load('tfidf')") == ["'tfidf"]
    assert strings("import a.b  # hunch_studies\nx = 'c'") == "'c\nimport a.b"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_of_the_library_need_no_study(path):
    if str(path.relative_to(TESTS)) not in NAMED:
        assert of_studies(strings(path.read_text())) == [], (
            "a test that needs the studies goes to tests/studies"
        )


@pytest.mark.parametrize("page", [page for page in PROGRAMS if page.name != PICTURES], ids=name)
def test_programs_of_guides_need_no_study(page):
    assert [found for block in blocks(page) for found in of_studies(block)] == []
