"""Mini-catch: be under the ball when it comes down."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

from hunch.envs.icpi.base import Domain, Step, compare, whole
from hunch.envs.icpi.texts import Texts

WIDTH, HEIGHT = 4, 5
_MOVES = {"left": -1, "stay": 0, "right": 1}


class Catch(NamedTuple):
    """Where the paddle and the ball are; the paddle's height is 0."""

    paddle_x: int
    ball_x: int
    ball_y: int


class MiniCatchTexts(Texts):
    """The words of mini-catch."""

    actions: ClassVar[Mapping[str, str]] = {
        name: f"reward = paddle.{name}()\nball.descend()\n" for name in _MOVES
    }
    reset = "\npaddle, ball = reset()\n"
    state_start = "assert paddle == C("
    clauses = 2
    policy_reward_form = int
    policy_done = True
    policy_end = ""
    action_stop = "\nball.descend()\n"
    gamma = 1.0
    log_gamma = 1.0
    max_rollout_steps = 5


class MiniCatch(Domain[Catch]):
    """Catch a falling ball with a paddle, 4 columns wide and 5 rows high.

    A step moves the paddle by one column or none, within 0 to 3, and the ball down by one row. With the ball
    on row 0, any action closes the episode and moves nothing: reward 1 if the paddle is in the ball's column.
    Episodes start with the paddle in column 2 and the ball on row 4 of any column, and take 5 steps. A state
    is ``{"paddle_x": ..., "ball_x": ..., "ball_y": ...}``; the optimum is 1 if the paddle can be there in
    time, as it can from every drawn start, and 0 elsewhere.

    Args:
        hints: Add clauses that repeat the columns and the ball's row and compare the columns.
        max_steps: Step limit of an episode; every episode ends after 5 steps anyway.
        render_mode: ``"ansi"`` or ``"rgb_array"``: the paddle is ``@``, the ball ``o``, which a paddle that
            catches it hides.
    """

    wording = MiniCatchTexts()
    task = "catch the ball with the paddle"
    form = "{'paddle_x': 0 to 3, 'ball_x': 0 to 3, 'ball_y': 0 to 4}"

    def __init__(
        self, *, hints: bool = True, max_steps: int = HEIGHT, render_mode: str | None = None
    ) -> None:
        super().__init__(hints=hints, max_steps=max_steps, render_mode=render_mode)

    def _draw(self) -> Catch:
        return Catch(WIDTH // 2, self._any(WIDTH), HEIGHT - 1)

    def _read(self, given: Any) -> Catch | None:
        match given:
            case {"paddle_x": paddle_x, "ball_x": ball_x, "ball_y": ball_y, **others} if not others:
                inside = whole(0, WIDTH - 1, paddle_x, ball_x) and whole(0, HEIGHT - 1, ball_y)
                return Catch(paddle_x, ball_x, ball_y) if inside else None
        return None

    def _advance(self, action: str) -> Step[Catch]:
        return _advance(self._state, action)

    def _text(self) -> str:
        return _text(self._state, self.hints)

    def _plain(self) -> dict[str, int]:
        paddle_x, ball_x, ball_y = self._state
        return {"paddle_x": paddle_x, "ball_x": ball_x, "ball_y": ball_y}

    def _optimum(self) -> float:
        paddle_x, ball_x, ball_y = self._state
        return float(abs(paddle_x - ball_x) <= ball_y)

    def _grid(self) -> list[str]:
        paddle_x, ball_x, ball_y = self._state
        marks = {(ball_x, ball_y): "o"} | {(paddle_x, 0): "@"}
        return ["".join(marks.get((x, y), ".") for x in range(WIDTH)) for y in reversed(range(HEIGHT))]


@cache
def _advance(state: Catch, action: str) -> Step[Catch]:
    paddle_x, ball_x, ball_y = state
    if ball_y == 0:
        return state, float(paddle_x == ball_x), True, paddle_x == ball_x
    moved = min(max(paddle_x + _MOVES[action], 0), WIDTH - 1)
    return Catch(moved, ball_x, ball_y - 1), 0.0, False, False


@cache
def _text(state: Catch, hints: bool) -> str:
    paddle_x, ball_x, ball_y = state
    clauses = [f"assert paddle == C({paddle_x}, 0)", f"ball == C({ball_x}, {ball_y})"]
    if hints:
        order = f"paddle.x {compare(paddle_x, ball_x)} ball.x"
        clauses += [f"paddle.x == {paddle_x}", f"ball.x == {ball_x}", order, f"ball.y == {ball_y}"]
    return " and ".join(clauses) + "\n"
