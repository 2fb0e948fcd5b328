"""GEPA, of the package ``gepa``, on the prompts of :mod:`hunch_studies.film_prompts`.

A second model reads some questions with the answers that followed a prompt, and writes a new prompt; one that
is better on them is scored on more questions (Agrawal et al., "GEPA: Reflective Prompt Evolution Can
Outperform Reinforcement Learning", 2025). Requests to the second model are not counted among the calls.

Both models may be of llama.cpp, where a server has one model. So the second one needs a server of its own, in
a folder of its own::

    XDG_RUNTIME_DIR=$(mktemp -d) hunch models serve qwen-coder-1.5b --port 8100 --keyless
    pip install gepa    # and in another terminal
    python -m hunch_studies.film_gepa --out gepa.jsonl --writer SPEC

with ``openai:qwen-coder-1.5b?base_url=http://127.0.0.1:8100/v1`` for SPEC.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from hunch.core import UsageError
from hunch.envs.reading import shared
from hunch.lm import Sampling
from hunch_studies.film_prompts import MODEL, PER_PROMPT, SCORES, in_turn, judged, options, table
from hunch_studies.study import kept
from hunch_studies.worlds.prompting import Prompting, Question

ARM: Final = "GEPA"
FIRST: Final = "It was"
"""The prompt that GEPA starts from."""
WRITING: Final = Sampling(max_tokens=120, temperature=1.0, stop=())
"""How new prompts are written: a few sentences."""
VALIDATION: Final = 32
"""Questions on which a prompt is scored that is better on those that it was written for."""
SHOWN: Final = 16
"""Questions that the second model sees, as many as the other searches score a prompt on. With few, as by
GEPA's default of 3, the writer would be asked about 200 times in a search."""
COMPONENT: Final = "prompt"
"""GEPA's name for what is revised."""


class Adapter:
    """What GEPA asks of a system: scores of a candidate, and what its writer shall read of them.

    Args:
        env: The questions, and the model that is prompted.
    """

    propose_new_texts = None  # GEPA's own request, with its words

    def __init__(self, env: Prompting) -> None:
        self.env = env

    def evaluate(self, batch: list[Question], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Return the gap of each question after the candidate, and what was answered."""
        from gepa.core.adapter import EvaluationBatch

        self.env.asked = list(batch)
        try:
            gaps, _ = self.env.scores(candidate[COMPONENT])
        except UsageError:  # it leaves no room for a question: the worst score, and the search goes on
            gaps = np.full(len(batch), -1.0)
        said = [_said(gap, own) for gap, own in zip(gaps, batch, strict=True)]
        traces = list(zip(batch, said, strict=True)) if capture_traces else None
        return EvaluationBatch(outputs=said, scores=[float(gap) for gap in gaps], trajectories=traces)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return the questions with what was answered and what is right."""
        read = [
            {
                "Inputs": own.text,
                "Generated Outputs": said,
                "Feedback": "This is right." if said == own.answer else f"The right answer is: {own.answer}",
            }
            for own, said in eval_batch.trajectories
        ]
        return dict.fromkeys(components_to_update, read)


def _said(gap: float, question: Question) -> str:
    """Return the likelier one of two answers."""
    other = next(option for option in question.options if option != question.answer)
    return question.answer if gap > 0 else other


def prompt_by_gepa(env: Prompting, writer: str, calls: int, seed: int) -> dict[str, Any]:
    """Return the prompt that GEPA ends with, and how many it tried.

    Args:
        env: The training questions, and the model that is prompted.
        writer: Spec of the model that writes new prompts.
        calls: Questions that may be asked of the prompted model.
        seed: Seed of the questions and of GEPA's choices.

    Raises:
        UsageError: if the package is not there.
    """
    if find_spec("gepa") is None:
        raise UsageError("GEPA is not installed: pip install gepa")
    from gepa.api import optimize

    lm = shared(writer)
    asked = 0

    def reflect(prompt: Any) -> str:
        nonlocal asked
        # The number of the sample differs, so that the cache does not repeat an answer.
        asked += 1
        [[text]] = lm.generate([str(prompt)], 1, WRITING, first=1_000 * seed + asked)
        return text

    drawn = in_turn(env, seed)
    result: Any = optimize(
        seed_candidate={COMPONENT: FIRST},
        trainset=drawn[VALIDATION:],
        valset=drawn[:VALIDATION],
        adapter=cast(Any, Adapter(env)),
        reflection_lm=reflect,
        reflection_minibatch_size=SHOWN,
        max_metric_calls=calls,
        seed=seed,
    )
    return {
        "prompt": result.best_candidate[COMPONENT],
        "kept": len(result.candidates),
        "written": asked,
        "asked": result.total_metric_calls,
    }


def measured(model: str, writer: str, arm: str, seed: int) -> dict[str, Any]:
    """Return the row of a seed: the prompt that GEPA ends with, on the questions that are held out."""
    found = prompt_by_gepa(Prompting(**options(model)), writer, SCORES * PER_PROMPT, seed)
    return {**found, **judged(model, found["prompt"])}


def main() -> None:
    """Measure the seeds that the file lacks, and print the table."""
    parser = argparse.ArgumentParser(description="GEPA on prompts for snippets of film reviews.")
    parser.add_argument("--writer", required=True, help="spec of the model that writes prompts")
    parser.add_argument("--lm", default=MODEL, help="spec of the model that is prompted")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True, help="file of the rows")
    asked = parser.parse_args()
    keys = [(ARM, seed) for seed in range(asked.seeds)]
    print(table(kept(asked.out, keys, partial(measured, asked.lm, asked.writer))))


if __name__ == "__main__":
    main()
