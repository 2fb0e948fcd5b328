"""Computation with a causal model: cached prefixes in blocks, options as a tree, each token only once.

A prompt is cut into blocks of a fixed number of tokens. Block i is always computed by a forward pass of the
same shape over the blocks before it. So a cached block holds the same bits as a new computation, and answers
do not depend on earlier requests (:mod:`hunch.lm.base`). The rest of the prompt and the tree of its options
follow in one forward pass, with a mask that lets each token see its ancestors.

Before the first answer, a model is compared with the plain computation on a short probe. If it does not
support such a mask, the plain computation is used from then on, with a warning.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from hunch.core import FloatArray, HunchWarning
from hunch.lm.scoring.lockstep import MOST_ROWS, PASSES, Group, advance, draw, prepare
from hunch.lm.scoring.prefill import Alone, BlockPrefill, PlainPrefill, Prefill
from hunch.lm.scoring.prefix import Block, State
from hunch.lm.scoring.recent import Prefixes, block_keys
from hunch.lm.scoring.rowwise import rowwise
from hunch.lm.scoring.trie import Tokens, Tree, chain, grow, split
from hunch.lm.scoring.writer import Draft, Text, Way
from hunch.lm.speech import Sampling

BLOCK = {"cpu": 128, "cuda": 512}
"""Tokens per block by device: enough for efficient matrix products, few enough for a cheap remainder."""
MOST_BRANCHES = 512  # tokens of options in one forward pass; bounds the logits to 0.3 GB for 150,000 words
TOLERANCE = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.3}
WINDOWS = ("sliding_window", "window_size", "attention_chunk_size")


class Job(NamedTuple):
    """Options of one request that fit into one forward pass."""

    request: int
    head: Tokens
    group: list[int]
    options: Sequence[Tokens]


class Engine:
    """Scores options and reads prompts with one network, caching prefixes.

    Attributes:
        computed: Tokens of prompts and options computed so far.
        saved: Tokens of prompts found in the prefix cache so far.
    """

    def __init__(
        self, network: Any, name: str, context: int | None, *, prefix_cache: int = 0, batch: int = 1
    ) -> None:
        """Prepare a network.

        Args:
            network: A causal model of the transformers library.
            name: Name of the model in warnings.
            context: Maximum number of tokens that it reads, or None.
            prefix_cache: Bytes of key-value state to keep between calls.
            batch: Number of prompts to compute together.
        """
        self.network, self.name, self.batch = network, name, batch
        self.block = BLOCK.get(network.device.type, BLOCK["cuda"])
        self.computed = self.saved = 0
        self.prefixes = Prefixes(prefix_cache)
        config = network.config.get_text_config()
        windows = [getattr(config, window, None) for window in WINDOWS]
        # Within the smallest window, an index in the tree can serve as a position.
        self._reach = min([reach for reach in (context, *windows) if reach], default=2**31)
        self._limits_logits = "logits_to_keep" in inspect.signature(network.forward).parameters
        head = network.get_output_embeddings()
        if self._limits_logits and head is not None:
            head.register_forward_pre_hook(_without_gaps)

    def score(self, requests: Sequence[tuple[Tokens, Sequence[Tokens]]]) -> list[FloatArray]:
        """Return the log-probabilities of the options of each prompt, shape (n_options,), given as tokens."""
        sums = [np.zeros(len(options)) for _, options in requests]
        jobs: list[Job] = []
        for index, (head, options) in enumerate(requests):
            room = self._reach - len(head)
            if max(map(len, options)) > room or self.unfit:
                sums[index][:] = self.plain(head, options)
                continue
            groups = split(options, min(room, MOST_BRANCHES))
            jobs += [Job(index, head, group, [options[i] for i in group]) for group in groups]
        jobs.sort(key=lambda job: len(job.head))
        for start in range(0, len(jobs), self.batch):
            together = jobs[start : start + self.batch]
            for job, logprobs in zip(together, self._score(together), strict=True):
                sums[job.request][job.group] = logprobs
        return sums

    def _score(self, jobs: Sequence[Job]) -> list[FloatArray]:
        prefixes = [self.prefix(job.head) for job in jobs]
        trees: list[Tree] = []  # of the rest of each prompt and its options
        for job, blocks in zip(jobs, prefixes, strict=True):
            rest = job.head[len(blocks) * self.block :]
            trees.append(grow(rest, job.options))
        sizes = [len(tree.tokens) for tree in trees]
        keep = max(size - tree.root for size, tree in zip(sizes, trees, strict=True))
        state = State(prefixes, max(map(len, prefixes)) * self.block + max(sizes))
        logits = self.append(state, trees, keep)  # (jobs, keep, vocabulary)
        self.computed += sum(sizes)
        return [path_sums(logits[row], tree, keep) for row, tree in enumerate(trees)]

    def prefix(self, tokens: Tokens) -> list[Block]:
        """Return all whole blocks before the last token, from the cache if possible."""
        whole = (len(tokens) - 1) // self.block * self.block
        keys = block_keys(tokens[:whole], self.block)
        blocks = self.prefixes.known(keys)
        self.saved += len(blocks) * self.block
        if len(blocks) < len(keys):
            state = State([blocks], whole)
            for start in range(len(blocks) * self.block, whole, self.block):
                self.append(state, [chain(tokens[start : start + self.block])], keep=0)
                blocks.append(state.block(start, start + self.block))
                self.computed += self.block
        self.prefixes.keep(keys, blocks)
        return blocks

    def append(self, state: State, trees: Sequence[Tree], keep: int) -> torch.Tensor:
        """Append a tree to each row of a state; return the logits at the last ``keep`` tokens.

        Shorter trees are padded at the front, so that all ends are aligned.
        """
        tokens, positions, mask = laid_out(trees, state.lengths, state.length, self.network.dtype)
        logits, _ = self.run(
            tokens,
            keep,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=state,
            use_cache=True,
        )
        state.lengths = [length + tokens.shape[1] for length in state.lengths]
        return logits

    def run(self, tokens: torch.Tensor, keep: int, **inputs: Any) -> tuple[torch.Tensor, Any]:
        """Run the network; return the logits at the last ``keep`` positions (none for 0), and the state."""
        device = self.network.device
        network = self.network if keep else self.network.base_model
        arguments = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }
        if keep:
            arguments |= self.keeping(keep)
        with torch.inference_mode():
            outputs = network(input_ids=tokens.to(device), **arguments)
        logits = outputs.logits[:, -keep:] if keep else torch.empty(0)  # (rows, keep, vocabulary)
        return logits, getattr(outputs, "past_key_values", None)  # some architectures keep no state

    def keeping(self, keep: int) -> dict[str, int]:
        """Return arguments that limit the logits to the last ones, if supported, to save gigabytes."""
        return {"logits_to_keep": keep} if self._limits_logits else {}

    def plain(self, head: Tokens, options: Sequence[Tokens]) -> FloatArray:
        """Return the log-probability of each option from one padded batch of prompt and option."""
        width = max(map(len, options))
        rows = torch.tensor([[*head, *option] + [0] * (width - len(option)) for option in options])
        real = torch.tensor([[1] * len(option) + [0] * (width - len(option)) for option in options])
        mask = torch.cat([torch.ones(len(options), len(head), dtype=real.dtype), real], dim=1)
        self.computed += int(mask.sum())
        # The position before a token predicts it, so the last position is not needed.
        logits, _ = self.run(rows, width + 1, attention_mask=mask, use_cache=False)
        logprobs = torch.log_softmax(logits[:, :-1].float(), dim=-1)
        each = logprobs.gather(-1, rows[:, len(head) :, None].to(logprobs.device)).squeeze(-1)
        sums: FloatArray = each.double().cpu().masked_fill(real == 0, 0.0).sum(dim=1).numpy()
        return sums

    @property
    def width(self) -> int:
        """Maximum number of texts that are written together."""
        return self.lockstep

    def way(self, prompt: Tokens, room: int) -> Way:
        """Return how texts of up to ``room`` tokens after a prompt are computed."""
        if len(prompt) + room > self._reach or self.unfit:
            return Way("plain", 1)
        return Way("lockstep" if self.lockstep > 1 else "alone", self.lockstep)

    def read(self, prompt: Tokens, room: int) -> Prefill:
        """Read a prompt, to continue it by up to ``room`` tokens."""
        plain = self.way(prompt, room).name == "plain"
        return PlainPrefill(self, prompt) if plain else BlockPrefill(self, prompt, room)

    def begin(self, prompt: Tokens, way: Way, rows: int, room: int) -> tuple[Group | Alone, torch.Tensor]:
        """Read a prompt; return a group for up to ``rows`` texts, and the distribution of the first token."""
        if way.rows == 1:
            start = self.read(prompt, room)
            return Alone(start), torch.from_numpy(start.logprobs).float()
        first = BlockPrefill(self, prompt, 0)
        return Group(first.state, rows, room), torch.from_numpy(first.logprobs).float()

    def advance(self, groups: Sequence[Any]) -> list[torch.Tensor]:
        """Read the last token of all texts in the groups; return the next-token distributions, in order."""
        if isinstance(groups[0], Alone):
            return [torch.from_numpy(group.step()).float() for group in groups]
        return [row.to(torch.float32, copy=True) for row in advance(self.network, groups)]

    @staticmethod
    def draw(rows: Sequence[torch.Tensor], sampling: Sampling, drafts: Sequence[Draft]) -> list[int]:
        """Draw the next token of each draft from its distribution, with the draft's random generator."""
        device = rows[-1].device
        return draw(torch.stack([row.to(device) for row in rows]), sampling, drafts)

    @cached_property
    def lockstep(self) -> int:
        """Maximum number of drafts written together; 1 if writing together would change their bits."""
        if self.unfit or not prepare(self.network) or not self._advances():
            return 1
        return MOST_ROWS if rowwise(self.network, PASSES) else self.batch

    def _advances(self) -> bool:
        """Return whether a step of several drafts gives the log-probabilities of single steps."""
        probe = Engine(self.network, self.name, self._reach)
        texts_of_prompt: list[tuple[list[int], list[Text]]] = [
            ([5, 7, 9, 11], [(13,), (17,)]),
            ([6, 8], [(19,)]),
        ]
        groups: list[Group] = []
        single: list[FloatArray] = []  # of each text, (vocabulary,)
        for prompt, texts in texts_of_prompt:
            start = BlockPrefill(probe, prompt, 2)
            group = Group(start.state, len(texts), 2)
            group.follow(texts)
            groups.append(group)
            for (token,) in texts:
                start.rewind()
                single.append(start.step(token))
        try:
            logits = advance(self.network, groups)  # (texts, vocabulary)
        except Exception:  # an architecture may raise anything on such rows
            return False
        together = torch.log_softmax(logits.float(), dim=-1).double().cpu().numpy()
        return bool(np.abs(together - np.array(single)).max() <= self._tolerance)

    @property
    def _tolerance(self) -> float:
        """Largest difference of two log-probabilities of a token that rounding explains."""
        return TOLERANCE[str(self.network.dtype).removeprefix("torch.")]

    @cached_property
    def unfit(self) -> str:
        """Reason why the network does not compute trees correctly; empty if it does."""
        probe = Engine(self.network, self.name, self._reach)
        reason = probe.misfit()
        if reason:
            warnings.warn(
                f"{self.name} uses the plain computation, one padded batch of options per prompt: {reason}.",
                HunchWarning,
                stacklevel=2,
            )
        return reason

    def misfit(self) -> str:
        """Compare trees with the plain computation on a probe of more than one block."""
        length = min(self.block + 4, self._reach - 16)
        vocabulary = self.network.config.get_text_config().vocab_size
        head, rest = np.split(np.arange(3, 7 * (length + 8) + 3, 7) % vocabulary, [length])
        a, b, c, d, e, *_ = rest.tolist()
        options = [[a], [a, b], [c, a, d, b], [a, b, c, d], [c, e, a, b, d]]
        try:
            together = self._score([Job(0, head.tolist(), [], options)])[0]
        except Exception as error:  # an architecture may raise anything on inputs that it does not know
            return f"its forward pass does not accept a tree ({type(error).__name__})"
        # Scores are sums over tokens, each of which is rounded.
        tokens = np.array([len(option) for option in options])
        difference = float((np.abs(together - self.plain(head.tolist(), options)) / tokens).max())
        if difference <= self._tolerance:
            return ""
        return f"its scores of a tree of options are off by {difference:.2g} for each token"


