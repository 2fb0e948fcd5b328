"""Study of "Language Instructed Reinforcement Learning for Human-AI Coordination" (Hu and Sadigh, ICML 2023):
how often an instruction decides the convention of two players, depending on the model that reads it.

    hunch study instruct-rl
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import hunch
from hunch.core import Agent, FloatArray, Player, State, Transition, World
from hunch.envs import make
from hunch.extras import library
from hunch.lm import load
from hunch.lm.ways import has_way
from hunch.methods.policy.agent import PolicyAgent
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import over_episodes, over_pairs, over_seeds
from hunch.roles.prior.base import DistributionPrior, UniformPrior
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.roles.prior.language import MappedPrior
from hunch.runs.checkpoints import BEST, read_checkpoint
from hunch.runs.compare import folder_name
from hunch.runs.evaluations import Evaluation
from hunch_contrib.policy.instruct_ppo import InstructPPO, InstructPPOConfig
from hunch_contrib.prior.instruct_q import InstructQ, InstructQConfig
from hunch_studies.planners import table
from hunch_studies.rules.partners import partner
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.worlds.say_select import QUIT, SaySelect, all_deals

ENV: Final = "hunch/SaySelect-v0"
STEPS: Final = 12_000
LONG: Final = 300_000
"""About 50,000 games, as in the released code."""
EVERY: Final = 650
"""Steps between evaluations: about 100 games, as in the released code."""
PPO_STEPS: Final = 24_000
"""By pilot runs of PPO without a prior, seed 100: a mean return of 0.0 after 12,000 steps (at a learning rate
of 1e-3), and of 1.3 after 24,000 (at 2.5e-3)."""
INSTRUCTION: Final = "select the same number as your partner"
NONE, LISTENER = (0.0, 0.0), (0.0, 0.25)
"""Lambda of speaker and listener (paper: of the listener only)."""
PULLS: Final = ((0.05, 0.01), (0.25, 0.01))
"""First and last weights of the divergence with PPO: those of the released code, in Hanabi; and ours. With a
constant 0.25 (a pilot run, seed 100) the listener does what the prior says and never quits."""
READING = PriorConfig(way="likelihood", normalise="sum")
NEAR = PriorConfig(way="similarity", history=1.0, temperature=0.02)
"""For encoders: the number that was said has the same weight as the instruction, and the temperature is a
fifth of the default, at which their priors are too flat for a lambda of 0.25 to matter."""
RULE: Final = "scripted:partner"
Choices = dict[str, str]
"""A listener's action in each situation."""


@dataclass(frozen=True)
class Line:
    """A row of the table: the model that reads the instruction, and when the prior is used."""

    label: str
    lm: str
    prior: PriorConfig = READING
    floor: float = 0.01
    trained: tuple[float, ...] = LISTENER
    tried: tuple[float, ...] = LISTENER
    steps: int = STEPS
    envs: int = 1
    blank: bool = False
    """Leave out the instruction, and nothing else."""

    def agent(self, weight: tuple[float, ...]) -> Agent:
        """Make an agent with this lambda."""
        c = InstructQConfig(
            instruction=INSTRUCTION, learning_rate=0.02, prior=self.prior, floor=self.floor, weight=weight
        )
        return InstructQ(self.reader(weight), c)

    def reader(self, weight: tuple[float, ...]) -> DistributionPrior | MappedPrior:
        """Make the prior; uninformed if it has no weight."""
        if not any(weight):
            return UniformPrior()
        prior = build_prior(self.prior, _model(self.lm))
        return Uninstructed(prior) if self.blank else prior

    @property
    def learner(self) -> Line:
        """The row whose training this one uses: all rows that train without a prior share theirs."""
        label = f"without a prior, {self.steps} steps"
        alone = type(self)(label, "uniform", trained=NONE, tried=NONE, steps=self.steps)
        return self if any(self.trained) else alone

    def player(self, agent: Agent) -> Player:
        """Return a player of the trained agent that does not explore."""
        return agent.player(0)


class Uninstructed(DistributionPrior):
    """The control: a prior that is shown the state without the instruction.

    Args:
        prior: The prior.
    """

    def __init__(self, prior: DistributionPrior | MappedPrior) -> None:
        assert isinstance(prior, DistributionPrior)
        super().__init__(prior.evidence)
        self.prior = prior

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return self.prior.probabilities([aimless(state, manual="") for state in states])


