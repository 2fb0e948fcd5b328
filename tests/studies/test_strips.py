"""Planning problems as environments: exact semantics, words, search."""

import copy
import random
from itertools import product

import numpy as np
import pytest

import hunch.envs
from hunch.core import UsageError
from hunch_studies.worlds.strips import problems
from hunch_studies.worlds.strips.env import Ferry, Gripper, Logistics, Miconic, Strips
from hunch_studies.worlds.strips.pddl import Condition, Problem, read_domain, read_problem
from hunch_studies.worlds.strips.search import (
    SearchLimitError,
    astar,
    breadth_first,
    goal_count,
    greedy,
    plan,
    relaxed,
)
from hunch_studies.worlds.strips.task import Task

EVERY = [
    Strips,
    lambda: Strips(words="blocksworld-mystery"),
    Logistics,
    lambda: Logistics(words="mystery", packages=2),
    Gripper,
    Ferry,
    Miconic,
]


def draw(name, seed):
    rng = np.random.default_rng(seed)
    return {
        "blocksworld": lambda: problems.blocksworld(rng, 4),
        "logistics": lambda: problems.logistics(rng, 2, 2, 1, 1, False),
        "gripper": lambda: problems.gripper(rng, 2, 2),
        "ferry": lambda: problems.ferry(rng, 2, 3),
        "miconic": lambda: problems.miconic(rng, 3, 2),
    }[name]()


every_domain = pytest.mark.parametrize("name", ["blocksworld", "logistics", "gripper", "ferry", "miconic"])


def applies(action, binding, objects, domain, facts):
    """Whether an action applies, straight from its definition."""
    condition = action.condition

    def put(atom):
        return tuple(binding.get(term, term) for term in atom)

    return (
        all(domain.fits(objects[binding[name]], types) for name, types in action.parameters)
        and all(put(atom) in facts for atom in condition.positive)
        and not any(put(atom) in facts for atom in condition.negative)
        and all(len(set(put(pair))) == 1 for pair in condition.equal)
        and all(len(set(put(pair))) == 2 for pair in condition.unequal)
    )


def by_definition(problem, facts):
    """Every action that applies to a set of facts, with the facts afterwards."""
    found = {}
    for action in problem.domain.actions.values():
        names = [name for name, _ in action.parameters]
        for objects in product(problem.objects, repeat=len(names)):
            binding = dict(zip(names, objects, strict=True))
            if applies(action, binding, problem.objects, problem.domain, facts):
                added, deleted = (
                    {tuple(binding.get(term, term) for term in atom) for atom in atoms}
                    for atoms in (action.add, action.delete)
                )
                found[action.name, *objects] = (facts - deleted) | added
    return found


@every_domain
def test_states_and_actions_are_those_of_the_definition(name):
    rng = random.Random(name)
    for seed in range(2):
        problem = draw(name, seed)
        task, facts = Task(problem), problem.init
        state = task.init
        for _ in range(4):
            expected = by_definition(problem, facts)
            operators = {operator.atom: operator for operator in task.applicable(state)}
            assert operators.keys() == expected.keys()
            atom = rng.choice(sorted(operators))
            state, facts = operators[atom].after(state), expected[atom]
            assert task.true(state) == facts
            assert task.solved(state) == facts.issuperset(problem.goal.positive)


@every_domain
def test_searches_agree_and_their_plans_are_valid(name):
    for seed in range(6):
        task = Task(draw(name, seed))
        shortest = breadth_first(task)
        best = astar(task, relaxed(task, max))
        assert len(best) == len(shortest) > 0
        for heuristic in (relaxed(task, sum), goal_count(task)):
            found = greedy(task, heuristic)
            assert len(found) >= len(shortest)
            assert task.verify([operator.atom for operator in found]).valid
        assert relaxed(task, max)(task.init) <= len(shortest)


