"""The form of an answer in a file: JSON, which restores the answer bit for bit."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from hunch.lm.base import OptionScores, Verb


def encode(verb: Verb, value: Any) -> str:
    """Return an answer as JSON; embeddings as base64 of little-endian float32, -inf as null."""
    if verb == "generate":
        return json.dumps(value)
    if verb == "score":
        return json.dumps({field: getattr(value, field).tolist() for field in OptionScores.__slots__})
    if verb == "decide":
        return json.dumps(value.tolist())
    if verb == "label":
        return json.dumps([None if x == -np.inf else x for x in value.tolist()])
    return json.dumps({"f32": base64.b64encode(value.astype("<f4").tobytes()).decode()})


def decode(verb: Verb, text: str) -> Any:
    """Return the answer that :func:`encode` wrote, equal bit for bit."""
    value = json.loads(text)
    if verb == "generate":
        return value
    if verb == "score":
        counts = {field: np.array(value[field], dtype=np.int64) for field in ("tokens", "words")}
        return OptionScores(np.array(value["logprobs"], dtype=np.float64), **counts)
    if verb == "decide":
        return np.array(value, dtype=np.float64)
    if verb == "label":
        return np.array([-np.inf if x is None else x for x in value], dtype=np.float64)
    return np.frombuffer(base64.b64decode(value["f32"]), dtype="<f4").astype(np.float32)
