"""Models that write and are trained: sampling beside transformers' ``generate``, an update beside TRL's GRPO.

    python benchmarks/tuning.py                     # about 2 M parameters
    python benchmarks/tuning.py 15M                 # about 15 M
    python benchmarks/tuning.py 1.5B cuda           # about 1.3 billion, on an accelerator
    python benchmarks/tuning.py 7B cuda lora        # about 6.6 billion, adapters only
    python benchmarks/tuning.py FOLDER cpu lora     # a model of transformers, such as SmolLM2-135M-Instruct

All in one run, in turn, on the same weights (at random, or those of a folder), prompts and tokens, at
temperature 1. On a CPU: float32, one thread, 8 prompts of 40 tokens (of a folder: 4), 8 answers of 32 tokens
each, CPU seconds, which other programs on the machine hardly change. On an accelerator: bfloat16, 8 prompts
of 200 tokens, 8 answers of 128 tokens each, seconds. The best of several runs; tokens per second are those of
the answers. An update is GRPO's: one gradient step on all answers with given rewards, the divergence from a
reference and gradients clipped. Both libraries recompute nothing that sampling gave them. The run ends with
an error if the two do not make as many optimiser steps, on as many weights in the same number format. Without
TRL (``pip install trl``) the second part is left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from hunch.core import State, Transition
from hunch.lm.training import load
from hunch.rl.policy import Step
from hunch.rl.policy_gradient import PRESETS, PolicyGradient
from hunch.roles.policy.text import TextPolicy, TextPolicyConfig
from told import told

PROMPTS, ANSWERS, RUNS = 8, 8, 3
PROMPTS_OF_A_FOLDER, RUNS_OF_A_FOLDER = 4, 2
"""Fewer, so that a real model takes minutes on a CPU."""
LENGTHS = {"cpu": (40, 32), "cuda": (200, 128)}
"""Tokens of a prompt and of an answer."""
DTYPES = {"cpu": "float32", "cuda": "bfloat16"}
SIZES = {
    "2M": {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 344},
    "15M": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1024},
    # the shapes of Qwen2.5, with a small vocabulary
    "0.5B": {
        "hidden_size": 896,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "intermediate_size": 4864,
    },
    "1.5B": {
        "hidden_size": 1536,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "intermediate_size": 8960,
    },
    "7B": {
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
    },
}
WORDS = 8000


def main(size: str = "2M", device: str = "cpu", train: str = "all") -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        if Path(size).is_dir():
            linked(Path(size), Path(folder))
            run(folder, device, train, PROMPTS_OF_A_FOLDER, RUNS_OF_A_FOLDER)
        else:
            written(Path(folder), size, device)
            run(folder, device, train, PROMPTS, RUNS)


def run(folder: str, device: str, train: Any, n_prompts: int, runs: int) -> None:
    """Compare sampling, then the update."""
    length, tokens = LENGTHS[device]
    lm = load(folder, device=device, dtype=DTYPES[device], train=train)
    policy = TextPolicy(lm, TextPolicyConfig(max_tokens=tokens, width=8), 0, reference="start")
    print(
        f"{lm.network.num_parameters() / 1e6:.0f} M parameters, {n_prompts} prompts, {ANSWERS} answers each"
    )
    rng = np.random.default_rng(0)
    prompts = [prompt_of(lm, length, rng) for _ in range(n_prompts)]
    states = [State(prompt) for prompt in prompts for _ in range(ANSWERS)]

    def sample() -> Any:
        return policy.sample(states, [np.random.default_rng(i) for i in range(len(states))])

    together = partial(compare, device, n_prompts * ANSWERS * tokens, runs)
    samples = together("sampling", sample, generated(lm, prompts, tokens), "transformers' generate")
    if short := [sample for sample in samples if len(sample.tokens) < tokens]:
        print(f"{len(short)} answers of ours ended before {tokens} tokens")
    steps = [
        Step(Transition(state, sample.text, float(i % 3), state, True, False), sample)
        for i, (state, sample) in enumerate(zip(states, samples, strict=True))
    ]
    if find_spec("trl") is None:
        print("The update is not compared: TRL is not installed.")
        return
    learner, groups = PolicyGradient(policy, PRESETS["grpo"]), [i // ANSWERS for i in range(len(steps))]

    def update() -> Any:
        return learner.update([[step] for step in steps], rng, parts=("policy",), groups=groups)

    theirs, their_optimiser = updated(folder, lm, steps, device, train)
    work: list[list[str]] = [[], []]  # for each optimiser step of ours and theirs, what it moved
    for noted, optimiser in zip(work, (learner.optimiser, their_optimiser), strict=True):
        optimiser.register_step_post_hook(partial(note, noted))
    together("update", update, theirs, "TRL's GRPO")
    if work[0] != work[1]:
        raise SystemExit(f"The updates are not the same work. Ours: {work[0]}. TRL's: {work[1]}.")
    print(f"each update: {len(work[0]) // runs} optimiser step of {work[0][0]}, {len(steps)} answers")


def note(noted: list[str], optimiser: torch.optim.Optimizer, *_: Any) -> None:
    """Note which weights a step moved: those with a gradient, not those of a critic at rest."""
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    moved = [weight for weight in weights if weight.grad is not None]
    formats = ", ".join(sorted({str(weight.dtype).removeprefix("torch.") for weight in moved}))
    noted.append(f"{sum(weight.numel() for weight in moved):,} weights in {formats}")


def prompt_of(lm: Any, length: int, rng: np.random.Generator) -> str:
    """Return a prompt of random words, of exactly this many tokens."""
    tokenizer = lm.model.tokenizer
    while True:
        drawn = [tokenizer.decode([int(token)]) for token in rng.integers(3, len(tokenizer), 4 * length)]
        words = [word.strip() for word in drawn if word.strip().isalnum()]
        for n in range(length + 1, 0, -1):
            prompt = " ".join(words[:n])
            if len(lm.model._tokens(prompt)) == length:
                return prompt


def compare(
    device: str,
    tokens: int,
    runs: int,
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    other: str,
) -> Any:
    """Run both in turn, print the best times, and return our last result."""
    best, last = [float("inf")] * 2, None
    clock = time.process_time if device == "cpu" else time.perf_counter
    for _ in range(runs):
        for i, made in enumerate((ours, theirs)):
            start = clock()
            result = made()
            if device != "cpu":
                torch.cuda.synchronize()
            best[i] = min(best[i], clock() - start)
            if i == 0:
                last = result
    rates = [f"{seconds:.3f} s ({tokens / seconds:,.0f} tokens/s)" for seconds in best]
    print(f"{name}: {rates[0]}, {other} {rates[1]}, ratio {best[0] / best[1]:.2f}", flush=True)
    return last


def linked(model: Path, folder: Path) -> None:
    """Fill a folder with a model that hardly ever ends a text, so that all answers have the same length."""
    for file in model.iterdir():
        (folder / file.name).symlink_to(file.resolve())
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    end = len(tokenizer) - 1  # a rare token
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    settings = transformers.GenerationConfig(eos_token_id=end, pad_token_id=tokenizer.pad_token_id)
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    settings.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def written(folder: Path, size: str, device: str) -> None:
    """Write a random Llama, and a tokenizer of words, to a folder."""
    torch.manual_seed(0)
    known = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"w{number}": number for number in range(3, WORDS)}}
    made = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<unk>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)
    config = transformers.LlamaConfig(
        vocab_size=WORDS, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, **SIZES[size]
    )
    with torch.device(device):
        network = transformers.LlamaForCausalLM(config).to(getattr(torch, DTYPES[device]))
    with torch.no_grad():
        network.lm_head.weight[2] = 0.0  # as likely as a word in the mean: it hardly ever ends
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def generated(lm: Any, prompts: list[str], tokens: int) -> Callable[[], Any]:
    """Return a function that samples with transformers and its cache."""
    ids = torch.tensor([lm.model._tokens(prompt) for prompt in prompts], device=lm.network.device)

    def run() -> Any:
        with torch.no_grad():
            return lm.network.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                top_k=0,
                max_new_tokens=tokens,
                num_return_sequences=ANSWERS,
                eos_token_id=None,
                pad_token_id=0,
            )

    return run


def updated(
    folder: str, lm: Any, steps: list[Step], device: str, train: str
) -> tuple[Callable[[], Any], torch.optim.Optimizer]:
    """Return a function that makes the same update by TRL's trainer, and its optimiser."""
    from datasets import Dataset
    from peft import LoraConfig
    from trl import GRPOConfig, GRPOTrainer

    args = GRPOConfig(
        output_dir=f"{folder}/trl",
        use_cpu=device == "cpu",
        bf16=False,
        gradient_checkpointing=False,
        beta=0.04,
        loss_type="bnpo",
        per_device_train_batch_size=len(steps),
        num_generations=ANSWERS,
        max_completion_length=LENGTHS[device][1],
        report_to=[],
        model_init_kwargs={"dtype": DTYPES[device]},
    )
    data = Dataset.from_dict({"prompt": [step.transition.state.observation for step in steps[::ANSWERS]]})
    adapters = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear") if train == "lora" else None
    trainer = GRPOTrainer(
        folder, lambda completions, **_: [0.0] * len(completions), args, data, peft_config=adapters
    )
    trainer.current_gradient_accumulation_steps = 1
    optimiser = torch.optim.Adam(
        [w for w in trainer.model.parameters() if w.requires_grad], lr=2.5e-4, eps=1e-5, foreach=True
    )
    width = max(len(step.decision.tokens) for step in steps)
    lengths = torch.tensor([len(step.decision.tokens) for step in steps])
    rows = {
        "prompt_ids": torch.tensor([lm.model._tokens(s.transition.state.observation) for s in steps]),
        "completion_ids": torch.tensor(
            [[*s.decision.tokens, *[0] * (width - len(s.decision.tokens))] for s in steps]
        ),
        "completion_mask": (torch.arange(width) < lengths[:, None]).long(),
    }
    rows["prompt_mask"] = torch.ones_like(rows["prompt_ids"])
    rows = {name: part.to(device) for name, part in rows.items()}
    rewards = torch.tensor([step.transition.reward for step in steps], device=device).view(-1, ANSWERS)
    rows["advantages"] = ((rewards - rewards.mean(1, True)) / (rewards.std(1, keepdim=True) + 1e-4)).view(-1)
    whole = torch.cat([rows["prompt_ids"], rows["completion_ids"]], 1)
    there = torch.cat([rows["prompt_mask"], rows["completion_mask"]], 1)

    def run() -> Any:
        frozen = trainer.model.disable_adapter() if adapters else nullcontext()
        with torch.no_grad(), frozen:  # as TRL computes the reference once for each batch
            reference = trainer.model if adapters else trainer.ref_model
            known = trainer._get_per_token_logps_and_entropies(reference, whole, there, width)[0]
        optimiser.zero_grad()
        loss = trainer._compute_loss(trainer.model, {**rows, "ref_per_token_logps": known})
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 0.5)
        optimiser.step()
        return float(loss.detach())

    return run, optimiser


if __name__ == "__main__":
    told(__doc__)
    main(*sys.argv[1:])
