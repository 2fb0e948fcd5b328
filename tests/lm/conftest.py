"""Small real models, made from config and saved with a real small tokenizer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Server
from talker import Talker, only_chat
from tests.started import answering
from tokenizer import save_tokenizer


def save_model(folder: Path, kind: str) -> None:
    """A random network with 2 layers of width 32; weights larger than usual, so that answers differ."""
    import torch
    import transformers

    torch.manual_seed(7)
    small = {"vocab_size": 400, "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.2}
    if kind == "gpt2":
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=128, **small)
        network = transformers.GPT2LMHeadModel(config)
    elif kind in ("llama", "qwen2"):
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        family, heads = {"llama": ("Llama", 4), "qwen2": ("Qwen2", 2)}[kind]
        config = getattr(transformers, f"{family}Config")(
            max_position_embeddings=128, num_key_value_heads=heads, **sizes, **small
        )
        network = getattr(transformers, f"{family}ForCausalLM")(config)
    elif kind == "t5":
        sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
        network = transformers.T5ForConditionalGeneration(
            transformers.T5Config(vocab_size=400, decoder_start_token_id=0, eos_token_id=2, **sizes)
        )
    else:
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        network = transformers.BertModel(transformers.BertConfig(**sizes, **small))
    network.config.hunch_evidence = "L0"
    network.save_pretrained(folder)
    save_tokenizer(folder, "metaspace" if kind == "llama" else "bytes")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of a GPT-2, a Llama, a Qwen2, a T5 and an encoder."""
    pytest.importorskip("transformers")
    kinds = ("gpt2", "llama", "qwen2", "t5", "bert")
    places = {kind: tmp_path_factory.mktemp("models") / kind for kind in kinds}
    for kind, folder in places.items():
        save_model(folder, kind)
    return places


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Two busy test processes with two threads each wait for one another more than they compute."""
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))


@pytest.fixture(scope="session")
def serving(folders: dict[str, Path]) -> Iterator[Server]:
    with answering(Server({name: folders[name] for name in ("gpt2", "llama", "bert")})) as running:
        yield running
        running.stopping.set()


@pytest.fixture
def server(serving: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server over real small models, without faults at first; no key and no address in the environment."""
    for name in (
        "HUNCH_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    serving.restore()
    yield serving
    serving.restore()


@pytest.fixture
def talker() -> Iterator[Talker]:
    """A server that answers as a test says; at first it has chat only."""
    with answering(Talker()) as running:
        running.answer = only_chat
        yield running
