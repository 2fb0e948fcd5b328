"""Decision Transformer: the contract, resume, what it reads, and what it does for a wanted return."""

import pytest
from tests.lm.tokenizer import save_tokenizer

from hunch.core import Episode, State, Transition, UsageError, World
from hunch_contrib.in_context.decision_transformer import DecisionTransformer, Features


def test_numbers_that_were_never_recorded_are_read_and_words_are_not():
    features = Features.of(["Cart position -0.50 m.", "Cart position 0.25 m."])
    [place] = [row for name, row in features.rows.items() if name == "position 1"]
    assert [features(f"Cart position {x} m.")[place] for x in (-0.5, 0.1, 1.0)] == [-1.0, 0.2, 2.0]
    with pytest.raises(UsageError, match="never have 'pole' where"):
        features("Pole position 0.25 m.")


def test_more_steps_than_the_model_reads_are_refused():
    pytest.importorskip("transformers")
    DecisionTransformer(lm="pocket?corpus=walks", context=170)
    with pytest.raises(UsageError, match="reads at most 512 tokens, and a step is three: set context to at"):
        DecisionTransformer(lm="pocket?corpus=walks", context=171)


def test_a_model_with_an_encoder_is_refused(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(
        vocab_size=400, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    config.hunch_evidence = "L0"
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, "bytes")
    with pytest.raises(UsageError, match="has an encoder and a decoder: lm must be a causal model"):
        DecisionTransformer(lm=f"hf:{tmp_path}")


def test_a_body_of_16_bits_is_trained():
    """Its adapters and the layers around it are of 32 bits; the torch error came at the first update."""
    pytest.importorskip("peft")
    pytest.importorskip("hunch_pocket")
    states = [State(f"position {i}", actions=("left", "right")) for i in range(3)]
    steps = [Transition(states[i], "right", 1.0, states[i + 1], i == 1, False) for i in range(2)]
    lm = "pocket?corpus=walks&train=lora&dtype=bfloat16"
    agent = DecisionTransformer(lm=lm, context=2, batch_size=2, warmup=1, learning_rate=1e-2)
    agent.begin(World(data=[Episode(tuple(steps))]), 0)
    first = agent.learn()["loss"]
    for _ in range(3):
        last = agent.learn()["loss"]
    assert last < first
    assert agent.around["head"].weight.dtype != agent.lm.network.dtype
