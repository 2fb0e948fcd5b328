"""Base class of agents whose language model writes the actions and is trained on the rewards.

    in group streams side by side, with the same beginning of their n-th episodes
        text  ~  p_LM(. | prompt(s))               token by token; store its log-probabilities
    once whole groups with enough episodes have ended
        A     <- advantages                        from a learnt value, or from the others of the group
        update the weights, regularised towards a reference

Such an agent has a policy (:class:`hunch.roles.policy.text.TextPolicy`), an objective (``objective``, which
each method's file writes out), and an update (``learner``, an object of :mod:`hunch.rl.policy_gradient`).

An episode is an answer to a prompt, or a conversation. Updates do not wait: an episode that goes on
during an update keeps the log-probabilities of its texts, and the ratio corrects for the lag. Rewards may
be replaced: ``Rewarded(agent, source, extrinsic=0)``, or ``--reward``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from hunch.core import Agent, Explanation, HunchWarning, State, Transition, UsageError, World
from hunch.envs.prompts import read
from hunch.envs.wrappers import REFUSED
from hunch.lm import trainable
from hunch.methods.policy.kept import decisions_of, plain_decisions, plain_streams, streams_of
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import LATER, NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.rl.policy import Decision, Step, cut, taken
from hunch.rl.settings import UpdateConfig
from hunch.roles.policy.settings import TextPolicyConfig
from hunch.roles.prior.language import WORDING
from hunch.roles.reward.rewarded import Rewarded, named_source

if TYPE_CHECKING:
    from hunch.lm.training import Learner, Trainable

DRAWN: Final = 32
"""Texts of the file ``texts`` per gradient step (ours)."""
FAR: Final = 0.1
"""KL divergence of an update of a large model, in nats per token or choice, above which a warning is given
(ours). Small models that learn to write from nothing move further."""
ROUNDING: Final = 1e-6
"""Relative difference of returns below which they count as equal."""
FLAT: Final = 10
"""Number of first updates without different returns in any group, after which a warning is given (ours)."""


# ---- settings, by subject ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Settings of the rewards from which is learnt."""

    reward: str = ""
    """Reward source that replaces the environment's rewards, as module:Class."""
    shuffle: bool = False
    """Shuffle the returns within each group: a control, in which rewards carry no information."""


@dataclass(frozen=True, kw_only=True)
class WritingConfig(RewardConfig, TextConfig):
    """Settings of a language model that writes, and learns from what it has written."""

    episodes: PositiveInt = 64
    """Episodes per update, in whole groups."""
    learning_rate: PositiveFloat = 3e-4
    """Adam learning rate, for about a million weights (our choice; about 1e-6 for billions)."""
    reference: str = "start"
    """Reference model of the KL divergence: start (the model before training), none, or a spec."""


@dataclass(frozen=True, kw_only=True)
class RegularisedConfig(WritingConfig):
    """Settings of a policy gradient that is regularised by entropy and a reference."""

    entropy: NonNegativeFloat = 0.0
    """Weight of the policy's entropy in the objective."""
    kl: NonNegativeFloat = 0.1
    """Weight of the KL divergence from the reference (RL4LMs; InstructGPT: 0.02)."""
    kl_aim: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """KL divergence per text, in nats, to which the weight kl is adapted after each update (Ziegler et al.,
    2019); 0 keeps the weight fixed."""
    stop_kl: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Stop the run where the KL divergence from the reference exceeds this many nats per text; 0 for
    never."""
    stop_entropy: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Stop the run where the entropy falls below this many nats per token; 0 for never."""


@dataclass(frozen=True, kw_only=True)
class GroupConfig:
    """The setting of methods that compare answers to the same prompt."""

    group: PositiveInt = 8
    """Answers to one prompt: this many parallel environments begin each episode with the same seed."""


