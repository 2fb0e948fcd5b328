"""Encoders that embed texts and pictures in one space, such as CLIP and SigLIP, run in this process.

This module imports torch, so import it only where such a model is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from hunch.core import HunchError, UsageError
from hunch.lm.backends import weights
from hunch.lm.backends.seeing import opened
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.base import Float32Array, Verb, unit
from hunch.lm.prompts import Prompt, shown


class PairedModel(TransformerModel):
    """Two networks that are trained together: one embeds texts, the other pictures. Vectors have length 1."""

    head = "AutoModel"
    packs = False
    at_once: ClassVar[Mapping[Verb, int]] = {"embed": 128}
    verbs: frozenset[Verb] = frozenset({"embed", "see"})

    def __init__(self, name: str, folder: Path, *, device: str = "cpu", dtype: str = "float32") -> None:
        super().__init__(name, folder, device=device, dtype=dtype)
        _, transformers = weights.libraries()
        config = self.network.config
        self.dim = int(getattr(config, "projection_dim", 0) or config.vision_config.hidden_size)
        self.prompting = "a text as it is, or one picture"
        try:
            with weights.quietly():
                self.eyes = transformers.AutoImageProcessor.from_pretrained(str(folder), use_fast=False)
        except Exception as error:  # transformers raises almost anything for a folder that it cannot read
            raise HunchError(f"The folder {folder} holds no image processor.") from error

    def embed(self, texts: Sequence[Prompt]) -> Float32Array:
        """Return a vector for each text, and for each message that is one picture; shape (len(texts), dim).

        Each one is computed alone, so that its vector does not depend on the others.

        Raises:
            UsageError: for a message that is not one picture, or a text with words that the model lacks.
        """
        with self._turn, torch.inference_mode():
            outputs = [self._read(each) if isinstance(each, str) else self._seen(each) for each in texts]
        vectors = [unit(each.pooler_output[0].float().cpu().numpy()) for each in outputs]
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    def _read(self, text: str) -> Any:
        ids = self._text_tokens(text, self._longest)
        unknown, ends = (
            self.tokenizer.unk_token_id,
            (self.tokenizer.eos_token_id, self.tokenizer.pad_token_id),
        )
        if unknown is not None and unknown not in ends and unknown in ids:
            known = self.tokenizer.get_vocab()
            word = next((w for w in text.lower().strip(".").split() if w not in known), text)
            raise UsageError(f"{self.name} does not know the word {word!r} of {text!r}.")
        padded = self.network.config.model_type != "clip"  # SigLIP reads texts of full length only
        if padded and self._longest:
            ids = ids + [self.tokenizer.pad_token_id] * (self._longest - len(ids))
        self.tokens_read += len(ids)
        return self.network.get_text_features(input_ids=torch.tensor([ids], device=self.device))

    def _seen(self, prompt: Prompt) -> Any:
        images = shown(prompt)
        if len(images) != 1 or any(message.content for message in prompt if not isinstance(message, str)):
            raise UsageError(f"{self.name} embeds a text, or a message that is one picture and no text.")
        pixels = self.eyes(images=opened(images[0]), return_tensors="pt")["pixel_values"]
        return self.network.get_image_features(pixel_values=pixels.to(self.device, self.network.dtype))
