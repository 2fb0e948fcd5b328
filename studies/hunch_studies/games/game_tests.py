"""Unit tests of a game's code, made from recorded positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hunch.rl.world_model import alike
from hunch_studies.games.coded_game import read_look
from hunch_studies.games.game import CHANCE, END, PLAYERS, Look, Memory, Position
from hunch_studies.games.inference import same

NOTHING = Look(-9, (), (), (None, None))
"""Used in comparisons if the code gives no answer."""


class UnitTest(NamedTuple):
    """A recorded fact, and what a program says instead or as well.

    Attributes:
        kind: What is tested, in words.
        passed: True if the program is right.
        where: The earlier moves, in words.
        expected: The recorded value.
        returned: The program's value.
    """

    kind: str
    passed: bool
    where: str
    expected: Any
    returned: Any


def unit_tests(position: Position, value: Any) -> list[UnitTest]:
    """Return the unit tests of a recorded position."""
    look, said = position.look, read_look(value)
    where = f"history {list(position.history)!r}"

    def test(kind: str, passed: bool, expected: Any, returned: Any) -> UnitTest:
        return UnitTest(kind, passed, where, expected, value if said is None else returned)

    got = said or NOTHING
    tests = [test("current player", got.player == look.player, look.player, got.player)]
    if look.player != END:
        fits = set(got.actions) == set(look.actions)
        tests.append(test(_moves(look), fits, look.actions, got.actions))
    if look.player == CHANCE:
        total = sum(got.chances)
        tests.append(test("chance outcomes", alike(total, 1.0), "probabilities that sum to 1", got.chances))
    for player in PLAYERS:
        fits = alike(got.seen[player], look.seen[player])
        kind = f"observation of player {player}"
        tests.append(test(kind, fits, look.seen[player], got.seen[player]))
    if look.player == END:
        fits = got.player == END and alike(got.returns, look.returns)
        tests.append(test("returns", fits, look.returns, got.returns))
    return tests


def _moves(look: Look) -> str:
    return "chance outcomes" if look.player == CHANCE else "legal actions"


def inference_test(
    player: int, memory: Memory, value: Any, history: Sequence[str] | None, answer: Any
) -> UnitTest:
    """Return the unit test of a history that code inferred.

    Args:
        player: The player whose memory it must explain.
        memory: What the player remembers.
        value: The value that the code returned.
        history: The history in it, if it is one.
        answer: What the code says about the positions along the history.
    """
    looks = [read_look(one) for one in listed(answer, len(memory))]
    fits = history is not None and agrees(looks, history, player, memory)
    where = f"player {player} remembers {memory!r}"
    return UnitTest("inferred history", fits, where, "a history that agrees with this memory", value)


def belief_tests(position: Position, player: int, found: Sequence[Position]) -> list[UnitTest]:
    """Return the unit tests of one player's record of a position.

    Args:
        position: The position of the match.
        player: The player.
        found: The positions that agree with the player's memory, according to the code.
    """
    look, where = position.look, f"player {player} remembers {position.memories[player]!r}"
    tests = [UnitTest("observation", bool(found), where, "moves that lead to this memory", len(found))]
    if look.player == player:
        said = {p.look.actions if p.look.player == player else None for p in found}
        fits = bool(found) and all(one is not None and set(one) == set(look.actions) for one in said)
        tests.append(UnitTest("legal actions", fits, where, look.actions, said))
    if look.player == END:
        won = {p.look.returns[player] for p in found if p.look.player == END}
        fits = any(alike(one, look.returns[player]) for one in won)
        tests.append(UnitTest("returns", fits, where, look.returns[player], won))
    return tests


def failed_tests(tests: Sequence[UnitTest]) -> str:
    """Describe how many tests are passed, and the first failed one."""
    wrong = [test for test in tests if not test.passed]
    counted = f"{len(tests) - len(wrong)} of {len(tests)} tests are passed."
    if not wrong:
        return counted
    test = wrong[0]
    return (
        f"{counted} One that is not, in {test.kind}:\nafter: {test.where}\nexpected: {test.expected!r}\n"
        f"returned: {repr(test.returned)[:500]}"
    )


def agrees(looks: Sequence[Look | None], history: Sequence[str], player: int, memory: Memory) -> bool:
    """Return whether a history played by code agrees with a player's memory."""
    if None in looks:
        return False
    known = [look for look in looks if look is not None]
    allowed = all(action in look.actions for look, action in zip(known, history, strict=False))
    own = [action if look.player == player else None for look, action in zip(known, history, strict=False)]
    shown = tuple(zip([None, *own], [look.seen[player] for look in known], strict=True))
    return allowed and same(shown, memory)


def compared(looks: Sequence[Look | None], true: Sequence[Look]) -> dict[str, float]:
    """Return the share of positions with everything right, and precision and recall of the legal actions."""
    said = [look or NOTHING for look in looks]
    moving = [
        (set(a.actions), set(b.actions)) for a, b in zip(said, true, strict=True) if b.player in PLAYERS
    ]
    hits = sum(len(one & other) for one, other in moving)
    exact = [_same_look(a, b) for a, b in zip(said, true, strict=True)]
    return {
        "held_out_exact": float(np.mean(exact)),
        "legal_precision": hits / max(sum(len(one) for one, _ in moving), 1),
        "legal_recall": hits / max(sum(len(other) for _, other in moving), 1),
    }


def _same_look(said: Look, true: Look) -> bool:
    chances = [dict(zip(look.actions, look.chances, strict=False)) for look in (said, true)]
    return (
        said.player == true.player
        and set(said.actions) == set(true.actions)
        and all(alike(chances[0].get(action), share) for action, share in chances[1].items())
        and alike(said.seen, true.seen)
        and alike(said.returns, true.returns)
    )


def listed(answer: Any, n: int) -> list[Any]:
    """Return a list of n values; Nones if the argument is not such a list."""
    found = list(answer)[:n] if isinstance(answer, tuple | list) else []
    return found + [None] * (n - len(found))
