"""Study of "Efficient Reinforcement Learning with Large Language Model Priors" (Yan et al., ICLR 2025): the
value and the cost of Q's encoder.
"""

from __future__ import annotations

import multiprocessing as mp
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from hunch.core import HunchError
from hunch.envs import make
from hunch.lm import registry, require
from hunch.lm.backends.weights import libraries
from hunch.lm.base import threads
from hunch.rl.episodes import play
from hunch.runs.processes import environment, thread_limits
from hunch_studies.priors import PICK, dqn_prior
from hunch_studies.study import Part, Scale, Study, kept

ENV = "hunch/Household-Pick-v0"
ENCODERS = ("minilm", "bag-of-words", "random-network")
TEXTS = 200
"""Number of texts for timing an encoder."""


@dataclass(frozen=True)
class Cost:
    """The cost of an encoder.

    Attributes:
        parameters: Number of weights; 0 for a rule.
        dim: Length of an embedding.
        milliseconds: Time per text, mean of the study's texts, on one thread without a cache.
        megabytes: Peak resident memory of a process that imports torch and transformers, loads the encoder
            and embeds.
        evidence: Evidence level.
    """

    parameters: int
    dim: int
    milliseconds: float
    megabytes: float
    evidence: str


def _parts(scale: Scale, data: Path) -> list[Part]:
    """Return an arm per encoder, including the user's models."""
    steps = scale.steps(9_000)
    compared = tuple(dict.fromkeys((*ENCODERS, *scale.lms)))
    arms = [
        dqn_prior(encoder, ENV, "minilm", steps, PICK, encoder=encoder, proposals="kept")
        for encoder in compared
    ]
    return [Part("Household-Pick by encoder", tuple(arms), beside=lambda out: costs(compared, out))]


def costs(encoders: Sequence[str], folder: Path) -> str:
    """Measure the encoders that a folder does not hold yet, one after the other; return a table."""
    rows = []
    for encoder in encoders:
        try:
            (row,) = kept(folder / "encoders.jsonl", [(encoder,)], lambda name: asdict(measured(name)))
        except HunchError as error:
            rows.append(f"| `{encoder}` | not to be had: {error} | | | | |")
            continue
        rows.append(_row(encoder, Cost(**{name: value for name, value in row.items() if name != "key"})))
    head = "| encoder | its own evidence | weights | numbers per text | ms per text | memory, MB |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _row(encoder: str, cost: Cost) -> str:
    sizes = f"{cost.evidence} | {cost.parameters:,} | {cost.dim}"
    return f"| `{encoder}` | {sizes} | {cost.milliseconds:.2f} | {cost.megabytes:.0f} |"


def measured(encoder: str) -> Cost:
    """Measure an encoder in a separate process."""
    context = mp.get_context("spawn")
    with environment(thread_limits(1)), ProcessPoolExecutor(1, mp_context=context) as alone:
        return alone.submit(measure, encoder, texts(TEXTS)).result()


def measure(encoder: str, sample: Sequence[str]) -> Cost:
    """Measure an encoder on some texts in this process.

    Raises:
        UsageError: if the model cannot embed.
        HunchError: if it cannot be loaded.
    """
    _, model = registry.build(encoder, {})
    require(model, "embed", needed_by="An encoder")
    libraries()  # any encoder's memory is that of a process with them
    with threads(1):
        model.embed(sample[:1])
        start = time.perf_counter()
        model.embed(sample)
        seconds = time.perf_counter() - start
    weights: int = getattr(model, "parameters", 0)
    return Cost(weights, model.dim, 1000 * seconds / len(sample), peak_memory(), model.evidence)


def texts(n: int) -> list[str]:
    """Return the first n different texts of a random walk through the study's games."""
    env, rng, found = make(ENV, **PICK), np.random.default_rng(0), dict[str, None]()
    while len(found) < n:
        for t in play(env, lambda state: str(rng.choice(state.options)), int(rng.integers(2**31))):
            found |= dict.fromkeys((t.state.task, *t.state.lines(), *t.state.options))
    return list(found)[:n]


def peak_memory() -> float:
    """Return this process's peak resident memory in MB (2^20 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the parent's memory before this program began
        fields = dict(
            line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line
        )
        return float(fields["VmHWM"].split()[0]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (2**20 if sys.platform == "darwin" else 1024)


STUDIES = {
    "priors-encoder": Study(
        "priors-encoder",
        "How much does success depend on the encoder of Q, and what does the encoder cost?",
        "Encoders compared by success, memory and time (table 13); BERT is the paper's choice.",
        "The prior is `minilm` in all arms, which sets their evidence level. Only the texts that Q "
        "sees are embedded differently, state and action separately. `bag-of-words` and `random- "
        "network` are controls without knowledge. Memory is that of a process that only embeds, "
        "with torch and transformers imported in all arms. The minutes of a run are with the cache, "
        "from which all runs but the first with an encoder take its embeddings.",
        _parts,
        lm_for="dqn-prior",
    )
}
