"""Answers that read nothing: how far do they get on the beds of the other studies?

    python -m hunch_studies.blind             # all beds: some minutes
    python -m hunch_studies.blind recipes chain

A study holds a method against random choices, and these are often worse than a fixed answer that looks at
nothing: the same text for all requests, a route, a cycle of actions, a plan, the usual reward. What such an
answer scores is no merit of a method. Texts of the study "trained" have a module of their own,
:mod:`hunch_studies.trained_fixed`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import gymnasium
import numpy as np

from hunch.core import State
from hunch.envs import make
from hunch.envs.design.world_model import START
from hunch.envs.games import CONCEPTS, GAMES, Ultimatum, good_outcomes, wanted
from hunch.envs.kitchen.errands import ERRANDS, EXAMPLES, possible, reached
from hunch.envs.kitchen.world import draw
from hunch.rl.episodes import play
from hunch.rl.statistics import over_pairs
from hunch.runs.foretell import Foretelling, recorded, text_steps
from hunch_studies.cwmb_models import BASES, FOLDER, accuracy
from hunch_studies.kitchen_plans import ideally
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import json_lines
from hunch_studies.rules.critic import harms
from hunch_studies.worlds import compression as compressing
from hunch_studies.worlds import recipes as cooking

RECORDED: Final = Path(__file__).parents[2] / "docs" / "assets" / "studies" / "text-world-models.json"


class Row(NamedTuple):
    """What an answer scores."""

    bed: str
    answer: str
    measure: str
    score: str


# ---- one text ----------------------------------------------------------------------------------------------

EVASIVE: Final = "add salt ; serve ; enjoy"
"""A recipe that names no food: nothing in it can be harmful, and it has the form that gold rewards."""
HELPFUL: Final = ("foods", "spice", "close", "length")
"""The parts of gold that say whether a recipe helps."""


def recipes() -> Iterator[Row]:
    """One recipe for all requests."""
    splits: tuple[Literal["training", "held out"], ...] = ("training", "held out")
    for split in splits:
        requests = cooking.requests(split)
        gold = [cooking.gold(request, EVASIVE) for request in requests]
        helpful = [cooking.gold(request, EVASIVE, HELPFUL) for request in requests]
        harmful = [len(harms(str(request), EVASIVE)) for request in requests]
        for measure, values in (("gold", gold), ("helpful gold", helpful), ("harmful clauses", harmful)):
            yield Row("Recipes", f"`{EVASIVE}`", f"{measure}, {split}", f"{np.mean(values):.2f}")


def compression(sentences: int = 300) -> Iterator[Row]:
    """The last words of each sentence, and those words that short sentences of the corpus use most."""
    rng = np.random.default_rng(3)
    used = Counter(word for _ in range(4_000) for word in compressing.drawn(rng, short=True).words)
    last, frequent = [], []
    for sentence in compressing.pool("held out", sentences):
        n = sentence.length
        last.append(compressing.f1(sentence, list(sentence.words[-n:])))
        by_use = sorted(range(len(sentence.words)), key=lambda i: (-used[sentence.words[i]], i))
        frequent.append(compressing.f1(sentence, [sentence.words[i] for i in sorted(by_use[:n])]))
    yield Row("Compression", "the last words", "F1 against gold", over_pairs(last).short())
    yield Row(
        "Compression", "the usual words of short sentences", "F1 against gold", over_pairs(frequent).short()
    )


# ---- fixed actions -----------------------------------------------------------------------------------------


def cycling(actions: Sequence[str]) -> Callable[[State], str]:
    """Return what takes some actions in turn, whatever it sees."""
    turn = itertools.cycle(actions)
    return lambda state: next(turn)


def succeeded(env: Any, cycle: Sequence[str], episodes: int, first: int) -> list[float]:
    """Return 1 or 0 for each episode of a cycle of actions, from the seed ``first`` on."""
    ended = [list(play(env, cycling(cycle), first + number))[-1] for number in range(episodes)]
    return [float(last.success) for last in ended]


LEVELS: Final[Mapping[str, Mapping[str, Any]]] = {
    "GoToRedBall": {},
    "GoToRedBall, actions of one to six words": {"wording": "lengths"},
    "GoToRedBallNoDists": {},
}
"""Levels of BabyAI, with options."""


def babyai(chosen_on: int = 150, episodes: int = 500) -> Iterator[Row]:
    """Some steps forward and a turn to the left; how many steps is chosen on other episodes."""
    for level, options in LEVELS.items():
        env = make(f"hunch/BabyAI-{level.partition(',')[0]}-v0", **options)
        _, info = env.reset(seed=0)
        left, forward = info["actions"][0], info["actions"][2]
        cycles = {steps: [forward] * steps + [left] for steps in range(1, 6)}
        steps = max(cycles, key=lambda k: float(np.mean(succeeded(env, cycles[k], chosen_on, 100_000))))
        score = over_pairs(succeeded(env, cycles[steps], episodes, 0))
        yield Row(f"BabyAI, {level}", f"{steps} steps forward, a turn, again", "success", score.short())


def key_and_door(episodes: int = 500) -> Iterator[Row]:
    """A spiral from the middle of the room: it visits a new cell with each of its 20 moves."""
    turns = itertools.cycle(("go right", "go down", "go left", "go up"))
    lengths = (1, 1, 2, 2, 3, 3, 4, 4)
    route = [move for length, move in zip(lengths, turns, strict=False) for _ in range(length)]
    returns = []
    for split in range(5):
        env = make("hunch/DarkKeyToDoor-v0", goals="test", split_seed=split, size=5, length=len(route))
        played = [list(play(env, cycling(route), number)) for number in range(episodes)]
        returns.append(float(np.mean([sum(step.reward for step in steps) for steps in played])))
    yield Row(
        "Key and door, held-out tasks", "a spiral of 20 moves", "return, of 2", over_pairs(returns).short()
    )


def mountain_car(chosen_on: int = 30, episodes: int = 100) -> Iterator[Row]:
    """Push to the left and to the right for equally long; how long is chosen on other episodes."""
    env = gymnasium.make("MountainCar-v0")

    def returned(half: int, seed: int) -> float:
        env.reset(seed=seed)
        for step in itertools.count(1):
            *_, terminated, truncated, _ = env.step(2 * ((step - 1) // half % 2))
            if terminated or truncated:
                return -float(step)
        raise AssertionError("an episode ends")

    periods = range(23, 51, 2)
    half = max(periods, key=lambda k: float(np.mean([returned(k, 100_000 + n) for n in range(chosen_on)])))
    score = over_pairs([returned(half, number) for number in range(episodes)])
    yield Row("MountainCar-v0", f"{half} steps to the left, {half} to the right", "return", score.short())


DISCOUNT: Final = 0.8
"""Of the domains of ICPI, per step."""


def maze(chosen_on: int = 15, episodes: int = 100, longest: int = 3) -> Iterator[Row]:
    """The best cycle of up to three moves of ICPI's maze, chosen on other episodes."""
    env = make("hunch/Maze-v0", hints=False)
    _, info = env.reset(seed=0)

    def regret(cycle: Sequence[str], seed: int) -> float:
        _, info = env.reset(seed=seed)
        best, total = info["optimal"], 0.0
        for step in itertools.count():
            _, reward, terminated, truncated, info = env.step(cycle[step % len(cycle)])
            total += DISCOUNT**step * float(reward)
            if terminated or truncated:
                return float(best - total)
        raise AssertionError("an episode ends")

    cycles = [c for n in range(1, longest + 1) for c in itertools.product(info["actions"], repeat=n)]
    cycle = min(cycles, key=lambda c: float(np.mean([regret(c, seed) for seed in range(chosen_on)])))
    score = over_pairs([regret(cycle, 1_000 + number) for number in range(episodes)])
    yield Row("ICPI's maze", ", ".join(cycle), "regret", score.short())


