"""Games as code: a program states the rules of a game, and its fitness is the share of unit tests passed.

The tests are made from recorded matches. They check who moves, the legal actions, the observations, the
returns, and whether inferred positions agree with what a player has seen. Source: Lehrach et al., "Code World
Models for General Game Playing", 2025.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.plain import Plain
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.envs.design.running import box
from hunch.ranges import PositiveInt
from hunch.sandbox import Program
from hunch_studies.games.coded_game import FUNCTIONS, CodedGame, Raised, loaded, raised, read_history
from hunch_studies.games.game import CHANCE, END, PLAYERS, Known, Position, View, at_random
from hunch_studies.games.game_tests import (
    UnitTest,
    belief_tests,
    compared,
    failed_tests,
    inference_test,
    listed,
    unit_tests,
)
from hunch_studies.games.inference import Filtering
from hunch_studies.games.tabletop.games import GAMES, Name, Told

Match = tuple[Position, ...]
"""The positions of a recorded match, first to last."""
HELD_OUT = 100
"""Maximum number of held-out positions."""
INFERRED = 30
"""Maximum number of these in which inference is tested."""
TRIES = 100
"""Number of further matches from which held-out positions are taken."""
START = '''def initial_state():
    """The state before the first move, as plain values of any form."""
    return ""

def current_player(state):
    """0 or 1; -1 where chance moves; -4 at the end."""
    return -4

def legal_actions(state):
    """What the player who moves may do, a list of texts."""
    return []

def chance_outcomes(state):
    """What chance may do, a list of (text, probability)."""
    return []

def apply_action(state, action):
    """The state after a move of a player or of chance."""
    return state

def observation(state, player):
    """What a player sees, in the form that the rules name."""
    return ""

def returns(state):
    """What players 0 and 1 have won at the end, a pair of numbers."""
    return (0.0, 0.0)

def resample_history(player, memory, seed):
    """All moves so far, chance's included, as the player may think of them, a list of texts.

    memory has an entry (action, observation) for the beginning and for each move: the player's own action, or
    None for a move that another made, and what the player saw after it. Another seed may be another history.
    """
    return []
'''


class GameCode(DesignProblem):
    """Write a game as code, from its rules in words and recorded matches.

    The fitness is the share of unit tests passed. Positions that were not recorded are held out. For these,
    ``components`` gives the share with everything right (``held_out_exact``), precision and recall of the
    legal actions, and the share of inferred histories that agree with what a player has seen.

    Args:
        game: Name of the game.
        episodes: Number of recorded matches, played at random.
        deck: What is recorded of a match: ``open``: all moves and what both players saw; ``closed``: what one
            of the players saw and did, in turn. With ``closed`` a test asks whether the program allows moves
            that explain this.
        blank: Leave the rules and the match out of the plain request: the control that shows whether a writer
            reads them. The names and the forms of the functions stay.
        rules: In Python: the true rules of a game of your own, used instead, with a ``title`` and a ``text``.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such game, or all its positions are recorded.
    """

    version = "12b33a47f71b75f5"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        game: Name = "kuhn",
        episodes: PositiveInt = 10,
        deck: Literal["open", "closed"] = "open",
        blank: bool = False,
        rules: Any = None,
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        if game not in GAMES:
            raise UsageError(f"There is no game {game!r}; there are {', '.join(GAMES)}.")
        self.rules: Told = rules or GAMES[game]
        self.deck = deck
        self.true = Known(self.rules)
        self.recorded = [_played(self.true, seed) for seed in range(episodes)]
        self.tellers = [PLAYERS if deck == "open" else (i % 2,) for i in range(episodes)]
        self.held_out = _others(self.true, self.recorded)
        if not self.held_out:
            raise UsageError(
                f"All positions of {self.rules.title} are recorded, and none is left to hold out: take fewer "
                "episodes."
            )
        super().__init__(
            task=f"Write the rules of this game as a program: {self.rules.text}",
            interface=self._interface(),
            function="apply_action",
            parameters=FUNCTIONS["apply_action"],
            also={name: own for name, own in FUNCTIONS.items() if name != "apply_action"},
            start=START,
            plain=self._plain(blank),
            target=1.0,
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Version of the scoring, rules and matches."""
        return (
            f"{self.version} {self.deck} {self.rules.title} {[match[-1].history for match in self.recorded]}"
        )

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def run(self, program: str, seed: int) -> Trial:
        """Test the program with one call for all matches; results are compared here."""
        with loaded(program, fresh=True) as called:
            tests = [*(self._replayed(called, program) if self.deck == "open" else ())]
            tests += self._inferred(called, program)
        if not any(test.passed for test in tests) and isinstance(tests[0].returned, Raised):
            return Trial(None, error=repr(tests[0].returned))
        with loaded(program) as called:
            game = CodedGame(called)
            tests += self._believed(game) if self.deck == "closed" else ()
            components = self._elsewhere(game)
        return Trial(
            float(np.mean([test.passed for test in tests])), failed_tests(tests), components=components
        )

    def _replayed(self, called: Program, program: str) -> list[UnitTest]:
        """Tests of everything that was recorded."""
        answers = _called(called, program, [("replay", match[-1].history) for match in self.recorded])
        return [
            test
            for match, answer in zip(self.recorded, answers, strict=True)
            for position, value in zip(match, listed(answer, len(match)), strict=True)
            for test in unit_tests(position, value)
        ]

    def _inferred(self, called: Program, program: str) -> list[UnitTest]:
        """Tests of the histories that the program infers, at each player's last move."""
        asked = [
            (player, [position.memories[player] for position in match if position.look.player == player][-1])
            for match, tellers in zip(self.recorded, self.tellers, strict=True)
            for player in tellers
            if any(position.look.player == player for position in match)
        ]
        values = _called(called, program, [("resample", *one, seed) for seed, one in enumerate(asked)])
        histories = [read_history(value, memory) for value, (_, memory) in zip(values, asked, strict=True)]
        answers = _called(called, program, [("replay", history or ()) for history in histories])
        return [
            inference_test(*one, value, history, answer)
            for one, value, history, answer in zip(asked, values, histories, answers, strict=True)
        ]

    def _believed(self, game: CodedGame) -> list[UnitTest]:
        """Tests of one player's record against all histories that the program allows."""
        filtering = Filtering(game)
        return [
            test
            for match, tellers in zip(self.recorded, self.tellers, strict=True)
            for player in tellers
            for position in match
            for test in belief_tests(
                position, player, filtering.belief(player, position.memories[player]).positions
            )
        ]

    def _elsewhere(self, game: CodedGame) -> dict[str, float]:
        """Return the program's accuracy on positions that were not recorded; a failure counts as wrong."""
        found = game.at([position.history for position in self.held_out])
        views = [
            View(p.look.player, p.memory, p.look.actions, np.random.default_rng(i))
            for i, p in enumerate(self.held_out)
            if p.look.player in PLAYERS
        ]
        drawn = game.resample(views[:INFERRED], 1)
        return {
            **compared([p.look if p else None for p in found], [position.look for position in self.held_out]),
            "consistent": float(np.mean([bool(own) for own in drawn])) if drawn else 1.0,
        }

    def _interface(self) -> str:
        return "\n\n".join(
            [
                "Interface: the functions below, which depend on their arguments alone. A state is plain "
                "values (numbers, texts, lists, tuples, dicts).",
                f"```python\n{START}```",
                self._first_match(),
            ]
        )

    def _plain(self, blank: bool) -> Plain:
        """Return the plain request: the rules, each function in a line, and the match; no program to copy."""
        parts = [
            "The rules of a game for two players are to be written as functions, which depend on their "
            "arguments alone. A state is plain values (numbers, texts, lists, tuples, dicts):",
            "\n".join(f"- {form}: {meaning}" for form, meaning in documented(START).items()),
        ]
        if not blank:
            parts = [f"The game: {self.rules.text}", *parts, self._first_match()]
        return Plain("\n\n".join(parts), FUNCTIONS["apply_action"], "All of them are needed.")

    def _first_match(self) -> str:
        """Return the first recorded match in words."""
        match, (teller, *others) = self.recorded[0], self.tellers[0]
        lines = [_line(position, match[-1].history, teller if not others else None) for position in match]
        return "A recorded match, a line a position:\n" + "\n".join(lines)


