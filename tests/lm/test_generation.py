"""What a checkpoint brings along to `generate` decides nothing: tokens come from the whole distribution."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest
from tokenizer import save_tokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hunch.ext.trl import rollout  # noqa: E402
from hunch.lm.backends.generation import EVERY_TOKEN, end_tokens, only_stated  # noqa: E402

SETTINGS = {
    "top_p": 0.5,
    "top_k": 3,
    "min_p": 0.2,
    "typical_p": 0.5,
    "epsilon_cutoff": 0.05,
    "eta_cutoff": 0.05,
    "repetition_penalty": 1.3,
    "no_repeat_ngram_size": 1,
    "temperature": 0.3,
    "suppress_tokens": list(range(3, 200)),
    "begin_suppress_tokens": list(range(200, 399)),
    "forced_eos_token_id": 7,
    "bad_words_ids": [[9]],
    "sequence_bias": [[[11], 50.0]],
    "exponential_decay_length_penalty": (1, 5.0),
    "min_new_tokens": 4,
    "num_beams": 3,
    "guidance_scale": 2.0,
    "top_h": 0.1,
}


@pytest.fixture
def network():
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlamaConfig(
        vocab_size=400, bos_token_id=1, eos_token_id=2, pad_token_id=0, initializer_range=0.2, **size
    )
    return transformers.LlamaForCausalLM(config).eval()


def drawn(network):
    """Twelve tokens after a prompt, and the largest difference of scores and the network's own logits."""
    torch.manual_seed(1)
    prompt = torch.tensor([[1, 5, 9, 11]])
    with only_stated(network), torch.no_grad():
        out = network.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            **EVERY_TOKEN,
            max_new_tokens=12,
            return_dict_in_generate=True,
            output_scores=True,
        )
        logits = network(out.sequences).logits[0, prompt.shape[1] - 1 : -1]
    gap = (torch.cat(list(out.scores)).log_softmax(-1) - logits.log_softmax(-1)).abs().max()
    return out.sequences.tolist(), float(gap)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_setting_of_a_checkpoint_changes_what_is_drawn(network, name):
    plain, gap = drawn(network)
    assert gap < 1e-4
    setattr(network.generation_config, name, SETTINGS[name])
    assert drawn(network) == (plain, gap)
    assert getattr(network.generation_config, name) == SETTINGS[name]  # it is the checkpoint's again


def test_the_settings_inside_a_wrapper_are_put_aside_and_come_back(network):
    peft = pytest.importorskip("peft")
    plain, _ = drawn(network)
    network.generation_config.suppress_tokens = list(range(3, 300))
    wrapped = peft.get_peft_model(network, peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"]))
    assert drawn(wrapped)[0] == plain
    assert network.generation_config.suppress_tokens == list(range(3, 300))


def test_all_ends_that_a_checkpoint_states_are_ends(network):
    assert end_tokens(network, SimpleNamespace(eos_token_id=5)) == {2, 5}
    network.generation_config.eos_token_id = [7, 8]
    assert end_tokens(network, SimpleNamespace(eos_token_id=None)) == {7, 8}


def test_a_rollout_reports_the_probabilities_of_the_policy(network, tmp_path, monkeypatch):
    """The whole distribution, as TRL assumes. Of TRL only the unwrapping is used, so it need not be there."""
    if find_spec("trl") is None:
        models = ModuleType("trl.models")
        models.unwrap_model_for_generation = lambda model, _: nullcontext(model)
        monkeypatch.setitem(sys.modules, "trl", ModuleType("trl"))
        monkeypatch.setitem(sys.modules, "trl.models", models)
    save_tokenizer(tmp_path, "bytes")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.pad_token = "<unk>"
    for name in ("top_p", "repetition_penalty", "min_p", "no_repeat_ngram_size"):
        setattr(network.generation_config, name, SETTINGS[name])
    network.generation_config.eos_token_id = [2, 7]  # a second end, after which other rows are padded
    trainer = SimpleNamespace(
        processing_class=tokenizer,
        model_wrapped=network,
        args=SimpleNamespace(max_completion_length=120, temperature=1.0),
        accelerator=SimpleNamespace(device="cpu"),
    )
    out = rollout("hunch/FrozenLake-v0", turn_tokens=16)(["1", "2", "3"], trainer)
    for head, tokens, mask, stated in zip(
        *(out[name] for name in ("prompt_ids", "completion_ids", "env_mask", "logprobs")), strict=True
    ):
        with torch.no_grad():
            logits = network(torch.tensor([head + tokens])).logits[0].log_softmax(-1)
        for i, token in enumerate(tokens):
            if mask[i]:
                assert float(logits[len(head) + i - 1, token]) == pytest.approx(stated[i], abs=1e-3)
