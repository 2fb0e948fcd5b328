"""The cost of a thousand decisions: a decision model beside a model that writes, in the same states.

States are those of random play in an environment. Tokens are estimated from the requests that the library
sends: for a decision model the state, the question and each option once; for a model that writes the prompt
with the list of actions, and its answers. Prices are examples, so give those of your models.

    python benchmarks/decision_cost.py
    python benchmarks/decision_cost.py --price-in 2 --price-out 8 --thoughts 500
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tyro

import hunch
from hunch.core import State
from hunch.lm.backends.decisions import SYSTEMONE_FORMAT
from hunch.lm.decision import DecisionQuestion, grouped
from hunch.lm.speech import estimate_tokens
from hunch.roles.prior.language import CHOICE, prompt, situation
from told import told


@dataclass(frozen=True)
class Options:
    """Environment, prices, and how long answers are."""

    env: str = "hunch/Household-Pick-v0"
    """Environment of the states."""
    states: int = 100
    """States of random play, over which the mean is taken."""
    seed: int = 0
    """Seed of the play."""
    decisions: int = 1_000
    """Number of decisions."""
    decision_price: float = 0.10
    """Price per million tokens that the decision model reads."""
    decision_price_out: float = 0.0
    """Price per million tokens that it writes: its probabilities."""
    most_options: int = 255
    """Options per question; more are asked in groups and a final."""
    price_in: float = 0.10
    """Price per million tokens that the writing model reads."""
    price_out: float = 0.40
    """Price per million tokens that it writes."""
    answer: int = 8
    """Tokens of an answer."""
    thoughts: int = 0
    """Tokens of its thoughts before the answer."""
    samples: int = 5
    """Answers per state whose shares are the probabilities; the prompt is read once."""


def states_of(options: Options) -> list[State]:
    """Return states of random play."""
    env = hunch.make(options.env)
    rng = np.random.default_rng(options.seed)
    observation, info = env.reset(seed=options.seed)
    states: list[State] = []
    while len(states) < options.states:
        states.append(State.read(observation, info))
        action = str(rng.choice(states[-1].options))
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()
    return states


def decision_tokens(state: State, most: int) -> tuple[int, int]:
    """Return the tokens that a decision model reads and writes for one choice, over all of its requests."""
    question = DecisionQuestion("choice", CHOICE, state.options)
    rounds: list[list[DecisionQuestion]] = []
    while len(question.options) > most:
        groups = grouped(len(question.options), most)
        rounds.append([question.only(group) for group in groups])
        question = question.only([group[0] for group in groups])  # which are favourites does not matter here
    rounds.append([question])
    read = written = 0
    for questions in rounds:
        read += estimate_tokens(json.dumps(SYSTEMONE_FORMAT.body("m", situation(state), questions, True)))
        for asked in questions:
            written += estimate_tokens(json.dumps(dict.fromkeys(asked.options, 0.123)))
    return read, written


def table(options: Options, states: Sequence[State]) -> list[tuple[str, float, float, float]]:
    """Return for each kind of model the tokens read and written, and the cost, of all decisions."""
    n = options.decisions
    pairs = [decision_tokens(state, options.most_options) for state in states]
    read = n * float(np.mean([pair[0] for pair in pairs]))
    written = n * float(np.mean([pair[1] for pair in pairs]))
    cost = (read * options.decision_price + written * options.decision_price_out) / 1e6
    rows = [("decision model", read, written, cost)]
    read = n * float(np.mean([estimate_tokens(prompt(state)) for state in states]))
    for samples in dict.fromkeys((1, options.samples)):
        written = n * samples * float(options.answer + options.thoughts)
        cost = (read * options.price_in + written * options.price_out) / 1e6
        answers = "one answer" if samples == 1 else f"{samples} answers"
        rows.append((f"writing model, {answers}", read, written, cost))
    return rows


def main() -> None:
    """Print the table."""
    options = tyro.cli(Options, description=__doc__)
    states = states_of(options)
    actions = float(np.mean([len(state.options) for state in states]))
    print(
        f"{options.decisions:,} decisions in {options.env}, {actions:.0f} actions each; prices are examples."
    )
    print("| model | tokens read | tokens written | cost |")
    print("|---|---|---|---|")
    for name, read, written, cost in table(options, states):
        print(f"| {name} | {read:,.0f} | {written:,.0f} | {cost:.3f} |")


if __name__ == "__main__":
    told(__doc__)
    main()
