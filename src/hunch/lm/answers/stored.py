"""The form of an answer in a file: JSON, which restores the answer bit for bit."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from hunch.lm.answers.table import Kind
from hunch.lm.base import OptionScores


def encode(verb: Kind, value: Any) -> str:
    """Return an answer as JSON; embeddings as base64 of little-endian float32, -inf as null."""
    if verb in ("generate", "count"):
        return json.dumps(value)
    if verb == "score":
        return json.dumps({field: getattr(value, field).tolist() for field in OptionScores.__slots__})
    if verb == "decide":
        return json.dumps(value.tolist())
    if verb == "label":
        return json.dumps([None if x == -np.inf else x for x in value.tolist()])
    return json.dumps({"f32": base64.b64encode(value.astype("<f4").tobytes()).decode()})


def decode(verb: Kind, text: str) -> Any:
    """Return the answer that :func:`encode` wrote, equal bit for bit.

    Raises:
        ValueError: if the text holds no such answer.
    """
    try:
        return _decode(verb, json.loads(text))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{str(text)[:60]!r} is not an answer to a request of kind {verb}") from error


def _decode(verb: Kind, value: Any) -> Any:
    if verb == "generate":
        if not isinstance(value, str):
            raise TypeError
        return value
    if verb == "count":
        if type(value) is not int or value < 0:
            raise TypeError
        return value
    if verb == "score":
        counts = {field: _row(value[field], np.int64) for field in ("tokens", "words")}
        logprobs = _row(value["logprobs"], np.float64)
        if not len(logprobs) == len(counts["tokens"]) == len(counts["words"]):
            raise ValueError
        return OptionScores(logprobs, **counts)
    if verb == "decide":
        return _row(value, np.float64)
    if verb == "label":
        return _row([-np.inf if x is None else x for x in value], np.float64)
    return np.frombuffer(base64.b64decode(value["f32"]), dtype="<f4").astype(np.float32)


def _row(values: Any, kind: type[Any]) -> Any:
    """Return a list of numbers as an array, shape (n,)."""
    array = np.array(values, dtype=kind)
    if array.ndim != 1 or not isinstance(values, list) or any(isinstance(value, str) for value in values):
        raise ValueError
    return array
