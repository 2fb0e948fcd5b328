"""Four Gymnasium environments in words: CartPole, Taxi, CliffWalking and Blackjack.

A description contains exactly the information of the observation.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome
from hunch.envs.text_wrapper import TextWrapper, drawn_with, reported_success

CART_POLE_ACTIONS = ("push left", "push right")
TAXI_ACTIONS = (
    "drive south",
    "drive north",
    "drive east",
    "drive west",
    "pick up the passenger",
    "drop off the passenger",
)
CLIFF_WALKING_ACTIONS = ("go up", "go right", "go down", "go left")
BLACKJACK_ACTIONS = ("stick", "hit")

_STANDS = (
    "Red (row 0, column 0)",
    "Green (row 0, column 4)",
    "Yellow (row 4, column 0)",
    "Blue (row 4, column 3)",
)


def describe_cart_pole(observation: Sequence[float]) -> str:
    """Describe position, velocity, angle and angular velocity in cm, cm/s, 0.1 degrees and degrees/s."""
    x, speed, angle, turning = (float(value) for value in observation)
    place = _sided(x, "{:.2f} m {} of the centre") or "at the centre"
    rolls = _sided(speed, "rolls {1} at {0:.2f} m/s") or "stands still"
    leans = _sided(math.degrees(angle), "leans {:.1f} degrees to the {}") or "is upright"
    swings = _sided(math.degrees(turning), "swings {1} at {0:.0f} degrees/s") or "does not swing"
    return f"The cart is {place} and {rolls}. The pole {leans} and {swings}."


def describe_places(observation: Sequence[float]) -> str:
    """Describe position and angle of CartPole, negative to the left, without velocities."""
    return f"Cart position {observation[0]:.2f} m. Pole angle {math.degrees(observation[2]):.1f} degrees."


def _sided(value: float, form: str) -> str:
    """Size and side in words; empty if the size rounds to nothing."""
    text = form.format(abs(value), "left" if value < 0 else "right")
    return "" if text == form.format(0.0, "left" if value < 0 else "right") else text


def describe_taxi(observation: int) -> str:
    """Describe the places of taxi, passenger and destination, without walls, as in the observation."""
    rest, destination = divmod(int(observation), 4)
    rest, passenger = divmod(rest, 5)
    row, column = divmod(rest, 5)
    taxi = f"The taxi is at row {row}, column {column}."
    if passenger == destination:
        return f"{taxi} The passenger has arrived at {_STANDS[destination]}."
    place = "is in the taxi" if passenger == 4 else f"waits at {_STANDS[passenger]}"
    return f"{taxi} The passenger {place} and wants to go to {_STANDS[destination]}."


def describe_cliff_walking(observation: int) -> str:
    """Describe the places of walker, goal and cliff."""
    row, column = divmod(int(observation), 12)
    return (
        f"You are at row {row}, column {column}. The goal is at row 3, column 11. "
        "The cliff is row 3, columns 1 to 10."
    )


def describe_blackjack(observation: tuple[int, int, int]) -> str:
    """Describe the sum of the hand, whether an ace counts as 11, and the dealer's open card."""
    total, dealer, ace = (int(value) for value in observation)
    counted = ", with an ace counted as 11" if ace else ""
    card = {1: "an ace", 8: "an 8"}.get(dealer, f"a {dealer}")
    return f"Your cards sum to {total}{counted}. The dealer shows {card}."


class Classic(TextWrapper):
    """A Gymnasium environment in words; ``info`` contains only what the contract requires.

    Args:
        env: The environment, without wrappers.
        describe: Turns an observation into text, as in :class:`~hunch.envs.text_wrapper.TextWrapper`.
        render_mode: ``"ansi"`` shows the text; the others are Gymnasium's and need pygame.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human", "rgb_array"]}  # type: ignore[misc]

    def __init__(
        self,
        env: Callable[..., gymnasium.Env[Any, Any]],
        describe: Callable[[Any], str],
        actions: Sequence[str] | Callable[[Any, Mapping[str, Any]], Mapping[str, int]],
        success: Callable[..., bool] = reported_success,
        *,
        max_steps: int,
        render_mode: str | None,
    ) -> None:
        made = env(render_mode=None if render_mode == "ansi" else render_mode)
        super().__init__(made, describe, actions, task=self.task, success=success, max_steps=max_steps)
        self.render_mode = render_mode

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"{type(self).__name__} has no reset option {next(iter(options))!r}.")
        return super()._begin(options)

    def _place(self, raw: Any) -> Outcome:
        inner = self.env.unwrapped
        observation, info = self._put(inner, raw)
        inner.np_random = self.np_random
        self.env._elapsed_steps = 0  # type: ignore[attr-defined]  # of TimeLimit, which has no other door
        return self._arrive(observation, info)

    def _number(self, raw: Any) -> int:
        """Read a state that is a number, one of those that Gymnasium observes."""
        space: Any = self.env.observation_space
        try:
            number = operator.index(raw)
        except TypeError:
            number = -1
        if not 0 <= number < space.n:
            raise self._no_state(f"a whole number from 0 to {space.n - 1}", raw)
        return number

    def _put(self, env: Any, raw: Any) -> tuple[Any, Mapping[str, Any]]:
        """Put Gymnasium's environment into a state; returns what its ``reset`` would."""
        raise UsageError(f"{type(self).__name__} cannot be set to a given state.")

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        # What never changes is shared; copying Taxi's table of transitions would take 30 ms.
        base = self.env.unwrapped
        shared = (base.observation_space, base.action_space, getattr(base, "P", None))
        self.env = copy.deepcopy(self.env, {id(thing): thing for thing in shared} | drawn_with(self.env))