@dataclass(frozen=True)
class PPOLine(Line):
    """A row with PPO; ``trained`` has the first and the last weight of the divergence from the prior."""

    steps: int = PPO_STEPS
    envs: int = 32

    def agent(self, weight: tuple[float, ...]) -> InstructPPO:
        """Make an agent with this weight."""
        kl, kl_end = weight
        c = InstructPPOConfig(
            instruction=INSTRUCTION,
            prior=self.prior,
            floor=self.floor,
            players=(1,),
            kl=kl,
            kl_end=kl_end,
            horizon=8,
            learning_rate=2.5e-3,
            gamma=1.0,
        )
        return InstructPPO(self.reader(weight), config=c)

    def player(self, agent: Any) -> Player:
        """Return a player that takes the most probable action: PPO explores by drawing."""
        return Likeliest(agent)


def with_ppo() -> tuple[PPOLine, ...]:
    """Return PPO without a prior, with the published weight, and with a larger first weight."""
    return (
        PPOLine("kl 0", "uniform", trained=NONE, tried=NONE),
        *(
            PPOLine(f"kl {pull[0]} to {pull[1]}, accuracy {accuracy}", lm, trained=pull, tried=pull)
            for pull in PULLS
            for accuracy, lm in ((1.0, RULE), (0.9, f"{RULE}?error=0.1"))
        ),
    )


def rules() -> tuple[Line, ...]:
    """Return no prior, which is Q-learning, and scripted priors."""
    less_sure = PriorConfig(way="likelihood", normalise="sum", temperature=3.0)
    return (
        Line("lambda 0", "uniform", trained=NONE, tried=NONE),
        *(Line(f"accuracy {a}", f"{RULE}?error={round(1 - a, 1)}") for a in (1.0, 0.9, 0.8, 0.6)),
        Line("accuracy 1.0, floor 0.1", RULE, floor=0.1),
        *(Line(f"lasting errors, {a}", f"{RULE}?error={round(1 - a, 1)}&systematic=1") for a in (0.9, 0.8)),
        Line("lasting errors, 0.8, less sure", f"{RULE}?error=0.2&systematic=1", less_sure),
        Line("accuracy 0.9, at test time only", f"{RULE}?error=0.1", trained=NONE),
        Line("accuracy 0.9, never trained", f"{RULE}?error=0.1", trained=NONE, steps=1),
    )


def encoders(lms: Sequence[str]) -> tuple[Line, ...]:
    """Return a sentence encoder, the bag of words as its lexical control, and the user's models."""
    return (
        *(Line(lm, lm, NEAR) for lm in ("minilm", "words")),
        *(Line(f"{lm}, floor 0.3", lm, NEAR, floor=0.3) for lm in ("minilm", "words")),
        Line("minilm, at test time only", "minilm", NEAR, trained=NONE),
        *(Line(lm, lm, PriorConfig()) for lm in lms),
    )


DIGITS, WORDS = "Balls numbered in digits", "Balls numbered in words"
FLOORS: Final = (0.01, 0.3)
"""Shares of a prior that are spread evenly: that of the rules, and the one that encoders do better with."""
BLANK: Final = ", blank prompt"


def real(lms: Sequence[str]) -> tuple[Line, ...]:
    """Return no prior, words, and the user's models with the instruction and with the blank prompt.

    A model is asked by the likelihood of each action after the bare transcript, as in SayCan's paper.
    """
    unlisted = PriorConfig(way="likelihood-unlisted", normalise="sum")
    lines = [rules()[0]]
    for floor in FLOORS:
        lines.append(Line(f"words, floor {floor:g}", "words", NEAR, floor=floor))
        for lm in lms:
            lines.append(Line(f"{lm}, floor {floor:g}", lm, unlisted, floor=floor))
            lines.append(Line(f"{lm}{BLANK}, floor {floor:g}", lm, unlisted, floor=floor, blank=True))
    return tuple(lines)


def compared(lms: Sequence[str], words: bool, steps: int, seeds: int, folder: Path) -> str:
    """Return the table of the user's models, and their leads, paired by seed, in Markdown."""
    able = [lm for lm in lms if has_way(_model(lm), "likelihood-unlisted")]
    left_out = [lm for lm in lms if lm not in able]
    lines = real(able)
    text = measured(lines, words, steps, seeds, folder)
    if left_out:
        text += f"\n\nWithout scores, and so left out: {', '.join(left_out)}."
    by_label = dict(
        zip((line.label for line in lines), _results(lines, words, steps, seeds, folder), strict=True)
    )

    def lead(label: str, other: str, with_whom: str) -> str:
        pairs = zip(by_label[label], by_label[other], strict=True)
        return over_pairs([one[with_whom] - base[with_whom] for one, base in pairs]).short()

    rows = []
    for floor in FLOORS:
        others = (lines[0].label, f"words, floor {floor:g}")
        for lm in able:
            label = f"{lm}, floor {floor:g}"
            for name, with_whom in (("an instructed speaker", "human"), ("the next seed", "stranger")):
                leads = [
                    lead(label, other, with_whom) for other in (*others, f"{lm}{BLANK}, floor {floor:g}")
                ]
                rows.append((label, name, *leads))
    head = "arm | return with | ahead of no prior by | ahead of words by | ahead of the blank prompt by"
    return f"{text}\n\n{table(head, rows)}"