def test_where_there_is_no_plan_every_search_says_so():
    problem = draw("blocksworld", 0)
    cycle = Condition((("on", "a", "b"), ("on", "b", "a")))
    task = Task(Problem(problem.domain, problem.objects, problem.init, cycle))
    assert breadth_first(task) is None
    assert astar(task, relaxed(task, max)) is None
    assert plan(task) is None
    with pytest.raises(SearchLimitError, match="first"):
        breadth_first(task, states=10)


def test_a_goal_that_no_action_brings_about_is_impossible_at_once():
    domain = read_domain("(define (domain d) (:predicates (p) (q)) (:action a :parameters () :effect (p)))")
    task = Task(read_problem("(define (problem x) (:domain d) (:init) (:goal (and (p) (q))))", domain))
    assert not task.possible
    assert breadth_first(task) is None
    assert relaxed(task, sum)(task.init) == float("inf")


@pytest.mark.parametrize("make", EVERY)
def test_the_checker_finds_nothing(make):
    hunch.envs.check(make())


@pytest.mark.parametrize("make", EVERY)
def test_the_oracle_reaches_the_goal_from_anywhere(make):
    env = make()
    for seed in range(3):
        env.reset(seed=seed)
        for step in range(5):
            if env.step(random.Random(step).choice(env.action_space.actions))[2]:
                break
        else:
            for action in env.oracle():
                _, reward, terminated, _, info = env.step(action)
            assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_a_copy_goes_its_own_way():
    env = Gripper()
    before, info = env.reset(seed=0)
    twin = copy.deepcopy(env)
    twin.step(info["actions"][0])
    assert env.state == env.grounded.init != twin.state
    assert env.step(info["actions"][0])[0] != before


def test_ten_blocks_are_planned():
    task = Task(problems.blocksworld(np.random.default_rng(0), 10))
    assert task.verify([operator.atom for operator in plan(task)]).valid


def test_one_task_seed_gives_one_problem():
    env = Ferry()
    first, other = (env.reset(seed=seed, options={"task_seed": 3})[0] for seed in (0, 1))
    assert first == other


def test_words_of_blocksworld():
    env = Strips(words="blocksworld")
    observation, info = env.reset()
    assert observation == (
        "Now the blue block is clear, the orange block is clear, the hand is empty, the orange block is on "
        "top of the red block, the red block is on the table and the blue block is on the table."
    )
    assert info["task"] == (
        "reach a state in which the red block is on top of the blue block and the blue block is on top of "
        "the orange block"
    )
    assert info["actions"] == (
        "pick up the blue block",
        "unstack the orange block from on top of the red block",
    )
    assert "the hand is currently holding orange block" in env.step(1)[0]


def test_words_of_mystery():
    env = Strips(words="blocksworld-mystery")
    observation, info = env.reset()
    assert observation == (
        "Now object c craves object a, harmony, planet object a, planet object b, province object b and "
        "province object c."
    )
    assert info["actions"] == ("attack object b", "feast object c from object a")
    assert env.rules.splitlines()[0].startswith(
        "attack object ?x (needs: harmony, planet object ?x and province"
    )


def test_words_of_logistics():
    env = Logistics()
    observation, info = env.reset(seed=1)
    assert "package_0 is at location_1_1" in observation
    assert "location_0_1 is in the city city_0" in observation
    assert "load package_0 into truck_1 at location_1_1" in info["actions"]
    assert "drive truck_1 from location_1_1 to location_1_0 in city_1" in info["actions"]


def test_words_of_any_other_domain():
    observation, info = Gripper(balls=1).reset(seed=0)
    assert observation.startswith("Now at ball0 room")
    assert all(action.split()[0] in ("move", "pick", "drop") for action in info["actions"])


def test_the_same_seed_gives_the_same_problem_and_others_do_not():
    env = Logistics(packages=3, cities=3)
    first = [env.reset(seed=seed)[0] for seed in range(5)]
    assert first == [env.reset(seed=seed)[0] for seed in range(5)]
    assert len(set(first)) > 1


