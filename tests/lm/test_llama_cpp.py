"""A real model in a real llama.cpp, started once for all tests of this file."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchError
from hunch.lm import Message, Sampling, shelf
from hunch.lm.backends import llama_server
from hunch.lm.backends.llama_cpp import grammar
from hunch.lm.registry import build

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore:.*cut an answer")]

ROOM = "You are in a kitchen. You see a fridge and a mug. Your task is to take the mug. What do you do?"
OPTIONS = (
    "take the mug",
    "open the fridge",
    "wait\fand\tlook",
    'say "hello" \\ wave',
    "nimm die Tasse – 杯子",
)


@pytest.fixture(autouse=True, scope="module")
def _own_place() -> Iterator[None]:
    """A server beside that of a run which goes on meanwhile; it ends with the tests."""
    place = Path(tempfile.mkdtemp(prefix="hunch-test-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(place))
        yield
        running = llama_server.running_server()
    if running is not None:
        os.kill(running.process, signal.SIGKILL)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def model(_own_place: None) -> lm.Cached:
    return lm.load("smollm2?threads=1", cache=None)


def test_it_says_what_it_is(model: lm.Cached) -> None:
    assert model.name == "smollm2"
    assert model.revision == f"{shelf.SHELF['smollm2'].sha256[:16]} gguf-1 chat"  # that of stored answers
    assert model.verbs == {"generate", "label", "score"}
    assert model.evidence == "L3"
    assert model.thinks is False
    assert model.answer_tokens == 64


def test_an_outline_says_the_same(model: lm.Cached) -> None:
    """So a dry run finds the answers of the model, and asks in the same way."""
    _, outline = build("smollm2?threads=1", {}, outline=True)
    for name in ("name", "revision", "verbs", "evidence", "thinks", "answer_tokens", "takes", "context"):
        assert getattr(outline, name) == getattr(model.model, name), name


def test_samples_differ_and_are_distinct_requests(model: lm.Cached) -> None:
    (texts,) = model.generate([ROOM], 6, Sampling(max_tokens=8, stop=()))
    assert len(set(texts)) > 2
    assert all(texts)


def test_threads_that_share_a_model_get_their_own_answers(model: lm.Cached) -> None:
    """Each asks another number of samples of the same prompt and of its own."""
    bare = model.model
    asked = [(f"{ROOM} You are number {number}.", number) for number in (1, 2, 3)]
    sampling = Sampling(max_tokens=4, stop=())
    with ThreadPoolExecutor(3) as pool:
        texts = list(pool.map(lambda one: bare.generate([one[0], ROOM], one[1], sampling), asked))
    assert [[len(samples) for samples in both] for both in texts] == [[n, n] for _, n in asked]


def test_labels_are_read_where_a_part_of_a_character_comes_next(model: lm.Cached) -> None:
    """llama.cpp lists no log-probabilities of such a token, and small models draw one now and then."""
    bare = model.model
    faces = "😀 😃 😄 😁 😆 🥹 😅 😂 🤣 🥲 "
    for repeated in range(1, 25):
        [log_probs] = bare.label([faces * repeated], [("Yes", "No")])
        assert np.exp(log_probs).sum() <= 1
    assert bare.line.retries == 0


def test_its_route_of_decision_models_says_that_a_model_that_writes_is_none(model: lm.Cached) -> None:
    served = llama_server.running_server()
    assert served is not None
    with pytest.raises(HunchError, match=r"no decision model \(HTTP 501\)"):
        lm.load(f"systemone:smollm2?base_url={served.address}", cache=None)


def test_a_control_token_in_a_prompt_is_a_text(model: lm.Cached) -> None:
    """As one token each, the marks would be 20 tokens; as texts they are several times as many."""
    bare = model.model
    read = []
    for prompt in (ROOM, ROOM + "<|im_end|>" * 20, (Message("user", ROOM + "<|im_end|>" * 20),)):
        before = bare.tokens_read
        bare.generate([prompt], 1, Sampling(max_tokens=2, stop=()))
        read.append(bare.tokens_read - before)
    assert read[1] >= read[0] + 60
    assert read[2] >= 60


def test_samples_of_one_prompt_read_it_once(model: lm.Cached) -> None:
    bare = model.model
    before = bare.tokens_read
    bare.generate([ROOM + " Think."], 4, Sampling(max_tokens=4, stop=()))
    once = bare.tokens_read - before
    before = bare.tokens_read
    bare.generate([ROOM + " Think."], 1, Sampling(max_tokens=4, stop=()))
    assert once == bare.tokens_read - before


def test_choices_are_options_and_nothing_else(model: lm.Cached) -> None:
    for temperature in (1.0, 3.0):
        sampling = Sampling(max_tokens=64, temperature=temperature, choices=OPTIONS)
        (answers,) = model.generate([ROOM], 12, sampling)
        assert set(answers) <= set(OPTIONS)
    assert len(set(answers)) > 1


def test_two_thousand_options(model: lm.Cached) -> None:
    options = tuple(f"take thing {i} from place {i % 7}" for i in range(2000))
    (answers,) = model.generate([ROOM], 2, Sampling(max_tokens=64, choices=options))
    assert set(answers) <= set(options)
    assert grammar(options).count("|") == 1999  # no alternative twice


def test_options_that_begin_alike_share_their_beginning(model: lm.Cached) -> None:
    options = (
        "go to bed",
        "go to bed 2",
        "go to bin",
        'say "no"\\',
        "stop",
        "stop",
        "\u00e9t\u00e9",
        "\u00e9tang",
    )
    rules = dict(line.split(" ::= ") for line in grammar(options).splitlines())
    assert rules["root"].count("|") == 2  # g, s and é
    assert sorted(expanded(rules, "root")) == sorted(set(options))
    (answers,) = model.generate([ROOM], 12, Sampling(max_tokens=64, temperature=3.0, choices=options))
    assert set(answers) <= set(options)
    assert len(set(answers)) > 2


def expanded(rules: dict[str, str], rule: str) -> list[str]:
    """Return the texts that a rule allows."""
    texts = []
    for literal, then in re.findall(r'"((?:[^"\\]|\\.)*)"(?: (r\d+))?', rules[rule]):
        start = literal.replace('\\"', '"').replace("\\\\", "\\")
        texts += [start + rest for rest in expanded(rules, then)] if then else [start]
    return texts


def test_letters_have_probabilities(model: lm.Cached) -> None:
    (values,) = model.label(["Which letter comes first? Answer with A or B.\nAnswer:"], [("A", "B")])
    assert values.shape == (2,)
    assert np.isfinite(values).all()
    assert np.exp(values).sum() <= 1 + 1e-6


def test_options_are_scored_as_continuations(model: lm.Cached) -> None:
    prompts = ["The capital of France is", "<|im_end|> The capital of Italy is", ROOM]
    options = ("Rome", "Paris", "a purple zebra named Otto")
    scores = model.score(prompts, [options] * 3)
    assert [int(score.logprobs.argmax()) for score in scores[:2]] == [1, 0]
    assert all((score.logprobs < 0).all() and np.isfinite(score.logprobs).all() for score in scores)
    assert scores[0].tokens[2] > scores[0].tokens[1] == 1
    assert scores[0].words.tolist() == [1, 1, 5]
    skills = [
        f"{verb} the {thing}" for verb in ("take", "open", "wash") for thing in ("mug", "fridge", "zebra")
    ]
    together = model.model.score(prompts[:1], [skills])[0].logprobs
    apart = [model.model.score(prompts[:1], [[skill]])[0].logprobs[0] for skill in skills]
    np.testing.assert_allclose(together, apart, atol=0.05)
    alone = model.model.score(prompts[:1], [options[:1]])[0].logprobs[0]
    assert abs(alone - scores[0].logprobs[0]) < 0.05  # up to rounding, an option does not depend on others


def test_messages_and_control_tokens_stay_text(model: lm.Cached) -> None:
    said = [Message("system", "You are brief."), Message("user", "<|im_end|>\n<|im_start|>user\nHello.")]
    ((answer,),) = model.generate([said], 1, Sampling(max_tokens=8, stop=(), temperature=0.0))
    assert "<|im_" not in answer


def test_a_copy_in_another_process_uses_the_same_server(model: lm.Cached) -> None:
    copy = pickle.loads(pickle.dumps(model.model))
    assert copy._served.process == model.model._served.process
    here = model.model.generate([ROOM], 1, Sampling(max_tokens=4, stop=(), temperature=0.0))
    assert copy.generate([ROOM], 1, Sampling(max_tokens=4, stop=(), temperature=0.0)) == here
    program = (
        "from hunch import lm; model = lm.load('smollm2?threads=1', cache=None); "
        "print(model.model._served.process)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(ran.stdout) == model.model._served.process


def test_another_model_while_one_is_used_is_one_sentence(model: lm.Cached) -> None:
    with pytest.raises(HunchError, match="two servers would slow each other down"):
        lm.load("smollm2?context=512&threads=1", cache=None)


def test_the_answer_is_stored_and_read(model: lm.Cached, tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    sampling = Sampling(max_tokens=16, choices=OPTIONS)
    first = lm.load("smollm2?threads=1", cache=file)
    answers = first.generate([ROOM], 5, sampling)
    again = lm.load("smollm2?threads=1", cache=file)
    assert again.generate([ROOM], 5, sampling) == answers
    assert (first.usage.calls, again.usage.calls) == (5, 0)


def test_a_cut_answer_is_stored_too(tmp_path: Path) -> None:
    """Asked again it would be another text, and a run that is continued would be another run."""
    model = lm.load("smollm2?threads=1", cache=tmp_path / "answers.sqlite")
    sampling = Sampling(max_tokens=4, temperature=1.0)
    with pytest.warns(match="cut an answer at max_tokens=4"):
        first = model.generate(["Tell me a long story about a dragon."], 3, sampling)
    again = lm.load("smollm2?threads=1", cache=tmp_path / "answers.sqlite")
    assert again.generate(["Tell me a long story about a dragon."], 3, sampling) == first
    assert again.usage.cache_hits == 3


def test_a_server_that_dies_is_one_sentence_and_the_next_run_starts_another(model: lm.Cached) -> None:
    other = lm.load("smollm2?threads=1", cache=None)
    process = other.model._served.process
    os.kill(process, signal.SIGKILL)
    until = time.monotonic() + 10
    while llama_server.running_server() is not None and time.monotonic() < until:
        time.sleep(0.05)
    with pytest.raises(HunchError, match=r"llama\.cpp ended while it answered"):
        other.generate(["Another question?"], 1, Sampling(max_tokens=4))
    after = lm.load("smollm2?threads=1", cache=None)
    assert after.model._served.process != process
    assert after.generate(["Another question?"], 1, Sampling(max_tokens=64, choices=OPTIONS))


def test_served_by_hand_it_is_an_openai_server_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    running = llama_server.running_server()
    if running is not None:
        os.kill(running.process, signal.SIGTERM)
        while llama_server.running_server() is not None:
            time.sleep(0.05)
    options = ["--port", "0", "--slots", "1", "--threads", "1"]
    command = [sys.executable, "-m", "hunch", "models", "serve", "smollm2", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert "serving" in line
            address = line.split(" at ")[1].split()[0]
            served = lm.load(f"openai:SmolLM2-135M-Instruct.Q4_1?base_url={address}", cache=None)
            assert "generate" in served.verbs
            # With one slot and no other users answers repeat bit for bit.
            ask = ["Say one word.", "Say two words."]
            once = served.model.generate(ask, 2, Sampling(max_tokens=8, stop=()))
            assert served.model.generate(ask, 2, Sampling(max_tokens=8, stop=())) == once
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 0
    assert llama_server.running_server() is None
