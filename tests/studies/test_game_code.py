"""Games as code: tests made of matches, held-out positions, programs that memorise, fail or cheat."""

from itertools import product

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import UsageError
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.roles.writer.plain import plain_prompt
from hunch.roles.writer.programs import best
from hunch_studies.games import coded_game
from hunch_studies.games.cfr import exploitability, solve, tree_of
from hunch_studies.games.coded_game import FUNCTIONS, TOGETHER, CodedGame, loaded
from hunch_studies.games.game import END, PLAYERS, Known, View, at_random
from hunch_studies.games.inference import Filtering
from hunch_studies.games.ismcts import ISMCTS, Searching
from hunch_studies.games.tabletop.games import GAMES
from hunch_studies.rules.game_code import GAME_CODE, KUHN

CODE = {
    name: next(code for words, code in GAME_CODE.items() if words in rules.text)
    for name, rules in GAMES.items()
}
CARDS = ("kuhn", "leduc", "squall")


def made(game="kuhn", **options):
    return hunch.make("hunch/GameCode-v0", game=game, **options)


def tried(env, program):
    env.reset(seed=0)
    return env.step(program)[-1]["raw"]


@pytest.mark.parametrize("name", GAMES)
def test_the_plain_request_names_every_function_and_shows_no_program(name):
    asked, blank = (
        plain_prompt(made(name, blank=blank).unwrapped.problem, (), "") for blank in (False, True)
    )
    for function, parameters in FUNCTIONS.items():
        form = f"{function}({', '.join(parameters)})"
        for request in (asked, blank):
            assert f"- {form}: " in request, "what it is for"
            assert form in request.split("Write the Python functions ")[1]
    assert "def " not in asked
    assert GAMES[name].text in asked
    assert GAMES[name].text not in blank
    assert "A recorded match" in asked
    assert "A recorded match" not in blank


@pytest.mark.parametrize("deck", ["open", "closed"])
@pytest.mark.parametrize("name", GAMES)
def test_true_code_passes_all_tests_and_is_right_elsewhere(name, deck):
    trial = tried(made(name, deck=deck, episodes=4), CODE[name])
    assert trial.fitness == 1.0, trial.feedback or trial.error
    assert set(trial.components.values()) == {1.0}


@pytest.mark.parametrize("name", CARDS)
def test_code_and_rules_are_the_same_game(name):
    """Two implementations, gone through in full."""
    with loaded(CODE[name]) as program:
        coded, true = tree_of(CodedGame(program)), tree_of(Known(GAMES[name]))
    assert coded.keys == true.keys
    assert coded.actions == true.actions
    for field in ("parent", "player", "place", "slot", "chance", "won"):
        assert np.allclose(getattr(coded, field), getattr(true, field))


def test_what_is_solved_in_the_code_is_solved_in_the_game():
    with loaded(KUHN) as program:
        policy = solve(tree_of(CodedGame(program)), 500)
    assert exploitability(tree_of(Known(GAMES["kuhn"])), policy) < 0.01


def test_search_on_the_code_ties_with_search_on_the_truth():
    """The same seeds give the very same choices: filtering by the code is filtering by the rules."""
    true = Known(GAMES["leduc"])
    views = [
        View(p, m, own, np.random.default_rng(i))
        for i, ((p, m), own) in enumerate(zip(tree_of(true).keys[:20], tree_of(true).actions, strict=False))
    ]
    again = [view._replace(rng=np.random.default_rng(i)) for i, view in enumerate(views)]
    search = ISMCTS(simulations=40)
    with loaded(CODE["leduc"]) as program:
        coded = CodedGame(program)
        assert Searching(coded, Filtering(coded), search).choose(views) == Searching(
            true, Filtering(true), search
        ).choose(again)


def memoriser(env):
    """Code that knows the recorded positions by heart, and nothing else."""
    table = {
        p.history: (p.look.player, p.look.actions, p.look.chances, p.look.seen, p.look.returns)
        for match in env.recorded
        for p in match
    }
    memories = {
        (player, p.memories[player]): list(p.history)
        for match in env.recorded
        for p in match
        for player in PLAYERS
    }
    return (
        f"TABLE = {table!r}\nMEMORIES = {memories!r}\nNOTHING = (-4, [], [], ('', ''), (0.0, 0.0))\n"
        "def initial_state():\n    return ()\n"
        "def apply_action(state, action):\n    return (*state, action)\n"
        "def current_player(state):\n    return TABLE.get(state, NOTHING)[0]\n"
        "def legal_actions(state):\n    return TABLE.get(state, NOTHING)[1]\n"
        "def chance_outcomes(state):\n    known = TABLE.get(state, NOTHING)\n"
        "    return list(zip(known[1], known[2]))\n"
        "def observation(state, player):\n    return TABLE.get(state, NOTHING)[3][player]\n"
        "def returns(state):\n    return TABLE.get(state, NOTHING)[4]\n"
        "def resample_history(player, memory, seed):\n    return MEMORIES.get((player, tuple(memory)), [])\n"
    )


