"""The study of AlphaProof with a real model as the guide."""

from pathlib import Path

from hunch.cli.main import main
from hunch.lm import load
from hunch.roles.guide import LanguageGuide
from hunch.runs.files import read_lines
from hunch_studies.proofs_written import Words, recorded, table
from hunch_studies.worlds.proofs.theorems import pool

DATA = Path(__file__).parents[2] / "docs" / "assets" / "studies"


def test_a_guide_attempts_the_theorems_of_the_controls(tmp_path):
    main(["study", "proofs-written", "--smoke", "--lm", "scripted:overlap", "--out", str(tmp_path)])
    (file,) = tmp_path.rglob("rows.jsonl")
    rows = read_lines(file)
    labels = [row["key"][0] for row in rows]
    assert labels[:3] == ["uniform", "rule", "words"]
    assert labels[4] == f"{labels[3]}, blank prompt"
    assert len({len(row["needed"]) for row in rows}) == 1
    assert table(rows) in (tmp_path / "page.md").read_text()
    assert "learned" in recorded(file, DATA / "proofs.json")


def test_words_prefer_what_the_goal_names():
    goals = pool("hard", 4, 0, held_out=True)
    priors, _ = Words().evaluate(goals)
    assert all(abs(own.sum() - 1) < 1e-6 for own in priors)
    assert any(own.max() > 1.5 / len(own) for own in priors)


def test_without_the_goal_only_the_names_of_its_tactics_count():
    model = load("scripted:overlap")
    goals = pool("hard", 4, 0, held_out=True)
    seen, _ = LanguageGuide(model).evaluate(goals)
    blank, _ = LanguageGuide(model, blank=True).evaluate(goals)
    assert [len(own) for own in seen] == [len(own) for own in blank]