def documented(program: str) -> dict[str, str]:
    """Return the docstring of each function of a program, on one line, by the function's form."""
    functions = [node for node in ast.parse(program).body if isinstance(node, ast.FunctionDef)]
    return {
        f"{node.name}({', '.join(argument.arg for argument in node.args.args)})": " ".join(
            (ast.get_docstring(node) or "").split()
        )
        for node in functions
    }


# ---- matches ----------------------------------------------------------------------------------------------


def _played(game: Known, seed: int) -> Match:
    rng, match = np.random.default_rng(seed), [game.begin()]
    while match[-1].look.player != END:
        match += game.follow(match[-1:], [at_random(match[-1], rng)])
    return tuple(match)


def _others(game: Known, recorded: Sequence[Match]) -> list[Position]:
    """Positions of further matches that were not recorded."""
    known = {position.history for match in recorded for position in match}
    found: dict[tuple[str, ...], Position] = {}
    for seed in range(TRIES):
        for position in _played(game, 10_000 + seed):
            if position.history not in known and len(found) < HELD_OUT:
                found.setdefault(position.history, position)
    return list(found.values())


def _line(position: Position, history: tuple[str, ...], teller: int | None) -> str:
    """A position of a recorded match in words, from everybody's view or from one player's."""
    look, before = position.look, len(position.history)
    if teller is not None:
        own, seen = position.memories[teller][-1]
        did = f"player {teller} did {own}, and sees" if own else f"player {teller} sees"
        may = f" and may {', '.join(look.actions)}" if look.player == teller else ""
        end = f"; the end, with a return of {look.returns[teller]}" if look.player == END else ""
        return f"- {did} {seen!r}{may}{end}"
    seen = f"player 0 sees {look.seen[0]!r}, player 1 sees {look.seen[1]!r}"
    if look.player == END:
        return f"- {seen}; the end, with returns {look.returns!r}"
    mover = "chance" if look.player == CHANCE else f"player {look.player}"
    return f"- {seen}; {mover} may {', '.join(look.actions)}, and does {history[before]}"


def _called(called: Program, program: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the program's answer to each call; an exception in words, with the program's line."""
    return [
        [raised(look, program) or look for look in answer]
        if isinstance(answer, list)
        else raised(answer, program) or answer
        for answer in called.map(calls)
    ]
