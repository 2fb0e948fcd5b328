"""Models of the transformers library (``hf:<name or folder>``), run in this process.

A causal model generates, scores and embeds; a model without a causal head, such as BERT, only embeds. A text
is passed unchanged, messages through the model's chat template. Each prompt, text and sample is computed
separately, so that answers do not depend on the batch (:mod:`hunch.lm.base`). How prompts and options are
computed is described in :mod:`hunch.lm.scoring.engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from hunch.core import HunchError, UsageError
from hunch.lm.backends import folders, seam, weights
from hunch.lm.backends.chat import template_of
from hunch.lm.backends.generation import end_tokens
from hunch.lm.backends.sampling import count_words, cut, room_to_think, sample_rng
from hunch.lm.backends.transformer import EncoderModel, Pooling, TransformerModel
from hunch.lm.base import Backend, OptionScores, Verb
from hunch.lm.prompts import Message, Prompt, as_prompt, shown
from hunch.lm.scoring.restricted import Restricted
from hunch.lm.scoring.writer import Writer
from hunch.lm.shorten import shortened
from hunch.lm.speech import ONE_LINE, Sampling, choices, text_of

if TYPE_CHECKING:
    from hunch.lm.backends.paired import PairedModel
    from hunch.lm.backends.seeing import SeeingModel

BACKEND = Backend(
    "hf:<name or folder>",
    f"{__name__}:load",
    frozenset({"generate", "score", "embed", "see"}),
    "any causal model or encoder of the transformers library, in this process",
    imports=("hunch.lm.backends.packing", "hunch.lm.scoring.engine"),
    check=f"{__name__}:check",
    outline=f"{__name__}:outline",
)

PREFIX_CACHE = 256  # MiB; half as much in addition for distributions: 220 of 150,000 tokens
PAIRED = ("clip", "siglip", "siglip2")  # encoders of texts and pictures
TAILS = 2**16  # options whose tokens are kept


def load(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    prefix_cache: float = PREFIX_CACHE,
    batch: int = 1,
    chat: bool = False,
    pooling: Pooling = "mean",
) -> CausalModel | EncoderModel | SeeingModel | PairedModel:
    """Load a model by its hub name or from a folder.

    Args:
        name: Name on the hub, or a folder; remote code is never run.
        device: Default: ``"cuda"`` if available, else ``"cpu"``.
        dtype: Default: bfloat16 on CUDA, else float32.
        prefix_cache: Memory in MiB for the hidden states of recurring prompt prefixes (causal models). Half
            as much is used in addition for distributions of next tokens, which recurring samples need.
        batch: Prompts that a causal model scores together. With more than 1 the last digits of a score
            depend on the other prompts, so a resumed run may differ from an uninterrupted one.
        chat: Pass a text prompt to a causal model as a user message through its chat template; messages
            always use the template. Models that see pictures do so if they have one.
        pooling: How the last hidden states become an embedding: ``mean`` over the tokens, or ``last`` for the
            last token, the only one that has seen the whole text in a causal model.

    Raises:
        UsageError: for a folder, device, dtype or pooling that does not exist, an encoder-decoder model, a
            negative prefix cache, a batch below 1, or an option that a model of this kind does not have.
        HunchError: if the model cannot be loaded.
    """
    return _read(name, device, dtype, prefix_cache, batch, chat, pooling, weightless=False)


def outline(name: str, **options: Any) -> CausalModel | EncoderModel | SeeingModel | PairedModel:
    """Return a model of :func:`load` that cannot be asked, because its weights stay on the disk.

    An encoder is loaded, because it is tried with its weights whether it can read texts together.
    """
    return _read(name, **options, weightless=True)


def _read(
    name: str,
    device: str | None,
    dtype: str | None,
    prefix_cache: float,
    batch: int,
    chat: bool,
    pooling: Pooling,
    *,
    weightless: bool,
) -> CausalModel | EncoderModel | SeeingModel | PairedModel:
    check(name, prefix_cache=prefix_cache, batch=batch, chat=chat, pooling=pooling)
    torch, _ = weights.libraries()
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = dtype or ("bfloat16" if device.startswith("cuda") else "float32")
    folder = folders.find(name)
    model: CausalModel | EncoderModel
    kind = kind_of(folder)
    if kind == "encoder-decoder":
        raise UsageError(
            f"hf:{name} is an encoder-decoder model, which hf: does not support except for training a policy."
        )
    if chat and kind in ("encoder", "paired"):
        raise UsageError(f"hf:{name} is an encoder, so chat=true cannot be used.")
    if pooling != "mean" and kind in ("seeing", "paired"):
        raise UsageError(f"hf:{name} makes no embeddings of hidden states, so pooling cannot be chosen.")
    if kind == "seeing":
        from hunch.lm.backends.seeing import SeeingModel  # loads torch

        return SeeingModel(f"hf:{name}", folder, device=device, dtype=dtype, weightless=weightless)
    if kind == "paired":
        from hunch.lm.backends.paired import PairedModel  # loads torch

        return PairedModel(f"hf:{name}", folder, device=device, dtype=dtype)
    if kind == "causal":
        model = CausalModel(
            f"hf:{name}",
            folder,
            device=device,
            dtype=dtype,
            prefix_cache=prefix_cache,
            batch=batch,
            chat=chat,
            weightless=weightless,
        )
    else:
        model = EncoderModel(f"hf:{name}", folder, device=device, dtype=dtype)
    model.pooling = pooling
    return model


def check(
    name: str,
    *,
    prefix_cache: float = PREFIX_CACHE,
    batch: int = 1,
    chat: bool = False,
    pooling: str = "mean",
    **_: Any,
) -> None:
    """Check the ranges of options of :func:`load`, and that a folder exists.

    Raises:
        UsageError: if an option is wrong; the message names it.
    """
    if batch < 1 or not prefix_cache >= 0:
        raise UsageError(f"hf: needs batch >= 1 and prefix_cache >= 0, not {batch} and {prefix_cache}.")
    if not isinstance(chat, bool):
        raise UsageError(f"chat must be true or false, not {chat!r}.")
    if pooling not in get_args(Pooling):
        raise UsageError(f"The pooling of hf: must be {' or '.join(get_args(Pooling))}, not {pooling!r}.")
    folders.require_name(name)


def kind_of(folder: Path) -> Literal["causal", "seeing", "paired", "encoder", "encoder-decoder"]:
    """Return the kind of model in a folder, from the architecture that its config names."""
    _, transformers = weights.libraries()
    if folder.is_file():
        whole = weights.gguf_config(folder)  # it names no architecture
        return "encoder-decoder" if whole.is_encoder_decoder else "causal"
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder))
    except Exception as error:  # see weights.read
        if not (folder / "config.json").is_file():
            raise UsageError(
                f"The folder {folder} holds no model of transformers: it has no config.json. Name the folder "
                "that does; a GGUF file is gguf:FILE."
            ) from error
        if method := folders.method_of_run(folder):
            raise UsageError(
                f"The folder {folder} is that of a run of {method}, which has saved no model: it did not "
                "end, or its method trains none."
            ) from error
        raise HunchError(f"The folder {folder} holds no model: its config.json cannot be read.") from error
    if config.is_encoder_decoder:
        return "encoder-decoder"
    if config.model_type in PAIRED:
        return "paired"
    known = " ".join(config.architectures or ())
    if "ForConditionalGeneration" in known and hasattr(config, "vision_config"):
        return "seeing"
    return "causal" if "CausalLM" in known or "LMHead" in known else "encoder"


class CausalModel(TransformerModel):
    """A causal language model: it generates, scores and embeds.

    Messages go through the tokenizer's chat template if it has one (:mod:`hunch.lm.backends.chat`).

    Attributes:
        chat: True if a text prompt also goes through the template, as a user message.
        context: Maximum number of tokens of a text prompt and its continuation, less those of the template.
        tokens_saved: Prompt tokens whose results were in the prefix cache.
        ends: The tokens that end a text: those of the checkpoint, and the end of a turn in the template.
        shortens: True if a prompt that is too long loses a part; otherwise it is refused.
    """

    shortens = True

    head = "AutoModelForCausalLM"
    packs = False
    messages = True
    at_once: ClassVar[Mapping[Verb, int]] = {"generate": 128}
    verbs: frozenset[Verb] = frozenset({"generate", "score", "embed"})
    takes = frozenset({"choices"})

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        prefix_cache: float = PREFIX_CACHE,
        batch: int = 1,
        chat: bool = False,
        weightless: bool = False,
    ) -> None:
        from hunch.lm.scoring.engine import Engine  # loads torch

        super().__init__(name, folder, device=device, dtype=dtype, weightless=weightless)
        self.revision += ":rows" + (f":batch{batch}" if batch > 1 else "")
        limit = int(prefix_cache * 2**20)
        self._engine = Engine(self.network, name, self.context, prefix_cache=limit, batch=batch)
        self._writer = Writer(self._engine, limit // 2)
        self.tail = lru_cache(TAILS)(self._tail)  # states share most of their options
        self._template = template_of(self.tokenizer)
        if self._template:
            self._control = self._template.control
        self.revision += ":reply" * bool(self._template and self._template.moves)
        if chat and self._template is None:
            raise UsageError(f"{name} has no chat template, so chat=true cannot be used.")
        self.chat = chat
        if chat and self.context is not None:
            self.context -= len(self._tokens(""))
        self.answer_tokens = room_to_think(self.context) if chat else 0
        text_way = "as a user message" if chat else "unchanged"
        if self._template and not chat:
            text_way += "; chat=true sends it as a message"
        no_template = "joined to one text (it has no chat template)"
        message_way = "by its chat template" if self._template else no_template
        self.prompting = f"text {text_way}; messages {message_way}"
        self.ends = end_tokens(self.network, self.tokenizer)
        if self._template and self._template.end is not None and self._template.end not in self.ends:
            self.ends |= {self._template.end}
            self.revision += ":turn"
        elif self._template and self._template.stop:
            self.revision += ":turn"

    @property
    def _turn_stop(self) -> str:
        """The text that ends a turn of a conversation, where no token does; else empty."""
        return self._template.stop if self._template else ""

    @property
    def tokens_saved(self) -> int:
        """Prompt tokens whose results were in the prefix cache instead of being computed."""
        return self._engine.saved

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt: samples number ``first`` to ``first + k - 1``.

        A prompt that does not fit into the model's context together with ``max_tokens`` loses a part
        (:mod:`hunch.lm.shorten`). Answers that are restricted to choices are drawn from the tree of their
        tokens (:mod:`hunch.lm.scoring.restricted`).

        Raises:
            UsageError: if ``max_tokens`` leaves no room for a prompt, or the tokenizer cannot write a choice.
        """
        if sampling.choices:
            return self._restricted(prompts, k, sampling, first)
        are_chats = [bool(self._template and self._conversation(prompt)) for prompt in prompts]
        if self._turn_stop and len(set(are_chats)) > 1:  # texts and conversations do not end alike
            return [self.generate([prompt], k, sampling, first)[0] for prompt in prompts]
        ending = sampling
        if self._turn_stop and any(are_chats):
            ending = replace(sampling, stop=(*sampling.stop, self._turn_stop))

        requests = [self._fitting(prompt, sampling.max_tokens) for prompt in prompts]  # their tokens
        rngs = [self._rngs(prompt, sampling, k, first) for prompt in prompts]
        with self._turn:
            before = self._writer.reader.computed
            written = self._writer.write(
                list(zip(requests, rngs, strict=True)), sampling, self._ended(ending)
            )
            self.tokens_read += self._writer.reader.computed - before

        answers: list[list[str]] = []
        for tokens_of_prompt, samples in zip(requests, written, strict=True):
            self.tokens_written += sum(map(len, samples))
            answers.append([self._continuation(tokens_of_prompt, tokens, ending) for tokens in samples])
        return answers

    def _rngs(self, prompt: Prompt, sampling: Sampling, k: int, first: int) -> list[np.random.Generator]:
        """Return the random generators of samples number ``first`` to ``first + k - 1`` of a prompt."""
        return [sample_rng(self.revision, prompt, sampling, index) for index in range(first, first + k)]

    def _restricted(
        self, prompts: Sequence[Prompt], k: int, sampling: Sampling, first: int
    ) -> list[list[str]]:
        """Return k of the choices for each prompt; one pass of the model for all samples of a prompt."""
        requests = [self._request(prompt, sampling.choices) for prompt in prompts]
        trees = [Restricted(tails) for _, tails in requests]
        with self._turn:
            before = self._engine.computed
            sums = self._engine.score(
                [(ids, tree.paths) for (ids, _), tree in zip(requests, trees, strict=True)]
            )
            self.tokens_read += self._engine.computed - before
        answers = []
        for prompt, (_, tails), tree, logprobs in zip(prompts, requests, trees, sums, strict=True):
            allowed = tree.choices(logprobs)
            drawn = [tree.draw(allowed, sampling, rng) for rng in self._rngs(prompt, sampling, k, first)]
            self.tokens_written += sum(len(tails[number]) for number in drawn)
            answers.append([sampling.choices[number] for number in drawn])
        return answers

    def _ended(self, sampling: Sampling) -> Callable[[list[int]], bool]:
        """Return a function that checks whether a sample ends with its last token."""
        # A stop string of n characters lies within as many tokens, or four times as many of one byte each.
        reach = 4 * max(map(len, sampling.stop), default=0) + 4

        def ended(tokens: list[int]) -> bool:
            if tokens[-1] in self.ends or len(tokens) >= sampling.max_tokens:
                return True
            if not sampling.stop:
                return False
            tail: str = self.tokenizer.decode(tokens[-reach:], skip_special_tokens=True)
            return cut(tail, sampling.stop) != tail

        return ended

    def _continuation(self, prompt: list[int], tokens: list[int], sampling: Sampling) -> str:
        text_tokens = tokens[:-1] if tokens[-1] in self.ends else tokens
        return cut(self.decode(prompt, text_tokens), sampling.stop)

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return the log-probability of each option after its prompt, summed over the option's tokens.

        Prompt and option are tokenised separately, so the prompt's tokens are the same for all options. One
        space joins them, unless the prompt is empty or ends in white space. The space belongs to the option,
        as in the training data of these models, so end a prompt in "Action:" rather than "Action: ". A prompt
        that does not fit into the model's context with its longest option loses a part.

        Raises:
            UsageError: if the tokenizer cannot write an option, or an option leaves no room for a prompt.
        """
        pairs = choices(prompts, options)
        requests = [self._request(prompt, listed) for prompt, listed in pairs]
        with self._turn:
            before = self._engine.computed
            sums = self._engine.score(requests)  # of each prompt, (n_options,)
            self.tokens_read += self._engine.computed - before
        scores: list[OptionScores] = []
        for log_probs, (_, tails), (_, listed) in zip(sums, requests, pairs, strict=True):
            lengths = np.array([len(tail) for tail in tails])
            scores.append(OptionScores(log_probs, lengths, count_words(listed)))
        return scores

    def _tokens(self, prompt: Prompt, scored: bool = False) -> list[int]:
        """Tokenise a prompt with the special tokens before a text, but not with those after it.

        Some tokenizers add an end token, after which a model would not continue. A chat template adds its
        special tokens itself; for options that are scored, it says where a reply begins.
        """
        if shown(prompt):
            raise self._lacks("see")
        messages = self._conversation(prompt)
        if messages and self._template:
            return self._known(seam.joined(self.tokenizer, self._template.parts(messages, replied=scored)))
        return self._known(self._before + self._plain_tokens(text_of(prompt))) or self._start()

    def _fitting(self, prompt: Prompt, room: int, scored: bool = False) -> list[int]:
        """Tokenise a prompt; it loses a part if it does not fit with ``room`` tokens after it.

        Raises:
            UsageError: if even the least part does not fit.
        """
        what = "The prompt with its longest option" if scored else "The prompt with max_tokens"
        tokens = self._tokens(prompt, scored)
        if self._positions is None or len(tokens) + room <= self._positions:
            return tokens
        if not self.shortens:
            self._check_length(len(tokens) + room, what)
        most = self._positions - room
        part = shortened(as_prompt(prompt), lambda shorter: len(self._tokens(shorter, scored)) <= most)
        tokens = self._tokens(part, scored)
        self._check_length(len(tokens) + room, what)
        self._warn_of_length()
        return tokens

    def _conversation(self, prompt: Prompt) -> Sequence[Message]:
        """Return the messages of a prompt; empty if it is a text."""
        if not isinstance(prompt, str):
            return prompt
        return (Message("user", prompt),) if self.chat else ()

    def _joint(self, prompt: Prompt) -> str:
        """Return the text between a prompt and its continuation."""
        messages = self._conversation(prompt)
        if messages and self._template and messages[-1].role != "assistant":
            return self._template.joint
        text = text_of(prompt)
        return " " if text and not text[-1].isspace() else ""

    def _plain_tokens(self, text: str) -> list[int]:
        return seam.as_text(self.tokenizer, text, self._control)

    def _request(self, prompt: Prompt, options: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Tokenise a prompt and, separately, its options."""
        tails = self.tails(prompt, options)
        return self._fitting(prompt, max(map(len, tails)), scored=True), tails

    def tails(self, prompt: Prompt, options: Sequence[str]) -> list[list[int]]:
        """Tokenise the options of a prompt; after an empty prompt they begin the text.

        Raises:
            UsageError: if the tokenizer cannot write an option.
        """
        joint, begins = self._joint(prompt), not prompt
        return [list(self.tail(joint + option, option, begins)) for option in options]

    def _tail(self, text: str, option: str, begins: bool) -> tuple[int, ...]:
        ids = seam.as_text(self.tokenizer, text, self._control, begins)
        return tuple(seam.writable(self, option, self._known(ids)))

    def decode(self, head: Sequence[int], tokens: Sequence[int]) -> str:
        """Return the text of tokens after those of a prompt."""
        return seam.continuation(self.tokenizer, head[-1], tokens)
