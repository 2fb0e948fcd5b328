"""Game files: read, written, and refused with one clear sentence."""

import json
import shutil
from dataclasses import replace

import pytest

import hunch.envs
from hunch.core import UsageError
from hunch.envs.household.generator import Recipe, generate
from hunch.envs.household.goals import KINDS, SENTENCES, Goal, recognise
from hunch.envs.household.pddl import parse
from hunch.envs.household.problem import Wording, read, write

PROBLEM = generate(Recipe("pick"))


@pytest.fixture
def game(tmp_path):
    path = tmp_path / "game.tw-pddl"
    write(PROBLEM, path)
    return path


def changed(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return path


@pytest.mark.parametrize("wording", [Wording(), Wording(True, True, False), Wording(False, True, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read(tmp_path, kind, wording):
    problem = replace(generate(Recipe(kind)), wording=wording, task='say "mug" \\ twice. é')
    write(problem, tmp_path / "game.tw-pddl")
    assert read(tmp_path / "game.tw-pddl") == problem


def test_a_grammar_of_another_version_is_refused(tmp_path):
    with pytest.raises(UsageError, match="different versions"):
        write(PROBLEM, tmp_path / "game.tw-pddl", grammar="action look {} put {o} in/on {r}")


def test_a_file_is_played(game):
    env = hunch.envs.make("hunch/Household-Pick-v0", path=game, history=0)
    generated = hunch.envs.make("hunch/Household-Pick-v0", games=1, history=0)
    (text, info), (expected, expected_info) = env.reset(seed=0), generated.reset(seed=0)
    assert text == expected
    assert info == expected_info | {"game": str(game)}


def test_a_folder_is_searched(game, tmp_path):
    for name in ("b", "a/deep"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(game, tmp_path / name / "game.tw-pddl")
    pool = hunch.envs.make("hunch/Household-Pick-v0", path=str(tmp_path)).unwrapped.pool
    assert pool == tuple(sorted(pool))
    assert len(pool) == 3
    assert len(hunch.envs.make("hunch/Household-Pick-v0", path=str(tmp_path), games=2).unwrapped.pool) == 2


def with_problem(find, replacement):
    return lambda path: changed(path, pddl_problem=PROBLEM.pddl().replace(find, replacement))


DAMAGE = {
    "truncated": (lambda path: path.write_text(path.read_text()[:500]), "not JSON"),
    "empty": (lambda path: path.write_text(""), "not JSON"),
    "binary": (lambda path: path.write_bytes(bytes(range(256)) * 40), "not JSON"),
    "nested": (lambda path: path.write_text("[" * 100_000), "not JSON"),
    "a list": (lambda path: path.write_text("[1, 2]"), "no text under 'pddl_problem'"),
    "no problem": (lambda path: path.write_text('{"grammar": ""}'), "no text under 'pddl_problem'"),
    "no grammar": (lambda path: path.write_text('{"pddl_problem": ""}'), "no text under 'grammar'"),
    "a number": (lambda path: changed(path, pddl_problem=7), "no text under 'pddl_problem'"),
    "empty problem": (lambda path: changed(path, pddl_problem=""), "parenthesised expression"),
    "unclosed": (lambda path: changed(path, pddl_problem=PROBLEM.pddl().rstrip()[:-1]), "never closed"),
    "overclosed": (lambda path: changed(path, pddl_problem=PROBLEM.pddl() + ")"), "never opened"),
    "huge": (lambda path: path.write_text('"' + "x" * 10_000_000 + '"'), "larger than"),
    "a list as grammar": (lambda path: changed(path, grammar=["look"]), "no text under 'grammar'"),
    "a long problem": (lambda path: changed(path, pddl_problem=PROBLEM.pddl() + ";" * 10**6), "longer than"),
    "many names": (
        with_problem("(:objects", "(:objects " + " ".join(f"a{i}" for i in range(5000)) + " - object"),
        "more than 2,000 names",
    ),
    "a long word": (with_problem("(openable ", f"(openable {'x' * 1000}"), "longer than 200"),
    "escapes": (with_problem("(openable ", "(openable \x1b[2J"), "cannot be printed"),
    "half a character": (with_problem("(openable ", "(openable \ud800"), "cannot be printed"),
    "a task with half a character": (
        lambda path: changed(path, grammar=r'"Your task is to: \ud800."'),
        "task is not text",
    ),
    "a task with a bad escape": (lambda path: changed(path, grammar=r'"Your task is to: \x."'), "escape"),
    "a goal of many parts": (
        with_problem(
            "(inreceptacle ?o ?r)",
            "(inreceptacle ?o ?r)"
            + " (objecttype ?o atype)" * 1000
            + "".join(f" (objecttype ?o a{i}type) (receptacletype ?r b{i}type)" for i in range(3000)),
        ),
        "none of the six known kinds",
    ),
    "deep": (lambda path: changed(path, pddl_problem="(" * 10**6), "deeper than"),
    "no goal": (with_problem("(:goal", "(:aim"), "no section :goal"),
    "no start": (with_problem("(:init", "(:begin"), "no section :init"),
    "word as section": (with_problem("(:domain alfred)", "alfred"), "parenthesised expression"),
    "movable goal": (with_problem("(inreceptacle ?o ?r)", "(inreceptacleobject ?o ?r)"), "six known kinds"),
    "or": (with_problem("exists", "forall"), "where a word belongs"),
    "no agent": (with_problem("(atlocation agent1 loc_bar_00)", ""), "where its one agent is"),
    "arity": (with_problem("(openable ", "(openable agent1 "), "takes 1 names, not 2"),
    "undeclared": (with_problem("(openable ", "(openable x"), "not declared as receptacle"),
    "wrong type": (
        with_problem("(atlocation agent1 loc_bar_00)", "(atlocation loc_bar_00 agent1)"),
        "not declared",
    ),
    "untyped": (with_problem("agent1 - agent", "agent1"), "is not declared as agent"),
    "no type": (with_problem(" - otype)", ")"), "has no type"),
    "two places": (
        with_problem("(:init", "(:init (receptacleatlocation fridge_bar_01 loc_bar_00)"),
        "two places|decl",
    ),
    "expression": (with_problem("(:init", "(:init (openable (or a b))"), "where a word belongs"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_gives_one_clear_sentence(game, name):
    damage, message = DAMAGE[name]
    damage(game)
    with pytest.raises(UsageError, match=message) as error:
        hunch.envs.make("hunch/Household-Pick-v0", path=game)
    assert str(game) in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_a_damaged_file_among_good_ones(game, tmp_path):
    (tmp_path / "zzz.tw-pddl").write_text("{")
    env = hunch.envs.make("hunch/Household-Pick-v0", path=tmp_path)
    with pytest.raises(UsageError, match=r"zzz\.tw-pddl is damaged"):
        env.reset(options={"game": 1})
    assert env.reset(options={"game": 0})[1]["game"] == str(game)


def test_nothing_there(tmp_path):
    with pytest.raises(UsageError, match="no game file or folder"):
        hunch.envs.make("hunch/Household-Pick-v0", path=tmp_path / "missing")
    with pytest.raises(UsageError, match=r"holds no \.tw-pddl file"):
        hunch.envs.make("hunch/Household-Pick-v0", path=tmp_path)


def test_nothing_is_evaluated(game):
    poison = "action look {} \"{__import__('os').abort()}\" \"Your task is to: {__import__('os').abort()}.\""
    changed(game, grammar=poison)
    env = hunch.envs.make("hunch/Household-Pick-v0", path=game)
    observation, info = env.reset(seed=0)
    assert info["task"] == "{__import__('os').abort()}"
    assert observation.endswith("Your task is to: ")  # where the engine would start to evaluate


@pytest.mark.parametrize("kind", KINDS)
def test_goals_are_recognised_under_other_names(kind):
    goal = Goal(kind, "mug", "desk" if kind != "examine" else "desklamp")
    text = goal.pddl().replace("?o", "?x").replace("?r", "?o").replace("objecttype", "objectType")
    assert recognise(parse(text)) == goal
    assert goal.sentence(0) == SENTENCES[kind][0].format(object="mug", target=goal.target)


@pytest.mark.parametrize(
    "text",
    [
        "(exists (?r - receptacle ?o - object) (and (objecttype ?o mugtype) (receptacletype ?r desktype)))",
        "(exists (?r - receptacle ?o - object) (and (objecttype ?o mugtype) (receptacletype ?r desktype) "
        "(inreceptacle ?o ?r) (issliced ?o)))",
        "(exists (?r - receptacle ?o - object ?p - object) (and (objecttype ?p mugtype) "
        "(receptacletype ?r desktype) (inreceptacle ?o ?r)))",
        "(not (holds agent1 mug))",
        "(and)",
    ],
)
def test_other_goals_are_not(text):
    with pytest.raises(ValueError, match="six known kinds"):
        recognise(parse(text))
