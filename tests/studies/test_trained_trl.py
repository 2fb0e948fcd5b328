"""TRL's GRPO gets the same questions, rewards and first weights as ours."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.lm.tokenizer import save_tokenizer

import hunch

pytest.importorskip("reasoning_gym")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")

from hunch.methods.tune.grpo import GRPOConfig  # noqa: E402
from hunch.runs.config import RunConfig  # noqa: E402
from hunch.runs.execute import execute  # noqa: E402
from hunch_studies import trained, trained_trl  # noqa: E402

SUMS = trained.BEDS["Sums"]
TINY = GRPOConfig(group=8, episodes=64, max_tokens=4, kl=0.02)


@pytest.fixture
def run(tmp_path):
    """The settings of a run with a small random model."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=400, bos_token_id=1, eos_token_id=2, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    save_tokenizer(tmp_path / "model", "bytes")
    lm = f"hf:{tmp_path / 'model'}?train=lora&rank=16"
    return RunConfig(
        method="grpo", env=SUMS.env, lm=lm, envs=trained.STREAMS, steps=128, options=TINY, seed=3
    )


def test_the_questions_are_those_of_a_run_of_ours(run, tmp_path):
    execute(run, tmp_path / "run")
    played = [json.loads(line) for line in (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()]
    asked = trained_trl.questions(SUMS, 3, TINY.group, updates=2)
    seeds = [seed for _, seed in asked for _ in range(TINY.group)]
    assert [episode["seed"] for episode in played] == seeds


@pytest.mark.trl
def test_trl_trains_our_adapters(run, tmp_path):
    pytest.importorskip("trl")
    import torch

    execute(replace(run, steps=32), tmp_path / "before")
    agent = hunch.load(tmp_path / "before").agent
    first = {name: weight.clone() for name, weight in agent.lm.state_dict().items()}
    after = trained_trl.train(SUMS, replace(TINY, learning_rate=0.01), agent, 3, 2, tmp_path / "trl")
    assert set(after) == set(first)
    assert any(not torch.equal(after[name], first[name]) for name in first)
    agent.lm.load_state_dict(after)
    row = trained_trl.judged(agent, replace(run, steps=32), 4)
    assert 0 <= row["score"] <= 1
    assert len(row["texts"]) == trained.SHOWN
