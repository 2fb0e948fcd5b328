"""A chat model calls tools by its server's own calls, or writes them as text where the server has none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.lm.talker import Talker, chat
from tests.started import answering

import hunch
from hunch import lm
from hunch.core import UsageError
from hunch.envs import Tools
from hunch.lm.answers.calls import ToolCall, calls_of, read_calls, text_of_calls
from hunch.lm.backends.openai import with_calls
from hunch.methods.prior.zero_shot import ZeroShot

Reply = dict[str, Any]
Script = Callable[[list[dict[str, Any]]], Reply]
QUESTION = "What is 17 + 25?"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def broken() -> None:
    """Fail."""
    raise ZeroDivisionError("of all things")


def env(**options: Any) -> Tools:
    options = {"score": lambda answer, calls: float("42" in answer), "max_steps": 6} | options
    return Tools([add, broken], task=QUESTION, **options)


def message(*calls: tuple[str, Any], content: str | None = None, **more: Any) -> Reply:
    """A message of a server that calls tools."""
    entries = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": content, "tool_calls": entries} | more


@pytest.fixture
def talker() -> Iterator[Talker]:
    with answering(Talker()) as server:
        yield server


def served(talker: Talker, script: Script | None, refuses: bool = False) -> Any:
    """A model whose server plays a script in the environment, given the conversation."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/models"):
            return 200, {"data": [{"id": "m"}]}
        if "chat" not in path:
            return 404, {"error": {"message": "no such route"}}
        if refuses and "tools" in body:
            said = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            return 400, {"object": "error", "message": said, "type": "BadRequestError", "code": 400}
        plays = any(QUESTION in str(said["content"]) for said in body["messages"])
        if not plays or script is None:
            return chat("blue")
        read = len(json.dumps(body)) // 4
        return chat("", read, message=script(body["messages"]), finish_reason="tool_calls")

    talker.answer = answer
    return lm.load(f"openai:m?base_url={talker.url}", cache=None)


def played(model: Any, **options: Any) -> tuple[hunch.Result, list[Any]]:
    """Play six steps, which are one episode if no answer is given; the result, and its calls."""
    game = env(max_steps=7)
    result = hunch.train("zero-shot", game, lm=model, steps=6, **options)
    return result, game.calls


def bodies(talker: Talker) -> list[dict[str, Any]]:
    """The requests of the episodes."""
    return [body for path, body in talker.asked if QUESTION in json.dumps(body)]


def test_calls_have_the_form_of_the_server(talker: Talker) -> None:
    def script(messages: list[dict[str, Any]]) -> Reply:
        if messages[-1]["role"] == "tool":
            return {"role": "assistant", "content": f"The sum is {messages[-1]['content'].split()[-1]}."}
        return message(("add", '{"a": 17, "b": 25}'), content="I will add them.")

    model = served(talker, script)
    assert "tools" in model.takes
    result, _ = played(model)
    assert result.success.value == 1.0
    first, second = bodies(talker)[:2]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["add", "broken"]
    called, returned = second["messages"][-2:]
    (entry,) = called["tool_calls"]
    assert entry["function"] == {"name": "add", "arguments": '{"a": 17, "b": 25}'}
    assert (returned["role"], returned["tool_call_id"]) == ("tool", entry["id"])
    assert returned["content"] == "add returned: 42"
    assert result.episodes[0].actions == (
        '{"name": "add", "arguments": {"a": 17, "b": 25}}',
        "The sum is 42.",
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (("add", "a=17, b=25"), "arguments are no object"),
        (("add", "[17, 25]"), "arguments are no object"),
        (("add", ""), "the argument a is missing"),
        (("add", None), "the argument a is missing"),
        (("sum", '{"a": 17}'), "there is no tool 'sum'"),
        (("broken", "{}"), "ZeroDivisionError: of all things"),
    ],
)
def test_wrong_calls_are_told_and_counted(talker: Talker, call: tuple[str, Any], says: str, tmp_path) -> None:
    model = served(talker, lambda messages: message(call))
    result, _ = played(model, out=tmp_path / "run")
    assert len(result.episodes) == 0, "no wrong call ends an episode"
    heard = [said["content"] for said in bodies(talker)[-1]["messages"] if said["role"] in ("tool", "user")]
    assert any(says in content for content in heard)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["invalid_rate"] == 1.0


def test_arguments_may_be_an_object_already(talker: Talker) -> None:
    """As Ollama's own route writes them."""
    model = served(talker, lambda messages: message(("add", {"a": 17, "b": 25})))
    assert played(model)[1][0].result == "42"


