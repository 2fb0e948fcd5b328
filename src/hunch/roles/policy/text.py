"""The policy role in free text: a language model writes the action, and each of its tokens has a value.

    text   ~  p_LM(. | prompt(s)), up to the model's end token
    V      <- a perceptron on the hidden state from which each token was predicted
    apart  <- at each token, log p_LM minus that of a frozen reference

The drawn tokens are stored, because tokenising the text again may give others. The value's error
does not train the model: a small model would follow the value instead of the reward. Where actions are
listed, the model chooses among them (:class:`hunch.roles.policy.language.LMPolicy`).

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hunch.core import FloatArray, State, UsageError
from hunch.lm.prompts import Message, Prompt
from hunch.lm.training import Judged, Nucleus, Trainable, Written
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
    return [Message(*own) for own in state.raw["messages"]] if _has_messages(state.raw) else state.observation


def _has_messages(raw: Any) -> bool:
    return isinstance(raw, dict) and "messages" in raw


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
    settled: dict[str, Tensor] | None = None
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
        self.config, self.prompt, self.reference, self.allowed = config, prompt, reference, allowed
        _require_room(lm, config.max_tokens)
        if isinstance(reference, Trainable):
            _require_same_words(lm, reference)
        options = LMPolicyConfig(start=config.start, width=config.width, listed=listed)
        self.chooser = LMPolicy(lm, options, seed)
        self.chooser.head = self.head
        self.frozen = LMPolicy(reference, options, seed) if isinstance(reference, Trainable) else self.chooser
        if reference is not None:
            self.chooser.prior = self._expected_choices

    def sample(
        self, states: Sequence[State], rngs: Sequence[np.random.Generator], temperature: float = 1.0
    ) -> list[Decision]:
        """Write a text in each state with a separate generator, or choose an action where some are listed."""
        if _listed(states):
            return self.chooser.sample(states, rngs)
        prompts = [self.prompt(state) for state in states]
        how: dict[str, Any] = {"max_tokens": self.config.max_tokens, "temperature": temperature}
        written = self.lm.write(prompts, rngs, allowed=self.allowed, within=self.within, **how)
        return [Decision(*own) for own in written]

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
        with torch.set_grad_enabled(torch.is_grad_enabled() and part != "value"):
            found = self._judged(self.lm, states, decisions, self.within)
        values = torch.zeros_like(found.logprobs)
        if part != "policy":
            values = self.head(found.states.detach())[..., 0] * found.mask
        return Evaluated(found.logprobs, found.entropy, values, found.mask, None, found.free)

    @torch.no_grad()
    def reference_logprobs(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return the reference's log-probability of each token, shape (n, T); None without a reference."""
        if self.reference is None:
            return None
        if _listed(states):
            taken = [[s.options.index(own.text)] for s, own in zip(states, decisions, strict=True)]
            return (found := self._expected_choices(states)).gather(
                1, torch.tensor(taken, device=found.device)
            )
        with self._held():
            return self._judged(self.frozen.lm, states, decisions).logprobs

    def settle(self) -> dict[str, Tensor]:
        """Make the current weights the reference in place of the initial ones, and return them."""
        self.settled = {name: weight.clone() for name, weight in self.lm.state_dict().items()}
        return self.settled

    def _held(self) -> AbstractContextManager[None]:
        return self.lm.held(self.settled) if self.frozen is self.chooser else nullcontext()

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of each state's listed actions, shape (number of actions,)."""
        return self.chooser.probabilities(states)

    def likelihood(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> Tensor:
        """Return the mean log-probability of the tokens of given texts after their prompts."""
        found = self.lm.judged(prompts, self.lm.spelled(prompts, texts))
        return found.logprobs.sum() / found.mask.sum()

    def _judged(
        self,
        lm: Trainable,
        states: Sequence[State],
        decisions: Sequence[Decision],
        within: Nucleus | None = None,
    ) -> Judged:
        """Judge texts as they were drawn; those that another player chose are tokenised."""
        prompts = [self.prompt(state) for state in states]
        known = [
            Written(*own) if own.tokens else self.lm.spelled([prompt], [own.text])[0]
            for prompt, own in zip(prompts, decisions, strict=True)
        ]
        return lm.judged(prompts, known, within)

    @torch.no_grad()
    def _expected_choices(self, states: Sequence[State]) -> Tensor:
        """Return the reference's log-probabilities of listed actions, shape (n, max. actions)."""
        with self._held():
            return self.frozen.logprobs(states)

    @torch.no_grad()
    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, from the prompt's last token; shape (n,)."""
        if _listed(states):
            return self.chooser.values(states)
        found = self.head(self.lm.states([self.prompt(state) for state in states]))[:, 0]
        values: FloatArray = found.double().cpu().numpy()
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
