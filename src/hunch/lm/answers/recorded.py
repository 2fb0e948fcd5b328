"""Recorded answers that stand in for a model (``replay:<file>``), offline and equal bit for bit.

The file is an export of the cache (:mod:`hunch.lm.answers.archive`). A request that was not recorded raises
an error.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote

from hunch.core import EvidenceLevel, HunchError, UsageError
from hunch.lm.answers.question import Answering, Question
from hunch.lm.answers.store import Source, Store
from hunch.lm.answers.stored import decode
from hunch.lm.answers.table import Key, Kind
from hunch.lm.base import Backend, Model
from hunch.lm.speech import text_of

BACKEND = Backend(
    "replay:<file>",
    f"{__name__}:load",
    frozenset({"generate", "score", "label", "embed", "decide"}),
    "recorded answers, from a file that 'hunch cache export' wrote",
    costly=False,
)

FIELDS = {"model", "revision", "evidence", "verb", "request", "sample", "value"}
SHOWN = 60
LISTED = 8
"""Models that a message lists."""
A_COMMIT = 500
"""Answers that are added to a cache together."""


class ReplayModel(Answering, Model):
    """The recorded answers of one model at one revision.

    Its evidence level is that of the recorded model, but at most L2.

    Attributes:
        recorded: The spec of the recorded model.
        context: Maximum number of tokens that it read, if its counts of tokens were recorded.
        messages: True, because recorded prompts may be messages.
        revision: The revision of the recorded model.
        dim: Length of the recorded embeddings.
        answer_tokens: Smallest number of tokens with which answers without a stop string were recorded.
    """

    messages = True
    prompting = "as recorded"

    def __init__(self, path: Path, *, model: str | None = None, revision: str | None = None) -> None:
        """Read the file; see :func:`load`."""
        self.name = f"replay:{path}"
        kept: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for record in _records(path):
            if _matches(record["model"], model) and _matches(record["revision"], revision):
                kept.setdefault((record["model"], record["revision"]), []).append(record)
        if len(kept) != 1:
            raise UsageError(_ambiguous(path, list(kept)))
        [((self.recorded, self.revision), records)] = kept.items()
        self.evidence = min(*(record["evidence"] for record in records), "L2")
        pictured = any("data:image/" in json.dumps(record["request"]) for record in records)
        verbs = {record["verb"] for record in records} - {"count"}
        self.verbs = frozenset(verbs | {"see"} if pictured else verbs)
        self.context = next((record["context"] for record in records if record.get("context")), None)
        self._lengths = {
            record["request"][0]: int(self._decoded("count", json.dumps(record["value"])))
            for record in records
            if record["verb"] == "count"
        }
        self._values = {
            _key(record["verb"], record["request"], record["sample"]): json.dumps(record["value"])
            for record in records
        }
        # Settings as Sampling.key(): max_tokens, temperature, top_p, stop, effort, choices, tools.
        samplings = [record["request"][1] for record in records if record["verb"] == "generate"]
        chats = [sampling for sampling in samplings if not sampling[3]]
        self._rooms = sorted({int(sampling[0]) for sampling in chats})
        self.answer_tokens = min(self._rooms, default=0)
        # A recording answers only what was asked: free texts, unless its answers were restricted to options.
        restricted = any(len(sampling) > 5 and sampling[5] for sampling in samplings)
        self.takes = frozenset(("effort",) if chats else ()) | frozenset(("choices",) if restricted else ())
        if any(len(sampling) > 6 and sampling[6] for sampling in samplings):
            self.takes |= {"tools"}
        if samplings:
            self.best_way = "structured" if restricted else "text"
        embedded = next((record for record in records if record["verb"] == "embed"), None)
        self.dim = len(self._decoded("embed", json.dumps(embedded["value"]))) if embedded else 0

    def count_tokens(self, text: str) -> int:
        """Return the number of a text's tokens: as recorded, or an estimate where no counts were recorded.

        Raises:
            HunchError: if counts of other texts were recorded.
        """
        if not self._lengths:
            return super().count_tokens(text)
        if text not in self._lengths:
            raise HunchError(
                f"{self.name} does not hold the number of tokens that {self.recorded} counts in "
                f"{_brief(text)}."
            )
        return self._lengths[text]

    def _answers(self, asked: list[Question]) -> dict[Question, Any]:
        """Look up what was recorded.

        Raises:
            HunchError: if an answer was not.
        """
        return {question: self._find(*question) for question in asked}

    def _find(self, verb: Kind, request: tuple[Any, ...], sample: int) -> Any:
        if verb not in self.verbs:
            raise self._lacks(verb)
        value = self._values.get(_key(verb, request, sample))
        if value is None and verb == "generate":
            value = self._with_more_room(request, sample)
        if value is None:
            raise HunchError(
                f"{self.name} holds no answer of {self.recorded} to this request: {verb}, sample {sample}, "
                f"{_brief(text_of(request[0]))}; it was not recorded, or recorded with other settings."
            )
        return self._decoded(verb, value)

    def _decoded(self, verb: Kind, value: str) -> Any:
        try:
            return decode(verb, value)
        except ValueError as error:
            raise HunchError(f"{self.name} holds a damaged answer: {error}.") from error

    def _with_more_room(self, request: tuple[Any, ...], sample: int) -> str | None:
        """Return an answer that was recorded with more room, after one with little room was cut."""
        prompt, (room, *how) = request
        for larger in (known_room for known_room in self._rooms if known_room > room):
            value = self._values.get(_key("generate", (prompt, (larger, *how)), sample))
            if value is not None:
                return value
        return None


def load(name: str, *, model: str | None = None, revision: str | None = None) -> ReplayModel:
    """Load recorded answers from a file.

    Args:
        name: The file, written by ``hunch cache export``.
        model: The model to replay, if the file holds several; in a spec with %26 for each & of its name.
        revision: The revision to replay, if the file holds several.

    Raises:
        UsageError: if the file does not exist, or the number of matching models in it is not one.
        HunchError: if a line is damaged.
    """
    return ReplayModel(Path(name).expanduser(), model=model, revision=revision)


def add_to(store: Store, path: Path) -> int:
    """Add the answers of a file that ``hunch cache export`` wrote to a cache; return how many were new.

    An answer that the cache holds already stays.

    Raises:
        UsageError: if there is no such file.
        HunchError: if a line is damaged, or the cache cannot be written; the answers before that are added.
    """
    added = 0
    batch: dict[Key, str] = {}
    requests: dict[Key, str] = {}
    origin: Source | None = None

    def flush() -> int:
        new = len(batch)
        if origin is not None:
            new -= len(store.write(batch, origin, requests))
        batch.clear()
        requests.clear()
        return new

    for record in _records(path):
        source = Source(record["verb"], record["model"], record["revision"])
        if source != origin or len(batch) == A_COMMIT:
            added += flush()
            origin = source
        value = json.dumps(record["value"])
        try:
            decode(source.verb, value)
        except ValueError as error:
            raise HunchError(f"{path} holds a damaged answer: {error}.") from error
        asked = json.dumps([source.model, source.revision, source.verb, record["request"]])
        key = hashlib.sha256(asked.encode()).hexdigest(), record["sample"]
        batch[key] = value
        kept = ("request", "evidence", "context")
        requests[key] = json.dumps({name: record[name] for name in kept if name in record})
    added += flush()
    store.flush()
    if store.unsaved:
        raise HunchError(
            f"The answers do not all fit into {store.path}, or it cannot be written: make room, and the same "
            "command adds the rest."
        )
    return added


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise UsageError(f"There is no file of recorded answers at {str(path)!r}.")
    opener: Any = gzip.open if path.suffix == ".gz" else open
    read = 0
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            for line in file:
                yield _checked(json.loads(line))
                read += 1
    except PermissionError as error:
        raise HunchError(f"{path} cannot be read: permission is denied.") from error
    except (ValueError, EOFError, OSError, RecursionError, zlib.error) as error:
        raise HunchError(
            f"{path} is damaged or not an export of answers: line {read + 1} cannot be read ({error})."
        ) from error


def _checked(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict) or not record.keys() >= FIELDS:
        raise ValueError("it is not a recorded answer")
    if record["verb"] not in get_args(Kind) or record["evidence"] not in get_args(EvidenceLevel):
        raise ValueError("its verb or evidence level does not exist")
    if not all(isinstance(record[name], str) for name in ("model", "revision")):
        raise ValueError("its model and revision are no texts")
    if not isinstance(record.get("context"), int | None):
        raise ValueError("its context is no number of tokens")
    if type(record["sample"]) is not int or not _is_request(record["verb"], record["request"]):
        raise ValueError("its request is none of this verb")
    return record


def _is_request(verb: Kind, request: Any) -> bool:
    """Return whether a value has the form of a request, see :class:`hunch.lm.answers.question.Question`."""
    if not isinstance(request, list) or len(request) != (1 if verb in ("embed", "count") else 2):
        return False
    if verb == "count":  # of a text, whereas a prompt may be messages
        return isinstance(request[0], str)
    if not _is_prompt(request[0]):
        return False
    if verb == "generate":  # how is sampled, as Sampling.key() writes it
        how = request[1]
        return isinstance(how, list) and len(how) >= 4 and type(how[0]) is int
    return verb == "embed" or isinstance(request[1], list)


def _is_prompt(prompt: Any) -> bool:
    """Return whether a value is a text, or messages of a role and a text or parts."""
    if isinstance(prompt, str):
        return True
    return isinstance(prompt, list) and all(
        isinstance(message, list) and len(message) > 1 and isinstance(message[0], str) for message in prompt
    )


def _matches(name: str, wanted: Any) -> bool:
    """Return whether a name is the one wanted, as a spec gives it: a number if it is one, with %26 for &."""
    if wanted is None or name == wanted:
        return True
    if isinstance(wanted, str):
        return name == unquote(wanted)
    with suppress(ValueError):
        return bool(json.loads(name) == wanted)
    return False


def _in_spec(name: str) -> str:
    """Return a name as it is written in the options of a spec, which & separates."""
    return name.replace("%", "%25").replace("&", "%26")


def _ambiguous(path: Path, models: list[tuple[str, str]]) -> str:
    if not models:
        return f"{path} holds no answers of a model that matches."
    listed = ", ".join(
        f"{_in_spec(model)} (revision {_in_spec(revision)})" for model, revision in models[:LISTED]
    )
    more = f", and {len(models) - LISTED} more" if len(models) > LISTED else ""
    return (
        f"{path} holds the answers of {len(models)} models; choose one by ?model=SPEC, and &revision=R "
        f"if it has several, or export one by 'hunch cache export FILE --model SPEC': {listed}{more}."
    )


def _key(verb: str, request: Sequence[Any], sample: int) -> str:
    return json.dumps([verb, request, sample])


def _brief(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