def test_a_folder_of_problems_is_a_pool(tmp_path):
    sussman = (problems.FOLDER / "sussman.pddl").read_text()
    for number, goal in ((2, "(on a b)"), (10, "(on b a)")):
        text = sussman.replace("(and (on a b) (on b c))", goal)
        (tmp_path / f"instance-{number}.pddl").write_text(text)
    domain = problems.FOLDER / "blocksworld.pddl"
    env = Strips(domain=domain, problem=tmp_path)
    assert [env.reset(options={"problem": i})[1]["problem"] for i in range(2)] == [
        "instance-2.pddl",
        "instance-10.pddl",
    ]
    assert {env.reset(seed=seed)[1]["task"][-6:] for seed in range(20)} == {"on a b", "on b a"}
    with pytest.raises(UsageError, match="no problem 2"):
        env.reset(options={"problem": 2})
    with pytest.raises(UsageError, match="no reset option 'seed'"):
        env.reset(options={"seed": 2})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"domain": "there/is/none.pddl", "problem": "x"}, "none.pddl"),
        ({"problem": "x"}, "both"),
        ({"words": "klingon"}, "klingon"),
    ],
)
def test_bad_options_of_files(options, said):
    with pytest.raises(UsageError, match=said):
        Strips(**options)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (Logistics, {"words": "obscure"}, "plain or mystery or pddl"),
        (Logistics, {"cities": 1, "locations": 1}, "two locations"),
        (Gripper, {"rooms": 1}, "rooms must be at least 2"),
        (Miconic, {"passengers": 0}, "passengers must be at least 1"),
    ],
)
def test_bad_sizes(make, options, said):
    with pytest.raises(UsageError, match=said):
        make(**options)


def test_a_problem_that_is_solved_at_the_start_is_refused(tmp_path):
    text = (problems.FOLDER / "sussman.pddl").read_text().replace("(and (on a b) (on b c))", "(on c a)")
    (tmp_path / "solved.pddl").write_text(text)
    env = Strips(domain=problems.FOLDER / "blocksworld.pddl", problem=tmp_path / "solved.pddl")
    with pytest.raises(UsageError, match="holds at the start"):
        env.reset()


def test_a_dead_end_ends_the_episode(tmp_path):
    (tmp_path / "d.pddl").write_text(
        "(define (domain d) (:predicates (p) (q) (r)) (:action a :parameters () :precondition (p) "
        ":effect (not (p))) (:action b :parameters () :precondition (p) :effect (q)))"
    )
    (tmp_path / "p.pddl").write_text("(define (problem p) (:domain d) (:init (p)) (:goal (q)))")
    env = Strips(domain=tmp_path / "d.pddl", problem=tmp_path / "p.pddl")
    env.reset()
    observation, reward, terminated, truncated, info = env.step("a")
    assert (observation, reward, terminated, truncated) == ("Now nothing is true.", 0.0, True, False)
    assert (info["success"], info["actions"]) == (False, ())
    hunch.envs.check(env)


def test_what_is_wrong_with_a_plan():
    task = Task(Strips()._next({}))
    good = [("unstack", "c", "a"), ("put-down", "c"), ("pick-up", "b"), ("stack", "b", "c")]
    good += [("pick-up", "a"), ("stack", "a", "b")]
    assert task.verify(good) == (True, 6, "", (), (), task.verify(good).state)
    verdict = task.verify([good[0], ("stack", "c", "a"), ("stack", "c", "b")])
    assert (verdict.valid, verdict.step, verdict.lacking) == (False, 2, (("holding", "c"),))
    assert task.verify(good[:4]).lacking == (("on", "a", "b"),)
    assert task.verify([("pick-up", "a")]).lacking == (("clear", "a"),)
    assert "not an action" in task.verify([("fly", "a")]).reason
    assert "has 1 objects and needs 2" in task.verify([("stack", "a")]).reason
    assert "no object of the problem" in task.verify([("pick-up", "z")]).reason
    assert not task.verify([()]).valid