@dataclass(frozen=True, kw_only=True)
class FlatConfig:
    """The setting of groups whose answers all score alike."""

    drop_flat: bool = field(default=False, metadata=LATER)
    """Leave out of an update the groups whose returns are all equal: they teach nothing. Only the KL
    divergence and the entropy of their answers would count."""


@dataclass(frozen=True, kw_only=True)
class ValueConfig:
    """Settings of methods that learn a value for each token."""

    gae: Share = 0.95
    """Lambda of generalised advantage estimation (RL4LMs)."""
    width: PositiveInt = 128
    """Width of the two hidden layers of the value's perceptron (ours)."""


@dataclass(frozen=True, kw_only=True)
class MixedTextsConfig:
    """Settings of given texts whose likelihood is raised beside the reward."""

    ptx: NonNegativeFloat = 0.0
    """Weight of the log-likelihood per token of the texts in --texts (InstructGPT)."""
    texts: str = ""
    """With ptx: file of JSON lines, each with a text, or with a prompt and its completion."""


@dataclass(frozen=True, kw_only=True)
class ListedConfig:
    """The setting of methods that also choose from listed actions."""

    listed: bool = field(default=True, metadata=LATER)
    """List the admissible actions in the prompt. If off, the prompt is only the transcript, and the end token
    of an action counts."""


# ---- the agent --------------------------------------------------------------------------------------------


