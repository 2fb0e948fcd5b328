"""Training of the pocket model: ``hunch pretrain pocket``.

A Llama-architecture decoder learns to continue the documents of :mod:`hunch_studies.laboratory.corpus`. The
stream depends only on seed and step, so stopped training resumes exactly.
"""

from __future__ import annotations

import io
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hunch.core import UsageError
from hunch.lm.backends.weights import trained_on
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.runs.files import write_atomically, writing
from hunch_studies.laboratory import corpus, households, statements, tokenizer, walks
from hunch_studies.laboratory.batches import Batch, Corpus

if TYPE_CHECKING:
    from hunch.lm.training import Learner

CORPORA = {
    "examples": Corpus(corpus.document, tuple(corpus.SHAPES), 8, tokenizer.train),
    "walks": Corpus(walks.document, walks.LEVELS, 0, walks.fit),
    "households": Corpus(households.document, households.KINDS, 0, households.fit, households.READ),
    "statements": Corpus(statements.document, statements.KINDS, 0, statements.fit),
}
"""The training corpora: :mod:`hunch_studies.laboratory.corpus`, :mod:`~hunch_studies.laboratory.walks`,
:mod:`~hunch_studies.laboratory.households` and :mod:`~hunch_studies.laboratory.statements`."""


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """Settings of the training."""

    corpus: Literal["examples", "walks", "households", "statements"] = "examples"
    """Training corpus: examples of random worlds, walks in BabyAI levels, searches in households, or English
    statements with their formulas."""
    tokens: PositiveInt = 40_000_000
    """Training tokens in total."""
    width: PositiveInt = 192
    """Width of the hidden states."""
    layers: PositiveInt = 6
    """Number of layers of the decoder."""
    context: PositiveInt = 1024
    """Maximum tokens that the model reads."""
    stages: tuple[tuple[Share, PositiveInt], ...] = ((0.5, 256), (0.8, 512), (1.0, 1024))
    """Length of rows until each share of training; starting with short rows is faster."""
    batch_tokens: PositiveInt = 4096
    """Tokens per step."""
    learning_rate: PositiveFloat = 2e-3
    """Maximum learning rate, of Muon for matrices and of AdamW for other weights."""
    warmup: NonNegativeInt = 100
    """Warm-up steps of the learning rate."""
    ease: Share = 0.8
    """Share of simple worlds, and of plain wordings."""
    save_every: NonNegativeFloat = 300.0
    """Seconds between checkpoints."""
    seed: NonNegativeInt = 0
    """Seed of weights and corpus."""
    start: str = ""
    """Folder of a model of the same kind to start from, such as the one that comes with hunch; a token that
    it lacks starts as the mean of its parts."""
    device: str = "cpu"
    """Torch device; on CUDA it computes in bfloat16."""

    @property
    def course(self) -> dict[str, Any]:
        """The settings that a checkpoint must share; device and folder do not matter."""
        own = {f.name for f in fields(PretrainConfig)} - {"device", "save_every"}
        return {name: value for name, value in asdict(self).items() if name in own}

    def __post_init__(self) -> None:
        if self.width % 32:
            raise UsageError(f"width must be a multiple of 32, not {self.width}.")
        if not self.stages or self.stages[-1][0] != 1.0 or self.stages[-1][1] > self.context:
            raise UsageError("The last of the stages must reach 1.0, at most at the context's length.")
        if self.start and not (Path(self.start) / "model.safetensors").is_file():
            raise UsageError(f"There is no pocket model in {self.start!r} to begin with.")
        if not re.fullmatch(r"(cpu|cuda|mps)(:\d+)?", self.device):
            raise UsageError(f"device must be cpu, cuda, mps or cuda:NUMBER, not {self.device!r}.")


