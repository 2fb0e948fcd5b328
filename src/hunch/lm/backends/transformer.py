"""Base class of models of the transformers library: files, embeddings, and one request at a time."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from hunch.core import EvidenceLevel, HunchWarning, UsageError
from hunch.lm.backends import seam, weights
from hunch.lm.backends.folders import fingerprint
from hunch.lm.backends.replies import whole
from hunch.lm.base import Float32Array, Model, Verb, threads, unit

if TYPE_CHECKING:
    from torch import Tensor

Pooling = Literal["mean", "last"]


class TransformerModel(Model):
    """Base class of causal models and encoders, with files and embeddings.

    Encoders read short texts together (:mod:`hunch.lm.backends.packing`).

    The evidence level is L3, unless ``config.json`` has ``"hunch_evidence"``, for small models trained here
    and random ones. The revision is the hub's commit or a hash of the files, with dtype, device and torch's
    version, because these change the last digits.

    Attributes:
        pooling: How the last hidden states become an embedding: ``"mean"`` or ``"last"`` token.
        source: The folder or file that was read.
        shortened: Number of prompts so far that were longer than the model reads and lost a part.
        trained_on: Trainings in the model's card; see :func:`hunch.lm.backends.weights.trained_on`.
        ends: The tokens that end a text; none for a model that writes no text.
        packs: True if short texts may be read together without changing any bit.
    """

    head: str
    packs: bool
    ends: frozenset[int] = frozenset()
    pooling: Pooling = "mean"

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        weightless: bool = False,
    ) -> None:
        """Read the model of a folder; without its weights it has its attributes and cannot be asked."""
        from hunch.lm.backends.packing import Reader  # loads torch

        self.name = name
        self.source = str(folder)
        self._turn = Turn()
        self.shortened = 0
        self.tokenizer, self.network = weights.read(folder, self.head, device, dtype, weightless=weightless)
        self._rows = _rows(self.network)
        self._control = seam.control_tokens(self.tokenizer)
        self._before, self._after = seam.around(self.tokenizer)
        self.device = device
        self._reader = Reader(self.network.base_model, pack=self.packs)
        where = f"{dtype}:{device.split(':')[0]}:torch-{version('torch')}"
        self.revision = f"{self._files(folder)}:{where}" + ":packed" * self._reader.packs
        self.evidence = self._evidence()
        self.trained_on = weights.trained_on(folder)
        self.parameters = sum(weight.numel() for weight in self.network.parameters())
        config = self.network.config.get_text_config()
        self.dim = int(config.hidden_size)
        self.context = self._positions = getattr(config, "max_position_embeddings", None)

    def _files(self, folder: Path) -> str:
        """Return an identifier of the files."""
        return fingerprint(folder)

    def _evidence(self) -> EvidenceLevel:
        stated: EvidenceLevel = getattr(self.network.config, "hunch_evidence", "L3")
        if stated not in get_args(EvidenceLevel):
            raise UsageError(f"{self.name} declares evidence level {stated!r}; there are L0, L1, L2, L3.")
        return stated

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(seam.as_text(self.tokenizer, text, self._control))

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Return the last hidden states, pooled over the tokens; shape (len(texts), dim), not normalised.

        Special tokens count as tokens. A text longer than the context is cut at its end.
        """
        rows = [self._text_tokens(text, self._longest) for text in texts]
        with self._turn:
            self.tokens_read += sum(map(len, rows))
            vectors = [self._pooled(states) for states in self._reader.states(rows)]
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    def _pooled(self, states: Tensor) -> Float32Array:
        pooled = states[-1].float() if self.pooling == "last" else states.float().mean(dim=0)
        vector: Float32Array = pooled.cpu().numpy()
        return vector

    @property
    def _longest(self) -> int | None:
        """Return the maximum number of tokens to embed; some models, such as RoBERTa, overstate theirs."""
        stated = (self.context, self.tokenizer.model_max_length)  # the latter is 1e30 if unknown
        return min((limit for limit in stated if limit and limit < 10**9), default=None)

    def _text_tokens(self, text: str, limit: int | None) -> list[int]:
        """Tokenise a text with the model's own special tokens around it; never empty."""
        ids: list[int]
        before, after = self._before, self._after
        if self._control and self._control.search(text):
            ids = [*before, *seam.as_text(self.tokenizer, text, self._control), *after]
        else:
            ids = self.tokenizer(whole(text), verbose=False, return_attention_mask=False)["input_ids"]
        if limit is not None and len(ids) > limit:
            # The tokenizer is not asked to truncate: that changes a setting of it, which would hold for what
            # another thread tokenises at the moment.
            inner = ids[len(before) : len(ids) - len(after)]
            ids = [*before, *inner[: limit - len(before) - len(after)], *after]
        return self._known(ids) or self._start()

    def _known(self, ids: list[int]) -> list[int]:
        """Return tokens, if the network has all of them.

        Raises:
            UsageError: if the tokenizer has more tokens than the network; the message names one.
        """
        rows = self._rows
        if ids and rows is not None and max(ids) >= rows:
            token = max(ids)
            text = self.tokenizer.decode([token])
            raise UsageError(
                f"The tokenizer of {self.name} writes {text!r} as token {token}, but its network has only "
                f"{rows:,} tokens: take that token from the tokenizer, or resize the network's embeddings "
                "and train them."
            )
        return ids

    def _check_length(self, tokens: int, what: str, remedy: str = "") -> None:
        if self._positions is not None and tokens > self._positions:
            reads = f"{self.name} reads at most {self._positions}"
            raise UsageError(f"{what} has {tokens} tokens; {reads}.{remedy}")

    def _warn_of_length(self) -> None:
        """Count a prompt that is too long, and say so the first time."""
        self.shortened += 1
        if self.shortened == 1:
            reads = f"{self.name} reads at most {self._positions} tokens"
            warnings.warn(f"{reads}, so a longer prompt lost a part.", HunchWarning, stacklevel=4)

    def _start(self) -> list[int]:
        """Return the tokens that stand for an empty text."""
        for mark in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if mark is not None:
                return [mark]
        raise UsageError(f"{self.name} cannot read an empty text: its tokenizer has no start token.")


