"""A problem in the fewest words: what a small model needs in order to write a program, and nothing else.

Small models copy what a request shows them, and lose the thread in long texts. So the plain statement has
the task in a few sentences, the meaning of each number, and the smallest interface: no starting program, no
arguments that the problem can do without, no word on strategy.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import gymnasium as gym
import numpy as np

SENTENCES: Final = 3
"""Sentences of the environment's description that say what the task is (ours)."""
SENTENCES_OF_RULES: Final = 3
"""Sentences on rewards, and on the end of an episode (ours)."""
SENTENCES_OF_ENDS: Final = 6
"""Sentences on the end of an episode in the request for a reward, which has none on rewards (ours)."""
ON_TEXTS: Final = ("task", "observation", "commands", "history")
"""Parameters of a policy in a text environment."""
_SECTION: Final = re.compile(r"^ *## (.+)$", re.MULTILINE)
_ARGUMENTS: Final = re.compile(
    r"^(?:Args|Arguments|Attributes|Parameters|Example|Examples) *:? *$", re.MULTILINE
)
"""The heading of what a docstring without Gymnasium's headings says for programmers."""
_ROW: Final = re.compile(r"^ *\| *(\d+) *\|([^|\n]+)\|(.*)\|? *$", re.MULTILINE)
_ITEM: Final = re.compile(r"^ *[-*] *(\d+): *(.+)$", re.MULTILINE)
_POWER: Final = re.compile(r"<sup>(.*?)</sup>")
_LAST: Final = re.compile(r"\s+(?:(\d+)\.|-)\s*$")
"""What may be the beginning of an item that did not fit."""
_RULES: Final = ("Rewards", "Reward", "Episode End")
"""Headings of what is rewarded and when an episode ends.

MountainCar-v0's "Reward:" is not among them, because its recorded answers are found by a request without it.
"""
_RECORDED_WITHOUT: Final = re.compile(r"(?<=The length of the episode is) 200\.$")
"""What was missing when answers on MountainCar-v0 were recorded, which are found by their request."""
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]+>")
_BLOCK: Final = re.compile(r"```.*?```|^ {4,}\S.*$", re.DOTALL | re.MULTILINE)
_HISTORY: Final = re.compile(
    r"\b(?:described by|based on|first appeared|adapted from|from \"|see )", re.IGNORECASE
)


@dataclass(frozen=True)
class Plain:
    """The plain statement of a problem.

    Attributes:
        text: The task, and what each number means.
        parameters: Parameters of the function in its smallest form, in order.
        returns: What the function returns, in a sentence.
    """

    text: str
    parameters: tuple[str, ...]
    returns: str


def plain_policy(name: str, doc: str, env: gym.Env[Any, Any], about: str = "") -> Plain:
    """Return the plain statement of writing a policy.

    Args:
        name: Id of the environment; empty for a statement of the form of observations and actions alone.
        doc: The environment's own text, in which Gymnasium's headings are found.
        env: The environment.
        about: Text in place of what is taken from ``doc``.
    """
    sections = sections_of(doc)
    parts = [about.strip() or (_about(name, sections) if name else "")]
    if not about:
        parts.append(_observation(env.observation_space, sections.get("Observation Space", "")))
        parts.append(_ending(sections))
    parts = [part for part in parts if part]
    return Plain("\n\n".join(parts), ("observation",), _action(env.action_space, sections, bool(about)))


def plain_text_policy(name: str, doc: str, example: str, about: str = "") -> Plain:
    """Return the plain statement of writing a policy for a text environment.

    Args:
        name: Id of the environment; empty for a statement of the form of observations and actions alone.
        doc: The environment's own text, in which Gymnasium's headings are found.
        example: The beginning of an episode, as a program sees it; may be empty.
        about: Text in place of what is taken from ``doc``.
    """
    sections = sections_of(doc)
    seen = (
        "task and observation are texts. commands is the list of the commands that are possible now, which "
        "changes. history is the list of the commands taken so far, as pairs (command, the observation "
        "after it)."
    )
    parts = [about.strip() or (_about(name, sections) if name else ""), _ending(sections), seen, example]
    returns = "It returns one of the texts in commands."
    return Plain("\n\n".join(part for part in parts if part), ON_TEXTS, returns)


