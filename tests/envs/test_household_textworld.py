"""The real engine behind the household environments: the same as our simulator, contained and copied."""

import copy
import importlib.util
import json
import os
import pickle
import random
import re
import sys
from pathlib import Path

import pytest

import hunch.envs
from hunch.core import UsageError
from hunch.envs.household.generator import Recipe, generate
from hunch.envs.household.goals import KINDS, UnknownGoalError
from hunch.envs.household.problem import write
from hunch.envs.household.textworld import rules

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("alfworld", "textworld", "fast_downward")),
        reason="the real engine is not installed (extra alfworld)",
    ),
]


def both(**options):
    """The same environment on the real engine and on our simulator."""
    return [hunch.envs.make(**options, engine=engine) for engine in ("textworld", "hunch")]


def test_the_environment_is_the_same_on_either_engine():
    envs = both(id="hunch/Household-v0", games=len(KINDS))
    for game in range(len(KINDS)):
        rng = random.Random(game)
        results = [env.reset(seed=game, options={"game": game}) for env in envs]
        done = False
        while not done:
            assert results[0] == results[1]
            ways = [env.unwrapped.oracle() for env in envs]
            assert ways[0] == ways[1]
            action = ways[0][0] if rng.random() < 0.7 else rng.choice(results[0][-1]["actions"])
            results = [env.step(action) for env in envs]
            done = results[0][2] or results[0][3]
        assert results[0] == results[1]
        assert results[0][1] == 1.0 or results[0][3]


def test_the_same_seed_gives_the_same_episode_on_the_engine():
    envs = both(id="hunch/Household-Clean-v0", games=3)
    seen = [
        [env.reset(seed=seed), env.step(0), env.step(1), env.reset(), env.step(2)]
        for env in envs
        for seed in (4, 4)
    ]
    assert seen[0] == seen[1] == seen[2] == seen[3]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_has_played_the_same_commands(duplicate):
    env = hunch.envs.make("hunch/Household-Heat-v0", games=2, engine="textworld")
    env.reset(seed=5)
    for action in (0, 3, 1):
        env.step(action)
    twin = duplicate(env)
    expected = [env.step(1), env.step(2)]
    assert [twin.step(1), twin.step(2)] == expected
    assert env.reset() == twin.reset()


def test_environments_take_turns_in_one_process():
    """Engines that share translations, and engines that are used again, do not get in each other's way."""
    ids = ["hunch/Household-Pick-v0", "hunch/Household-Pick-v0", "hunch/Household-PickTwo-v0"]
    pairs = [both(id=id, games=1) for id in ids]
    for episode in range(2):
        results = [[env.reset(seed=episode) for env in pair] for pair in pairs]
        rng = random.Random(episode)
        for _ in range(12):
            assert all(left == right for left, right in results)
            actions = [rng.choice(left[-1]["actions"]) for left, _ in results]
            results = [
                [env.step(action) for env in pair] for pair, action in zip(pairs, actions, strict=True)
            ]


def test_the_process_is_left_as_it_was():
    environment, arguments, stdout = dict(os.environ), sys.argv, sys.stdout
    hunch.envs.make("hunch/Household-Pick-v0", games=1, engine="textworld").reset(seed=0)
    assert dict(os.environ) == environment
    assert sys.argv is arguments
    assert sys.stdout is stdout
    import fast_downward
    from fast_downward.interface import pddl2sas

    assert fast_downward.pddl2sas is pddl2sas


def written(path: Path) -> Path:
    domain, grammar = rules()
    write(generate(Recipe("pick")), path, domain=domain, grammar=grammar)
    return path


def odd(path: Path) -> Path:
    """A game with a goal that is none of the six: to hold a certain cellphone."""
    game = json.loads(written(path).read_text())
    problem, goal, _ = game["pddl_problem"].partition("(:goal")
    thing = re.findall(r"\(objecttype (\S+) cellphonetype\)", problem)[0]
    path.write_text(json.dumps(game | {"pddl_problem": f"{problem}{goal} (holds agent1 {thing})))"}))
    return path


def win(env) -> float:
    """Search the house and take the cellphones that lie about."""
    _, info = env.reset(seed=0)
    done, rng = False, random.Random(0)
    while not done:
        found = [action for action in info["actions"] if action.startswith(("take cellphone", "open"))]
        ways = [action for action in info["actions"] if action.startswith(("go to", "move"))]
        _, reward, terminated, truncated, info = env.step(found[-1] if found else rng.choice(ways))
        done = terminated or truncated
    return reward


def test_an_unknown_goal_among_official_games_is_the_engines(tmp_path, monkeypatch):
    trial = tmp_path / "json_2.1.1" / "train" / "pick_and_place_simple-CellPhone-None-Bed-301" / "trial_T1"
    trial.mkdir(parents=True)
    (trial / "traj_data.json").write_text('{"task_type": "pick_and_place_simple"}')
    odd(trial / "game.tw-pddl")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    env = hunch.envs.make("hunch/Household-Pick-v0", split="official:train", max_steps=500)
    assert win(env) == 1
    with pytest.raises(UnknownGoalError):
        env.unwrapped.oracle()


def test_an_unknown_goal_in_a_file_is_the_engines_if_asked_for(tmp_path):
    path = odd(tmp_path / "game.tw-pddl")
    with pytest.raises(UnknownGoalError, match="evaluates the grammar"):
        hunch.envs.make("hunch/Household-Pick-v0", path=path)
    env = hunch.envs.make("hunch/Household-Pick-v0", path=path, engine="textworld", max_steps=500)
    assert win(env) == 1


def test_a_grammar_without_an_answer_gives_one_clear_sentence(tmp_path):
    path = written(tmp_path / "game.tw-pddl")
    game = json.loads(path.read_text())
    assert "You arrive at {r.name}" in game["grammar"]
    grammar = game["grammar"].replace("You arrive at {r.name}", "You arrive at {nowhere.name}")
    path.write_text(json.dumps(game | {"grammar": grammar}))
    env = hunch.envs.make("hunch/Household-Pick-v0", path=path, engine="textworld", history=0)
    _, info = env.reset(seed=0)
    with pytest.raises(UsageError, match=r"cannot play .*game\.tw-pddl \("):
        env.step(next(action for action in info["actions"] if action.startswith("go to")))


@pytest.mark.parametrize("part", ["pddl_domain", "grammar", "pddl_problem"])
def test_what_the_engine_cannot_play_gives_one_clear_sentence(tmp_path, part):
    path = written(tmp_path / "game.tw-pddl")
    game = json.loads(path.read_text())
    for damage in ("", "(", game[part][: len(game[part]) // 2], None):
        path.write_text(json.dumps(game | {part: damage}))
        with pytest.raises(UsageError) as error:
            hunch.envs.make("hunch/Household-Pick-v0", path=path, engine="textworld")
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)
    hunch.envs.make("hunch/Household-Pick-v0", games=1, engine="textworld").reset()
