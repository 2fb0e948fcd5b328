"""The rules of some games as programs with one statement per line, by the first sentence of their text."""

from __future__ import annotations

from hunch.envs.design.dynamics import DYNAMICS

INFERENCE = """\
def resample_history(player, memory, seed):
    from random import Random
    paths = [(1.0, [], initial_state())]
    for own, seen in memory[1:]:
        longer = []
        for weight, history, state in paths:
            mover = current_player(state)
            moves = chance_outcomes(state) if mover == -1 else [(move, 1.0) for move in legal_actions(state)]
            for action, share in moves:
                after = apply_action(state, action)
                allowed = own == action if mover == player else own is None
                if allowed and observation(after, player) == seen:
                    longer.append((weight * share, history + [action], after))
        paths = longer
    if not paths:
        return []
    weights = [weight for weight, history, state in paths]
    return Random(seed).choices(paths, weights)[0][1]
"""
"""Enumerates all possible histories; the same in each game."""
NO_CHANCE = """\
def chance_outcomes(state):
    return []
"""
BOARD = """\
WAYS = [(0, 1), (1, 0), (1, 1), (1, -1)]
STARTS = [(row, column, way) for row in range(HEIGHT) for column in range(WIDTH) for way in WAYS]
PATHS = [[(row + i * way[0], column + i * way[1]) for i in range(WINS)] for row, column, way in STARTS]
INSIDE = [path for path in PATHS if all(0 <= r < HEIGHT and 0 <= c < WIDTH for r, c in path)]
LINES = [[r * WIDTH + c for r, c in path] for path in INSIDE]
def has_line(state, mark):
    return any(all(state[cell] == mark for cell in line) for line in LINES)
def current_player(state):
    if has_line(state, 'x') or has_line(state, 'o') or '.' not in state:
        return -4
    return state.count('x') - state.count('o')
def observation(state, player):
    return state
def returns(state):
    if has_line(state, 'x'):
        return (1.0, -1.0)
    if has_line(state, 'o'):
        return (-1.0, 1.0)
    return (0.0, 0.0)
"""
TIC_TAC_TOE = (
    """\
WIDTH = 3
HEIGHT = 3
WINS = 3
def initial_state():
    return '.' * 9
def legal_actions(state):
    return ['mark ' + str(cell) for cell in range(9) if state[cell] == '.']
def apply_action(state, action):
    cell = int(action[5:])
    mark = 'x' if state.count('x') == state.count('o') else 'o'
    return state[:cell] + mark + state[cell + 1:]
"""
    + BOARD
    + NO_CHANCE
    + INFERENCE
)
CONNECT_FOUR = (
    """\
WIDTH = 5
HEIGHT = 4
WINS = 4
def initial_state():
    return '.' * 20
def legal_actions(state):
    return ['drop ' + str(column) for column in range(5) if state[column] == '.']
def apply_action(state, action):
    column = int(action[5:])
    row = 0
    while row + 1 < HEIGHT and state[(row + 1) * WIDTH + column] == '.':
        row = row + 1
    cell = row * WIDTH + column
    mark = 'x' if state.count('x') == state.count('o') else 'o'
    return state[:cell] + mark + state[cell + 1:]
"""
    + BOARD
    + NO_CHANCE
    + INFERENCE
)
KUHN = (
    """\
def initial_state():
    return ('', '')
def current_player(state):
    cards, moves = state
    if len(cards) < 2:
        return -1
    if moves in ['pp', 'bb', 'bp', 'pbp', 'pbb']:
        return -4
    return len(moves) % 2
def legal_actions(state):
    return ['pass', 'bet']
def chance_outcomes(state):
    cards, moves = state
    left = [card for card in 'JQK' if card not in cards]
    return [('deal ' + card, 1 / len(left)) for card in left]
def apply_action(state, action):
    cards, moves = state
    if action.startswith('deal'):
        return (cards + action[-1:], moves)
    return (cards, moves + action[:1])
def observation(state, player):
    cards, moves = state
    return (cards[player:player + 1], moves)
def returns(state):
    cards, moves = state
    pot = 2.0 if moves.count('b') == 2 else 1.0
    first = 'JQK'.index(cards[0]) > 'JQK'.index(cards[1])
    if moves == 'bp':
        first = True
    if moves == 'pbp':
        first = False
    return (pot, -pot) if first else (-pot, pot)
"""
    + INFERENCE
)
LEDUC = (
    """\
def initial_state():
    return ('', '', '', '')
def betting(state):
    cards, public, first, second = state
    return second if public else first
def current_player(state):
    cards, public, first, second = state
    moves = betting(state)
    if len(cards) < 2:
        return -1
    if moves.endswith('f'):
        return -4
    if len(moves) > 1 and moves.endswith('c'):
        return -4 if public else -1
    return len(moves) % 2
def legal_actions(state):
    moves = betting(state)
    actions = ['call']
    if moves.endswith('r'):
        actions = ['fold', 'call']
    if moves.count('r') < 2:
        actions = actions + ['raise']
    return actions
def chance_outcomes(state):
    cards, public, first, second = state
    left = [card for card in 'JJQQKK']
    for card in cards:
        left.remove(card)
    return [('deal ' + card, left.count(card) / len(left)) for card in 'JQK' if card in left]
def apply_action(state, action):
    cards, public, first, second = state
    if action.startswith('deal'):
        if len(cards) == 2:
            return (cards, action[-1:], first, second)
        return (cards + action[-1:], public, first, second)
    if public:
        return (cards, public, first, second + action[:1])
    return (cards, public, first + action[:1], second)
def observation(state, player):
    cards, public, first, second = state
    return (cards[player:player + 1], public, first, second)
def paid(state, player):
    cards, public, first, second = state
    total = [1.0, 1.0]
    for moves, size in [(first, 2.0), (second, 4.0)]:
        for i in range(len(moves)):
            if moves[i] != 'f':
                total[i % 2] = total[1 - i % 2]
            if moves[i] == 'r':
                total[i % 2] = total[1 - i % 2] + size
    return total[player]
def strength(state, player):
    cards, public, first, second = state
    return 3 if cards[player] == public else 'JQK'.index(cards[player])
def returns(state):
    moves = betting(state)
    if moves.endswith('f'):
        loser = (len(moves) - 1) % 2
    elif strength(state, 0) == strength(state, 1):
        return (0.0, 0.0)
    else:
        loser = 0 if strength(state, 0) < strength(state, 1) else 1
    lost = paid(state, loser)
    return (-lost, lost) if loser == 0 else (lost, -lost)
"""
    + INFERENCE
)
SQUALL = (
    """\
def initial_state():
    return ('', 0, (0, 0), 'ss', 0, False)
def current_player(state):
    hulls, weather, points, fates, mover, rolling = state
    if len(hulls) < 2 or rolling:
        return -1
    return mover if 's' in fates else -4
def legal_actions(state):
    hulls, weather, points, fates, mover, rolling = state
    if points[mover] < 3:
        return ['sail', 'anchor']
    return ['anchor']
def chance_outcomes(state):
    hulls, weather, points, fates, mover, rolling = state
    if rolling:
        return [('rise', 2 / 3), ('hold', 1 / 3)]
    return [('hull ' + hull, 1 / 3) for hull in '123']
def turned(hulls, weather, points, fates, mover, fate):
    fates = fate + fates[1] if mover == 0 else fates[0] + fate
    if fates[1 - mover] == 's':
        mover = 1 - mover
    return (hulls, weather, points, fates, mover, False)
def earned(points, mover, now):
    return (now, points[1]) if mover == 0 else (points[0], now)
def apply_action(state, action):
    hulls, weather, points, fates, mover, rolling = state
    if action.startswith('hull'):
        return (hulls + action[5:], weather, points, fates, mover, rolling)
    if action == 'sail':
        return (hulls, weather, earned(points, mover, points[mover] + 1), fates, mover, True)
    if action == 'anchor':
        return turned(hulls, weather, points, fates, mover, 'a')
    if action == 'rise':
        weather = weather + 1
    if weather > int(hulls[mover]):
        return turned(hulls, weather, earned(points, mover, 0), fates, mover, 'x')
    return turned(hulls, weather, points, fates, mover, 's')
def observation(state, player):
    hulls, weather, points, fates, mover, rolling = state
    return (hulls[player:player + 1], weather, points[0], points[1], fates)
def returns(state):
    hulls, weather, points, fates, mover, rolling = state
    won = 0.0
    if points[0] > points[1]:
        won = 1.0
    if points[0] < points[1]:
        won = -1.0
    return (won, -won)
"""
    + INFERENCE
)
GAME_CODE = {
    "The game of tic-tac-toe.": TIC_TAC_TOE,
    "The game of connect four on a small board": CONNECT_FOUR,
    "Kuhn poker. ": KUHN,
    "Leduc poker. ": LEDUC,
    "Squall, a game of two captains": SQUALL,
}
"""Programs by the first words of the rules."""
LINES_LEFT = """\
def value(state, player):
    mine = 'xo'[player]
    theirs = 'xo'[1 - player]
    hopes = [line for line in LINES if all(state[cell] != theirs for cell in line)]
    fears = [line for line in LINES if all(state[cell] != mine for cell in line)]
    good = sum(10.0 ** sum(state[cell] == mine for cell in line) for line in hopes)
    bad = sum(10.0 ** sum(state[cell] == theirs for cell in line) for line in fears)
    return (good - bad) / (good + bad + 1.0)
"""
STRONGER = """\
def value(state, player):
    mine = strength(state, player)
    theirs = strength(state, 1 - player)
    pot = 0.5 * (paid(state, 0) + paid(state, 1))
    return pot * ((mine > theirs) - (mine < theirs))
"""
AHEAD = """\
def value(state, player):
    hulls, weather, points, fates, mover, rolling = state
    lead = points[player] - points[1 - player]
    mine = 0.3 * (int(hulls[player]) - weather) * (fates[player] == 's')
    theirs = 0.3 * (int(hulls[1 - player]) - weather) * (fates[1 - player] == 's')
    return max(-1.0, min(1.0, 0.5 * (lead + mine - theirs)))
"""
GAME_VALUE = {
    "The game of tic-tac-toe.": LINES_LEFT,
    "The game of connect four on a small board": LINES_LEFT,
    "Leduc poker. ": STRONGER,
    "Squall, a game of two captains": AHEAD,
}
"""Functions for the value of a position to a player, by the first words of the rules."""

DYNAMICS |= {(rules, "apply_action"): code for rules, code in GAME_CODE.items()}
DYNAMICS |= {(rules, "value"): code for rules, code in GAME_VALUE.items()}
