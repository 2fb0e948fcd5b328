"""WorldCoder with a model that writes: the limit, the blank prompt, and what becomes of programs."""

from dataclasses import replace
from pathlib import Path

from tests.begun import begun

import hunch
from hunch import lm
from hunch.roles.writer.plain import plain_prompt
from hunch_studies.worldcoder import (
    BLANK,
    KNOWING,
    Limited,
    arms_written,
    kind_of,
    recorded,
    steps_of_world,
    written_tables,
)


class Keeping:
    """Writes programs in which nothing changes, and keeps its requests."""

    evidence = None

    def __init__(self):
        self.requests = []

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        self.requests.append(plain_prompt(problem, parents, feedback))
        body = "return state" if problem.function == "transition" else "return 0.0, False"
        return [f"def {problem.function}({', '.join(problem.parameters)}):\n    {body}"] * n


def requests(**options):
    writer = Keeping()
    agent = begun(Limited(writer, request="plain", refinements=4, **options))
    hunch.train(agent, hunch.make("hunch/FrozenLake-v0"), 60, seed=0)
    return writer.requests


def test_no_more_programs_are_written_than_the_limit_and_it_acts_with_those():
    assert len(requests(programs=6)) == 6
    assert len(requests(programs=9)) == 9
    agent = begun(Limited(lm.load(KNOWING), programs=2))
    result = hunch.train(agent, hunch.make("hunch/FrozenLake-v0"), 100, seed=0)
    assert agent.written == 2
    assert result.episodes[-1].success


def test_the_blank_prompt_has_the_form_of_a_state_and_no_task_no_step_and_no_result():
    usual, blank = requests(programs=6), requests(programs=6, blank=True)
    assert len(blank) == 6
    for text in ("reach the goal", "next state (", "transitions are right"):
        assert any(text in request for request in usual)
        assert not any(text in request for request in blank)
    assert all("such as (0, 0)" in request and "'Go Down'" in request for request in blank)
    assert "def transition" in blank[-1], "the program that is to be changed is shown in both"


def test_arms_with_a_model_differ_in_what_is_compared_alone():
    by_label = {arm.label: arm.config for arm in arms_written("FrozenLake", 400, "uniform")}
    assert {config.steps for config in by_label.values()} == {400}
    usual = by_label["WorldCoder"].options
    for label, change in (
        ("without optimism", {"optimism": False}),
        (BLANK, {"blank": True}),
        ("WorldCoder, twelve programs", {"programs": 2 * usual.programs}),
    ):
        assert by_label[label].options == replace(usual, **change)
        assert by_label[label].lm == "uniform"
    assert by_label[BLANK].options.blank


def test_what_became_of_a_program_is_told_by_its_result():
    def kind(program, **options):
        class Once:
            evidence = None

            def write(self, problem, parents, feedback, n, first=0, kind=""):
                return [program] * n

        agent = begun(Limited(Once(), programs=1, **options))
        hunch.train(agent, hunch.make("hunch/FrozenLake-v0"), 40, seed=0)
        return kind_of(agent.records()[0])

    def of(body):
        return f"def transition(state, action):\n    return {body}"

    assert kind("") == "no program"
    assert kind("def transition(state, action)") == "not Python"
    assert kind("def step(state, action):\n    return state") == "another function"
    assert kind("def transition(state):\n    return state") == "another function"
    assert kind(of("state[2]")) == "an error"
    assert kind(of("(state, 0.0, False)")) == "another form"
    assert kind(of("None")) == "another form"
    assert kind(of("state")) == "a wrong result"
    array = "import numpy\n\n" + of("numpy.array(state)")
    assert kind(array) == "a wrong result", "an array is a state, as a tuple is"
    right = "(min(3, max(0, r + (action == 'Go Down') - (action == 'Go Up'))), "
    right += "min(3, max(0, c + (action == 'Go Right') - (action == 'Go Left'))))"
    assert (
        kind(f"def transition(state, action):\n    r, c = state\n    return {right}") == "explains all steps"
    )


def test_the_steps_of_the_lake_are_those_of_the_cells_where_an_episode_goes_on():
    steps = steps_of_world("FrozenLake")
    assert len(steps) == len({(step.state, step.action) for step in steps}) == 4 * 11


def test_rows_are_counted_and_paired_by_arm():
    rows = [
        {
            **{"part": "p", "arm": arm, "seed": seed, "steps": 400, "first": first, "late": 0.0},
            **{"programs": [12, 0, 0, 0], "right": right, "kinds": kinds, "copies": 1, "still": 0.25},
        }
        for seed in range(2)
        for arm, first, right, kinds in (
            ("WorldCoder", 100 + seed, 0.5, {"transition": {"an error": 3}}),
            ("random actions", None, None, {}),
        )
    ]
    lines = written_tables(rows).splitlines()
    assert "300 steps" in lines[3]
    assert lines[-1].split("|")[1:] == [" WorldCoder ", " transition ", *[" 0 "] * 3, " 6 ", *[" 0 "] * 3, ""]


def test_the_recorded_rows_of_a_real_model():
    lines = recorded(Path("docs/assets/studies/worldcoder-written.jsonl")).splitlines()
    by_arm = {line.split("|")[1].strip(): line for line in lines if line.startswith("|")}
    assert " 333 [200, 400] | 2 of 3 " in next(line for line in lines if line.startswith("| WorldCoder |"))
    assert " 23 [20, 25] | 0 of 3 " in next(line for line in lines if "script" in line)
    assert by_arm["WorldCoder, twelve programs"].endswith("| transition | 0 | 1 | 0 | 8 | 1 | 26 | 0 |")
