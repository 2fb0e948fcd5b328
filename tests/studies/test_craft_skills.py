"""A skill of the craft world."""

import hunch


def test_a_skill_to_find_is_learnt_by_place_and_aim():
    env = hunch.make("hunch/CraftSkill-v0", world_seed=3)
    for seed in range(10):
        _, info = env.reset(seed=seed)
        world, aim = env.unwrapped, env.unwrapped.subtask.aim
        assert aim not in info["raw"].near
        while not info["success"]:
            *_, info = env.step(f"go to {world.neighbours(world.at)[1]}")
        assert world.at == world.where[aim]
