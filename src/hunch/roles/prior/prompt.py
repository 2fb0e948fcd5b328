"""The prompt of action priors and policies."""

from typing import Final

from hunch.core import State

WORDING: Final = "7273793e"
"""Version of the words of :func:`prompt`. Change it with them: runs with different words are different
runs."""


def prompt(state: State, listed: bool = True) -> str:
    """Return the prompt that a language model continues with an action.

    Args:
        state: The state in which an action is to be chosen.
        listed: List the admissible actions, as the paper does; otherwise return only the transcript.
    """
    if not listed:
        past = "".join(f"{seen}\n> {action}\n" for seen, action in state.history)
        return f"Your task is to: {state.aim}\n{past}{state.observation}\n>"
    offered = "\n".join(f"- {action}" for action in state.options)
    return (
        f"Your task is to: {state.aim}\n{state.text()}\n"
        f"You are allowed to take the following actions:\n{offered}\n"
        "The next action is one of them, copied exactly.\n>"
    )
