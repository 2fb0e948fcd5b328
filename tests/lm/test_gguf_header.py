"""The header of GGUF files as the package ``gguf`` writes them, and files that are none."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.lm.backends.gguf_header import control_tokens_of, header_of

gguf = pytest.importorskip("gguf")


def write(file: Path, *, chat: str = "", **numbers: Any) -> Path:
    writer = gguf.GGUFWriter(str(file), "llama")
    for name, number in numbers.items():
        add = writer.add_array if isinstance(number, list) else writer.add_uint32
        add(f"llama.{name.replace('_of_', '.')}", number)
    writer.add_token_list([f"word {number} ü" for number in range(5000)])
    writer.add_token_scores([0.5] * 5000)
    if chat:
        writer.add_chat_template(chat)
    for number in range(3):
        writer.add_tensor(f"blk.{number}.weight", np.ones((4, 8), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


SIZES = {"block_count": 2, "embedding_length": 32, "attention_of_head_count": 4, "context_length": 128}


def test_what_the_file_says(tmp_path: Path) -> None:
    plain = header_of(write(tmp_path / "plain.gguf", **SIZES))
    assert (plain.trained_context, plain.has_chat_template) == (128, False)
    assert plain.weights == 3 * 4 * 8
    assert plain.bytes_per_token == 2 * 4 * (8 + 8) * 2  # layers, heads, numbers of key and value, bytes
    grouped = header_of(
        write(tmp_path / "grouped.gguf", chat="{{ x }}", attention_of_head_count_kv=2, **SIZES)
    )
    assert grouped.has_chat_template
    assert grouped.bytes_per_token == plain.bytes_per_token // 2
    each = header_of(write(tmp_path / "each.gguf", attention_of_head_count_kv=[1, 4], **SIZES))
    assert each.bytes_per_token == (1 + 4) * (8 + 8) * 2
    sliding = header_of(write(tmp_path / "sliding.gguf", attention_of_sliding_window=16, **SIZES))
    assert sliding.bytes_per_token == 0  # not known
    assert header_of(write(tmp_path / "none.gguf")).trained_context == 0


def test_control_tokens_are_those_that_the_file_calls_so(tmp_path: Path) -> None:
    assert control_tokens_of(write(tmp_path / "no_kinds.gguf")) == ()
    words = ["<unk>", "mug", "<|im_end|>", "<tool>", "</s>", "ü", "\n"]
    kinds = [2, 1, 3, 4, 3, 1, 3]
    writer = gguf.GGUFWriter(str(tmp_path / "kinds.gguf"), "llama")
    writer.add_token_types(kinds)
    writer.add_token_list(words)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert control_tokens_of(tmp_path / "kinds.gguf") == ("<|im_end|>", "<unk>", "</s>")


def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.gguf", **SIZES).read_bytes()
    least = header_of(tmp_path / "whole.gguf").least
    assert least <= len(whole)
    rng = random.Random(0)
    for length in (0, 3, 4, 8, 24, 25, least - 1, *(rng.randrange(least) for _ in range(60))):
        cut = tmp_path / f"{length}.gguf"
        cut.write_bytes(whole[:length])
        with pytest.raises(UsageError, match=r"is not a GGUF file|fetch it again"):
            header_of(cut)


def test_damage_is_an_error_of_one_sentence_or_another_header(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.gguf", **SIZES).read_bytes()
    rng = random.Random(0)
    refused = 0
    for number in range(300):
        data = bytearray(whole)
        for _ in range(4):
            data[rng.randrange(4, 600)] = rng.randrange(256)
        damaged = tmp_path / "damaged.gguf"
        damaged.write_bytes(bytes(data))
        os.utime(damaged, ns=(number, number))  # read anew
        try:
            header_of(damaged)
        except UsageError as error:
            refused += "fetch it again" in str(error)
    assert refused > 100


@pytest.mark.parametrize("data", [b"", b"GG", b"ELF and more", bytes(100)])
def test_what_is_no_gguf_file(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(data)
    with pytest.raises(UsageError, match="is not a GGUF file"):
        header_of(file)
