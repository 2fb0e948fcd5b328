"""A small tokenizer for models that the tests make."""

from __future__ import annotations

from pathlib import Path

CORPUS = [
    "You are in the middle of a room. You see a fridge 1, a table 2 and a mug 3.",
    "Your task is to: put a hot mug in cabinet. go to the fridge, open the fridge, take mug 3 from table 2",
    "Action: look around and examine the lamp, close the drawer, heat the potato with the microwave",
    "\n- go left\n- go right\nA B C D E F G H I J K L M N O P Q R S T U V W X Y Z 0 1 2 3 4 5 6 7 8 9",
] * 4


def save_tokenizer(folder: Path, kind: str) -> None:
    """``bytes`` is GPT-2's way; ``metaspace`` is Llama 2's: it starts with BOS and a space of its own."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    if kind == "bytes":
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
        made.decoder = decoders.Metaspace(prepend_scheme="always", split=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else ["\n"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(CORPUS, trainer)
    if kind == "metaspace":
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
