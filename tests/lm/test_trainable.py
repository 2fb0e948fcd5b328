"""Models that are trained: the likelihood is one number, with a gradient or without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hunch import lm
from hunch.core import HunchError, State, UsageError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from hunch.lm.training import Trainable  # noqa: E402
from hunch.roles import LMPolicy, LMPolicyConfig  # noqa: E402

PROMPTS = ["You are in room 1.\n>", "You see a mug 2, a fridge 1 and, far off, a very long table.\n>"]
OPTIONS = ["go left", "go", "open the fridge 1", "open the fridge"]
APART = ["go left", "look", "open the fridge", "take it"]  # none begins another, and so is likelier


@pytest.fixture(params=["gpt2", "llama"])
def spec(request: pytest.FixtureRequest, folders: dict[str, Path]) -> str:
    return f"hf:{folders[request.param]}"


def plain(trained: Trainable, prompt: str, option: str) -> torch.Tensor:
    """log p(option | prompt), one option at a time, without tree and padding."""
    if trained.network.config.is_encoder_decoder:
        tokenizer = trained.model.tokenizer
        tail = tokenizer(option)["input_ids"]
        logits = trained.network(
            input_ids=torch.tensor([tokenizer(prompt)["input_ids"]]),
            decoder_input_ids=torch.tensor([[0, *tail[:-1]]]),
        ).logits[0]
    else:
        head, [tail] = trained.model._request(prompt, (option,))
        logits = trained.network(torch.tensor([head + tail])).logits[0, len(head) - 1 : -1]
    return torch.log_softmax(logits, -1)[range(len(tail)), tail].sum()


@pytest.mark.parametrize("train", ["all", "lora"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "t5"])
def test_scores_and_gradients_are_those_of_one_option_at_a_time(
    folders: dict[str, Path], family: str, train: str
) -> None:
    trained = lm.trainable(f"hf:{folders[family]}?train={train}")
    if train == "lora":  # an adapter that changes something
        for weight in trained.parameters():
            weight.data += 0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
    found = trained.scores(PROMPTS, [OPTIONS, OPTIONS[:2]])
    wanted = [
        torch.stack([plain(trained, p, o) for o in own])
        for p, own in zip(PROMPTS, [OPTIONS, OPTIONS[:2]], strict=True)
    ]
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    weigh = torch.tensor([1.0, -2.0, 0.5, 3.0])
    ours, theirs = (
        torch.autograd.grad((own[0] * weigh).sum() + own[1].sum(), trained.parameters(), allow_unused=True)
        for own in (found, wanted)
    )
    for one, other in zip(ours, theirs, strict=True):
        if other is not None:
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    assert any(one is not None and one.abs().max() > 1e-3 for one in ours)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "t5"])
def test_recomputing_gives_the_same_gradients_and_texts_from_less_that_is_kept(
    folders: dict[str, Path], family: str
) -> None:
    options = [OPTIONS[0] * 8, OPTIONS[1] * 8]  # long ones: what is recomputed grows with the tokens
    results = []
    for recompute in (False, True):
        trained = lm.trainable(f"hf:{folders[family]}?train=lora", recompute=recompute)
        for weight in trained.parameters():
            weight.data += 0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
        kept: dict[int, int] = {}

        def keep(tensor: torch.Tensor, kept: dict[int, int] = kept) -> torch.Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        weights = sum(weight.untyped_storage().nbytes() for weight in trained.network.parameters())
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            [scores] = trained.scores(PROMPTS[1:], [options])
        kept_bytes = sum(kept.values()) - weights
        texts = trained.as_written(PROMPTS * 3, OPTIONS + OPTIONS[:2])  # more than are computed again at once
        outputs = trained.evaluate(PROMPTS * 3, texts)
        loss = scores.sum() + outputs.logprobs.sum() + outputs.entropy.sum()
        gradients = torch.autograd.grad(loss, trained.parameters(), allow_unused=True)
        rngs = [np.random.default_rng(0)]
        [written] = trained.write(
            PROMPTS[:1], rngs, max_tokens=5
        )  # writes from a cache, after a backward pass
        results.append((scores.detach(), gradients, written, kept_bytes))
    (scores, gradients, written, kept_bytes), (scores2, gradients2, written2, kept_bytes2) = results
    assert torch.equal(scores, scores2)
    for one, other in zip(gradients, gradients2, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, atol=1e-7, rtol=1e-5)
    assert written == written2
    assert kept_bytes2 < kept_bytes


def test_the_gradient_is_that_of_finite_differences(spec: str) -> None:
    trained = lm.trainable(spec)
    trained.network.double()
    weight = max(trained.parameters(), key=lambda p: p.numel() * (p.dim() == 2 and len(p) < 300))
    loss = trained.scores(PROMPTS[:1], [OPTIONS])[0][2]
    [gradient] = torch.autograd.grad(loss, [weight])
    place = divmod(int(gradient.abs().argmax()), gradient.shape[1])
    values = []
    for step in (1e-3, -2e-3):  # Llama's norm computes in float32 even so
        weight.data[place] += step
        values.append(trained.scores(PROMPTS[:1], [OPTIONS])[0][2].item())
    assert (values[0] - values[1]) / 2e-3 == pytest.approx(gradient[place].item(), rel=0.01)


def test_untrained_scores_and_texts_are_those_of_the_frozen_model(spec: str) -> None:
    frozen = lm.load(spec, cache=None)
    for train in ("all", "lora"):
        trained = lm.trainable(spec, train=train)
        for ours, theirs in zip(
            trained.scores(PROMPTS, [OPTIONS] * 2), frozen.score(PROMPTS, [OPTIONS] * 2), strict=True
        ):
            np.testing.assert_allclose(ours.detach(), theirs.logprobs, atol=1e-5)
        greedy = lm.Sampling(max_tokens=5, temperature=0, stop=())
        assert trained.generate(PROMPTS, sampling=greedy) == frozen.generate(PROMPTS, sampling=greedy)


def test_an_encoder_decoder_model_gives_the_first_state_of_its_decoder(folders: dict[str, Path]) -> None:
    trained = lm.trainable(f"hf:{folders['t5']}?train=lora")
    asked = trained.option_outputs(PROMPTS * 2, [OPTIONS, OPTIONS[:1]] * 2)[:2]
    again = trained.states(PROMPTS)
    for prompt, answer, state in zip(PROMPTS, asked, again, strict=True):
        tokens = torch.tensor([trained.model.tokenizer(prompt)["input_ids"]])
        start = torch.zeros(1, 1, dtype=torch.long)
        out = trained.network(input_ids=tokens, decoder_input_ids=start, output_hidden_states=True)
        for found in (answer.state, state):
            torch.testing.assert_close(found, out.decoder_hidden_states[-1][0, 0], atol=1e-5, rtol=1e-4)
    before = trained.frozen_states(PROMPTS)
    for weight in trained.parameters():
        weight.data += 0.1
    assert torch.equal(trained.frozen_states(PROMPTS), before)
    assert not torch.allclose(trained.states(PROMPTS), before)
    assert trained.network.lm_head.weight.requires_grad is False
    with pytest.raises(UsageError, match="not have the verb 'generate'; it has none"):
        trained.generate(PROMPTS)


def test_an_encoder_decoder_model_is_a_policy(folders: dict[str, Path]) -> None:
    policy = LMPolicy(lm.trainable(f"hf:{folders['t5']}"), LMPolicyConfig(width=8, normalise="token"), 0)
    states = [
        State(prompt, "open the fridge", tuple(OPTIONS[:n]))
        for prompt, n in zip(PROMPTS, (4, 2), strict=True)
    ]
    logprobs, values = policy.logprobs_and_values(states)
    torch.testing.assert_close(logprobs.exp().sum(1), torch.ones(2))
    torch.testing.assert_close(values, policy.state_values(states), atol=1e-5, rtol=1e-5)
    (logprobs[0, 1] + values.sum()).backward()
    for part in (policy.lm.network.encoder, policy.lm.network.decoder):
        assert max(float(w.grad.abs().max()) for w in part.parameters() if w.grad is not None) > 0


def test_the_state_of_a_prompt_is_that_of_its_last_token(spec: str) -> None:
    trained = lm.trainable(spec, train="lora")
    states = trained.states(PROMPTS)
    assert states.shape == (2, trained.dim) == (2, 32)
    for prompt, state in zip(PROMPTS, states, strict=True):
        alone = trained.network.base_model(torch.tensor([trained.model._tokens(prompt)])).last_hidden_state
        torch.testing.assert_close(state, alone[0, -1], atol=1e-5, rtol=1e-5)
    states.sum().backward()
    assert any(weight.grad is not None and weight.grad.abs().max() > 0 for weight in trained.parameters())


def test_adapters_learn_and_are_all_that_is_kept(spec: str) -> None:
    trained, again = (lm.trainable(f"{spec}?train=lora&rank=4") for _ in range(2))
    frozen = {
        name: weight.clone()
        for name, weight in trained.network.named_parameters()
        if not weight.requires_grad
    }
    optimiser = torch.optim.Adam(trained.parameters(), lr=1e-2)
    for _ in range(40):
        scores = torch.stack(trained.scores(PROMPTS, [APART] * 2)).log_softmax(-1)
        loss = -(scores[0, 0] + scores[1, 2])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert [int(own.argmax()) for own in trained.scores(PROMPTS, [APART] * 2)] == [0, 2]
    assert all(torch.equal(dict(trained.network.named_parameters())[name], w) for name, w in frozen.items())
    kept = trained.state_dict()
    assert sum(weight.numel() for weight in kept.values()) < 0.5 * trained.model.parameters
    again.load_state_dict(kept)
    for ours, theirs in zip(
        again.scores(PROMPTS, [APART] * 2), trained.scores(PROMPTS, [APART] * 2), strict=True
    ):
        assert torch.equal(ours, theirs)
    with pytest.raises(HunchError, match="do not match"):
        lm.trainable(spec).load_state_dict(kept)


def test_write_takes_lists() -> None:
    model = lm.trainable("pocket?corpus=walks")
    rng = np.random.default_rng(0)
    for prompts, rngs in (("abc", [rng] * 3), (["abc"], [1])):
        with pytest.raises(UsageError, match="write takes a list of prompts, and a"):
            model.write(prompts, rngs)
    with pytest.raises(UsageError, match="1 prompts have 2 random generators"):
        model.write(["abc"], [rng, rng])


def test_what_cannot_be_trained(folders: dict[str, Path]) -> None:
    for spec, message in {
        "minilm": "hf:<name or folder>",
        f"hf:{folders['gpt2']}?train=most": "must be one of auto, all, lora",
        f"hf:{folders['gpt2']}?tarin=all": "has no option 'tarin'",
        f"hf:{folders['bert']}": "only causal models",
        f"hf:{folders['t5']}?chat=true": "encoder-decoder model, so chat=true cannot be used",
    }.items():
        with pytest.raises(UsageError, match=message):
            lm.trainable(spec)