@cache
def _model(spec: str) -> Any:
    return load(spec)


# ---- players ----------------------------------------------------------------------------------------------


class Pair(Player):
    """A speaker and a listener from different agents; streams alternate between them."""

    def __init__(self, *players: Player) -> None:
        self.players = players

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the actions of the player of each stream."""
        return [self.players[state.seat].act([state])[0] for state in states]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: it has no memory."""


class Follower(Player):
    """Follows the instruction; as a speaker it says the number of a good ball."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the rule's actions."""
        return [partner(state.text(), state.options) for state in states]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: it has no memory."""


class Likeliest(Player):
    """Takes the action to which a policy gives the highest probability.

    Args:
        agent: An agent with a policy.
    """

    def __init__(self, agent: PolicyAgent) -> None:
        self.agent = agent

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the most probable action of each state."""
        shares = self.agent.probabilities(states)
        return [state.options[int(own.argmax())] for state, own in zip(states, shares, strict=True)]

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Do nothing: it has no memory."""


def score(player: Player, env: Any) -> float:
    """Return the mean return over all deals, each played once."""
    ended = evaluate(lambda _: player, [env], len(env.unwrapped.all), 0)
    return float(np.mean([episode.episode_return for episode in ended]))


def situations(env: SaySelect) -> Iterator[tuple[State, set[str]]]:
    """Return everything that a listener may see, with the actions that the instruction allows.

    These are the ball of that number, or quitting if the number is repeated (released code).
    """
    for said in range(env.balls):
        for before in (None, *range(env.balls)):
            lines = [] if before is None else [f"You selected {env.names[before]}."]
            text = "\n".join([*lines, f"Your partner says {said + 1}."])
            allowed = {env.selects[1 + said], *((QUIT,) if before == said else ())}
            yield State(text, env.task, env.selects, stream=1, seat=1), allowed


# ---- lines ------------------------------------------------------------------------------------------------


def trained(line: Line, words: bool, steps: int, seed: int, folder: Path) -> Agent:
    """Return the agent of a row, trained with one lambda and evaluated with another or the same."""
    agent = line.agent(line.tried)
    agent.begin(World(streams=2), seed)
    agent.load_state_dict(_learnt(line.learner, words, min(steps, line.steps), seed, folder))
    return agent


def _learnt(line: Line, words: bool, steps: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the agent of the best evaluation on all deals; its run is kept in the folder."""
    run, deals = folder / "runs" / folder_name(line.label) / f"seed-{seed}", make_deals(words)
    envs = [make(ENV, words=words) for _ in range(line.envs)]
    evaluation = Evaluation(deals, min(EVERY, steps), episodes=len(deals.unwrapped.all))
    hunch.train(line.agent(line.trained), envs, steps, seed=seed, out=run, evaluation=evaluation)
    best = read_checkpoint(run, BEST)
    assert best is not None  # a run with evaluations has one
    state: dict[str, Any] = best["agent"]
    return state


def make_deals(words: bool) -> Any:
    """Make the environment in which every deal comes once."""
    return make(ENV, words=words, deals="in turn")


def tried(line: Line, words: bool, steps: int, seeds: int, folder: Path) -> list[dict[str, Any]]:
    """Return the choices and mean returns of the agents of all seeds.

    ``alone`` is play with itself over all deals, ``human`` with a speaker that follows the instruction, and
    ``stranger`` with the speaker of the next seed's agent.
    """
    env = make_deals(words)
    players = [line.player(trained(line, words, steps, seed, folder)) for seed in range(seeds)]
    found = []
    for own, next_one in zip(players, [*players[1:], players[0]], strict=True):
        known = list(situations(env.unwrapped))
        choices = {state.observation: own.act([state])[0] for state, _ in known}
        right = [choices[state.observation] in allowed for state, allowed in known]
        returns = {
            "alone": score(own, env),
            "human": score(Pair(Follower(), own), env),
            "stranger": score(Pair(next_one, own), env),
        }
        found.append({"follows": float(np.mean(right)), **returns, "choices": choices})
    return found


