"""The demo with a model that writes, from recorded answers."""

from pathlib import Path

from hunch_studies.demo_lm import main, seen

ANSWERS = Path(__file__).parents[2] / "docs" / "assets" / "studies" / "code-policies-request.answers.jsonl.gz"


def test_it_says_what_was_seen_and_what_is_next(tmp_path, capsys):
    out = tmp_path / "demo"
    line = [
        "--lm",
        f"replay:{ANSWERS}",
        "--programs",
        "4",
        "--seed",
        "1",
        "--tokens",
        "400",
        "--out",
        str(out),
    ]
    main(line)
    said = capsys.readouterr().out
    assert said.count("model, program") == said.count("random, program") == 4
    assert "Seen: the model's best policy returns" in said
    assert f"Next: hunch report {out}" in said
    assert (out / "model" / "best.py").exists()
    assert (out / "curves.png").exists()
    main(line)  # what is done is not done again
    again = capsys.readouterr().out
    assert "program 1" not in again
    assert "Seen:" in again


def test_a_model_that_is_not_ahead_is_not_praised():
    assert "no more than random changes" in " ".join(seen(-200.0, -200.0))
    ahead = " ".join(seen(-120.0, -200.0))
    assert "no more than random changes" not in ahead
    assert "arrives after 120 steps" in ahead
    assert "never arrives" in ahead
