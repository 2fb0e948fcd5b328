"""The audition of models of ours behind a local server: their errors are known, and requests are counted."""

import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.started import answering

import hunch
from hunch.audition import submission
from hunch.audition.roles import role_named
from hunch.core import HunchError
from hunch.lm import load
from hunch.lm.base import Model
from hunch.lm.speech import ONE_LINE, Sampling


class Served(ThreadingHTTPServer):
    """Answers chat requests by a function of prompt and seed.

    Attributes:
        answered: Number of answered requests.
        most: Requests that are answered; the rest is refused.
        answer: Returns the text of an answer.
    """

    daemon_threads = True
    answered, most = 0, 10**9

    def answer(self, prompt, seed):
        return ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet: the second would wait 40 ms for the first

    def log_message(self, *_):
        """Keep quiet."""

    def do_GET(self):
        self._send(200, {"data": [{"id": "ours", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions" or body.get("logprobs"):
            return self._send(404, {"error": {"message": "not here"}})
        if self.server.answered >= self.server.most:
            return self._send(401, {"error": {"message": "stopped"}})
        self.server.answered += 1
        text = self.server.answer(body["messages"][-1]["content"], int(body.get("seed", 0)))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(json.dumps(body)) // 2, "completion_tokens": 90}
        return self._send(200, {"model": "ours", "choices": [choice], "usage": usage})

    def _send(self, code, body):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    with answering(Served(("127.0.0.1", 0), Handler)) as running:
        yield running


def spec(server):
    return f"openai:ours?base_url=http://127.0.0.1:{server.server_port}/v1&evidence=L0&chat=true"


class Rare(Model):
    """Right but for a class of prompts, a tenth of them, in which it is always wrong."""

    name, revision, verbs = "rare", "1", frozenset({"generate"})

    def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
        wrong, right = (load(f"scripted:judge?error={error}", cache=None) for error in (1, 0))
        writers = [wrong if zlib.crc32(prompt.encode()) % 10 == 0 else right for prompt in prompts]
        return [w.generate([p], k, sampling, first)[0] for w, p in zip(writers, prompts, strict=True)]


@pytest.mark.parametrize(
    "model",
    ["scripted:judge?error=0.2", "scripted:judge?error=0.5&systematic=1", Rare(), "scripted:judge"],
    ids=["independent", "systematic", "on rare states", "none"],
)
def test_a_known_error_is_measured(server, model):
    """The truth is that of many more questions, asked without a server."""
    model = load(model, cache=None) if isinstance(model, str) else model
    server.answer = lambda prompt, seed: model.generate([prompt], 1, Sampling(16), seed)[0][0]
    role = role_named("judge")
    for line, bed in zip(hunch.audition(spec(server), ["judge"]).lines, role.beds, strict=True):
        low, high = line.heard.interval
        truth = role.ask(model, role.draw(bed, 400, 5), 5).ability
        assert low - 0.05 <= truth <= high + 0.05


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
def test_a_silent_model_could_not_be_asked(server):
    found = hunch.audition(spec(server), questions=20)
    mute = [line for line in found.lines if line.heard.unread == 1]
    roles = {line.heard.role for line in mute}
    assert roles >= {"prior", "policy", "judge", "preference", "goal", "planner"}
    assert all(line.verdict == "could not be asked" for line in mute)
    assert not any(line.heard.has_score for line in mute)
    assert "could not be asked as prior" in str(found)
    assert server.answered <= 300


def test_a_server_that_stops_is_asked_the_rest_only(server):
    server.answer = lambda prompt, seed: load("scripted:judge", cache=None).generate([prompt])[0][0]
    server.most = 30
    with pytest.raises(HunchError):
        hunch.audition(spec(server), ["judge"], questions=60)
    server.most = 10**9
    before = server.answered
    found = hunch.audition(spec(server), ["judge"], questions=60)
    assert all(line.heard.ability == 1 for line in found.lines)
    assert server.answered - before < 60


def test_rows_go_into_a_folder_that_is_not_there_yet(server, hunch_command, tmp_path):
    """Else all questions were asked before an error."""
    server.answer = lambda prompt, seed: load("scripted:judge", cache=None).generate([prompt])[0][0]
    real = spec(server).replace("evidence=L0", "evidence=L3")
    file = tmp_path / "new" / "folder" / "rows.json"
    asked = ("--roles", "judge", "--questions", "20")
    code, out, err = hunch_command("audition", "--lm", real, *asked, "--submit", str(file))
    assert code == 0, err
    assert "2 rows of openai:ours" in out
    assert {row.ability for row in submission.read(file).rows} == {1.0}


def test_a_dry_run_is_near_the_bill(server, hunch_command):
    """Not the most that a chat model may write; that is said apart."""
    server.answer = lambda prompt, seed: load("scripted:judge", cache=None).generate([prompt])[0][0]
    priced = spec(server) + "&price_in=0&price_out=1000000"
    arguments = ("audition", "--lm", priced, "--roles", "judge", "--questions", "20")
    code, out, _ = hunch_command(*arguments, "--dry-run")
    assert code == 0
    asked, cost = (float(next(x for x in out.splitlines() if " judge " in x).split()[i]) for i in (3, -1))
    assert cost < 5 * asked
    assert "thinks first may write" in out


def test_a_dry_run_tells_repeats_from_earlier_answers_and_names_no_price_that_is_not_there(
    server, hunch_command
):
    server.answer = lambda prompt, seed: load("scripted:judge", cache=None).generate([prompt])[0][0]

    def counts(role):
        arguments = ("--roles", role, "--questions", "20", "--dry-run")
        _, out, _ = hunch_command("audition", "--lm", spec(server), *arguments)
        row = next(line for line in out.splitlines() if f" {role} " in line).split()
        return [int(count) for count in row[3:6]], out

    (_, repeats, cached), out = counts("prior")
    assert repeats > 0
    assert cached == 0, "nothing was asked before"
    assert "Repeats are requests that this audition makes again" in out
    assert out.rstrip().endswith(" tokens more.")
    (_, repeats, cached), out = counts("judge")
    assert (repeats, cached) == (0, 0)
    assert "Repeats" not in out
    hunch.audition(spec(server), ["judge"], questions=20)
    (requests, repeats, cached), _ = counts("judge")
    assert (requests, repeats) == (0, 0)
    assert cached > 0
