"""Behaviour cloning with a language model that is trained to write the recorded action after the state.

Yan et al. (ICLR 2025) fine-tune a small language model; :mod:`hunch.methods.prior.bc` is the same baseline on
frozen features. The loss is -log p(a | s), summed over the tokens of the action and its end token, averaged
over the batch; the tokens of the state are not learnt. The policy is the model's renormalised probabilities
of the admissible actions::

    pi(a|s)  ~  exp(log p(a | s) / alpha)    over the admissible a

Because the end counts as a token, log p(a | s) needs no normalisation by length; ``normalise`` can divide it
by tokens or words. Rewards are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from hunch.core import Agent, Explanation, FloatArray, Memoryless, State, Transition, World
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
    def settings(self) -> dict[str, Any]:
        """The config, and the version of the prompt, ``wording``."""
        return {**asdict(self.config), "wording": WORDING}

    def begin(self, world: World, seed: int) -> None:
        """Restore the model's initial weights, and forget all steps except recorded data."""
        import torch

        from hunch.lm.training import Learner

        c = self.config
        self.rng = np.random.default_rng(seed)
        self.lm = self._model(seed)
        self.models = {"lm": self.lm}
        self.learner = Learner(torch.optim.Adam(self.lm.parameters(), lr=c.learning_rate, foreach=True))
        self.examples: list[tuple[str, str]] = []
        self._policies: dict[State, FloatArray] = {}
        self.observe([transition for episode in world.data for transition in episode])

    def _model(self, seed: int) -> Trainable:
        from hunch.lm.training.words import new

        context = self.config.context
        return (
            trainable(self.config.lm, context=context) if self.config.lm else new(seed=seed, context=context)
        )

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action from the cloned policy in each state."""
        return self.draw(states, self.rng)

    def draw(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """Draw an action from the cloned policy in each state, with this random generator."""
        return [state.options[int(rng.choice(len(state.options), p=self.policy(state)))] for state in states]

    def player(self, seed: int) -> Memoryless:
        """Return a player that draws from the cloned policy with a separate random generator."""
        return Memoryless(self.draw, seed)

    def policy(self, state: State) -> FloatArray:
        """Return the probability of each admissible action, shape (number of actions,)."""
        import torch

        if state not in self._policies:
            with torch.no_grad():
                [found] = self.lm.answers([text(state)], [state.options], ended=True)
            logprobs = found.logprobs.double().cpu().numpy()
            known = OptionScores(logprobs, found.tokens, count_words(state.options))
            scores = known.normalised(self.config.normalise)
            shares = np.exp((scores - scores.max()) / self.config.alpha)
            self._policies[state] = shares / shares.sum()
        return self._policies[state]

    def explain(self, state: State) -> Explanation:
        """Return the cloned policy."""
        return Explanation({}, self.policy(state).copy())

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Store the steps to learn from, and the words that occur in them."""
        seen = [(text(t.state), t.action) for t in transitions]
        self.examples += seen
        self.lm.take(part for example in seen for part in example)
        self.lm.take(action for t in transitions for action in t.state.options)
        self._policies.clear()

    def learn(self) -> dict[str, float]:
        """Make one update on a random batch, and return its metrics."""
        import torch

        if not self.examples:
            return {}
        drawn = self.rng.integers(len(self.examples), size=self.config.batch_size)
        prompts, actions = zip(*(self.examples[i] for i in drawn), strict=True)
        logprobs = self.lm.scores(prompts, [[action] for action in actions], ended=True)
        self._policies.clear()
        return {"loss": self.learner.update(-torch.cat(logprobs).mean())}

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
