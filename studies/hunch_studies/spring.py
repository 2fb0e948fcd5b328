"""SPRING: the effect of a graph of questions on errors, compared with asking for the action directly.

hunch study spring
hunch study spring --part steps --seeds 2 --lm qwen-coder-0.5b    # single steps with a real model
python -m hunch_studies.spring docs/assets/studies/spring-steps.jsonl    # the recorded rows
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from hunch.core import FloatArray, Player, State, Transition, World
from hunch.envs import make
from hunch.lm import load
from hunch.methods import find
from hunch.rl.episodes import evaluate, replay
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch.roles.prior.blank import aimless
from hunch.runs.files import read_lines
from hunch_contrib.planner.spring import GRAPH, SPRING, Question
from hunch_studies.plan4mc import TARGETS
from hunch_studies.planners import table
from hunch_studies.recorded_rows import print_table
from hunch_studies.study import Part, Scale, Study, by_name, kept, loaded, selected

ID: Final = "hunch/Craft-v0"
WORLD: Final[dict[str, Any]] = {"difficulty": "hard", "most": 9, "max_steps": 150}
RULE: Final = "scripted:player"
ERRORS: Final = (0.0, 0.05, 0.1, 0.2, 0.3)
Asked = Literal["graph", "unchecked", "direct"]
UNCHECKED: Final[Mapping[str, Question]] = {
    "tasks": replace(GRAPH["tasks"], after=()),
    "first": GRAPH["first"],
    "actions": GRAPH["actions"],
    "choice": replace(GRAPH["choice"], after=("actions",)),
}
"""The graph without the five questions about things, requirements and the last action."""


class Judged(Player):
    """A player with the share of its actions that agree with the rule without errors, which sees the same.

    Args:
        player: The player that acts.
        rule: The rule without errors, asked directly.
    """

    def __init__(self, player: Player, rule: Player) -> None:
        self.player, self.rule = player, rule
        self.right: list[bool] = []

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the player's actions."""
        chosen = self.player.act(states)
        self.right += [own == best for own, best in zip(chosen, self.rule.act(states), strict=True)]
        return chosen

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let both observe the transitions."""
        self.player.observe(transitions)
        self.rule.observe(transitions)


def spring(lm: str, asked: Asked) -> Callable[[World, int], Player]:
    """Make SPRING with a model and sampled answers."""
    own = UNCHECKED if asked == "unchecked" else None
    ask: Literal["graph", "direct"] = "direct" if asked == "direct" else "graph"
    agent = SPRING(load(lm), questions=own, ask=ask, temperature=1.0)

    def player(world: World, seed: int) -> Player:
        agent.begin(world, seed)
        return agent.player(seed)

    return player


def likeness(lm: str) -> Callable[[World, int], Player]:
    """Make a player that ranks actions by an encoder's similarity to the task and the observations."""
    method = find("zero-shot")

    def player(world: World, seed: int) -> Player:
        agent = method.build(method.config_class(), {"lm": load(lm)})
        agent.begin(world, seed)
        return agent.player(seed)

    return player


def play(player: Callable[[World, int], Player], seed: int, targets: Sequence[str]) -> dict[str, float]:
    """Play an episode of every target in the world of a seed; return success, steps and right actions."""
    won, steps, right = [], [], list[bool]()
    for number, target in enumerate(targets):
        env: Any = make(ID, **WORLD, world_seed=seed, target=target)
        world = World(env=ID, task=target, manual=env.unwrapped.manual)
        mine = Judged(player(world, 1_000 * seed + number), spring(RULE, "direct")(world, seed))
        (episode,) = evaluate(lambda _, mine=mine: mine, [env], 1, 1_000 * seed + number)  # type: ignore[misc]
        won.append(episode.success)
        steps.append(episode.length)
        right += mine.right
    return {"success": float(np.mean(won)), "steps": float(np.mean(steps)), "right": float(np.mean(right))}


