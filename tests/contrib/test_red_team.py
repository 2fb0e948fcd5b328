"""Red teaming: controls that mean something, and what is learnt from hits."""

from __future__ import annotations

import pytest

from hunch.cli.main import main

pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

SCRATCH = "scratch?width=32&layers=1&vocabulary=64"


def test_shuffled_rewards_are_refused_in_a_sentence(capsys, tmp_path):
    """The hits are chosen by their true rewards, before any could be shuffled."""
    command = ["run", "red-team", "--env", "hunch/Attack-v0", "--lm", SCRATCH, "--shuffle", "--steps", "2000"]
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert "compare with --stage zero-shot" in " ".join(capsys.readouterr().err.split())
