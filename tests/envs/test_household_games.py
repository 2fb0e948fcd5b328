"""Pools: the kinds by turns, ALFWorld's own games by its rules, and the real engine where it is needed."""

import importlib.util
import json
from collections import Counter

import pytest

import hunch.envs
from hunch.core import UsageError
from hunch.envs.household.generator import Recipe, generate
from hunch.envs.household.goals import KINDS, TASK_TYPES, UnknownGoalError
from hunch.envs.household.problem import write

SINGLE = {
    kind: f"hunch/Household-{name}-v0"
    for kind, name in zip(KINDS, ("Pick", "Examine", "Clean", "Heat", "Cool", "PickTwo"), strict=True)
}
NAMES = {kind: name for name, kind in TASK_TYPES.items()}
UNKNOWN = "(:goal (exists (?o - object) (isclean ?o)))"
no_engine = pytest.mark.skipif(
    importlib.util.find_spec("alfworld") is not None, reason="the real engine is installed"
)


def pool(id="hunch/Household-v0", **options):
    return hunch.envs.make(id, **options).unwrapped.pool


def test_the_kinds_take_turns():
    mixed = pool()
    assert len(mixed) == 28 * len(KINDS)
    assert [recipe.kind for recipe in mixed[:12]] == [*KINDS, *KINDS]
    for kind, id in SINGLE.items():
        assert tuple(recipe for recipe in mixed if recipe.kind == kind) == pool(id)
    assert pool(games=15) == mixed[:15]
    assert Counter(recipe.kind for recipe in pool(games=15)).most_common()[-1][1] == 2


@pytest.mark.parametrize("kinds", ["clean,heat", ("heat", "clean"), ["clean", "heat", "clean"]])
def test_chosen_kinds(kinds):
    assert [(recipe.kind, recipe.index) for recipe in pool(kinds=kinds, games=3)] == [
        ("clean", 0),
        ("heat", 0),
        ("clean", 1),
    ]


@pytest.mark.parametrize("kinds", ["fry", "", (), ["clean", "fry"], 7, [3]])
def test_kinds_that_there_are_not(kinds):
    with pytest.raises(UsageError, match=r"kinds must .*examine.*picktwo"):
        pool(kinds=kinds)


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_kind_takes_no_other(kind):
    assert {recipe.kind for recipe in pool(SINGLE[kind])} == {kind}
    with pytest.raises(UsageError, match=f"kinds must be {kind}, not 'all'"):
        pool(SINGLE[kind], kinds="all")


def test_the_oracle_wins_the_mix():
    env = hunch.envs.make("hunch/Household-v0", games=12)
    for game in range(12):
        _, info = env.reset(options={"game": game})
        for action in env.unwrapped.oracle():
            *_, terminated, _, info = env.step(action)
        assert terminated
        assert info["success"]


@pytest.mark.parametrize("game", [1.0, True, -1, 3, "0", None])
def test_a_game_is_named_by_its_number(game):
    env = hunch.envs.make("hunch/Household-Pick-v0", games=3)
    with pytest.raises(UsageError, match=f"There is no game {game!r}: the pool holds games 0 to 2"):
        env.reset(options={"game": game})


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Where ALFWorld's games are looked for."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    return tmp_path / "json_2.1.1"


def trial(tree, kind, number=0, split="train", note="None", **entries):
    """A game in the place and with the neighbour that ALFWorld's own have."""
    problem = generate(Recipe(kind, index=number))
    goal = problem.goal
    task = f"{NAMES[kind]}-{goal.object.title()}-{note}-{goal.target.title()}-{300 + number}"
    folder = tree / split / task / f"trial_T2019{number:02}"
    folder.mkdir(parents=True)
    parameters = {"object_target": goal.object, "parent_target": goal.target, "mrecep_target": ""}
    description = {"task_type": NAMES[kind], "pddl_params": parameters, "scene": {"scene_num": 300 + number}}
    (folder / "traj_data.json").write_text(json.dumps(description))
    path = folder / "game.tw-pddl"
    write(problem, path)
    return rewrite(path, **entries)


