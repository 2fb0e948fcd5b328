"""A policy as code in text environments: what it sees, what it may return, and what the request shows."""

import pytest

import hunch
from hunch.core import UsageError
from hunch.envs.design.policy import TEXT_START

HOUSEHOLD = "hunch/Household-Pick-v0"
BY_HAND = """
import re


def act(task, observation, commands, history):
    thing, place = re.match(r"put (?:a|some) (\\w+) (?:in|on) (\\w+)", task).groups()
    taken = [command for command, _ in history]
    kinds = ["open ", "go to "]
    if any(command.startswith(f"take {thing} ") for command in taken):
        kinds = [f"move {thing} ", f"open {place} ", f"go to {place} "]
        wanted = [command for kind in kinds for command in commands if command.startswith(kind)]
        wanted = [command for command in wanted if place in command]
    else:
        wanted = [command for command in commands if command.startswith(f"take {thing} ")]
        new = [command for command in commands if command not in taken]
        wanted += [command for kind in kinds for command in new if command.startswith(kind)]
    fresh = [command for command in wanted if command not in taken]
    return (fresh or wanted or ["look"])[0]
"""


def made(base=HOUSEHOLD, **options):
    env = hunch.make("hunch/PolicyCode-v0", base=base, **{"episodes": 3, **options})
    env.reset(seed=0)
    return env


def tried(program, **options):
    return made(**options).step(program)[-1]["raw"]


def test_a_policy_that_reads_its_task_and_what_it_did_solves_household_games():
    trial = tried(BY_HAND, episodes=10)
    assert trial.fitness == trial.components["success"] == 1.0
    assert tried(TEXT_START, episodes=10).fitness == 0.0  # the bed has room


def test_it_sees_what_an_agent_sees():
    game = hunch.make(HOUSEHOLD)
    observation, info = game.reset(seed=0)
    past = []
    for _ in range(3):
        seen = (info["task"], observation, list(info["actions"]), past)
        program = (
            "def act(task, observation, commands, history):\n"
            f"    expected = {seen!r}\n"
            f"    if len(history) == {len(past)}:\n"
            "        assert (task, observation, commands, history) == expected, 'something else'\n"
            "        raise ValueError('the same')\n"
            "    return commands[0]\n"
        )
        assert "the same" in tried(program, episodes=1).error
        command = info["actions"][0]
        observation, _, _, _, info = game.step(command)
        past.append((command, observation))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("'fly away'", "act returned 'fly away', which is none of the commands: 'go to "),
        ("None", "act returned None, which is none of the commands"),
        ("0", "act returned 0, which is none of the commands"),
        ("commands", "none of the commands"),
        ("(commands[0], None)", "none of the commands"),
    ],
)
def test_answers_that_are_never_a_command_fail_the_program_and_say_which_there_were(answer, says):
    trial = tried(f"def act(task, observation, commands, history):\n    return {answer}\n")
    assert trial.fitness is None
    assert says in trial.error


def test_an_answer_that_is_no_command_costs_a_step_and_changes_nothing():
    late = """
def act(task, observation, commands, history):
    if len(history) == 1:
        return None
    if len(history) == 2:
        assert (observation, history[1]) == ("Nothing happens.", ("None", "Nothing happens."))
        assert commands[0] == "examine cabinet 1", "the same commands as before"
        return "inventory"
    return commands[0]
"""
    trial = tried(late, episodes=1, max_steps=4)
    assert (trial.fitness, trial.components["steps"], trial.components["wasted"]) == (0.0, 4, 0.25)
    assert "act returned None, which is none of the commands: 'examine cabinet 1'" in trial.feedback
    stops = "def act(task, observation, commands, history):\n    return None if history else commands[0]\n"
    trial = tried(stops)
    assert trial.components["steps"] == 50  # those in which nothing happens count
    assert trial.components["wasted"] == 49 / 50


def test_an_array_of_truth_values_costs_a_step_as_any_other_answer():
    program = (
        "import numpy as np\n"
        "def act(task, observation, commands, history):\n"
        "    return commands[0] if history else np.array([True, False])\n"
    )
    trial = tried(program, max_steps=4)
    assert not trial.error
    assert trial.components["wasted"] == 1 / 4
    assert "act returned array([ True, False])" in trial.feedback


def test_of_a_long_episode_it_sees_the_latest_commands(monkeypatch):
    monkeypatch.setattr("hunch.envs.design.played.HISTORY", 3)
    program = """
def act(task, observation, commands, history):
    taken = [command for command, _ in history]
    assert taken in ([], ["look"], ["look"] * 2, ["look"] * 2 + ["inventory"], ["look", "inventory", "look"])
    if taken == ["look", "inventory", "look"]:
        raise ValueError("the first is left out")
    return "inventory" if len(history) == 2 else "look"
"""
    assert "the first is left out" in tried(program, episodes=1).error


def test_the_feedback_says_what_was_done_and_why_it_ended():
    feedback = tried(TEXT_START, max_steps=4).feedback
    assert "task put" in feedback
    assert "action go to" in feedback
    assert "It ended after 4 steps, at the limit of steps." in feedback


def test_the_request_shows_a_beginning_and_a_blank_one_only_the_form():
    problem, blank = made().unwrapped.problem, made(blank=True).unwrapped.problem
    game = hunch.make(HOUSEHOLD)
    _, info = game.reset(seed=0)
    for shown in (problem.plain.text, problem.text()):
        assert f"task = {info['task']!r}" in shown
        assert "In other episodes the task is another one: 'put " in shown
        assert "You pick up the" in shown  # each kind of command is shown once before any is shown twice
    for left in (blank.plain.text, blank.text()):
        assert "ousehold" not in left
        assert info["task"] not in left
        assert "commands" in left
    assert (blank.function, blank.parameters, blank.start) == (
        problem.function,
        problem.parameters,
        problem.start,
    )
    assert blank.plain.returns == problem.plain.returns
    assert "In other episodes" not in made("hunch/FrozenLake-v0").unwrapped.problem.plain.text


@pytest.mark.parametrize("base", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1"])
def test_a_blank_request_for_numbers_has_their_form_and_not_their_meaning(base):
    problem, blank = made(base).unwrapped.problem, made(base, blank=True).unwrapped.problem
    for left in (blank.plain.text + blank.plain.returns, blank.text()):
        assert base.split("-")[0] not in left
        assert not any(word in left.lower() for word in ("cart", "pole", "angle", "lake", "torque", "reward"))
    assert (blank.start, blank.parameters) == (problem.start, problem.parameters)
    assert blank.plain.parameters == problem.plain.parameters
    with pytest.raises(UsageError, match="give one of them"):
        made(base, blank=True, about="Keep the pole up.")


def test_an_environment_that_takes_any_text_is_refused_in_a_sentence():
    with pytest.raises(UsageError, match="needs a list of commands to choose from"):
        made("hunch/Heuristic-BinPacking-v0")