class WritingAgent(TextAgent):
    """An agent whose language model writes, and is trained by policy gradients.

    A subclass returns its :meth:`objective`.
    """

    config_class: ClassVar[type[Any]] = WritingConfig
    saved: ClassVar[tuple[str, ...]] = ("learner", "rng", "kept")
    greedy_first: bool = False
    """The first answer of each group is greedy, as the baseline of the others."""
    learner: Any
    """The update: of PPO and its like an object of :mod:`hunch.rl.policy_gradient`."""
    kept: Groups

    def __init__(self, config: Any = None, *, lm: Trainable | None = None, **options: Any) -> None:
        super().__init__(config, lm=lm, **options)
        c = self.config
        self.group: int = c.group if isinstance(c, GroupConfig) else 1
        self.listed = c.listed if isinstance(c, ListedConfig) else True
        self.drops_flat = c.drop_flat if isinstance(c, FlatConfig) else False
        self.shuffles = c.shuffle if isinstance(c, RewardConfig) else False
        spec = self.reference_spec()
        if spec == "none":
            self.reference = None
        elif spec != "start":
            self.reference = trainable(spec)
            self.models = {**self.models, "reference": self.reference}
        self.policy = self.make_policy(0)  # refuses settings that do not fit the model
        self.texts: list[tuple[Any, str | Decision]] = []  # prompts, and texts after them, that stay likely
        if isinstance(c, MixedTextsConfig) and c.texts:
            self.texts = _read_texts(c.texts)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before a model is loaded that the settings allow learning."""
        super().check(config, specs)
        if cls.compares(config) and config.group < 2:
            raise UsageError("The advantage compares the answers of a group: set group to at least 2.")
        if isinstance(config, RegularisedConfig):
            measured = {"kl": config.kl, "kl_aim": config.kl_aim, "stop_kl": config.stop_kl}
            wanted = [name for name, value in measured.items() if value]
            if wanted and config.reference == "none":
                raise UsageError(
                    "There is no reference from which a divergence could be measured: set "
                    f"{' and '.join(wanted)} to 0."
                )
            require_weight_to_adapt(config.kl, config.kl_aim)
        if isinstance(config, MixedTextsConfig):
            if bool(config.ptx) != bool(config.texts):
                raise UsageError("ptx is the weight of the file texts: give both, or neither.")
            if config.ptx:
                _read_texts(config.texts)
        if isinstance(config, RewardConfig) and config.reward:
            named_source(config.reward)

    @classmethod
    def compares(cls, config: Any) -> bool:
        """Return whether the advantage compares the answers of a group."""
        return isinstance(config, GroupConfig)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, Any]) -> Agent:
        """Make the agent; with ``reward``, wrap it in one that replaces the environment's rewards."""
        agent = cls(config)
        return Rewarded(agent, named_source(config.reward)(), extrinsic=0.0) if config.reward else agent

    @property
    def wording(self) -> str:
        """The version of the prompts."""
        return WORDING

    @property
    def first_update(self) -> int:
        """A step before which no update comes: an episode takes at least one; 0 if that is not known."""
        return self.config.episodes if isinstance(self.config, WritingConfig) else 0

    @property
    def waits_for(self) -> str:
        """The setting on which the first update depends."""
        return "episodes"

    # ---- policy, objective, update ------------------------------------------------------------------

    def reference_spec(self) -> str:
        """Return the reference: ``start``, ``none`` or the spec of a model."""
        spec: str = self.config.reference
        return spec

    def policy_settings(self) -> TextPolicyConfig:
        """Return the settings of the policy. It has a value only if the objective needs one."""
        c = self.config
        width = c.width if isinstance(c, ValueConfig) else 0
        return TextPolicyConfig(max_tokens=c.max_tokens, width=width)

    def objective(self) -> UpdateConfig:
        """Return what an update does: the objective, and how it is optimised."""
        raise NotImplementedError

    def make_learner(self) -> Any:
        """Return the update of the policy by the objective."""
        from hunch.rl.policy_gradient import PolicyGradient  # loads torch

        return PolicyGradient(self.policy, self.objective())

    def make_memory(self) -> Groups:
        """Return the memory of unfinished episodes, and of finished ones by group."""
        return Groups(self.group)

    def prompt_room(self) -> int:
        """Return the number of tokens that must fit into the model's context after each prompt."""
        tokens: int = self.config.max_tokens
        return tokens

    def begin(self, world: World, seed: int) -> None:
        """Start with the model as it was before training; recorded data are ignored.

        Raises:
            UsageError: if a prompt of the environment, or a given text, is too long for the model.
        """
        super().begin(world, seed)
        self.learner = self.make_learner()
        if isinstance(self.config, MixedTextsConfig) and self.config.ptx:
            self.require_room_for_texts()
            self.learner.extra = self.likelihood_of_texts
        self.kept = self.make_memory()
        self.decided: dict[int, Decision] = {}  # by stream: the decision of a step that is not over
        self.flat_updates = 0  # first updates in which nothing could be learnt
        self.moved_far = False  # True once an update was too large, so that this is said once
        self.lm.prompt_tokens([self.policy.prompt(state) for state in world.prompts], self.prompt_room())

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Write a text in each state, and remember it with its log-probabilities."""
        decisions = self.decide(states, self.rng)
        for state, decision in zip(states, decisions, strict=True):
            self.decided[state.stream] = decision
        return [decision.text for decision in decisions]

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write a text in each state, at temperature 1; greedily where a greedy answer is the baseline."""
        temperatures = [1.0] * len(states)
        if self.greedy_first:
            temperatures = [float(state.stream % self.group > 0) for state in states]
        return self.write_at(states, rng, temperatures)

    def explain(self, state: State) -> Explanation:
        """Explain a choice from a list by the policy's probabilities, with the value, if one is learnt."""
        note = ""
        if isinstance(self.config, ValueConfig):
            note = f"value {self.policy.values([state])[0]:.3f}"
        if state.actions is None:
            return Explanation(note=note)
        [probs] = self.policy.probabilities([state])
        return Explanation({"policy": probs}, probs, note)

    # ---- learning -----------------------------------------------------------------------------------

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Keep the steps until the whole group of their episode has ended, and an update is due."""
        for t in transitions:
            self.kept.add(Step(t, taken(self.decided, t)))

    def learn(self) -> dict[str, float]:
        """Make the update if enough episodes have ended in whole groups, and return its metrics."""
        groups = self.kept.whole()
        if sum(map(len, groups)) < self.config.episodes:
            return {}
        # Without episodes that had begun before the last update, all texts were drawn by the present weights:
        # the recorded log-probabilities may then be computed again instead.
        drawn_now = not self.kept.left_over
        self.kept.clear()
        if drawn_now and self.ratios_drift_by_rounding:
            groups = [[without_logprobs(episode) for episode in group] for group in groups]
        if self.shuffles:  # a control
            groups = shuffled(groups, self.rng)
        all_groups = groups
        all_episodes = [episode for group in all_groups for episode in group]

        # With drop_flat, groups of equal returns do not enter the update: their advantages are 0.
        flat_share = 0.0
        if self.drops_flat:
            teaching = [group for group in groups if not is_flat(group)]
            flat_share = 1 - len(teaching) / len(groups)
            groups = teaching
        if not groups:
            numbers = [i for i, group in enumerate(all_groups) for _ in group]
            self.learner.stop_if_drifted(all_episodes, numbers)
            return self._learnt_nothing(all_episodes)

        # The update of the objective: advantages from the group, then gradient steps.
        episodes = [episode for group in groups for episode in group]
        group_of_episode: Sequence[int] = ()
        if self.group > 1:
            group_of_episode = [i for i, group in enumerate(groups) for _ in group]
        metrics = self.learner.update(episodes, self.rng, groups=group_of_episode)

        if self.drops_flat:
            metrics["flat_groups"] = flat_share  # of all groups, not of those that were left

        # Warn once if the answers to each prompt earned the same in all of the first updates.
        self.flat_updates = self.flat_updates + 1 if metrics.get("flat_groups") == 1 else 0
        if self.flat_updates == self.learner.updates == FLAT:
            warnings.warn(_FLAT, HunchWarning, stacklevel=2)

        text_metrics = figures(all_episodes)
        update_kl = self._update_kl(text_metrics["tokens"])
        return {**metrics, "update_kl": update_kl, **text_metrics}

    @property
    def ratios_drift_by_rounding(self) -> bool:
        """Whether the ratio of a whole text may be far from 1 before anything is trained.

        A text is drawn token by token and evaluated at once. In 16 bits the two round differently, and the
        differences add up over a text: in a run of RLHF in bfloat16 a quarter of the texts was outside the
        clipping range in the first update. Log-probabilities are then computed again in the update, which
        costs a pass without gradients.
        """
        sixteen_bits: bool = self.lm.network.dtype.itemsize < 4
        return sixteen_bits and self.learner.config.unit == "text"

    def _learnt_nothing(self, episodes: Sequence[Sequence[Step]]) -> dict[str, float]:
        """Return the metrics of episodes from which no update is made: all groups are flat; warn once."""
        self.flat_updates += 1
        if self.learner.updates == 0 and self.flat_updates == FLAT:
            warnings.warn(_FLAT, HunchWarning, stacklevel=3)
        return {"flat_groups": 1.0, **figures(episodes)}

    def _update_kl(self, tokens: float) -> float:
        """Return the KL divergence of the last update; warn the first time that a large model moves far.

        Args:
            tokens: Mean number of tokens of a text; 0 for choices among listed actions.

        Returns:
            KL(before || after) in nats per token, or per choice.
        """
        kl: float = self.learner.update_kl
        if self.learner.config.unit == "text":
            kl /= max(1.0, tokens)
        if kl > FAR and self.lm.large and not self.moved_far:
            self.moved_far = True
            adapters = "" if self.lm.adapted else ", or train only adapters (train=lora in the model's spec)"
            warnings.warn(
                f"Update {self.learner.updates} moved the model by {kl:.2g} nats per token (KL divergence, "
                f"should be below {FAR:g}), so it may forget how to write: lower learning_rate, which is "
                f"{self.config.learning_rate:g}{adapters}.",
                HunchWarning,
                stacklevel=3,
            )
        return kl

    # ---- given texts --------------------------------------------------------------------------------

    def require_room_for_texts(self) -> None:
        """Check that each given text fits into the model's context after its prompt.

        Raises:
            UsageError: if one does not.
        """
        prompts = [prompt for prompt, _ in self.texts]
        written = self.policy.written(prompts, [text for _, text in self.texts])
        self.lm.require_room(prompts, [text.tokens for text in written])

    def likelihood_of_texts(self, rng: np.random.Generator) -> Callable[[], float]:
        """Draw some given texts; return what adds the gradients of  - ptx mean log p(token)  of them."""
        rows = rng.integers(len(self.texts), size=DRAWN)
        prompts, texts = zip(*[self.texts[i] for i in rows], strict=True)
        return lambda: self.add_likelihood(prompts, texts, self.config.ptx)

    def add_likelihood(
        self, prompts: Sequence[Any], texts: Sequence[str | Decision], weight: float = 1.0
    ) -> float:
        """Add the gradients of  - weight mean log p(token | prompt, tokens before)  of given texts.

        They are computed in passes of at most ``micro`` texts. Each pass counts by its share of the tokens.

        Returns:
            The loss.
        """
        written = self.policy.written(prompts, texts)
        tokens = sum(len(text.tokens) for text in written)
        loss = 0.0
        for few in zip(cut(prompts, self.learner.micro), cut(written, self.learner.micro), strict=True):
            logprobs = self.lm.evaluate(*few).logprobs  # (texts of the pass, T), 0 behind a text's end
            partial_loss = -weight * (logprobs.sum() / tokens)
            partial_loss.backward()  # type: ignore[no-untyped-call]
            loss += float(partial_loss.detach())
        return loss

    def learn_likelihood(
        self, prompts: Sequence[Any], texts: Sequence[str | Decision], learner: Learner, rate: float
    ) -> float:
        """Make a gradient step by which given texts become likelier.

        ``micro`` is halved where memory runs out.

        Args:
            prompts: The prompts.
            texts: A text after each of them.
            learner: The optimiser of the model's weights.
            rate: Its learning rate.

        Returns:
            The loss before the step, the mean of - log p per token.

        Raises:
            HunchError: if a gradient is not finite, or memory runs out for one text.
        """
        loss: float = self.learner.passes.accumulated(
            learner.zero_grad, lambda: self.add_likelihood(prompts, texts)
        )
        learner.step(rate)
        return loss

    # ---- checkpoints --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes in ``saved``, and the decisions whose steps are not over."""
        return {**super().state_dict(), "decided": plain_decisions(self.decided)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self.decided = decisions_of(state.get("decided", ()))  # earlier versions did not save it


_FLAT: Final = f"Answers to each prompt had equal rewards in the first {FLAT} updates: nothing was learnt."


def require_weight_to_adapt(kl: float, kl_aim: float) -> None:
    """Refuse an aim of the KL divergence without a weight: 0 stays 0, by whatever it is multiplied."""
    if kl_aim and not kl:
        raise UsageError("kl_aim adapts the weight kl, which must be above 0 at the start.")


class Groups:
    """Unfinished episodes, and finished ones by group until the whole group has finished.

    Args:
        size: Streams per group: neighbours, whose n-th episodes begin alike.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.open: dict[int, list[Step]] = {}  # by stream: the steps of its unfinished episode
        self.counts: dict[int, int] = {}  # by stream: how many of its episodes have finished
        # The finished episodes: by group and number of the episode in its stream, then by stream.
        self.finished: dict[tuple[int, int], dict[int, list[Step]]] = {}
        self.left_over = False  # True if the last update left episodes that had begun before it

    def add(self, step: Step) -> None:
        """Add the next step of a stream."""
        t = step.transition
        if not math.isfinite(t.reward):
            raise UsageError(f"The reward of {t.action!r} is {t.reward}: it must be a finite number.")
        self.open.setdefault(t.stream, []).append(step)
        if t.done:
            number = self.counts.get(t.stream, 0)
            self.counts[t.stream] = number + 1
            episodes_of_group = self.finished.setdefault((t.stream // self.size, number), {})
            episodes_of_group[t.stream] = self.open.pop(t.stream)

    def whole(self) -> list[list[list[Step]]]:
        """Return the episodes of each complete group, in the order of their streams."""
        return [
            [episodes[stream] for stream in sorted(episodes)]
            for _, episodes in sorted(self.finished.items())
            if len(episodes) == self.size
        ]

    def clear(self) -> None:
        """Forget the complete groups."""
        self.finished = {
            key: episodes for key, episodes in self.finished.items() if len(episodes) < self.size
        }
        self.left_over = bool(self.open or self.finished)

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain values, by the names in the checkpoints of all versions."""
        over = [(key, plain_streams(episodes)) for key, episodes in self.finished.items()]
        return {
            "open": plain_streams(self.open),
            "ended": dict(self.counts),
            "over": over,
            "left_over": self.left_over,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.open = streams_of(state["open"])
        self.counts = dict(state["ended"])
        self.finished = {tuple(key): streams_of(episodes) for key, episodes in state["over"]}
        self.left_over = state.get("left_over", True)  # earlier versions did not save it


def without_logprobs(episode: Sequence[Step]) -> list[Step]:
    """Return an episode without the log-probabilities that were recorded when its texts were drawn."""
    return [step._replace(decision=step.decision._replace(logprobs=())) for step in episode]


def is_flat(group: Sequence[Sequence[Step]]) -> bool:
    """Return whether the returns of a group are all equal, so that comparing its episodes says nothing."""
    returns = [sum(t.reward for t, _ in episode) for episode in group]
    return max(returns) - min(returns) <= ROUNDING * max(1.0, *map(abs, returns))


def shuffled(groups: Sequence[list[list[Step]]], rng: np.random.Generator) -> list[list[list[Step]]]:
    """Shuffle the returns within each group; each return becomes the reward of an episode's last step.

    If there are no groups, the returns of all episodes are shuffled.
    """
    if len(groups[0]) == 1 < len(groups):
        [every] = shuffled([[episode for group in groups for episode in group]], rng)
        return [[episode] for episode in every]
    shuffled_groups = []
    for group in groups:
        returns = [sum(t.reward for t, _ in group[i]) for i in rng.permutation(len(group))]
        shuffled_groups.append(
            [_with_return(episode, total) for episode, total in zip(group, returns, strict=True)]
        )
    return shuffled_groups


def _with_return(episode: Sequence[Step], total: float) -> list[Step]:
    rewards = [0.0] * (len(episode) - 1) + [total]
    return [Step(replace(t, reward=reward), d) for (t, d), reward in zip(episode, rewards, strict=True)]


def figures(episodes: Sequence[Sequence[Step]]) -> dict[str, float]:
    """Return metrics of the texts of an update: tokens; shares of distinct, cut, empty and refused texts."""
    decisions = [step.decision for episode in episodes for step in episode]
    refused = [step.transition.event == REFUSED for episode in episodes for step in episode]
    metrics = {
        "tokens": float(np.mean([len(decision.tokens) for decision in decisions])),
        "distinct": len({decision.text for decision in decisions}) / len(decisions),
        "cut": float(np.mean([not decision.finished for decision in decisions])),
    }
    empty = [not decision.text.strip() for decision in decisions]
    if any(empty):
        metrics["empty"] = float(np.mean(empty))
    if any(refused):
        metrics["refused"] = float(np.mean(refused))
    return metrics


def _read_texts(file: str) -> list[tuple[Any, str | Decision]]:
    """Return prompts and the texts after them; of a text alone the first word is the prompt."""
    texts: list[tuple[Any, str | Decision]] = []
    for row in read(file, "text", "completion"):
        if "completion" in row:
            texts.append((row["prompt"], row["completion"]))
        else:
            first, space, rest = row["text"].partition(" ")
            texts.append((first, space + rest))
    return texts
