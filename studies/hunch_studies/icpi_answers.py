"""How good recorded answers to ICPI's questions are: next states, ends, rewards and actions.

    python -m hunch_studies.icpi_answers docs/assets/studies/icpi-written.answers.jsonl.gz

Each different question counts once, however often a run asked it. A next state is written, the other answers
are drawn by likelihood among the possible ones: there the figure is the probability of the right answer.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from hunch.core import UsageError
from hunch.envs.icpi.base import Domain
from hunch.envs.icpi.reader import answers
from hunch.envs.icpi.reading import read
from hunch_studies.planners import table

NEXT_SHOWN = "next state; the same step is among the examples"
NEXT_OTHER = "next state; it is not"
END, REWARD, ACTION = "end", "reward", "action, the best one"
SHOWN = "action, the best one; the same state is among the examples"
COPY = "action; share of the best one in the examples from that state"


def judged(file: Path) -> str:
    """Return how often recorded answers are right, by kind of question, in Markdown.

    Args:
        file: Recorded answers, compressed, to questions about domains that
            :func:`hunch.envs.icpi.reading.read` reads.
    """
    right = defaultdict[str, list[float]](list)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            prompt, asked = record["request"][0], record["request"][-1]
            if record["verb"] == "generate":
                if known := answers(prompt):  # none about a state that the model made up
                    right[_shown(prompt)].append(known[0].strip() == record["value"].strip())
            elif record["verb"] == "score" and len(asked) > 1:
                shares = softmax(record["value"]["logprobs"])  # (options,)
                for kind, truth in _truths(prompt, asked):
                    right[kind].append(sum(shares[asked.index(text)] for text in truth))
                    if kind == ACTION and (copied := _copied(prompt, asked)) is not None:
                        right[SHOWN].append(right[kind][-1])
                        right[COPY].append(float(np.mean([text in truth for text in copied])))
    order = (NEXT_SHOWN, NEXT_OTHER, END, REWARD, ACTION, SHOWN, COPY)
    rows = [(kind, f"{len(right[kind]):,}", f"{np.mean(right[kind]):.2f}") for kind in order if right[kind]]
    return table("question | different ones | right", rows)


def _shown(prompt: str) -> str:
    """Return whether the examples of a question about the next state show the same step."""
    *examples, query = prompt.split("\n\n")
    return NEXT_SHOWN if any(example.startswith(query) for example in examples) else NEXT_OTHER


def _truths(prompt: str, options: list[str]) -> list[tuple[str, list[str]]]:
    """Return the kind of a question and its right answers; nothing if they are unknown."""
    known = answers(prompt)
    if not known or not set(known) >= set(options):
        return []
    state = _last_state(prompt)
    texts = read(state)[0].wording  # type: ignore[index]  # there are answers, so the state can be read
    if set(options) == set(texts.actions.values()):
        best = _best(state)
        return [(ACTION, best)] if best else []
    return [(END if known[0] in (texts.done(True), texts.done(False)) else REWARD, [known[0]])]


def _last_state(prompt: str) -> str:
    return next(line for line in reversed(prompt.splitlines(keepends=True)) if read(line))


def _best(state: str) -> list[str]:
    """Return the actions, as texts, that are best in a state; none if the domain has no such state."""
    domain, numbers = read(state)  # type: ignore[misc]  # it was read before
    env: Domain[Any] = domain()
    values = {}
    for name, text in domain.wording.actions.items():
        try:
            env.reset(seed=0, options={"state": numbers})
        except UsageError:
            return []
        _, reward, ended, _, info = env.step(name)
        _, after = env.reset(seed=0, options={"state": info["state"]})  # the optimum is that of a start
        values[text] = reward + (0.0 if ended else domain.wording.log_gamma * after["optimal"])
    most = max(values.values())
    return [text for text, value in values.items() if value > most - 1e-9]


def _copied(prompt: str, options: list[str]) -> list[str] | None:
    """Return the actions that the examples show from the state that is asked about; None for none."""
    lines = prompt.splitlines(keepends=True)
    state = _last_state(prompt)
    shown = [action for line, action in pairwise(lines) if line == state and action in options]
    return shown or None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How good recorded answers to ICPI's questions are.")
    parser.add_argument("answers", type=Path)
    print(judged(parser.parse_args().answers))


if __name__ == "__main__":
    main()