@pytest.mark.parametrize("name", GAMES)
def test_code_that_memorises_the_matches_loses_on_what_is_held_out(name):
    env = made(name, episodes=4)
    trial = tried(env, memoriser(env.unwrapped))
    assert trial.fitness == 1.0, trial.feedback
    assert trial.components["held_out_exact"] < 0.1
    assert trial.components["legal_recall"] < 0.1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("return ['pass', 'bet']", "return ['pass']"), "in legal actions:\nafter: history "),
        (("return ['pass', 'bet']", "return ['pass', 'bet', 'bet']"), "in current player:"),
        (("1 / len(left)", "1 / 3"), "in chance outcomes:"),
        (("if moves == 'pbp'", "if moves == 'pp'"), "in returns:"),
        (("'pbb']", "'pbc']"), "in current player:"),
        (("cards[player:player + 1]", "cards[:1]"), "in observation of player 1:"),
        (("weight * share, history + [action]", "weight * share, [action]"), "in inferred history:"),
        (("return len(moves) % 2", "return len(moves) / 0"), "ZeroDivisionError: division by zero (line 9:"),
    ],
)
def test_the_first_failed_test_is_told(change, said):
    assert change[0] in KUHN
    trial = tried(made(episodes=20), KUHN.replace(*change))
    assert 0 < trial.fitness < 1
    assert said in trial.feedback


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            KUHN.replace("    return ('', '')", "    return 1 / 0"),
            "ZeroDivisionError: division by zero (line 2",
        ),
        (KUHN.replace("def returns", "def revenues"), "it does not define the function returns"),
        (KUHN.replace("def observation(state, player)", "def observation(state)"), "cannot be called as"),
        (KUHN.replace("    return ['pass', 'bet']", "    import os\n    os._exit(1)"), "Crash"),
    ],
)
def test_programs_that_fail(program, said):
    trial = tried(made(), program)
    assert trial.fitness is None
    assert said in trial.error or said == "Crash"


def test_code_that_remembers_earlier_calls_fails():
    program = KUHN.replace(
        "    return ('', '')", "    initial_state.n = getattr(initial_state, 'n', 0) + 1\n    return ('', '')"
    ).replace("return len(moves) % 2", "return (len(moves) + initial_state.n // 9) % 2")
    trial = tried(made(), program)
    assert trial.fitness is None
    assert "earlier calls" in trial.error


def test_a_closed_deck_shows_one_players_word_alone():
    env = made(deck="closed", episodes=4)
    shown = env.reset(seed=0)[0].partition("A recorded match")[2]
    assert "player 1" not in shown
    assert "chance" not in shown
    assert "player 0 sees" in shown
    wrong = tried(env, KUHN.replace("pot = 2.0", "pot = 3.0").replace("else 1.0", "else 0.5"))
    assert wrong.fitness < 1
    assert "in returns:\nafter: player" in wrong.feedback


def test_a_game_of_ones_own():
    class Guess:
        """Chance hides a coin; player 0 names a side."""

        title, text = (
            "Guess",
            "A coin lies hidden, heads or tails with equal chance, and player 0 names a side.",
        )

        def initial_state(self):
            return ("", "")

        def current_player(self, state):
            return -1 if not state[0] else 0 if not state[1] else END

        def legal_actions(self, state):
            return ["heads", "tails"]

        def chance_outcomes(self, state):
            return [("heads", 0.5), ("tails", 0.5)]

        def apply_action(self, state, action):
            return (action, "") if not state[0] else (state[0], action)

        def observation(self, state, player):
            return state[1]

        def returns(self, state):
            return (1.0, -1.0) if state[0] == state[1] else (-1.0, 1.0)

    env = made(rules=Guess(), episodes=2)
    assert "A coin lies hidden" in env.reset(seed=0)[0]
    tree = tree_of(Known(Guess()))
    assert exploitability(tree, solve(tree, 50)) == pytest.approx(0)


def test_all_positions_recorded_are_refused():
    with pytest.raises(UsageError, match="take fewer episodes"):
        made(episodes=500)
    with pytest.raises(UsageError, match="game of hunch/GameCode-v0"):
        made("go")


# ---- code in a search -------------------------------------------------------------------------------------


def test_a_game_says_nothing_where_its_code_fails():
    stuck = KUHN.replace("return ['pass', 'bet']", "return ['pass', 'bet'] if not state[1] else []")
    with loaded(stuck) as program:
        game = CodedGame(program)
        (one,) = game.follow([game.begin()], ["deal Q"])
        (two,) = game.follow([one], ["deal J"])
        assert two.look.actions == ("pass", "bet")
        assert game.follow([two], ["pass"]) == [None], "somebody is to move and has no action"
        assert game.at([("deal Q", "deal J", "pass"), ("deal A",), None]) == [None] * 3
        assert game.at([("deal Q", "deal J")]) == [two]


HEAVY = """
def initial_state():
    return "", {weight}

def apply_action(state, action):
    return state[0] + action, {weight}

def current_player(state):
    return -4 if len(state[0]) > 6 else 0

def legal_actions(state):
    return ["a", "b"]

def observation(state, player):
    return state[0]

def returns(state):
    return 0.0, 0.0
"""