def plain_dynamics(name: str, doc: str, env: gym.Env[Any, Any] | None, about: str, action: str) -> Plain:
    """Return the plain statement of writing an environment's dynamics.

    Args:
        name: What the environment is called.
        doc: The environment's own text, in which Gymnasium's headings are found; may be empty.
        env: The environment; None if there is only a record of it.
        about: Text in place of what is taken from ``doc``.
        action: What an action is, in words.
    """
    sections = sections_of(doc)
    parts = [about.strip() or (_about(name, sections) if doc else f"This is the environment {name}.")]
    if env is not None and not about:
        parts.append(_observation(env.observation_space, sections.get("Observation Space", ""), "state"))
        if isinstance(env.action_space, gym.spaces.Discrete):
            parts.append(f"action is one whole number ({_meanings(env.action_space, sections)}).")
        else:
            parts.append(f"action is a {action}.")
        parts.append(_ending(sections))
    returns = (
        "It returns three values: the next state in the same form as state, the reward (a float), and "
        "whether the episode ends (True or False). It keeps nothing between calls."
    )
    return Plain("\n\n".join(part for part in parts if part), ("state", "action"), returns)


def plain_reward(task: str, seen: str, parameters: tuple[str, ...]) -> Plain:
    """Return the plain statement of writing a reward, which is that of one step, without components.

    Args:
        task: The task, and by what a policy is judged.
        seen: What the reward sees after a step, in words.
        parameters: The same by name.
    """
    text = f"{task}\n\nA reward is computed after every step, from where the step has led:\n{seen}"
    returns = "It returns one number, the reward of this step, which a policy learns to collect."
    return Plain(text, parameters, returns)


def plain_gym_reward(name: str, doc: str, env: gym.Env[Any, Any], judged: str, about: str = "") -> Plain:
    """Return the plain statement of writing a reward for an environment.

    Args:
        name: Id of the environment.
        doc: The environment's own text, in which Gymnasium's headings are found.
        env: The environment.
        judged: By what a policy is judged, in words; empty if that is how well it does the task.
        about: Text in place of the task that is taken from ``doc``.
    """
    sections = sections_of(doc)
    description = about.strip()
    if not description:
        # Without its text on rewards, which is the solution.
        ends = _brief(sections.get("Episode End", ""), SENTENCES_OF_ENDS)
        description = "\n\n".join(filter(None, [_about(name, sections), ends and f"Episode End: {ends}"]))
    by_what = f", and is judged by {judged}" if judged else ""
    task = f"A policy is to learn this by a reward{by_what}."
    seen = [_observation(env.observation_space, sections.get("Observation Space", ""))]
    seen.append(f"action is what the policy did in the step: {_done(env.action_space, sections)}.")
    parameters = ("observation", "action")
    return plain_reward("\n\n".join([description, task]), "\n".join(seen), parameters)


def _done(space: gym.Space[Any], sections: Mapping[str, str]) -> str:
    """Return in words what a reward gets as the action."""
    if isinstance(space, gym.spaces.Discrete):
        return f"one whole number ({_meanings(space, sections)})"
    shape = space.shape or ()
    if not shape:
        what = "a number"
    elif shape == (1,):
        what = "an array of one number"
    elif len(shape) == 1:
        what = f"an array of {shape[0]} numbers"
    else:
        what = f"an array of shape {shape}"
    if not isinstance(space, gym.spaces.Box) or not space.is_bounded():
        return what
    low, high = float(np.min(space.low)), float(np.max(space.high))
    is_one_range = bool(np.all(space.low == low) and np.all(space.high == high))
    return f"{what}, from {low:.3g} to {high:.3g}" if is_one_range else what


def text_of(env: gym.Env[Any, Any]) -> str:
    """Return an environment's own text, with Gymnasium's headings.

    Of a docstring without headings, what stands before its arguments is the description.
    """
    kind = type(env.unwrapped)
    text = inspect.getdoc(kind) or ""
    if sections_of(text):
        return text
    # A class without a docstring inherits one about environments in general, which says nothing here.
    docstring = inspect.cleandoc(kind.__doc__ or "")
    description = _ARGUMENTS.split(docstring)[0].strip()
    return f"## Description\n{description}" if description else ""


def sections_of(doc: str) -> Mapping[str, str]:
    """Return the text below each heading."""
    parts = _SECTION.split(doc)
    return {name.strip(): text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=False)}