def test_several_calls_are_made_in_their_order(talker: Talker) -> None:
    model = served(talker, lambda messages: message(("add", '{"a": 1, "b": 1}'), ("add", '{"a": 2, "b": 2}')))
    _, calls = played(model)
    assert [call.result for call in calls[:2]] == ["2", "4"]
    *_, called, first, second = bodies(talker)[1]["messages"]
    assert [entry["id"] for entry in called["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
    assert first["content"] == "add returned: 2\nadd returned: 4"


def test_too_many_calls_are_refused(talker: Talker) -> None:
    model = served(talker, lambda messages: message(*[("add", '{"a": 1, "b": 1}')] * 17))
    assert played(model)[1] == []
    assert "there are more than 16" in json.dumps(bodies(talker)[-1])


def test_no_call_is_an_answer(talker: Talker) -> None:
    model = served(talker, lambda messages: {"role": "assistant", "content": "It is 42.", "tool_calls": []})
    result, _ = played(model)
    assert result.success.value == 1.0
    assert all(episode.length == 1 for episode in result.episodes)


def test_a_call_without_a_name_is_asked_again(talker: Talker) -> None:
    replies = iter([message((None, "{}")), message(("", "{}"))])
    model = served(talker, lambda messages: next(replies, message(("add", '{"a": 17, "b": 25}'))))
    assert played(model)[1][0].result == "42"
    assert model.usage.retries == 2


def test_a_server_without_tools_gets_them_as_text(talker: Talker) -> None:
    def script(messages: list[dict[str, Any]]) -> Reply:
        assert all(said["role"] != "tool" for said in messages)
        if "returned" in messages[-1]["content"]:
            return {"role": "assistant", "content": "42"}
        return {
            "role": "assistant",
            "content": '```json\n{"name": "add", "arguments": {"a": 17, "b": 25}}\n```',
        }

    model = served(talker, script, refuses=True)
    assert "tools" not in model.takes
    assert "tools" not in model.revision, "the answers to other requests are those of before"
    assert played(model)[0].success.value == 1.0
    assert all("tools" not in body for body in bodies(talker))
    with pytest.raises(UsageError, match="has no calls of tools"):
        played(model, calls="native")


def test_calls_are_written_as_text_where_that_is_set(talker: Talker) -> None:
    model = served(talker, lambda messages: {"role": "assistant", "content": "42"})
    played(model, calls="text")
    assert all("tools" not in body for body in bodies(talker))


def test_native_calls_need_tools(talker: Talker) -> None:
    agent = ZeroShot.build(ZeroShot.config_class(calls="native"), {"lm": served(talker, None)})
    with pytest.raises(UsageError, match="the actions of this environment are no calls of tools"):
        hunch.train(agent, hunch.make("hunch/Prompts-v0"), steps=2)


def test_an_evaluation_calls_in_the_same_way(talker: Talker) -> None:
    model = served(talker, lambda messages: message(("add", '{"a": 17, "b": 25}')))
    agent = ZeroShot.build(ZeroShot.config_class(), {"lm": model})
    game = env()
    hunch.train(agent, game, steps=2)
    state = hunch.core.State.read(*game.reset(seed=0))
    agent.player(1).act([state])
    assert "tools" in talker.asked[-1][1]


def test_names_that_servers_refuse_are_written_as_text() -> None:
    odd = hunch.envs.Tool("files/read it", "", {"type": "object", "properties": {}}, add)
    assert Tools([odd, add], task="x").tool_schemas == ()


def test_texts_and_messages_hold_the_same_calls() -> None:
    calls = [ToolCall("add", {"a": 1, "b": "é"}), ToolCall("add", [1]), ToolCall("x", {})]
    assert read_calls(text_of_calls(calls)) == calls
    assert read_calls(text_of_calls(calls[:1])) == calls[:1]
    assert calls_of(message(("add", '{"a": 1, "b": "é"}'), ("add", "[1]"), ("x", ""))) == calls
    assert calls_of({"function_call": {"name": "x", "arguments": "{}"}}) == calls[2:]
    assert calls_of({"content": "no call"}) == []
    one = f"<tool_call>\n{text_of_calls(calls[:1])}\n</tool_call>"
    both = f'{one}\n<tool_call>{{"name": "x"}}</tool_call>'
    assert read_calls(both) == [calls[0], calls[2]]


def test_only_calls_become_calls_in_a_conversation() -> None:
    said = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": '{"name": "add", "arguments": "no json"}'},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "text"},
        {"role": "user", "content": "c"},
    ]
    assert with_calls(said) == said
