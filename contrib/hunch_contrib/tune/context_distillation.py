"""Context distillation: a model learns to write as if a text stood before each prompt.

Algorithm (Askell et al., "A General Language Assistant as a Laboratory for Alignment", 2021, section 2; the
first stage of Bai et al., "Training a Helpful and Harmless Assistant with Reinforcement Learning from Human
Feedback", 2022)::

    C    a context, such as examples of a helpful assistant
    p_0  the model before training
    repeat
        x   prompts;  y ~ p_0(. | C, x)                             the model under the context writes
        minimise  sum_t KL(p_0(. | C, x, y_<t) || p(. | x, y_<t))   over the whole vocabulary

Afterwards the model needs no context, so its prompts are as short as before. Rewards are not used.
``write="context"`` is the teacher, and learns nothing; ``loss="likelihood"`` learns from the drawn tokens
alone.

Departures: the papers compute the divergence on given texts (documents and questions), and keep the fifty
most likely tokens of the teacher. Here the teacher writes its answers to the environment's prompts, and the
divergence is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hunch.core import State, UsageError, World
from hunch.lm.prompts import Message, Prompt
from hunch.methods.tune.sft import METHOD as SFT
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import PositiveFloat
from hunch.rl.policy import Decision, Passes, cut, fitting, require_finite
from hunch.roles.policy.settings import Start
from hunch.text_files import read_lines

if TYPE_CHECKING:
    from torch import Tensor

    from hunch.lm.training import Written


@dataclass(frozen=True, kw_only=True)
class ContextDistillationConfig(TextConfig):
    """Settings of context distillation."""

    start: Start = "weights"
    """Initial weights, of the teacher as well: those of the model, the same with shuffled vocabulary, or
    random. The last two are controls."""
    context: str = "The answers of a helpful, honest and harmless assistant follow."
    """Text before each prompt, which the model learns to do without (ours; papers: 14 dialogues)."""
    context_file: str = ""
    """File with the context, which then replaces the option context."""
    write: Literal["distilled", "context"] = "distilled"
    """Write without the context, and learn (distilled); or write with it, and learn nothing (context)."""
    loss: Literal["kl", "likelihood"] = "kl"
    """Loss on the texts that are written under the context: the divergence of the whole distributions (kl,
    papers), or the likelihood of the drawn tokens."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate, which falls linearly to 0 over the run, for a model under a million weights
    (ours)."""


class ContextDistillation(TextAgent):
    """The agent of context distillation; arguments as for :class:`~hunch.methods.tune.text.TextAgent`.

    One update is made per step of all streams, on the texts of that step.
    """

    config_class: ClassVar[type[Any]] = ContextDistillationConfig
    saved: ClassVar[tuple[str, ...]] = ("policy", "learner", "updates", "rng")

    def __init__(self, config: Any = None, **options: Any) -> None:
        super().__init__(config, **options)
        self.context = context_of(self.config)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that the model can be trained, and that there is a context."""
        super().check(config, specs)
        context_of(config)

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights.

        Raises:
            UsageError: if a prompt of the environment is too long for the model under the context.
        """
        from hunch.lm.training import Learner  # loads torch

        super().begin(world, seed)
        self.learner = Learner.adam(self.lm.parameters())
        self.passes = Passes(self.config.micro)
        self.updates = 0
        self.all_updates = max(1.0, world.steps / max(1, world.streams))
        self.written: list[tuple[State, Written]] = []  # the teacher's texts of the last step
        prompts = [self.under(state) for state in world.prompts]
        self.lm.prompt_tokens(prompts, self.config.max_tokens)

    def under(self, state: State) -> Prompt:
        """Return the prompt of a state with the context before it; for a chat model as instructions."""
        prompt = self.policy.prompt(state)
        if isinstance(prompt, str):
            return f"{self.context}\n{prompt}"
        return [Message("system", self.context), *prompt]

    # ---- acting -------------------------------------------------------------------------------------

    def act(self, states: Sequence[State]) -> list[str]:
        """Let the teacher write in each state, and keep its texts for the update."""
        texts = self.taught(states, self.rng, 1.0)
        if self.config.write == "distilled":  # the update of this step uses them up
            self.written = list(zip(states, texts, strict=True))
        return [text.text for text in texts]

    def taught(self, states: Sequence[State], rng: np.random.Generator, temperature: float) -> list[Written]:
        """Write with the initial weights under the context: y ~ p_0(. | C, x)."""
        rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(states))]
        micro = self.config.micro
        texts: list[Written] = []
        with self.lm.with_weights(), fitting(micro):
            for few, of_few in zip(cut(states, micro), cut(rngs, micro), strict=True):
                prompts = [self.under(state) for state in few]
                texts += self.lm.write(prompts, of_few, self.config.max_tokens, temperature)
        return texts

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write in evaluations: with the current weights and no context, or as the teacher."""
        if self.config.write == "distilled":
            return super().write(states, rng)
        return [Decision(*text) for text in self.taught(states, rng, self.config.temperature)]

    # ---- learning -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make one update on the teacher's texts of the last step.

        Raises:
            HunchError: if the loss is not finite, or memory runs out.
        """
        if not self.written:
            return {}
        batch = self.written
        self.written = []
        tokens = sum(len(text.tokens) for _, text in batch)

        def accumulate() -> float:
            """Add the gradients of the mean loss per token, `micro` texts at a time."""
            loss = 0.0
            for few in cut(batch, self.passes.micro):
                states, texts = zip(*few, strict=True)
                partial_loss = self.losses(states, texts).sum() / tokens
                partial_loss.backward()  # type: ignore[no-untyped-call]
                loss += float(partial_loss.detach())
            return loss

        loss = self.passes.accumulated(self.learner.zero_grad, accumulate)
        require_finite(loss)
        remaining = max(0.0, 1 - self.updates / self.all_updates)
        self.learner.step(self.config.learning_rate * remaining)
        self.updates += 1
        return {"loss": loss}

    def losses(self, states: Sequence[State], texts: Sequence[Written]) -> Tensor:
        """Return the loss of each token of texts, shape (n, T), 0 after the end of a text."""
        prompts = [self.policy.prompt(state) for state in states]
        if self.config.loss == "likelihood":
            outputs = self.lm.evaluate(prompts, texts)
            return -outputs.logprobs * outputs.mask  # (n, T)
        return self.divergences(states, texts)

    def divergences(self, states: Sequence[State], texts: Sequence[Written]) -> Tensor:
        """Return KL(p_0(. | C, x, y_<t) || p(. | x, y_<t)) at each token of texts, shape (n, T), in nats."""
        import torch

        with torch.no_grad(), self.lm.with_weights():
            taught, _ = self.lm.distributions([self.under(state) for state in states], texts)
        # (n, T, vocabulary) each
        learnt, mask = self.lm.distributions([self.policy.prompt(state) for state in states], texts)
        return (taught.exp() * (taught - learnt)).sum(-1) * mask

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the divergence of the teacher from the current model, on the current model's texts.

        ``context_kl`` is in nats per text: the sum over its tokens, in the mean.
        """
        import torch

        from hunch.lm.training import Written  # loads torch

        if self.config.write == "context":
            return {}
        texts = [Written(*decision) for decision in decisions]
        micro = self.config.micro
        totals: list[float] = []
        with torch.no_grad():
            for few, of_few in zip(cut(states, micro), cut(texts, micro), strict=True):
                totals += self.divergences(few, of_few).sum(1).tolist()
        return {"context_kl": float(np.mean(totals))}


def context_of(config: ContextDistillationConfig) -> str:
    """Return the context of the settings.

    Raises:
        UsageError: if it is empty, or its file cannot be read.
    """
    if not config.context_file:
        if not config.context.strip():
            raise UsageError("The context is empty: give the text to distil with --context.")
        return config.context
    try:
        text = "\n".join(read_lines(config.context_file)).strip()
    except OSError as error:
        raise UsageError(f"{config.context_file} cannot be read: name a file with the context.") from error
    if not text:
        raise UsageError(f"{config.context_file} is empty: write the context into it.")
    return text


METHOD = replace(
    SFT,
    name="context-distillation",
    agent_class=ContextDistillation,
    summary="a language model learns to write as if a given text stood before each prompt",
    paper="Askell et al., A General Language Assistant as a Laboratory for Alignment, 2021; Bai et al., "
    "Training a Helpful and Harmless Assistant with Reinforcement Learning from Human Feedback, 2022",
    environments="free text",
    suggested=(),
    data="none",
    changeable=("write", "temperature"),
)
