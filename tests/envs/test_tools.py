"""Tool calls as actions."""

from __future__ import annotations

import copy
import json
import re
import threading
from typing import Any, Literal

import pytest

import hunch
from hunch.core import State, UsageError
from hunch.envs import Tool, Tools, check
from hunch.lm.answers.calls import read_calls
from hunch.methods.prior.zero_shot import ZeroShot
from hunch.roles.prior.base import UniformPrior


def add(a: int, b: float = 2.0) -> float:
    """Add two numbers."""
    return a + b


def colour(name: Literal["red", "blue"], shades: list[int] | None = None) -> dict[str, Any]:
    """Describe a colour."""
    return {"name": name, "shades": shades}


def broken() -> None:
    """Fail."""
    raise ZeroDivisionError("of all things")


def join(*words: str) -> str:
    """Join words."""
    return " ".join(words)


def endless() -> None:
    """Never return."""
    threading.Event().wait()


def env(*tools: Any, **options: Any) -> Tools:
    made = Tools(tools or (add, colour, broken), task="What is 17 + 25?", **options)
    made.reset(seed=0)
    return made


def call(tool: str, /, **arguments: Any) -> str:
    return json.dumps({"name": tool, "arguments": arguments})


def test_functions_become_schemas() -> None:
    first, second, _ = env().schemas()
    assert first == {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "number"}},
                "required": ["a"],
            },
        },
    }
    shades = second["function"]["parameters"]["properties"]["shades"]
    assert second["function"]["parameters"]["properties"]["name"] == {"enum": ["red", "blue"]}
    assert shades == {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}


def test_a_call_returns_and_an_answer_ends() -> None:
    made = env(score=lambda answer, calls: float(len(calls) == 1 and "42" in answer))
    observation, reward, terminated, _, info = made.step(call("add", a=17, b=25))
    assert (observation, reward, terminated) == ("add returned: 42", 0.0, False)
    assert info["event"] == "called add"
    _, reward, terminated, _, info = made.step("The sum is 42.")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (call("sub", a=1), "there is no tool 'sub'; there are add, colour, broken"),
        (call("add"), "the argument a is missing"),
        (call("add", a=1, c=2), "there is no argument c"),
        (call("add", a="one"), "does not fit a"),
        (call("add", a=True), "does not fit a"),
        (call("add", a=1.5), "does not fit a"),
        (call("colour", name="green"), "does not fit name"),
        (call("colour", name="red", shades=3), "does not fit shades"),
        (call("broken"), "ZeroDivisionError: of all things"),
        ('{"name": "add", "arguments": "not json"}', "no object"),
        ('{"name": "add", "arguments": [1, 2]}', "no object"),
        (call("add", a=1, b="x" * 20_000), "more than 16,000 characters"),
    ],
)
def test_a_wrong_call_is_an_invalid_move_that_says_why(action: str, says: str) -> None:
    made = env()
    observation, reward, terminated, truncated, info = made.step(action)
    assert says in observation
    assert "Invalid move" in info["event"]
    assert (reward, terminated, truncated, made.score) == (0.0, False, False, None)


def test_a_whole_number_is_an_integer_and_true_is_no_number() -> None:
    def repeat(text: str, times: int | None, unit: Literal[1, 2] = 1) -> str:
        """Repeat a text."""
        return text * (times or 0)

    made = Tools([repeat], task="Repeat.")
    made.reset(seed=0)
    assert made.step(call("repeat", text="ab", times=2.0))[0] == "repeat returned: abab"
    assert made.calls[0].arguments == {"text": "ab", "times": 2}
    assert "does not fit" in made.step(call("repeat", text="ab", times=1.5))[0]
    assert "does not fit" in made.step(call("repeat", text="ab", times=1, unit=True))[0]


def test_a_tool_that_hangs_ends_the_call_and_not_the_run() -> None:
    made = env(endless, seconds=0.2)
    assert "no result within 0.2 seconds" in made.step(call("endless"))[0]
    assert not made.step(call("endless"))[2]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "add", "arguments": {"a": 1}}',
        '```json\n{"name": "add", "arguments": {"a": 1}}\n```',
        '```\n{"name": "add", "parameters": {"a": 1}}\n```',
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
        '{"type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 1}"}}',
        'I will add them.\n\n{"name": "add", "arguments": {"a": 1}}\n\nThis gives the sum.',
        'First:\n```json\n{\n  "name": "add",\n  "arguments": {"a": 1}\n}\n```\nThen I answer.',
        'I add them.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
    ],
)
def test_calls_as_models_write_them_are_read(text: str) -> None:
    assert read_calls(text) == [("add", {"a": 1})]


