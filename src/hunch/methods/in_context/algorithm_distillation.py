"""Algorithm Distillation: a network that has read learners' histories improves without gradient updates.

Algorithm (Laskin et al., "In-context Reinforcement Learning with Algorithm Distillation", ICLR 2023)::

    record histories: all episodes of a learner, in many tasks         (hunch data histories)
    repeat: draw a part of a history, many episodes of one learner in their order
            maximise  sum log p(a_t | o_1, a_1, r_1, ..., o_t)         across the ends of episodes
    act:    a_t ~ p(. | the lifetime so far), with fixed weights; only the context grows

The network predicts the next action of a learner with such a past, so it acts like one that has learnt
as much. Two settings turn it into its controls: ``histories="ends"`` is expert distillation (no
example shows improvement, so none can be learnt), and ``histories="shuffled"`` removes the
order. A network that is told the best actions of single transitions is ``decision-pretrained``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hunch.core import (
    Episode,
    EvidenceLevel,
    Explanation,
    FloatArray,
    HunchError,
    State,
    UsageError,
    World,
)
from hunch.envs.offers import HasBest
from hunch.methods.in_context.lifetime import Drawing, InContext, since
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, PositiveInt
from hunch.rl.lifetimes import Labels, Life, Order, Vocabulary, batch, drawn, histories, labelled

if TYPE_CHECKING:
    from hunch.rl.sequence import Cache, SequenceModel


@dataclass(frozen=True, kw_only=True)
class AlgorithmDistillationConfig:
    """Settings of Algorithm Distillation."""

    labels: Labels = "taken"
    """Actions to predict: those taken, those that the trained learner took there (final), or the best."""
    histories: Order = "histories"
    """Episodes of an example: successive ones of a history, its last ones (ends), or any in random order."""
    episodes: PositiveInt = 16
    """Episodes of an example; also the maximum length of a lifetime in evaluations, in episodes."""
    stride: PositiveInt = 1
    """Take every n-th episode of a history (not for ends and shuffled); above 1 the network improves faster
    than the recorded learner."""
    width: PositiveInt = 64
    """Width of the transformer's layers."""
    layers: PositiveInt = 3
    """Number of transformer blocks."""
    heads: PositiveInt = 4
    """Attention heads per block."""
    batch_size: PositiveInt = 16
    """Examples per update."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam."""
    warmup: PositiveInt = 50
    """Updates in which the learning rate rises from 0 to its full value."""


