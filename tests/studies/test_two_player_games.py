"""Games against exact values: Kuhn's equilibrium, Leduc's value, tic-tac-toe solved."""

from functools import cache

import numpy as np
import pytest

from hunch.core import UsageError
from hunch_studies.games.cfr import best_response, exploitability, in_tree, solve, tree_of, value, worth
from hunch_studies.games.game import CHANCE, END, PLAYERS, Known, View, at_random, drawn
from hunch_studies.games.inference import Filtering
from hunch_studies.games.ismcts import ISMCTS, Searching
from hunch_studies.games.matches import AtRandom, matches
from hunch_studies.games.tabletop.games import GAMES

TRUE = {name: Known(rules) for name, rules in GAMES.items()}


@cache
def tree(name):
    return tree_of(TRUE[name])


def walked(name, seed):
    """The positions of a match at random."""
    rng, position = np.random.default_rng(seed), TRUE[name].begin()
    yield position
    while position.look.player != END:
        (position,) = TRUE[name].follow([position], [at_random(position, rng)])
        yield position


# ---- rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_positions_keep_the_rules_of_games(name):
    for seed in range(5):
        for position in walked(name, seed):
            look = position.look
            assert (look.player == END) == (not look.actions)
            assert look.player in (*PLAYERS, CHANCE, END)
            assert len(set(look.actions)) == len(look.actions)
            assert sum(look.returns) == 0
            if look.player == CHANCE:
                assert sum(look.chances) == pytest.approx(1)
            for player in PLAYERS:
                memory = position.memories[player]
                assert len(memory) == len(position.history) + 1
                assert memory[-1][1] == look.seen[player]
                own = [action for action, _ in memory if action is not None]
                assert own == [
                    action for action, (done, _) in zip(position.history, memory[1:], strict=True) if done
                ]


@pytest.mark.parametrize(
    ("name", "histories", "memories", "even"),
    [("kuhn", 58, 12, 11 / 24), ("leduc", 1939, 288, 4.747222 / 2)],
)
def test_sizes_and_the_exploitability_of_even_play_are_the_known_ones(name, histories, memories, even):
    """Kuhn's as anybody counts them; Leduc's 936 information sets are 288 where suits are not told apart."""
    assert len(tree(name).parent) == histories
    assert len(tree(name).keys) == memories
    assert exploitability(tree(name), {}) == pytest.approx(even, abs=1e-5)


# ---- counterfactual regret minimisation -------------------------------------------------------------------


def test_regret_minimisation_comes_to_kuhns_equilibrium():
    policy = solve(tree("kuhn"), 500)
    assert value(tree("kuhn"), policy) == pytest.approx(-1 / 18, abs=1e-4)
    assert exploitability(tree("kuhn"), policy) < 1e-3
    chances = {(key[0], key[1][-1][1]): own for key, own in policy.items()}
    jack = chances[0, ("J", "")]["bet"]
    assert 0 <= jack <= 1 / 3 + 0.01
    assert chances[0, ("K", "")]["bet"] == pytest.approx(3 * jack, abs=0.03)
    assert chances[0, ("Q", "pb")]["bet"] == pytest.approx(jack + 1 / 3, abs=0.03)
    assert chances[1, ("Q", "b")]["bet"] == pytest.approx(1 / 3, abs=0.03)
    assert chances[1, ("J", "p")]["bet"] == pytest.approx(1 / 3, abs=0.03)
    assert chances[1, ("K", "b")]["bet"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("name", "known", "off"), [("leduc", -0.0856, 0.02), ("squall", 0.1969, 5e-3)])
def test_regret_minimisation_in_larger_games(name, known, off):
    """Leduc's value is a published one; Squall is ours, and its value is the middle of two best responses."""
    policy = solve(tree(name), 100)
    assert exploitability(tree(name), policy) < off
    assert value(tree(name), policy) == pytest.approx(known, abs=2e-3)
    one, other = (best_response(tree(name), policy, player) for player in PLAYERS)
    assert one >= value(tree(name), policy) >= -other


def test_a_best_response_by_hand():
    """Against one who always passes: bet at once, which wins 1 whatever the cards."""
    passing = {key: {"pass": 1.0} for key in tree("kuhn").keys}
    assert best_response(tree("kuhn"), passing, 0) == 1.0
    assert best_response(tree("kuhn"), passing, 1) == 1.0


def test_exact_worth_agrees_with_matches():
    """Two routes to what even play wins: the tree, and many matches."""
    even = worth(tree("squall"), in_tree(tree("squall"), {}))[0, 0]
    played = matches(TRUE["squall"], (AtRandom(), AtRandom()), 2_000, 0)
    assert played[:, 0].mean() == pytest.approx(even, abs=0.06)


def test_games_that_cannot_be_gone_through_are_refused():
    class Nothing:
        def begin(self):
            return None

    with pytest.raises(UsageError, match="no first position"):
        tree_of(Nothing())
    with pytest.raises(UsageError, match="more than 30 histories"):
        tree_of(TRUE["kuhn"], most=30)

    class Half(Known):
        def follow(self, positions, actions):
            return [None] * len(positions)

    with pytest.raises(UsageError, match=r"fails after the moves \(\)"):
        tree_of(Half(GAMES["kuhn"]))


# ---- inference --------------------------------------------------------------------------------------------


