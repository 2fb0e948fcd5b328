"""Low-rank adapters: which models get them, and their folder, which plain transformers and peft load."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from hunch import lm
from hunch.core import HunchWarning, UsageError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from hunch.lm.training import Learner  # noqa: E402
from hunch.lm.training import model as trained_model  # noqa: E402
from hunch.lm.training.weights import public_name  # noqa: E402

PROMPTS = ["You are in room 1.\n>", "go"]
TEXTS = ["go left", "open the fridge 1"]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, the small models of these tests are large ones."""
    monkeypatch.setattr(trained_model, "LARGE", 1_000)


def test_by_default_all_weights_of_a_small_model_are_trained(folders: dict[str, Path]) -> None:
    model = lm.trainable(f"hf:{folders['llama']}")
    assert not model.adapted
    assert sum(weight.numel() for weight in model.parameters()) == model.model.parameters


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "t5"])
@pytest.mark.usefixtures("large")
def test_a_large_model_gets_adapters_on_every_linear_layer_of_its_body(
    folders: dict[str, Path], family: str
) -> None:
    model = lm.trainable(f"hf:{folders[family]}?rank=3")
    assert model.adapted
    named = dict(model.network.named_parameters())
    trained = {name for name, weight in named.items() if weight.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)
    matrices = {
        name.removesuffix(".base_layer.weight") for name in named if name.endswith(".base_layer.weight")
    }
    assert {name.partition(".lora_")[0] for name in trained} == matrices
    plain = transformers.AutoConfig.from_pretrained(folders[family])
    per_layer = {"gpt2": 4, "llama": 7, "qwen2": 7, "t5": 0}[family]
    if per_layer:
        assert len(matrices) == per_layer * plain.num_hidden_layers
    assert all(3 in named[name].shape for name in trained)
    assert not lm.trainable(f"hf:{folders[family]}?train=all").adapted


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("train=lora&rank=x", "rank of .* must be a whole number"),
        ("train=lora&rank=0", "rank of .* must be at least 1, not 0"),
        ("train=lora&alpha=0", "alpha of .* must be above 0, not 0"),
        ("train=loar", "train of .* must be .*lora.*, not 'loar'"),
    ],
)
def test_wrong_options_are_refused_before_the_model_is_read(
    tmp_path: Path, option: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        lm.trainable(f"hf:{tmp_path}?{option}")  # an empty folder: reading it is another error


@pytest.mark.parametrize("option", ["rank=4", "alpha=8", "train=all&rank=4", "train=all&alpha=8"])
def test_rank_and_alpha_without_adapters_are_refused(folders: dict[str, Path], option: str) -> None:
    with pytest.raises(UsageError, match=r"is an option of low-rank adapters, but .*: add train=lora"):
        lm.trainable(f"hf:{folders['gpt2']}?{option}")


@pytest.mark.usefixtures("large")
def test_a_large_model_without_peft_says_why_it_is_needed(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UsageError, match=r"million weights, so .* need peft \(train=all .*pip install"):
        lm.trainable(f"hf:{folders['gpt2']}")


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "t5"])
def test_transformers_and_peft_load_the_saved_adapters_and_score_alike(
    folders: dict[str, Path], family: str, tmp_path: Path
) -> None:
    model = lm.trainable(f"hf:{folders[family]}?train=lora&rank=4&alpha=6")
    chance = torch.Generator().manual_seed(0)
    before = model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS)).logprobs.detach()
    for weight in model.parameters():
        weight.data += 0.1 * torch.randn(weight.shape, generator=chance)
    after = model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS)).logprobs.detach()
    assert (after - before).abs().max() > 0.1

    folder = model.save_adapters(tmp_path / "adapters")
    assert {file.name for file in folder.iterdir()} >= {"adapter_config.json", "adapter_model.safetensors"}
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (4, 6)
    assert config["base_model_name_or_path"] == str(folders[family])

    auto = peft.AutoPeftModelForSeq2SeqLM if family == "t5" else peft.AutoPeftModelForCausalLM
    theirs = auto.from_pretrained(folder).eval()
    for row, (prompt, text) in enumerate(zip(PROMPTS, model.as_written(PROMPTS, TEXTS), strict=True)):
        head, tokens = list(model.model._tokens(prompt)), list(text.tokens)
        with torch.no_grad():
            if family == "t5":
                start = [theirs.config.decoder_start_token_id, *tokens[:-1]]
                found = theirs(input_ids=torch.tensor([head]), decoder_input_ids=torch.tensor([start]))
                logits = found.logits[0]
            else:
                logits = theirs(torch.tensor([head + tokens])).logits[0, len(head) - 1 : -1]
        own = logits.log_softmax(-1)[range(len(tokens)), tokens]
        torch.testing.assert_close(after[row, : len(tokens)], own, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_adapters_of_a_model_in_16_bits_learn_at_small_rates(folders: dict[str, Path], dtype: str) -> None:
    """They are 32-bit floats, as peft makes them: in 16 bits most steps of Adam would be rounded away."""
    model = lm.trainable(f"hf:{folders['llama']}?train=lora&dtype={dtype}")
    assert str(model.network.dtype) == f"torch.{dtype}"
    before = model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS)).logprobs
    with pytest.warns(HunchWarning, match=f"trained in {dtype}, all weights"):
        plain = lm.trainable(f"hf:{folders['llama']}?train=all&dtype={dtype}")
    assert torch.equal(before, plain.evaluate(PROMPTS, plain.as_written(PROMPTS, TEXTS)).logprobs)
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    learner = Learner.adam(model.parameters())
    for _ in range(2):  # B is 0 before the first step, so that A has a gradient from the second on
        learner.update(-model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS)).logprobs.sum(), 1e-5)
    weights = model.state_dict()
    assert all(weight.isfinite().all() for weight in weights.values())
    assert min(float((weight != first[name]).float().mean()) for name, weight in weights.items()) > 0.9