def laid_out(
    trees: Sequence[Tree], lengths: Sequence[int], past: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the tokens, positions and mask of one tree per row, as inputs of a network.

    Args:
        trees: The trees; shorter ones are padded at the front, so that all ends are aligned.
        lengths: Number of tokens that each row already has.
        past: Number of positions that these tokens occupy.
        dtype: Number format of the mask.
    """
    width = max(len(tree.tokens) for tree in trees)
    tokens = np.zeros((len(trees), width), dtype=np.int64)
    positions = np.zeros_like(tokens)
    seen = np.zeros((len(trees), 1, width, past + width), dtype=bool)
    seen[:, 0, :, past:] = np.eye(width, dtype=bool)  # padding must see something, so it sees itself
    for row, (tree, length) in enumerate(zip(trees, lengths, strict=True)):
        start = width - len(tree.tokens)
        tokens[row, start:] = tree.tokens
        positions[row, start:] = np.add(tree.depths(), length)
        seen[row, 0, start:, :length] = True
        seen[row, 0, start:, past + start :] = tree.visible()
    mask = torch.zeros(seen.shape, dtype=dtype)
    mask.masked_fill_(torch.from_numpy(~seen), torch.finfo(dtype).min)
    return torch.from_numpy(tokens), torch.from_numpy(positions), mask


def path_sums(logits: torch.Tensor, tree: Tree, keep: int) -> FloatArray:
    """Sum the log-probabilities along each path of a tree, from the logits at its last ``keep`` tokens."""
    each = token_log_probs(logits[None], [tree], keep).double().cpu().numpy()
    ends = np.cumsum([len(path) for path in tree.paths])[:-1]
    return np.array([part.sum() for part in np.split(each, ends)])


def token_log_probs(logits: torch.Tensor, trees: Sequence[Tree], keep: int) -> torch.Tensor:
    """Return the log-probability of each token of each path, one path after the other, tree by tree.

    Args:
        logits: Logits at the last ``keep`` tokens of each tree, shape (trees, keep, vocabulary).
        trees: The trees.
        keep: See ``logits``.
    """
    rows, nodes, tokens = np.array(
        [
            (row, node + keep - len(tree.tokens), token)
            for row, tree in enumerate(trees)
            for path in tree.paths
            for node, token in path
        ]
    ).T
    # Paths share their beginnings, so a distribution is normalised once for all paths that read from it.
    places, index = np.unique(rows * keep + nodes, return_inverse=True)
    distributions = logits[places // keep, places % keep]  # (places, vocabulary)
    distributions = distributions.to(torch.promote_types(distributions.dtype, torch.float32))
    normalisers = distributions.logsumexp(dim=-1)  # (places,)
    # log softmax, of one token of each row
    return distributions[index, tokens] - normalisers[index]


def _without_gaps(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Copy the states, (rows, last positions, dim), of which the output weights make logits.

    The last positions of several rows are a view with gaps, for which torch would multiply row by row, with a
    copy of the output weights for each row.
    """
    return tuple(given.contiguous() for given in inputs)
