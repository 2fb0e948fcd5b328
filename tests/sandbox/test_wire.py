"""The codec: what goes in comes out, equal and of the same type; what else comes in is an error."""

import json
import math
import random
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunch.sandbox import frames, wire
from hunch.sandbox.wire import WireError
from tests.sandbox.attacks.hashes import slow_keys
from tests.sandbox.test_benign import same

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**1023), 2**1023) | st.floats(allow_nan=False)
KEYS = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT, lambda keys: st.tuples(keys, keys), max_leaves=3
)
DTYPES = ["?", "<i1", "<u2", "<i8", "<u8", "<f2", "<f4", "<f8", "<c16"]
ARRAYS = st.builds(
    lambda dtype, shape: np.arange(math.prod(shape)).reshape(shape).astype(dtype),
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 3), max_size=3),
)
VALUES = st.recursive(
    KEYS | ARRAYS,
    lambda values: (
        st.lists(values)
        | st.tuples(values, values)
        | st.dictionaries(KEYS, values)
        | st.sets(KEYS, max_size=5)
    ),
    max_leaves=12,
)
# Trees that may or may not stand for a value: tags and contents at random.
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda trees: (
        st.lists(trees)
        | st.dictionaries(st.sampled_from("tsdax"), st.lists(trees) | st.lists(st.lists(trees, max_size=2)))
    ),
)


@given(VALUES)
def test_values_come_back(value):
    sent = frames.encode({"value": wire.to_tree(value)})
    assert same(wire.from_tree(frames.decode(sent)["value"]), value)


@given(TREES)
def test_any_tree_is_a_plain_value_or_an_error(tree):
    try:
        value = wire.from_tree(json.loads(json.dumps(tree)), finite=True)
    except WireError:
        return
    assert same(wire.from_tree(wire.to_tree(value), finite=True), value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_an_error(data):
    with suppress(WireError):
        assert type(frames.decode(data)) is dict


def test_nan_and_infinity_pass_only_where_allowed():
    for value in (math.nan, math.inf, [-math.inf], np.array([math.nan])):
        tree = json.loads(json.dumps(wire.to_tree(value)))
        assert np.array_equal(wire.from_tree(tree), value, equal_nan=True)
        with pytest.raises(WireError, match="finite"):
            wire.from_tree(tree, finite=True)


def test_a_frame_of_brackets_is_refused_before_it_is_built():
    with pytest.raises(WireError, match="values"):
        frames.decode(b'{"a":[' + b"[]," * 600_000 + b"[]]}")


@pytest.mark.parametrize(
    "tree", [{"s": [1]}, {"d": [[1, 2]]}, [[0]], {"t": [{"s": []}]}], ids=["set", "dict", "list", "tuple"]
)
def test_what_cannot_be_read_in_time_is_given_up(tree):
    assert wire.from_tree(tree, until=time.monotonic() + 600) == wire.from_tree(tree)
    with pytest.raises(TimeoutError):
        wire.from_tree(tree, until=time.monotonic() - 1)


def test_a_table_that_python_fills_slowly_costs_no_more_than_the_limit():
    """A tenth of what the whole table takes on this machine, both in this thread's own processor time."""
    keys = slow_keys(42_000)
    tree = {"d": [[key, 0] for key in keys]}
    start = time.thread_time()
    dict.fromkeys(keys)
    whole = time.thread_time() - start
    start = time.thread_time()
    with pytest.raises(TimeoutError):
        wire.from_tree(tree, until=time.monotonic() + whole / 10)
    assert time.thread_time() - start < whole / 2


def test_hashes_are_counted_without_a_table():
    """Keys that are slow in a dict and quick in a set cost about as much to read as any others do."""

    def cost(keys):
        start = time.thread_time()
        assert len(wire.from_tree({"s": keys})) == len(keys)
        return time.thread_time() - start

    slow, plain = slow_keys(42_000), random.Random(0).sample(range(2**40), 42_000)
    assert min(cost(slow) for _ in range(3)) < 10 * max(cost(plain) for _ in range(3))


def test_a_long_text_of_commas_is_no_such_frame():
    text = ',[{"\\' * 300_000
    assert frames.decode(frames.encode({"text": text}))["text"] == text


def test_an_array_is_writable_and_of_its_own():
    tree = wire.to_tree(np.zeros(2))
    one, other = wire.from_tree(tree), wire.from_tree(tree)
    one[0] = 1
    assert other[0] == 0


def test_a_bool_array_holds_bools_only():
    array = wire.from_tree({"a": ["|b1", [3], "AP8C"]})
    assert array.tolist() == [False, True, True]
    assert set(array.view(np.uint8)) <= {0, 1}


def test_the_arrays_of_many_calls_travel_together():
    """And arrive as they were, each in memory of its own, so that no call changes another's."""
    calls = [(np.arange(n, dtype=float), n, np.array(n), np.zeros((2, n), ">i4")) for n in range(1, 5)]
    calls = [(*call, "text" if n else np.ones(1), [np.ones(2)]) for n, call in enumerate(calls)]
    payload = frames.encode({"calls": wire.calls_to_tree(calls)})
    found = list(wire.calls_from_tree(frames.decode(payload)["calls"]))
    assert [wire.to_tree(list(call)) for call in found] == [wire.to_tree(list(call)) for call in calls]
    assert all(value.flags.owndata for call in found for value in call if isinstance(value, np.ndarray))
    assert [*wire.calls_from_tree(wire.calls_to_tree([(), ()]))] == [[], []]
    assert [*wire.calls_from_tree(wire.calls_to_tree([(1,), ()]))] == [[1], []]
