"""Base class of agents whose language model writes the actions and is trained on the rewards.

    in group streams side by side, with the same beginning of their n-th episodes
        text  ~  p_LM(. | prompt(s))               token by token; store its log-probabilities
    once whole groups with enough episodes have ended
        A     <- advantages                        from a learnt value, or from the others of the group
        update the weights, regularised towards a reference

An episode is an answer to a prompt, or a conversation. Updates do not wait: an episode that goes on
during an update keeps the log-probabilities of its texts, and the ratio corrects for the lag. Rewards may
be replaced: ``Rewarded(agent, source, extrinsic=0)``, or ``--reward``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from hunch.core import Agent, HunchWarning, State, UsageError, World
from hunch.envs.prompts import read
from hunch.envs.wrappers import REFUSED
from hunch.lm import trainable
from hunch.methods.policy.agent import PolicyAgent
from hunch.methods.policy.kept import by_stream, listed
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.rl.policy import Decision, Step
from hunch.rl.settings import GROUPED, UpdateConfig
from hunch.roles.policy.settings import TextPolicyConfig
from hunch.roles.prior.language import WORDING
from hunch.roles.reward.rewarded import Rewarded, named_source

if TYPE_CHECKING:
    from torch import Tensor

    from hunch.lm.training import Trainable
    from hunch.roles.policy.text import TextPolicy

WRITES: Final[Mapping[str, Any]] = {
    **{"start": "weights", "horizon": 128, "gamma": 1.0, "anneal": False, "scale": 1.0, "max_norm": 1.0},
    **{"kl_end": None, "target_kl": 0.0, "separate": False, "warmup": 0, "value_batch_size": 128},
    **{"value_rate": 0.0, "clip_value": True},
}
"""Settings that are fixed in all methods whose model writes."""
DRAWN: Final = 32
"""Texts of the file ``texts`` per gradient step (ours)."""
FLAT: Final = 10
"""Number of first updates without different returns in any group, after which a warning is given (ours)."""


@dataclass(frozen=True, kw_only=True)
class WritingConfig(TextConfig, TextPolicyConfig, UpdateConfig):
    """Settings of a language model that writes and is trained."""

    group: PositiveInt = 1
    """Answers to one prompt: this many parallel environments begin each episode with the same seed."""
    episodes: PositiveInt = 64
    """Episodes per update, in whole groups."""
    reference: str = "start"
    """Reference model of the KL divergence: start (the model before training), none, or a spec."""
    reward: str = ""
    """Reward source that replaces the environment's rewards, as module:Class."""
    shuffle: bool = False
    """Shuffle the returns within each group: a control, in which rewards carry no information."""
    ptx: NonNegativeFloat = 0.0
    """Weight of the log-likelihood per token of the texts in --texts (InstructGPT)."""
    texts: str = ""
    """With ptx: file of JSON lines, each with a text, or with a prompt and its completion."""
    batch_size: NonNegativeInt = 0
    """Texts per gradient step; 0 for all texts of an update."""
    learning_rate: PositiveFloat = 3e-4
    """Adam learning rate, for about a million weights (our choice; about 1e-6 for billions)."""
    entropy: NonNegativeFloat = 0.0
    """Weight of the policy's entropy in the objective."""
    listed: bool = field(default=True, metadata=LATER)
    """List the admissible actions in the prompt. If off, the prompt is only the transcript, and the end token
    of an action counts."""


class WritingAgent(TextAgent, PolicyAgent):
    """An agent whose language model writes, and is trained by policy gradients."""

    config_class: ClassVar[type[Any]] = WritingConfig
    fixed: ClassVar[Mapping[str, Any]] = WRITES
    recorded: ClassVar[bool] = True
    policy: TextPolicy
    kept: Groups
    act = PolicyAgent.act
    observe = PolicyAgent.observe

    def __init__(self, config: Any = None, *, lm: Trainable | None = None, **options: Any) -> None:
        super().__init__(config, lm=lm, **options)
        c = self.config
        self.group: int = c.group
        self.listed = c.listed
        if c.reference != "start":
            self.reference = None if c.reference == "none" else trainable(c.reference)
        if self.reference not in (None, "start"):
            self.models = {**self.models, "reference": self.reference}
        self.policy = self.make_policy(0)  # refuses settings that do not fit the model
        self.texts = _read_texts(c.texts) if c.ptx and c.texts else []

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before a model is loaded that the settings allow learning."""
        super().check(config, specs)
        if config.advantage in GROUPED and config.group < 2:
            raise UsageError("The advantage compares the answers of a group: set group to at least 2.")
        if (config.kl or config.kl_aim) and config.reference == "none":
            raise UsageError("There is no reference from which a divergence could be measured: set kl to 0.")
        if config.kl_aim and not config.kl:
            raise UsageError("kl_aim adapts the weight kl, which must be above 0 at the start.")
        if bool(config.ptx) != bool(config.texts):
            raise UsageError("ptx is the weight of the file texts: give both, or neither.")
        if config.ptx:
            _read_texts(config.texts)
        if config.reward:
            named_source(config.reward)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, Any]) -> Agent:
        """Make the agent; with ``reward``, wrap it in one that replaces the environment's rewards."""
        agent = cls(config)
        return Rewarded(agent, named_source(config.reward)(), extrinsic=0.0) if config.reward else agent

    @property
    def wording(self) -> str:
        """The version of the prompts."""
        return WORDING

    def policy_settings(self) -> TextPolicyConfig:
        """Return the settings of the policy, which has a value."""
        c = self.config
        return TextPolicyConfig(max_tokens=c.max_tokens, start=c.start, width=c.width)

    def make_memory(self) -> Groups:
        """Return the memory of unfinished episodes, and of finished ones by group."""
        return Groups(self.group)

    def begin(self, world: World, seed: int) -> None:
        """Start with the model as it was before training; recorded data are ignored.

        Raises:
            UsageError: if a prompt of the environment is too long for the model.
        """
        PolicyAgent.begin(self, world, seed)
        self.flat = 0
        self.lm.heads([self.policy.prompt(state) for state in world.prompts], self.config.max_tokens)
        if self.texts:
            self.learner.extra = self.forgetting

    # ---- acting -------------------------------------------------------------------------------------

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write a text in each state, at temperature 1; greedily where a greedy answer is the baseline."""
        group, greedy = self.group, self.config.advantage == "self_critical"
        return self.drawn(states, rng, [float(not greedy or own.stream % group > 0) for own in states])

    # ---- learning -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make the update if enough episodes have ended in whole groups, and return its metrics."""
        groups = self.kept.whole()
        if sum(map(len, groups)) < self.config.episodes:
            return {}
        self.kept.clear()
        if self.config.shuffle:
            groups = shuffled(groups, self.rng)
        episodes = [episode for own in groups for episode in own]
        numbers = [i for i, own in enumerate(groups) for _ in own] if self.group > 1 else ()
        told = self.learner.update(episodes, self.rng, parts=self.parts, groups=numbers)
        self.flat = self.flat + 1 if told.get("flat_groups") == 1 else 0
        if self.flat == self.learner.updates == FLAT:
            warnings.warn(_FLAT, HunchWarning, stacklevel=2)
        return {**told, **figures(episodes)}

    def forgetting(self, rng: np.random.Generator) -> Tensor:
        """Return the weighted loss of some of the texts in ``texts``, which prevents forgetting."""
        few = [self.texts[i] for i in rng.integers(len(self.texts), size=DRAWN)]
        prompts, texts = zip(*few, strict=True)
        loss: Tensor = -self.config.ptx * self.policy.likelihood(prompts, texts)
        return loss


