"""Decision Transformer on the body of a language model: does pretraining on text help offline RL?

Algorithm (Chen et al., NeurIPS 2021, with a pretrained body as in Reid et al., "Can Wikipedia Help Offline
Reinforcement Learning?", 2022)::

    a step is three tokens: return to go R_t = r_t + r_(t+1) + ..., state s_t, action a_t
    repeat: draw K consecutive steps of recorded episodes
            maximise  sum over t of log p(a_t | R_1, s_1, a_1, ..., R_t, s_t)
    act:    R_1 = the target return;  a_t ~ p(. | the last K steps);  R_(t+1) = R_t - r_t

A model of up to 50 million weights is trained whole, and a larger one by low-rank adapters, unless its spec
says ``train=all``. Its word embeddings are not used: returns, states and actions have
separate embeddings, which are trained in any case. A state is embedded by the words of its text, and by the
values of its numbers, so that a number that was never recorded can be read.

Reid et al. also pull these embeddings towards those of words; here they are not pulled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from hunch.core import EvidenceLevel, Explanation, FloatArray, State, UsageError, World
from hunch.lm import trainable
from hunch.methods.in_context.lifetime import Drawing, InContext, Lived, since
from hunch.methods.method import Method
from hunch.methods.settings import configure
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, PositiveInt
from hunch.rl.lifetimes import pieces

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class DecisionTransformerConfig:
    """Settings of the Decision Transformer."""

    lm: str = ""
    """Causal model whose body is trained, hf:<name or folder>; above 50 million weights by adapters, unless
    train=all is in the spec. Default: a small one with random weights."""
    context: PositiveInt = 20
    """Number of latest steps that the network reads (Reid et al.)."""
    target: float | None = None
    """Target return. Default: the best recorded return."""
    batch_size: PositiveInt = 64
    """Parts of episodes per update (Reid et al.)."""
    learning_rate: PositiveFloat = 3e-4
    """Learning rate of Adam (our choice)."""
    warmup: PositiveInt = 50
    """Updates in which the learning rate rises from 0 to its full value (our choice)."""


SMALL = "scratch?width=64&layers=3&heads=4"


class Steps(NamedTuple):
    """Steps of an episode as arrays of length T, the number of steps."""

    togo: FloatArray  # return to go, divided by the largest one recorded
    states: FloatArray  # shape (T, features)
    actions: Any  # rows of the embedding, from 1; 0 for an action that is still to choose
    times: Any  # place in the episode


class Features:
    """Features of texts: 1 for each word that occurs, and the value of each number at its place."""

    def __init__(self, names: Sequence[str] = (), scales: Sequence[float] = ()) -> None:
        self.plain = {"names": list(names), "scales": list(scales)}
        self.rows = {name: row for row, name in enumerate(names)}
        self.scales = np.array(scales)
        self._known: dict[str, FloatArray] = {}  # an episode is read again at each of its steps

    @classmethod
    def of(cls, texts: Sequence[str]) -> Features:
        """Return the features of recorded texts; each number is divided by the largest value at its place."""
        largest: dict[str, float] = {}
        for text in dict.fromkeys(texts):
            for name, value in _valued(text):
                largest[name] = max(abs(value), largest.get(name, 0.0))
        return cls(sorted(largest), [largest[name] or 1.0 for name in sorted(largest)])

    def __call__(self, text: str) -> FloatArray:
        """Return the features of a text, shape (features,).

        Raises:
            UsageError: if it has a word that the recorded data never show.
        """
        if text not in self._known:
            features = np.zeros(len(self.rows))
            for name, value in _valued(text):
                if name not in self.rows:
                    raise UsageError(f"The recorded data never have {name!r} where {text!r} has it.")
                row = self.rows[name]
                features[row] = value / self.scales[row]
            self._known[text] = features
        return self._known[text]


def _valued(text: str) -> list[tuple[str, float]]:
    """Return the words of a text with 1, and for each number the word before it, its place and its value."""
    parts = [piece.rsplit(" ", 1) for piece in pieces(text)]
    return [(part[0], float(part[1])) if len(part) == 2 else (part[0], 1.0) for part in parts]


class DecisionTransformer(InContext):
    """The agent of the Decision Transformer. Without recorded episodes it acts at random and learns nothing.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that is not causal or reads fewer
            steps.
    """

    config_class: ClassVar[type[Any]] = DecisionTransformerConfig

    def __init__(self, config: DecisionTransformerConfig | None = None, **options: Any) -> None:
        self.config: DecisionTransformerConfig = configure(type(self), config, options)
        self.lm = trainable(self.config.lm or SMALL)
        if self.lm.network.config.is_encoder_decoder:
            raise UsageError(f"{self.lm.name} has an encoder and a decoder: lm must be a causal model.")
        reads = self.lm.model.context
        if reads is not None and 3 * self.config.context > reads:
            raise UsageError(
                f"{self.lm.name} reads at most {reads} tokens, and a step is three: set context to at most "
                f"{reads // 3}."
            )

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the model."""
        return self.lm.evidence

    def begin(self, world: World, seed: int) -> None:
        """Start from the model's weights, and read the recorded episodes."""
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.updates = 0
        self.lm = trainable(self.config.lm or SMALL, seed=seed)
        self.models = {"lm": self.lm}
        returns = [sum(t.reward for t in episode) for episode in world.data]
        steps = [t for episode in world.data for t in episode]
        best = max(returns, default=0.0)
        scale = max(map(abs, returns), default=0.0) or 1.0
        self.known: dict[str, Any] = {
            "actions": sorted({action for t in steps for action in t.state.actions or (t.action,)}),
            "longest": max(map(len, world.data), default=1),
            "target": best if self.config.target is None else self.config.target,
            "scale": scale,
        }
        self._make(Features.of([t.state.observation for t in steps]))
        self.episodes = []
        for episode, total in zip(world.data, returns, strict=True):
            lived = [Lived(t.state.observation, t.action, t.reward, t.done) for t in episode]
            self.episodes.append(self.steps(lived, total))
        super().begin(world, seed)

    def _make(self, features: Features) -> None:
        """Make the embeddings around the body."""
        import torch

        from hunch.lm.training import Learner  # loads torch

        self.features = features
        width = self.lm.dim
        self.row = {action: row for row, action in enumerate(self.known["actions"], 1)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.around = torch.nn.ModuleDict(
                {
                    "togo": torch.nn.Linear(1, width),
                    "states": torch.nn.Linear(max(1, len(features.rows)), width),
                    "actions": torch.nn.Embedding(len(self.row) + 1, width),
                    "times": torch.nn.Embedding(self.known["longest"], width),
                    "norm": torch.nn.LayerNorm(width),
                    "head": torch.nn.Linear(width, max(1, len(self.row))),
                }
            )
        weights = [*self.around.parameters(), *self.lm.parameters()]
        self.learner = Learner(torch.optim.Adam(weights, lr=self.config.learning_rate), limited=weights)

    def steps(self, lived: Sequence[Lived], total: float) -> Steps:
        """Return the steps of an episode as arrays, with the return to go of each.

        Args:
            lived: The steps, from the beginning of the episode.
            total: The return of the episode, or the target return.
        """
        n = len(lived)
        # R_t = R - (r_1 + ... + r_(t-1))
        paid = np.append(0.0, np.cumsum([step.reward for step in lived])[:-1]) if lived else np.zeros(0)
        return Steps(
            togo=(total - paid) / self.known["scale"],
            states=np.array([self.features(step.observation) for step in lived]).reshape(n, -1),
            actions=np.array([self.row.get(step.action, 0) for step in lived], dtype=np.int64),
            times=np.minimum(np.arange(n), self.known["longest"] - 1),
        )

    # ---- learning -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make one update, which maximises the likelihood of the actions in parts of recorded episodes."""
        import torch
        from torch.nn import functional

        if not self.episodes:
            return {}
        batch = [_part(steps, last, self.config.context) for steps, last in self._drawn()]
        logits = self.logits(batch)  # (n, T, actions)
        targets = _padded([torch.from_numpy(steps.actions) - 1 for steps in batch], -1)
        targets = targets.to(logits.device)  # (n, T), -1 for padding
        # loss = - mean log p(a_t | R_1, s_1, a_1, ..., R_t, s_t)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        self.updates += 1
        rate = self.config.learning_rate * min(1.0, self.updates / self.config.warmup)
        correct = (logits.argmax(-1) == targets)[targets >= 0]  # (steps without padding,)
        return {"loss": self.learner.update(loss, rate), "accuracy": float(correct.double().mean())}

    def _drawn(self) -> list[tuple[Steps, int]]:
        """Draw recorded steps at random; return each one's episode, and its place there."""
        lengths = np.array([len(steps.times) for steps in self.episodes])
        chosen = self.rng.choice(len(lengths), self.config.batch_size, p=lengths / lengths.sum())
        return [(self.episodes[i], int(self.rng.integers(lengths[i]))) for i in chosen]

    def logits(self, batch: Sequence[Steps]) -> Tensor:
        """Return the logits of the actions of each step, shape (n, steps, actions)."""
        import torch

        device = self.lm.network.device
        togo = _padded([torch.from_numpy(steps.togo) for steps in batch]).to(device)  # (n, T)
        states = _padded([torch.from_numpy(steps.states) for steps in batch]).to(device)  # (n, T, features)
        actions = _padded([torch.from_numpy(steps.actions) for steps in batch]).to(device)  # (n, T)
        times = _padded([torch.from_numpy(steps.times) for steps in batch]).to(device)  # (n, T)

        # Three tokens per step, R_t, s_t, a_t, each plus the embedding of its time: (n, T, 3, width).
        around = self.around
        of_time = around["times"](times)
        tokens = torch.stack(
            [
                around["togo"](togo.float()[..., None]) + of_time,
                around["states"](states.float()) + of_time,
                around["actions"](actions) + of_time,
            ],
            2,
        )
        n, t, _, width = tokens.shape
        inputs = around["norm"](tokens).view(n, 3 * t, width)
        network = self.lm.network
        with self.lm.counted(n, 3 * n * t):
            # The body may compute in 16 bits; the layers around it are trained, and stay in 32.
            body = network.base_model(inputs_embeds=inputs.to(network.dtype), use_cache=False)
        # The action is predicted at the state's token, which sees R_1, s_1, a_1, ..., R_t, s_t.
        hidden = body.last_hidden_state.view(n, t, 3, width)[:, :, 1].float()  # (n, T, width)
        logits: Tensor = around["head"](hidden)  # (n, T, actions)
        return logits

    # ---- acting -------------------------------------------------------------------------------------

    def player(self, seed: int) -> Wanting:
        """Return a player with separate episodes; it uses the weights of the agent."""
        return Wanting(self, seed)

    def explain(self, state: State) -> Explanation:
        """Return the policy at the beginning of an episode."""
        policy = Wanting(self, 0).policy([state])[0]
        return Explanation({"policy": policy}, policy, "at the beginning of an episode")

    # ---- state --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume exactly; see :class:`hunch.core.Agent`."""
        return {
            "known": self.known,
            "features": self.features.plain,
            "body": self.lm.state_dict(),
            "around": self.around.state_dict(),
            "optimiser": self.learner.state_dict(),
            "acting": self.acting.state_dict(),
            "rng": self.rng.bit_generator.state,
            "updates": self.updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.known = state["known"]
        self._make(Features(**state["features"]))
        self.lm.load_state_dict(state["body"])
        self.around.load_state_dict(state["around"])
        self.learner.load_state_dict(state["optimiser"])
        self.rng.bit_generator.state = state["rng"]
        self.updates = state["updates"]
        self.acting = self.player(self.seed)
        self.acting.load_state_dict(state["acting"])


def _part(steps: Steps, last: int, context: int) -> Steps:
    """Return the steps up to a place, at most as many as the network reads."""
    return Steps(*(part[max(0, last + 1 - context) : last + 1] for part in steps))


def _padded(rows: Sequence[Tensor], value: float = 0) -> Tensor:
    """Pad at the end, where no earlier step sees it."""
    import torch

    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)


class Wanting(Drawing):
    """A player that starts every episode with the agent's target return.

    Args:
        agent: The agent.
        seed: Seed of the draws.
    """

    def __init__(self, agent: DecisionTransformer, seed: int) -> None:
        super().__init__(seed)
        self.agent = agent

    def policy(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probability of each action of each state, given its episode so far.

        Raises:
            UsageError: if a state has words or actions that are not in the recorded data.
        """
        import torch

        agent = self.agent
        if not agent.row:
            return [np.full(len(state.options), 1 / len(state.options)) for state in states]
        parts = []
        for state in states:
            steps = agent.steps(self._episode(state), agent.known["target"])
            parts.append(_part(steps, len(steps.times) - 1, agent.config.context))
        with torch.no_grad():
            logits = agent.logits(parts).double().cpu().numpy()  # (n, T, actions)
        policies = []
        for state, part, logit in zip(states, parts, logits, strict=True):
            last = len(part.times) - 1
            policies.append(self._policy(logit[last], state))
        return policies

    def _episode(self, state: State) -> list[Lived]:
        """Return the steps of the episode so far, and the one that is to come."""
        lived = self.lived.get(state.stream, [])
        return [*lived[len(lived) - since(lived) :], Lived(state.observation, "", 0.0, False)]

    def _policy(self, logits: FloatArray, state: State) -> FloatArray:
        """Return the probability of each admissible action, from the logits of all, shape (actions,)."""
        for action in state.options:
            if action not in self.agent.row:
                raise UsageError(f"The action {action!r} is not in the recorded data.")
        return softmax(logits[[self.agent.row[action] - 1 for action in state.options]])


METHOD = Method(
    "decision-transformer",
    DecisionTransformer,
    "read recorded episodes with their returns, and act for a target return; the body may be pretrained",
    "Chen et al., Decision Transformer, NeurIPS 2021; pretrained bodies: Reid et al., Can Wikipedia Help "
    "Offline Reinforcement Learning?, 2022",
    leaf="LLM4RL / policy",
    data="needed",
)
