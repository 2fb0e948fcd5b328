"""Overcooked: the published episodes, every scene there is, and the odd corners of rules and texts."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hunch.envs
from hunch_studies.worlds.overcooked.env import PRIMITIVE_STEPS, OvercookedSalad, OvercookedTomato
from hunch_studies.worlds.overcooked.kitchen import BOWL, DELIVERY, SALAD, TOMATO, access, near, play
from hunch_studies.worlds.overcooked.words import look

TOMATO_BEST, TOMATO_OTHER = (0, 2, 4, 0, 1, 3), (0, 2, 4, 1, 0, 3)
SALAD_BEST = (0, 4, 7, 1, 5, 7, 3, 0, 1, 6)
WAIT = -0.001

both = pytest.mark.parametrize("kitchen", [TOMATO, SALAD], ids=["tomato", "salad"])
either = pytest.mark.parametrize("env_class", [OvercookedTomato, OvercookedSalad])
choices = st.lists(st.integers(0, 7), max_size=250)


def after(env, macros):
    """Play macro-actions from the start; return what the last one, or the reset, led to."""
    seen = env.reset(seed=0)
    for macro in macros:
        seen = env.step(macro)
    return seen


def costs(steps):
    """The discounted cost of primitive steps."""
    return WAIT * (1 - 0.99**steps) / 0.01


def reachable(kitchen):
    """Every scene, with the results of its macro-actions; none where the dish is served."""
    start = kitchen.start()
    results, waiting = {start: ()}, [start]
    while waiting:
        scene = waiting.pop()
        results[scene] = [play(kitchen, scene, macro) for macro in range(len(look(kitchen, scene).labels))]
        for result in results[scene]:
            if result.scene not in results:
                results[result.scene] = ()
                if not result.delivered:
                    waiting.append(result.scene)
    return results


@pytest.mark.parametrize(
    ("env_class", "macros", "steps", "rewards", "plain", "discounted"),
    [
        (
            *(OvercookedTomato, TOMATO_BEST, [2, 5, 3, 1, 10, 7]),
            [costs(2), costs(5), costs(3) + 0.2 * 0.99**2, costs(1), costs(10), costs(7) + 0.99**6],
            *(1.110284, 0.920518),
        ),
        (
            *(OvercookedTomato, TOMATO_OTHER, [2, 5, 3, 9, 9, 3]),
            [costs(2), costs(5), costs(3) + 0.2 * 0.99**2, costs(9), costs(9), costs(3) + 0.99**2],
            *(1.145992, 0.895634),
        ),
        (
            *(OvercookedSalad, SALAD_BEST, [2, 5, 3, 5, 6, 3, 8, 9, 2, 2]),
            [
                *(costs(2), costs(5), costs(3) + 0.2 * 0.99**2, costs(5), costs(6)),
                *(costs(3) + 0.2 * 0.99**2, costs(8), costs(9), costs(2), costs(2) + 0.99),
            ],
            *(1.338102, 0.947656),
        ),
    ],
)
def test_reference_episodes(env_class, macros, steps, rewards, plain, discounted):
    env = env_class()
    env.reset()
    played = [env.step(macro) for macro in macros]
    assert [info["primitive_steps"] for *_, info in played] == steps
    assert [step[1] for step in played] == pytest.approx(rewards, abs=1e-9)
    assert sum(step[1] for step in played) == pytest.approx(plain, abs=1e-6)
    discounts = [0.99 ** sum(steps[:index]) for index in range(len(steps))]
    total = sum(d * step[1] for d, step in zip(discounts, played, strict=True))
    assert total == pytest.approx(discounted, abs=1e-6)
    assert [(*step[2:4], step[4]["success"]) for step in played[:-1]] == [(False, False, False)] * (
        len(played) - 1
    )
    assert (*played[-1][2:4], played[-1][4]["success"]) == (True, False, True)


@pytest.mark.parametrize(("kitchen", "scenes", "texts"), [(TOMATO, 25, 21), (SALAD, 1161, 787)])
def test_all_scenes(kitchen, scenes, texts):
    found = reachable(kitchen)
    assert len(found) == scenes
    assert len({look(kitchen, scene).text for scene in found}) == texts


@pytest.mark.parametrize(("kitchen", "optimum"), [(TOMATO, 0.920518), (SALAD, 0.947656)])
def test_nothing_beats_the_published_optimum(kitchen, optimum):
    results = reachable(kitchen)
    values = dict.fromkeys(results, 0.0)
    for _ in range(40):
        values = {
            scene: max((r.reward + 0.99**r.steps * values[r.scene] for r in played), default=0.0)
            for scene, played in results.items()
        }
    assert values[kitchen.start()] == pytest.approx(optimum, abs=1e-6)


@both
def test_labels_are_distinct_in_every_scene(kitchen):
    for scene in reachable(kitchen):
        labels = look(kitchen, scene).labels
        assert len(set(labels)) == len(labels) == len(kitchen.homes) + len(kitchen.boards) + 2


@both
def test_every_item_is_where_it_may_be(kitchen):
    boards = kitchen.boards.values()
    for scene, results in reachable(kitchen).items():
        cells = dict(zip(kitchen.homes, scene.cells, strict=True))
        chops = dict(zip(kitchen.foods, scene.chops, strict=True))
        assert access(scene.agent) == scene.agent
        assert set(scene.chops) <= {0, 3}
        assert (cells[BOWL] == DELIVERY) == (not results)
        for item, cell in cells.items():
            assert cell in {kitchen.homes[item], scene.agent, *boards, cells[BOWL]}
            assert cell != kitchen.homes[item] or not chops.get(item)
            together = [other for other in cells if cells[other] == cell]
            assert together == [item] or together[-1] == BOWL
            assert all(chops[food] == 3 for food in together[:-1])


@both
def test_every_macro_action_takes_its_steps_and_pays_for_them(kitchen):
    for scene, results in reachable(kitchen).items():
        for result in results:
            assert 1 <= result.steps <= 4 + 4 + 2
            earned = result.reward - costs(result.steps)
            possible = [0.0, 0.2 * 0.99**2, 0.99 ** (result.steps - 1), -0.1 * 0.99 ** (result.steps - 1)]
            assert min(abs(earned - reward) for reward in possible) < 1e-9
            assert result.delivered == (earned > 0.5)
            walked = sum(abs(a - b) for a, b in zip(scene.agent, result.scene.agent, strict=True))
            assert result.steps - walked in {0, 1, 2, 3}


@both
def test_the_vector_shows_what_is_near(kitchen):
    for scene in reachable(kitchen):
        numbers = list(look(kitchen, scene).vector)
        assert numbers[-7:] == [int(index == kitchen.recipe_index) for index in range(7)]
        stations = [*kitchen.boards.values(), DELIVERY, scene.agent]
        for index, cell in enumerate([*scene.cells, *stations]):
            shown = (numbers.pop(0), numbers.pop(0))
            assert shown == (cell if near(cell, scene.agent) else (0, 0))
            if index < len(kitchen.foods):
                assert numbers.pop(0) == (scene.chops[index] if near(cell, scene.agent) else 0)
        assert len(numbers) == 7


@both
def test_text_and_labels_say_what_the_vector_says(kitchen):
    said = {}
    for scene in reachable(kitchen):
        view = look(kitchen, scene)
        assert said.setdefault(view.vector, (view.text, view.labels)) == (view.text, view.labels)
        for item, cell in zip(kitchen.homes, scene.cells, strict=True):
            spoken_of = f"{item} " in view.text.replace(".", " ").replace(",", " ")
            assert spoken_of == (near(cell, scene.agent) and cell != DELIVERY)
        assert ("serve nothing" in view.labels) == (
            "without anything in hand" in view.text or "don't have anything in hand" in view.text
        )


def test_the_first_observations():
    text, info = OvercookedTomato().reset()
    assert text == (
        "There is a fixed cutting board in the room. You notice a tomato on the table. "
        "Currently you don't have anything in hand."
    )
    assert info["vector"] == (0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 4, 1, 0, 0, 0, 0, 0, 0)
    assert info["primitive_steps"] == 0
    assert info["task"] == "serve the dish of a bowl only containing chopped tomato"
    text, info = OvercookedSalad().reset()
    assert text == (
        "There are two fixed cutting boards in the room. "
        "You notice a tomato, a lettuce and an onion on the different tables. "
        "Currently you don't have anything in hand."
    )
    assert info["vector"] == (0, 5, 0, 1, 6, 0, 2, 6, *[0] * 9, 1, 4, 0, 0, 0, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("env_class", "dish"), [(OvercookedTomato, "tomato"), (OvercookedSalad, "tomato and lettuce")]
)
def test_the_closing_half_sentence(env_class, dish):
    plain, closed = env_class(), env_class(closing=True)
    ending = f" To serve the dish of a bowl only containing chopped {dish}, you should first"
    assert closed.reset()[0] == plain.reset()[0] + ending
    assert closed.step(0)[0] == plain.step(0)[0] + ending


@pytest.mark.parametrize(
    ("env_class", "macros", "sentences"),
    [
        (OvercookedTomato, [0], ["Currently you are carrying an unchopped tomato in hand."]),
        (
            *(OvercookedTomato, [0, 2]),
            [
                "An unchopped tomato is on the cutting board.",
                "Currently you are standing in front of the cutting board without anything in hand.",
            ],
        ),
        (
            *(OvercookedTomato, [*TOMATO_OTHER[:5], 2]),
            [
                "A bowl containing a chopped tomato is on the cutting board.",
                "Currently you are standing in front of the cutting board without anything in hand.",
            ],
        ),
        (
            *(OvercookedTomato, TOMATO_OTHER[:5]),
            [
                "Currently you are standing in front of the cutting board, "
                "carrying a bowl containing chopped tomato in hand."
            ],
        ),
        (OvercookedTomato, TOMATO_BEST[:5], ["Currently you are carrying a bowl containing chopped tomato."]),
        (OvercookedTomato, TOMATO_BEST, ["Currently you don't have anything in hand."]),
        (OvercookedTomato, [1], ["Currently you are carrying a bowl in hand."]),
        (
            *(OvercookedSalad, [3, 4]),
            [
                "A bowl is on the first cutting board.",
                "Currently you are standing in front of the first cutting board without anything in hand.",
            ],
        ),
        (
            *(OvercookedSalad, [*SALAD_BEST[:9], 5]),
            [
                "A bowl containing chopped tomato and lettuce is on the second cutting board.",
                "Currently you are standing in front of the second cutting board without anything in hand.",
            ],
        ),
        (
            *(OvercookedSalad, [*SALAD_BEST[:9], 5, 2, 4, 7, 2, 3]),
            [
                "Currently you are standing in front of the second cutting board, carrying a bowl containing "
                "chopped tomato, lettuce and onion in hand."
            ],
        ),
        (
            *(OvercookedSalad, [0, 4, 7, 1]),
            ["You notice an onion on the table.", "Currently you are carrying an unchopped lettuce in hand."],
        ),
        (OvercookedSalad, [2], [
            "You notice a tomato and a lettuce on the different tables.",
            "Currently you are carrying an unchopped onion in hand.",
        ]),
    ],
)  # fmt: skip
def test_sentences(env_class, macros, sentences):
    env = env_class()
    opening = env.kitchen.opening
    assert after(env, macros)[0] == " ".join([opening, *sentences])


@pytest.mark.parametrize(
    ("env_class", "macros", "index", "label"),
    [
        (OvercookedTomato, [], 1, "take the bowl"),
        (OvercookedTomato, [], 2, "walk to the cutting board"),
        (OvercookedTomato, [], 3, "serve nothing"),
        (OvercookedTomato, [], 4, "chop nothing"),
        (OvercookedTomato, [0], 2, "put the tomato on the cutting board"),
        (OvercookedTomato, [0], 3, "serve the dish"),
        (OvercookedTomato, [0, 2], 4, "chop the tomato"),
        (OvercookedTomato, [0, 2, 4], 4, "chop the tomato"),
        (OvercookedTomato, [0, 2, 4, 0], 2, "walk to the cutting board"),
        (OvercookedTomato, [1], 0, "put the tomato in the bowl"),
        (OvercookedTomato, [1], 2, "put the bowl on the cutting board"),
        (OvercookedSalad, [], 3, "take the empty bowl"),
        (OvercookedSalad, [3], 2, "put the onion in the bowl"),
        (OvercookedSalad, [3], 5, "put the bowl on the second cutting board"),
        (OvercookedSalad, [3, 4], 7, "chop nothing"),
        (OvercookedSalad, SALAD_BEST[:8], 3, "take the bowl"),
        (OvercookedSalad, [*SALAD_BEST[:9], 5], 3, "take the bowl"),
        (
            OvercookedSalad,
            [*SALAD_BEST[:9], 5, 2],
            3,
            "take the empty bowl",
        ),  # the filled one is not in sight
        (OvercookedSalad, [2], 5, "put the onion on the second cutting board"),
    ],
)
def test_labels(env_class, macros, index, label):
    assert after(env_class(), macros)[-1]["actions"][index] == label


def agent(info):
    return info["vector"][-9:-7]


def test_a_food_in_the_bowl_is_looked_at_from_afar():
    env = OvercookedSalad()
    after(env, [0, 4, 7, 3, 0, 4, 1])  # the filled bowl is on the first board, the lettuce in hand
    *_, info = env.step(0)
    assert (agent(info), info["primitive_steps"]) == ((1, 2), 3 + 1)
    *_, info = env.step(0)
    assert (agent(info), info["primitive_steps"]) == ((1, 2), 1)


def test_an_unchopped_food_on_a_board_is_not_taken():
    env = OvercookedTomato()
    *_, info = after(env, [0, 2, 1, 0])
    assert (agent(info), info["primitive_steps"]) == ((1, 1), 8)
    text, *_, info = env.step(0)
    assert info["primitive_steps"] == 1
    assert "An unchopped tomato is on the cutting board." in text


def test_chopping_with_something_in_hand_takes_time_and_does_nothing():
    env = OvercookedTomato()
    after(env, [0, 2, 1, 2])
    text, reward, *_, info = env.step(4)
    assert "An unchopped tomato" in text
    assert (reward, info["primitive_steps"]) == (pytest.approx(costs(3), abs=1e-9), 3)


def test_getting_the_bowl_with_a_food_in_hand():
    env = OvercookedSalad()
    *_, info = after(env, [0, 3])
    assert info["primitive_steps"] == 4 + 1
    assert info["actions"][4] == "put the tomato on the first cutting board"  # raw, so still in hand
    text, *_, info = after(env, [3, 5, 0, 4, 7, 0, 3])
    assert "carrying a bowl containing chopped tomato in hand" in text
    assert info["primitive_steps"] == 1 + 2


def test_a_board_gives_the_bowl_away_when_a_chopped_food_comes():
    text, *_, info = after(OvercookedSalad(), [3, 5, 0, 4, 7, 0, 5])
    assert text.endswith(
        "in front of the second cutting board, carrying a bowl containing chopped tomato in hand."
    )
    assert info["primitive_steps"] == 2


def test_a_chopped_onion_earns_nothing_until_it_spoils_the_dish():
    env = OvercookedSalad()
    after(env, [2, 4])
    assert env.step(7)[1] == pytest.approx(costs(3), abs=1e-9)
    env.step(2)
    env.step(3)
    _, reward, terminated, *_, info = env.step(6)
    steps = info["primitive_steps"]
    assert reward == pytest.approx(costs(steps) - 0.1 * 0.99 ** (steps - 1), abs=1e-9)
    assert not terminated
    text, *_ = env.step(2)  # home again, and raw
    assert "carrying an unchopped onion" in text


def test_a_wrong_delivery_lets_the_chop_be_earned_again():
    env = OvercookedTomato()
    after(env, [0, 2, 4, 0])
    _, reward, terminated, truncated, info = env.step(3)
    assert (terminated, truncated, info["success"], info["primitive_steps"]) == (False, False, False, 3)
    assert reward == pytest.approx(costs(3) - 0.1 * 0.99**2, abs=1e-9)
    env.step(0)
    env.step(2)
    assert env.step(4)[1] == pytest.approx(0.1930499, abs=1e-9)


def test_serving_with_empty_hands():
    env = OvercookedTomato()
    *_, info = after(env, [3])
    assert (agent(info), info["primitive_steps"]) == ((3, 1), 5)
    _, reward, *_, info = env.step(3)
    assert (reward, info["primitive_steps"]) == (WAIT, 1)


def test_the_macro_action_that_reaches_the_limit_is_finished():
    env = OvercookedTomato(max_steps=1000)
    assert after(env, [4] * 200)[3] is True
    assert after(env, [4] * 199)[3] is False
    _, reward, terminated, truncated, info = env.step(1)
    assert (terminated, truncated, info["primitive_steps"]) == (False, True, 6)
    assert reward == pytest.approx(costs(6), abs=1e-9)
    assert info["actions"][0] == "put the tomato in the bowl"


def test_a_dish_beyond_the_limit_is_no_truncation():
    env = OvercookedTomato(max_steps=1000)
    after(env, [*TOMATO_BEST[:-1], *[4] * 178])
    _, reward, terminated, truncated, info = env.step(3)
    assert (terminated, truncated, info["success"]) == (True, False, True)
    assert reward == pytest.approx(costs(7) + 0.99**6, abs=1e-9)


@either
@settings(max_examples=50)
@given(choices=choices)
def test_an_episode_ends_with_the_dish_or_after_200_primitive_steps(env_class, choices):
    env = env_class()
    _, info = env.reset()
    total = 0
    for choice in choices:
        assert total < PRIMITIVE_STEPS
        *_, terminated, truncated, info = env.step(choice % len(info["actions"]))
        total += info["primitive_steps"]
        assert terminated == info["success"]
        assert truncated == (total >= PRIMITIVE_STEPS and not terminated)
        if terminated or truncated:
            break


@either
@settings(max_examples=25)
@given(choices=choices, cut=st.integers(0, 20))
def test_a_copy_goes_its_own_way(env_class, choices, cut):
    env = env_class()
    after(env, [0] * cut)
    twin = copy.deepcopy(env)
    twin.step(1)
    twin.reset()
    untouched = env_class()
    after(untouched, [0] * cut)
    for choice in choices:
        step = env.step(choice % 5)
        assert step == untouched.step(choice % 5)
        if step[2] or step[3]:
            break


def test_the_papers_cap_on_macro_actions():
    env = hunch.envs.make("hunch/Overcooked-Tomato-v0", max_steps=31)
    assert [after(env, [4] * n)[2:4] for n in (30, 31)] == [(False, False), (False, True)]
