"""EvoTune: FunSearch whose writer is trained, by DPO, on which of its programs scored better.

Algorithm (Surina et al., "Algorithm Discovery With LLMs: Evolutionary Search Meets Reinforcement Learning",
2025; what the paper leaves open from the released code)::

    repeat
        search:  FunSearch with the writer pi writes ``train_every`` programs
        pairs:   of the answers y to one prompt x, the distinct ones:
                     y in the better half of the scores  >  y in the worse half,  rank by rank
                     a y that runs                        >  each y that fails,    the best y first
                 kept where the score of the better one is among the upper ``1 - least`` of all such scores
        train:   a pass over all pairs so far; descend on DPO's loss with the forward KL divergence

            L = - mean log sigmoid( beta [exp(-g(y_worse)) - exp(-g(y_better))] )
            g = log pi(y | x) - log pi_0(y | x),   pi_0 the writer before training: sums over the tokens of y

With the reverse divergence, DPO's own, the bracket is g(y_better) - g(y_worse). The forward one punishes ever
more a better answer that becomes less likely, and soon stops to press a worse one down, so the writer keeps
more of the programs that it could write.

Departures: pi_0 is the writer before all training; the released code measures from the weights with which a
pass begins. One pass per round; the released code may make several, each above a higher score. Programs are
counted, which makes a run repeatable; the learning rate falls to 0 within a round.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from hunch.core import EvidenceLevel, HunchWarning, UsageError, World
from hunch.lm import trainable
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.prompts import Prompt, as_prompt
from hunch.lm.registry import SCRATCH, split
from hunch.lm.settings import ask_config
from hunch.lm.shorten import shortened
from hunch.lm.speech import text_of
from hunch.lm.tuning import require_trainable, require_weights
from hunch.methods.method import Method
from hunch.methods.program.agent import PROGRAM
from hunch.methods.program.funsearch import FunSearch, FunSearchConfig
from hunch.methods.settings import configure
from hunch.ranges import MEMORY, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl.policy import Passes, cut, require_finite
from hunch.rl.settings import Divergence
from hunch.roles.writer.programs import Attempt, Kind, ModelWriter

if TYPE_CHECKING:
    from torch import Tensor

    from hunch.lm.training import Trainable, Written


@dataclass(frozen=True, kw_only=True)
class EvoTuneConfig(FunSearchConfig):
    """Settings of EvoTune: those of FunSearch, and those of the training of its writer."""

    lm: str = ""
    """Model that writes and is trained: hf:<name, folder or run>, with ?train=lora for adapters."""
    train_every: PositiveInt = 400
    """Programs from one training to the next (paper)."""
    least: Share = 0.3
    """Share of the pairs that are left out: those whose better program scores lowest (released code)."""
    divergence: Divergence = "forward"
    """KL divergence from the writer before training: forward (paper), or reverse, as in DPO."""
    beta: PositiveFloat = 0.4
    """Weight of the divergence (paper)."""
    batch_size: PositiveInt = 16
    """Pairs per gradient step (ours)."""
    micro: PositiveInt = field(default=2, metadata=MEMORY)
    """Pairs per forward and backward pass. Gradients are accumulated over a batch, so fewer need less memory
    and change nothing else."""
    learning_rate: PositiveFloat = 1e-5
    """Adam learning rate, which falls linearly to 0 in each training (paper)."""
    shuffle: bool = False
    """Give each answer the score of another one when the writer is trained: a control."""
    retries: NonNegativeInt = 0
    """Rewrites of a program that cannot run or repeats an earlier one, before it is evaluated. None by
    default: from a failed answer the writer learns."""


class Answer(NamedTuple):
    """What the writer wrote after a prompt; the fitness of its program is None if that failed.

    The tokens are those that were drawn: tokenising the text may give others. An answer that was cut at its
    limit has no end among them.
    """

    prompt: Prompt
    text: str
    fitness: float | None
    tokens: tuple[int, ...]


class TrainedWriter(ModelWriter):
    """A writer with the current weights of a model in training; it keeps what it was last asked.

    Args:
        lm: The model in training.
        options: As for :class:`~hunch.roles.writer.programs.ModelWriter`.

    Attributes:
        latest: Prompt and answer of each program of the last request, in its order. The prompt is what the
            model read, so it may be shorter than the request.
    """

    def __init__(self, lm: Trainable, *args: Any, **options: Any) -> None:
        frozen: Any = lm.model  # it knows how it is asked; what it writes comes from ``trained``
        super().__init__(frozen, *args, **options)
        self.trained = lm
        self.latest: list[tuple[Prompt, Written]] = []

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the initial weights."""
        return self.trained.evidence

    def _answers(self, prompts: Sequence[Prompt], n: int, first: int) -> list[list[str]]:
        sampling = self._asking.sampling
        asked = [prompt for prompt in map(self._fitting, prompts) for _ in range(n)]
        numbers = [*range(first, first + n)] * len(prompts)
        rngs = [
            sample_rng(METHOD.name, prompt, sampling, number)
            for prompt, number in zip(asked, numbers, strict=True)
        ]
        written = self.trained.write(asked, rngs, sampling.max_tokens, sampling.temperature)
        self.latest = list(zip(asked, written, strict=True))
        return [[text.text for text in of_prompt] for of_prompt in cut(written, n)]

    def _fitting(self, prompt: Prompt) -> Prompt:
        """Return a prompt, or a part of it that leaves room for an answer, so that a run goes on."""

        def fits(part: Prompt) -> bool:
            try:
                self.trained.prompt_tokens([part], self._asking.sampling.max_tokens)
            except UsageError:
                return False
            return True

        return shortened(prompt, fits)


