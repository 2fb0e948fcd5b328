"""The key is sent to the server and found nowhere else: not in files, in what is printed, in errors."""

from __future__ import annotations

import html
import json
import pickle
import subprocess
import traceback
import urllib.parse
from pathlib import Path

import pytest
from server import Server
from tests.started import run

from hunch import lm
from hunch.core import HunchError, UsageError

KEY = "sk-planted-9e2b71c04d"
RUN = ["--env", "hunch/FrozenLake-v0", "--steps", "12", "--threads", "1"]


def hunch(place: Path, server: Server, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    places = {"HUNCH_CACHE": str(place / "cache" / "a.sqlite"), "OPENAI_BASE_URL": server.url}
    env = places | {"HUNCH_API_KEY": KEY, "HUNCH_DEBUG": "1", "OPENAI_LOG": "debug"} | more
    return run(place, "-m", "hunch", *arguments, **env)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def test_a_run_through_failures_writes_no_key(server: Server, place: Path) -> None:
    """A run that works through faults, one that dies of them, one with a wrong key, and the probe."""
    server.key, server.share, server.faults = KEY, 0.1, ("500", "drop", "malformed", "429-after")
    spec = "openai:gpt2?retries=20&evidence=L0"
    works = hunch(place, server, "run", "zero-shot", *RUN, "--lm", spec, "--out", "works")
    assert works.returncode == 0, works.stderr[-2000:]
    server.restore()
    server.key, server.poison = KEY, "position"
    dies = hunch(place, server, "run", "zero-shot", *RUN, "--lm", "openai:gpt2?retries=0", "--out", "dies",
                 HUNCH_CACHE=str(place / "cache" / "other.sqlite"))  # fmt: skip
    assert dies.returncode != 0
    server.restore()
    server.key = "another"
    refused = hunch(place, server, "run", "zero-shot", *RUN, "--lm", "openai:gpt2", "--out", "refused")
    probed = hunch(place, server, "lm", "openai:gpt2")
    assert refused.returncode == probed.returncode == 1
    assert "HTTP 401" in refused.stderr
    said = "".join(done.stdout + done.stderr for done in (works, dies, refused, probed))
    assert KEY not in said
    assert (place / "works" / "config.json").exists()
    for file in place.rglob("*"):
        assert KEY not in file.name
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_no_key_in_an_error_or_what_it_holds_on_to(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not in the local variables of a traceback, which some tools print."""
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    server.key = KEY
    model = lm.load("openai:gpt2", cache=None, base_url=server.url, retries=1)
    for fault in ("500", "drop", "malformed", "reset", "403"):
        server.share, server.faults = 1.0, (fault,)
        with pytest.raises(HunchError) as caught:
            model.generate(["Action:"])
        error = caught.value
        assert error.__cause__ is error.__context__ is None
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        ours = [frame for frame in shown.stack if "hunch" in frame.filename]
        assert ours
        assert KEY not in "".join(map(repr, (frame.locals for frame in ours)))
        assert KEY not in "".join(shown.format())
        assert KEY not in repr(error) + repr(vars(error))
    for thing in (model, model.model, model.model.line, model.model.line.account):
        assert KEY not in repr(thing) + str(vars(thing) if hasattr(thing, "__dict__") else thing)


WRITTEN = {
    "as it is": str,
    "JSON": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "an address": lambda key: urllib.parse.quote(key, safe=""),
    "a form": lambda key: urllib.parse.quote_plus(key).lower(),
    "HTML": html.escape,
    "numbers": lambda key: "".join(f"&#{ord(sign)};" for sign in key),
    "escapes": lambda key: "".join(f"\\u{ord(sign):04X}" for sign in key),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_a_key_is_hidden_however_a_server_writes_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    odd = "ab+C/d=&<\"e\\>'.*(f" + KEY
    monkeypatch.setenv("HUNCH_API_KEY", odd)
    server.key, server.written = "another", WRITTEN[way]
    with pytest.raises(HunchError, match=r"Incorrect API key provided: \[key\]\.") as caught:
        lm.load("openai:gpt2", cache=None, base_url=server.url)
    assert WRITTEN[way](KEY) not in "".join(traceback.format_exception(caught.value))


def test_a_key_in_the_address_is_refused_unseen(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be kept with the answers, as the address is part of the revision."""
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    for url in (f"{server.url}/{KEY}", f"{server.url}#{KEY}"):
        with pytest.raises(UsageError, match="base_url must") as caught:
            lm.load("openai:gpt2", cache=None, base_url=url)
        assert KEY not in str(caught.value)


@pytest.mark.parametrize("around", ["'", '"', "\r\n", "\n", "\t", " ", "\u00a0", "\u200b", "\ufeff", "\x1f"])
def test_what_files_put_around_a_key_is_left_out(
    server: Server, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    monkeypatch.setenv("HUNCH_API_KEY", f"{around}{KEY}{around}")
    server.key = KEY
    assert lm.load("openai:gpt2", cache=None, base_url=server.url).generate(["Action:"])


@pytest.mark.parametrize("inside", ["\r\n", "\n", "\t", " ", "\u00a0", "\u200b", "é", "\udc80", "\x7f"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(
    server: Server, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    for kind, load in (("OPENAI", "openai:gpt2"), ("ANTHROPIC", "anthropic:gpt2")):
        monkeypatch.setenv(f"{kind}_API_KEY", f"{KEY}{inside}{KEY}")
        with pytest.raises(UsageError, match=f"The key in {kind}_API_KEY has .* at position 22 of") as caught:
            lm.load(load, cache=None, base_url=server.url, key_env=f"{kind}_API_KEY")
        assert KEY not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_a_key_that_turns_odd_while_running_is_not_quoted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transport libraries quote the header that they refuse."""
    monkeypatch.setenv("HUNCH_API_KEY", KEY)
    model = lm.load("openai:gpt2", cache=None, base_url=server.url, retries=0)
    monkeypatch.setenv("HUNCH_API_KEY", f"{KEY}\r\nx-more: {KEY}")
    model = pickle.loads(pickle.dumps(model))
    with pytest.raises(HunchError) as caught:
        model.generate(["Action:"])
    assert KEY not in "".join(traceback.format_exception(caught.value))