def test_a_saved_model_holds_its_adapters_beside_the_merged_weights(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    model = lm.trainable(f"hf:{folders['llama']}?train=lora")
    for weight in model.parameters():
        weight.data += 0.1
    folder = model.save(tmp_path / "tuned")
    config = peft.PeftConfig.from_pretrained(folder / "adapter")
    assert config.base_model_name_or_path == str(folders["llama"])
    again = lm.trainable(f"hf:{folder}")
    assert again.model.parameters == lm.trainable(f"hf:{folders['llama']}").model.parameters
    texts = model.as_written(PROMPTS, TEXTS)
    torch.testing.assert_close(
        model.evaluate(PROMPTS, texts).logprobs, again.evaluate(PROMPTS, texts).logprobs, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_no_part_of_a_small_update_is_lost_where_it_is_merged(
    folders: dict[str, Path], tmp_path: Path, dtype: str
) -> None:
    model = lm.trainable(f"hf:{folders['llama']}?train=lora&rank=4&alpha=8&dtype={dtype}")
    chance = torch.Generator().manual_seed(0)
    for name, weight in model.state_dict().items():
        if ".lora_B." in name:
            weight += 1e-5 * torch.randn(weight.shape, generator=chance)
    saved = dict(
        transformers.AutoModelForCausalLM.from_pretrained(
            model.save(tmp_path / "tuned"), dtype="float32"
        ).named_parameters()
    )
    trained = {name: weight.detach().float() for name, weight in model.network.named_parameters()}
    merged = 0
    for name, base in trained.items():
        if not name.endswith(".base_layer.weight"):
            continue
        layer = name.removesuffix(".base_layer.weight")
        update = 2 * trained[f"{layer}.lora_B.default.weight"] @ trained[f"{layer}.lora_A.default.weight"]
        difference = saved[f"{layer}.weight"].detach() - base
        torch.testing.assert_close(difference, update, atol=1e-7, rtol=0.02)
        merged += 1
    assert merged > 6


def test_adapters_name_a_model_of_the_hub_and_not_where_it_lies(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    cached = tmp_path / "hub" / "models--owner--small-model" / "snapshots" / ("0" * 40)
    shutil.copytree(folders["llama"], cached)
    saved = lm.trainable(f"hf:{cached}?train=lora").save_adapters(tmp_path / "adapters")
    config = json.loads((saved / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "owner/small-model"
    assert public_name("/models/small.Q4_1.gguf") == "/models/small.Q4_1.gguf"


def test_without_adapters_there_is_nothing_to_save(folders: dict[str, Path], tmp_path: Path) -> None:
    model = lm.trainable(f"hf:{folders['llama']}")
    with pytest.raises(UsageError, match="has no adapters to save"):
        model.save_adapters(tmp_path / "adapters")
    assert not (model.save(tmp_path / "tuned") / "adapter").exists()
