"""Runs on pictures that a model reads: counted, resumed exactly, and refused where nothing can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hunch.cli.main import main
from hunch.methods.q_learning import QLearningConfig
from hunch.rl import dataset
from hunch.runs.callbacks import Watch
from hunch.runs.config import RunConfig
from hunch.runs.execute import execute
from hunch.runs.files import read_json
from hunch.runs.record import collect, parse_mix
from hunch.runs.stored import read_run

pytest.importorskip("minigrid")
pytest.importorskip("hunch_pocket")

BED = "hunch/BabyAI-GoToRedBallNoDists-v0"
EYES = "pocket?corpus=clip"
READ = {"history": 0, "reader": EYES}
CONFIG = RunConfig(method="q-learning", env=BED, env_options=READ, steps=60, options=QLearningConfig())


def test_stopped_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    whole = execute(CONFIG, tmp_path / "whole")
    counted = iter(range(1000))
    assert not execute(CONFIG, tmp_path / "half", watch=Watch(stop=lambda: next(counted) >= 25)).complete
    execute(CONFIG, tmp_path / "half")
    first, second = ((tmp_path / name / "episodes.jsonl").read_bytes() for name in ("whole", "half"))
    assert first == second
    assert whole.evidence == "L1", "the reader fills a role"


def test_the_reader_is_counted_in_the_run(tmp_path: Path) -> None:
    command = ("run", "q-learning", "--env", BED, "--env.history", "0", "--env.picture", "--reader", EYES)
    main([*command, "--steps", "20", "--out", str(tmp_path / "a")])
    assert read_run(tmp_path / "a").env_options == {"history": 0, "picture": True, "reader": EYES}
    assert read_json(tmp_path / "a" / "config.json")["models"]["reader"]["evidence"] == "L1"


def test_data_are_recorded_as_they_were_read(tmp_path: Path) -> None:
    recorded = collect(BED, READ, parse_mix("random"), 20, seed=2)
    dataset.save(recorded, tmp_path)
    again = dataset.load(tmp_path)
    assert dict(again.env_options) == READ
    assert dataset.as_episodes(again) == dataset.as_episodes(recorded)


def test_what_cannot_be_read_is_refused(tmp_path: Path, capsys: Any) -> None:
    for env, said in (("hunch/BabyAI-GoToObj-v0", "does not say"), ("hunch/Craft-v0", "draws no pictures")):
        with pytest.raises(SystemExit) as ended:
            main(
                ["run", "q-learning", "--env", env, "--reader", EYES, "--steps", "9", "--out", str(tmp_path)]
            )
        assert ended.value.code == 2
        assert said in " ".join(capsys.readouterr().err.split())
