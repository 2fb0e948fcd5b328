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

PENDULUM = """\
def step(state, action):
    from math import atan2, cos, sin
    x, y, speed = state
    angle = atan2(y, x)
    torque = float(action.split()[1])
    reward = -(angle ** 2 + 0.1 * speed ** 2 + 0.001 * torque ** 2)
    turning = 15.0 * sin(angle) + 3.0 * torque
    speed = max(min(speed + 0.05 * turning, 8.0), -8.0)
    angle = angle + 0.05 * speed
    return ((cos(angle), sin(angle), speed), reward, False)
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
SOKOBAN_MOVES = """\
def transition(state, action):
    row, column, box_row, box_column, goal_row, goal_column = state
    down = {'up': -1, 'down': 1}.get(action, 0)
    right = {'left': -1, 'right': 1}.get(action, 0)
    pushed = row + down == box_row and column + right == box_column
    inside = 0 <= row + down and row + down <= 4 and 0 <= column + right and column + right <= 4
    far_row = box_row + down if pushed else box_row
    far_column = box_column + right if pushed else box_column
    free = 0 <= far_row and far_row <= 4 and 0 <= far_column and far_column <= 4
    if inside and free:
        row = row + down
        column = column + right
        box_row = far_row
        box_column = far_column
    return (row, column, box_row, box_column, goal_row, goal_column)
"""
SOKOBAN_REWARD = """\
def reward(state, action, next_state):
    row, column, box_row, box_column, goal_row, goal_column = next_state
    reward = 0.0
    done = False
    if box_row == goal_row and box_column == goal_column:
        reward = 1.0
        done = True
    return (reward, done)
"""

GRID_MOVES = """\
def transition(state, action):
    x, y, facing, held, cells = state
    column = x + {0: 1, 2: -1}.get(facing, 0)
    row = y + {1: 1, 3: -1}.get(facing, 0)
    kind, colour, condition = cells[row][column]
    ahead = (kind, colour, condition)
    if action == 'turn left':
        facing = (facing + 3) % 4
    if action == 'turn right':
        facing = (facing + 1) % 4
    if action == 'go forward':
        free = kind == 1 or kind == 8 or (kind == 4 and condition == 0)
        x = column if free else x
        y = row if free else y
    if action == 'pick up':
        takes = held[0] == 1 and kind in (5, 6, 7)
        held = ahead if takes else held
        ahead = (1, 0, 0) if takes else ahead
    if action == 'drop':
        lays = kind == 1
        ahead = held if lays else ahead
        held = (1, 0, 0) if lays else held
    if action == 'toggle':
        fits = held[0] == 5 and held[1] == colour
        turns = kind == 4 and (condition < 2 or fits)
        ahead = (4, colour, 1 if condition == 0 else 0) if turns else ahead
        ahead = (1, 0, 0) if kind == 7 else ahead
    cells = [list(line) for line in cells]
    cells[row][column] = ahead
    return (x, y, facing, held, cells)
"""
GRID_GOAL = """\
def reward(state, action, next_state):
    x, y, facing, held, cells = next_state
    reward = 0.0
    done = False
    if cells[y][x][0] == 8:
        reward = 1.0
        done = True
    return (reward, done)
"""
GRID_OPENED = """\
def reward(state, action, next_state):
    x, y, facing, held, cells = next_state
    reward = 0.0
    done = False
    if any(cell[0] == 4 and cell[2] == 0 for line in cells for cell in line):
        reward = 1.0
        done = True
    return (reward, done)
"""

_WALK = "walk to the goal and not onto the cliff"
_LAKE = "reach the goal (G) and avoid the holes (H)"
_DRIVE = "pick up the passenger and drop them off"
_BALANCE = "keep the pole within 12 degrees"
_SWING = "swing the pendulum up and hold it upright"
_GREEN = "get to the green goal square"
_UNLOCK = "use the key to open the door and then get to the goal"
_OPEN = "open the door"
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

DYNAMICS: dict[tuple[str, str], str] = {
    (_WALK, "step"): CLIFF_WALKING,
    (_DRIVE, "step"): TAXI,
    (_BALANCE, "step"): CART_POLE,
    (_SWING, "step"): PENDULUM,
    (_LAKE, "transition"): LAKE_MOVES,
    (_LAKE, "reward"): LAKE_REWARD,
    ("push the box onto its goal", "transition"): SOKOBAN_MOVES,
    ("push the box onto its goal", "reward"): SOKOBAN_REWARD,
    (_DRIVE, "transition"): TAXI_MOVES,
    (_DRIVE, "reward"): TAXI_REWARD,
    (_GREEN, "transition"): GRID_MOVES,
    (_GREEN, "reward"): GRID_GOAL,
    (_UNLOCK, "transition"): GRID_MOVES,
    (_UNLOCK, "reward"): GRID_GOAL,
    (_OPEN, "transition"): GRID_MOVES,
    (_OPEN, "reward"): GRID_OPENED,
    ("in CartPole-v1", "act"): BALANCE,
}
"""Programs by words in the prompt (the first that match) and the requested function."""
