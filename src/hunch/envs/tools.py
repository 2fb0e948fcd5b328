"""Tool calls as actions: functions, or the tools of an MCP server, as a text environment.

An action is a call in JSON, as chat models with tools write it::

    {"name": "add", "arguments": {"a": 1, "b": 2}}

A list of such objects is several calls, which are made one after the other in one step. Any other text is the
final answer, which ends the episode and is scored. A chat model behind a server that has calls of tools makes
them in the server's own form (:attr:`Tools.tool_schemas`), others write them as text.
"""

from __future__ import annotations

import inspect
import json
import re
import threading
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Union, get_args, get_origin

from hunch.core import HunchError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.invalid import INVALID
from hunch.lm.answers.calls import read_calls
from hunch.numbers import number
from hunch.printable import printable
from hunch.ranges import PositiveFloat, PositiveInt

LONGEST_RESULT: Final = 4_000
"""Characters of a tool's result that an observation shows."""
LONGEST_CALL: Final = 16_000
"""Characters of the longest action with calls."""
MOST_CALLS: Final = 16
"""Largest number of calls in one action."""
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names of tools that servers accept."""
_JSON_TYPES: Final[Mapping[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    tuple: "array",
    dict: "object",
}
_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True)
class Tool:
    """A tool that an agent may call.

    Attributes:
        name: Name of the tool.
        description: What it does, in words.
        parameters: JSON schema of its arguments: an object with ``properties`` and ``required``.
        call: Called with the arguments by name; returns the result, which is shown as text.

    Raises:
        UsageError: if ``call`` is ``async``.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[..., Any] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a function that would never run: its result would be a coroutine."""
        if inspect.iscoroutinefunction(self.call):
            said = f"The tool {self.name} is async: pass a function that calls it by asyncio.run."
            raise UsageError(said)

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Tool:
        """Make a tool of a function: its name, docstring and annotations.

        Raises:
            UsageError: if it has no name, or takes arguments that cannot be given by name.
        """
        name = getattr(function, "__name__", "")
        if not name.isidentifier():
            raise UsageError(f"A tool needs a name, and {function!r} has none: pass a Tool.")
        properties: dict[str, Any] = {}
        required = []
        hints = typing.get_type_hints(function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise UsageError(f"The tool {name} takes {parameter}, which a call cannot give by name.")
            properties[parameter.name] = _schema(hints.get(parameter.name, Any))
            if parameter.default is parameter.empty:
                required.append(parameter.name)
        schema = {"type": "object", "properties": properties, "required": required}
        return cls(name, inspect.getdoc(function) or "", schema, function)

    def schema(self) -> dict[str, Any]:
        """Return the tool in the form of OpenAI's chat API."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    def wrong(self, arguments: Any) -> str:
        """Return what is wrong with the arguments of a call, in a sentence; empty if nothing is found.

        Names and types of arguments are checked; what is inside lists and objects is the tool's own matter.
        """
        if not isinstance(arguments, dict):
            return "its arguments are no object"
        properties = self.parameters.get("properties", {})
        # A schema that names no properties admits any, and so does one that says so.
        open_ended = self.parameters.get("additionalProperties", "properties" not in self.parameters)
        for name in self.parameters.get("required", ()):
            if name not in arguments:
                return f"the argument {name} is missing"
        for name, value in arguments.items():
            if name not in properties:
                if open_ended is not False:
                    continue
                known = ", ".join(properties) or "none"
                return f"there is no argument {name}; its arguments are {known}"
            if not _fits(value, properties[name]):
                return f"{json.dumps(value)[:60]} does not fit {name}: {json.dumps(properties[name])[:200]}"
        return ""

    def taken(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as the tool takes them: a whole number as an integer where it asks for one.

        JSON knows one kind of number, and 3.0 is no size of a list in Python.
        """
        properties = self.parameters.get("properties", {})
        return {name: _whole(value, properties.get(name)) for name, value in arguments.items()}


@dataclass(frozen=True)
class Call:
    """A call that was made.

    Attributes:
        tool: Name of the tool.
        arguments: Its arguments.
        result: The result as text; empty if it failed.
        error: Why it failed; empty if it did not.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: str
    error: str = ""


class ToolsGoneError(HunchError):
    """No tool of this environment can be called any more, so the run cannot go on."""


Score = Callable[[str, Sequence[Call]], float]
"""Returns the reward of a final answer, given the calls that came before it; above 0 counts as a success."""


class Tools(TextEnv):
    """A text environment whose actions are tool calls, and whose last action is an answer.

        def add(a: int, b: int) -> int:
            "Add two numbers."
            return a + b

        env = Tools([add], task="What is 17 + 25?", score=lambda answer, calls: float("42" in answer))

    A call with an unknown tool or wrong arguments, or one whose tool raises an error or takes too long, is an
    invalid move: the observation says what was wrong, and the event counts it. Functions run in this process
    with its rights: offer only what a model may do. Episodes can be repeated if the tools can.

    Args:
        tools: Functions, or objects of :class:`Tool`.
        task: The task in words; or several, of which an episode draws one; ``task_seed`` fixes it.
        score: The reward of a final answer, a finite number. With several tasks: called with the task first.
        max_steps: Step limit of an episode.
        seconds: Time limit of a call. A function that goes on after it is left alone.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no tool or no task, or two tools have one name.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 8}  # type: ignore[misc]
    offers = ("free_text", "events")

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        *,
        task: str | Sequence[str],
        score: Callable[..., float] | None = None,
        max_steps: PositiveInt = 16,
        seconds: PositiveFloat = 30.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        made = [tool if isinstance(tool, Tool) else Tool.of(tool) for tool in tools]
        self.tools = {tool.name: tool for tool in made}
        self.tasks = (task,) if isinstance(task, str) else tuple(task)
        if not made or not all(self.tasks) or not self.tasks:
            raise UsageError("Tools needs at least one tool, and a task in words.")
        if len(self.tools) < len(made):
            raise UsageError("Two tools have the same name.")
        self.score = score
        self.several = not isinstance(task, str)
        self.seconds = seconds
        self.calls: list[Call] = []
        self.asked = self.tasks[0]
        self.task = self.asked

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools in the form of OpenAI's chat API."""
        return [tool.schema() for tool in self.tools.values()]

    @property
    def tool_schemas(self) -> tuple[str, ...]:
        """The same as JSON, for agents (:class:`hunch.core.World`); none if servers refuse a name."""
        if not all(NAME.fullmatch(name) for name in self.tools):
            return ()
        return tuple(json.dumps(schema) for schema in self.schemas())

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Tools has no reset option {next(iter(options))!r}.")
        self.calls = []
        self.asked = self.tasks[int(self.task_random.integers(len(self.tasks)))]
        listed = "\n".join(json.dumps(tool.schema()["function"]) for tool in self.tools.values())
        self.task = (
            f"{self.asked}\n\nYou can call tools. A call is one JSON object and nothing else, such as "
            '{"name": "<tool>", "arguments": {...}}. When you are done, write the answer as plain text.\n'
            f"Tools:\n{listed}"
        )
        return Outcome("No tool has been called yet.", None)

    def _move(self, action: str) -> Outcome:
        calls = read_calls(action)
        if not calls:
            return self._answered(action)
        if len(calls) > MOST_CALLS:
            return self._refused(f"The calls are refused: there are more than {MOST_CALLS}.")
        outcomes = [self._call(call.name, call.arguments, action) for call in calls]
        if len(outcomes) == 1:
            return outcomes[0]
        texts = "\n".join(outcome.observation for outcome in outcomes)
        return Outcome(texts, None, event="\n".join(outcome.event for outcome in outcomes))

    def _call(self, name: str, arguments: Any, action: str) -> Outcome:
        """Make one call of an action."""
        problem = self._wrong(name, arguments, action)
        if problem:
            return self._refused(f"The call is refused: {problem}.")
        arguments = self.tools[name].taken(arguments)
        result, error = self._called(self.tools[name], arguments)
        self.calls.append(Call(name, arguments, result, error))
        if error:
            return self._refused(f"{name} failed: {error}.")
        return Outcome(f"{name} returned: {result}", None, event=f"called {name}")

    def _wrong(self, name: str, arguments: Any, action: str) -> str:
        """Return what is wrong with a call; empty if nothing is found."""
        if len(action) > LONGEST_CALL:
            return f"it has more than {LONGEST_CALL:,} characters"
        if name not in self.tools:
            return f"there is no tool {name[:60]!r}; there are {', '.join(self.tools)}"
        wrong = self.tools[name].wrong(arguments)
        return f"{name}: {wrong}" if wrong else ""

    def _refused(self, why: str) -> Outcome:
        reason = printable(why)[:LONGEST_RESULT]
        return Outcome(reason, None, event=f"{INVALID}: {reason}")

    def _answered(self, answer: str) -> Outcome:
        """End the episode with a final answer."""
        reward = self._scored(answer)
        return Outcome("The answer was given.", None, reward, True, reward > 0, event="answered")

    def _scored(self, answer: str) -> float:
        """Return the score of a final answer.

        Raises:
            UsageError: if it is no finite number.
        """
        if self.score is None:
            return 0.0
        score = self.score(*((self.asked, answer, self.calls) if self.several else (answer, self.calls)))
        reward = number(score)
        if reward is None:
            raise UsageError(f"score must return a finite number, not {score!r}.")
        return reward

    def _called(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """Call a tool; return its result as text, and why it failed."""
        results: list[Any] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                results.append(tool.call(**arguments))
            except BaseException as error:  # a tool may raise anything, and its failure ends no episode
                raised.append(error)

        # A thread of its own, because a call that hangs cannot be ended in this one.
        thread = threading.Thread(target=run, daemon=True, name=f"tool {tool.name}")
        thread.start()
        thread.join(self.seconds)
        if thread.is_alive():
            return "", f"no result within {self.seconds:g} seconds"
        if raised and isinstance(raised[0], ToolsGoneError):
            raise raised[0]
        if raised:
            said = str(raised[0])
            return "", said if isinstance(raised[0], HunchError) else f"{type(raised[0]).__name__}: {said}"
        return _as_text(results[0]), ""


def _as_text(value: Any) -> str:
    """Return a result as text of limited length."""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            value = str(value)
    text = printable(value)
    return text if len(text) <= LONGEST_RESULT else f"{text[:LONGEST_RESULT]} … ({len(text):,} characters)"


def _schema(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of an annotation; an empty one, which everything fits, if it is not known."""
    origin = get_origin(hint)
    if origin is Literal:
        return {"enum": list(get_args(hint))}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in get_args(hint)]}
    if hint is type(None):
        return {"type": "null"}
    kind = _JSON_TYPES.get(origin or hint)
    if kind is None:
        return {}
    if kind == "array" and (parts := get_args(hint)):
        return {"type": kind, "items": _schema(parts[0])}
    return {"type": kind}


def _fits(value: Any, schema: Any) -> bool:
    """Return whether a value has the type that a schema names."""
    if not isinstance(schema, Mapping):
        return True
    if "enum" in schema:  # True equals 1 in Python, and is no number in JSON
        return any(
            value == one and isinstance(value, bool) == isinstance(one, bool) for one in schema["enum"]
        )
    if "anyOf" in schema:
        return any(_fits(value, part) for part in schema["anyOf"])
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if not kinds:
        return True
    if isinstance(value, bool) and "boolean" not in kinds:
        return False
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return True  # as JSON schema has it, which knows one kind of number
    return any(isinstance(value, _PYTHON_TYPES.get(kind, (object,))) for kind in kinds)


def _whole(value: Any, schema: Any) -> Any:
    """Return a float without decimals as an integer, if its schema names integers and no other numbers."""
    if not isinstance(value, float) or not value.is_integer():
        return value
    kinds = _kinds(schema)
    return int(value) if "integer" in kinds and "number" not in kinds else value


def _kinds(schema: Any) -> set[str]:
    """Return the types that a schema names, in each of its alternatives."""
    if not isinstance(schema, Mapping):
        return set()
    kinds = schema.get("type", ())
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    return kinds.union(*map(_kinds, schema.get("anyOf", ())))
