"""Decision-Pretrained Transformer: a network that was told the best actions acts by what it has seen so far.

Algorithm (Lee et al., "Supervised Pretraining Can Learn In-Context Reinforcement Learning", NeurIPS 2023)::

    record transitions (s, a, s', r) of any behaviour, in many tasks
    repeat: draw a task, N of its transitions D in random order, and a query state q
            maximise  sum_j log p(a* | q, D_1..j)          a* the best action in q, for every length j
    act:    D <- nothing;  in each episode a_t ~ p(. | s_t, D);  at its end, add its transitions to D

The order of D means nothing, unlike in Algorithm Distillation, whose histories show how a learner improves.
The label is the best action of the task, which somebody has to know: here the environment, if it has
``best(raw)``. Drawing from p is posterior sampling: the network has learnt how likely each action is the best
one, given D.

As in the release, D is fixed within an episode, and is a window of the newest N transitions; there is no loss
before the first of them, so the policy of a first episode is not trained. Departures: transitions are drawn
from recorded episodes, where the release draws states and actions evenly. Texts are embedded by their pieces,
and there is no embedding of positions, since D has no order. Adam with a limited gradient stands for AdamW.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hunch.core import (
    Episode,
    EvidenceLevel,
    Explanation,
    FloatArray,
    IntArray,
    State,
    Transition,
    UsageError,
    World,
)
from hunch.envs.offers import HasBest
from hunch.methods.in_context.lifetime import Drawing, InContext, Lived, since
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, PositiveInt
from hunch.rl.lifetimes import Vocabulary, best_action, histories

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class DecisionPretrainedConfig:
    """Settings of the Decision-Pretrained Transformer."""

    labels: Literal["best", "shuffled"] = "best"
    """Actions to predict: the best one in the query state, or that of the same state in another task
    (shuffled, a control, from which nothing about the task can be learnt)."""
    transitions: PositiveInt = 240
    """Transitions of an example, and the newest ones of a lifetime that are read (paper: 100)."""
    width: PositiveInt = 64
    """Width of the transformer's layers (paper: 32)."""
    layers: PositiveInt = 3
    """Number of transformer blocks (paper: 4)."""
    heads: PositiveInt = 4
    """Attention heads per block (paper: 4)."""
    batch_size: PositiveInt = 16
    """Examples per update (paper: 64)."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam (paper)."""


class Rows(NamedTuple):
    """Transitions of n contexts as input of the network; integers are rows of embeddings, 0 is padding."""

    before: IntArray  # pieces of the observation, (n, T, P)
    actions: IntArray  # (n, T)
    after: IntArray  # pieces of the next observation, (n, T, P)
    rewards: NDArray[np.floating[Any]]  # (n, T)