def _rows(network: Any) -> int | None:
    """Return the number of tokens that a network knows; None if it does not say, as pairs of networks."""
    try:
        table = network.get_input_embeddings()
    except NotImplementedError:
        return None
    return int(table.weight.shape[0])


class EncoderModel(TransformerModel):
    """A model without a language-model head, which only embeds."""

    head = "AutoModel"
    packs = True
    at_once: ClassVar[Mapping[Verb, int]] = {"embed": 128}
    verbs: frozenset[Verb] = frozenset({"embed"})


class SentenceEncoder(EncoderModel):
    """A published encoder of sentences: mean hidden state of at most ``reads`` tokens, scaled to length 1.

    It always runs in float32 on one CPU thread. More hardware gains little for short texts, and this way the
    answers do not depend on the hardware or the number of threads.

    Attributes:
        reads: Tokens that it was trained to read; longer texts were cut in its training too.
    """

    reads: ClassVar[int]

    def __init__(self, name: str, folder: Path, sha256: str) -> None:
        """Load from a folder whose weights have the SHA-256 ``sha256``, which the caller has compared."""
        self._sha256 = sha256
        with threads(1):
            super().__init__(name, folder)
        # The last bits of a vector depend on the version of torch, and runs must repeat bit for bit.
        how = "-packed" * self._reader.packs
        self.revision = f"{self._files(folder)}-torch-{version('torch')}{how}"
        self.context = self.reads

    def _files(self, folder: Path) -> str:
        return self._sha256[:16]

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Return one unit vector per text, shape (len(texts), dim); a text is cut after ``reads`` tokens."""
        with threads(1):
            return super().embed(texts)

    def _pooled(self, states: Tensor) -> Float32Array:
        return unit(super()._pooled(states))


class Turn:
    """A lock that lets one thread at a time use a network; copies and forked processes get a new one.

    A network handles one request at a time, because its counters are read before and after.
    """

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()