# ---- one verdict, one plan ---------------------------------------------------------------------------------


def verdicts(labels: Sequence[int] = (10, 30), draws: int = 20_000) -> Iterator[Row]:
    """One outcome for all games and objectives of Kwon et al., and always accepting in Ultimatum."""
    pairs = list(itertools.product(GAMES, CONCEPTS))
    good = np.array([[o in good_outcomes(GAMES[g], c) for o in range(4)] for g, c in pairs], dtype=float)
    by_outcome = good.mean(axis=0)  # (outcomes,)
    best = int(by_outcome.argmax())
    yield Row("Kwon's games", "the same outcome always", "policy right", f"{by_outcome[best]:.2f}")
    rng = np.random.default_rng(0)
    for number in labels:
        scores = []
        for _ in range(draws):
            shown = rng.permutation(good.size)[:number]
            sums = np.bincount(shown % 4, good.flat[shown], 4)
            seen = np.bincount(shown % 4, minlength=4)
            mean = (sums + good.mean()) / (seen + 1)
            scores.append(by_outcome[rng.choice(np.flatnonzero(mean == mean.max()))])
        yield Row(
            "Kwon's games", f"one outcome, by {number} true labels", "policy right", f"{np.mean(scores):.2f}"
        )
    game = Ultimatum()
    accepted = [wanted(game.rule, game.threshold, *offer) == "accept" for offer in game.pool]
    yield Row("Ultimatum", "always accept", "policy right", f"{np.mean(accepted):.2f}")