def test_several_calls_between_words_are_read_in_order() -> None:
    one, two = '{"name": "add", "arguments": {"a": 1}}', '{"name": "colour", "arguments": {"name": "red"}}'
    assert [name for name, _ in read_calls(f"First\n{one}\nand then\n  {two}\nDone.")] == ["add", "colour"]


OTHER = ["42", "", "[1, 2]", '{"answer": 42}', "{" * 50_000, "[\n" * 20_000, '{"name": 3}', "null"]
ANSWERS = [
    'The person is\n{"name": "Ada"}',
    'See {"name": "add", "arguments": {}} above.',
    "<tool_call>later",
]


@pytest.mark.parametrize("text", [*OTHER, *ANSWERS])
def test_other_texts_are_no_calls(text: str) -> None:
    assert read_calls(text) == []


def test_several_tasks_are_drawn_by_seed_and_scored_apart() -> None:
    tasks = ["Say one.", "Say two."]
    made = Tools([add], task=tasks, score=lambda task, answer, calls: float(answer in task))
    seen = {}
    for seed in range(12):
        made.reset(seed=seed)
        seen[made.asked] = made.step("one")[1]
    assert seen == {"Say one.": 1.0, "Say two.": 0.0}


def test_a_task_seed_fixes_the_task_over_episodes() -> None:
    made = Tools([add], task=[f"Say {n}." for n in range(10)])
    tasks = set()
    for seed in range(10):
        made.reset(seed=seed, options={"task_seed": 3})
        tasks.add(made.asked)
    assert len(tasks) == 1


def test_it_keeps_the_contract_and_copies_are_apart() -> None:
    made = env()
    check(made)
    made.reset(seed=0)
    other = copy.deepcopy(made)
    other.step(call("add", a=1))
    assert (len(made.calls), len(other.calls)) == (0, 1)


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one tool"):
        Tools([], task="Do it.")
    with pytest.raises(UsageError, match="at least one tool"):
        Tools([add], task="")
    with pytest.raises(UsageError, match="same name"):
        Tools([add, add], task="Do it.")
    with pytest.raises(UsageError, match="by name"):
        Tools([join], task="Do it.")
    with pytest.raises(UsageError, match="pass a Tool"):
        Tools([lambda: 0], task="Do it.")
    with pytest.raises(UsageError, match="later is async"):
        Tools([later], task="Do it.")
    with pytest.raises(UsageError, match="soon is async"):
        Tools([Tool("soon", "Later.", {}, later)], task="Do it.")


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), "1", [1.0]])
def test_a_score_is_a_finite_number(score: Any) -> None:
    made = Tools([add], task="Do it.", score=lambda answer, calls: score)
    made.reset(seed=0)
    with pytest.raises(UsageError, match=re.escape(f"a finite number, not {score!r}")):
        made.step("Done.")


async def later() -> int:
    """Return 1, later."""
    return 1


class Calls:
    """Calls a tool, and then answers with what it returned."""

    name, revision, evidence, verbs = "calls", "1", "L0", frozenset({"generate"})

    def generate(self, prompts: Any, k: int = 1, sampling: Any = None, first: int = 0) -> list[list[str]]:
        asked = [str(prompt) for prompt in prompts]
        return [["42" if "returned: 42" in text else call("add", a=17, b=25)] * k for text in asked]


def test_a_model_plays_it() -> None:
    made = Tools([add], task="What is 17 + 25?", score=lambda answer, calls: float("42" in answer))
    agent = ZeroShot(UniformPrior(), lm=Calls())
    result = hunch.train(agent, made, 4)
    assert result.success.value == 1.0


def test_the_state_holds_task_and_tools() -> None:
    made = env()
    state = State.read(*made.reset(seed=0))
    assert state.actions is None
    assert "What is 17 + 25?" in state.task
    assert '"name": "add"' in state.task


def test_a_tool_of_ones_own() -> None:
    schema = {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}, "required": []}
    made = env(Tool("twice", "Double.", schema, lambda x=1: None if x is None else 2 * x))
    assert made.step(call("twice", x=4))[0] == "twice returned: 8"
    assert made.step(call("twice", x=None))[0] == "twice returned: null"
    assert "does not fit" in made.step(call("twice", x="4"))[0]
