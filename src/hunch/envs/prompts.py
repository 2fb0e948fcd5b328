"""The user's prompts as an environment of one step: a model writes after each, and gets a reward.

The prompts are lines of JSON in the columns of the library TRL: ``prompt`` is a text, or a list of messages
with ``role`` and ``content``. A line may have an ``answer``; a text that equals it, apart from outer
spaces, is then a success with reward 1. With ``options`` in each line, the answer is chosen among these
texts. A ``completion`` is a demonstration (``examples``). Other columns are for a reward source, which gets
the line in ``next_state.raw``; no policy sees them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any

from hunch.core import HunchWarning, PlainPrompt, State, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.offers import Offer
from hunch.numbers import number as as_number
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch.text_files import read_lines


class Prompts(TextEnv):
    """Write a text after each prompt of the user, or choose one of its options.

    Args:
        file: The prompts, as lines of JSON. Default: eight sums, as an example.
        first: Number of lines to skip at the beginning, such as those for training.
        count: Number of lines to use. Default: all.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if a line cannot be read (the message names it), only some lines have options, or there
            are no lines.
    """

    offers: Sequence[Offer] = ("free_text", "raw")  # type: ignore[misc]

    def __init__(
        self,
        *,
        file: str = "",
        first: NonNegativeInt = 0,
        count: PositiveInt | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(1, render_mode)
        sums: list[dict[str, Any]] = [{"prompt": f"{n} + 2 =", "answer": n + 2} for n in range(8)]
        rows = list(read(file, "prompt")) if file else sums
        self.rows = rows[first : None if count is None else first + count]
        if not self.rows:
            place = f"in {file}" if file else "of the example"
            raise UsageError(f"first and count leave none of the {len(rows)} prompts {place}.")
        with_options = sum("options" in row for row in rows)
        if with_options not in (0, len(rows)):
            raise UsageError(
                f"{with_options} of the {len(rows)} prompts in {file} have options: all or none."
            )
        if with_options:
            self.offers = ("raw",)  # actions are listed
        if nested := [row for row in self.rows if isinstance(row.get("answer"), (list, dict))]:
            warnings.warn(
                f"{len(nested)} prompts in {file} have an answer that is no text or number, such as "
                f"{shorten(str(nested[0]['answer']), 60)}: no text of a model equals it, so only a reward "
                "source can pay for them.",
                HunchWarning,
                stacklevel=2,
            )
        self.row, self.over = self.rows[0], False
        # Of these lines only: the others may be held out from training.
        self.examples = tuple(
            (_hashable(row["prompt"]), (row["completion"],)) for row in self.rows if "completion" in row
        )

    @property
    def prompts(self) -> list[State]:
        """The first states of all episodes."""
        return [State(shown(row["prompt"]), actions=options_of(row), raw=before(row)) for row in self.rows]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Prompts has no reset option {next(iter(options))!r}.")
        self.row, self.over = self.rows[int(self.task_random.integers(len(self.rows)))], False
        return Outcome(shown(self.row["prompt"]), options_of(self.row))

    def _move(self, action: str) -> Outcome:
        self.over = True
        answer = self.row.get("answer")  # null is none, as tables that are written as JSON have it
        right = answer is not None and action.strip() == str(answer).strip()
        return Outcome("", options_of(self.row), float(right), terminated=True, success=right)

    def _raw(self) -> Any:
        return self.row if self.over else before(self.row)


def options_of(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the answers among which is chosen after a line's prompt; None if any text is an answer."""
    return tuple(row["options"]) if "options" in row else None