def measured(lines: Sequence[Line], words: bool, steps: int, seeds: int, folder: Path) -> str:
    """Return a table of the conventions and a picture of some, in Markdown."""
    found = dict(zip(lines, _results(lines, words, steps, seeds, folder), strict=True))
    shown = {line.label: found[line][0]["choices"] for line in lines if line.label in PICTURED}
    picture = draw(shown, folder / "conventions.png") if len(shown) == len(PICTURED) else ""
    best = np.mean([len(deal) for deal in all_deals(5, 3)])
    head = "arm | evidence | convention | share of 30 situations | with itself | with an instructed speaker"
    told = [(line.label, _evidence(line), *_row(found[line])) for line in lines]
    return f"Best return: {best:.2f}.\n\n{table(f'{head} | with the next seed', told)}{picture}"


def _results(
    lines: Sequence[Line], words: bool, steps: int, seeds: int, folder: Path
) -> list[list[dict[str, Any]]]:
    """Return the results of :func:`tried` for each row; what is there is read."""
    by_label = {line.label: line for line in lines}
    rows = kept(
        folder / "players.jsonl",
        [(line.label, steps, seeds) for line in lines],
        lambda label, *_: {"players": tried(by_label[label], words, steps, seeds, folder)},
    )
    return [row["players"] for row in rows]


def _evidence(line: Line) -> str:
    return _model(line.lm).evidence if any(line.tried) else "-"


def _row(results: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    """Return how many agents always follow the convention, and means over seeds."""
    keep = [one["follows"] == 1 for one in results]
    share = over_episodes(keep)
    told = f"{sum(keep)} of {len(keep)} [{share.low:.2f}, {share.high:.2f}]"
    figures = ("follows", "alone", "human", "stranger")
    return told, *(over_seeds([one[name] for one in results]) for name in figures)


PICTURED: Final = ("lambda 0", "accuracy 0.9", "lasting errors, 0.8")


def draw(shown: Mapping[str, Choices], path: Path) -> str:
    """Draw the choices of the first seed's listener, one matrix per row; return the picture in Markdown.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    matplotlib = library("matplotlib.figure", "Pictures need matplotlib", "plot")
    figure = matplotlib.Figure(figsize=(3.2 * len(shown), 3.6), layout="constrained")
    for axes, (label, choices) in zip(figure.subplots(1, len(shown)), shown.items(), strict=True):
        cells = np.array([0 if c == QUIT else int(c.split()[1]) for c in choices.values()]).reshape(5, 6).T
        axes.imshow(cells, cmap="Blues", vmin=0, vmax=8)
        for (row, column), ball in np.ndenumerate(cells):
            axes.text(column, row, ball or "quit", ha="center", va="center", fontsize=9)
        axes.set_xticks(range(5), range(1, 6))
        axes.set_yticks(range(6), ["none", *map(str, range(1, 6))])
        axes.set_title(label, fontsize=10)
        axes.set_xlabel("number that the speaker says")
    figure.axes[0].set_ylabel("ball that the listener selected before")
    figure.savefig(path, dpi=120)
    return f"\n\n![What the listener of the first seed selects]({path.parent.name}/{path.name})"


def _parts(scale: Scale, data: Path) -> list[Part]:
    plans: dict[str, tuple[tuple[Line, ...], bool, int]] = {
        DIGITS: ((*rules(), *encoders(scale.lms)), False, STEPS),
        WORDS: ((rules()[0], *encoders(scale.lms)), True, STEPS),
        "With PPO": (with_ppo(), False, PPO_STEPS),
    }
    long = tuple(replace(line, steps=LONG) for line in rules()[:3])
    return [
        *(
            Part(title, (), beside=partial(measured, lines, words, scale.steps(steps), scale.seeds))
            for title, (lines, words, steps) in plans.items()
        ),
        *(
            Part(
                f"Real models, {title.lower()}",
                (),
                beside=partial(compared, scale.lms, words, scale.steps(STEPS), scale.seeds),
            )
            for title, words in ((DIGITS, False), (WORDS, True))
            if scale.lms
        ),
        Part(
            "50,000 games", (), beside=partial(measured, long, False, scale.steps(LONG), min(scale.seeds, 5))
        ),
    ]


STUDIES = {
    "instruct-rl": Study(
        "instruct-rl",
        "Does an instruction decide which of many equally good conventions two players learn?",
        "In Say-Select, Q-learning ends in arbitrary conventions, and instructQ with GPT-J always in the "
        "one that the instruction names, with the same score. In Hanabi, two instructions lead to two "
        "kinds of play. Adding the prior only at test time does not help (Hu and Sadigh, ICML 2023).",
        "Each player learns from its own steps, backwards from the end of the episode; the released code "
        "learns one value for both from a replay buffer. Training has 12,000 steps (about 1,800 games) "
        "instead of 50,000 games, except in the last table. `scripted:partner` is a rule (L0). Real models, "
        "which are named by --lm, have parts of their own. Hanabi is left out. PPO has 24,000 steps in 32 "
        "environments.",
        _parts,
        lm_for="instruct-q",
        seeds=20,
    )
}