def test_beliefs_are_exact():
    """With a queen, before anybody moved: jack or king, each as likely; Leduc's ranks by what is left."""
    filtering = Filtering(TRUE["kuhn"])
    begun = TRUE["kuhn"].begin()
    (dealt,) = TRUE["kuhn"].follow([begun], ["deal Q"])
    (here,) = TRUE["kuhn"].follow([dealt], ["deal K"])
    belief = filtering.belief(0, here.memory)
    assert {p.state[0]: w for p, w in zip(belief.positions, belief.weights, strict=True)} == {
        "QJ": 0.5,
        "QK": 0.5,
    }
    leduc = TRUE["leduc"]
    (here,) = leduc.follow(leduc.follow([leduc.begin()], ["deal Q"]), ["deal Q"])
    belief = Filtering(leduc).belief(0, here.memory)
    shares = {p.state.cards: w for p, w in zip(belief.positions, belief.weights, strict=True)}
    assert shares == pytest.approx({"QJ": 0.4, "QQ": 0.2, "QK": 0.4})


@pytest.mark.parametrize("name", GAMES)
def test_what_happened_is_among_what_may_have(name):
    filtering = Filtering(TRUE[name])
    for seed in range(3):
        for position in walked(name, seed):
            for player in PLAYERS:
                belief = filtering.belief(player, position.memories[player])
                assert position.history in {p.history for p in belief.positions}
                assert sum(belief.weights) == pytest.approx(1)
                assert all(p.memories[player] == position.memories[player] for p in belief.positions)


def test_a_memory_that_nothing_explains_has_no_positions():
    memory = ((None, ("", "")), (None, ("A", "")))
    assert Filtering(TRUE["kuhn"]).belief(0, memory).positions == []
    view = View(0, memory, ("pass", "bet"), np.random.default_rng(0))
    seat = Searching(TRUE["kuhn"], Filtering(TRUE["kuhn"]))
    assert seat.choose([view])[0] in view.actions
    assert (seat.asked, seat.lost) == (1, 1)


# ---- search -----------------------------------------------------------------------------------------------


@cache
def exact(board):
    """What each mark is worth to who moves, by going through the whole of tic-tac-toe."""
    rules = GAMES["tic-tac-toe"]
    return {action: worth_of(rules.apply_action(board, action)) for action in rules.legal_actions(board)}


def worth_of(board):
    rules = GAMES["tic-tac-toe"]
    if rules.current_player(board) == END:
        return max(rules.returns(board))
    return -max(exact(board).values())


def test_search_plays_tic_tac_toe_without_a_mistake():
    assert max(exact("." * 9).values()) == 0, "a draw"
    boards = [
        position
        for seed in range(40)
        for position in list(walked("tic-tac-toe", seed))[3:-1]
        if len(set(exact(position.state).values())) > 1
    ]
    boards = boards[:: len(boards) // 6][:6]
    seat = Searching(TRUE["tic-tac-toe"], Filtering(TRUE["tic-tac-toe"]), ISMCTS(simulations=1_000, c=1.4))
    views = [View(p.look.player, p.memory, p.look.actions, np.random.default_rng(0)) for p in boards]
    chosen = seat.choose(views)
    best = [max(exact(position.state).values()) for position in boards]
    assert [exact(p.state)[action] for p, action in zip(boards, chosen, strict=True)] == best


def test_search_never_uses_what_is_hidden():
    """Two positions of one memory get the same choice: the search sees the memory, not the cards."""
    kuhn = TRUE["kuhn"]
    begun = kuhn.follow([kuhn.begin()], ["deal Q"])
    views = [
        View(0, kuhn.follow(begun, [deal])[0].memory, ("pass", "bet"), np.random.default_rng(3))
        for deal in ("deal J", "deal K")
    ]
    seat = Searching(kuhn, Filtering(kuhn), ISMCTS(simulations=100))
    one, other = seat.shares(views)
    assert one.tolist() == other.tolist()


def test_search_beats_random_play_and_dominated_moves_die_out():
    seat = Searching(TRUE["kuhn"], Filtering(TRUE["kuhn"]), ISMCTS(simulations=300, worlds=64), mixed=True)
    views = [View(p, m, ("pass", "bet"), np.random.default_rng(0)) for p, m in tree("kuhn").keys]
    chances = {(v.player, v.memory[-1][1]): s for v, s in zip(views, seat.shares(views), strict=True)}
    assert chances[1, ("K", "b")][1] > 0.95, "a bet is called with the king"
    assert chances[1, ("J", "b")][0] > 0.95, "and never with the jack"
    player = Searching(TRUE["squall"], Filtering(TRUE["squall"]), ISMCTS(simulations=60))
    for seats, own in (((player, AtRandom()), 0), ((AtRandom(), player), 1)):
        assert matches(TRUE["squall"], seats, 30, 0)[:, own].mean() > 0.2


def test_the_same_seed_gives_the_same_matches_in_any_company():
    def played(n):
        seat = Searching(TRUE["leduc"], Filtering(TRUE["leduc"]), ISMCTS(simulations=20))
        return matches(TRUE["leduc"], (seat, AtRandom()), n, 7).tolist()

    assert played(6)[:3] == played(3)


def test_chance_is_drawn_as_often_as_it_says():
    squall = TRUE["squall"]
    position = squall.begin()
    for action in ("hull 2", "hull 3", "sail"):
        (position,) = squall.follow([position], [action])
    rng = np.random.default_rng(0)
    rises = np.mean([drawn(position, rng) == "rise" for _ in range(3_000)])
    assert rises == pytest.approx(2 / 3, abs=0.04)