class Bench:
    """Plays the rows of a table in the worlds of all seeds, and keeps the results.

    Args:
        folder: Folder of the results.
        scale: Size of the study.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.folder, self.scale = folder, scale

    def played(self, label: str, player: Callable[[World, int], Player]) -> list[dict[str, Any]]:
        """Return the results of a row, seed by seed."""
        targets = TARGETS[: self.scale.episodes(len(TARGETS))]
        keys = [(label, seed) for seed in range(self.scale.seeds)]
        return kept(self.folder / "rows.jsonl", keys, lambda _, seed: play(player, seed, targets))


def _mean(runs: Sequence[dict[str, float]], name: str) -> Estimate:
    return over_seeds([run[name] for run in runs])


LINES: Final[dict[str, tuple[Asked, int]]] = {
    "graph": ("graph", 1),
    "graph without checks": ("unchecked", 1),
    "direct": ("direct", 1),
    "direct, three thoughts": ("direct", 3),
    "direct, nine thoughts": ("direct", 9),
}
"""The arms, each with its questions, and the number of errors to which a direct answer is exposed."""


def by_error(scale: Scale, folder: Path) -> str:
    """Return success and right actions by the share of wrong lines, and the graph's lead over each arm."""
    bench = Bench(folder, scale)
    runs = {
        (label, p): bench.played(f"{label} {p}", spring(f"{RULE}?error={p}&compound={n}", asked))
        for label, (asked, n) in LINES.items()
        for p in ERRORS
    }
    told = " | ".join(f"p = {p}" for p in ERRORS)
    won = [(label, *(_mean(runs[label, p], "success") for p in ERRORS)) for label in LINES]
    right = [(label, *(f"{_mean(runs[label, p], 'right').value:.2f}" for p in ERRORS)) for label in LINES]
    ahead = [(label, *(_ahead(runs["graph", p], runs[label, p]) for p in ERRORS)) for label in LINES]
    return "\n\n".join(
        [
            table(f"success | {told}", won),
            "Success of the graph minus that of the arm, seed by seed:",
            table(f"graph less | {told}", ahead[1:]),
            "Share of actions that agree with the rule without errors:",
            table(f"right actions | {told}", right),
        ]
    )


def _ahead(ours: Sequence[dict[str, float]], other: Sequence[dict[str, float]]) -> Estimate:
    return over_pairs([a["success"] - b["success"] for a, b in zip(ours, other, strict=True)])


def controls(models: Sequence[str], scale: Scale, folder: Path) -> str:
    """Return controls without reasoning (random answers, words, similarity), and the user's models."""
    bench, rows = Bench(folder, scale), []
    both: tuple[Asked, ...] = ("graph", "direct")
    lines: dict[str, tuple[str, Callable[[World, int], Player]]] = {
        "graph, answers at random": ("uniform", spring("uniform", "graph")),
        "direct, most words of the task": ("scripted:overlap", spring("scripted:overlap", "direct")),
        **{f"likeness, {lm}": (lm, likeness(lm)) for lm in ("bag-of-words", "minilm")},
        **{f"{asked}, {lm}": (lm, spring(lm, asked)) for lm in models for asked in both},
    }
    for label, (lm, player) in lines.items():
        runs = bench.played(label, player)
        rows.append((label, load(lm).evidence, _mean(runs, "success"), f"{_mean(runs, 'steps').value:.0f}"))
    return table("arm | evidence | success | steps per episode", rows)


# ---- single steps ------------------------------------------------------------------------------------------

STEPS: Final = "Single steps"
VOTES: Final = 9
"""Direct answers of a vote: as many as the graph has questions."""
ANSWER_TOKENS: Final = 80
"""Maximum tokens of an answer: the longest that the rule gives has about as many."""
VOTED_AT: Final = 0.7
"""Temperature of the answers of a vote; all other arms take the most likely answer."""
WORDS, UNINFORMED = "words", "uniform"
CONTROLS: Final[Mapping[str, str]] = {WORDS: "scripted:overlap", UNINFORMED: "uniform", "rule": RULE}
Arm = Literal["graph", "unchecked", "direct", "vote", "blank prompt"]
ARMS: Final[tuple[Arm, ...]] = ("direct", "blank prompt", "unchecked", "vote", "graph")
BY_CONTROL: Final[Mapping[str, tuple[Arm, ...]]] = {
    WORDS: ("direct",),
    UNINFORMED: ("direct", "unchecked", "graph"),
    "rule": ("direct", "unchecked", "graph"),
}
"""The arms of each control; a rule has the same answer each time it is asked."""
CHECKED: Final = ("last", "worked", "things", "tasks", "first", "actions", "choice")
"""The questions whose answers a rule can tell right from wrong, in order."""
NEGATED: Final = re.compile(r"\b(no|not|nothing|failed|didn't)\b")


@dataclass(frozen=True)
class Drawn:
    """A state of an episode of the rule.

    Attributes:
        state: The state; its stream is its place in the list.
        before: The observation before, with the action in between; empty at the beginning.
        right: The rule's action.
    """

    state: State
    before: tuple[tuple[str, str], ...]
    right: str


def drawn(seed: int) -> tuple[str, list[Drawn]]:
    """Return the manual, and a state of the rule's episode of each target, drawn in the world of a seed."""
    rng = np.random.default_rng(seed)
    manual, states = "", list[Drawn]()
    for number, target in enumerate(TARGETS):
        env: Any = make(ID, **WORLD, world_seed=seed, target=target)
        manual = env.unwrapped.manual
        player = spring(RULE, "direct")(World(env=ID, task=target, manual=manual), seed)
        (episode,) = evaluate(lambda _, player=player: player, [env], 1, 1_000 * seed + number)  # type: ignore[misc]
        steps = list(replay(env, episode))
        at = int(rng.integers(len(steps)))
        before = ((steps[at - 1].state.observation, steps[at - 1].action),) if at else ()
        states.append(Drawn(replace(steps[at].state, stream=number), before, steps[at].action))
    return manual, states


