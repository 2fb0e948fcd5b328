"""Counts the tokens of the recorded programs anew, from the recorded answers.

    python -m hunch_studies.writers_tokens docs/assets/studies FILE.gguf

``FILE`` is the model that wrote the programs, of which only the tokenizer is read. A program costs the tokens
of its request, in the model's chat template, and of its answer. The program is looked up among the recorded
answers to its problem:

- A fresh program has one request, the same for all: the shortest of those whose answer contains the program.
- A program of a search may stand in several answers: it has the median of their tokens.
- Answers that were cut at 500 tokens are not recorded; such programs have the mean of bed, arm and kind.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.runs.files import write_atomically
from hunch_studies.recorded_rows import json_lines
from hunch_studies.writers import RANDOM
from hunch_studies.writers_drawn import RECORDED, Row

ANSWERS: Final = "writers.answers.jsonl.gz"
PROGRAM: Final = 500
"""Most tokens of an answer that is a program; other requests ask for less."""
SAID: Final[Mapping[str, str]] = {
    "CartPole-v1": "CartPole-v1",
    "MountainCar-v0": "MountainCar-v0",
    "Acrobot-v1": "Acrobot-v1",
    "Pendulum-v1": "Pendulum-v1",
    "bin packing": "as few bins as possible",
    "FrozenLake's model": "",
}
"""Words by which the requests of a bed are known. The last one has the requests that are left."""
Answer = tuple[str, int]
"""What the model said, without white space, and the tokens of request and answer."""


def counted(rows: Sequence[Row], answers: Mapping[str, Sequence[Answer]]) -> list[int]:
    """Return the tokens of each recorded program; 0 for programs that no model wrote.

    Args:
        rows: The programs.
        answers: The recorded answers of each bed.
    """
    tokens_of: list[int | None] = []
    of_kind: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    known: dict[tuple[str, bool, str], int | None] = {}
    for row in rows:
        if row["arm"] == RANDOM:
            tokens_of.append(0)
            continue
        fresh = row["kind"] in ("", "fresh")
        program = _bare(row["program"])
        key = (row["bed"], fresh, program)
        if key not in known:
            costs = [tokens for text, tokens in answers[row["bed"]] if program and program in text]
            known[key] = int(min(costs) if fresh else np.median(costs)) if costs else None
        tokens_of.append(known[key])
        if known[key] is not None:
            of_kind[row["bed"], row["arm"], row["kind"]].append(known[key] or 0)
    means = {kind: round(float(np.mean(costs))) for kind, costs in of_kind.items()}
    return [
        means[row["bed"], row["arm"], row["kind"]] if tokens is None else tokens
        for row, tokens in zip(rows, tokens_of, strict=True)
    ]


def answers_of(folder: Path, tokenizer: Any) -> dict[str, list[Answer]]:
    """Return the recorded programs' answers by bed."""
    answers: dict[str, list[Answer]] = defaultdict(list)
    for recorded in json_lines(folder / ANSWERS):
        prompt, (longest, *_) = recorded["request"]
        if longest != PROGRAM:
            continue
        messages = [{"role": "user", "content": prompt}]
        if not isinstance(prompt, str):
            messages = [{"role": role, "content": content} for role, content in prompt]
        read = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        tokens = len(tokenizer(read)["input_ids"]) + len(tokenizer(recorded["value"])["input_ids"])
        text = "\n".join(message["content"] for message in messages)
        bed = next(bed for bed, words in SAID.items() if words in text)
        answers[bed].append((_bare(recorded["value"]), tokens))
    return answers


def _bare(text: str) -> str:
    return " ".join(text.split())


def main(folder: str, model: str) -> None:
    """Count, write the counts into the file of programs, and say how many changed."""
    from transformers import AutoTokenizer

    file = Path(folder) / RECORDED
    rows = json_lines(file)
    tokenizer = AutoTokenizer.from_pretrained(str(Path(model).parent), gguf_file=Path(model).name)
    costs = counted(rows, answers_of(Path(folder), tokenizer))
    changed = sum((row["tokens"] or 0) != tokens for row, tokens in zip(rows, costs, strict=True))
    lines = [json.dumps({**row, "tokens": tokens}) + "\n" for row, tokens in zip(rows, costs, strict=True)]
    write_atomically(file, gzip.compress("".join(lines).encode(), mtime=0))
    print(f"{len(rows)} programs; the counts of {changed} changed.")


if __name__ == "__main__":
    main(*sys.argv[1:])
