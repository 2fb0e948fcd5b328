"""Poker with few cards: Kuhn's game with three, and Leduc hold'em with six in two rounds."""

from __future__ import annotations

from typing import NamedTuple

from hunch_studies.games.game import CHANCE, END

RANKS = "JQK"


class Kuhn:
    """Kuhn poker (Kuhn 1950): a state is the cards that are dealt, and the moves so far as letters."""

    title = "Kuhn poker"
    text = (
        "Kuhn poker. The deck is one J, one Q and one K, of which K is the highest. Chance deals a "
        "card to player 0 and then one to player 1 ('deal J', 'deal Q' or 'deal K', each card that is "
        "left being as likely). Each player has put 1 into the pot. Then they move in turn, player 0 "
        "first, with the actions 'pass' and 'bet' (which puts 1 more in). Two passes, or two bets: "
        "the higher card wins the pot. A pass after a bet loses it; a bet after a pass asks player 0 "
        "once more to pass or bet. A player's return is what it wins from the other: 1 or 2, or as "
        "much less. A player sees the pair (its card, the moves): a letter, '' before it is dealt, "
        "and a text with p for a pass and b for a bet."
    )

    def initial_state(self) -> tuple[str, str]:
        """Return the state before the deal."""
        return "", ""

    def current_player(self, state: tuple[str, str]) -> int:
        """Chance deals twice; then players move in turn."""
        cards, moves = state
        if len(cards) < 2:
            return CHANCE
        return END if moves in ("pp", "bb", "bp", "pbp", "pbb") else len(moves) % 2

    def legal_actions(self, state: tuple[str, str]) -> list[str]:
        """Return the two moves, which are always legal."""
        return ["pass", "bet"]

    def chance_outcomes(self, state: tuple[str, str]) -> list[tuple[str, float]]:
        """Return the cards that are left."""
        left = [card for card in RANKS if card not in state[0]]
        return [(f"deal {card}", 1 / len(left)) for card in left]

    def apply_action(self, state: tuple[str, str], action: str) -> tuple[str, str]:
        """Deal, or move."""
        cards, moves = state
        return (cards + action[-1], moves) if action.startswith("deal") else (cards, moves + action[0])

    def observation(self, state: tuple[str, str], player: int) -> tuple[str, str]:
        """Return the player's card and the moves."""
        cards, moves = state
        return cards[player : player + 1], moves

    def returns(self, state: tuple[str, str]) -> tuple[float, float]:
        """Return what the winner takes from the loser."""
        cards, moves = state
        if moves[-2:] == "bp":
            won = 1.0 if moves == "bp" else -1.0
        else:
            higher = RANKS.index(cards[0]) > RANKS.index(cards[1])
            won = (1.0 if higher else -1.0) * (2 if moves[-1] == "b" else 1)
        return won, -won


class Hand(NamedTuple):
    """A state of Leduc: the private cards, the public one, and the moves of both rounds as letters."""

    cards: str
    public: str
    first: str
    second: str


class Leduc:
    """Leduc hold'em (Southey et al. 2005), with cards told by rank alone."""

    title = "Leduc poker"
    text = (
        "Leduc poker. The deck is two J, two Q and two K, of which K is the highest. Chance deals a "
        "card to player 0, one to player 1, and after the first round of betting a public one ('deal "
        "J', 'deal Q' or 'deal K', with the share that this rank has among the cards that are left). "
        "Each player has put 1 into the pot. In a round they move in turn, player 0 first: 'fold' "
        "(only where the other has put in more) loses the pot, 'call' evens it or checks, 'raise' "
        "evens it and puts in 2 more in the first round and 4 more in the second; there are at most "
        "two raises a round. A round ends with a call that is not its first move, the game with a "
        "fold or the second round. Then who has the rank of the public card wins, else the higher "
        "card; equal cards share the pot. A player's return is what it wins from the other, or as "
        "much less. Actions are in the order fold, call, raise. A player sees (its card, the public "
        "card, the moves of the first round, those of the second): letters, '' before they are dealt, "
        "and texts of f, c and r."
    )

    def initial_state(self) -> Hand:
        """Return the state before the deal."""
        return Hand("", "", "", "")

    def current_player(self, state: Hand) -> int:
        """Chance deals; then players move in turn."""
        round_ = state.second if state.public else state.first
        if len(state.cards) < 2:
            return CHANCE
        if round_.endswith("f"):
            return END
        if _over(round_):
            return END if state.public else CHANCE
        return len(round_) % 2

    def legal_actions(self, state: Hand) -> list[str]:
        """To fold, there must be something to call; there are two raises a round."""
        round_ = state.second if state.public else state.first
        fold = ["fold"] if round_.endswith("r") else []
        return [*fold, "call", *(["raise"] if round_.count("r") < 2 else [])]

    def chance_outcomes(self, state: Hand) -> list[tuple[str, float]]:
        """Return the ranks that are left."""
        left = {card: 2 - state.cards.count(card) for card in RANKS}
        return [(f"deal {card}", n / sum(left.values())) for card, n in left.items() if n]

    def apply_action(self, state: Hand, action: str) -> Hand:
        """Deal, or move."""
        if action.startswith("deal"):
            card = action[-1]
            return (
                state._replace(public=card)
                if len(state.cards) == 2
                else state._replace(cards=state.cards + card)
            )
        if state.public:
            return state._replace(second=state.second + action[0])
        return state._replace(first=state.first + action[0])

    def observation(self, state: Hand, player: int) -> tuple[str, ...]:
        """Return the player's card, the public card, and the moves."""
        return state.cards[player : player + 1], state.public, state.first, state.second

    def returns(self, state: Hand) -> tuple[float, float]:
        """Return what the winner takes from the loser."""
        put = [1 + sum(part) for part in zip(_put(state.first, 2), _put(state.second, 4), strict=True)]
        last = state.second or state.first
        if last.endswith("f"):
            loser = (len(last) - 1) % 2
        else:
            ranks = [3 if card == state.public else RANKS.index(card) for card in state.cards]
            if ranks[0] == ranks[1]:
                return 0.0, 0.0
            loser = 0 if ranks[0] < ranks[1] else 1
        won = float(put[loser])
        return (-won, won) if loser == 0 else (won, -won)


def _over(moves: str) -> bool:
    """Return whether a round of betting has ended with a call."""
    return len(moves) > 1 and moves.endswith("c")


def _put(moves: str, size: int) -> list[int]:
    """What each player has put in during a round."""
    put = [0, 0]
    for i, move in enumerate(moves):
        if move != "f":
            put[i % 2] = put[1 - i % 2] + (size if move == "r" else 0)
    return put