class EvoTune(FunSearch):
    """The agent of EvoTune.

    Args:
        config: All settings; ``options`` change single ones.
        lm: The model that writes and is trained. Default: that of the config, loaded.

    Raises:
        UsageError: if no model is named, or it has no weights to train.
    """

    config_class: ClassVar[type[Any]] = EvoTuneConfig
    writer: TrainedWriter

    def __init__(self, config: Any = None, *, lm: Trainable | None = None, **options: Any) -> None:
        settings = configure(type(self), config, options)
        if lm is None:
            self.check(settings, {})
            lm = trainable(settings.lm)
        require_weights(lm)
        refuse_new(lm.name)
        self.lm: Trainable = lm
        self.config = settings
        super().__init__(self._asking(lm), settings)
        self.models: Mapping[str, Any] = {"lm": lm}

    @classmethod
    def build(cls, config: Any, models: Mapping[str, Any]) -> EvoTune:
        """Make the agent; its model is that of the config."""
        return cls(config)

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check before loading that a model with weights is named, and that prompts have several answers."""
        spec = specs.get("lm", "") or config.lm
        if not spec:
            raise UsageError(
                "evotune trains the model that writes: name one with --lm, such as hf:<name or folder>."
            )
        require_trainable(spec)
        refuse_new(spec)
        if config.samples < 2:
            raise UsageError("evotune compares answers to one prompt: set samples to at least 2.")
        if config.stop:
            raise UsageError(
                "evotune learns from answers as they were written, so stop cannot cut them: name what ends "
                "one in the model's spec, as ?end=TEXT."
            )

    def _asking(self, lm: Any) -> TrainedWriter:
        prompt, by_kind = self.requested_prompt(), self.prompts_by_kind()
        return TrainedWriter(lm, prompt, prompts=by_kind, asks=ask_config(self.config))

    def begin(self, world: World, seed: int) -> None:
        """Forget all programs, and restore the weights that the writer had before training."""
        super().begin(world, seed)
        self.lm.restart("weights", seed)
        self.passes = Passes(self.config.micro)
        self.asked: dict[str, list[tuple[Prompt, Written]]] = {}  # prompts and answers of programs being run
        self.answers: list[Answer] = []
        self.last_training = 0  # number of programs by then

    @property
    def first_update(self) -> int:
        """The step of the first training."""
        return int(self.config.train_every)

    @property
    def waits_for(self) -> str:
        """The setting on which the first training depends."""
        return "train_every"

    # ---- search: what FunSearch does; here the answers are kept -----------------------------------------

    def _drawn(self, parents: Sequence[Attempt], feedback: str, n: int, kind: Kind) -> list[str]:
        programs = super()._drawn(parents, feedback, n, kind)
        # Different answers may hold the same program, or none: each keeps its place in the line.
        for program, answered in zip(programs, self.writer.latest, strict=True):
            self.asked.setdefault(program, []).append(answered)
        return programs

    def _tell(self, attempt: Attempt) -> None:
        super()._tell(attempt)
        answered = self.asked.get(attempt.program)
        if answered:  # the problem's own program was not written
            prompt, written = answered.pop(0)
            self.answers.append(Answer(prompt, written.text, attempt.fitness, written.tokens))

    def learn(self) -> dict[str, float]:
        """Train the writer if enough programs were run; return the metrics of search and training."""
        metrics = super().learn()
        if not self.pending:  # nothing is being run
            self.asked.clear()
        if len(self.attempts) - self.last_training >= self.config.train_every:
            self.last_training = len(self.attempts)
            metrics |= self.train()
        return metrics

    # ---- pairs and update -------------------------------------------------------------------------------

    def train(self) -> dict[str, float]:
        """Make one pass of DPO over the pairs of all answers so far; return its metrics.

        ``loss`` is a mean over the pass, ``better`` and ``worse`` are means of g, ``ordered`` is the share of
        pairs whose better answer has the higher g.

        Raises:
            HunchError: if the loss or a gradient is not finite.
        """
        from hunch.lm.training.learner import Learner  # loads torch

        c = self.config
        rng = self._rng(len(self.attempts), 3)
        answers = self.answers
        if c.shuffle:
            places = rng.permutation(len(answers))
            answers = [
                answer._replace(fitness=self.answers[place].fitness)
                for answer, place in zip(answers, places, strict=True)
            ]
        pairs = above(preference_pairs(answers, c.samples), c.least)
        if not pairs:
            warnings.warn(NO_PAIRS, HunchWarning, stacklevel=2)
            return {"pairs": 0.0}

        learner = Learner.adam(self.lm.parameters())
        order = [pairs[i] for i in rng.permutation(len(pairs))]
        batches = list(cut(order, c.batch_size))
        total: dict[str, float] = defaultdict(float)
        for number, batch in enumerate(batches):
            metrics = self.passes.accumulated(learner.zero_grad, partial(self.dpo, batch))
            require_finite(metrics["loss"])
            learner.step(c.learning_rate * (1 - number / len(batches)))
            for name, value in metrics.items():
                total[name] += value * len(batch) / len(pairs)
        return {"pairs": float(len(pairs)), **total}

    def dpo(self, pairs: Sequence[tuple[Answer, Answer]]) -> dict[str, float]:
        """Accumulate the gradients of the mean loss over pairs, ``micro`` at a time; return its metrics."""
        from hunch.rl.preference_losses import accumulate_dpo  # loads torch

        c = self.config
        return accumulate_dpo(pairs, self.log_ratios, self.passes.micro, c.beta, c.divergence)

    def log_ratios(self, answers: Sequence[Answer]) -> Tensor:
        """Return g = log pi(y | x) - log pi_0(y | x), shape (n,), with gradients of the first term."""
        import torch

        from hunch.lm.training import Written  # loads torch
        from hunch.rl.preference_losses import log_ratios  # loads torch

        prompts = [answer.prompt for answer in answers]
        texts = [Written(answer.text, answer.tokens, (), True) for answer in answers]
        with torch.no_grad(), self.lm.with_weights():  # those before training
            initial = self.lm.evaluate(prompts, texts).logprobs  # (n, T)
        current = self.lm.evaluate(prompts, texts)
        return log_ratios(current, initial)

    # ---- checkpoints and files --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the attempts, the answers, and the trained weights."""
        return {
            **super().state_dict(),
            "answers": [(_plain(prompt), *rest) for prompt, *rest in self.answers],
            "last_training": self.last_training,
            "weights": self.lm.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.asked = {}
        super().load_state_dict(state)
        self.answers = [Answer(as_prompt(prompt), *rest) for prompt, *rest in state["answers"]]
        self.last_training = state["last_training"]
        self.lm.load_state_dict(state["weights"])

    def export(self, folder: Path) -> None:
        """Write the trained writer to a folder that transformers and ``hf:`` can load."""
        self.lm.save(folder)


def refuse_new(spec: str) -> None:
    """Check that a model is not a new one, which has no words yet and so writes no program to learn from.

    Raises:
        UsageError: if it is.
    """
    if split(spec)[0] == SCRATCH:
        raise UsageError(
            f"evotune learns from programs that its model can write, and {spec!r} is a new model without a "
            "word: name one that writes code, such as qwen-coder-0.5b."
        )


def preference_pairs(answers: Sequence[Answer], samples: int) -> list[tuple[Answer, Answer]]:
    """Return pairs of different answers to one prompt, the better one first.

    Of the distinct scores to a prompt the upper half is better. Answers that run are paired by rank across
    the halves; each that fails is paired with one that runs, the best one first, and again from the first
    when all have had their turn.

    Args:
        answers: The answers, in the order in which they were written.
        samples: Answers to a prompt that are compared: a prompt that comes again has other ones.
    """
    by_prompt: dict[str, list[Answer]] = {}
    for answer in answers:
        by_prompt.setdefault(text_of(answer.prompt), []).append(answer)
    groups = [group for own in by_prompt.values() for group in cut(own, samples)]

    pairs: list[tuple[Answer, Answer]] = []
    for group in groups:
        distinct = {answer.text: answer for answer in group}.values()
        failed = [answer for answer in distinct if answer.fitness is None]
        ran = [answer for answer in distinct if answer.fitness is not None]
        ran.sort(key=_score, reverse=True)
        scores = sorted({_score(answer) for answer in ran}, reverse=True)
        upper = set(scores[: len(scores) // 2])
        better = [answer for answer in ran if _score(answer) in upper]
        worse = [answer for answer in ran if _score(answer) not in upper]
        pairs += zip(better, worse, strict=False)
        pairs += zip(cycle(ran), failed, strict=False) if ran else ()
    return pairs


def above(pairs: Sequence[tuple[Answer, Answer]], least: float) -> list[tuple[Answer, Answer]]:
    """Return the pairs whose better answer reaches the quantile ``least`` of the scores of better answers."""
    if not pairs:
        return []
    threshold = float(np.quantile([_score(better) for better, _ in pairs], least))
    return [(better, worse) for better, worse in pairs if _score(better) >= threshold]


def _score(answer: Answer) -> float:
    """Return the fitness of an answer whose program ran."""
    assert answer.fitness is not None
    return answer.fitness


def _plain(prompt: Prompt) -> Any:
    """Return a prompt as plain values, from which :func:`as_prompt` makes it again."""
    return prompt if isinstance(prompt, str) else [tuple(message) for message in prompt]


NO_PAIRS: Final = (
    "No prompt has two answers of which one scored better, so the writer was not trained. More samples and "
    "streams, a higher temperature or --request plain may help."
)

METHOD = Method(
    "evotune",
    EvoTune,
    "search for a heuristic with a writer that is trained on which of its programs scored better",
    "Surina et al., Algorithm Discovery With LLMs: Evolutionary Search Meets Reinforcement Learning, 2025",
    leaf="RL4LLM / fine-tuning",
    control="shuffled rewards",
    suggested=("hf:<name or folder>?train=lora", "qwen-coder-0.5b?train=lora"),
    **{**PROGRAM, "models": {}, "data": "none"},
)
