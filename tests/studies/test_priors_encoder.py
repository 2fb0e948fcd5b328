"""The study of encoders: what it measures besides its runs, and further encoders in it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hunch_studies import find
from hunch_studies.priors_encoder import costs, measure, peak_memory, texts
from hunch_studies.study import SMOKE

pytest.importorskip("transformers")


def test_texts_are_different_and_repeat():
    first = texts(60)
    assert len(set(first)) == 60
    assert first == texts(60)


def test_encoders_are_measured_once_and_those_missing_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    encoders = ("bag-of-words?dim=32", f"hf:{tmp_path / 'empty'}")
    table = costs(encoders, tmp_path).splitlines()
    assert [line.count("|") for line in table] == [7] * 4
    assert "| L0 | 0 | 32 |" in table[2]
    assert "not to be had" in table[3]
    written = (tmp_path / "encoders.jsonl").read_bytes()
    assert json.loads(written)["key"] == ["bag-of-words?dim=32"]
    assert costs(encoders, tmp_path).splitlines() == table
    assert (tmp_path / "encoders.jsonl").read_bytes() == written


def test_what_a_rule_and_a_network_take():
    sample = texts(20)
    rule, network = (measure(encoder, sample) for encoder in ("bag-of-words", "random-network"))
    assert rule.parameters == 0 < network.parameters
    assert rule.dim == network.dim
    assert min(rule.milliseconds, network.milliseconds) > 0


def test_peak_memory_remembers():
    block = np.ones(100 * 2**17)  # 100 MB
    held = peak_memory()
    del block
    assert held > 100
    assert peak_memory() > held - 5, "the kernel counts in batches of pages"


def test_an_encoder_of_ones_own_is_one_more(tmp_path):
    own = replace(SMOKE, lms=("hf:google-bert/bert-base-uncased",))
    (part,) = find("priors-encoder").parts(own, tmp_path)
    labels = [arm.label for arm in part.arms]
    assert labels == ["minilm", "bag-of-words", "random-network", "hf:google-bert/bert-base-uncased"]
    assert [arm.config.options.encoder for arm in part.arms] == labels
    assert {arm.config.lm for arm in part.arms} == {"minilm"}