def rewrite(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return path


def test_official_games_are_those_of_the_kind_in_order(tree):
    picks = [trial(tree, "pick", number) for number in range(4)]
    heats = [trial(tree, "heat", number) for number in range(2)]
    unseen = trial(tree, "pick", 7, split="valid_unseen")
    assert pool(SINGLE["pick"], split="official:train") == tuple(sorted(picks))
    assert pool(SINGLE["pick"], split="official:train", games=2) == tuple(sorted(picks)[:2])
    assert pool(SINGLE["pick"], split="official:valid_unseen") == (unseen,)
    picks, heats = sorted(picks), sorted(heats)
    mixed = (picks[0], heats[0], picks[1], heats[1], picks[2], picks[3])
    assert pool(split="official:train") == mixed
    assert pool(split="official:train", games=3) == mixed[:3]
    assert pool(split="official:train", kinds="heat,cool") == tuple(heats)


@pytest.mark.parametrize("kind", KINDS)
def test_an_official_game_is_played(tree, kind):
    path = trial(tree, kind, 3, split="valid_seen")
    env = hunch.envs.make(SINGLE[kind], split="official:valid_seen", history=0)
    generated = hunch.envs.make(SINGLE[kind], games=4, history=0)
    text, info = env.reset(seed=0)
    expected, expected_info = generated.reset(options={"game": 3})
    assert (text, info) == (expected, expected_info | {"game": str(path)})
    for action in env.unwrapped.oracle():
        *_, info = env.step(action)
    assert info["success"]


FILTERS = {
    "no description": lambda path: (path.parent / "traj_data.json").unlink(),
    "no task type": lambda path: (path.parent / "traj_data.json").write_text("{}"),
    "another task type": lambda path: rewrite(
        path.parent / "traj_data.json", task_type="pick_and_place_with_movable_recep"
    ),
    "a task type that is none": lambda path: rewrite(path.parent / "traj_data.json", task_type=["pick"]),
    "no game": lambda path: path.unlink(),
    "not solvable": lambda path: rewrite(path, solvable=False),
    "nobody knows": lambda path: path.write_text(
        json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "solvable"})
    ),
    "movable": lambda path: path.parent.rename(path.parent.parent / "trial_movable"),
    "sliced": lambda path: path.parent.parent.rename(path.parent.parent.with_name("x-AppleSliced-1")),
}


@pytest.mark.parametrize("name", FILTERS)
def test_the_official_filters(tree, name):
    good, bad = trial(tree, "pick", 0), trial(tree, "pick", 1)
    FILTERS[name](bad)
    assert pool(SINGLE["pick"], split="official:train") == (good,)


def test_only_the_path_inside_the_split_is_filtered(tmp_path, monkeypatch):
    root = tmp_path / "movable" / "Sliced"
    path = trial(root / "json_2.1.1", "pick")
    monkeypatch.setenv("ALFWORLD_DATA", str(root))
    assert pool(SINGLE["pick"], split="official:train") == (path,)


def test_no_official_games(tree, monkeypatch, tmp_path):
    for id in SINGLE.values():
        with pytest.raises(UsageError, match=r"train: fetch .* alfworld-download"):
            pool(id, split="official:train")
    trial(tree, "pick")
    with pytest.raises(UsageError, match="holds no solvable game of the kind heat"):
        pool(SINGLE["heat"], split="official:train")
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(UsageError, match=r"home/\.cache/alfworld/json_2\.1\.1/train"):
        pool(split="official:train")


def test_where_alfworld_puts_its_games_by_itself(tmp_path, monkeypatch):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = trial(tmp_path / ".cache" / "alfworld" / "json_2.1.1", "cool")
    assert pool(SINGLE["cool"], split="official:train") == (path,)


@pytest.mark.parametrize("file", ["traj_data.json", "game.tw-pddl"])
@pytest.mark.parametrize("damage", ["", "{", "[" * 100_000, '"\xff'])
def test_a_damaged_file_in_the_official_tree(tree, file, damage):
    trial(tree, "pick", 0)
    path = trial(tree, "pick", 1).with_name(file)
    path.write_text(damage, encoding="latin-1")
    with pytest.raises(UsageError, match="not JSON") as error:
        pool(split="official:train")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def with_unknown_goal(path):
    problem = json.loads(path.read_text())["pddl_problem"]
    return rewrite(path, pddl_problem=problem[: problem.index("(:goal")] + UNKNOWN + ")")


def test_an_unknown_goal_from_anywhere_needs_a_word_of_trust(tmp_path):
    path = with_unknown_goal(trial(tmp_path, "pick"))
    with pytest.raises(UnknownGoalError, match=r"six known kinds.*engine='textworld'.*Python.*trust"):
        hunch.envs.make("hunch/Household-v0", path=path)


@no_engine
def test_the_real_engine_is_missed_by_name(tree):
    missing = r"pip install .*\[alfworld\].*does not support Python 3\.13"
    with pytest.raises(UsageError, match=missing):
        hunch.envs.make("hunch/Household-v0", engine="textworld")
    path = with_unknown_goal(trial(tree, "pick"))
    with pytest.raises(UsageError, match=f"six known kinds.*{missing}") as error:
        hunch.envs.make("hunch/Household-v0", split="official:train")
    assert str(path) in str(error.value)


def test_an_unknown_goal_among_known_ones_is_met_when_it_is_drawn(tree):
    good, odd = (trial(tree, "pick", number) for number in range(2))
    good, odd = sorted((good, odd))
    with_unknown_goal(odd)
    env = hunch.envs.make("hunch/Household-v0", path=tree)
    env.reset(options={"game": 0})
    with pytest.raises(UnknownGoalError):
        env.reset(options={"game": 1})
    env.step(0)  # the game in play is left alone