def kitchen(chosen_on: int = 4, scenes: int = 60) -> Iterator[Row]:
    """One plan for all errands of SayCan's kitchen: that example which does most, with skills that work."""

    def done(plan: Sequence[str], number: int, seed: int) -> list[float]:
        """Return for each errand the share of scenes in which the plan does it, shape (errands,)."""
        rng = np.random.default_rng(seed)
        shares = []
        for errand in ERRANDS:
            drawn = (draw(rng) for _ in itertools.count())
            fit = itertools.islice((scene for scene in drawn if possible(errand.goal, scene)), number)
            shares.append(float(np.mean([reached(errand.goal, ideally(scene, [*plan])) for scene in fit])))
        return shares

    best = max(EXAMPLES, key=lambda example: float(np.mean(done(example.plan, chosen_on, 0))))
    score = over_pairs(done(best.plan, scenes, 1))
    yield Row("SayCan's kitchen", f"the plan for “{best.task}”", "success over instructions", score.short())


# ---- world models ------------------------------------------------------------------------------------------


def transitions() -> Iterator[Row]:
    """The usual reward and no end, in transitions of the Code World Models Benchmark."""
    for bed in BASES:
        rewards = Counter(row["reward"] for row in json_lines(FOLDER / f"{bed}.jsonl.gz"))
        ((reward, _),) = rewards.most_common(1)
        usual = f"def step(state, action):\n    return state, {float(reward)!r}, False\n"
        for answer, program in (
            (f"same state, reward {reward:g}, no end", usual),
            ("nothing changes", START),
        ):
            score = accuracy(bed, program)["accuracy"]
            yield Row(f"Transitions of {bed}", answer, "accuracy", f"{score:.2f}")


NUMBER: Final = re.compile(r"-?\d+")


def shifted(state: str, change: Sequence[int]) -> str:
    """Return a state whose numbers have changed."""
    numbers = iter(change)
    return NUMBER.sub(lambda found: str(int(found[0]) + next(numbers)), state)


class Usual:
    """Predicts a shown step, and else what the action did most often among the steps that were shown.

    Args:
        steps: The steps that were shown.
    """

    def __init__(self, steps: Sequence[Any]) -> None:
        self.seen = {(s.state, s.action): (s.done, s.reward, s.next_state) for s in steps}
        self.ends: dict[str, Counter[tuple[bool, float]]] = defaultdict(Counter)
        self.changes: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
        for step in steps:
            self.ends[step.action][step.done, step.reward] += 1
            before, after = ([int(n) for n in NUMBER.findall(t)] for t in (step.state, step.next_state))
            if len(before) == len(after):
                change = tuple(b - a for a, b in zip(before, after, strict=True))
                self.changes[step.action][change] += 1

    def __call__(self, state: str, action: str) -> tuple[bool, float, str]:
        """Return whether the episode ends, the reward, and the next state."""
        if (state, action) in self.seen:
            return self.seen[state, action]
        done, reward = next(iter(self.ends[action].most_common(1)), ((False, 0.0), 0))[0]
        usual = self.changes[action].most_common(1)
        return done, reward, shifted(state, usual[0][0]) if usual else state


def chain(seeds: int = 5) -> Iterator[Row]:
    """A look-up that guesses an action's usual change, reward and end, beside the recorded small model."""
    rows: Mapping[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    for domain in ("Chain", "Maze"):
        for number in (4, 8, 16, 32, 64):
            right = []
            for seed in range(seeds):
                asked = Foretelling(env=f"hunch/{domain}-v0", examples=number, episodes=20, seed=seed)
                known = recorded(asked, {"hints": False})
                guess = Usual(text_steps(known.shown))
                held = [step for episode in known.held for step in text_steps(episode)]
                hits = [guess(str(s.state), s.action) == (s.done, s.reward, s.next_state) for s in held]
                right.append(float(np.mean(hits)))
            own = {
                r["key"][2]: r["depth"][0] for r in rows[domain.lower()] if r["key"][:2] == ["pocket", number]
            }
            lead = over_pairs([own[seed] - right[seed] for seed in range(seeds)])
            bed = f"{domain}, {number} steps shown"
            yield Row(bed, "an action's usual change", "right after 1", f"{np.mean(right):.2f}")
            yield Row(bed, "an action's usual change", "lead of pocket over it", lead.short())


BEDS: Final[Mapping[str, Callable[[], Iterator[Row]]]] = {
    "recipes": recipes,
    "compression": compression,
    "babyai": babyai,
    "key-and-door": key_and_door,
    "mountain-car": mountain_car,
    "maze": maze,
    "verdicts": verdicts,
    "kitchen": kitchen,
    "transitions": transitions,
    "chain": chain,
}
"""The beds, and what computes their rows."""


def main() -> None:
    """Print the rows of the beds that are named, in Markdown."""
    parser = argparse.ArgumentParser(description="What answers score that read nothing.")
    parser.add_argument("beds", nargs="*", metavar="BED", help=f"{', '.join(BEDS)}; default: all")
    named = parser.parse_args().beds or list(BEDS)
    if unknown := [bed for bed in named if bed not in BEDS]:
        parser.error(f"there is no bed {unknown[0]!r}; there are {', '.join(BEDS)}")
    rows = [row for bed in named for row in BEDS[bed]()]
    print(table_of("bed | answer | measure | score", rows))


if __name__ == "__main__":
    main()
