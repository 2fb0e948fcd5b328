"""Measuring any world model by one command: the truth, a look-up, code, and models shown examples."""

import numpy as np
import pytest

from hunch.cli.main import main
from hunch.core import UsageError
from hunch.envs.design.dynamics import LAKE_MOVES, LAKE_REWARD, TAXI
from hunch.roles.world_model.prompting import PromptConfig
from hunch.runs.foretell import Foretelling, foretell, recorded, text_steps, unseen, world_model

MAZE = Foretelling(env="hunch/Maze-v0", examples=24, episodes=6, depth=3)


@pytest.fixture(scope="module")
def maze():
    return recorded(MAZE, {"hints": False})


def test_what_is_shown_is_not_what_is_foretold(maze):
    again = recorded(MAZE, {"hints": False})
    assert len(maze.shown) == 24
    assert len(maze.held) == 6
    assert maze.held == again.held
    assert 0 < unseen(maze) < 1
    more = recorded(Foretelling(env="hunch/Maze-v0", examples=30, episodes=6), {"hints": False})
    assert more.shown[:24] == maze.shown
    other = recorded(Foretelling(env="hunch/Maze-v0", examples=24, episodes=6, seed=1), {"hints": False})
    assert other.held != maze.held


def test_the_truth_is_right_and_a_look_up_knows_what_it_saw(maze):
    true, level = foretell("true", MAZE, maze)
    assert true.by_depth.tolist() == [1.0] * 3
    assert level is None
    known, _ = foretell("look-up", MAZE, maze)
    assert known.by_depth[0] == pytest.approx(1 - unseen(maze)), "each pair it saw, and no other"
    assert (np.diff(known.by_depth) <= 0).all()


def test_a_scripted_model_is_wrong_as_often_as_its_dials_say(maze):
    """Where there is no example of a piece to show, a model is not asked for it, however good it is."""
    few, _ = foretell("scripted:icpi?error=0", MAZE, maze)
    what = Foretelling(**{**vars(MAZE), "examples": 200, "draws": 6})
    many = recorded(what, {"hints": False})
    right, level = foretell("scripted:icpi?error=0", what, many)
    assert few.by_depth[0] < 1
    assert right.by_depth.tolist() == [1.0] * 3
    assert (right.confidence, right.calibration_error, level) == (1.0, 0.0, "L0")
    wrong, _ = foretell("scripted:icpi?error=1", what, many)
    assert wrong.by_depth[0] == 0
    some, _ = foretell("scripted:icpi?error=0.1", what, many)
    assert some.by_depth[0] == pytest.approx(0.9**3, abs=0.2)
    assert 0.5 < some.confidence < 1


def test_code_is_asked_by_raw_states(tmp_path):
    what = Foretelling(env="hunch/Taxi-v0", examples=50, episodes=1, depth=3)
    recording = recorded(what)
    (tmp_path / "model.py").write_text(TAXI)
    quality, _ = foretell(f"code:{tmp_path}/model.py", what, recording)
    assert quality.by_depth.tolist() == [1.0] * 3
    lake = Foretelling(env="hunch/FrozenLake-v0", examples=4, episodes=2, depth=2)
    (tmp_path / "two.py").write_text(LAKE_MOVES + LAKE_REWARD)
    quality, _ = foretell(f"code:{tmp_path}/two.py", lake, recorded(lake))
    assert quality.by_depth.tolist() == [1.0] * 2
    as_class = """
class Environment:
    def set_state(self, state):
        self.state = state

    def step(self, action):
        return _step(self.state, action)
"""
    (tmp_path / "model.py").write_text(TAXI.replace("def step(", "def _step(") + as_class)
    quality, _ = foretell(f"code:{tmp_path}/model.py", what, recording)
    assert quality.by_depth.tolist() == [1.0] * 3, "the paper's class"
    (tmp_path / "model.py").write_text("def step(state, action):\n    return 1 / 0\n")
    quality, _ = foretell(f"code:{tmp_path}/model.py", what, recording)
    assert quality.by_depth.tolist() == [0.0] * 3
    (tmp_path / "model.py").write_text("def move(state, action):\n    return 0\n")
    with pytest.raises(UsageError, match="cannot be run"):
        foretell(f"code:{tmp_path}/model.py", what, recording)


@pytest.mark.parametrize(
    ("spec", "env", "said"),
    [
        ("code:nowhere.py", "hunch/Taxi-v0", "nowhere.py cannot be read: No such file"),
        ("scripted:icpi", "hunch/Taxi-v0", "texts for prompts"),
        ("true", "hunch/Blackjack-v0", "cannot be set to a given state"),
        ("minilm-not", "hunch/Chain-v0", "minilm"),
    ],
)
def test_what_cannot_foretell_is_said_in_a_sentence(spec, env, said):
    what = Foretelling(env=env, examples=4, episodes=1)
    with pytest.raises(UsageError, match=said):
        foretell(spec, what, recorded(what))


def test_by_the_command(capsys):
    options = ["--env", "hunch/Chain-v0", "--examples", "20", "--episodes", "4", "--depth", "2"]
    main(["foretell", "true", "look-up", *options])
    told = capsys.readouterr().out
    assert "hunch/Chain-v0, 20 steps shown" in told
    assert "true" in told
    assert "look-up" in told
    for wrong in ([], ["true", "--depth", "0"]):
        with pytest.raises(SystemExit) as stopped:
            main(["foretell", *wrong])
        assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("wrong", "env", "said"),
    [
        ("nosuch", "hunch/Chain-v0", "no model called 'nosuch'"),
        ("bag-of-words", "hunch/Chain-v0", "can generate"),
        ("scripted:icpi", "hunch/Taxi-v0", "texts for prompts"),
        ("code:nowhere.py", "hunch/Taxi-v0", "No such file"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_model_is_measured(wrong, env, said, hunch_command):
    code, out, err = hunch_command("foretell", "look-up", wrong, "--env", env, "--episodes", "2")
    assert code == 2
    assert said in err
    assert out == ""


def test_what_was_measured_before_a_model_failed_is_shown(tmp_path, hunch_command):
    file = tmp_path / "model.py"
    file.write_text("def step(state):\n    return state\n")
    code, out, err = hunch_command("foretell", "look-up", f"code:{file}", "--episodes", "2")
    assert code == 2
    assert "cannot be run" in err
    assert "look-up" in out


def test_a_long_spec_is_not_cut_in_the_table(tmp_path, hunch_command):
    """Two programs in one folder differ only at the end of their names."""
    file = tmp_path / ("a" * 90) / "second.py"
    file.parent.mkdir()
    file.write_text("def step(state, action):\n    return state, 0.0, False\n")
    code, out, err = hunch_command("foretell", f"code:{file}", "--episodes", "2", "--examples", "4")
    assert code == 0, err
    names = "".join(line.split(" ")[0] for line in out.splitlines() if not line.startswith("states"))
    assert f"code:{file}" in names
    assert "calibration" in out
    assert "…" not in out


def test_examples_are_texts_in_the_words_of_the_domain(maze):
    with world_model("scripted:icpi", maze, PromptConfig()) as (model, words, _):
        assert words
        assert [step.state for step in model.steps] == [step.state for step in text_steps(maze.shown)]
