"""The study of planners."""

from tests.methods import test_planners

from hunch.runs.files import read_lines
from hunch_studies import planners
from hunch_studies.study import Scale

runs, skills = test_planners.runs, test_planners.skills


def test_a_study_of_planners_plays_the_same_errands_in_every_line(skills, monkeypatch, tmp_path):
    """Episodes are paired, kept, and not played again; a right plan that fails is one of execution."""
    monkeypatch.setattr(planners, "skills_of", lambda *where: skills)
    scale = Scale(seeds=2, share=1.0)
    bench = planners.Bench(tmp_path, tmp_path, scale, episodes=6)
    one, other = (planners.Line(f"line {score}", "scripted:errands", options={"score": score})
                  for score in ("say", "product"))  # fmt: skip
    runs, again = bench.played(one), bench.played(other)
    assert [[e.task for e in run] for run in runs] == [[e.task for e in run] for run in again]
    kept = [row["key"] for row in read_lines(tmp_path / "episodes.jsonl")]
    assert kept == [["line say", 0], ["line say", 1], ["line product", 0], ["line product", 1]]
    monkeypatch.setattr(planners, "play", None)
    assert planners.Bench(tmp_path, tmp_path, scale, episodes=6).played(one) == runs
    every = [episode for run in runs for episode in run]
    assert all(e.failure == ("" if e.success else "execution" if e.right else "plan") for e in every)
    assert all(e.right for e in every if e.success)
