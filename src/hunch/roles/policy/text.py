"""The policy role in free text: a language model writes the action, and each of its tokens has a value.

    text   ~  p_LM(. | prompt(s)), up to the model's end token
    V      <- a perceptron on the hidden state from which each token was predicted
    reference_logprobs  <- log p_ref of each token, under a frozen reference, to measure the KL divergence

The drawn tokens are stored, because tokenising the text again may give others. The value's error
does not train the model: a small model would follow the value instead of the reward. Where actions are
listed, the model chooses among them (:class:`hunch.roles.policy.language.LMPolicy`).

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hunch.core import FloatArray, State, UsageError
from hunch.lm.prompts import Message, Prompt
from hunch.lm.training import Nucleus, TokenOutputs, Trainable, Written
from hunch.lm.training.writing import Allowed
from hunch.rl.policy import Decision, Evaluated, Part
from hunch.roles.policy.language import LMPolicy, ModelPolicy
from hunch.roles.policy.settings import LMPolicyConfig, TextPolicyConfig
from hunch.roles.prior.language import prompt


def transcript(state: State) -> Prompt:
    """Return task, history and observation, after which the model writes.

    An observation without task and history is the whole prompt; ``raw`` may hold it as chat messages.
    """
    if state.history or state.aim:
        return prompt(state, listed=False)
    if isinstance(state.raw, dict) and "messages" in state.raw:
        return [Message(*message) for message in state.raw["messages"]]
    return state.observation


class TextPolicy(ModelPolicy):
    """A policy that writes actions with a language model.

    Args:
        lm: The model; it is reset and trained.
        config: Settings of the policy.
        seed: Seed of the value's weights, and of shuffled or random initial weights.
        prompt: Makes the prompt of a state.
        reference: The model from which the KL divergence is measured: a frozen one, or ``start`` for ``lm``
            before its training.
        allowed: Returns which tokens may follow those written so far; None allows all.
        listed: List the admissible actions in the prompt, if the state has some.

    Attributes:
        within: The nucleus that limits the tokens; None for no limit.

    Raises:
        UsageError: if the reference has another vocabulary, or a text cannot fit into the context or end.
    """

    within: Nucleus | None = None
    reference_state: dict[str, Tensor] | None = None
    """Weights of the reference, if it is this model at a time after the start of training."""

    def __init__(
        self,
        lm: Trainable,
        config: TextPolicyConfig,
        seed: int,
        *,
        prompt: Callable[[State], Prompt] = transcript,
        reference: Trainable | Literal["start"] | None = None,
        allowed: Allowed | None = None,
        listed: bool = True,
    ) -> None:
        super().__init__(lm, config.start, config.width, seed)
        self.config = config
        self.prompt = prompt
        self.reference = reference
        self.allowed = allowed
        _require_room(lm, config.max_tokens)
        if isinstance(reference, Trainable):
            _require_same_words(lm, reference)
        # Where actions are listed, the same model with the same value chooses among them.
        options = LMPolicyConfig(start=config.start, width=config.width, listed=listed)
        self.chooser = LMPolicy(lm, options, seed)
        self.chooser.head = self.head
        if reference is not None:
            self.chooser.prior = self._reference_choices
        # The reference: another model, or this one with earlier weights (see _reference_weights).
        self.reference_policy = self.chooser
        if isinstance(reference, Trainable):
            # Its weights stay as they are, also where this model begins with shuffled or random ones.
            self.reference_policy = LMPolicy(reference, replace(options, start="weights"), seed)

    def sample(
        self, states: Sequence[State], rngs: Sequence[np.random.Generator], temperature: float = 1.0
    ) -> list[Decision]:
        """Write a text in each state with a separate generator, or choose an action where some are listed."""
        if _listed(states):
            return self.chooser.sample(states, rngs, temperature)
        prompts = [self.prompt(state) for state in states]
        texts = self.lm.write(
            prompts,
            rngs,
            max_tokens=self.config.max_tokens,
            temperature=temperature,
            allowed=self.allowed,
            within=self.within,
        )
        return [Decision(*text) for text in texts]

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        with_kl: bool = False,
    ) -> Evaluated:
        """Evaluate texts under the current weights; see :meth:`hunch.rl.policy.TrainablePolicy.evaluate`."""
        if _listed(states):
            return self.chooser.evaluate(states, decisions, part, with_kl)
        # Log-probabilities, entropy and mask, each (n, T), and hidden states (n, T, dim), in one pass.
        with torch.set_grad_enabled(torch.is_grad_enabled() and part != "value"):
            texts = self._outputs(self.lm, states, decisions, self.within)
        values = torch.zeros_like(texts.logprobs)
        if part != "policy":  # the value's error does not train the model
            values = self.head(texts.states.detach())[..., 0] * texts.mask
        return Evaluated(texts.logprobs, texts.entropy, values, texts.mask, None, texts.free)

    @torch.no_grad()
    def reference_logprobs(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return the reference's log-probability of each token, shape (n, T); None without a reference."""
        if self.reference is None:
            return None
        if _listed(states):
            logprobs = self._reference_choices(states)  # (n, max. actions)
            taken = [[s.options.index(d.text)] for s, d in zip(states, decisions, strict=True)]
            return logprobs.gather(1, torch.tensor(taken, device=logprobs.device))  # (n, 1)
        with self._reference_weights():
            return self._outputs(self.reference_policy.lm, states, decisions).logprobs

    def set_reference(self) -> dict[str, Tensor]:
        """Make the current weights the reference in place of the initial ones, and return them."""
        self.reference_state = {name: weight.clone() for name, weight in self.lm.state_dict().items()}
        return self.reference_state

    def _reference_weights(self) -> AbstractContextManager[None]:
        """Give the model the reference's weights in a block, if the reference is the model itself."""
        if self.reference_policy is not self.chooser:
            return nullcontext()
        return self.lm.with_weights(self.reference_state)

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of each state's listed actions, shape (number of actions,)."""
        return self.chooser.probabilities(states)

    def likelihood(self, prompts: Sequence[Prompt], texts: Sequence[str | Decision]) -> Tensor:
        """Return the mean log-probability of the tokens of texts after their prompts.

        A given text is followed by the end token. A decision counts as it was drawn: a text that was cut has
        no end token.
        """
        outputs = self.lm.evaluate(prompts, self.written(prompts, texts))  # each (n, T)
        return outputs.logprobs.sum() / outputs.mask.sum()

    def written(self, prompts: Sequence[Prompt], texts: Sequence[str | Decision]) -> list[Written]:
        """Return texts with their tokens as they were drawn; given ones are tokenised, and end."""
        every: list[Written] = []
        for before, text in zip(prompts, texts, strict=True):
            if isinstance(text, Decision) and text.tokens:
                every.append(Written(*text))
            else:
                given = text.text if isinstance(text, Decision) else text
                every += self.lm.as_written([before], [given])
        return every

    def _outputs(
        self,
        lm: Trainable,
        states: Sequence[State],
        decisions: Sequence[Decision],
        within: Nucleus | None = None,
    ) -> TokenOutputs:
        """Return a model's outputs for texts as they were drawn; those that another chose are tokenised."""
        prompts = [self.prompt(state) for state in states]
        return lm.evaluate(prompts, self.written(prompts, decisions), within)

    @torch.no_grad()
    def _reference_choices(self, states: Sequence[State]) -> Tensor:
        """Return the reference's log-probabilities of listed actions, shape (n, max. actions)."""
        with self._reference_weights():
            return self.reference_policy.logprobs(states)

    @torch.no_grad()
    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, from the prompt's last token; shape (n,)."""
        if _listed(states):
            return self.chooser.values(states)
        hidden = self.lm.states([self.prompt(state) for state in states], written=True)  # (n, dim)
        values: FloatArray = self.head(hidden)[:, 0].double().cpu().numpy()
        return values


def _listed(states: Sequence[State]) -> bool:
    return states[0].actions is not None


def _require_room(lm: Trainable, max_tokens: int) -> None:
    """Refuse a model that could not write so many tokens, or end a text, whatever the prompt."""
    ends, most = lm.ends, lm.model.context
    if ends and most is not None and (lm.context or 1) + max_tokens > most:
        raise UsageError(
            f"A prompt and max_tokens={max_tokens} do not fit into the {most} tokens that {lm.name} reads."
        )


def _require_same_words(lm: Trainable, reference: Trainable) -> None:
    one, other = lm.model.tokenizer.get_vocab(), reference.model.tokenizer.get_vocab()
    if one != other:
        raise UsageError(
            f"The reference {reference.name} has another vocabulary than {lm.name}, so the probabilities of "
            "their tokens cannot be compared."
        )
