"""The pocket model's tokenizer: frequent phrases and two-digit numbers are tokens, the rest byte pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

from hunch_studies.laboratory import corpus, wording

SIZE: Final = 1024
END: Final = "<|end|>"
PIECES: Final = r"\n|-?\d{1,2}| ?[A-Za-z_]+|(?:(?! ?[A-Za-z_]|-?\d)[^\n])+|."
"""A line end, a number, a word with the preceding blank, or punctuation; byte pairs do not cross these."""


def phrases() -> list[str]:
    """Return frequent phrases between names and numbers, each of which becomes one token.

    Only a third of a document consists of names and numbers, which must be read one by one.
    """
    opened = ["[", *(f"{call}{inner}" for call in wording.CALLS for inner in ("(", "(i="))]
    relations = [" == ", " != ", " = ", " is ", ": ", "="]
    states = ["assert state", "] and state", ") and state"]
    hints = [f".{key}{then}" for key in "xy" for then in ("", " == ", " < ", " > ", " and ", ", ", ") == (")]
    return list(
        dict.fromkeys(
            [
                *("assert ", " and ", "state", "reward", "()", "()\n", "(state)\n", "]\n", ")\n", ".0\n"),
                *(*states, "] and ", ") and ", "reward = ", "state = ", "state, reward = ", ", reward = "),
                *("reward = state.", ", ", "), ", ")] and ", ")]\n", " < ", " > "),
                *(*(f", {key}=" for key in "jkl"), "] == ", "] < ", "] > ", *hints),
                *("assert reward == ", "assert done\n", "assert not done\n", "assert end\n"),
                *("assert not end\n", "done\n", "not done\n", "done = ", "over: yes\n", "over: no\n"),
                *("reward: ", "# reward ", "got ", "\nstate, reward = reset()\n", ", reward = reset()\n"),
                *(" = reset()\n", "\n# episode\n", "\nstart()\n", "assert", "act(", "obs: ", "now "),
                *(">>> ", "].x", "].y", "; ", "None", " <= ", "-0."),
                *(f"assert state == {bracket}" for bracket in opened),
                *(f"{end} and state{r}{o}" for end in ")]" for r, o in product((" == ", " != "), opened)),
                *(*relations, *opened, *(r + o for r, o in product(relations, opened))),
            ]
        )
    )


def train(seed: str = "tokenizer", documents: int = 2000) -> Any:
    """Fit a tokenizer to the words of the corpus.

    Returns:
        A tokenizer of the transformers library that adds the start token before every text.
    """
    return fit(_texts(seed, documents), PIECES, SIZE, phrases())


def fit(texts: Iterable[str], pieces: str, size: int, whole: Sequence[str] = ()) -> Any:
    """Fit byte pairs to texts.

    Args:
        texts: The texts.
        pieces: Pattern of pieces that byte pairs do not cross.
        size: Total number of tokens.
        whole: Texts that become one token each.

    Returns:
        A tokenizer of the transformers library that adds the start token before every text.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, processors, trainers
    from tokenizers import pre_tokenizers as pre
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    byte_level = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre.Split(Regex(pieces), "isolated")
    raw.pre_tokenizer = pre.Sequence([split, byte_level])
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(whole),
        special_tokens=[END],
        initial_alphabet=pre.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    raw.add_tokens([AddedToken(phrase, normalized=False) for phrase in whole])
    raw.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, raw.token_to_id(END))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=END, eos_token=END, clean_up_tokenization_spaces=False
    )


def _texts(seed: str, documents: int) -> Iterator[str]:
    """Yield every two-digit number often enough to become a token, names, and texts of instructions."""
    numbers = "\n".join(f"{n}\n{n:02d}" for n in range(-40, 100))
    yield from [numbers] * 4000
    rng = Random(seed)
    for _ in range(documents):
        yield "\n".join(wording.names(rng, rng.choice((wording.NAMES, wording.VERBS)), 40))
    for _ in range(documents // 40):
        yield corpus.text(corpus.errands(rng, 1200))


def load(folder: Path) -> Any:
    """Read the tokenizer of a folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))