class DecisionPretrained(InContext):
    """The agent of the Decision-Pretrained Transformer. Without data it acts at random and learns nothing.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = DecisionPretrainedConfig
    evidence: EvidenceLevel = "L1"
    saved = ("network", "optimiser", "acting", "rng")

    def __init__(self, config: DecisionPretrainedConfig | None = None, **options: Any) -> None:
        self.config: DecisionPretrainedConfig = configure(type(self), config, options)
        if self.config.width % self.config.heads:
            raise UsageError(
                f"width must be a multiple of heads, not {self.config.width} with {self.config.heads}."
            )

    def begin(self, world: World, seed: int) -> None:
        """Start with an untrained network, and read the recorded transitions of each task.

        Raises:
            UsageError: if a task has too few transitions, or the environment has no known best actions.
        """
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self._make(Vocabulary.of(world.data, ends=True))
        self.tasks: list[Task] = self._read(histories(world.data), world)
        self.others: list[list[Task]] = []  # for each lifetime, those in other tasks
        if self.config.labels == "shuffled":
            tables = [task.best_by_observation() for task in self.tasks]
            for here in tables:
                others = [
                    task for task, there in zip(self.tasks, tables, strict=True) if differs(here, there)
                ]
                self.others.append(others)
            if not all(self.others):
                raise UsageError("There is one task, so that no other one has labels to shuffle with.")
        super().begin(world, seed)

    def _make(self, vocabulary: Vocabulary) -> None:
        """Make the network for a vocabulary."""
        import torch

        c = self.config
        self.vocabulary = vocabulary
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network: nn.Module = make_network(
                len(vocabulary.pieces), max(1, len(vocabulary.actions)), c.width, c.layers, c.heads
            )
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=c.learning_rate)

    def _read(self, lives: Sequence[Sequence[Episode]], world: World) -> list[Task]:
        """Return what was recorded of each lifetime as arrays, with the best action in each state."""
        env = world.copy().unwrapped if lives and world.copy else None
        if lives and not isinstance(env, HasBest):
            raise UsageError(
                "decision-pretrained needs an environment that knows its best action, as dark rooms do."
            )
        tasks = list[Task]()
        for life in lives:
            steps = [t for episode in life for t in episode]
            if len(steps) < self.config.transitions:
                raise UsageError(
                    f"An example needs {self.config.transitions} transitions of a task, but one has only "
                    f"{len(steps)}: record more episodes, or set fewer transitions."
                )
            assert isinstance(env, HasBest)
            best = [self.vocabulary.action(best_action(t, env.best)) - 1 for t in steps]
            tasks.append(Task(self._rows(steps), np.array(best)))
        return tasks

    def _rows(self, steps: Sequence[Transition]) -> Rows:
        """Return transitions as arrays without the axis of contexts: T = len(steps)."""
        v = self.vocabulary
        return Rows(
            np.stack([v.observation(t.state.observation) for t in steps]),
            np.array([v.action(t.action) for t in steps]),
            np.stack([v.observation(t.next_state.observation) for t in steps]),
            np.array([t.reward for t in steps]),
        )

    # ---- learning -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make one update: the best action in a query state, after each number of transitions."""
        import torch
        from torch.nn import functional

        if not self.tasks:
            return {}
        queries, contexts, labels = self._examples()
        inputs = torch.from_numpy(queries), *map(torch.from_numpy, contexts)
        logits = self.network(*inputs)  # (n, 1 + T, actions)
        logits = logits[:, 1:]  # (n, T, actions): as in the release, no loss before the first transition
        targets = torch.from_numpy(labels)[:, None].expand(logits.shape[:2])  # (n, T)
        # loss = - mean over j of log p(a* | q, D_1..j)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        correct = logits[:, -1].argmax(-1) == targets[:, -1]  # (n,): after all T transitions
        return {"loss": float(loss.detach()), "accuracy": float(correct.double().mean())}

    def _examples(self) -> tuple[IntArray, Rows, IntArray]:
        """Draw query states, shape (n, P), contexts of T transitions in random order, and labels, (n,)."""
        c = self.config
        queries, contexts, labels = [], [], []
        for _ in range(c.batch_size):
            number = int(self.rng.integers(len(self.tasks)))
            task = self.tasks[number]
            rows = self.rng.permutation(len(task.best))[: c.transitions]  # (T,)
            query = int(self.rng.integers(len(task.best)))
            label = task.best[query]
            if c.labels == "shuffled":  # what is best at such a state in another task
                label = self._elsewhere(self.others[number], task.rows.before[query])
            queries.append(task.rows.before[query])
            contexts.append([part[rows] for part in task.rows])
            labels.append(label)
        batch = Rows(*(np.stack(parts) for parts in zip(*contexts, strict=True)))
        return np.stack(queries), batch._replace(rewards=batch.rewards.astype(np.float32)), np.array(labels)

    def _elsewhere(self, others: Sequence[Task], observation: IntArray) -> int:
        """Return the best action at an observation in another task; if it never occurs, that of any state."""
        task = others[int(self.rng.integers(len(others)))]
        [same] = np.nonzero((task.rows.before == observation).all(1))
        row = self.rng.choice(same) if len(same) else self.rng.integers(len(task.best))
        return int(task.best[row])

    # ---- acting -------------------------------------------------------------------------------------

    def player(self, seed: int) -> PosteriorPlayer:
        """Return a player with separate lifetimes; it uses the weights of the agent."""
        return PosteriorPlayer(self, seed)

    def explain(self, state: State) -> Explanation:
        """Return the policy at the beginning of a lifetime."""
        [policy] = PosteriorPlayer(self, 0).policy([state])
        return Explanation({"policy": policy}, policy, "at the beginning of a lifetime")

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return vocabulary, weights, optimiser, lifetimes and random state."""
        return {"vocabulary": self.vocabulary.plain, **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self._make(Vocabulary(**state["vocabulary"]))
        self.acting = self.player(self.seed)
        super().load_state_dict(dict(state))


class Task(NamedTuple):
    """The recorded transitions of a lifetime, and the best action in the state of each, as a row less one."""

    rows: Rows
    best: IntArray

    def best_by_observation(self) -> dict[bytes, int]:
        """Return the best action at each observation that occurs."""
        return {row.tobytes(): int(best) for row, best in zip(self.rows.before, self.best, strict=True)}


def differs(here: Mapping[bytes, int], there: Mapping[bytes, int]) -> bool:
    """Return whether another action is best somewhere; several lifetimes may be of the same task.

    Args:
        here: The best action at each observation of a lifetime.
        there: The same of another one.
    """
    shared = here.keys() & there.keys()
    return not shared or any(here[observation] != there[observation] for observation in shared)


class PosteriorPlayer(Drawing):
    """A player that draws from p(a* | state, transitions of the episodes before).

    Args:
        agent: The agent.
        seed: Seed of the draws.
    """

    def __init__(self, agent: DecisionPretrained, seed: int) -> None:
        super().__init__(seed)
        self.agent = agent
        self.after: dict[int, list[str]] = {}  # by stream: the observation after each step of its lifetime

    def policy(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probability of each action of each state.

        Raises:
            UsageError: if a state has words or actions that are not in the recorded data.
        """
        import torch

        vocabulary = self.agent.vocabulary
        if not vocabulary.actions:
            return [np.full(len(state.options), 1 / len(state.options)) for state in states]
        probabilities: list[FloatArray] = [np.empty(0)] * len(states)
        contexts = [self._seen(state.stream) for state in states]
        for length in set(map(len, contexts)):  # contexts of one length need no padding
            rows = [i for i, context in enumerate(contexts) if len(context) == length]
            queries = np.stack([vocabulary.observation(states[i].observation) for i in rows])  # (n, P)
            given = self._arrays([contexts[i] for i in rows])
            with torch.no_grad():
                logits = self.agent.network(torch.from_numpy(queries), *map(torch.from_numpy, given))
            last = logits[:, -1].double().numpy()  # (n, actions)
            for row, logit in zip(rows, last, strict=True):
                listed = [vocabulary.action(action) - 1 for action in states[row].options]
                probabilities[row] = softmax(logit[listed])
        return probabilities

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Add steps to the lifetimes of their streams, and what was seen after each."""
        super().observe(transitions)
        for t in transitions:
            self.after.setdefault(t.stream, []).append(t.next_state.observation)

    def forget(self, streams: Sequence[int]) -> None:
        """Start new lifetimes in these streams."""
        super().forget(streams)
        for stream in streams:
            self.after.pop(stream, None)

    def _seen(self, stream: int) -> list[tuple[Lived, str]]:
        """Return the newest transitions of the finished episodes: each step, and the observation after it."""
        lived = self.lived.get(stream, [])
        finished = len(lived) - since(lived)
        seen = list(zip(lived, self.after.get(stream, []), strict=True))[:finished]
        return seen[-self.agent.config.transitions :]

    def _arrays(self, contexts: Sequence[Sequence[tuple[Lived, str]]]) -> Rows:
        """Return contexts of the same length as arrays."""
        v = self.agent.vocabulary
        n, length = len(contexts), len(contexts[0])
        before = [[v.observation(step.observation) for step, _ in context] for context in contexts]
        after = [[v.observation(text) for _, text in context] for context in contexts]
        actions = [[v.action(step.action) for step, _ in context] for context in contexts]
        rewards = [[step.reward for step, _ in context] for context in contexts]
        return Rows(
            np.array(before, dtype=np.int64).reshape(n, length, v.width),
            np.array(actions, dtype=np.int64).reshape(n, length),
            np.array(after, dtype=np.int64).reshape(n, length, v.width),
            np.array(rewards, dtype=np.float32).reshape(n, length),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return lifetimes, what was seen after each step, and random state."""
        return {
            **super().state_dict(),
            "after": [(stream, list(texts)) for stream, texts in self.after.items()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.after = {stream: list(texts) for stream, texts in state["after"]}


def make_network(pieces: int, actions: int, width: int, layers: int, heads: int) -> nn.Module:
    """Return the causal transformer over a query and transitions; the arguments are numbers of each."""
    import torch
    from torch import nn

    from hunch.rl.sequence import Block  # loads torch

    class Network(nn.Module):
        """A token is the query, or a transition: the sum of the embeddings of its four parts."""

        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Embedding(pieces + 1, width, padding_idx=0)
            self.after = nn.Embedding(pieces + 1, width, padding_idx=0)
            self.actions = nn.Embedding(actions + 1, width, padding_idx=0)
            self.rewards = nn.Linear(1, width)
            self.query = nn.Parameter(torch.zeros(width))  # marks the first token
            self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
            self.last = nn.LayerNorm(width)
            self.head = nn.Linear(width, actions)
            for table in (self.before, self.after, self.actions):
                nn.init.normal_(table.weight, std=0.02)
                nn.init.zeros_(table.weight[0])  # padding adds nothing

        def forward(
            self, queries: Tensor, before: Tensor, acted: Tensor, after: Tensor, rewards: Tensor
        ) -> Tensor:
            """Return the logits of the best action after each number of transitions, (n, 1 + T, actions)."""
            query = self.before(queries).sum(1) + self.query  # (n, P, width) -> (n, width)
            transitions = self.before(before).sum(2) + self.after(after).sum(2)  # (n, T, width)
            transitions = transitions + self.actions(acted) + self.rewards(rewards[..., None])
            x = torch.cat([query[:, None], transitions], 1)  # (n, 1 + T, width)
            for block in self.blocks:
                x = block(x)
            logits: Tensor = self.head(self.last(x))
            return logits

    return Network()


METHOD = Method(
    "decision-pretrained",
    DecisionPretrained,
    "a network that was told the best actions of many tasks, and acts by the transitions that it has seen",
    "Lee et al., Supervised Pretraining Can Learn In-Context Reinforcement Learning, NeurIPS 2023",
    environments="environments with recorded histories that know their best action, such as dark rooms",
    reads={"raw"},
    optional={"raw"},
    data="needed",
)