@pytest.mark.parametrize("weight", ["'x' * 20_000", "list(range(1000))", "__import__('numpy').zeros(2000)"])
def test_what_is_remembered_is_limited_in_bytes(monkeypatch, weight):
    """The positions are the same as with all of them remembered."""
    monkeypatch.setattr(coded_game, "MOST_BYTES", limit := 10**6)
    histories = [tuple(moves) for n in range(8) for moves in product("ab", repeat=n)]
    with loaded(HEAVY.format(weight=weight)) as program:
        game = CodedGame(program)
        for _ in range(2):
            found = game.at(histories)
            assert game.known.size <= limit
            assert [position.history for position in found] == histories
            assert [position.state[0] for position in found] == list(map("".join, histories))


def test_a_state_of_a_megabyte_is_none():
    with loaded(HEAVY.format(weight="'x' * 10**6")) as program:
        assert CodedGame(program).begin() is None


def test_inference_that_does_not_agree_is_dropped_and_play_goes_on():
    blind = KUHN.replace("    paths = [(1.0", "    return ['deal J', 'deal Q']\n    paths = [(1.0")
    true = Known(GAMES["kuhn"])
    (one,) = true.follow(true.follow([true.begin()], ["deal K"]), ["deal J"])
    with loaded(blind) as program:
        game = CodedGame(program)
        seat = Searching(game, game, ISMCTS(simulations=10))
        view = View(0, one.memory, one.look.actions, np.random.default_rng(0))
        assert seat.choose([view])[0] in view.actions
        assert (game.drawn, game.inconsistent, seat.lost) == (32, 32, 1)


def test_histories_are_asked_for_a_few_at_a_time(monkeypatch):
    """All in one request, a slow inference ran out of its time on a busy machine, and play became random."""
    with loaded(KUHN) as program:
        game, sizes, ask = CodedGame(program), [], program.map
        monkeypatch.setattr(program, "map", lambda calls: sizes.append(len(calls)) or ask(calls))
        tree = tree_of(Known(GAMES["kuhn"]))
        views = [View(p, m, ("pass", "bet"), np.random.default_rng(0)) for p, m in tree.keys]
        found = game.resample(views, 20)
    assert max(sizes) <= TOGETHER < 20 * len(views)
    assert [len(own) for own in found] == [20] * len(views)


def test_illegal_actions_of_the_code_are_never_played():
    odd = KUHN.replace("return ['pass', 'bet']", "return ['pass', 'bet', 'cheat']")
    true = Known(GAMES["kuhn"])
    rng = np.random.default_rng(0)
    with loaded(odd) as program:
        game = CodedGame(program)
        seat = Searching(game, Filtering(game), ISMCTS(simulations=20, depth=12))
        for _ in range(3):
            position = true.begin()
            while position.look.player != END:
                if position.look.player in PLAYERS:
                    view = View(position.look.player, position.memory, position.look.actions, rng)
                    action = seat.choose([view])[0]
                    assert action in position.look.actions
                else:
                    action = at_random(position, rng)
                (position,) = true.follow([position], [action])


# ---- writing ----------------------------------------------------------------------------------------------


def test_the_interface_names_every_function():
    text = made().reset(seed=0)[0]
    assert all(f"def {name}(" in text for name in FUNCTIONS)


@pytest.mark.parametrize("search", ["tree", "thompson"])
def test_the_methods_for_programs_write_a_game(search):
    agent = GIFMCTS(
        lm.load("scripted:modeller?bugs=0.1&repair=0.5&break=0.05&crash=0.05"), search=search, give_up=0
    )
    hunch.train(agent, made(), steps=25, seed=0)
    top = best(agent.attempts)
    assert top.fitness == 1.0
    assert agent.attempts[0].fitness != 1.0
    asked = GIFMCTS.prompt(made().unwrapped.problem, (agent.attempts[1],), "a finding")
    assert "the functions `apply_action`, `initial_state`" in asked


@pytest.mark.parametrize(
    "raised", [r"raise ValueError('a\nb\x1b[2J')", "return {'error': 'a\\n' * 9_999, 'line': 1}"]
)
def test_an_error_is_one_line_whatever_the_program_wrote_in_it(raised):
    program = KUHN + f"\ndef resample_history(player, memory, seed):\n    {raised}\n"
    feedback = tried(made(), program).feedback.splitlines()
    (returned,) = [line for line in feedback if line.startswith("returned: ")]
    assert returned.isprintable()
    assert len(returned) < 3_000
    assert feedback[-1] == returned


def test_without_feedback_the_writer_knows_of_no_error():
    spec = "scripted:modeller?bugs=0.1&repair=1"
    for feedback, solved in (("own", True), ("blind", False)):
        agent = GIFMCTS(lm.load(spec), search="linear", feedback=feedback, give_up=0)
        hunch.train(agent, made(), steps=15, seed=3)
        assert any(attempt.fitness == 1.0 for attempt in agent.attempts) is solved
