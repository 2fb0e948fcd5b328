"""Dynamics of environments and a policy, as programs with one statement per line, by words of the task."""

from __future__ import annotations

CLIFF_WALKING = """\
def step(state, action):
    row, column = divmod(state, 12)
    if action == 'go up':
        row = max(row - 1, 0)
    if action == 'go right':
        column = min(column + 1, 11)
    if action == 'go down':
        row = min(row + 1, 3)
    if action == 'go left':
        column = max(column - 1, 0)
    reward = -1.0
    if row == 3 and 0 < column < 11:
        reward = -100.0
        column = 0
    done = row == 3 and column == 11
    return (12 * row + column, reward, done)
"""
TAXI = """\
def step(state, action):
    stands = [(0, 0), (0, 4), (4, 0), (4, 3)]
    place, goal = divmod(state, 4)
    cell, passenger = divmod(place, 5)
    row, column = divmod(cell, 5)
    reward = -1.0
    done = False
    if action == 'drive south':
        row = min(row + 1, 4)
    if action == 'drive north':
        row = max(row - 1, 0)
    if action == 'drive east':
        wall = (row, column) in [(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)]
        column = column if wall else min(column + 1, 4)
    if action == 'drive west':
        wall = (row, column) in [(0, 2), (1, 2), (3, 1), (4, 1), (3, 3), (4, 3)]
        column = column if wall else max(column - 1, 0)
    if action == 'pick up the passenger':
        here = passenger < 4 and (row, column) == stands[passenger]
        reward = -1.0 if here else -10.0
        passenger = 4 if here else passenger
    if action == 'drop off the passenger':
        inside = passenger == 4
        there = [i for i in range(4) if stands[i] == (row, column)]
        done = inside and there == [goal]
        reward = 20.0 if done else -1.0 if inside and there else -10.0
        passenger = there[0] if inside and there else passenger
    return (((row * 5 + column) * 5 + passenger) * 4 + goal, reward, done)
"""
CART_POLE = """\
def step(state, action):
    from math import cos, sin, pi
    x, speed, angle, turning = state
    force = 10.0 if action == 'push right' else -10.0
    push = (force + 0.05 * turning ** 2 * sin(angle)) / 1.1
    lever = 0.5 * (4.0 / 3.0 - 0.1 * cos(angle) ** 2 / 1.1)
    swing = (9.8 * sin(angle) - cos(angle) * push) / lever
    roll = push - 0.05 * swing * cos(angle) / 1.1
    x = x + 0.02 * speed
    speed = speed + 0.02 * roll
    angle = angle + 0.02 * turning
    turning = turning + 0.02 * swing
    done = abs(x) > 2.4 or abs(angle) > 12 * pi / 180
    return ((x, speed, angle, turning), 1.0, done)
"""
LAKE_MOVES = """\
def transition(state, action):
    row, column = state
    if action == 'Go Left':
        column = max(column - 1, 0)
    if action == 'Go Right':
        column = min(column + 1, 3)
    if action == 'Go Up':
        row = max(row - 1, 0)
    if action == 'Go Down':
        row = min(row + 1, 3)
    return (row, column)
"""
LAKE_REWARD = """\
def reward(state, action, next_state):
    row, column = next_state
    reward = 0.0
    hole = (row, column) in [(1, 1), (1, 3), (2, 3), (3, 0)]
    done = False
    if hole:
        reward = -1.0
        done = True
    if row == 3 and column == 3:
        reward = 1.0
        done = True
    return (reward, done)
"""
TAXI_MOVES = """\
def transition(state, action):
    stands = [(0, 0), (0, 4), (4, 0), (4, 3)]
    place, goal = divmod(state, 4)
    cell, passenger = divmod(place, 5)
    row, column = divmod(cell, 5)
    if action == 'drive south':
        row = min(row + 1, 4)
    if action == 'drive north':
        row = max(row - 1, 0)
    if action == 'drive east':
        wall = (row, column) in [(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)]
        column = column if wall else min(column + 1, 4)
    if action == 'drive west':
        wall = (row, column) in [(0, 2), (1, 2), (3, 1), (4, 1), (3, 3), (4, 3)]
        column = column if wall else max(column - 1, 0)
    if action == 'pick up the passenger':
        here = passenger < 4 and (row, column) == stands[passenger]
        passenger = 4 if here else passenger
    if action == 'drop off the passenger':
        there = [i for i in range(4) if stands[i] == (row, column)]
        passenger = there[0] if passenger == 4 and there else passenger
    return ((row * 5 + column) * 5 + passenger) * 4 + goal
"""
TAXI_REWARD = """\
def reward(state, action, next_state):
    reward = -1.0
    done = False
    if action == 'pick up the passenger' and state == next_state:
        reward = -10.0
    if action == 'drop off the passenger' and state == next_state:
        reward = -10.0
    if action == 'drop off the passenger' and next_state // 4 % 5 == next_state % 4 and state != next_state:
        reward = 20.0
        done = True
    return (reward, done)
"""
BALANCE = """\
def act(observation, memory):
    x, speed, angle, turning = observation
    lean = angle + 0.5 * turning
    drift = 0.02 * x + 0.06 * speed
    score = lean + drift
    action = 0
    if score > 0.0:
        action = 1
    return (action, memory)
"""

_WALK = "walk to the goal and not onto the cliff"
_LAKE = "reach the goal (G) and avoid the holes (H)"
_DRIVE = "pick up the passenger and drop them off"
_BALANCE = "keep the pole within 12 degrees"

DYNAMICS: dict[tuple[str, str], str] = {
    (_WALK, "step"): CLIFF_WALKING,
    (_DRIVE, "step"): TAXI,
    (_BALANCE, "step"): CART_POLE,
    (_LAKE, "transition"): LAKE_MOVES,
    (_LAKE, "reward"): LAKE_REWARD,
    (_DRIVE, "transition"): TAXI_MOVES,
    (_DRIVE, "reward"): TAXI_REWARD,
    ("in CartPole-v1", "act"): BALANCE,
}
"""Programs by words in the prompt (the first that match) and the requested function. Packages that bring
environments add theirs."""
