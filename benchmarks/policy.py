"""Log-probabilities of actions with their gradient: trees of options against one padded batch of them all.

    python benchmarks/policy.py                # about 10 M parameters
    python benchmarks/policy.py 100M           # about 100 M
    python benchmarks/policy.py 2M 60          # about 2 M, shorter prompts
    python benchmarks/policy.py adapters       # what a checkpoint of adapters holds, at 100 M

8 prompts with 20 actions each, as a policy of 8 streams asks in an update. Both sides in one run, in turn:
the same weights (at random), float32, one thread; CPU seconds of the pass forth and back, the least of
several runs. The padded batch computes logits for the actions only. The gap is the largest difference of a
log-probability, and of a weight's gradient relative to the largest one.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from hunch.lm.scoring.engine import laid_out
from hunch.lm.scoring.trie import grow
from hunch.lm.training.adapters import Adapters
from hunch.lm.training.model import path_log_probs
from scoring import commands, fastest, llama
from told import told

STREAMS, ACTIONS = 8, 20


def main() -> None:
    torch.set_num_threads(1)
    if sys.argv[1:] == ["adapters"]:
        return adapters()
    size, length = (sys.argv[1:] + ["10M", "300"][len(sys.argv) - 1 :])[:2]
    network, rng = llama(size), np.random.default_rng(0)
    requests = [(rng.integers(3, 8000, int(length)).tolist(), commands(rng, ACTIONS)) for _ in range(STREAMS)]
    padded, trees = fastest(lambda: learnt(network, requests, plain), lambda: learnt(network, requests, tree))
    here, there = learnt(network, requests, plain), learnt(network, requests, tree)
    gap = max(float((one - other).abs().max()) for one, other in zip(here[0], there[0], strict=True))
    scale = max(float(weight.abs().max()) for weight in here[1])
    apart = (
        max(float((one - other).abs().max()) for one, other in zip(here[1], there[1], strict=True)) / scale
    )
    size = f"{network.num_parameters() / 1e6:.0f} M parameters"
    print(f"{size}, {STREAMS} prompts of {length} tokens, {ACTIONS} actions each")
    print(f"padded batch {padded:.2f} s, trees {trees:.2f} s: {padded / trees:.1f} times faster")
    print(f"gap {gap:.1e}, of gradients {apart:.1e}")


def adapters() -> None:
    network = llama("100M")
    whole = network.num_parameters()
    Adapters(network, rank=8, alpha=16.0, seed=0)
    own = sum(weight.numel() for weight in network.parameters() if weight.requires_grad)
    print(f"{own / 1e6:.1f} M of {whole / 1e6:.0f} M weights: {own / whole:.1%}")


def learnt(network, requests, scores):  # type: ignore[no-untyped-def]
    """Log-probabilities of each prompt's actions, and the gradient of a sum of them that weighs them."""
    network.zero_grad()
    found = scores(network, requests)
    sum((own * torch.linspace(-1, 1, len(own))).sum() for own in found).backward()
    return [own.detach() for own in found], [weight.grad.clone() for weight in network.parameters()]


def plain(network, requests):  # type: ignore[no-untyped-def]
    """One row for each prompt and action, padded behind."""
    tails = [tail for _, own in requests for tail in own]
    rows = [torch.tensor([*head, *tail]) for head, own in requests for tail in own]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    keep = max(map(len, tails)) + 1
    logits = network(
        input_ids=padded, use_cache=False, logits_to_keep=keep + padded.shape[1] - min(map(len, rows))
    )
    offset = padded.shape[1] - logits.logits.shape[1]
    each = logits.logits.log_softmax(-1)
    found = [
        each[i, len(row) - len(tail) - 1 - offset : len(row) - 1 - offset]
        .gather(1, row[-len(tail) :, None])
        .sum()
        for i, (row, tail) in enumerate(zip(rows, tails, strict=True))
    ]
    return torch.stack(found).split(ACTIONS)


def tree(network, requests):  # type: ignore[no-untyped-def]
    """One row for each prompt, with the tree of its actions."""
    trees = [grow(head, own) for head, own in requests]
    keep = max(len(each.tokens) - each.root for each in trees)
    tokens, positions, mask = laid_out(trees, [0] * len(trees), 0, network.dtype)
    out = network(
        input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=keep
    )
    return path_log_probs(out.logits, trees)


if __name__ == "__main__":
    told(__doc__)
    main()
