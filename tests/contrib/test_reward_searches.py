"""Text2Reward and Song: prompts, the settings of feedback, and what is written from."""

import dataclasses

import numpy as np
import pytest
from tests.methods.test_programs import PROBLEM, Recorder, attempt, made, problem

import hunch
from hunch.envs.design.mutator import programs, wanted
from hunch.roles.writer.programs import Request, shown
from hunch_contrib.program.song import Song
from hunch_contrib.program.text2reward import Text2Reward

BOTH = (Text2Reward, Song)


@pytest.mark.parametrize("agent", BOTH)
def test_each_has_the_settings_of_feedback(agent):
    known = {field.name for field in dataclasses.fields(agent.config_class)}
    assert {"feedback", "retries", "give_up"} <= known


@pytest.mark.parametrize("agent", BOTH)
def test_prompts_hold_problem_parent_and_feedback(agent):
    prompt = agent.prompt(PROBLEM, [attempt(5, 1.0)], "part_1: 0.1, 0.2")
    assert PROBLEM.task in prompt
    assert "return 5" in prompt
    assert "part_1: 0.1, 0.2" in prompt
    assert wanted(prompt) == "f"
    assert len(programs(prompt, "f")) >= 1


def test_shuffled_feedback_shows_no_program_with_its_own():
    attempts = [attempt(n, 0.125 * n) for n in range(5)]
    for number in range(20):
        rng = np.random.default_rng(number)
        parents, feedback = shown(Request(tuple(attempts[-3:])), attempts, "shuffled", rng)
        assert [parent.program for parent in parents] == [parent.program for parent in attempts[-3:]]
        results = [parent.outcome_text() for parent in parents[:-1]] + [feedback]
        for parent, result in zip(attempts[-3:], results, strict=True):
            assert result != parent.outcome_text()
            assert result in Text2Reward.prompt(PROBLEM, parents, feedback)


def test_song_stays_with_what_is_good():
    agent = made(Song, Recorder(), good=-2.97)
    hunch.train(agent, problem(), 6)
    good = next(a.number for a in agent.attempts if a.fitness >= -2.97)
    assert [a.parents for a in agent.attempts[1 : good + 2]] == [(n,) for n in range(good + 1)]
    assert {a.parents for a in agent.attempts[good + 1 :]} <= {(good,)}
