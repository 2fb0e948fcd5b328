"""The examples of the kitchen."""

from hunch.envs.kitchen import world
from hunch.envs.kitchen.errands import EXAMPLES
from hunch.envs.kitchen.world import PLACES, THINGS, Scene
from hunch_studies.kitchen_plans import ideally


def test_every_example_does_what_it_says_where_all_is_at_home():
    """Each example's plan, carried out, leaves its things where its sentence says."""
    at_home = Scene((0, 1), tuple(home or "counter" for home in world.HOMES.values()))
    for example in EXAMPLES:
        end = ideally(at_home, list(example.plan))
        moved = [t for t in THINGS if end.place_of(t) != at_home.place_of(t)]
        named = [t for t in THINGS if f"the {t}" in example.task and " on the counter" not in example.task]
        assert set(moved) == set(named) or not named, example.task
        place = next((p for p in PLACES if f" {p}." in example.task), None)
        if example.task.startswith("Put"):
            assert all(end.place_of(t) == place for t in named)
