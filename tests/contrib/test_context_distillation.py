"""Context distillation: a model learns to write without the context as it writes with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hunch.core import State, Transition, UsageError, World

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from hunch.lm import trainable
from hunch_contrib.tune.context_distillation import ContextDistillation

ASKED = State("dish soup :")
STATES = [replace(ASKED, stream=i) for i in range(8)]


@pytest.fixture
def lm(tmp_path):
    """A model that writes "boil" after "loud dish soup", and "bake" after "dish soup" alone."""
    model = trainable("scratch?width=32&layers=1&heads=2&vocabulary=32")
    model.take(["loud dish soup : boil bake"])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    prompts = ["loud\ndish soup :", "dish soup :"]
    for _ in range(60):
        outputs = model.evaluate(prompts, model.as_written(prompts, ["boil", "bake"]))
        loss = -outputs.logprobs.sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save(tmp_path / "taught")
    return trainable(f"hf:{tmp_path / 'taught'}")


def begun(lm, **options):
    agent = ContextDistillation(lm=lm, context="loud", max_tokens=4, **options)
    agent.begin(World(steps=8 * 40, streams=8, prompts=[ASKED]), 0)
    return agent


def written(agent):
    return [text.strip() for text in agent.player(0).act(STATES)]


def lesson(agent):
    texts = agent.act(STATES)
    steps = [Transition(s, text, 0.0, s, True, False) for s, text in zip(STATES, texts, strict=True)]
    agent.observe(steps)
    return [text.strip() for text in texts], agent.learn()


def test_the_teacher_writes_under_the_context_and_the_model_learns_it(lm):
    agent = begun(lm, learning_rate=1e-2)
    assert set(written(agent)) == {"bake"}
    losses = []
    for _ in range(40):
        texts, metrics = lesson(agent)
        assert texts.count("boil") >= 6  # the teacher stays as it was
        losses.append(metrics["loss"])
    assert losses[-1] < 0.2 * losses[0]
    assert written(agent).count("boil") >= 6


def test_the_loss_is_the_divergence_of_whole_distributions(lm):
    agent = begun(lm)
    [text] = lm.as_written(["dish soup :"], ["boil"])
    [losses] = agent.divergences([ASKED], [text]).tolist()
    taught, _ = lm.distributions(["loud\ndish soup :"], [text])
    alone, mask = lm.distributions(["dish soup :"], [text])
    assert mask.all()
    expected = (taught.exp() * (taught - alone)).sum(-1)[0].tolist()
    assert losses == pytest.approx(expected, abs=1e-5)
    assert min(losses) > -1e-6  # but for rounding
    assert torch.allclose(taught.exp().sum(-1), torch.ones(1, 2), atol=1e-5)


def test_distributions_hold_the_log_probabilities_of_evaluate(lm):
    prompts = ["dish soup :", "loud\ndish soup :", "dish soup :"]
    texts = lm.as_written(prompts, ["boil bake", "bake", "bake"])
    every, mask = lm.distributions(prompts, texts)
    outputs = lm.evaluate(prompts, texts)
    assert (mask == outputs.mask).all()
    for row, text in enumerate(texts):
        for place, token in enumerate(text.tokens[:-1]):  # an end is any of several tokens
            alone = float(outputs.logprobs[row, place].detach())
            assert float(every[row, place, token].detach()) == pytest.approx(alone, abs=1e-5)


def test_the_teacher_alone_learns_nothing_and_writes_with_the_context(lm):
    agent = begun(lm, write="context")
    before = {name: weight.clone() for name, weight in lm.state_dict().items()}
    assert lesson(agent)[1] == {}
    assert not agent.written, "nothing is kept that a checkpoint would need"
    assert all((before[name] == weight).all() for name, weight in lm.state_dict().items())
    assert written(agent).count("boil") >= 6


def test_drawn_tokens_teach_as_well(lm):
    agent = begun(lm, loss="likelihood", learning_rate=1e-2)
    for _ in range(40):
        lesson(agent)
    assert written(agent).count("boil") >= 6


def test_it_reports_how_far_it_is_from_the_teacher(lm):
    agent = begun(lm, learning_rate=1e-2)

    def divergence():
        player = agent.player(0)
        player.act(STATES)
        return player.figures()["context_kl"]

    first = divergence()
    for _ in range(40):
        lesson(agent)
    assert divergence() < 0.5 * first
    assert np.isfinite(first)


def test_a_context_is_not_empty():
    with pytest.raises(UsageError, match="The context is empty"):
        ContextDistillation(context=" ")


def test_a_file_holds_the_context(tmp_path, lm):
    file = tmp_path / "context.txt"
    file.write_text("loud\n", encoding="utf-8")
    agent = ContextDistillation(lm=lm, context_file=str(file))
    assert agent.context == "loud"
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is empty"):
        ContextDistillation(lm=lm, context_file=str(file))
    with pytest.raises(UsageError, match="cannot be read"):
        ContextDistillation(lm=lm, context_file=str(tmp_path / "none"))
