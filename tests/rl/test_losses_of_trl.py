"""Our losses and gradients beside those of another library, TRL (needs 'pip install trl')."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")

from tests.rl.texts import EPISODES, GROUPS, Letters  # noqa: E402

from hunch.rl.policy_gradient import PRESETS, PolicyGradient  # noqa: E402
from hunch.rl.preference_losses import dpo, kto, log_ratios  # noqa: E402

pytestmark = pytest.mark.trl


def compared(trainer, config, epsilon_low=0.2, epsilon_high=0.2, **attributes):
    """Our loss and TRL's of the same texts, advantages and earlier probabilities, with their gradients."""
    policy = Letters(seed=1)
    learner = PolicyGradient(policy, config)
    batch = learner.collect([[step] for step in EPISODES], GROUPS)
    with torch.no_grad():
        policy.scores += 0.3 * torch.randn(policy.scores.shape, generator=torch.Generator().manual_seed(2))
    rows = np.arange(len(EPISODES))
    ours, _ = learner._loss(batch, rows, batch.advantages, "policy")

    found = policy.evaluate([s.transition.state for s in EPISODES], [s.decision for s in EPISODES])
    started = policy.reference(EPISODES)
    own = MagicMock(
        epsilon_low=epsilon_low,
        epsilon_high=epsilon_high,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        loss_type="bnpo",
        aux_loss_enabled=False,
        use_vllm=False,
        _entropy_bonus_enabled=False,
        current_gradient_accumulation_steps=1,
        _get_per_token_logps_and_entropies=lambda *_, **__: (found.logprobs, found.entropy, None),
        accelerator=SimpleNamespace(gather=lambda x: x, reduce=lambda x, reduction: x),
        **attributes,
    )
    own.args.delta, own.args.use_bias_correction_kl = None, False
    texts = torch.zeros(found.mask.shape, dtype=torch.long)
    given = {
        "prompt_ids": texts,
        "prompt_mask": texts,
        "completion_ids": texts,
        "completion_mask": found.mask.long(),
        "advantages": batch.advantages[:, 0],
        "old_per_token_logps": batch.logprobs,
        "old_logps": batch.logprobs[:, 0],
        "ref_per_token_logps": started,
    }
    theirs = trainer._compute_loss(own, MagicMock(), given)
    return [(loss, torch.autograd.grad(loss, policy.scores, retain_graph=True)[0]) for loss in (ours, theirs)]


@pytest.mark.parametrize(
    ("trainer", "preset", "beta"), [("GRPOTrainer", "grpo", 0.04), ("RLOOTrainer", "rloo", 0.0)]
)
def test_policy_gradients_of_groups(trainer, preset, beta):
    ours, theirs = compared(getattr(trl, trainer), PRESETS[preset], beta=beta)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert theirs[1].abs().max() > 1e-3


def test_both_bounds_of_the_clip():
    config = replace(PRESETS["grpo"], kl=0.0, clip=0.05, clip_high=0.1)
    ours, theirs = compared(trl.GRPOTrainer, config, beta=0.0, epsilon_low=0.05, epsilon_high=0.1)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    plain, _ = compared(trl.GRPOTrainer, PRESETS["grpo"], beta=0.0)
    assert (plain[0] - ours[0]).abs() > 1e-4


def test_the_advantages_of_groups_with_the_divergence_in_the_reward():
    """TRL's RLOO takes beta (log pi - log reference), summed over a text, from its reward."""
    policy, beta = Letters(seed=1), 0.3
    config = replace(PRESETS["rloo"], kl=beta, kl_in="reward")
    ours = PolicyGradient(policy, config).collect([[step] for step in EPISODES], GROUPS).advantages[:, 0]
    found = policy.judged([step.decision for step in EPISODES])
    kl = ((found.logprobs - policy.reference(EPISODES)) * found.mask).sum(-1)
    rewards = torch.tensor([step.transition.reward for step in EPISODES]) - beta * kl.detach()
    grouped = rewards.view(-1, 4)  # as in RLOOTrainer._generate_and_score_completions
    theirs = (rewards - (grouped.sum(1, keepdim=True) - grouped).view(-1) / 3).float()
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def answered(policy, decisions):
    """What a model of transformers answers to TRL: log-probabilities of the tokens, and their entropy."""
    found = policy.judged(decisions)
    metrics = {"log_sum_sq_probs": found.entropy, "mean_logits": found.entropy, "is_top1": found.mask}
    return lambda **_: MagicMock(log_probs=found.logprobs, entropy=found.entropy, **metrics)


def completions(mask):
    """A prompt of one token before each text."""
    whole = torch.cat([torch.zeros_like(mask[:, :1]), mask], dim=1).long()
    return {"input_ids": whole, "attention_mask": torch.ones_like(whole), "completion_mask": whole}


def trainer_of_pairs(reference, **attributes):
    own = MagicMock(beta=0.1, aux_loss_enabled=False, precompute_ref_logps=False, ld_alpha=None, **attributes)
    own.ref_model, own.accelerator.device = reference, "cpu"
    own.accelerator.gather_for_metrics = lambda x: x
    return own


def both(policy, ours, theirs):
    """Check that two losses have one value and one gradient."""
    slopes = [torch.autograd.grad(loss, policy.scores, retain_graph=True)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(*slopes, atol=1e-5, rtol=1e-5)
    assert slopes[0].abs().max() > 1e-4


def test_direct_preference_optimisation():
    policy, start = Letters(seed=1), Letters(seed=2)
    decisions = [step.decision for step in EPISODES]
    found = policy.judged(decisions)
    ratios = log_ratios(found, start.judged(decisions).logprobs)
    own = trainer_of_pairs(
        answered(start, decisions),
        f_divergence_type="reverse_kl",
        loss_types=["sigmoid"],
        loss_weights=[1.0],
        label_smoothing=0.0,
        use_weighting=False,
    )
    theirs = trl.DPOTrainer._compute_loss(own, answered(policy, decisions), completions(found.mask), False)
    both(policy, dpo(*ratios.chunk(2)), theirs)


def test_kahneman_tversky_optimisation():
    policy, start = Letters(seed=1), Letters(seed=2)
    decisions = [step.decision for step in EPISODES]
    found = policy.judged(decisions)
    ratios = log_ratios(found, start.judged(decisions).logprobs)
    good = torch.tensor([True, False] * (len(decisions) // 2))
    own = trainer_of_pairs(
        answered(start, decisions),
        loss_type="kto",
        calculate_KL=True,
        desirable_weight=1.0,
        undesirable_weight=1.3,
    )
    texts = completions(found.mask)
    own._compute_kl_logps = lambda model, batch: model().log_probs.roll(1, 0).sum(1)
    theirs = trl.KTOTrainer._compute_loss(own, answered(policy, decisions), {**texts, "label": good}, False)
    both(policy, kto(ratios, good, ratios.roll(1, 0), weight_bad=1.3), theirs)
