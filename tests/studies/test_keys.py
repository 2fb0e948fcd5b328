"""DoorKey and KeyCorridor in words: the layout is MiniGrid's, and captions tell what happened."""

import pytest

import hunch

pytest.importorskip("minigrid")
WAY = ("pick up", "toggle", "go forward")


def walk(env, *actions):
    return [env.step(action)[-1]["event"] for action in actions]


def test_the_layout_is_minigrids():
    from minigrid.envs import DoorKeyEnv

    env, level = hunch.make("hunch/DoorKey-v0"), DoorKeyEnv(size=5)
    for seed in range(10):
        env.reset(seed=seed)
        level.reset(seed=seed)
        assert env.unwrapped._level.pprint_grid() == level.pprint_grid()


def test_a_solved_episode_has_its_captions(solved):
    events, last = solved
    assert [event for event in events if event] == [
        "You pick up the yellow key.",
        "You unlock the yellow door.",
        "You stand in the yellow door.",
        "You reach the goal.",
    ]
    _, reward, terminated, _, info = last
    assert (reward, terminated, info["success"]) == (1.0, True, True)


@pytest.fixture
def solved():
    """Breadth-first search over copies, from event to event."""
    import copy

    env = hunch.make("hunch/DoorKey-v0").unwrapped
    env.reset(seed=0)
    events, last = [], None
    for wanted in ("pick up the yellow key", "unlock", "stand in", "reach the goal"):
        frontier, seen, found = [(env, [])], set(), None
        while found is None:
            state, path = frontier.pop(0)
            for action in ("turn left", "turn right", "go forward", "pick up", "toggle"):
                twin = copy.deepcopy(state)
                step = twin.step(action)
                if wanted in step[-1]["event"]:
                    found = (twin, [*path, step])
                    break
                if step[0] not in seen:
                    seen.add(step[0])
                    frontier.append((twin, [*path, step]))
        env, path = found
        events += [step[-1]["event"] for step in path if not step[-1]["event"].startswith("You walk")]
        last = path[-1]
    return events, last


def test_what_does_not_work_is_told():
    env = hunch.make("hunch/DoorKey-v0")
    env.reset(seed=0)
    seen = {event for _ in range(3) for event in walk(env, *("go forward",) * 4, "turn left")}
    assert any(event.startswith("You walk into the") for event in seen)
