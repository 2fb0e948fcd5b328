"""Planner, actor, reporter, with skills by rule, as an actor that never fails."""

from collections.abc import Mapping

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import HunchError, State
from hunch.roles.planner.skills import FixedAction, Skill
from hunch_contrib.planner.planner_actor_reporter import PlannerActorReporter
from hunch_studies.worlds.secret import SIZE, THINGS, VERBS, Room, Subtask, draw, step

ID = "hunch/SecretProperty-v0"


class Walks(FixedAction):
    """Walks to a thing by the map and does the verb: a skill by rule."""

    def __init__(self, verb, aim):
        self.verb, self.aim = verb, aim

    def act(self, states):
        return [self.one(state.raw) for state in states]

    def one(self, room):
        row, column = room.away(self.aim)
        if row:
            return "go south" if row > 0 else "go north"
        if column:
            return "go east" if column > 0 else "go west"
        return self.verb


def by_rule(subtask):
    """A subtask as a skill that never fails."""
    return Skill(
        subtask.name,
        lambda states: np.ones(len(states)),
        lambda seed: Walks(subtask.verb, subtask.aim),
        lambda t: subtask.reached(t.state.raw, t.next_state.raw),
        40,
    )


SKILLS = tuple(by_rule(Subtask(verb, aim)) for verb in VERBS for aim in THINGS)


def agent(**options):
    method = methods.find("planner-actor-reporter")
    config = methods.settings.configure(method.agent_class, None, options)
    return method.build(config, {"lm": lm.load("scripted:examiner")}, skills=SKILLS)


def success(question="conditional", steps=1, episodes=100, **options):
    made = agent(**options)
    hunch.train(made, hunch.make(ID, question=question), steps=steps)
    return np.mean([e.success for e in hunch.evaluate(made, hunch.make(ID, question=question), episodes)])


def test_a_true_reporter_is_all_that_the_planner_needs():
    assert success(reporter="scripted") == 1
    assert success("search", reporter="scripted") == 1


def test_an_untrained_reporter_is_worth_no_more_than_chance():
    assert abs(success(reporter="untrained", episodes=200) - 0.5) < 0.12


def test_a_liar_is_worse_than_chance_and_half_a_liar_is_chance():
    assert success(reporter="scripted", lies=1.0) == 0
    assert abs(success(reporter="scripted", lies=0.5, episodes=200) - 0.5) < 0.12


@pytest.mark.parametrize("question", ["conditional", "search"])
def test_the_reward_alone_teaches_it_to_report(question):
    assert success(question, steps=8_000) > 0.9


def test_a_player_learns_nothing():
    made = begun(agent())
    before = made.trained.state_dict()
    hunch.evaluate(made, hunch.make(ID), 5)
    assert made.trained.state_dict() == before


def test_the_contract_holds_while_it_learns():
    methods.check(agent(), hunch.make(ID), steps=60)


def test_killed_in_the_middle_of_a_plan_it_learns_on(tmp_path):
    def go(out, stop=lambda: False):
        return hunch.train(agent(), hunch.make(ID), steps=600, out=out, watch=hunch.Watch(stop=stop))

    whole, seen = go(tmp_path / "whole"), []

    def soon():
        seen.append(1)
        return len(seen) > 50

    assert not go(tmp_path / "parts", soon).complete
    resumed = go(tmp_path / "parts")
    assert [e.actions for e in resumed.episodes] == [e.actions for e in whole.episodes]
    assert resumed.agent.trained.state_dict() == whole.agent.trained.state_dict()


def test_other_skills_than_the_planner_knows():
    made = begun(PlannerActorReporter(agent().prior, SKILLS[:1], reporter="scripted"))
    played = hunch.evaluate(made, hunch.make(ID), 3)
    assert not any(episode.success for episode in played)


def test_a_skill_of_another_environment_is_named():
    with pytest.raises(HunchError, match="belong to this environment"):
        hunch.train(agent(), hunch.make("hunch/FrozenLake-v0"), steps=5)


# ---- the rooms --------------------------------------------------------------------------------------------


def test_a_search_has_one_good_thing_and_rooms_keep_things_apart():
    rng = np.random.default_rng(0)
    for _ in range(50):
        room = draw(rng, "search")
        assert sum(room.good) == 1
        assert len({room.robot, *room.cells}) == len(THINGS) + 1


def test_only_what_is_examined_shows_its_property():
    room = draw(np.random.default_rng(1), "conditional")
    at_vase = Room(room.cells[0], room.cells, room.good, room.looks)
    after, event = step(at_vase, "examine")
    assert after.last == ("examine", "vase")
    assert ("warm" in event) == room.good[0]
    assert step(room, "examine")[1] == "There is nothing here."
    assert step(at_vase, "pick up")[1] == "You pick up the vase."


def test_the_view_leads_to_every_thing():
    """Going where the view points finds any thing, from anywhere, within the steps of a skill."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        room = draw(rng, "conditional")
        subtask = Subtask("examine", THINGS[rng.integers(4)])
        for _ in range(subtask.steps):
            assert subtask.view(State("", raw=room)).actions
            row, column = room.towards(subtask.aim)
            ways: Mapping[bool, str] = {True: "go south" if row > 0 else "go north"}
            action = ways.get(bool(row), "go east" if column > 0 else "go west")
            before, (room, _) = room, step(room, action if row or column else "examine")
            if subtask.reached(before, room):
                break
        assert subtask.reached(before, room)
        assert max(*room.robot) < SIZE
