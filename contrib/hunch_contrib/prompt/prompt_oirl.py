"""Prompt-OIRL: learns which prompt suits a question from recorded results, without a language model.

Algorithm (Sun, "Query-Dependent Prompt Evaluation and Optimization with Offline Inverse RL", ICLR 2024)::

    data      <- (question, prompt, whether the answer was right)
    r(q, p)   <- fitted to the data, on frozen embeddings of both
    answer    <- the prompt with the largest r(question, .)

The reward is fitted by the squared error, which estimates the same probability as the paper's boosted trees
with the logistic loss: it is Q-learning without a future (:mod:`hunch.rl.q_learning`). Controls:
``choose=fixed`` takes the prompt with the best recorded results, ``choose=random`` any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import Explanation, FloatArray, Memoryless, State, UsageError, World
from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import choose, posterior
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt
from hunch.renamed import Renamed
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import Proposal, UniformPrior

if TYPE_CHECKING:
    from hunch.rl.q_learning import QLearner


ALPHA: Final = 1e-6
"""Temperature of the choice: nearly always the prompt with the largest r, and chance among equal ones."""


@dataclass(frozen=True, kw_only=True)
class PromptOIRLConfig(Renamed):
    """Settings of Prompt-OIRL."""

    renamed: ClassVar[Mapping[str, str]] = {"clip": "max_norm"}

    choose: Literal["question", "fixed", "random"] = "question"
    """Choose by the question (the method), the best prompt over all questions (fixed), or at random."""
    joint: bool = False
    """Embed question and prompt as one text; this needs one model call per pair."""
    encoder: str = "phrases"
    """Frozen text encoder, given by its spec (paper: embeddings of a language model)."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate (our choice)."""
    max_norm: NonNegativeFloat = 0.0
    """Maximum gradient norm; larger gradients are scaled down, 0 for no limit."""
    batch_size: PositiveInt = 128
    """Recorded results per update."""
    update_every: PositiveInt = 2
    """Environment steps per update, if there is an environment besides the results (our choice)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron."""


class PromptOIRL(DQN):
    """The agent of Prompt-OIRL.

    Args:
        encoder: Embeds questions and prompts; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = PromptOIRLConfig
    saved = (*DQN.saved, "means")
    playing_alpha = ALPHA

    def __init__(
        self, encoder: TextTable | None = None, config: PromptOIRLConfig | None = None, **options: Any
    ) -> None:
        self.hold(UniformPrior(), encoder, configure(type(self), config, options))

    def begin(self, world: World, seed: int) -> None:
        """Forget everything, and read the recorded results.

        Raises:
            UsageError: if all results are equal, or all have the same prompt; or if there will be new ones,
                of which the prompt that was best in the records would know nothing.
        """
        if self.config.choose == "fixed" and world.streams:
            raise UsageError(
                "choose=fixed takes the prompt with the best recorded results: leave out online."
            )
        steps = [step for episode in world.data for step in episode]
        self.means = mean_results([(step.action, step.reward) for step in steps])
        if steps and len(self.means) < 2:
            raise UsageError("The recorded results are of one prompt only, so there is nothing to choose.")
        if steps and len({step.reward for step in steps}) < 2:
            raise UsageError("All recorded results are equal, so nothing can be learned from them.")
        super().begin(world, seed)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`: an agent that is loaded to act has no recorded results.

        Earlier checkpoints hold no means; there they are those of the results in the replay buffer.
        """
        super().load_state_dict({"means": {}, **state})
        if "means" not in state:
            replay = self.learner.replay
            results = []
            for number, place, _, reward, *_ in replay.rows[: len(replay)]:
                options = self.features.states[int(number)].options
                results.append((options[int(place)], float(reward)))
            self.means = mean_results(results)

    def new_learner(self, seed: int, recorded: int) -> QLearner:
        """Return a new r with its update: Q-learning without a future."""
        from hunch.rl.q_learning import QLearner  # loads torch

        c = self.config
        return QLearner(
            self.features,
            seed,
            hidden=c.hidden,
            learning_rate=c.learning_rate,
            gamma=0.0,
            max_norm=c.max_norm,
            data=recorded,
        )

    def explore(self, proposal: Proposal, q: FloatArray) -> int:
        """Return the index of the prompt with the largest r."""
        return choose(proposal, q, ALPHA, self.rng)

    @property
    def due(self) -> int:
        """Number of updates that should have been made so far, if there is an environment."""
        return int(self.steps // self.config.update_every)

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose a prompt for each question."""
        return super().act(states) if self.config.choose == "question" else self.chosen(states, self.rng)

    def chosen(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """Choose for a control: at random, or the prompt that was best over all recorded questions."""
        if self.config.choose == "random":
            return [s.options[int(rng.integers(len(s.options)))] for s in states]
        return [max(s.options, key=lambda prompt: self.means.get(prompt, -np.inf)) for s in states]

    def player(self, seed: int) -> Memoryless:
        """Return a player that chooses in the same way, with a separate random generator."""
        return super().player(seed) if self.config.choose == "question" else Memoryless(self.chosen, seed)

    def explain(self, state: State) -> Explanation:
        """Return r of each prompt, and the probability of choosing it by question."""
        (reward,) = self.q([state])
        equal = np.full(len(reward), 1 / len(reward))
        return Explanation({"Q": reward}, posterior(equal, reward, ALPHA))


def mean_results(results: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return the mean result of each prompt, given prompts with a result."""
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for prompt, result in results:
        by_prompt[prompt].append(result)
    return {prompt: float(np.mean(values)) for prompt, values in by_prompt.items()}


METHOD = Method(
    "prompt-oirl",
    PromptOIRL,
    "the best prompt for a question, from recorded results of prompts",
    "Sun, Query-Dependent Prompt Evaluation and Optimization with Offline Inverse RL, ICLR 2024",
    leaf="RL4LLM / prompt",
    environments="prompts as listed actions, one step",
    models=ENCODER,
    control="the best fixed prompt, and a random one",
    data="needed",
)