def asked_in(lm: str, arm: Arm, seed: int, votes: int = VOTES) -> dict[str, Any]:
    """Ask a model for the next action in each state of :func:`drawn`.

    Args:
        lm: The model's spec.
        arm: The questions.
        seed: The world.
        votes: Number of answers of a vote.

    Returns:
        For each state ``right``, whether the action is the rule's, and ``named``, whether the answer names
        one of the offered actions at all. A vote without one is not named, and of a vote ``right`` and
        ``named`` are those of the most frequent action; ``single`` is the share of its answers that are
        right. A graph has for each state also ``checks``: whether each of the answers of :data:`CHECKED`
        that it asks for is right, or None if it is not asked, and ``copied``, whether the answer to its last
        question is word for word one of the answers before. Without the question for the action there is no
        ``right`` and no ``named``.
    """
    manual, states = drawn(seed)
    agent = _agent(lm, arm)
    blank = arm == "blank prompt"
    agent.begin(World(env=ID, manual="" if blank else manual), seed)
    shown = [aimless(one.state) if blank else one.state for one in states]
    ballots: list[list[str | None]] = [[] for _ in states]
    for _ in range(votes if arm == "vote" else 1):
        agent.seen = {one.state.stream: list(one.before) for one in states}
        agent.lines = []
        agent.act(shown)
        for ballot, line in zip(ballots, agent.lines, strict=True):
            ballot.append(line["action"] if line["named"] else None)
    chosen = [most_frequent(ballot) for ballot in ballots]
    row: dict[str, Any] = {
        "right": [int(own == one.right) for own, one in zip(chosen, states, strict=True)],
        "named": [int(own is not None) for own in chosen],
    }
    if arm == "vote":
        row["single"] = [
            float(np.mean([own == one.right for own in ballot]))
            for ballot, one in zip(ballots, states, strict=True)
        ]
    if arm in ("graph", "unchecked"):
        truths = _rule_answers(manual, states, seed)
        row["checks"] = [
            _checks(line["answers"], truth, one, bool(hit))
            for line, truth, one, hit in zip(agent.lines, truths, states, row["right"], strict=True)
        ]
        answers = [list(line["answers"].values()) for line in agent.lines]
        row["copied"] = [int(each[-1] in each[:-1]) for each in answers]
    return row


def _agent(lm: str, arm: Arm) -> SPRING:
    own = UNCHECKED if arm == "unchecked" else None
    ask: Literal["graph", "direct"] = "graph" if arm in ("graph", "unchecked") else "direct"
    temperature = VOTED_AT if arm == "vote" else 0.0
    model = load(lm) if lm in CONTROLS.values() else loaded(lm)
    return SPRING(model, questions=own, ask=ask, temperature=temperature, max_tokens=ANSWER_TOKENS)


def most_frequent(ballot: Sequence[str | None]) -> str | None:
    """Return the most frequent action of a ballot, the first of several; None if it names none."""
    counts = Counter(name for name in ballot if name is not None)
    return counts.most_common(1)[0][0] if counts else None


def _rule_answers(manual: str, states: Sequence[Drawn], seed: int) -> list[dict[str, str]]:
    """Return the rule's answers to the whole graph in each state."""
    rule = _agent(RULE, "graph")
    rule.begin(World(env=ID, manual=manual), seed)
    rule.seen = {one.state.stream: list(one.before) for one in states}
    rule.act([one.state for one in states])
    return [line["answers"] for line in rule.lines]


def _checks(
    answers: Mapping[str, str], truth: Mapping[str, str], one: Drawn, right: bool
) -> list[int | None]:
    """Return for each question of :data:`CHECKED` whether its answer is right, by words in it.

    Lenient where several answers are good: an answer has to name the last action, deny that it worked if it
    did not, name all things that are there, any of the rule's sub-tasks, the rule's first action, and the
    right action among the five.
    """

    def plain(text: str) -> str:
        return text.casefold().replace("the ", "")

    def says(answer: str, words: str) -> bool:
        return plain(words).rstrip(".") in plain(answer)

    def tell(name: str, answer: str) -> bool:
        lines = truth[name].splitlines()
        match name:
            case "last":
                nothing = not one.before and any(says(answer, word) for word in ("none", "no action"))
                return nothing or (bool(one.before) and says(answer, truth[name]))
            case "worked":
                said = plain(answer)
                denies = not said.startswith("yes") and bool(NEGATED.search(said))
                return denies == truth[name].startswith("No")
            case "things":
                return all(says(answer, line.partition(":")[0]) for line in lines)
            case "tasks":
                return any(
                    says(answer, line.partition(". ")[2].rpartition(" (priority")[0]) for line in lines
                )
            case "first":
                return says(answer, truth[name].removeprefix("First: "))
            case "actions":
                return says(answer, one.right)
            case _:
                return right

    return [int(tell(name, answers[name])) if name in answers else None for name in CHECKED]


