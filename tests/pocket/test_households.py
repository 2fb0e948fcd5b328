"""The corpus of searches: what it shows, what it learns from, and the model that has read it."""

from itertools import pairwise

import numpy as np
import pytest

from hunch.core import State, UsageError
from hunch.envs import make
from hunch.lm import load
from hunch.pocket import households
from hunch.roles.prior_kinds import build_prior
from hunch.roles.prior_language import prompt
from hunch.studies import priors_learned

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


def test_games_to_play_are_not_those_of_the_corpus():
    priors_learned.refuse_known(priors_learned.PLACES)
    with pytest.raises(UsageError, match="pool 1000"):
        priors_learned.refuse_known({"seen": {"pool_seed": 1000}})


def test_the_model_that_is_shipped_writes_what_is_right_where_the_text_says_it():
    prior = build_prior(priors_learned.WRITES, load("pocket?corpus=households", cache=None))
    rng, hits = np.random.default_rng(0), []
    for state, action in priors_learned.states(priors_learned.UNSEEN, 6):
        if not action.startswith("go to"):
            (proposal,) = prior.propose([state], 5, rng)
            hits.append(state.options.index(action) in proposal.indices)
    assert np.mean(hits) > 0.8