class Pretraining:
    """Training in progress.

    Args:
        config: Settings.
        fitted: The tokenizer. Default: one that is fitted to the corpus.
    """

    def __init__(self, config: PretrainConfig, fitted: Any = None) -> None:
        import torch

        self.config, self.corpus = config, CORPORA[config.corpus]
        self.tokenizer = fitted or self.corpus.fit()
        torch.manual_seed(config.seed)
        self.network = build(config, len(self.tokenizer), self.tokenizer.bos_token_id).to(config.device)
        if config.start:
            self.network.load_state_dict(_weights(Path(config.start), self.tokenizer))
        self.learner = _learner(self.network, config)
        self.step = self.seen = 0

    @property
    def progress(self) -> float:
        """The share of all tokens that has been read."""
        return min(1.0, self.seen / self.config.tokens)

    def length(self) -> int:
        """The current length of rows."""
        return next(length for share, length in self.config.stages if self.progress < share or share == 1.0)

    def advance(self) -> float:
        """Make one step; return its loss."""
        length, c = self.length(), self.config
        rows = max(1, c.batch_tokens // length)
        seeds = [f"{c.seed}-{self.step}-{i}" for i in range(rows)]
        batch = self.corpus.rows(self.tokenizer, seeds, length, c.ease)
        rate = c.learning_rate * schedule(self.step, self.progress, c.warmup)
        loss = self.learner.update(self._loss(batch), rate)
        self.step += 1
        self.seen += rows * length
        return loss

    def _loss(self, batch: Batch) -> Any:
        import torch
        from torch.nn.functional import cross_entropy

        ids = torch.from_numpy(batch.ids).to(self.config.device)
        weights = torch.from_numpy(batch.weights).to(self.config.device).flatten()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.config.device.startswith("cuda")):
            logits = self.network(input_ids=ids[:, :-1], use_cache=False).logits
        losses = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        return (losses * weights).sum() / weights.sum()

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume, except the tokenizer."""
        return {
            "config": self.config.course,
            "network": self.network.state_dict(),
            "optimisers": self.learner.state_dict(),
            "counters": (self.step, self.seen),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.network.load_state_dict(state["network"])
        self.learner.load_state_dict(state["optimisers"])
        self.step, self.seen = state["counters"]


def build(config: PretrainConfig, vocabulary: int, end: int) -> Any:
    """Make the decoder with random weights from torch's generator."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=config.width,
            intermediate_size=config.width * 8 // 3 // 16 * 16,
            num_hidden_layers=config.layers,
            num_attention_heads=config.width // 32,
            max_position_embeddings=config.context,
            tie_word_embeddings=True,
            bos_token_id=end,
            eos_token_id=end,
            hunch_evidence="L1",
        )
    )


def _weights(folder: Path, fitted: Any) -> dict[str, Any]:
    """Return the float32 weights of a model of this recipe, with embeddings for the tokens of ``fitted``."""
    import torch
    from transformers import LlamaForCausalLM

    weights: dict[str, Any] = LlamaForCausalLM.from_pretrained(str(folder), dtype=torch.float32).state_dict()
    own = tokenizer.load(folder)
    if own.get_vocab() != fitted.get_vocab():
        rows = weights["model.embed_tokens.weight"]
        taken = torch.stack([rows[part].mean(0) for part in _parts(own, fitted)])
        weights["model.embed_tokens.weight"] = weights["lm_head.weight"] = taken
    return weights


def _parts(own: Any, fitted: Any) -> list[list[int]]:
    """Return each token of ``fitted`` as tokens of another tokenizer: itself, or its parts."""
    texts = [fitted.decode([i]) for i in range(len(fitted))]
    parts: list[list[int]] = own(texts, add_special_tokens=False)["input_ids"]
    return [part or [own.eos_token_id] for part in parts]


def _learner(network: Any, config: PretrainConfig) -> Learner:
    """Muon for the matrices of the layers, AdamW for embeddings and norms."""
    import torch

    from hunch.lm.training import Learner  # loads torch
    from hunch_studies.laboratory.muon import Muon  # loads torch

    layers = [p for p in network.model.layers.parameters() if p.ndim == 2]
    known = {id(p) for p in layers}
    others = [p for p in network.parameters() if id(p) not in known]
    return Learner(
        Muon(layers, lr=config.learning_rate),
        torch.optim.AdamW(others, lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0),
        limited=list(network.parameters()),
    )


