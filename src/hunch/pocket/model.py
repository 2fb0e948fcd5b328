"""``pocket``: the small causal models of this project, for in-context methods without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hunch import plugins
from hunch.core import HunchError, UsageError
from hunch.lm.backends.huggingface import CausalModel, pick
from hunch.lm.base import ONE_LINE, Sampling, cut, sample_rng
from hunch.lm.prompts import Prompt
from hunch.pocket.decoder import Decoder, Row
from hunch.suggest import suggest

GROUP: Final = "hunch.weights"
"""Entry-point group for packages that carry weights: a training corpus and the folder of its model."""
HOUSEHOLDS: Final = Path(__file__).with_name("households_weights")
_OF_POCKET: Final = ("examples", "walks")


class PocketModel(CausalModel):
    """A pocket model: like any causal model, but it continues many prompts in lockstep.

    Args:
        folder: A model that ``hunch pretrain pocket`` saved.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.folder = folder
        self.decoder = Decoder(self.network)

    @property
    def tokens_saved(self) -> int:
        """Prompt tokens that were found in the cache instead of being computed."""
        return self._engine.saved + self.decoder.saved

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt: samples number ``first`` to ``first + k - 1``.

        Raises:
            UsageError: if a prompt and ``max_tokens`` do not fit into the model's context.
        """
        tokens = {prompt: self._tokens(prompt) for prompt in dict.fromkeys(prompts)}
        for ids in tokens.values():
            self._check_length(len(ids) + sampling.max_tokens, "The prompt with max_tokens")
        asked = [(prompt, first + i) for prompt in prompts for i in range(k)]
        before = self.decoder.computed
        rows = self.decoder.read([tokens[prompt] for prompt, _ in asked])
        self.tokens_read += self.decoder.computed - before
        drafts = [
            _Draft(row, sample_rng(self.revision, prompt, sampling, index))
            for row, (prompt, index) in zip(rows, asked, strict=True)
        ]
        self._continue_all(drafts, sampling)
        texts = [draft.text for draft in drafts]
        return [texts[i : i + k] for i in range(0, len(texts), k)]

    def _continue_all(self, drafts: Sequence[_Draft], sampling: Sampling) -> None:
        """Write a token for each draft at a time, until all have ended, are full, or met a stop string."""
        for n in range(sampling.max_tokens):
            going_on = [draft for draft in drafts if not draft.ended]
            if not going_on:
                return
            if n:
                self.decoder.write([draft.row for draft in going_on])
            for draft in going_on:
                token = pick(draft.row.following, sampling, draft.rng)
                self.tokens_written += 1
                draft.ended = token in self._ends
                if not draft.ended:
                    draft.row.tokens.append(token)
                    draft.tokens.append(token)
                    text = self.tokenizer.decode(draft.tokens)
                    draft.text = cut(text, sampling.stop)
                    draft.ended = draft.text != text


class _Draft:
    """A continuation in progress."""

    def __init__(self, row: Row, rng: Any) -> None:
        self.row, self.rng = row, rng
        self.tokens: list[int] = []
        self.text = ""
        self.ended = False


def load(*, corpus: str = "examples", folder: str | None = None) -> PocketModel:
    """Load a model of this project, or one that ``hunch pretrain pocket`` saved.

    Raises:
        UsageError: if there is no model for this corpus, or it is not installed.
        HunchError: if the folder holds no model.
    """
    place = Path(folder).expanduser() if folder else _folder(corpus)
    if not (place / "config.json").exists():
        raise HunchError(f"There is no pocket model in {place}; 'hunch pretrain pocket' trains one.")
    return PocketModel("pocket", place)


def _folder(corpus: str) -> Path:
    """Return the folder of the model of a corpus, from this package or another."""
    if corpus == "households":
        return HOUSEHOLDS
    known = plugins.found(GROUP)
    if corpus in known:
        found: Path = known[corpus].load()
        return found
    if corpus in _OF_POCKET:
        raise plugins.of_pocket(f"The pocket model of the corpus {corpus!r}")
    hint = suggest(corpus, list(dict.fromkeys((*_OF_POCKET, *known, "households"))))
    raise UsageError(f"There is no pocket model of the corpus {corpus!r}; {hint}")
