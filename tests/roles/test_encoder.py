"""Text tables and state features."""

from copy import copy

import numpy as np
import pytest

from hunch import lm
from hunch.core import State, UsageError
from hunch.roles.encoder.features import StateFeatures, TextTable, pair_text, recency_weights

A = State("one\ntwo", "do it", ("left", "right"))
B = State("two", "do it", ("left", "up"))


@pytest.fixture
def table():
    return TextTable(lm.load("minilm"))


def test_each_text_is_embedded_once(table):
    before = copy(table.lm.usage)
    features = StateFeatures(table)
    features.number([A, B, A])
    features.number([B])
    asked = table.lm.usage - before
    assert asked.calls + asked.cache_hits == len({"do it", "one", "two", "left", "right", "up"})


def test_factored_vector_is_task_lines_and_actions(table):
    features = StateFeatures(table)
    (i,) = features.number([A])
    task, seen, possible = np.split(features.vectors[i], 3)
    embed = table.lm.embed
    assert np.allclose(task, embed(["do it"])[0])
    assert np.allclose(seen, embed(["one"])[0] * 0.6 / 1.6 + embed(["two"])[0] / 1.6, atol=1e-6)
    assert np.allclose(possible, embed(["left", "right"]).mean(axis=0), atol=1e-6)


def test_history_counts_line_by_line_behind_what_was_seen_since(table):
    features = StateFeatures(table)
    apart = State("c", "do it", ("up",), (("a\n\nb", "left"),))
    joined = State("a\nb\n> left\nc", "do it", ("up",))
    i, j = features.number([apart, joined])
    assert np.allclose(features.vectors[i], features.vectors[j])


def test_a_player_can_look_a_state_up_without_adding_it(table):
    features = StateFeatures(table)
    assert features.find(A) == -1
    assert features.number([A]) == [features.find(A)] == [0]
    assert features.find(B) == -1


def test_joint_encoding_is_one_text_a_pair_and_embeds_only_what_is_asked(table):
    features = StateFeatures(table, joint=True)
    i, j = features.number([A, B])
    assert features.vectors[i].shape == (0,)
    assert len(table.matrix) == 0
    first = features.rows([i, j], [np.array([1]), np.array([0, 1])])
    assert len(table.matrix) == 3
    both = features.rows([i, j, i], [np.array([0, 1]), np.array([1]), np.array([1])])
    assert len(table.matrix) == 4
    assert both[1] == both[3] == first[0]
    texts = [pair_text(A, "left"), pair_text(A, "right"), pair_text(B, "up")]
    assert np.array_equal(table.matrix[both[:3]], table.lm.embed(texts))


def test_tables_grow(table):
    texts = [f"text {i}" for i in range(600)]
    ids = table.ids(texts)
    assert np.array_equal(table.matrix[ids[[0, 599]]], table.lm.embed(["text 0", "text 599"]))


def test_recency_weights():
    assert recency_weights(3, 0.5) == pytest.approx(np.array([1, 2, 4]) / 7)


def test_a_model_that_cannot_embed_is_refused():
    with pytest.raises(UsageError, match="embed"):
        TextTable(lm.load("scripted:first"))


def test_a_table_that_grows_while_it_encodes():
    table = TextTable(lm.load("bag-of-words"))
    texts = [f"text {i}" for i in range(600)]
    one_by_one = np.stack([TextTable(lm.load("bag-of-words")).encode([text])[0] for text in texts[:3]])
    assert np.array_equal(table.encode(texts)[:3], one_by_one)
