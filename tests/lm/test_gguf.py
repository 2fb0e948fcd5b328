"""GGUF files: read by transformers, trained, and written back for llama.cpp."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizer import save_tokenizer

from hunch import lm
from hunch.core import HunchError, HunchWarning, UsageError
from hunch.extras import install
from hunch.lm.backends import llama_server, weights
from hunch.lm.backends.gguf_header import header_of
from hunch.lm.backends.weights import memory_of
from hunch.lm.registry import build
from hunch.lm.shelf import file_of

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
gguf = pytest.importorskip("gguf")

from hunch.lm.training import gguf_export  # noqa: E402

PROMPTS = ["You are in a room. You see a mug", "go"]
TEXTS = [" and a table.", " left"]
SIZES = {
    "block_count": 2,
    "context_length": 128,
    "embedding_length": 32,
    "feed_forward_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}


def network_of(kind: str) -> Any:
    """A network whose names and shapes are those of the file."""
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 400,
    }
    if kind == "gemma3":
        return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(head_dim=8, **sizes))
    name = {"llama": "Llama", "qwen2": "Qwen2"}[kind]
    config = getattr(transformers, f"{name}Config")(tie_word_embeddings=kind == "llama", **sizes)
    return getattr(transformers, f"{name}ForCausalLM")(config)


def save_gguf(folder: Path, kind: str) -> Path:
    """A GGUF file with random weights and a real small tokenizer; matrices are quantised where that works."""
    save_tokenizer(folder, "bytes")
    described = json.loads((folder / "tokenizer.json").read_text())["model"]
    tokens = sorted(described["vocab"], key=described["vocab"].get)
    tokens += [f"[unused{number}]" for number in range(400 - len(tokens))]
    file = folder / f"{kind}.gguf"
    writer = gguf.GGUFWriter(str(file), kind)
    for name, size in SIZES.items():
        writer.add_uint32(f"{kind}.{name}", size)
    writer.add_float32(f"{kind}.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_float32(f"{kind}.rope.freq_base", 10000.0)
    if kind == "gemma3":
        writer.add_uint32("gemma3.attention.key_length", 8)
        writer.add_uint32("gemma3.attention.value_length", 8)
    writer.add_uint32("general.file_type", 7)
    writer.add_string("general.name", "a toy: ü")
    writer.add_array("general.languages", ["en", "de"])
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if number < 3 else 1 for number in range(400)])
    writer.add_token_merges([" ".join(merge) for merge in described["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    network = network_of(kind)
    names = gguf.get_tensor_name_map(
        {own: key for key, own in gguf.MODEL_ARCH_NAMES.items()}[kind], SIZES["block_count"]
    )
    rng = np.random.default_rng(0)
    for name, weight in network.named_parameters():
        stem, _, suffix = name.rpartition(".")
        data = (0.2 * rng.standard_normal(tuple(weight.shape)) + ("norm" in name)).astype(np.float32)
        own = f"{names.get_name(stem)}.{suffix}"
        if data.ndim == 2:
            packed = gguf.quantize(data, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(own, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(own, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture(scope="module", params=["llama", "qwen2", "gemma3"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    return save_gguf(folder, request.param)


def logprobs(model: Any) -> Any:
    return model.evaluate(PROMPTS, model.as_written(PROMPTS, TEXTS)).logprobs.detach()


def test_a_file_is_parsed_once_and_nothing_of_it_is_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = gguf.GGUFReader.__init__

    def counted(self: Any, path: Any, *rest: Any) -> None:
        parsed.append(str(path))
        parse(self, path, *rest)

    monkeypatch.setattr(gguf.GGUFReader, "__init__", counted)
    reader, names = gguf.GGUFReader, gguf.get_tensor_name_map
    again = file.with_name(f"again-{file.name}")
    shutil.copyfile(file, again)
    lm.load(f"hf:{again}")
    assert parsed == [str(again)]
    assert (gguf.GGUFReader, gguf.get_tensor_name_map) == (reader, names)
    assert weights._reader_of.cache_info().currsize == 0


def test_an_outline_of_a_file_is_the_model_without_its_weights(file: Path) -> None:
    spec = f"hf:{file}?dtype=bfloat16"
    _, whole = build(spec, {})
    _, outline = build(spec, {}, outline=True)
    for name in ("name", "revision", "dim", "context", "parameters", "prompting", "ends"):
        assert getattr(outline, name) == getattr(whole, name), name
    assert outline.network.device.type == "meta"
    assert weights._reader_of.cache_info().currsize == 0


@pytest.fixture
def served_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and a place without a llama.cpp server."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return save_gguf(tmp_path, "llama")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "zero-shot", "--env", "hunch/FrozenLake-v0", "--steps", "20"),
        ("compare", "zero-shot", "--env", "hunch/FrozenLake-v0", "--steps", "20", "--seeds", "1"),
        ("audition", "--roles", "judge", "--questions", "4"),
    ],
)
def test_a_dry_run_starts_no_llama_cpp(
    command: tuple[str, ...], served_file: Path, hunch_command: Any
) -> None:
    code, out, err = hunch_command(*command, "--lm", f"gguf:{served_file}?context=128", "--dry-run")
    assert code == 0, err
    assert "dry run" in out
    assert not llama_server._folder().exists()


@pytest.mark.parametrize("command", [("run", "zero-shot"), ("compare", "zero-shot")])
def test_a_dry_run_reads_no_weights(
    command: tuple[str, ...], served_file: Path, hunch_command: Any, reads: list[bool]
) -> None:
    place = ("--env", "hunch/FrozenLake-v0", "--steps", "20")
    code, _, err = hunch_command(*command, *place, "--lm", f"hf:{served_file}", "--dry-run")
    assert code == 0, err
    assert set(reads) == {True}


def test_a_comparison_checks_a_model_without_its_weights(
    served_file: Path, hunch_command: Any, reads: list[bool]
) -> None:
    """The process that starts the runs would keep them beside those of the runs."""
    place = ("--env", "hunch/FrozenLake-v0", "--steps", "2", "--out", "runs")
    code, _, err = hunch_command(
        "compare", "zero-shot", *place, "--lm", f"hf:{served_file}", "--budget.money", "1"
    )
    assert code == 2
    assert "price" in err  # what is checked of models that were made
    assert reads == [True]


@pytest.mark.parametrize("train", ["lora", "all"])
def test_trained_weights_go_back_into_the_file_that_they_came_from(
    file: Path, train: str, tmp_path: Path
) -> None:
    model = lm.trainable(f"hf:{file}?train={train}")
    before = logprobs(model)
    chance = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data += (0.02 if train == "all" else 0.2) * torch.randn(weight.shape, generator=chance)
    after = logprobs(model)
    assert (after - before).abs().max() > 0.1
    folder = model.save(tmp_path / "tuned")

    torch.testing.assert_close(logprobs(lm.trainable(f"hf:{folder}")), after, atol=1e-5, rtol=1e-5)
    again = lm.trainable(f"hf:{folder / 'model.gguf'}")
    torch.testing.assert_close(logprobs(again), after, atol=2e-2, rtol=1e-2)  # rounded to 16 bits
    merged = dict(lm.trainable(f"hf:{folder}").network.named_parameters())
    for name, weight in again.network.named_parameters():
        torch.testing.assert_close(weight, merged[name], atol=1e-6, rtol=1e-3)

    old, new = (gguf.GGUFReader(str(path)) for path in (file, folder / "model.gguf"))
    kept = {name: field.contents() for name, field in old.fields.items() if not name.startswith("GGUF.")}
    there = {name: field.contents() for name, field in new.fields.items() if not name.startswith("GGUF.")}
    assert there == kept | {"general.file_type": 1}
    assert [tensor.name for tensor in new.tensors] == [tensor.name for tensor in old.tensors]
    kinds = gguf.GGMLQuantizationType
    assert all(t.tensor_type == (kinds.F16 if len(t.shape) > 1 else kinds.F32) for t in new.tensors)


def test_a_saved_model_that_is_trained_further_comes_with_its_gguf_file_again(
    file: Path, tmp_path: Path
) -> None:
    """SFT and then GRPO: the second run begins with the folder of the first."""
    first = lm.trainable(f"hf:{file}?train=all").save(tmp_path / "first")
    model = lm.trainable(f"hf:{first}?train=lora")
    for weight in model.parameters():
        weight.data += 0.2
    second = model.save(tmp_path / "second")
    again = lm.trainable(f"hf:{second / 'model.gguf'}")
    torch.testing.assert_close(logprobs(again), logprobs(model), atol=2e-2, rtol=1e-2)  # rounded to 16 bits

    (first / "model.gguf").write_bytes(b"GGUF, cut off")
    with pytest.warns(HunchWarning, match="cannot be read, so no GGUF file was written"):
        third = lm.trainable(f"hf:{first}?train=lora").save(tmp_path / "third")
    assert (third / "model.safetensors").exists()
    assert not (third / "model.gguf").exists()


def test_a_gguf_file_scores_and_embeds_like_a_folder(file: Path, tmp_path: Path) -> None:
    folder = lm.trainable(f"hf:{file}?train=all").save(tmp_path / "plain")
    one, other = (lm.load(f"hf:{place}", cache=None) for place in (file, folder))
    found, wanted = (model.score(PROMPTS, [TEXTS] * 2) for model in (one, other))
    np.testing.assert_allclose(found[0].logprobs, wanted[0].logprobs, atol=1e-4)
    assert one.revision != other.revision


def test_bad_files_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        lm.trainable(f"hf:{tmp_path}/nowhere.gguf")
    text = tmp_path / "text.gguf"
    text.write_text("hello")
    with pytest.raises(UsageError, match="is not a GGUF file"):
        lm.trainable(f"hf:{text}")
    half = tmp_path / "half.gguf"
    whole = save_gguf(tmp_path, "llama")
    half.write_bytes(whole.read_bytes()[:3000])
    with pytest.raises(HunchError, match=r"half\.gguf is damaged, or only the beginning"):
        lm.trainable(f"hf:{half}")
    odd = tmp_path / "odd.gguf"
    writer = gguf.GGUFWriter(str(odd), "rwkv7")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(HunchError, match=r"cannot read odd\.gguf \(.*rwkv7"):
        lm.trainable(f"hf:{odd}")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UsageError, match=r"takes the package gguf: pip install"):
        lm.trainable(f"hf:{whole}")


def test_without_llama_cpp_the_error_says_from_where_hunch_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError, match="needs the package xllamacpp") as error:
        llama_server.serve(llama_server.Settings("model.gguf"))
    assert install("gguf") in str(error.value)


def test_an_architecture_without_a_map_leaves_the_folder_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save_gguf(tmp_path, "qwen2")
    monkeypatch.setattr(gguf_export, "ARCHITECTURES", ("llama",))
    model = lm.trainable(f"hf:{file}?train=all")
    with pytest.warns(HunchWarning, match="architecture qwen2, whose weights cannot be written back"):
        folder = model.save(tmp_path / "tuned")
    assert not (folder / "model.gguf").exists()
    torch.testing.assert_close(logprobs(lm.trainable(f"hf:{folder}")), logprobs(model), atol=1e-5, rtol=1e-5)


def test_too_little_memory_is_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save_gguf(tmp_path, "llama")
    room = file.stat().st_size + 1
    monkeypatch.setattr("hunch.lm.backends.weights.free_memory", lambda: room)
    with pytest.raises(UsageError, match="GB of memory while they are converted, but"):
        lm.trainable(f"hf:{file}")
    assert llama_server.free_memory() > room


def test_a_format_of_16_bits_takes_half_of_the_memory_besides_the_largest_tensor(tmp_path: Path) -> None:
    header = header_of(save_gguf(tmp_path, "llama"))
    assert 0 < header.largest < header.weights
    single, half = (memory_of(header, dtype) for dtype in (torch.float32, torch.bfloat16))
    assert single - half == 2 * header.weights
    assert half - 2 * header.weights == 8 * header.largest


PEAK = """
import sys
from pathlib import Path
from hunch.lm.backends import weights
from hunch.lm.backends.gguf_header import header_of

def memory(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))

torch, _ = weights.libraries()
file, dtype = Path(sys.argv[1]), sys.argv[2]
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: a process inherits its parent's
before = memory("VmRSS")
weights.read(file, "AutoModelForCausalLM", "cpu", dtype)
taken = memory("VmHWM") - before
print(taken / (weights.memory_of(header_of(file), getattr(torch, dtype)) + file.stat().st_size))
"""


@pytest.mark.models
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_packaged_model_takes_the_memory_that_is_asked_for(dtype: str) -> None:
    """Pages of the file count as memory of the process, but can be taken from it."""
    file = file_of("smollm2")
    done = subprocess.run([sys.executable, "-c", PEAK, str(file), dtype], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 0.6 < float(done.stdout) < 1.3  # its tokenizer counts, too
