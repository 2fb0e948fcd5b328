"""Answers that are restricted to options, drawn from the tree of their tokens: two routes to each number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.core import State
from hunch.lm import Sampling
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.scoring.restricted import STOP, Restricted
from hunch.lm.ways import best_way, has_way
from hunch.numbers import softmax
from hunch.roles import PriorConfig, build_prior

torch = pytest.importorskip("torch")

PROMPT = "You see a fridge 1, a table 2 and a mug 3.\nAction:"
OPTIONS = ("go to the fridge", "go to the table", "look", "take mug 3", "take mug 3 from table 2", "open")


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalModel:
    return lm.load(f"hf:{folders[request.param]}", cache=None).model


def tree_of(model: CausalModel) -> tuple[Restricted, list[int], list[float]]:
    head, tails = model._request(PROMPT, OPTIONS)
    tree = Restricted(tails)
    return tree, head, model._engine.score([(head, tree.paths)])[0]


def masked(model: CausalModel, head: list[int], tails: list[list[int]]) -> list[float]:
    """The plainest computation: a forward pass a token, with all tokens masked but those that are allowed."""
    found = []
    for tail in tails:
        p = 1.0
        for place in range(len(tail) + 1):
            with torch.inference_mode():
                logits = model.network(torch.tensor([[*head, *tail[:place]]])).logits[0, -1].double()
            every = torch.softmax(logits, -1)
            before = [other for other in tails if other[:place] == tail[:place]]
            allowed = {other[place] for other in before if len(other) > place}
            if not allowed:
                break
            going_on = float(sum(every[token] for token in allowed))
            total = going_on + (1 - going_on if tail[:place] in tails else 0)
            own = float(every[tail[place]]) if place < len(tail) else 1 - going_on
            p *= own / total
        found.append(p)
    return found


def test_the_tree_gives_the_probabilities_of_decoding_with_a_mask(model: CausalModel) -> None:
    head, tails = model._request(PROMPT, OPTIONS)
    tree, _, sums = tree_of(model)
    probabilities = tree.probabilities(tree.choices(sums))
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities == pytest.approx(masked(model, head, tails), abs=1e-5)


def test_the_unrestricted_probability_of_a_path_is_the_options_likelihood(model: CausalModel) -> None:
    tree, _, sums = tree_of(model)
    choices = tree.choices(sums)
    (scores,) = model.score([PROMPT], [OPTIONS])
    for path, number in tree.ends.items():
        total = 0.0
        for place, token in enumerate(path):
            tokens, logprobs = choices[path[:place]]
            total += logprobs[tokens.index(token)]
        assert total == pytest.approx(scores.logprobs[number], abs=1e-4)


def test_options_of_one_token_have_the_softmax_of_their_likelihoods(model: CausalModel) -> None:
    letters = ("A", "B", "C")
    head, tails = model._request("Action: ", letters)  # no space goes before an option
    assert all(len(tail) == 1 for tail in tails)
    tree = Restricted(tails)
    (sums,) = model._engine.score([(head, tree.paths)])
    (scores,) = model.score(["Action: "], [letters])
    assert tree.probabilities(tree.choices(sums)) == pytest.approx(softmax(scores.logprobs), abs=1e-6)


def test_samples_have_these_probabilities_and_repeat(model: CausalModel) -> None:
    tree, _, sums = tree_of(model)
    expected = tree.probabilities(tree.choices(sums))
    sampling = Sampling(8, choices=OPTIONS)
    (drawn,) = model.generate([PROMPT], 4000, sampling)
    counts = Counter(drawn)
    shares = np.array([counts[option] for option in OPTIONS]) / 4000
    deviation = np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(shares - expected) <= 4 * deviation + 1e-9).all()
    assert model.generate([PROMPT, "Look:"], 3, sampling, 7)[0] == drawn[7:10]


def test_greedy_takes_the_likeliest_token_at_each_node_and_top_p_drops_the_tail() -> None:
    tree = Restricted([(1, 2), (1, 3), (4,)])
    choices = tree.choices(np.log([0.6, 0.3, 0.2, 0.1]))  # paths (1), (4), (1, 2), (1, 3)
    assert tree.paths == [(1,), (4,), (1, 2), (1, 3)]
    rng = np.random.default_rng(0)
    assert tree.draw(choices, Sampling(temperature=0), rng) == 0
    assert {tree.draw(choices, Sampling(top_p=0.5), rng) for _ in range(50)} == {0}
    assert {tree.draw(choices, Sampling(), rng) for _ in range(200)} == {0, 1, 2}
    assert tree.probabilities(choices) == pytest.approx([2 / 3 * 2 / 3, 2 / 3 / 3, 1 / 3])


def test_to_stop_is_a_choice_where_a_longer_option_goes_on() -> None:
    tree = Restricted([(1,), (1, 2), (1,)])
    choices = tree.choices(np.log([0.5, 0.1]))  # paths (1), (1, 2)
    assert choices[1,][0] == (2, STOP)
    assert tree.probabilities(choices) == pytest.approx([0.8, 0.2])  # p(2 | 1) = 0.2; twins are one text


def test_a_prior_is_structured_with_it_and_a_model_that_scores_is_still_scored(model: CausalModel) -> None:
    cached = lm.Cached(model)
    assert has_way(cached, "structured")
    assert best_way(cached) == "likelihood"
    prior = build_prior(PriorConfig(way="structured"), cached)
    state = State("A fridge.", "open it", OPTIONS)
    (proposal,) = prior.propose([state], 20, np.random.default_rng(0))
    assert proposal.fallbacks == 0
    assert cached.usage.calls == 20


def test_two_thousand_options_and_other_scripts_are_drawn(model: CausalModel) -> None:
    options = tuple(f"take mug {number}" for number in range(2000))
    (drawn,) = model.generate([PROMPT], 3, Sampling(4, choices=options))
    assert set(drawn) <= set(options)
