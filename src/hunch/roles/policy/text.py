"""The policy role in free text: a language model writes the action, and each of its tokens is judged.

    text   ~  p_LM(. | prompt(s)), up to the model's end token
    V      <- a perceptron on the hidden state from which each token was predicted
    kl     <- at each token, how far the model is from a frozen reference

The tokens are kept as they were drawn, because tokenising the text again may give others. The value's error
does not train the model: a small model would follow the value instead of the reward.

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from hunch.core import FloatArray, State
from hunch.lm.training import Trainable, Written
from hunch.lm.training.writing import Allowed
from hunch.rl.policy import Decision, Evaluated, Part
from hunch.roles.policy.language import ModelPolicy
from hunch.roles.policy.settings import TextPolicyConfig
from hunch.roles.prior.language import prompt


def transcript(state: State) -> str:
    """Return task, history and observation, after which the model writes.

    An observation without task and history is a prompt of its own.
    """
    return prompt(state, listed=False) if state.history or state.aim else state.observation


class TextPolicy(ModelPolicy):
    """A language model that writes the action.

    Args:
        lm: The model; it is reset and trained.
        config: Settings of the policy.
        seed: Seed of the value's weights, and of shuffled or random initial weights.
        prompt: Makes the prompt of a state.
        reference: A frozen model from which the divergence is measured, such as the same one, loaded again.
        allowed: Returns which tokens may follow those written so far; None allows all.
    """

    def __init__(
        self,
        lm: Trainable,
        config: TextPolicyConfig,
        seed: int,
        *,
        prompt: Callable[[State], str] = transcript,
        reference: Trainable | None = None,
        allowed: Allowed | None = None,
    ) -> None:
        super().__init__(lm, config.start, config.width, seed)
        self.config, self.prompt, self.reference, self.allowed = config, prompt, reference, allowed

    def sample(self, states: Sequence[State], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        """Write a text in each state with its own generator."""
        prompts = [self.prompt(state) for state in states]
        written = self.lm.write(prompts, rngs, max_tokens=self.config.max_tokens, allowed=self.allowed)
        return [Decision(*own) for own in written]

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        pulled: bool = False,
    ) -> Evaluated:
        """Judge texts by the current weights; see :meth:`hunch.rl.policy.TrainablePolicy.evaluate`."""
        prompts = [self.prompt(state) for state in states]
        written = [self._written(*pair) for pair in zip(prompts, decisions, strict=True)]
        with torch.set_grad_enabled(torch.is_grad_enabled() and part != "value"):
            found = self.lm.judged(prompts, written)
        values = torch.zeros_like(found.logprobs)
        if part != "policy":
            values = self.head(found.states.detach())[..., 0] * found.mask
        kl = None
        if pulled and self.reference is not None:
            kl = estimate(self.original(states, decisions).logprobs - found.logprobs)
        return Evaluated(found.logprobs, found.entropy, values, found.mask, kl)

    @torch.no_grad()
    def original(self, states: Sequence[State], decisions: Sequence[Decision]) -> Evaluated:
        """Judge texts by the frozen reference, without values."""
        assert self.reference is not None
        prompts = [self.prompt(state) for state in states]
        written = [self._written(*pair) for pair in zip(prompts, decisions, strict=True)]
        found = self.reference.judged(prompts, written)
        return Evaluated(found.logprobs, found.entropy, torch.zeros_like(found.logprobs), found.mask)

    def _written(self, prompt: str, decision: Decision) -> Written:
        """Return a text as it was drawn, or tokenised if another player chose it."""
        return Written(*decision) if decision.tokens else self.lm.spelled([prompt], [decision.text])[0]

    @torch.no_grad()
    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, from the prompt's last token; shape (n,)."""
        found = self.head(self.lm.states([self.prompt(state) for state in states]))[:, 0]
        values: FloatArray = found.double().cpu().numpy()
        return values


def estimate(apart: Tensor) -> Tensor:
    """Estimate the divergence from a reference at each token, never below 0 (Schulman's k3).

    Args:
        apart: Log-probabilities of the reference minus those of the policy, for tokens that the policy drew.
    """
    return apart.exp() - apart - 1
