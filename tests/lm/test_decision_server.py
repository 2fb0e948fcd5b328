"""A packaged model behind somebody else's decision server: SmolLM2 in ``jev-compatible-server``.

Run with ``make test-decisions``, which gives the server an environment of its own: its packages are large,
and it names no licence, so that it is no dependency.
"""

from __future__ import annotations

import json
import os
import socket
import string
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchWarning
from hunch.lm.shelf import SHELF

PYTHON = os.environ.get("HUNCH_DECISION_SERVER", "")
"""The interpreter of the server's environment."""
pytestmark = [
    pytest.mark.decisions,
    pytest.mark.skipif(not PYTHON, reason="needs the server's environment: make test-decisions"),
]
PATIENCE = 300.0  # seconds; a crowded machine takes long to import what the server needs
TEMPLATE = (
    "<|im_start|>user\n{state}\n\n{instructions}\n{options}\nAnswer with one letter only.<|im_end|>\n"
    "<|im_start|>assistant\n"
)
COLOUR = lm.DecisionQuestion("choice", "What colour is the sky?", ("blue", "green", "red"))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Write the model as a folder, which the server wants, and start the server."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("decisions") / "smollm2"
    shelved = SHELF["smollm2"].path
    quantised = AutoModelForCausalLM.from_pretrained(
        shelved.parent, gguf_file=shelved.name, dtype=torch.float32
    )
    del quantised.config.quantization_config
    model = AutoModelForCausalLM.from_config(quantised.config)
    model.load_state_dict(quantised.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(shelved.parent, gguf_file=shelved.name).save_pretrained(folder)
    letters = {letter: letter for letter in string.ascii_uppercase}
    how = {"readout": "causal_options", "profile": "generic", "prompt_template": TEMPLATE}
    config = folder / "decision.json"
    config.write_text(json.dumps({"decision": {**how, "option_tokens": letters}}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder.parent / "log.txt").open("w+")
    own = {
        "DECISION_BACKEND": "transformers",
        "DECISION_MODEL_ID": str(folder),
        "DECISION_CONFIG": str(config),
    }
    command = f"{PYTHON} -m uvicorn jev_compatible_server.app:create_app --factory --port {port}".split()
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1"], stdout=log, stderr=log, env={**os.environ, **own}
    )
    try:
        yield _once_there(server, port, Path(log.name))
    finally:
        server.terminate()
        server.wait(60)
        log.close()


def _once_there(server: subprocess.Popen[bytes], port: int, log: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
        except OSError:
            time.sleep(1)
        else:
            return f"http://127.0.0.1:{port}/v1"
    raise AssertionError(f"The server did not start: {log.read_text()[-2000:]}")


@pytest.fixture
def model(address: str) -> Any:
    """The model; the server does not say how many tokens it read, which is said once."""
    with pytest.warns(HunchWarning, match="states no valid token counts"):
        return lm.load("systemone:smollm2", cache=None, base_url=address)


def test_a_real_model_decides(model: Any) -> None:
    assert model.evidence == "L3"
    states = ["The sky is blue today.", "The sky is green today."]
    answers = model.decide(states, [[COLOUR, lm.DecisionQuestion("yes_no", "Is it day?")]] * 2)
    for colour, day in answers:
        assert colour.shape == (3,)
        assert colour.sum() == pytest.approx(1)
        assert day.sum() == pytest.approx(1)
    assert not np.allclose(answers[0][0], answers[1][0])


def test_its_questions_do_not_reach_each_other(model: Any) -> None:
    assert model.model.leaks() == []


def test_more_options_than_letters_are_asked_in_groups(model: Any) -> None:
    """The server has letters for 26 options; it refuses more, and what it says is noticed."""
    many = lm.DecisionQuestion("choice", "Which number is seven?", tuple(f"number {i}" for i in range(30)))
    with pytest.warns(HunchWarning, match="in groups"):
        ((answer,),) = model.decide(["Think of a number."], [[many]])
    assert answer.shape == (30,)
    assert answer.sum() == pytest.approx(1)
