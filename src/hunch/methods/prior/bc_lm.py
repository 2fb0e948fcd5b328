"""Behaviour cloning with a language model that is trained to write the recorded action after the state.

Algorithm (Yan et al., ICLR 2025, fine-tune a small language model)::

    for each update, on a batch of recorded (s, a)
        L  <- -log p(a | s), summed over the tokens of a and its end token, averaged over the batch
        descend on L
    act by pi(a|s) proportional to exp(log p(a | s) / alpha), over the admissible a

The tokens of the state are not learnt. Because the end counts as a token, log p(a | s) needs no normalisation
by length; ``normalise`` can divide it by tokens or words. Rewards are ignored.
:mod:`hunch.methods.prior.bc` is the same baseline on frozen features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from hunch.core import Agent, EvidenceLevel, Explanation, FloatArray, Memoryless, State, Transition, World
from hunch.lm import trainable
from hunch.lm.backends.sampling import count_words
from hunch.lm.base import Normalisation, OptionScores
from hunch.methods.method import Method
from hunch.methods.prior.dqn_prior import YAN
from hunch.methods.settings import configure
from hunch.ranges import PositiveFloat, PositiveInt

if TYPE_CHECKING:
    from hunch.lm.training import Trainable


@dataclass(frozen=True, kw_only=True)
class BCLMConfig:
    """Settings of behaviour cloning with a language model."""

    lm: str = ""
    """Causal model to fine-tune, hf:<name or folder>; empty for a new one with about a million weights."""
    alpha: PositiveFloat = 1.0
    """Temperature of the cloned policy, p(a|s)^(1 / alpha); 1 is the fitted policy."""
    normalise: Normalisation = "sum"
    """Divide an action's log-probability by nothing (sum), its number of tokens or its number of words."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate; use about 1e-5 for a pretrained model."""
    batch_size: PositiveInt = 32
    """Recorded actions per update."""
    context: PositiveInt = 256
    """Maximum tokens of a state; a longer text loses its beginning."""


class BCLM(Agent):
    """The agent of behaviour cloning with a language model.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
        HunchError: if the model to train cannot be loaded.
    """

    config_class: ClassVar[type[Any]] = BCLMConfig

    def __init__(self, config: BCLMConfig | None = None, **options: Any) -> None:
        self.config: BCLMConfig = configure(type(self), config, options)
        self.lm = self._model(0)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the model."""
        return self.lm.evidence

    @property
    def settings(self) -> dict[str, Any]:
        """The config, and the version of the prompt, ``wording``."""
        return {**asdict(self.config), "wording": WORDING}

    def begin(self, world: World, seed: int) -> None:
        """Restore the model's initial weights, and forget all steps except recorded data."""
        import torch

        from hunch.lm.training import Learner  # loads torch

        c = self.config
        self.rng = np.random.default_rng(seed)
        self.lm = self._model(seed)
        self.models = {"lm": self.lm}
        self.learner = Learner(torch.optim.Adam(self.lm.parameters(), lr=c.learning_rate, foreach=True))
        self.examples: list[tuple[str, str]] = []
        self._policies: dict[State, FloatArray] = {}
        self.observe([transition for episode in world.data for transition in episode])

    def _model(self, seed: int) -> Trainable:
        """Return the model before training: the named one, or a new one with random weights."""
        from hunch.lm.training.words import new  # loads torch

        context = self.config.context
        if self.config.lm:
            return trainable(self.config.lm, context=context)
        return new(seed=seed, context=context)

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action from the cloned policy in each state."""
        return self.draw(states, self.rng)

    def draw(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """Draw an action from the cloned policy in each state, with this random generator."""
        actions = []
        for state in states:
            index = rng.choice(len(state.options), p=self.policy(state))
            actions.append(state.options[int(index)])
        return actions

    def player(self, seed: int) -> Memoryless:
        """Return a player that draws from the cloned policy with a separate random generator."""
        return Memoryless(self.draw, seed)

    def policy(self, state: State) -> FloatArray:
        """Return the probability of each admissible action, shape (number of actions,)."""
        import torch

        if state in self._policies:
            return self._policies[state]
        with torch.no_grad():
            [answer] = self.lm.option_outputs([text(state)], [state.options], ended=True)
        logprobs = answer.logprobs.double().cpu().numpy()  # log p(a | s), (actions,)
        scores = OptionScores(logprobs, answer.tokens, count_words(state.options))
        logits = scores.normalised(self.config.normalise)  # (actions,)
        weights = np.exp((logits - logits.max()) / self.config.alpha)
        self._policies[state] = weights / weights.sum()
        return self._policies[state]

    def explain(self, state: State) -> Explanation:
        """Return the cloned policy."""
        return Explanation({}, self.policy(state).copy())

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Store the steps to learn from, and the words that occur in them."""
        examples = [(text(t.state), t.action) for t in transitions]
        self.examples += examples
        # A new model learns its vocabulary from the data, from actions that were not taken too.
        self.lm.take(part for example in examples for part in example)
        self.lm.take(action for t in transitions for action in t.state.options)
        self._policies.clear()

    def learn(self) -> dict[str, float]:
        """Make one update on a random batch, and return its metrics."""
        import torch

        if not self.examples:
            return {}
        drawn = self.rng.integers(len(self.examples), size=self.config.batch_size)
        prompts = [self.examples[i][0] for i in drawn]
        actions = [[self.examples[i][1]] for i in drawn]  # one continuation for each prompt

        # log p(a | s) = sum over the tokens of a and its end; one tensor of shape (1,) for each prompt.
        logprobs = self.lm.scores(prompts, actions, ended=True)
        loss = -torch.cat(logprobs).mean()
        self.learner.update(loss)
        self._policies.clear()  # they were those of the weights before
        return {"loss": float(loss.detach())}

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume exactly; see :class:`hunch.core.Agent`."""
        return {
            "network": self.lm.state_dict(),
            "optimiser": self.learner.state_dict(),
            "words": list(self.lm.words),
            "examples": list(self.examples),
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.lm.load_state_dict(state["network"])
        self.learner.load_state_dict(state["optimiser"])
        self.lm.take(state["words"])
        self.examples = [(prompt, action) for prompt, action in state["examples"]]
        self.rng.bit_generator.state = state["rng"]
        self._policies.clear()


WORDING: Final = "a67b40be"
"""Version of the words of :func:`text`. Change it with them: runs with different words are different runs."""


def text(state: State) -> str:
    """Return the model's prompt. The task comes last, because a text that is too long loses its beginning."""
    return f"{state.text()}\nYour task is to: {state.aim}\n>"


METHOD = Method(
    "bc-lm",
    BCLM,
    "behaviour cloning by training a language model to write the recorded actions",
    YAN,
    data="needed",
    changeable=("alpha", "normalise"),
)
