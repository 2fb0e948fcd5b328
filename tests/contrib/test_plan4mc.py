"""Plan4MC: a skill graph is read once, and every plan of the search can be carried out."""

from dataclasses import replace

import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import HunchError, Player, State, Transition, UsageError, World
from hunch.envs.craft import PLACES, RULES
from hunch.rl.episodes import evaluate
from hunch.roles.planner.skills import Skill
from hunch_contrib.planner.plan4mc import NoPlan, Plan4MC, plan
from hunch_contrib.planner.skill_graph import Entry, SkillGraph, extract, read_entry

CRAFT = "hunch/Craft-v0"
WORLD = {"difficulty": "hard", "most": 9, "max_steps": 300}
RULE = "scripted:recipes"


class Walks(Player):
    """Walks round the ring."""

    def __init__(self, seed):
        self.came = ""

    def act(self, states):
        (state,) = states
        near = state.observation.partition("next to the ")[2].partition(".")[0].split(" and the ")
        place = next(place for place in near if place != self.came)
        self.came = state.raw.at
        return [f"go to {place}"]

    def observe(self, transitions):
        pass

    def state_dict(self):
        return {"came": self.came}

    def load_state_dict(self, state):
        self.came = state["came"]


def finder(source):
    """A rule that finds a thing."""
    return Skill(
        f"find {source}",
        lambda states: [1.0] * len(states),
        Walks,
        lambda t: source in t.next_state.raw.near,
        steps=12,
        idle=lambda state: source in state.raw.near,
    )


SKILLS = [finder(source) for source in PLACES]


def craft(**options):
    return hunch.make(CRAFT, **WORLD, **options)


@pytest.fixture(scope="module")
def graph():
    env = craft(target="any").unwrapped
    names = [action for action in env.choices if action != "done"]
    return extract(lm.load(RULE), env.manual, [*names, *(skill.name for skill in SKILLS)])


def success(target="any", episodes=22, failure=0.0, seed=0, skills=SKILLS, graph=None, **options):
    agent = begun(Plan4MC(lm.load(RULE), skills, graph=graph, **options))
    env = craft(target=target, failure=failure, world_seed=seed)
    agent.begin(World(manual=env.unwrapped.manual), seed)
    player = agent.player(seed)
    played = evaluate(lambda _: player, [env], episodes, seed)
    return sum(e.success for e in played) / len(played), player.records()


# ---- the graph --------------------------------------------------------------------------------------------


def test_a_graph_is_read_from_the_manual(graph):
    assert set(graph.entries) >= {rule.action for rule in RULES}
    assert "make moon" not in graph.entries  # of which the manual says nothing
    assert graph.entries["make furnace"] == Entry(
        consumes=(("stone", 2),), nearby=("a table",), brings=("a furnace",)
    )
    assert graph.entries["find trees"] == Entry(brings=("trees",), moves=True)
    assert graph.producers["stone"] == "collect stone"
    assert graph.target("please make stone pickaxe now") == "make stone pickaxe"
    assert graph.target("sing") is None


@pytest.mark.parametrize(
    ("answer", "entry"),
    [
        ("consumes: 2 wood, 1 stone\nmoves: no", Entry(consumes=(("wood", 2), ("stone", 1)))),
        ("- Consumes : 1 wood;2 wood.", Entry(consumes=(("wood", 3),))),
        ("obtains: wood\nnearby: none\nbrings: -", Entry(obtains=(("wood", 1),))),
        ("nearby: a table, a furnace\nmoves: Yes.", Entry(nearby=("a table", "a furnace"), moves=True)),
        ("requires: 0 wood", Entry()),
        (f"requires: {'9' * 5_000} wood", Entry(requires=((f"{'9' * 5_000} wood", 1),))),
        ("\n" * 300_000 + "moves: yes", Entry(moves=True)),  # a square of it would take half an hour
        ("unknown", None),
        ("", None),
        ("I'm sorry, but I can't help with that.", None),
    ],
    ids=range(10),
)
def test_answers_are_read_or_are_none(answer, entry):
    assert read_entry(answer) == entry


def test_things_are_separated_by_and_where_a_number_or_an_article_follows():
    entry = read_entry("consumes: 1 wood and 2 coal\nnearby: a table and a furnace\nbrings: salt and pepper")
    assert entry == Entry(
        consumes=(("wood", 1), ("coal", 2)), nearby=("a table", "a furnace"), brings=("salt and pepper",)
    )


