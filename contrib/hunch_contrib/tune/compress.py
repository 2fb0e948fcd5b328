"""Sentence compression: a model keeps or drops each word of a text, and learns from a reward alone.

Algorithm (Ghalandari et al., "Efficient Unsupervised Sentence Compression by Fine-tuning Transformers with
Reinforcement Learning", ACL 2022)::

    for each text, in group streams that show the same one
        greedy  <- the likelier choice for each word
        best    <- the choice with the largest reward among group - 1 draws
    descend on  (R(greedy) - R(best)) log p(best)                            self-critical

The reward comes from the environment, or from another source (``--reward``). A prompt with a length
is ``N words : TEXT``; everything after the last colon between spaces is shortened.

Controls: ``choose=first`` keeps the first words and ``choose=random`` any, at the requested length,
and ``choose=climb`` changes the best choice so far for each text, as Schumann et al. (ACL 2020) do, with the
same number of rewards. They learn nothing about other texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import State, Transition, UsageError, World
from hunch.lm.speech import text_of
from hunch.methods.method import Method
from hunch.methods.policy.glam import WALKS
from hunch.methods.tune.agent import GroupConfig, Groups, RewardConfig, WritingAgent, shuffled
from hunch.methods.tune.recorded import examples
from hunch.ranges import MEMORY, NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.rl.policy import Decision, Step
from hunch.rl.settings import UpdateConfig
from hunch.roles.policy.settings import TextPolicyConfig

if TYPE_CHECKING:
    from hunch_contrib.tune.words import WordsPolicy

LENGTH: Final = re.compile(r"\s*(\d{1,9})\s+words?\s+:\s")
"""A request for a length, "N words : TEXT"; a text that begins with a number is none."""


@dataclass(frozen=True, kw_only=True)
class CompressConfig(RewardConfig, GroupConfig):
    """Settings of extractive compression by a self-critical policy gradient."""

    lm: str = ""
    """Causal model to train: hf:<name, folder or run>, with ?train=lora for adapters, or scratch for a new
    small one. Default: the small pocket?corpus=walks of this project."""
    choose: Literal["policy", "first", "random", "climb"] = "policy"
    """Choice of words: by the policy, or by a control: the first words, random words, or hill climbing."""
    keep: Share = 0.5
    """For the controls: share of words that are kept (climb: at first), if no length is requested."""
    group: PositiveInt = 9
    """Choices per text: the greedy one, and the others drawn (paper: 101)."""
    episodes: PositiveInt = 32
    """Choices per update, two per text: the greedy and the best one (paper: 8)."""
    micro: PositiveInt = field(default=64, metadata=MEMORY)
    """Texts per forward and backward pass; gradients are accumulated over a batch."""
    entropy: NonNegativeFloat = 0.0
    """Weight of the policy's entropy in the objective."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate, for a model under a million weights (our choice; paper: 1e-5)."""
    temperature: NonNegativeFloat = 0.0
    """Temperature in evaluations; 0 keeps the words with probability above 0.5 (paper)."""


