"""TextCraft: what is found is got, the rest is crafted by a recipe, to the number."""

import pytest

import hunch
from hunch.core import UsageError
from hunch_studies.worlds.textcraft import RECIPES, Book, Recipe, counted, craft, depth


def played(goal, *actions, **options):
    env = hunch.make("hunch/TextCraft-v0", goal=goal, **options)
    env.reset(seed=0)
    return [env.step(action) for action in actions]


def test_a_goal_is_crafted_by_its_recipes():
    steps = played(
        "bowl",
        "get 1 oak log",
        "craft 4 oak planks using 1 oak log",
        "inventory",
        "craft 1 bowl using 3 oak planks",
    )
    assert [step[0] for step in steps[:3]] == [
        "Got 1 oak log.",
        "Crafted oak planks.",
        "You have 4 oak planks.",
    ]
    assert (steps[-1][1], steps[-1][2], steps[-1][-1]["success"]) == (1.0, True, True)


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("get 1 stick", "Could not find stick."),  # a recipe makes it
        ("get 3 planks", "Could not find planks."),  # any sort will do, so it is none
        ("get 1 unicorn", "Could not find unicorn."),
        ("get 0 string", "Could not find string."),
        (
            "craft 1 white wool using 4 string",
            "Could not craft white wool: there is too little of what it takes.",
        ),
        ("craft 1 white wool using 3 string", "Could not craft white wool: there is no such recipe."),
        ("craft 1 white wool using string", "Could not craft white wool: 'string' is not a list"),
        ("sing a song", "Could not do 'sing a song'."),
        ("", "Could not do ''."),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(action, said):
    told, after = played("bowl", action, "inventory")
    assert told[0].startswith(said)
    assert after[0] == "You have nothing."
    assert not told[2]


def test_a_kind_may_be_any_of_its_sorts_but_not_a_mixture():
    book = Book.read(RECIPES)
    bowl = book.matching("bowl", (("birch planks", 3),))
    assert bowl == Recipe("bowl", 1, (("planks", 3),))
    assert book.matching("bowl", (("birch planks", 2), ("oak planks", 1))) is None
    assert craft(book, {"oak planks": 4}, "bowl", (("oak planks", 3),)) == {"oak planks": 1, "bowl": 1}


def test_every_recipe_reads_as_it_is_written():
    book = Book.read(RECIPES)
    assert "\n".join(map(str, book.recipes)) == RECIPES
    assert {item for item in book.by_output if depth(book, item) == 1} >= {"oak planks", "white wool"}
    assert depth(book, "orange bed") == 4


def test_recipes_in_a_circle_have_a_depth():
    book = Book.read("craft 1 a using 1 b\ncraft 1 b using 1 a")
    assert depth(book, "a") == 2


def test_goals_differ_and_unknown_ones_are_refused():
    env = hunch.make("hunch/TextCraft-v0")
    tasks = {env.reset(seed=seed)[1]["task"] for seed in range(20)}
    assert len(tasks) > 3
    with pytest.raises(UsageError, match="no recipe for cake"):
        hunch.make("hunch/TextCraft-v0", goal="cake")
    with pytest.raises(UsageError, match="'bake a cake' is not a crafting command"):
        hunch.make("hunch/TextCraft-v0", recipes="bake a cake")
    with pytest.raises(UsageError, match="not a list of numbers"):
        counted("two sticks")


def test_the_contract_holds():
    env = hunch.make("hunch/TextCraft-v0", goal="stick")
    observation, info = env.reset(seed=0)
    assert info["free_text"]
    assert "actions" not in info
    assert observation.endswith("Goal: craft stick.")
    for _ in range(40):
        *_, truncated, info = env.step("inventory")
    assert truncated
