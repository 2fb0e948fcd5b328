"""The corpus of searches: what it shows, what it learns from, and the model that has read it."""

import fnmatch
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import hunch
from hunch.core import State, UsageError
from hunch.envs import make
from hunch.lm import load
from hunch.roles.prior.kinds import build_prior
from hunch.roles.prior.language import prompt
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.execute import RunConfig, execute
from hunch_studies import priors_learned
from hunch_studies.laboratory import households

ENV = "hunch/Household-Pick-v0"


def test_a_document_asks_as_the_prior_does():
    """Two ways to one text: the steps of a search in a row, and the prompt of each of its states."""
    env = make(ENV, games=households.GAMES, pool_seed=1000, history=households.HISTORY)
    observation, info = env.reset(seed=7)
    searcher = households.search(1000, 7)
    for i, step in enumerate(searcher[: households.HISTORY + 1]):
        state = State.read(observation, info)
        told = f"Your task is to: {searcher[0].task}\n{searcher[0].observation}\n>"
        for before, after in pairwise(searcher[: i + 1]):
            told += f" {before.action}\n{after.observation}\n>"
        assert prompt(state, listed=False) == told
        observation, _, _, _, info = env.step(step.action)


def test_the_searcher_finds_everything_and_is_astray_now_and_then():
    searches = [households.search(1500 + i, i) for i in range(30)]
    assert all(len(steps) < households.LONGEST for steps in searches)
    meant = [step.meant for steps in searches for step in steps]
    assert 0.05 < 1 - np.mean(meant) < 0.17


def test_random_steps_are_no_answers():
    for i in range(40):
        actions = [piece for piece in households.document(f"{i}", 0) if piece.text.startswith(" ")]
        if not all(piece.answer for piece in actions):
            return
    pytest.fail("every step of forty documents was meant")


def games(pool, env=ENV):
    return [str(game) for game in make(env, pool_seed=pool, games=2).unwrapped.pool]


def test_the_card_names_the_games_of_the_corpus_and_no_others():
    first, end = households.FIRST_POOL, households.FIRST_POOL + households.POOLS
    read = fnmatch.filter([game for pool in (first, end - 1) for game in games(pool)], households.READ)
    assert len(read) == 4
    assert not fnmatch.filter([game for pool in (0, first - 1, end) for game in games(pool)], households.READ)
    own = [
        str(game) for place in priors_learned.PLACES.values() for game in make(ENV, **place).unwrapped.pool
    ]
    assert not fnmatch.filter(own, households.READ)


def test_a_model_plays_no_game_that_it_was_trained_on(tmp_path):
    run = RunConfig(method="zero-shot", env=ENV, lm="pocket?corpus=households", steps=1)
    known = replace(run, env="hunch/Household-v0", env_options={"pool_seed": 1500, "kinds": "pick,cool"})
    with pytest.raises(UsageError, match="28 of the 56 games to play, such as pick-train-typical-1500-0"):
        execute(known, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="trained on 2 of the 2 games"):
        hunch.train(
            "glam", make(ENV, pool_seed=1500, games=2), steps=1, lm=run.lm, watch=hunch.Watch(progress=False)
        )
    execute(replace(run, env_options={"games": 1}), tmp_path / "run")
    with pytest.raises(UsageError, match="trained on 1 of the 1 games"):
        evaluate_run(Trial(run=tmp_path / "run", env_options={"pool_seed": 1500}, episodes=1))


def test_the_model_that_is_shipped_writes_what_is_right_where_the_text_says_it():
    prior = build_prior(priors_learned.WRITES, load("pocket?corpus=households", cache=None))
    rng, hits = np.random.default_rng(0), []
    for state, action in priors_learned.states(priors_learned.UNSEEN, 6):
        if not action.startswith("go to"):
            (proposal,) = prior.propose([state], 5, rng)
            hits.append(state.options.index(action) in proposal.indices)
    assert np.mean(hits) > 0.8
