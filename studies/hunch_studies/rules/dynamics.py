"""Dynamics of the environments of the studies, which ``scripted:modeller`` then knows as well.

The programs have one statement per line, and are found by words of the task.
"""

from __future__ import annotations

from hunch.envs.design.dynamics import DYNAMICS

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

_SWING = "swing the pendulum up and hold it upright"
_GREEN = "get to the green goal square"
_UNLOCK = "use the key to open the door and then get to the goal"
_OPEN = "open the door"

DYNAMICS |= {
    (_SWING, "step"): PENDULUM,
    ("push the box onto its goal", "transition"): SOKOBAN_MOVES,
    ("push the box onto its goal", "reward"): SOKOBAN_REWARD,
    (_GREEN, "transition"): GRID_MOVES,
    (_GREEN, "reward"): GRID_GOAL,
    (_UNLOCK, "transition"): GRID_MOVES,
    (_UNLOCK, "reward"): GRID_GOAL,
    (_OPEN, "transition"): GRID_MOVES,
    (_OPEN, "reward"): GRID_OPENED,
}
