"""A model behind a real server: ``transformers serve`` over a small GPT-2 with random weights.

Run with ``make test-served``; the server's packages are not among those of the other tests.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hunch import lm
from hunch.core import UsageError
from hunch.lm import Budget, BudgetError, Message, Sampling
from hunch.lm.backends.remote import CONTINUE
from hunch.lm.budget import Ledger

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
pytest.importorskip("uvicorn", reason="needs the extra 'serve'")
pytestmark = [pytest.mark.served, pytest.mark.filterwarnings("ignore:.* refuses :hunch.core.HunchWarning")]

PATIENCE = 300.0  # seconds; a crowded machine takes long to import what the server needs
PROMPTS = [f"You see a fridge {i}, a table 2 and a mug 3.\nAction:" for i in range(4)]
GREEDY = Sampling(max_tokens=6, temperature=0, stop=())
FREE = Sampling(max_tokens=24, stop=())
ENDS = list(range(2, 400, 2))  # half of all tokens end a text, so that one in 16 million is cut at 24 tokens
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


class Served(NamedTuple):
    folder: Path
    ending: Path  # the same model, whose texts end soon
    url: str


@pytest.fixture(scope="module")
def served(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    import transformers

    place = tmp_path_factory.mktemp("served")
    for name, ends in (("gpt2", [2]), ("ending", ENDS)):
        folder = Path(shutil.copytree(folders["gpt2"], place / name))
        (folder / "chat_template.jinja").write_text(TEMPLATE)
        # Without do_sample the server always takes the likeliest token, at any temperature.
        transformers.GenerationConfig(
            do_sample=True, top_k=0, bos_token_id=1, eos_token_id=ends, pad_token_id=0
        ).save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (place / "log.txt").open("w+")
    command = f"serve --host 127.0.0.1 --port {port} --device cpu --dtype float32".split()
    server = subprocess.Popen(
        [sys.executable, "-m", "transformers.cli.transformers", *command], stdout=log, stderr=log
    )
    patience = time.monotonic() + PATIENCE
    while not _healthy(port):
        assert server.poll() is None, (place / "log.txt").read_text()[-2000:]
        assert time.monotonic() < patience, "the server does not answer"
        time.sleep(0.5)
    yield Served(place / "gpt2", place / "ending", f"http://127.0.0.1:{port}/v1")
    server.terminate()
    server.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def load(served: Served, cache: Path | None = None, *, ending: bool = False, **options: object) -> lm.Cached:
    chosen = {"base_url": served.url, "evidence": "L0", "timeout": PATIENCE, "concurrency": 1, **options}
    return lm.load(f"openai:{served.ending if ending else served.folder}", cache=cache, **chosen)


@pytest.mark.filterwarnings("ignore:.* cut an answer at max_tokens=6:hunch.core.HunchWarning")
def test_the_served_texts_are_those_of_this_process(served: Served) -> None:
    """By completions a text as it is, by chat messages through the same template."""
    here = lm.load(f"hf:{served.folder}", cache=None)
    plain, chat = load(served, chat=False), load(served)
    assert plain.generate(PROMPTS, sampling=GREEDY) == here.generate(PROMPTS, sampling=GREEDY)
    talk = [Message("system", CONTINUE), Message("user", PROMPTS[0])]
    wanted = here.generate([talk], sampling=GREEDY)[0][0]
    assert chat.generate([talk, PROMPTS[0]], sampling=GREEDY) == [[wanted], [wanted]]
    cut = Sampling(max_tokens=6, temperature=0, stop=(wanted.strip()[3],))
    assert chat.generate([talk], sampling=cut) == here.generate([talk], sampling=cut)


def test_what_it_does_not_offer_is_found_out(served: Served) -> None:
    model = load(served)
    assert model.verbs == {"generate"}
    assert model.model.loading.calls > 0
    for verb in ("score", "label", "embed"):
        with pytest.raises(UsageError, match="Tried when it was loaded"):
            lm.require(model, verb, "The prior")


def test_samples_are_kept_counted_and_paid(served: Served, tmp_path: Path) -> None:
    first = load(served, tmp_path / "a.sqlite", ending=True, price_in=1e6, price_out=1e6)
    texts = first.generate(PROMPTS[:2], 4, FREE)
    assert all(len(set(own)) > 1 for own in texts)
    assert first.usage.completion_tokens <= 2 * 4 * 24
    assert first.usage.cost == first.usage.prompt_tokens + first.usage.completion_tokens > 0
    again = load(served, tmp_path / "a.sqlite", ending=True, price_in=1e6, price_out=1e6)
    assert again.generate(PROMPTS[:2], 4, FREE) == texts
    assert again.usage.calls == 0
    with Ledger({"lm": again}, Budget(calls=10)).enforced(), pytest.raises(BudgetError):
        again.generate(PROMPTS[:1], 20, FREE)