class CartPole(Classic):
    """Balance a pole on a cart by pushing the cart.

    Gymnasium's ``CartPole-v1``: reward 1 per step, ``terminated`` when the pole falls or the cart leaves the
    track. Success is to be still balancing when the ``max_steps`` are used up.

    Args:
        max_steps: Step limit of an episode.
        velocities: Tell the velocities. Without them a method needs to remember earlier steps.
        render_mode: ``"ansi"``, ``"human"`` or ``"rgb_array"``.
    """

    task = "keep the pole within 12 degrees of upright and the cart within 2.4 m of the centre"

    def __init__(
        self, *, max_steps: int = 500, velocities: bool = True, render_mode: str | None = None
    ) -> None:
        from gymnasium.envs.classic_control.cartpole import CartPoleEnv

        super().__init__(
            CartPoleEnv,
            describe_cart_pole if velocities else describe_places,
            CART_POLE_ACTIONS,
            _lasted,
            max_steps=max_steps,
            render_mode=render_mode,
        )

    def _put(self, env: Any, raw: Any) -> tuple[Any, Mapping[str, Any]]:
        try:
            state = np.array(raw, dtype=np.float64)
        except (TypeError, ValueError):
            state = np.zeros(0)
        if state.shape != (4,) or not np.isfinite(state).all():
            raise self._no_state("four finite numbers", raw)
        env.state, env.steps_beyond_terminated = state, None
        return state.astype(np.float32), {}


class Taxi(Classic):
    """Take a passenger from one stand to another by taxi.

    Gymnasium's ``Taxi``: reward -1 per step, 20 for the passenger delivered, which ends the episode and is
    the success, -10 for picking up or dropping off where it cannot be done.

    Args:
        masked: List only the actions that change something. By default all six are admissible always, as
            in Gymnasium, and the agent has to learn where the walls are.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"``, ``"human"`` or ``"rgb_array"``.
    """

    task = (
        "pick up the passenger and drop them off where they want to go; "
        "rows count from the north, columns from the west"
    )

    def __init__(self, *, masked: bool = False, max_steps: int = 200, render_mode: str | None = None) -> None:
        from gymnasium.envs.toy_text.taxi import TaxiEnv

        super().__init__(
            TaxiEnv,
            describe_taxi,
            _unmasked if masked else TAXI_ACTIONS,
            max_steps=max_steps,
            render_mode=render_mode,
        )

    def _put(self, env: Any, raw: Any) -> tuple[Any, Mapping[str, Any]]:
        env.s = self._number(raw)
        return env.s, {"action_mask": env.action_mask(env.s)}


class CliffWalking(Classic):
    """Walk along a cliff to the goal without falling off.

    Gymnasium's ``CliffWalking-v1``: reward -1 per step, -100 for falling, which leads back to the start. The
    goal ends the episode and is the success. Gymnasium has no step limit here; ``max_steps`` is ours.

    Args:
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"``, ``"human"`` or ``"rgb_array"``.
    """

    task = "walk to the goal and not onto the cliff; rows count from the top, columns from the left"

    def __init__(self, *, max_steps: int = 200, render_mode: str | None = None) -> None:
        from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv

        super().__init__(
            CliffWalkingEnv,
            describe_cliff_walking,
            CLIFF_WALKING_ACTIONS,
            _terminated,
            max_steps=max_steps,
            render_mode=render_mode,
        )

    def _put(self, env: Any, raw: Any) -> tuple[Any, Mapping[str, Any]]:
        env.s = self._number(raw)
        return env.s, {}


class Blackjack(Classic):
    """Get closer to 21 than the dealer without going over.

    Gymnasium's ``Blackjack-v1``, with the rules of Sutton and Barto (``sab=True``): reward 1 for a game won,
    which is the success, 0 for a draw, -1 for a game lost.

    Args:
        max_steps: Step limit of an episode; no game takes more than 20.
        render_mode: ``"ansi"``, ``"human"`` or ``"rgb_array"``.
    """

    task = "get closer to 21 than the dealer without going over"

    def __init__(self, *, max_steps: int = 20, render_mode: str | None = None) -> None:
        from gymnasium.envs.toy_text.blackjack import BlackjackEnv

        super().__init__(
            lambda render_mode: BlackjackEnv(render_mode, sab=True),
            describe_blackjack,
            BLACKJACK_ACTIONS,
            max_steps=max_steps,
            render_mode=render_mode,
        )


def _lasted(observation: Any, reward: float, terminated: bool, truncated: bool, info: Any) -> bool:
    return truncated and not terminated


def _terminated(observation: Any, reward: float, terminated: bool, truncated: bool, info: Any) -> bool:
    return terminated


def _unmasked(observation: int, info: Mapping[str, Any]) -> dict[str, int]:
    return {name: i for i, name in enumerate(TAXI_ACTIONS) if info["action_mask"][i]}