def _about(name: str, sections: Mapping[str, str]) -> str:
    """Return the first sentences that say what the task is, without where it comes from."""
    text = _BLOCK.sub(" ", sections.get("Description", ""))
    sentences = [
        sentence
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(text.split()))
        if sentence and not _HISTORY.search(sentence)
    ]
    description = _LINK.sub(r"\1", " ".join(sentences[:SENTENCES]))
    return f"This is the environment {name} of Gymnasium. {description}".strip()


def _observation(space: gym.Space[Any], section: str, called: str = "observation") -> str:
    rows = {int(number): (what.strip(), rest) for number, what, rest in _ROW.findall(section)}
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        size = space.shape[0]
        lines = [f"{called} is an array of {size} numbers:"]
        for i in range(size):
            what = rows[i][0].replace("`", "") if i in rows else "a number"
            low, high = float(space.low[i]), float(space.high[i])
            limits = f", from {low:.3g} to {high:.3g}" if max(abs(low), abs(high)) < 1e6 else ""
            lines.append(f"- {called}[{i}]: {what}{limits}")
        return "\n".join(lines)
    text = _LINK.sub(r"\1", " ".join(_BLOCK.sub(" ", section).split()))
    if isinstance(space, gym.spaces.Discrete):
        return f"{called} is a whole number from {space.start} to {space.start + space.n - 1}. {text}"
    return f"{called} is of {space}. {text}"


def _ending(sections: Mapping[str, str]) -> str:
    """Return when an episode ends and what is rewarded, where the text says so briefly."""
    parts = []
    for name in _RULES:
        brief = _brief(sections.get(name, ""), SENTENCES_OF_RULES)
        brief = _RECORDED_WITHOUT.sub("", _without_begun_items(brief))
        if brief:
            parts.append(f"{name}: {brief}")
    return "\n".join(parts)


def _without_begun_items(brief: str) -> str:
    """Return a text without the number or dash of an item at its end, whose words did not fit.

    A number is that of an item if the one before it has an item, too, or if it is 1 and a list begins. Others
    belong to what they end, such as "The length of the episode is 999."
    """
    while last := _LAST.search(brief):
        before = brief[: last.start()]
        if last[1]:
            number = int(last[1])
            follows = re.search(rf"(?:^|\s){number - 1}\.\s", before) if number > 1 else None
            begins = number == 1 and before.endswith((":", "-"))
            if not follows and not begins:
                return brief
        brief = before
    return brief


def _brief(text: str, most: int) -> str:
    """Return the first sentences of a text, without links and powers in HTML."""
    plain = " ".join(_LINK.sub(r"\1", _POWER.sub(r"^\1", text)).split())
    return " ".join(re.split(r"(?<=[.!?])\s+", plain)[:most])


def _meanings(space: gym.spaces.Discrete, sections: Mapping[str, str]) -> str:
    """Return what each number of an action means, or where the numbers begin and end if that is not said."""
    section = sections.get("Action Space", "")
    items = {int(n): what for n, what in _ITEM.findall(section)}
    items |= {int(n): what.strip() for n, what, _ in _ROW.findall(section)}
    numbers = range(int(space.start), int(space.start + space.n))
    if not items:
        return f"{numbers[0]} to {numbers[-1]}"
    return "; ".join(f"{n}: {items.get(n, 'an action').strip()}" for n in numbers)


def _action(space: gym.Space[Any], sections: Mapping[str, str], brief: bool) -> str:
    if isinstance(space, gym.spaces.Discrete):
        meanings = "" if brief else _meanings(space, sections)
        if ":" in meanings:
            return f"It returns one whole number, the action ({meanings})."
        return f"It returns one whole number from {space.start} to {space.start + space.n - 1}, the action."
    assert isinstance(space, gym.spaces.Box)
    low, high = float(np.min(space.low)), float(np.max(space.high))
    size = int(np.prod(space.shape))
    what = "a list of one number" if size == 1 else f"a list of {size} numbers"
    if np.any(space.low != low) or np.any(space.high != high):
        limits = zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True)
        each = ", ".join(f"[{i}] from {least:.3g} to {most:.3g}" for i, (least, most) in enumerate(limits))
        return f"It returns {what}, the action: {each}."
    return f"It returns {what}, each from {low:.3g} to {high:.3g}: the action."
