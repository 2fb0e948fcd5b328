"""Pictures of states in the page."""

from pathlib import Path

import pytest

import hunch
from hunch.report.gather import collect
from hunch.report.page import page

pytest.importorskip("PIL")


@pytest.mark.parametrize("drawn", [True, False])
def test_the_page_holds_the_pictures_of_states(drawn: bool, tmp_path: Path) -> None:
    options = {"picture": drawn, "history": 0, "max_steps": 5}
    hunch.train(
        "q-learning",
        "hunch/FrozenLake-v0",
        steps=15,
        streams=hunch.Streams(options=options),
        out=tmp_path / "run",
    )
    text = page(*collect([tmp_path / "run"]), episodes=2, plain=True)
    assert (text.count("data:image/png;base64,") >= 5) == drawn
