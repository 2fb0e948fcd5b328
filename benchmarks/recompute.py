"""What ``recompute=true`` saves in memory and costs in time: one gradient step on texts, with it and without.

    python benchmarks/recompute.py hf:<name, folder or GGUF file>  [texts]  [tokens]

By default 32 texts of 64 tokens, after a prompt of a few tokens, adapters of rank 16, float32, one thread.
Each side in a process of its own: peak memory of the first step beyond that of the loaded model, and CPU
seconds of the better of two steps. A line before the table says whether both computed the same gradient.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import torch

from hunch import lm
from hunch.lm.training import Written
from told import told

PROMPT = "Continue: the boat left the harbour"


def measure(spec: str, texts: int, tokens: int) -> None:
    """Print the peak memory in MB, the CPU seconds and the norm of the gradient as JSON."""
    torch.set_num_threads(1)
    trained = lm.trainable(spec)
    chance = torch.Generator().manual_seed(0)
    drawn = torch.randint(200, 2_000, (texts, tokens), generator=chance).tolist()
    written = [Written("", tuple(row), (), finished=False) for row in drawn]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        for weight in trained.parameters():
            weight.grad = None
        outputs = trained.evaluate([PROMPT] * texts, written)
        outputs.logprobs.sum().backward()
        seconds.append(time.process_time() - begin)
        if len(seconds) == 1:  # of the first step: what is free after it may stay with the process
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    norm = torch.stack([weight.grad.norm() for weight in trained.parameters() if weight.grad is not None])
    row = {"megabytes": (peak - before) / 1024, "seconds": min(seconds), "gradient": float(norm.norm())}
    print(json.dumps(row))


def main(spec: str, texts: int, tokens: int) -> None:
    """Print both sides and their ratio."""
    rows = []
    for recompute in ("false", "true"):
        options = f"train=lora&rank=16&recompute={recompute}"
        own_spec = spec + ("&" if "?" in spec else "?") + options
        command = [sys.executable, __file__, "--measure", own_spec, str(texts), str(tokens)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append(json.loads(answer.splitlines()[-1]))
    kept, again = rows
    print(f"norm of the gradient: {kept['gradient']:.6g} and {again['gradient']:.6g}\n")
    print("| recompute | peak memory beyond the model's, MB | CPU seconds |")
    print("|---|---|---|")
    for name, row in (("false", kept), ("true", again)):
        print(f"| {name} | {row['megabytes']:,.0f} | {row['seconds']:.1f} |")
    memory = again["megabytes"] / kept["megabytes"]
    print(f"| ratio | {memory:.2f} | {again['seconds'] / kept['seconds']:.2f} |")


if __name__ == "__main__":
    told(__doc__)
    arguments = sys.argv[1:]
    if arguments[0] == "--measure":
        measure(arguments[1], int(arguments[2]), int(arguments[3]))
    else:
        numbers = [int(text) for text in arguments[1:]]
        main(arguments[0], *(numbers + [32, 64][len(numbers) :]))
