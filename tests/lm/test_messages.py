"""Prompts that are messages: through chat templates, to servers, as joined text, in cache and archive."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from server import Server

from hunch import lm
from hunch.core import HunchWarning, UsageError
from hunch.lm import Cached, Message, Sampling, Store
from hunch.lm.answers.archive import Archive
from hunch.lm.backends.chat import Template
from hunch.lm.backends.remote import CONTINUE
from hunch.lm.prompts import as_prompt
from hunch.lm.scoring.choose import extended
from hunch.lm.speech import text_of

ASK = (Message("system", "Be brief."), Message("user", "Where is the mug?"))
TALK = (*ASK, Message("assistant", "In the sink."), Message("user", "And the plate?"))
SHORT = Sampling(max_tokens=4)
CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.role }}] {{ m.content }} {% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
SILENT = "{% for m in messages if m.role != 'system' %}[{{ m.role }}] {{ m.content }} {% endfor %}[assistant]"


def chatty(folders: dict[str, Path], place: Path, template: str) -> Path:
    folder = Path(shutil.copytree(folders["gpt2"], place / "chatty"))
    (folder / "chat_template.jinja").write_text(template)
    return folder


def template(folder: Path, text: str) -> Template:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = text
    return Template(tokenizer)


def test_joined_text() -> None:
    assert text_of(ASK) == "Be brief.\n\nWhere is the mug?"
    assert text_of(TALK).splitlines()[2::2] == [
        "User: Where is the mug?", "Assistant: In the sink.", "User: And the plate?", "Assistant:",
    ]  # fmt: skip
    assert text_of((*TALK, Message("assistant", "On"))).endswith("\n\nAssistant: On")
    assert extended(ASK, "\n- a")[-1] == Message("user", "Where is the mug?\n- a")


@pytest.mark.parametrize(
    "wrong",
    [[], [Message("system", "a")], [("tool", "a")], ["a"], [("user", "a", "b")], [Message("user", 3)]],
)
def test_what_is_no_conversation(wrong: Any) -> None:
    with pytest.raises(UsageError):
        as_prompt(wrong)
    with pytest.raises(UsageError):
        lm.load("uniform").generate([wrong])


def test_models_without_conversations_get_the_joined_text() -> None:
    told = [
        Message("system", "Your task is to: open the fridge."),
        Message("user", "\n- open the fridge\n- look"),
    ]
    for spec in ("uniform", "scripted:overlap?error=0.3"):
        model = lm.load(spec)
        assert model.generate([told], 5) == model.generate([text_of(told)], 5)
        options = [["open the fridge", "look"]]
        assert model.score([told], options)[0].logprobs.tolist() == (
            model.score([text_of(told)], options)[0].logprobs.tolist()
        )
        assert lm.choose(model, [told], options, way="label")[0].probabilities.sum() == pytest.approx(1)


def test_a_template_makes_the_text(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = chatty(folders, tmp_path, CHATML)
    model, usual = (lm.load(f"hf:{place}", cache=None).model for place in (folder, folders["gpt2"]))
    text = "<|system|>\nBe brief.\n<|user|>\nWhere is the mug?\n<|assistant|>\n"
    assert model._tokens(ASK) == usual._tokens(text)
    np.testing.assert_allclose(
        model.score([ASK], [["go", "look"]])[0].logprobs, usual.score([text], [["go", "look"]])[0].logprobs
    )
    going_on = (*ASK, Message("assistant", "In the"))
    assert model._tokens(going_on) == usual._tokens(text + "In the")
    assert model._tokens("plain") == usual._tokens("plain")
    asked = lm.load(f"hf:{folder}?chat=true", cache=None)
    assert asked.model._tokens("plain") == usual._tokens("<|user|>\nplain\n<|assistant|>\n")
    assert "chat=True" in asked.name
    assert asked.context == usual.context - len(usual._tokens("<|user|>\n\n<|assistant|>\n"))
    full = "mug " * 2 * asked.context
    while asked.count_tokens(full) > asked.context - 3:
        full = full[4:]
    assert asked.generate([full], sampling=lm.Sampling(max_tokens=3))
    with pytest.warns(HunchWarning, match=f"reads at most {usual.context}"):
        asked.generate([full + "mug mug "], sampling=lm.Sampling(max_tokens=3))
    assert lm.describe(f"hf:{folder}").prompting.endswith("messages by its chat template")


@pytest.mark.parametrize("template", [NO_SYSTEM, SILENT])
def test_a_template_without_the_system_role(folders: dict[str, Path], tmp_path: Path, template: str) -> None:
    model = lm.load(f"hf:{chatty(folders, tmp_path, template)}", cache=None).model
    assert model.tokenizer.decode(model._tokens(ASK)) == "[user] Be brief.\n\nWhere is the mug? [assistant]"
    assert model._joint(ASK) == " "


def test_no_template(folders: dict[str, Path]) -> None:
    model = lm.load(f"hf:{folders['gpt2']}", cache=None).model
    assert model._tokens(TALK) == model._tokens(text_of(TALK))
    assert "no chat template" in model.prompting
    with pytest.raises(UsageError, match="has no chat template"):
        lm.load(f"hf:{folders['gpt2']}?chat=true")


def test_a_template_that_prints_the_date_is_the_same_tomorrow(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = chatty(folders, tmp_path, "{% set how = '%d %b %Y' %}{{ strftime_now(how) }} " + CHATML)
    model = lm.load(f"hf:{folder}", cache=None).model
    assert model.tokenizer.decode(model._tokens(ASK)).startswith("01 Jan 2025 <|system|>")


THINKING = CHATML.replace(
    "\n{{ m.content }}\n", "\n{% if m.role == 'assistant' %}<think></think>\n{% endif %}{{ m.content }}\n"
)
BEGUN = CHATML.replace("<|assistant|>\n{% endif %}", "<|assistant|>\n<think>\n{% endif %}")


@pytest.mark.parametrize(
    ("template", "written", "scored"),
    [(THINKING, "<|assistant|>\n", "<think></think>\n"), (BEGUN, "<|assistant|>\n<think>\n", "")],
)
def test_options_stand_where_replies_begin(
    folders: dict[str, Path], tmp_path: Path, template: str, written: str, scored: str
) -> None:
    """After the thought that the template leaves out, and before the one that it has the model begin."""
    model, usual = (
        lm.load(f"hf:{place}", cache=None).model
        for place in (chatty(folders, tmp_path, template), folders["gpt2"])
    )
    talk = "<|system|>\nBe brief.\n<|user|>\nWhere is the mug?\n"
    assert model._tokens(ASK) == usual._tokens(talk + written)
    theirs = usual.score([f"{talk}<|assistant|>\n{scored}"], [["go", "look"]])[0].logprobs
    np.testing.assert_allclose(model.score([ASK], [["go", "look"]])[0].logprobs, theirs, atol=1e-5)
    assert ":reply" in model.revision


def test_templates_of_parts_of_replies_refused_and_of_nothing(
    folders: dict[str, Path],
) -> None:
    each = "{% for c in m.content %}{{ c.text }}{% endfor %}{{ '' }}"  # a line break after a block is dropped
    parts = CHATML.replace("{{ m.content }}", each)
    usual = template(folders["gpt2"], CHATML)
    assert template(folders["gpt2"], parts)(TALK) == usual(TALK)
    polite = CHATML + "{% if messages[-1].role == 'assistant' %}{{ raise_exception('no') }}{% endif %}"
    assert template(folders["gpt2"], polite)(TALK) == usual(TALK)
    with pytest.raises(UsageError, match="leaves out the user's messages"):
        template(folders["gpt2"], "Hello.")


def test_servers_get_messages(server: Server) -> None:
    chat = lm.load("openai:gpt2", cache=None, base_url=server.url)
    chat.generate([TALK, "Go on"], sampling=SHORT)
    sent = [body["messages"] for _, path, body in server.seen[-2:] if "chat" in path]
    assert [{"role": role, "content": text} for role, text, _ in TALK] in sent
    assert [{"role": "system", "content": CONTINUE}, {"role": "user", "content": "Go on"}] in sent
    plain = lm.load("openai:gpt2", cache=None, base_url=server.url, chat=False)
    assert plain.generate([TALK], sampling=SHORT)
    assert server.seen[-1][2]["prompt"] == text_of(TALK)
    claude = lm.load("anthropic:gpt2", cache=None, base_url=server.url.removesuffix("/v1"))
    claude.generate([TALK], sampling=SHORT)
    body = server.seen[-1][2]
    assert body["system"] == "Be brief."
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


def test_messages_are_part_of_the_key_and_of_what_is_recorded(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    model = Cached(lm.load(f"hf:{folders['gpt2']}", cache=None).model, Store(tmp_path / "a.sqlite"))
    texts = model.generate([TALK, ASK], 2, SHORT)
    scores = model.score([TALK], [["go", "look"]])[0].logprobs
    assert model.generate([list(TALK)], 2, SHORT) == texts[:1]
    assert (model.usage.calls, model.usage.cache_hits) == (5, 2)
    model.generate([text_of(TALK)], 2, SHORT)
    assert model.usage.calls == 7
    assert Archive(tmp_path / "a.sqlite").export(tmp_path / "a.jsonl").written == 7
    again = lm.load(f"replay:{tmp_path / 'a.jsonl'}")
    assert again.generate([TALK, ASK], 2, SHORT) == texts
    assert again.score([TALK], [["go", "look"]])[0].logprobs.tobytes() == scores.tobytes()


ALTERNATE = (
    "{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system') }}{% endif %}"
    "{% if m.role != 'system' and (m.role == 'user') != ((loop.index0 - offset) % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "[{{ m.role }}] {{ m.content }} {% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
WITH_SYSTEM = "{% set offset = 1 if messages[0].role == 'system' else 0 %}" + ALTERNATE
NEITHER = "{% set offset = 0 %}" + ALTERNATE.replace(" and not loop.first", "")


@pytest.mark.parametrize(
    ("talk", "system", "neither"),
    [
        ("su", "[system] 0 [user] 1", "[user] 0\n\n1"),
        ("suu", "[system] 0 [user] 1\n\n2", "[user] 0\n\n1\n\n2"),
        ("ssua", "[system] 0\n\n1 [user] 2 [assistant] 3", "[user] 0\n\n1\n\n2 [assistant] 3"),
        ("uuau", "[user] 0\n\n1 [assistant] 2 [user] 3", "[user] 0\n\n1 [assistant] 2 [user] 3"),
        ("usu", "[user] 0\n\n1\n\n2", "[user] 0\n\n1\n\n2"),
        ("sau", "[system] 0 [user] Begin. [assistant] 1 [user] 2", "[user] 0 [assistant] 1 [user] 2"),
        ("au", "[user] Begin. [assistant] 0 [user] 1", "[user] Begin. [assistant] 0 [user] 1"),
        ("uaas", "[user] 0 [assistant] 1\n\n2 [user] 3", "[user] 0 [assistant] 1\n\n2 [user] 3"),
    ],
)
def test_a_template_gets_the_roles_that_it_demands(
    folders: dict[str, Path], talk: str, system: str, neither: str
) -> None:
    """Nothing is lost, the order stays, and a template that takes the messages as they are gets them so."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    messages = [Message(roles[letter], str(place)) for place, letter in enumerate(talk)]
    for text, wanted in ((WITH_SYSTEM, system), (NEITHER, neither)):
        said = template(folders["gpt2"], text)(messages)
        assert said.removesuffix("[assistant]").strip() == wanted
    as_it_is = template(folders["gpt2"], CHATML)(messages)
    assert as_it_is.count("<|user|>") == talk.count("u")
    assert as_it_is.count("<|system|>") == talk.count("s")
