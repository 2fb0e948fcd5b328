"""Recorded answers of language models to PlanBench's problems.

The files are those of github.com/karthikv792/LLMs-Planning, a clone of it or a part, possibly compressed
(``.json.gz``). The problem is read from the model's prompt, and the plan as the authors extracted it from the
answer. The authors' own labels are not used.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hunch.core import UsageError
from hunch_studies.recordings.statements import Statement, read_statement
from hunch_studies.worlds.strips.pddl import Atom

_SERVICE = re.compile(r"(_chat|_aws|_groq|-api)$")


@dataclass(frozen=True)
class Answer:
    """A model's answer to one problem.

    Attributes:
        instance: Number of the problem.
        statement: The problem.
        plan: The plan; None if none was found in the answer.
        text: The whole answer; empty if it was not recorded.
        prompt: Length of the prompt in characters.
        truth: The authors' solution; empty if there is none.
        month: Month of the recording, such as ``"2024-10"``; empty if unknown.
    """

    instance: int
    statement: Statement
    plan: tuple[Atom, ...] | None
    text: str
    prompt: int
    truth: tuple[Atom, ...]
    month: str


@dataclass(frozen=True)
class Repair:
    """A model's plans for one problem, each after a verifier's feedback on the previous one.

    Attributes:
        instance: Number of the problem.
        statement: The problem.
        plans: The plans in order.
    """

    instance: int
    statement: Statement
    plans: tuple[tuple[Atom, ...], ...]


@dataclass(frozen=True)
class Recording:
    """One file: the answers of a model to the problems of a domain.

    Attributes:
        path: The file.
        domain: Name in the repository, such as ``"mystery_blocksworld_3"``.
        model: The model, without the name of its service.
        prompt: Kind of prompt, such as ``"zero-shot"`` or ``"one-shot PDDL"``.
    """

    path: Path
    domain: str
    model: str
    prompt: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Domain, model and prompt."""
        return self.domain, self.model, self.prompt

    def answers(self) -> list[Answer]:
        """Read the answers.

        Raises:
            UsageError: if the file is damaged or of another form.
        """
        return [self._answer(number, record) for number, record in records(self.path)]

    def repairs(self) -> list[Repair]:
        """Read the plans after a verifier's feedback.

        Raises:
            UsageError: if the file is damaged or of another form.
        """
        return [self._repair(number, record) for number, record in records(self.path)]

    def _answer(self, number: int, record: Mapping[str, Any]) -> Answer:
        statement = self._statement(number, record.get("query"))
        text = record.get("llm_raw_response") or ""
        extracted = record.get("extracted_llm_plan")
        plan = None if extracted is None else self._plan(number, statement, extracted)
        truth = record.get("ground_truth_plan") or ""
        if isinstance(truth, Mapping):
            truth = truth.get("plan") or ""
        known = self._plan(number, statement, truth)
        month = _month(record.get("response_object"))
        return Answer(number, statement, plan, str(text), len(record["query"]), known, month)

    def _repair(self, number: int, record: Mapping[str, Any]) -> Repair:
        messages = record.get("messages")
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            raise UsageError(f"{self.path}: problem {number} has no list of messages.")
        asked = next((m.get("content") for m in messages if m.get("role") == "user"), None)
        statement = self._statement(number, asked)
        steps = record.get("step_wise_dict")
        if isinstance(steps, dict) and steps:
            written = [steps[key].get("llm_plan") or "" for key in sorted(steps, key=int)]
            plans = [self._plan(number, statement, text) for text in written]
        else:
            replies = [m.get("content") or "" for m in messages if m.get("role") == "assistant"]
            plans = [tuple(statement.plan_in_words(str(reply))) for reply in replies]
            last = record.get("extracted_llm_plan")
            if plans and last:  # Only of the last plan there is what the authors extracted.
                plans[-1] = self._plan(number, statement, last)
        return Repair(number, statement, tuple(plans))

    def _statement(self, number: int, prompt: Any) -> Statement:
        if not isinstance(prompt, str):
            raise UsageError(f"{self.path}: problem {number} has no prompt.")
        try:
            return read_statement(prompt)
        except UsageError as error:
            raise UsageError(f"{self.path}: problem {number}: {error}") from None

    def _plan(self, number: int, statement: Statement, written: Any) -> tuple[Atom, ...]:
        lines = [written] if isinstance(written, str) else written
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise UsageError(f"{self.path}: the plan of problem {number} is neither text nor lines.")
        return tuple(statement.plan("\n".join(lines)))