class Compress(WritingAgent):
    """The agent of compression; arguments as for :class:`~hunch.methods.tune.agent.WritingAgent`."""

    config_class: ClassVar[type[Any]] = CompressConfig
    greedy_first = True
    saved = ("words", "known", *WritingAgent.saved)
    policy: WordsPolicy  # type: ignore[assignment]

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that the settings allow learning, and that shuffled rewards are learnt."""
        super().check(config, specs)
        if config.shuffle and config.choose != "policy":
            raise UsageError(f"shuffle is a control of the policy, and choose={config.choose} has none.")

    def make_policy(self, seed: int) -> WordsPolicy:  # type: ignore[override]
        """Return the policy with the model's initial weights."""
        from hunch_contrib.tune.words import WordsPolicy  # loads torch

        return WordsPolicy(self.lm, TextPolicyConfig(width=0), seed)

    def reference_spec(self) -> str:
        """Return that there is no reference."""
        return "none"

    def prompt_room(self) -> int:
        """Return the room that a prompt needs besides itself."""
        return 1

    def objective(self) -> UpdateConfig:
        """Return the objective, and how it is optimised: one step on the greedy and the best choices."""
        c = self.config
        return UpdateConfig(
            # A = R(best) - R(greedy), for all words of a choice together.
            advantage="self_critical",
            unit="text",
            gamma=1.0,
            whiten=False,
            # log p(choice) A: with one gradient step PPO's surrogate has this gradient.
            entropy=c.entropy,
            epochs=1,
            batch_size=0,
            micro=c.micro,
            learning_rate=c.learning_rate,
            max_norm=1.0,
        )

    def make_memory(self) -> Best:
        """Return a memory that keeps two choices of each group to learn from."""
        return Best(self.group, self.rng if self.config.shuffle else None)

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights; a model with a growing vocabulary adds the environment's words."""
        super().begin(world, seed)
        # Once the best choice is taken, only two are left: the memory deals the rewards before.
        self.shuffles = False
        self.known: dict[str, tuple[tuple[int, ...], float]] = {}  # climb: best choice by text
        self.lm.take(text_of(t.state.observation) for t in examples(world))

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Draw choices from the policy, greedily for the first of each group, or choose by the control."""
        if self.config.choose != "policy":
            return [self.controlled(state, rng) for state in states]
        return super().decide(states, rng)

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Return the likelier choice per word, the control's choice, or the climber's best one so far."""
        if self.config.choose != "policy":
            return [self.controlled(state, rng, tries=False) for state in states]
        return super().write(states, rng)

    def controlled(self, state: State, rng: np.random.Generator, tries: bool = True) -> Decision:
        """Return a control's choice; with ``tries``, climbing changes its best choice."""
        from hunch_contrib.tune.words import kept, words_of  # loads torch

        choose = self.config.choose
        words = words_of(state)
        asked = LENGTH.match(state.observation)
        length = int(asked[1]) if asked else round(self.config.keep * len(words))
        length = min(len(words), length)
        bits = np.zeros(len(words), dtype=int)
        if choose == "first":
            bits[:length] = 1
        else:
            bits[rng.permutation(len(words))[:length]] = 1
        if choose == "climb" and state.observation in self.known:
            best, _ = self.known[state.observation]
            bits = np.array(best)
            if tries:
                bits = changed(bits, rng)
        return Decision(kept(words, bits.tolist()), tuple(bits.tolist()))

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep choices for the update; climbing keeps the best choice for each text."""
        from hunch_contrib.tune.words import places_of, words_of  # loads torch

        if self.config.choose == "policy":
            super().observe(transitions)
        elif self.config.choose == "climb":
            for t in transitions:
                _, best_reward = self.known.get(t.state.observation, ((), -np.inf))
                if t.reward > best_reward:
                    bits = places_of(words_of(t.state), t.action)
                    self.known[t.state.observation] = bits, float(t.reward)

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the mean number of kept words, as a metric."""
        return {"kept": float(np.mean([len(decision.text.split()) for decision in decisions]))}


class Best(Groups):
    """A memory of groups that keeps the greedy choice and the best other one.

    Args:
        size: Choices per text.
        dealer: Deals the rewards of each complete group anew among all of its choices (control); None leaves
            them as they are.
    """

    def __init__(self, size: int, dealer: np.random.Generator | None = None) -> None:
        super().__init__(size)
        self.dealer = dealer

    def add(self, step: Step) -> None:
        """Add the next step of a stream; its group's rewards are dealt anew once the group is complete."""
        super().add(step)
        t = step.transition
        if self.dealer is None or not t.done:
            return
        group = t.stream // self.size, self.counts[t.stream] - 1
        choices = self.finished[group]
        if len(choices) == self.size:
            streams = sorted(choices)
            [dealt] = shuffled([[choices[stream] for stream in streams]], self.dealer)
            self.finished[group] = dict(zip(streams, dealt, strict=True))

    def whole(self) -> list[list[list[Step]]]:
        """Return these two choices of each complete group, the greedy one first."""

        def reward(episode: list[Step]) -> float:
            return sum(step.transition.reward for step in episode)

        groups = []
        for greedy, *drawn in super().whole():
            groups.append([greedy, max(drawn, key=reward)])
        return groups


def changed(bits: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return choices in which a kept and a dropped word are exchanged, or one word's choice is inverted."""
    bits = bits.copy()
    kept_words = np.flatnonzero(bits)
    dropped_words = np.flatnonzero(bits == 0)
    if len(kept_words) and len(dropped_words) and rng.random() < 0.5:
        bits[[rng.choice(kept_words), rng.choice(dropped_words)]] ^= 1
    else:
        bits[rng.integers(len(bits))] ^= 1
    return bits


METHOD = Method(
    "compress",
    Compress,
    "a model keeps or drops each word of a text, and learns from a reward without reference texts",
    "Ghalandari et al., Efficient Unsupervised Sentence Compression by Fine-tuning Transformers with "
    "Reinforcement Learning, ACL 2022",
    leaf="RL4LLM / fine-tuning",
    environments="free text of one step that takes part of the words of its observation",
    acts="text",
    lm=WALKS,
    suggested=("scratch?width=64&layers=2", "hf:<name or folder>"),
    roles=("policy",),
    control="first words, random words, and hill climbing with as many rewards",
    data="none",
    changeable=("temperature",),
)