_FLAT: Final = f"Answers to each prompt had equal rewards in the first {FLAT} updates: nothing was learnt."


class Groups:
    """Unfinished episodes, and finished ones by group until the whole group has finished.

    Args:
        size: Streams per group: neighbours, whose n-th episodes begin alike.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.open: dict[int, list[Step]] = {}  # by stream
        self.ended: dict[int, int] = {}  # by stream: number of its finished episodes
        self.over: dict[tuple[int, int], dict[int, list[Step]]] = {}  # by group and number, then by stream

    def add(self, step: Step) -> None:
        """Add the next step of a stream."""
        t = step.transition
        if not math.isfinite(t.reward):
            raise UsageError(f"The reward of {t.action!r} is {t.reward}: it must be a finite number.")
        self.open.setdefault(t.stream, []).append(step)
        if t.done:
            number = self.ended.get(t.stream, 0)
            self.ended[t.stream] = number + 1
            self.over.setdefault((t.stream // self.size, number), {})[t.stream] = self.open.pop(t.stream)

    def whole(self) -> list[list[list[Step]]]:
        """Return the episodes of each complete group."""
        return [
            [own[stream] for stream in sorted(own)]
            for _, own in sorted(self.over.items())
            if len(own) == self.size
        ]

    def clear(self) -> None:
        """Forget the complete groups."""
        self.over = {key: own for key, own in self.over.items() if len(own) < self.size}

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        over = [(key, listed(own)) for key, own in self.over.items()]
        return {"open": listed(self.open), "ended": dict(self.ended), "over": over}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.open, self.ended = by_stream(state["open"]), dict(state["ended"])
        self.over = {tuple(key): by_stream(own) for key, own in state["over"]}


def shuffled(groups: Sequence[list[list[Step]]], rng: np.random.Generator) -> list[list[list[Step]]]:
    """Shuffle the returns within each group; each return becomes the reward of an episode's last step.

    If there are no groups, the returns of all episodes are shuffled.
    """
    if len(groups[0]) == 1 < len(groups):
        [every] = shuffled([[episode for own in groups for episode in own]], rng)
        return [[episode] for episode in every]
    dealt = []
    for own in groups:
        paid = [sum(t.reward for t, _ in own[i]) for i in rng.permutation(len(own))]
        dealt.append([_paid(episode, total) for episode, total in zip(own, paid, strict=True)])
    return dealt


def _paid(episode: Sequence[Step], total: float) -> list[Step]:
    rewards = [0.0] * (len(episode) - 1) + [total]
    return [Step(replace(t, reward=own), d) for (t, d), own in zip(episode, rewards, strict=True)]


def figures(episodes: Sequence[Sequence[Step]]) -> dict[str, float]:
    """Return metrics of the texts of an update: tokens, and shares of distinct, cut and refused texts."""
    refused = [t.event == REFUSED for episode in episodes for t, _ in episode]
    texts = [step.decision for episode in episodes for step in episode]
    return {
        "tokens": float(np.mean([len(own.tokens) for own in texts])),
        "distinct": len({own.text for own in texts}) / len(texts),
        "cut": float(np.mean([not own.finished for own in texts])),
        **({"refused": float(np.mean(refused))} if any(refused) else {}),
    }


def _read_texts(file: str) -> list[tuple[Any, str]]:
    """Return prompts and the texts after them; of a text alone the first word is the prompt."""
    rows = read(file, "text", "completion")
    parts = [
        (r["prompt"], "", r["completion"]) if "completion" in r else r["text"].partition(" ") for r in rows
    ]
    return [(prompt, space + rest) for prompt, space, rest in parts]