def before(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the information of a line that a state shows besides its text: the messages, if any."""
    return {} if isinstance(row["prompt"], str) else {"messages": row["prompt"]}


def shown(prompt: PlainPrompt) -> str:
    """Return a prompt as one text; each message begins with its speaker."""
    return prompt if isinstance(prompt, str) else "\n".join(f"{who}: {said}" for who, said in prompt)


def state_of(prompt: PlainPrompt, task: str = "") -> State:
    """Return the state with a prompt; its messages stand in ``raw``, as in the environment."""
    raw = None if isinstance(prompt, str) else {"messages": list(prompt)}
    return State(shown(prompt), task, raw=raw)


def _hashable(prompt: PlainPrompt) -> PlainPrompt:
    return prompt if isinstance(prompt, str) else tuple(prompt)


def read(file: str, *columns: str) -> Iterator[dict[str, Any]]:
    """Read JSON lines as :func:`numbered` does, without their numbers."""
    return (row for _, row in numbered(file, *columns))


def numbered(file: str, *columns: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read JSON lines that have one of these columns, and also a prompt unless the column is ``text``.

    Each comes with its number in the file, in which empty lines count. Messages become pairs of speaker and
    content.

    Raises:
        UsageError: if a line lacks them; the message has its number.
    """
    try:
        lines = read_lines(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: name a file with lines of JSON.") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _row(line, f"Line {number} of {file}", columns)


def _row(line: str, where: str, columns: tuple[str, ...]) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        raise UsageError(f"{where} is not JSON.") from None
    except RecursionError:
        raise UsageError(f"{where} is nested too deep.") from None
    if isinstance(row, dict):
        # Beside prompts alone, answers to compare are other columns, which may have any form.
        compared = "chosen" in columns or "prompt" not in row
        if compared or isinstance(row.get("completion"), list):
            _split_conversations(row, where)
    if not isinstance(row, dict) or not set(columns) & row.keys():
        raise UsageError(f"{where} has no {' or '.join(columns)}.")
    if "text" not in row and not _is_prompt(row.get("prompt")):
        raise UsageError(f"{where} needs a prompt: a text, or a list of messages with role and content.")
    if any(not isinstance(row.get(name, ""), str) for name in ("text", "completion")):
        raise UsageError(f"{where} has a text or completion that is not a string.")
    if "options" in row:
        _check_options(row, where)
    if isinstance(said := row.get("prompt"), list):
        row["prompt"] = [(m["role"], m["content"]) for m in said]
    return row


def _split_conversations(row: dict[str, Any], where: str) -> None:
    """Turn conversations into texts and what they answer, in place, as TRL reads them.

    The last message of ``completion``, ``chosen`` or ``rejected`` becomes the text, and those before it
    continue the prompt, unless they repeat it. ``messages`` are a completion whose prompt is a part of it.

    Raises:
        UsageError: if the last message is not the assistant's, two answers are to different messages, or a
            prompt is a text that is none of the messages.
    """
    whole = "messages" in row and not {"completion", "chosen"} & row.keys()
    names = ("messages",) if whole else ("completion", "chosen", "rejected")
    conversations = {name: row[name] for name in names if isinstance(row.get(name), list)}
    for name, said in conversations.items():
        if not (said and _are_messages(said) and said[-1]["role"] == "assistant"):
            raise UsageError(
                f"{where} needs messages with role and content in {name}, the last one of the assistant."
            )
    earlier = [said[:-1] for said in conversations.values()]
    if any(messages != earlier[0] for messages in earlier):
        raise UsageError(f"{where} needs chosen and rejected that answer the same messages.")
    for name, said in conversations.items():
        row["completion" if whole else name] = said[-1]["content"]
    if earlier and earlier[0]:
        row["prompt"] = _joined(row.get("prompt"), earlier[0], where)


def _joined(prompt: Any, messages: list[dict[str, str]], where: str) -> list[dict[str, str]]:
    """Return a prompt with the messages after it, without what both have."""
    if not isinstance(prompt, list):
        if prompt is not None and prompt not in [message["content"] for message in messages]:
            raise UsageError(f"{where} has a prompt that is none of the messages before its answer.")
        return messages
    if messages[: len(prompt)] == prompt:
        return messages
    if prompt[-len(messages) :] == messages:
        return prompt
    return [*prompt, *messages]


def _check_options(row: Mapping[str, Any], where: str) -> None:
    """Refuse options among which nobody could choose, or that lack the answer.

    Raises:
        UsageError: if they are not at least two different texts, or the answer is none of them.
    """
    options = row["options"]
    are_texts = isinstance(options, list) and all(isinstance(option, str) and option for option in options)
    if not are_texts or len(options) < 2 or len(set(options)) < len(options):
        raise UsageError(f"{where} has options that are not at least two different texts.")
    if row.get("answer") is not None and str(row["answer"]) not in options:
        raise UsageError(f"{where} has an answer that is not among its options: {row['answer']!r}.")


def _is_prompt(prompt: Any) -> bool:
    if not isinstance(prompt, list):
        return isinstance(prompt, str) and bool(prompt)
    return _are_messages(prompt) and {"user"} <= {m.get("role") for m in prompt} <= {
        "system",
        "user",
        "assistant",
    }


def _are_messages(said: list[Any]) -> bool:
    return all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str)
        for m in said
    )


def results(rows: Iterable[tuple[int, Mapping[str, Any]]], file: str) -> dict[str, dict[str, float]]:
    """Return recorded results of prompts by question and prompt; repeated results are averaged.

    Args:
        rows: The lines of a file with their numbers.
        file: Its name, for messages.

    Raises:
        UsageError: if questions are missing, a result is no number, there is one prompt only, or all results
            are equal.
    """
    by_question: dict[str, dict[str, list[float]]] = {}
    prompts: set[str] = set()
    different: set[float] = set()  # results
    for number, row in rows:
        if not str(row.get("question", "")).strip():
            raise UsageError(
                f"Line {number} of {file} has no question, without which prompts cannot be chosen."
            )
        result = as_number(row.get("right"))
        if result is None:
            raise UsageError(f"Line {number} of {file} needs a number as right, such as 1 or 0.")
        question, prompt = str(row["question"]), shown(row["prompt"])
        by_question.setdefault(question, {}).setdefault(prompt, []).append(result)
        prompts.add(prompt)
        different.add(result)
    if len(prompts) < 2:
        raise UsageError(f"{file} holds results of one prompt only, so there is nothing to choose.")
    if len(different) < 2:
        raise UsageError(f"All results in {file} are equal, so nothing can be learned from them.")
    means: dict[str, dict[str, float]] = {}
    for question, by_prompt in by_question.items():
        means[question] = {prompt: sum(rs) / len(rs) for prompt, rs in by_prompt.items()}
    return means