def schedule(step: int, progress: float, warmup: int) -> float:
    """Return the share of the learning rate: linear warm-up, then a half cosine down to a twentieth."""
    return min(1.0, (step + 1) / warmup) * (0.05 + 0.95 * (1 + math.cos(math.pi * progress)) / 2)


def pretrain(config: PretrainConfig, out: Path, tell: Callable[[dict[str, Any]], None]) -> Path:
    """Train, or resume training, and save the model in ``out / "model"``.

    Args:
        config: Settings; they must be those of the folder's earlier training.
        out: Folder with ``checkpoint.pt`` and ``metrics.jsonl``.
        tell: Called regularly with a line of metrics.

    Raises:
        UsageError: if the folder holds training with other settings.
    """
    refuse_foreign(out)
    out.mkdir(parents=True, exist_ok=True)
    training = _take_up(config, out)
    for line in _lines(training, out):
        metrics = out / "metrics.jsonl"
        with writing(metrics), metrics.open("a") as file:
            file.write(json.dumps(line) + "\n")
        tell(line)
    # Not after an interrupted step, of which only half would be saved. The last checkpoint remains.
    checkpoint(training, out / "checkpoint.pt")
    return save(training, out / "model")


def refuse_foreign(out: Path) -> None:
    """Check that a folder holds no other files than those of a training.

    Raises:
        UsageError: if it does; the message names one of them.
    """
    ours = {"checkpoint.pt", "checkpoint.pt.tmp", "metrics.jsonl", "model", "tokenizer"}
    names = {path.name for path in out.iterdir() if path.name[0] != "."} if out.is_dir() else set()
    if not (out / "checkpoint.pt").exists() and (foreign := sorted(names - ours)):
        raise UsageError(f"{out} holds files of something else, such as {foreign[0]}: choose another --out.")


def _take_up(config: PretrainConfig, out: Path) -> Pretraining:
    import torch

    checkpoint = out / "checkpoint.pt"
    if not checkpoint.exists():
        training = Pretraining(config)
        training.tokenizer.save_pretrained(str(out / "tokenizer"))
        return training
    state = torch.load(checkpoint, weights_only=True)
    if state["config"] != config.course:
        raise UsageError(f"{out} holds training with other settings: choose another folder.")
    training = Pretraining(config, tokenizer.load(out / "tokenizer"))
    training.load_state_dict(state)
    return training


def _lines(training: Pretraining, out: Path) -> Iterator[dict[str, Any]]:
    """Train to the end; yields metrics about every hundred steps, and saves."""
    losses: list[float] = []
    begun = saved = time.monotonic()
    since, longest = training.seen, min(512, training.config.stages[-1][1])
    while training.progress < 1:
        losses.append(training.advance())
        if training.step % 100 == 0 or training.progress == 1:
            speed = (training.seen - since) / (time.monotonic() - begun)
            line: dict[str, float] = {
                "step": training.step,
                "tokens": training.seen,
                "tokens_a_second": round(speed),
            }
            line["loss"] = round(sum(losses) / len(losses), 4)
            yield line | training.corpus.evaluate(training.network, training.tokenizer, length=longest)
            losses = []
        if time.monotonic() - saved > training.config.save_every:
            checkpoint(training, out / "checkpoint.pt")
            saved = time.monotonic()


def checkpoint(training: Pretraining, path: Path) -> None:
    """Save everything needed to resume, atomically."""
    import torch

    buffer = io.BytesIO()
    torch.save(training.state_dict(), buffer)
    write_atomically(path, buffer.getbuffer())


def save(training: Pretraining, folder: Path) -> Path:
    """Write the model as the transformers library does, in bfloat16, with a card of its trainings."""
    import copy

    import torch

    from hunch.lm.training.weights import write  # loads torch

    half = copy.deepcopy(training.network).to("cpu", torch.bfloat16)
    return write(folder, half, training.tokenizer, _card(training))


def _card(training: Pretraining) -> list[dict[str, Any]]:
    """Return what the model was trained on: the trainings of the model it started from, and this one."""
    c = training.config
    own = {"corpus": c.corpus, "games": training.corpus.games, "tokens": training.seen, "seed": c.seed}
    return [*(trained_on(Path(c.start)) if c.start else ()), own]
