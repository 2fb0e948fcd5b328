"""Random network distillation, a baseline of methods with a model's reward.

Algorithm (Burda et al., "Exploration by Random Network Distillation", ICLR 2019)::

    f   <- a random network that never changes;   f^ <- another one, which is trained
    for each step to s', with x the standardised embedding of s'
        e      <- mean over the outputs of (f^(x) - f(x))^2
        r_int  <- e / (the running deviation of S), where S <- gamma S + e is the sum of an episode
        once there are ``batch`` new x: descend on the mean of e, so that what was seen often pays little
    learn from extrinsic * r_env + weight * r_int
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import FloatArray, State, Transition, World
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.reward.count_bonus import NoveltyConfig
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.roles.encoder.features import TextTable
from hunch.roles.reward.rewarded import Rewarded, RewardSource


class RandomDistillation(RewardSource):
    """Rewards the error of a network that learns to predict a random one (RND; Burda et al., ICLR 2019).

    As in the paper, each number of the input is shifted and scaled by its running mean and deviation, clipped
    to +-5, and errors are divided by the running deviation of their discounted sums (per episode; in
    the paper over the whole stream). The first steps only collect statistics of the input; no bonus.

    Args:
        encoder: Embeds observations; the input is the mean over an observation's lines.
        learning_rate: Adam learning rate.
        hidden: Width of both networks.
        batch: Observations per training of the predictor.
        epochs: Updates in each training.
        warmup: Number of first steps, which have no bonus.
        gamma: Discount per step of the sums that scale the errors.
        scaled: What is scaled: "input", "errors" or both.

    Raises:
        UsageError: if the model cannot embed.
    """

    evidence = None
    saved = ("target", "predictor", "optimiser", "steps", "due", "ahead")

    def __init__(
        self,
        encoder: LanguageModel,
        *,
        learning_rate: float = 1e-3,
        hidden: int = 64,
        batch: int = 32,
        epochs: int = 4,
        warmup: int = 500,
        gamma: float = 0.99,
        scaled: Collection[str] = ("input", "errors"),
    ) -> None:
        self.table = TextTable(encoder)
        self.learning_rate = learning_rate
        self.hidden = hidden
        self.batch = batch
        self.epochs = epochs
        self.warmup = warmup
        self.gamma = gamma
        self.scaled = scaled
        self.models = {"encoder": encoder}

    @property
    def settings(self) -> dict[str, Any]:
        """Encoder, sizes and learning rate."""
        return {
            "encoder": self.table.lm.name,
            "hidden": self.hidden,
            "batch": self.batch,
            "learning_rate": self.learning_rate,
            "epochs": self.epochs,
            "warmup": self.warmup,
        }

    @property
    def warming(self) -> bool:
        """True in the first ``warmup`` steps."""
        return self.steps < self.warmup

    def begin(self, world: World, seed: int) -> None:
        """Draw new weights for both networks."""
        import torch
        from gymnasium.wrappers.utils import RunningMeanStd
        from torch import nn

        def network() -> Any:
            return nn.Sequential(
                nn.Linear(self.table.dim, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.hidden)
            )

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.target = network().requires_grad_(False)  # f, random and fixed
            self.predictor = network()  # f^
        self.optimiser = torch.optim.Adam(self.predictor.parameters(), lr=self.learning_rate, foreach=True)
        # Running mean and variance of the inputs, and of the discounted sums of errors.
        self.inputs: Any = RunningMeanStd(shape=(self.table.dim,))  # type: ignore[no-untyped-call]
        self.sums: Any = RunningMeanStd()  # type: ignore[no-untyped-call]
        self.steps = 0
        self.due: list[str] = []  # observations on which the predictor is not trained yet
        self.ahead: dict[int, float] = {}  # discounted sum of errors, by stream

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the error at each step's next observation; the predictor is trained once per batch."""
        import torch

        texts = [t.next_state.observation for t in transitions]
        collecting = self.warming
        self.steps += len(texts)
        self.inputs.update(self._vectors(texts))
        if collecting:
            return [0.0] * len(texts)
        with torch.no_grad():
            errors: list[float] = self._errors(texts).double().tolist()
        self._train(texts)
        return self._scaled(transitions, errors)

    def _train(self, texts: Sequence[str]) -> None:
        """Descend on the mean of the errors, once there is a batch of observations."""
        self.due += texts
        if len(self.due) < self.batch:
            return
        for _ in range(self.epochs):
            loss = self._errors(self.due).mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        self.due = []

    def _scaled(self, transitions: Sequence[Transition], errors: Sequence[float]) -> list[float]:
        """Return the errors divided by the deviation of their discounted sums."""
        if "errors" not in self.scaled:
            return list(errors)
        # S_t = gamma S_(t-1) + error_t; of recorded data a whole episode of a stream comes at once.
        sums = []
        for t, error in zip(transitions, errors, strict=True):
            sum_so_far = self.gamma * self.ahead.pop(t.stream, 0.0) + error
            sums.append(sum_so_far)
            if not t.done:
                self.ahead[t.stream] = sum_so_far
        self.sums.update(np.array(sums))
        return [error / float(np.sqrt(self.sums.var) + 1e-8) for error in errors]

    def _vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return the mean embedding of the lines of each text, shape (n, dim)."""
        means = [self.table.encode(text.splitlines() or [" "]).mean(axis=0) for text in texts]
        return np.stack(means).astype(np.float64)

    def _errors(self, texts: Sequence[str]) -> Any:
        """Return mean (f^(x) - f(x))^2 over the outputs for each text, with gradients, shape (n,)."""
        import torch

        vectors = self._vectors(texts)
        if "input" in self.scaled:
            standardised = (vectors - self.inputs.mean) / np.sqrt(self.inputs.var + 1e-8)
            vectors = np.clip(standardised, -5.0, 5.0)
        x = torch.from_numpy(vectors.astype(np.float32))
        return (self.predictor(x) - self.target(x)).pow(2).mean(dim=1)

    def state_dict(self) -> dict[str, Any]:
        """Return networks, optimiser, and statistics of inputs and errors."""
        running = (self.inputs, self.sums)
        figures = [[each.mean.tolist(), each.var.tolist(), float(each.count)] for each in running]
        return {**super().state_dict(), "figures": figures}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        for running, (mean, var, count) in zip((self.inputs, self.sums), state["figures"], strict=True):
            running.mean = np.asarray(mean)
            running.var = np.asarray(var)
            running.count = count


@dataclass(frozen=True, kw_only=True)
class RNDConfig(NoveltyConfig):
    """Settings of random network distillation."""

    rnd_learning_rate: PositiveFloat = 1e-3
    """Learning rate of the predictor (our choice; paper: 1e-4)."""
    rnd_hidden: PositiveInt = 64
    """Width of both networks (our choice)."""
    rnd_batch: PositiveInt = 32
    """Observations per training of the predictor (our choice)."""
    rnd_epochs: PositiveInt = 4
    """Updates of the predictor per training (paper)."""
    rnd_warmup: NonNegativeInt = 500
    """First environment steps, at random and without bonus, which collect statistics (our choice). With PPO
    they are those of its policy."""
    rnd_gamma: Share = 0.99
    """Discount per step of the sums of bonuses whose standard deviation divides the bonus (paper)."""
    rnd_scaled: tuple[Literal["input", "errors"], ...] = ("input", "errors")
    """What is scaled by running statistics (paper: both)."""
    table: QLearningConfig = field(default_factory=lambda: QLearningConfig(initial=3.0))
    """Settings of Q-learning in a table; its initial Q exceeds the value of the bonus (our choice)."""


class RND(Rewarded):
    """The agent of random network distillation.

    A step limit does not end the sum of bonuses; ``terminated`` does, as one Q holds both rewards (paper: it
    does not, and the bonus has a separate value function).

    Args:
        config: All settings; ``options`` change single ones.
        encoder: Embeds states. Default: that of the config.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = RNDConfig
    source: RandomDistillation

    def __init__(
        self, config: RNDConfig | None = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: RNDConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        source = RandomDistillation(
            embeds,
            learning_rate=c.rnd_learning_rate,
            hidden=c.rnd_hidden,
            batch=c.rnd_batch,
            epochs=c.rnd_epochs,
            warmup=c.rnd_warmup,
            gamma=c.rnd_gamma,
            scaled=c.rnd_scaled,
        )
        super().__init__(learner(c, embeds), source, weight=c.weight, extrinsic=c.extrinsic)

    def begin(self, world: World, seed: int) -> None:
        """Restart the source and the learner."""
        self.seed = seed
        super().begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Act at random in the first steps, then let the learner act.

        PPO learns from actions that its own policy has drawn alone, so it acts from the first step.
        """
        if not self.source.warming or self.config.learner == "ppo":
            return super().act(states)
        rng = np.random.default_rng([self.seed, self.source.steps])
        return [state.options[int(rng.integers(len(state.options)))] for state in states]


METHOD = Method(
    "rnd",
    RND,
    "learn from the error of predicting a random network; a baseline of motif and ellm",
    "Burda et al., Exploration by Random Network Distillation, ICLR 2019",
    models=ENCODER,
)
