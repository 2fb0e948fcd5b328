"""Cheap checks of what environments and agents return during a run, and messages for what they raise."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite, isnan
from traceback import walk_tb
from typing import Any

import numpy as np

from hunch.core import HunchError, InadmissibleActionError, UsageError
from hunch.rl.action_texts import same_to_a_reader


def finite(reward: Any, action: str, info: dict[str, Any]) -> float:
    """Return a reward after checking it: a finite float, or nan for a program that failed.

    Raises:
        UsageError: if the reward is something else.
    """
    if isinstance(reward, float) and (isfinite(reward) or (isnan(reward) and info.get("free_text") is True)):
        return float(reward)
    raise UsageError(
        f"The environment rewards {action!r} with {reward!r}, a {type(reward).__name__}: a reward has to be "
        "a finite float, or nan for a program that failed."
    )


def seat(info: dict[str, Any], players: int) -> int:
    """Return the number of the player to move, ``info["player"]``.

    Raises:
        UsageError: if it is no number of a player.
    """
    player = info.get("player", 0)
    if isinstance(player, (int, np.integer)) and 0 <= player < players:
        return int(player)
    raise UsageError(
        f"info['player'] has to be the number of the player to move, from 0 to {players - 1}, not "
        f"{player!r}; an environment of more than two players says how many in metadata['players']."
    )


def shares(info: dict[str, Any], reward: Any, players: int) -> list[Any]:
    """Return a reward for each player: ``info["rewards"]``, or the common one.

    Raises:
        UsageError: if there is not one for each player.
    """
    rewards = info.get("rewards") if players > 1 else None  # a single player gets what step returns
    if rewards is None:
        return [reward] * players
    if isinstance(rewards, (list, tuple, np.ndarray)) and len(rewards) == players:
        return list(rewards)
    raise UsageError(
        f"info['rewards'] has to hold a reward for each of the {players} players, not {rewards!r}."
    )


def at_the_end(info: dict[str, Any], actions: Sequence[str] | None) -> dict[str, Any]:
    """Return the info of the end of an episode with ``actions``, which an environment may leave out there.

    Args:
        info: What the last step returned.
        actions: The admissible actions before the last step; None if any text was allowed.
    """
    if actions is None:
        return {**info, "actions": None, "free_text": True}
    listed = info.get("actions")
    if listed is None:
        return {**info, "actions": ()}
    refused = isinstance(listed, str) or not isinstance(listed, Iterable)  # by whoever reads the state
    return {**info, "actions": listed if refused else tuple(listed)}


def require_shape(verb: str, answer: Any) -> None:
    """Raise a UsageError if ``reset`` or ``step`` returned too many or few values, or no dict at the end."""
    n = 2 if verb == "reset" else 5
    if not isinstance(answer, tuple) or len(answer) != n or not isinstance(answer[-1], dict):
        expected = f"The environment's {verb} has to return {n} values, the last a dict"
        raise UsageError(f"{expected}, not {answer!r}.")


def require_texts(observation: Any, info: dict[str, Any], actions: Sequence[Any] | None) -> None:
    """Check that observations are texts, success is a bool, and actions are different texts.

    Raises:
        UsageError: if they are not.
    """
    said = ("observation", observation), ("task", info.get("task", "")), ("event", info.get("event", ""))
    for name, text in said:
        if not isinstance(text, str) or not (text.isascii() or _is_unicode(text)):
            raise UsageError(f"The environment's {name} has to be a text, and is {text!r}.")
    success = info.get("success", False)
    if not isinstance(success, bool | np.bool_):
        raise UsageError(f"The environment's success has to be True or False, and is {success!r}.")
    try:
        texts = not actions or _are_texts(actions)
    except TypeError:  # a list or a dictionary has no hash
        texts = False
    if not texts:
        raise UsageError(f"The environment's actions have to be different, non-empty texts, not {actions!r}.")
    alike = _alike(actions) if actions else None
    if alike:
        raise UsageError(
            f"The environment's actions {alike[0]!a} and {alike[1]!a} cannot be told apart: they look "
            "the same. Give them different names."
        )


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written to a file: half a character cannot."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


@lru_cache(maxsize=4096)  # states come again, and this is asked at every step
def _are_texts(actions: Sequence[Any]) -> bool:
    """Return whether actions are different texts, and none is empty."""
    distinct = set(actions)
    texts = set(map(type, actions)) == {str} or all(isinstance(action, str) for action in actions)
    return texts and len(distinct) == len(actions) and "" not in distinct and all(map(_is_unicode, actions))


_alike = lru_cache(maxsize=4096)(same_to_a_reader)


def blamed(what: str, error: BaseException) -> str:
    """Return what failed, and the class and method that raised the error, if these belong to another part."""
    raiser = _raiser(error)
    if raiser is None or what.startswith(raiser[0]):
        return what
    return f"{what}, in {'.'.join(raiser)}"


def _raiser(error: BaseException) -> tuple[str, str] | None:
    """Return class and method in which an error came up, where they are neither ours nor a library's."""
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        ours = package.startswith("hunch")
        library = package in sys.stdlib_module_names or "site-packages" in frame.f_code.co_filename
        me = frame.f_locals.get("self")
        if me is not None and not ours and not library:
            return type(me).__name__, frame.f_code.co_name
    return None


def raised(error: BaseException, calls: Sequence[tuple[Any, ...]]) -> BaseException:
    """Return the error to raise in place of an environment's exception, with the calls that led to it."""
    if isinstance(error, InadmissibleActionError):  # of an action that the environment listed
        return UsageError(f"The environment refused an action that it lists as admissible: {error}")
    if isinstance(error, HunchError):
        return error
    asked = ", ".join(dict.fromkeys(f"{verb}({', '.join(map(repr, rest))})" for verb, *rest in calls))
    message = f"The environment raised {type(error).__name__} in {asked}"
    reason = " ".join(str(error).split())[:300]
    return HunchError(f"{message}: {reason}" if reason else message)


class Failing:
    """A context that turns an exception of an agent or callback into a HunchError, unless it is one."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, (Exception, SystemExit)) and not isinstance(error, HunchError):
            raise HunchError(f"{blamed(self.what, error)}: {type(error).__name__}: {error}") from error