def steps_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the shares of right actions and of named ones, their leads by states, and a graph's answers."""
    by_key: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        by_key.setdefault((row["key"][0], row["key"][1]), []).append(row)
    arms = {key: {row["key"][2]: row for row in own} for key, own in by_key.items()}
    told, checked = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for (label, arm), of_seed in arms.items():
        if "checks" in next(iter(of_seed.values())):
            checks = [state for row in of_seed.values() for state in row["checks"]]
            copied = np.mean([copy for row in of_seed.values() for copy in row["copied"]])
            checked.append((label, arm, *_by_question(checks), f"{copied:.2f}"))
        if "right" not in next(iter(of_seed.values())):
            continue
        right = np.concatenate([row["right"] for row in of_seed.values()])
        named = np.concatenate([row["named"] for row in of_seed.values()])
        singles = [row["single"] for row in of_seed.values() if "single" in row]
        single = f"{np.mean(np.concatenate(singles)):.2f}" if singles else ""
        cells = [label, arm, len(right), over_pairs(right.tolist()).short(), f"{named.mean():.2f}", single]
        if label not in CONTROLS:
            for other in ((label, "direct"), (label, "vote"), (label, "blank prompt"), (WORDS, "direct")):
                base = arms.get(other, {})
                both = [seed for seed in of_seed if seed in base]
                if other == (label, arm) or not both:
                    cells.append("")
                    continue
                less = [_right(of_seed[seed]) - _right(base[seed]) for seed in both]
                cells.append(over_pairs(np.concatenate(less).tolist()).short())
        told.append((*cells, *[""] * (10 - len(cells))))
    head = (
        "model | arm | states | right | names an action | right, single answers | over direct | over the vote"
    )
    told_table = table(f"{head} | over the blank prompt | over words", told)
    by_question = table(
        f"model | arm | {' | '.join(CHECKED)} | most often wrong first | last copied", checked
    )
    return f"{told_table}\n\nShare of right answers by question:\n\n{by_question}"


def _right(row: Mapping[str, Any]) -> FloatArray:
    return np.array(row["right"], dtype=float)


def _by_question(checks: Sequence[Sequence[int | None]]) -> list[str]:
    """Return the share of right answers to each question, and how often each is the first that is wrong."""
    shares = []
    for place in range(len(CHECKED)):
        values = [state[place] for state in checks if state[place] is not None]
        shares.append(f"{np.mean([float(value or 0) for value in values]):.2f}" if values else "")
    first = Counter(next((CHECKED[i] for i, ok in enumerate(state) if ok == 0), "none") for state in checks)
    return [*shares, ", ".join(f"{name} {n / len(checks):.2f}" for name, n in first.most_common())]


def at_steps(models: Mapping[str, str], scale: Scale, folder: Path) -> str:
    """Return how often real models and controls take the right action in single states."""
    specs = {**CONTROLS, **models}
    asked = selected(ARMS, scale.arms)
    arms = [arm for arm in ARMS if arm in asked]
    seeds = range(scale.seeds)
    keys = [(label, arm, seed) for seed in seeds for label in CONTROLS for arm in BY_CONTROL[label]]
    keys += [(label, arm, seed) for seed in seeds for label in models for arm in arms]
    rows = kept(folder / "rows.jsonl", keys, lambda label, arm, seed: asked_in(specs[label], arm, seed))
    return steps_table(rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    written = by_name(scale.lms)
    return [
        Part("By the share of wrong answers", (), beside=partial(by_error, scale)),
        Part("Without reasoning", (), beside=partial(controls, scale.lms, scale)),
        Part(STEPS, (), beside=partial(at_steps, written, scale), players=ARMS),
    ]


STUDIES = {
    "spring": Study(
        "spring",
        "Does a graph of questions correct more wrong answers than it adds?",
        "With GPT-4 SPRING scores 27.3 % on Crafter, above agents that were trained for a million steps; its "
        "authors credit consistent chains of thought (Wu et al., NeurIPS 2023).",
        "A craft world with one target per episode instead of Crafter, and a rule that answers from the "
        "manual (L0). The error rate of an answer is our assumption, and it decides the comparison: see "
        "above.",
        _parts,
        lm_for="spring",
        seeds=5,
    )
}

if __name__ == "__main__":
    print_table(lambda file: steps_table(read_lines(file)), "How often an action is right in single states.")
