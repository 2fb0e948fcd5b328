"""SmolLM2 is trained by transformers, and llama.cpp scores with the trained weights alike."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hunch import lm
from hunch.lm.backends import llama_server

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytest.importorskip("xllamacpp")

from hunch.lm.training import Learner  # noqa: E402

pytestmark = pytest.mark.models

PROMPTS = ["The capital of France is", "Question: Name a fruit.\nAnswer:", "1 2 3 4", "Two – 杯子 and a"]
TAUGHT = " a purple zebra named Otto."


def ask(address: str, route: str, **body: Any) -> Any:
    file = llama_server.key_file(address)
    assert file is not None
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {file.read_text().strip()}"}
    request = urllib.request.Request(address.removesuffix("/v1") + route, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def test_llama_cpp_scores_the_trained_model_like_transformers(tmp_path: Path) -> None:
    # 1. Train the shelf's file by adapters: a few steps on one text, so that the model clearly changes.
    model = lm.trainable("smollm2", rank=4)
    assert model.large
    assert model.adapted
    learner = Learner.adam(model.parameters())
    written = model.as_written([PROMPTS[0]], [TAUGHT])
    losses = []
    for _ in range(6):
        judged = model.evaluate([PROMPTS[0]], written)
        losses.append(learner.update(-judged.logprobs.sum() / judged.mask.sum(), 3e-3))
    assert losses[-1] < losses[0] - 1

    # 2. The merged weights, back in the file of llama.cpp.
    file = model.save(tmp_path / "tuned") / "model.gguf"
    heads = [list(model.model._tokens(prompt)) for prompt in PROMPTS]
    merged = lm.trainable(f"hf:{tmp_path / 'tuned'}?train=all").network
    with torch.no_grad():
        wanted = [merged(torch.tensor([head])).logits[0, -1].log_softmax(-1) for head in heads]

    # 3. The same tokens and the same probabilities of the next one, within the rounding of 16 bits.
    served = lm.load(f"gguf:{file}?threads=1&slots=1&context=256", cache=None)
    address = served.model._served.address  # type: ignore[attr-defined]
    for prompt, head, own in zip(PROMPTS, heads, wanted, strict=True):
        assert ask(address, "/tokenize", content=prompt)["tokens"] == head
        answer = ask(address, "/completion", prompt=head, n_predict=1, n_probs=20, temperature=0.0)
        assert "completion_probabilities" in answer, (prompt, answer)
        top = answer["completion_probabilities"][0]["top_logprobs"]
        assert len(top) == 20
        theirs = torch.tensor([token["logprob"] for token in top])
        torch.testing.assert_close(own[[token["id"] for token in top]], theirs, atol=0.05, rtol=0.01)

    # 4. The score of an option is the sum over its tokens.
    options = ["the mug", "Paris, of course", "杯子 – a cup"]
    for prompt, scores in zip(PROMPTS, served.score(PROMPTS, [options] * len(PROMPTS)), strict=True):
        head = list(model.model._tokens(prompt))
        for option, score, length in zip(options, scores.logprobs, scores.tokens, strict=True):
            whole = list(model.model._tokens(f"{prompt} {option}"))
            assert (whole[: len(head)], len(whole) - len(head)) == (head, length)
            with torch.no_grad():
                rows = merged(torch.tensor([whole])).logits[0].log_softmax(-1)
            own_sum = sum(float(rows[at - 1, whole[at]]) for at in range(len(head), len(whole)))
            assert abs(own_sum - score) < 0.05 * length + 0.01 * abs(own_sum)


def test_an_adapter_in_a_file_changes_the_model_as_it_says(tmp_path: Path) -> None:
    # An adapter of the values of each layer, W + (alpha / rank) B A, written as llama.cpp reads it.
    gguf = pytest.importorskip("gguf")
    network = lm.trainable("smollm2?train=all").network
    rng = np.random.default_rng(0)
    rank, alpha = 4, 8.0
    file = tmp_path / "adapter.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for number, layer in enumerate(network.model.layers):
        values = layer.self_attn.v_proj
        a = rng.normal(0, 0.1, (rank, values.in_features)).astype(np.float32)
        b = rng.normal(0, 0.1, (values.out_features, rank)).astype(np.float32)
        writer.add_tensor(f"blk.{number}.attn_v.weight.lora_a", a)
        writer.add_tensor(f"blk.{number}.attn_v.weight.lora_b", b)
        with torch.no_grad():
            values.weight += alpha / rank * torch.tensor(b @ a)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    options = ["Paris", "the mug", "a purple zebra"]
    prompt = "The capital of France is"
    tokenizer = lm.trainable("smollm2").model
    head = list(tokenizer._tokens(prompt))
    wanted = []
    for option in options:
        whole = list(tokenizer._tokens(f"{prompt} {option}"))
        with torch.no_grad():
            rows = network(torch.tensor([whole])).logits[0].log_softmax(-1)
        wanted.append(sum(float(rows[at - 1, whole[at]]) for at in range(len(head), len(whole))))
    scores = {}
    revisions = set()
    for lora in ("", f"&lora={file}"):
        model = lm.load(f"smollm2?threads=1&slots=1&context=256{lora}", cache=None)
        (score,) = model.score([prompt], [options])
        scores[bool(lora)] = score.logprobs
        revisions.add(model.revision)
        model.model._use.close()  # type: ignore[attr-defined]
    assert len(revisions) == 2
    # llama.cpp computes with the weights as they are packed, in 8 bits for what is multiplied.
    np.testing.assert_allclose(scores[True], wanted, rtol=0.05, atol=0.3)
    assert np.abs(scores[True] - scores[False]).max() > 1


def test_a_packaged_model_can_be_trained_in_16_bits() -> None:
    """Rounding adds up over the tokens of an option, and more where a processor multiplies in 16 bits."""
    model = lm.trainable("smollm2?train=lora&rank=1&dtype=bfloat16")
    judged = model.evaluate(PROMPTS[:1], model.as_written(PROMPTS[:1], [" Paris."]))
    assert float(judged.logprobs.sum()) > -10
