"""SmolLM2 is trained by transformers, and llama.cpp scores with the trained weights alike."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from hunch import lm

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytest.importorskip("xllamacpp")

from hunch.lm.training import Learner  # noqa: E402

pytestmark = pytest.mark.models

PROMPTS = ["The capital of France is", "Question: Name a fruit.\nAnswer:", "1 2 3 4", "Two – 杯子 and a"]
TAUGHT = " a purple zebra named Otto."


def ask(address: str, route: str, **body: Any) -> Any:
    request = urllib.request.Request(
        address.removesuffix("/v1") + route, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def test_llama_cpp_scores_the_trained_model_like_transformers(tmp_path: Path) -> None:
    # 1. Train the shelf's file by adapters: a few steps on one text, so that the model clearly changes.
    model = lm.trainable("smollm2", rank=4)
    assert model.large
    assert model.adapted
    learner = Learner.adam(model.parameters())
    written = model.spelled([PROMPTS[0]], [TAUGHT])
    losses = []
    for _ in range(6):
        judged = model.judged([PROMPTS[0]], written)
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