def test_errors_of_the_model_change_the_graph_and_refusals_empty_it(graph):
    manual = craft(target="any").unwrapped.manual
    names = list(graph.entries)
    wrong = extract(lm.load(f"{RULE}?error=0.2"), manual, names)
    changed = sum(wrong.entries[name] != graph.entries[name] for name in names)
    assert 0.3 < changed / len(names) < 1  # six lines an entry
    assert not extract(lm.load(f"{RULE}?refusal=1"), manual, names).entries


# ---- the search -------------------------------------------------------------------------------------------


def run_evaluations(graph, steps, held, near):
    """Go through a plan by the entries alone, and require that everything is there in its turn."""
    held, near = dict(held), set(near)
    for name in steps:
        entry = graph.entries[name]
        assert all(held.get(thing, 0) >= n for thing, n in (*entry.consumes, *entry.requires)), name
        assert near.issuperset(entry.nearby), name
        for thing, n in entry.consumes:
            held[thing] -= n
        for thing, n in entry.obtains:
            held[thing] = held.get(thing, 0) + n
        near = {*(() if entry.moves else near), *entry.brings}


@pytest.mark.parametrize("target", [rule.action for rule in RULES])
def test_everything_is_there_in_its_turn(graph, target):
    for held, near in (
        ({}, ()),
        ({"wood": 3, "stone": 1}, ("trees",)),
        ({"wooden pickaxe": 1, "coal": 2}, ("a table", "rocks")),
    ):
        steps = plan(graph, target, held, near)
        assert steps[-1] == target
        run_evaluations(graph, steps, held, near)


def small(**entries):
    return SkillGraph(entries)


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (small(bake=Entry(consumes=(("flour", 1),))), "Nothing obtains flour, which bake takes."),
        (small(bake=Entry(nearby=("an oven",))), "Nothing brings an oven, which bake has to have nearby."),
        (
            small(bake=Entry(requires=(("bread", 1),), obtains=(("bread", 1),))),
            "To bake takes to bake first.",
        ),
        (
            small(
                bake=Entry(consumes=(("flour", 1),), obtains=(("bread", 1),)),
                mill=Entry(consumes=(("bread", 1),), obtains=(("flour", 1),)),
            ),
            "To bake takes to mill and to bake first.",
        ),
        (
            small(
                bake=Entry(nearby=("sea", "hill")),
                swim=Entry(brings=("sea",), moves=True),
                climb=Entry(brings=("hill",), moves=True),
            ),
            "No end of the plan",
        ),
    ],
)
def test_what_cannot_be_planned_is_said(graph, problem):
    with pytest.raises(NoPlan, match=problem):
        plan(graph, "bake", {}, ())


def test_what_a_thing_nearby_uses_up_is_obtained_again():
    graph = small(
        chop=Entry(obtains=(("wood", 1),)),
        build=Entry(consumes=(("wood", 2),), brings=("a table",)),
        carve=Entry(requires=(("wood", 1),), nearby=("a table",), obtains=(("toy", 1),)),
    )
    steps = plan(graph, "carve", {}, ())
    assert steps == ["chop", "chop", "build", "chop", "carve"]
    run_evaluations(graph, steps, {}, ())


def test_what_takes_another_thing_nearby_comes_first(graph):
    steps = plan(graph, "make iron pickaxe", {"wood": 9, "coal": 1, "iron": 1}, ())
    assert steps.index("make furnace") > steps.index("find rocks")
    assert steps[-3:] == ["make table", "make furnace", "make iron pickaxe"]


# ---- in the world -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_all_plans_of_a_right_graph_are_valid(seed):
    for target in ("make iron sword", "collect diamond", "sleep", "place torch", "drink water"):
        assert success(target, 1, seed=seed, replan="never")[0] == 1.0
        assert success(target, 1, seed=seed)[0] == 1.0


def test_planning_anew_gets_over_failures_and_one_plan_does_not():
    rates = {
        replan: success(episodes=16, failure=0.3, replan=replan)[0] for replan in ("each", "retry", "never")
    }
    assert rates["each"] > 0.9
    assert rates["each"] > rates["retry"] + 0.2 > rates["never"]


def test_without_skills_to_find_things_it_says_so_and_stops():
    rate, lines = success("collect iron", 2, skills=())
    assert rate == 0.0
    for line in lines:
        assert (line["plan"], line["failure"]) == (["done"], "plan")
        assert line["problem"].startswith("Nothing brings ")
    rate, lines = success("collect iron", 1, find=False)
    assert rate == 0.0
    assert not any(name.startswith("find") for name in lines[0]["plan"])