class AlgorithmDistillation(InContext):
    """The agent of Algorithm Distillation. Without recorded histories it acts at random and learns nothing.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = AlgorithmDistillationConfig
    evidence: EvidenceLevel = "L1"
    saved = ("model", "optimiser", "acting", "rng", "updates")

    def __init__(self, config: AlgorithmDistillationConfig | None = None, **options: Any) -> None:
        self.config: AlgorithmDistillationConfig = configure(type(self), config, options)
        if self.config.width % self.config.heads:
            raise UsageError(
                f"width must be a multiple of heads, not {self.config.width} with {self.config.heads}."
            )

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained network, and read the histories.

        Raises:
            UsageError: if a history is too short, a lifetime is longer than an example, or the environment
                has no known best actions.
        """
        if world.lifetime > self.config.episodes:
            raise UsageError(
                f"A lifetime of {world.lifetime} episodes is longer than the examples, which have "
                f"{self.config.episodes}: set --episodes {world.lifetime}, with histories of that length."
            )
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.updates = 0
        self._make(Vocabulary.of(world.data))
        self.lives = self._read(histories(world.data), world)
        super().begin(world, seed)

    def _read(self, histories: Sequence[Sequence[Episode]], world: World) -> list[list[Life]]:
        """Return histories as arrays."""
        c = self.config
        needed = c.stride * (c.episodes - 1) + 1 if c.histories == "histories" else c.episodes
        shortest = min(map(len, histories), default=needed)
        if shortest < needed:
            raise UsageError(
                f"An example needs {needed} episodes of a history, but one has only {shortest}: record "
                "longer histories, or set fewer episodes or a smaller stride."
            )
        env = world.copy().unwrapped if c.labels == "best" and world.copy else None
        best = env.best if isinstance(env, HasBest) else None
        if c.labels == "best" and histories and best is None:
            raise UsageError(
                "The labels 'best' need an environment that knows its best action, as dark rooms do."
            )
        lives = []
        for history in histories:
            labels = labelled(history, c.labels, best)
            lives.append([self.vocabulary.life(*pair) for pair in zip(history, labels, strict=True)])
        return lives

    def _make(self, vocabulary: Vocabulary) -> None:
        """Make the network for a vocabulary."""
        import torch

        from hunch.rl.sequence import SequenceModel  # loads torch

        c = self.config
        self.vocabulary = vocabulary
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.model: SequenceModel = SequenceModel(
                pieces=len(vocabulary.pieces),
                actions=max(1, len(vocabulary.actions)),
                length=c.episodes * vocabulary.places,
                places=vocabulary.places,
                width=c.width,
                layers=c.layers,
                heads=c.heads,
            )
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=c.learning_rate)

    # ---- learning -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make one update, which maximises the likelihood of the actions in some examples."""
        import torch
        from torch.nn import functional

        from hunch.rl.sequence import Steps  # loads torch

        if not self.lives:
            return {}
        *steps, labels = self._examples()
        targets = torch.from_numpy(labels)  # (n, T), -1 for padding, and where a step has no label
        if not (targets >= 0).any():  # labels final: states that the end of the history does not show
            return {}
        logits = self.model(Steps.of(*steps))  # (n, T, actions)
        # loss = - mean log p(a_t | o_1, a_1, r_1, ..., o_t), over all steps of all examples
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.updates += 1
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * min(1.0, self.updates / self.config.warmup)
        self.optimiser.step()
        right = (logits.argmax(-1) == targets)[targets >= 0].double().mean()
        return {"loss": float(loss.detach()), "accuracy": float(right)}

    def _examples(self) -> tuple[Any, ...]:
        """Draw the examples of an update, as arrays."""
        c = self.config
        chosen = [self.lives[int(self.rng.integers(len(self.lives)))] for _ in range(c.batch_size)]
        examples = []
        for history in chosen:
            rows = drawn(len(history), c.episodes, c.stride, c.histories, self.rng)
            examples.append([history[i] for i in rows])
        return batch(examples)

    # ---- acting -------------------------------------------------------------------------------------

    def player(self, seed: int) -> Reader:
        """Return a player with separate lifetimes; it uses the weights of the agent."""
        return Reader(self, seed)

    def explain(self, state: State) -> Explanation:
        """Return the policy at the beginning of a lifetime."""
        policy = Reader(self, 0).policy([state])[0]
        return Explanation({"policy": policy}, policy, "at the beginning of a lifetime")

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return vocabulary, weights, optimiser, lifetimes and random state."""
        return {"vocabulary": self.vocabulary.plain, **super().state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self._make(Vocabulary(**state["vocabulary"]))
        self.acting = self.player(self.seed)
        super().load_state_dict(state)


class Reader(Drawing):
    """A player that feeds the network with its lifetimes so far, and draws from the predicted policy.

    Args:
        agent: The agent.
        seed: Seed of the draws.
    """

    def __init__(self, agent: AlgorithmDistillation, seed: int) -> None:
        super().__init__(seed)
        self.agent = agent
        self.cache: Cache | None = None

    def policy(self, states: Sequence[State]) -> list[FloatArray]:
        """Read the states, and return the probability of each of their actions.

        Raises:
            UsageError: if a state has words or actions that are not in the recorded data.
            HunchError: if a lifetime has more steps than the network can read.
        """
        vocabulary = self.agent.vocabulary
        if not vocabulary.actions:
            return [np.full(len(state.options), 1 / len(state.options)) for state in states]
        rows = [[vocabulary.action(action) - 1 for action in state.options] for state in states]
        if self.cache is None or self.cache.version != self.agent.updates:
            self._read_again()
        logits = self._read([state.stream for state in states], [state.observation for state in states])
        return [softmax(logit[row]) for logit, row in zip(logits, rows, strict=True)]  # (options,) each

    def _read_again(self) -> None:
        """Read the lifetimes with new weights, all streams at once."""
        self.cache = self.agent.model.begin(self.agent.updates)
        longest = max(map(len, self.lived.values()), default=0)
        for i in range(longest):
            lived = {stream: steps for stream, steps in self.lived.items() if len(steps) > i}
            self._read(list(lived), [steps[i].observation for steps in lived.values()], i)

    def _read(self, streams: Sequence[int], observations: Sequence[str], i: int | None = None) -> FloatArray:
        """Give the network step ``i`` of some streams, by default the next one; return its logits."""
        from hunch.rl.sequence import Steps  # loads torch

        vocabulary = self.agent.vocabulary
        model = self.agent.model
        before = [self.lived.get(stream, []) for stream in streams]  # the steps so far, by stream
        if i is not None:
            before = [steps[:i] for steps in before]
        if max(map(len, before)) >= model.length:
            raise HunchError(
                f"A lifetime has more than {model.length} steps, the most that the network was trained on: "
                "evaluate with a smaller --lifetime."
            )
        # One step of each stream, with the action and the reward before it: T = 1.
        places = [min(since(steps), vocabulary.places - 1) for steps in before]
        steps = Steps.of(
            np.stack([vocabulary.observation(text) for text in observations])[:, None],  # (n, 1, P)
            np.array([[vocabulary.actions.get(steps[-1].action, 0) if steps else 0] for steps in before]),
            np.array([[steps[-1].reward if steps else 0.0] for steps in before]),
            np.array(places)[:, None],
        )
        assert self.cache is not None
        return model.step(steps, self.cache, streams).double().numpy()

    def forget(self, streams: Sequence[int]) -> None:
        """Start new lifetimes in these streams."""
        super().forget(streams)
        if self.cache is not None:
            self.cache.forget(streams)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.cache = None


METHOD = Method(
    "algorithm-distillation",
    AlgorithmDistillation,
    "a network that has read how learners improve, and improves within a lifetime without a gradient",
    "Laskin et al., In-context Reinforcement Learning with Algorithm Distillation, ICLR 2023",
    environments="environments with recorded histories of learners (hunch data histories)",
    reads={"raw"},
    optional={"raw"},
    data="needed",
)
