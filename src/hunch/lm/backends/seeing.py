"""Image-text models of the transformers library, run in this process.

Each sample is generated separately by the library's ``generate``, and each option is scored alone, because
every architecture places pictures between tokens in its own way.

This module imports torch, so import it only where such a model is loaded.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hunch.core import HunchError, UsageError
from hunch.extras import library
from hunch.lm.backends import seam, weights
from hunch.lm.backends.generation import EVERY_TOKEN, without_settings
from hunch.lm.backends.sampling import count_words, cut, sample_rng
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.base import Model, OptionScores, Verb
from hunch.lm.prompts import Message, Prompt, as_prompt, forms, shown
from hunch.lm.speech import ONE_LINE, Sampling, choices, text_of


class SeeingModel(TransformerModel):
    """An image-text model: generates and scores, for messages with and without pictures.

    If the model has a chat template, a text prompt is sent as a user message.
    """

    head = "AutoModelForImageTextToText"
    packs = False
    messages = True
    verbs: frozenset[Verb] = frozenset({"generate", "score", "see"})
    embed = Model.embed

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        weightless: bool = False,
    ) -> None:
        super().__init__(name, folder, device=device, dtype=dtype, weightless=weightless)
        self.revision += ":apart"
        _, transformers = weights.libraries()
        self.network.generation_config = without_settings(self.network.generation_config)
        self._closing = len(self._after)
        try:
            with weights.quietly():
                self.processor = transformers.AutoProcessor.from_pretrained(str(folder))
        except Exception as error:  # transformers raises almost anything for a folder that it cannot read
            raise HunchError(f"The folder {folder} holds no image processor.") from error
        self._chats = bool(getattr(self.processor, "chat_template", None))
        self.dim = 0
        by = "messages, by its chat template" if self._chats else "messages joined to one text"
        self.prompting = f"text as a user message; {by}" if self._chats else f"text unchanged; {by}"

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt: samples number ``first`` to ``first + k - 1``.

        Raises:
            UsageError: if a prompt has pictures that the model cannot place.
        """
        indices = range(first, first + k)
        with self._turn:
            return [
                [self._sample(as_prompt(prompt), sampling, index) for index in indices] for prompt in prompts
            ]

    def _sample(self, prompt: Prompt, sampling: Sampling, index: int) -> str:
        inputs = self._inputs(prompt)
        heat: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            heat = EVERY_TOKEN | {"temperature": sampling.temperature, "top_p": sampling.top_p}
        seed = int(sample_rng(self.revision, prompt, sampling, index).integers(2**31))
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(seed)
            out = self.network.generate(**inputs, **heat, max_new_tokens=sampling.max_tokens)
        new = out[0, inputs["input_ids"].shape[1] :].tolist()
        self.tokens_read += inputs["input_ids"].shape[1]
        self.tokens_written += len(new)
        last = int(inputs["input_ids"][0, -1])
        return cut(seam.continuation(self.tokenizer, last, new), sampling.stop)

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return the log-probability of each option after its prompt, summed over the option's tokens."""
        with self._turn:
            return [self._scores(prompt, listed) for prompt, listed in choices(prompts, options)]

    def _scores(self, prompt: Prompt, options: tuple[str, ...]) -> OptionScores:
        inputs, joint = self._inputs(prompt), "" if self._text(prompt)[-1:].isspace() else " "
        rows = [seam.as_text(self.tokenizer, joint + option, self._control, False) for option in options]
        tails = [torch.tensor([row]) for row in rows]
        sums = np.array([self._score(inputs, tail.to(self.device)) for tail in tails])
        return OptionScores(sums, np.array([tail.shape[1] for tail in tails]), count_words(options))

    def _score(self, inputs: dict[str, Any], tail: torch.Tensor) -> float:
        head = inputs["input_ids"]
        # Of the inputs per token, text tokens are 1 in the attention mask and 0 in all others.
        longer = {
            name: torch.cat([part, torch.full_like(tail, int(name == "attention_mask"))], dim=1)
            for name, part in inputs.items()
            if isinstance(part, torch.Tensor) and part.shape == head.shape
        }
        self.tokens_read += head.shape[1] + tail.shape[1]
        with torch.inference_mode():
            given = inputs | longer | {"input_ids": torch.cat([head, tail], dim=1)}
            logits = self.network(**given).logits[0, head.shape[1] - 1 : -1].float()
        each = torch.log_softmax(logits, dim=-1).gather(-1, tail[0][:, None])
        return float(each.double().sum())

    def _inputs(self, prompt: Prompt) -> dict[str, Any]:
        """Return the network's inputs for a prompt, without special tokens after it: tokens and pixels."""
        images, text = [opened(image) for image in shown(prompt)], self._text(prompt)
        marked = bool(self.tokenizer.bos_token) and text.startswith(self.tokenizer.bos_token)
        try:
            made = self.processor(
                text=text, images=images or None, return_tensors="pt", add_special_tokens=not marked
            )
        except Exception as error:  # processors raise almost anything
            raise UsageError(
                f"{self.name} cannot process this prompt with {len(images)} pictures ({error})."
            ) from error
        shape, end = made["input_ids"].shape, made["input_ids"].shape[1] - self._closing * (not marked)
        return {
            name: (part[:, :end] if part.shape == shape else part).to(self.device)
            for name, part in made.items()
        }

    def _text(self, prompt: Prompt) -> str:
        if not self._chats:
            if shown(prompt):
                raise UsageError(f"{self.name} has no chat template, so it cannot place pictures.")
            return self._quoted(text_of(prompt))
        messages = (Message("user", prompt),) if isinstance(prompt, str) else prompt
        problem: Exception | None = None
        for form in forms(messages):
            try:
                return self._rendered(form)
            except Exception as error:  # a template is a program, and may raise anything
                problem = problem or error
        raise UsageError(f"The chat template of {self.name} rejects these messages ({problem}).")

    def _quoted(self, text: str) -> str:
        """Return a text with a space in each text of a control token, which the processor would read as one.

        A processor takes the whole prompt as one text, in which its own tokens mark the pictures.
        """
        if self._control is None:
            return text
        return self._control.sub(lambda mark: f"{mark[0][:1]} {mark[0][1:]}", text)

    def _rendered(self, messages: Sequence[Message]) -> str:
        parts = [
            {
                "role": message.role,
                "content": [{"type": "image"} for _ in message.images]
                + [{"type": "text", "text": self._quoted(message.content)}],
            }
            for message in messages
        ]
        goes_on = messages[-1].role == "assistant"
        text: str = self.processor.apply_chat_template(
            parts, tokenize=False, add_generation_prompt=not goes_on, continue_final_message=goes_on
        )
        return text


def opened(image: str) -> Any:
    """Return a picture in the format of image processors.

    Raises:
        HunchError: if Pillow is missing, or the picture cannot be read.
    """
    images = library("PIL.Image", "Pictures need Pillow", "plot")
    try:
        return images.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))).convert("RGB")
    except OSError as error:
        raise HunchError(f"A picture cannot be read ({error}).") from error