def test_a_task_that_is_no_skill_and_a_model_that_knows_nothing():
    _, lines = success("collect iron", 1, graph=small(bake=Entry()))
    assert lines[0]["problem"] == "No skill is known that is the task, 'collect iron'."
    agent = begun(Plan4MC(lm.load("uniform"), SKILLS))
    env = craft(target="make table")
    (episode,) = evaluate(agent.player, [env], 1, 0)
    assert (episode.success, episode.length) == (False, 1)


def test_an_environment_that_does_not_tell_what_is_held_is_named():
    agent = begun(Plan4MC(lm.load(RULE), graph=small(bake=Entry())))
    with pytest.raises(HunchError, match=r"State.raw.held"):
        agent.act([State("", "bake", ("bake", "rest"))])
    with pytest.raises(UsageError, match=r"needs a model with the verb .generate."):
        begun(Plan4MC(lm.load("bag-of-words"), SKILLS)).act([State("", "bake", ("bake",))])


def test_a_plan_that_cannot_be_begun_is_no_plan(graph):
    _, lines = success("collect iron", 1, graph=graph, skills=())
    assert lines[0]["problem"].startswith("Nobody can find ")
    agent = begun(Plan4MC(lm.load(RULE), graph=small(bake=Entry()), longest=2))
    agent.begin(World(), 0)
    near = type("Scene", (), {"held": (), "near": ()})()
    idle = replace(SKILLS[0], name="bake", idle=lambda state: True)
    agent.skills = {"bake": idle}
    state = State("", "bake", ("rest",), raw=near)  # nothing stops here, and the skill is over at once
    assert agent.act([state]) == ["rest"]
    assert agent.plans[0].problem == "The target is not reached after 2 skills."


def test_a_skill_that_was_drawn_is_none_of_the_kept_plan():
    """It worked, and the plan's first skill was taken to be done."""
    graph = small(mill=Entry(obtains=(("flour", 1),)), bake=Entry(consumes=(("flour", 1),)))
    agent = begun(Plan4MC(lm.load(RULE), graph=graph, replan="retry"))
    agent.begin(World(), 0)
    scene = type("Scene", (), {"held": (), "near": ()})()
    nowhere = State("", "bake", ("rest",), raw=scene)  # nothing stops here, and there is no mill
    there = State("", "bake", ("rest", "mill", "bake"), raw=scene)
    assert agent.act([nowhere]) == ["rest"]
    agent.observe([Transition(nowhere, "rest", 0.0, there, False, False, event="You rested.")])
    for action, event in (("mill", ""), ("mill", "You have flour."), ("bake", "")):
        assert agent.act([there]) == [action]
        agent.observe([Transition(there, action, 0.0, there, False, False, event=event)])


def test_the_contract_holds_in_the_craft_world():
    agent = begun(Plan4MC(lm.load(RULE), SKILLS, replan="retry"))
    methods.check(agent, craft(target="any", failure=0.2), steps=30)


def test_a_run_that_is_killed_in_the_middle_of_a_plan_goes_on(tmp_path):
    def go(out, stop=lambda: False):
        agent = begun(Plan4MC(lm.load(RULE), SKILLS, replan="retry"))
        env = craft(target="make wooden pickaxe", failure=0.2)
        return hunch.train(agent, env, steps=90, out=out, watch=hunch.Watch(stop=stop))

    whole, seen = go(tmp_path / "whole"), []

    def soon():
        seen.append(1)
        return len(seen) > 40

    assert not go(tmp_path / "parts", soon).complete
    resumed = go(tmp_path / "parts")
    assert [e.actions for e in resumed.episodes] == [e.actions for e in whole.episodes]
    kept = [(tmp_path / name / "records.jsonl").read_text() for name in ("whole", "parts")]
    assert kept[0] == kept[1]
    assert "find trees: Entry(" in (tmp_path / "whole" / "skill_graph.txt").read_text()


def test_a_run_that_goes_on_does_not_ask_for_its_graph_again(tmp_path):
    place = {"streams": hunch.Streams(options={**WORLD, "target": "any"}), "out": tmp_path / "run"}
    asked = []
    for steps in (20, 40):
        result = hunch.train("plan4mc", CRAFT, steps, lm=RULE, **place)
        asked.append(result.usage["calls"])
    assert asked[0] > 0
    assert asked[1] == asked[0]
    assert hunch.load(tmp_path / "run").agent.graph == result.agent.graph


# ---- wrong graphs -----------------------------------------------------------------------------------------