def _month(response: Any) -> str:
    """The month of an answer, as stated by the service."""
    created = response.get("created") if isinstance(response, dict) else None
    return f"{datetime.fromtimestamp(created, UTC):%Y-%m}" if isinstance(created, int) else ""


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return the number of each problem in a file, and its record.

    Raises:
        UsageError: if the file is damaged or of another form.
    """
    for record in _instances(path):
        try:
            yield int(record["instance_id"]), record
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{path}: a record has no numeric instance_id.") from None


def _instances(path: Path) -> list[dict[str, Any]]:
    data = _load(path)
    instances = data.get("instances") if isinstance(data, dict) else None
    if not isinstance(instances, list) or not all(isinstance(record, dict) for record in instances):
        raise UsageError(f"{path} is not a file of PlanBench's results: it has no list of instances.")
    return instances


def _load(path: Path) -> Any:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{path} is damaged: {error}.") from None


def recordings(folder: str | Path) -> list[Recording]:
    """Find the recorded plans of models, one recording per domain, model and prompt.

    Args:
        folder: The repository.

    Raises:
        UsageError: if the folder has none.
    """
    return _found(folder, lambda name: "plan_generation" in name and "backprompting" not in name)


def repaired(folder: str | Path) -> list[Recording]:
    """Find the recorded plans of models after a verifier's feedback.

    Args:
        folder: The repository.

    Raises:
        UsageError: if the folder has none.
    """
    return _found(folder, lambda name: "backprompting" in name)


def executions(folder: str | Path) -> list[Recording]:
    """Find the recorded predictions of states after some actions.

    Args:
        folder: The repository.

    Raises:
        UsageError: if the folder has none.
    """
    return _found(folder, lambda name: "plan_execution" in name, "task_7")


def _found(folder: str | Path, wanted: Callable[[str], bool], task: str = "task_1") -> list[Recording]:
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.")
    found: dict[tuple[str, str, str], Recording] = {}
    for path in sorted([*root.rglob(f"{task}_*.json"), *root.rglob(f"{task}_*.json.gz")]):
        if wanted(path.name):
            recording = _recording(path)
            found.setdefault(recording.key, recording)
    if not found:
        raise UsageError(
            f"{str(folder)!r} holds no such results of PlanBench: files {task}_*.json are looked for, in a "
            "clone of github.com/karthikv792/LLMs-Planning."
        )
    return list(found.values())


def _recording(path: Path) -> Recording:
    domain, model = path.parent.parent.name, path.parent.name
    if domain.startswith("results"):  # The file is not in a folder of its model, but names it.
        data = _load(path)
        domain, model = model, str(data.get("engine", "unknown")) if isinstance(data, dict) else "unknown"
    return Recording(path, domain, _SERVICE.sub("", model), _prompt(path.name.partition(".")[0]))


def _prompt(task: str) -> str:
    """The kind of prompt that a file states; for repairs, the kind of feedback."""
    if "backprompting" in task:
        return task.partition("backprompting")[2].strip("_").replace("_", " ") or "in words"
    shots = "zero-shot" if "zero_shot" in task else "one-shot"
    marks = {"pddl": "PDDL", "state_tracking": "state tracking"}
    run = re.findall(r"run_?\d+$", task)
    return " ".join([shots, *(words for mark, words in marks.items() if mark in task), *run])
