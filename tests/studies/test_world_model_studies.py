"""Studies of world models: planning in texts, code by heart, and what a line of the tables is made of."""

from pathlib import Path

import numpy as np
import pytest

import hunch
from hunch.rl.episodes import evaluate
from hunch.rl.world_model import LookUp
from hunch.roles.writer.programs import Mutator
from hunch.runs.foretell import Foretelling, recorded, text_steps
from hunch_studies import game_play, text_world_models, worldcoder
from hunch_studies.games.cfr import exploitability
from hunch_studies.games.game import Known
from hunch_studies.games.matches import AtRandom
from hunch_studies.games.tabletop.games import GAMES
from hunch_studies.rules.game_code import KUHN
from hunch_studies.worldcoder import TableExplorer


def test_planning_in_the_rules_is_best_and_in_nothing_is_random_play():
    what = Foretelling(env="hunch/Maze-v0", examples=200, episodes=20)
    recording = recorded(what, {"hints": False})
    rules = text_world_models.planned(text_world_models._Rules(recording), recording, 0)
    known = text_world_models.planned(LookUp(text_steps(recording.shown)), recording, 0)
    drawn = text_world_models.planned(None, recording, 0)
    still = text_world_models.planned(text_world_models.Still(), recording, 0)
    assert rules == known > 2 * drawn, "a look-up that has seen all is the rules"
    assert still == drawn, "where nothing changes there is nothing to plan for"


def test_a_look_up_that_guesses_knows_what_either_control_knows():
    what = Foretelling(env="hunch/Maze-v0", examples=16, episodes=20)
    recording = recorded(what, {"hints": False})
    shown = {(step.state, step.action): step for step in text_steps(recording.shown)}
    asked = [step for episode in recording.held for step in text_steps(episode)]
    pairs = [step.state for step in asked], [step.action for step in asked]
    guessing = text_world_models.GuessingLookUp(text_steps(recording.shown)).step(*pairs, [])
    by_heart = LookUp(text_steps(recording.shown)).step(*pairs, [])
    still = text_world_models.Still().step(*pairs, [])
    known = [(step.state, step.action) in shown for step in asked]
    assert 0 < sum(known) < len(known)
    assert guessing == [b if k else s for k, b, s in zip(known, by_heart, still, strict=True)]


def test_rows_of_real_models_stand_beside_their_controls(tmp_path):
    models = {"rule": "scripted:icpi"}
    labels = [text_world_models.STILL, text_world_models.GUESSING, text_world_models.USUAL, "rule"]
    rows = {label: text_world_models.predicted(models, "Chain", label, 16, 0) for label in labels}
    assert rows["rule"]["depth"][0] == rows["rule"]["new"] == 1.0
    assert rows["rule"]["parts"] == [1.0, 1.0, 1.0]
    assert rows["rule"]["failed"] == 0.0
    for better, worse in zip(labels[1:], labels, strict=False):
        assert rows[better]["depth"][0] > rows[worse]["depth"][0]
    # The small model reads its examples: with those of another domain it predicts next to nothing.
    own = text_world_models.predicted({}, "Chain", "pocket", 16, 0)
    blank = text_world_models.predicted({"pocket": "pocket"}, "Chain", "pocket, blank prompt", 16, 0)
    assert own["depth"][0] > blank["depth"][0] + 0.3
    kept = [{"key": ["Chain", label, 16, seed], **row} for label, row in rows.items() for seed in (0, 1)]
    told = text_world_models.written_table(kept).splitlines()
    assert told[-1].startswith("| Chain | 16 | rule | of new pairs | ")


def test_a_row_of_the_text_study_can_be_had_again():
    one, other = (text_world_models.run("Chain", "look-up", 16, 0) for _ in range(2))
    assert {**one, "speed": 0} == {**other, "speed": 0}
    assert one["new"] == 0.0
    assert len(one["depth"]) == text_world_models.DEPTH


def test_code_by_heart_passes_all_tests_and_is_worth_little():
    env = hunch.make("hunch/GameCode-v0", game="kuhn")
    env.reset(seed=0)
    trial = env.step(game_play.recited("kuhn"))[-1]["raw"]
    assert trial.fitness == 1.0
    rows = {
        name: game_play._exploited("kuhn", {"code": KUHN, "the truth": ""}, *key)["exploitability"]
        for name, key in {
            "even": ("even", "", 0),
            "code": ("regret minimisation in code", "code", 0),
            "memory": ("regret minimisation in memory of the matches", "memory", 0),
        }.items()
    }
    assert rows["code"] < 0.01 < rows["memory"]
    assert rows["even"] == pytest.approx(exploitability(game_play._true("kuhn"), {}))


def test_both_seats_count_alike():
    won = game_play.both(Known(GAMES["kuhn"]), AtRandom(), AtRandom(), 300)
    assert len(won) == 300
    assert np.mean(won) == pytest.approx(0, abs=0.15)


def test_programs_are_the_first_that_is_right_and_the_worst():
    rows = [
        {"fitness": f, "held_out_exact": f, "program": p}
        for f, p in [(0.5, "a"), (1.0, "b"), (1.0, "c"), (0.0, "")]
    ]
    found = game_play.distinct_labels(rows)
    assert list(found.values()) == ["b", "a"]
    assert "0.50 of the tests" in list(found)[1]


def test_a_table_of_steps_tries_every_action_nearby_first_and_then_follows_the_reward():
    agent = TableExplorer(Mutator(), epsilon=0.0)
    env = hunch.make("hunch/FrozenLake-v0")
    result = hunch.train(agent, env, 150, seed=0)
    first = next(episode.step for episode in result.episodes if episode.success)
    later = [episode for episode in result.episodes if episode.step > first]
    assert later
    assert all(episode.success for episode in later)
    # Before, half of its steps or more were new ones: the others led to an action that was not tried.
    assert len(agent.seen) > first / 2
    assert agent.written == 0
    played = evaluate(agent.player, [env], 2, 0)
    assert all(episode.success and episode.length == 6 for episode in played)


def test_the_table_beside_recorded_rows():
    table = worldcoder.recorded(Path("docs/assets/studies/worldcoder.json")).splitlines()
    assert table[2].startswith("| FrozenLake | 71 [68, 72] | 0 of 10 | 248 steps [159, 337] | 45 steps [40")
