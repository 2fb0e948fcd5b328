"""Programs that plan for a whole domain: problems, execution, requests."""

import pytest

import hunch
from hunch.core import UsageError
from hunch.envs.design.code import canonical
from hunch.roles.writer.plain import plain_prompt
from hunch.sandbox import Sandbox
from hunch_studies.worlds.strips import plan_code
from hunch_studies.worlds.strips.pddl import read_problem
from hunch_studies.worlds.strips.plan_code import DOMAINS, drawn, in_pddl, inputs
from hunch_studies.worlds.strips.problems import domain
from hunch_studies.worlds.strips.search import plan

SAILS = """
def get_plan(objects, init, goal):
    ferry = [fact[1] for fact in init if fact[0] == "at-ferry"][0]
    place_of = {fact[1]: fact[2] for fact in init if fact[0] == "at"}
    plan = []
    for _, car, target in sorted(goal):
        start = place_of[car]
        if start == target:
            continue
        if ferry != start:
            plan.append(("sail", ferry, start))
        plan += [("board", car, start), ("sail", start, target), ("debark", car, target)]
        ferry = target
    return plan
"""
AS_TEXTS = SAILS.replace("return plan", "return ['(' + ' '.join(action) + ')' for action in plan]")
HEAD = "def get_plan(objects, init, goal):\n    "


def tried(program, **options):
    env = hunch.make("hunch/PlanCode-v0", **options)
    env.reset(seed=0)
    return env.step(program)[-1]["raw"]


@pytest.mark.parametrize("program", [SAILS, AS_TEXTS])
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_right_program_solves_every_problem(program, split):
    trial = tried(program, split=split)
    assert trial.fitness == 1.0
    assert set(trial.scores) == {1.0}


def test_held_out_problems_are_larger():
    sizes = {
        split: [len(task.problem.objects) for task in drawn("ferry", split, 10)]
        for split in ("train", "test")
    }
    assert max(sizes["train"]) < max(sizes["test"])
    assert not {in_pddl(task.problem) for task in drawn("ferry", "train", 10)} & {
        in_pddl(task.problem) for task in drawn("ferry", "test", 10)
    }


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return []", 'The goal is not reached; these facts do not hold: ("at",'),
        ("return [('sail', 'place0', 'place9')]", "does not apply: (sail place0 place9) names place9"),
        ("return [('fly', 'place0')]", "(fly place0) is not an action of the domain"),
        ("return [('sail', 'place0', 'place1')]", 'these facts do not hold: ("at-ferry", "place0")'),
        ("return None", "no list of actions"),
        ("return [1, 2]", "no list of actions"),
        ("return 'sail place0 place1'", "no list of actions"),
        ("return [()]", "no list of actions"),
    ],
)
def test_a_plan_that_fails_says_why(body, why):
    trial = tried(HEAD + body)
    assert trial.fitness == 0.0
    assert why in trial.feedback
    assert "goal = {" in trial.feedback


def test_an_error_in_every_problem_fails_the_program_and_in_some_lowers_its_fitness():
    failed = tried(HEAD + "return plans")
    assert failed.fitness is None
    assert "name 'plans' is not defined (line 2: `return plans`)" in failed.error
    some = tried(HEAD + "assert len(goal) < 3" + SAILS.split("goal):", 1)[1])
    assert 0.0 < some.fitness < 1.0
    assert some.components["crashed"] == pytest.approx(1.0 - some.fitness)
    assert "AssertionError" in some.feedback


def test_a_program_that_hangs_is_run_once_and_its_trial_is_not_kept(monkeypatch):
    with Sandbox(seconds=1) as quick:
        monkeypatch.setattr(plan_code, "box", lambda: quick)
        trial = tried(HEAD + "while True:\n        pass")
        assert trial.fitness is None
        assert trial.error.startswith("Timeout")
        env = hunch.make("hunch/PlanCode-v0").unwrapped
        some = HEAD + "while len(goal) > 3:\n        pass\n    return []"
        env.reset(seed=0)
        trial = env.step(some)[-1]["raw"]
    assert trial.components["crashed"] > 0.0
    assert env.known.get(env.known.key(canonical(some), 0)) is None


@pytest.mark.parametrize("action", ["('x' * 100_000,)", "('sail', '\\x1b[31m' * 50_000, 'y')"])
def test_an_action_of_any_length_is_quoted_in_a_few_words(action):
    trial = tried(f"{HEAD}return [{action}]")
    assert "Action 1 of 1 does not apply" in trial.feedback
    assert len(trial.feedback) < 5_000
    assert trial.feedback.replace("\n", "").isprintable()


def test_a_domain_without_problems_is_refused():
    with pytest.raises(UsageError, match="at least one problem, not 0"):
        plan_code.PlanCode(problems=0)


@pytest.mark.parametrize("name", DOMAINS)
def test_problems_have_plans_and_are_the_same_in_pddl(name):
    for task in drawn(name, "train", 4):
        assert plan(task, task.init) is not None
        again = read_problem(in_pddl(task.problem), domain(name), "the problem")
        assert inputs(again) == inputs(task.problem)
    shorter, longer = drawn(name, "train", 2), drawn(name, "train", 4)
    assert [in_pddl(task.problem) for task in shorter] == [in_pddl(task.problem) for task in longer[:2]]


def test_the_plain_request_says_what_actions_do_and_the_blank_one_does_not():
    asked, blank = (
        plain_prompt(hunch.make("hunch/PlanCode-v0", blank=blank).unwrapped.problem, (), "")
        for blank in (False, True)
    )
    board = '("board", <c>, <p>) with <c> a car and <p> a place: needs ("at", <c>, <p>), ("at-ferry", <p>)'
    assert board in asked
    assert "every fact of goal holds" in asked
    assert '- ("board", <c>, <p>)\n' in blank
    assert "needs" not in blank
    assert "every fact of goal" not in blank
    for request in (asked, blank):
        assert "get_plan(objects, init, goal)" in request
        assert 'init = {("at", "car0", "place2")' in request


def test_the_request_of_the_paper_shows_two_problems_in_pddl():
    text = hunch.make("hunch/PlanCode-v0", domain="miconic").unwrapped.problem.text()
    assert text.count("(define (problem") == 2
    assert "(define (domain miconic)" in text
    assert "There is a simple strategy for solving all problems" in text


def test_another_domain_is_refused():
    with pytest.raises(UsageError, match="gripper, ferry, miconic"):
        hunch.make("hunch/PlanCode-v0", domain="depots")
