"""Writes the next action of an episode, where any text is an action."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hunch.core import State
from hunch.lm.answers.lines import spoken
from hunch.lm.asking import Asking, about, rounds
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Message, Prompt, as_prompt
from hunch.lm.settings import AskConfig, ask_config

Turn: TypeAlias = tuple[str, str]
"""An earlier observation of the episode, and the action that followed."""
INSTRUCTIONS: Final = (
    "You act in an environment that answers in text. Reply with your next action alone, exactly in the form "
    "that the environment asks for, without an explanation."
)
TOKENS: Final = 256
"""Default maximum tokens of an action of a model that does not think (ours)."""
GAP: Final = "[...]"
"""Stands in an earlier observation for what the present one repeats."""
REPEATED: Final = 200
"""Characters from which a common beginning of two observations, such as the rules, is shown once (ours)."""
_SPEAKER: Final = re.compile(r"\[(?:GAME|Player[^\]\n]*)\]")
"""Who speaks, at the beginning of a line of TextArena's games; other words in brackets may be moves."""
_MARK: Final = re.compile(r"\A(?:>|\**action\**\s*:\**)[ \t]*", re.IGNORECASE)


class Speaker:
    """Writes the next action of an episode, where any text is an action.

    A chat model gets the episode as a conversation: observations are the user's turns, actions are its own. A
    model that continues text gets a transcript in which an action follows ``>``, and its line is the action.

    Args:
        lm: The model.
        config: How it is asked.
        role: The role, a key of :data:`hunch.lm.hearing.ANSWERS`.
        tools: Tools whose calls are actions, for a server that takes them; see
            :class:`~hunch.lm.speech.Sampling`.
    """

    def __init__(
        self, lm: LanguageModel, config: AskConfig, role: str = "policy", tools: tuple[str, ...] = ()
    ) -> None:
        self.lm = lm
        self.asking = Asking(lm, ask_config(config), tokens=TOKENS, role=role)
        self.sampling = replace(self.asking.sampling, tools=tools)

    def write(self, states: Sequence[State], turns: Sequence[Sequence[Turn]], first: int) -> list[str]:
        """Write an action for each state, after its earlier turns.

        Args:
            states: The states, in which any text is an action.
            turns: The earlier turns of each episode.
            first: Number of the sample; equal prompts get this number and the following ones.
        """
        prompts = [self.prompt(state, past) for state, past in zip(states, turns, strict=True)]
        answers = [""] * len(prompts)
        for number, places in enumerate(rounds([as_prompt(prompt) for prompt in prompts])):
            asked = [prompts[place] for place in places]
            written = self.asking.generate(asked, 1, first + number, sampling=self.sampling)
            for place, (answer,) in zip(places, written, strict=True):
                answers[place] = answer
        actions = [
            without_reply(action_in(answer), state.observation)
            for answer, state in zip(answers, states, strict=True)
        ]
        self.asking.hear(answers, [action or None for action in actions])
        return actions

    def prompt(self, state: State, turns: Sequence[Turn]) -> Prompt:
        """Return the prompt for an action."""
        past = without_repeats(turns, state.observation)
        if self.asking.chats:
            task = f"\n\nYour task is to: {state.aim}" if state.aim else ""
            messages = [Message("system", INSTRUCTIONS + task)]
            for observation, action in past:
                messages += [Message("user", observation or GAP), Message("assistant", action or GAP)]
            default: Prompt = (*messages, Message("user", state.observation or GAP))
        else:
            task = f"Your task is to: {state.aim}\n" if state.aim else ""
            lines = "".join(f"{observation}\n> {action}\n" for observation, action in past)
            default = f"{task}{lines}{state.observation}\n>"
        history = "\n".join(f"{observation}\n> {action}" for observation, action in past)
        return self.asking.prompt(default, **{**about(state), "history": history})


def action_in(answer: str) -> str:
    """Return the action in an answer: without thoughts, a mark before it, a fence or quotes around it."""
    text = _MARK.sub("", spoken(answer).strip()).strip()
    fenced = re.fullmatch(r"```[\w+-]*\n(.*?)\n?```", text, re.DOTALL)
    if fenced:
        return fenced[1].strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" and text[0] not in text[1:-1]
    return text[1:-1].strip() if quoted else text


def without_reply(action: str, observation: str) -> str:
    """Return an action without the environment's reply, which a small model writes as well.

    TextArena's games mark who speaks, as in ``[GAME] Enter your guess.``. A line of the action, but for the
    first, that begins with such a mark of the observation is no part of it, and neither is what follows.
    """
    marks = {match[0] for match in map(_SPEAKER.match, observation.splitlines()) if match}
    lines = action.splitlines(keepends=True)
    for number, line in enumerate(lines[1:], 1):
        match = _SPEAKER.match(line)
        if match and match[0] in marks:
            return "".join(lines[:number]).rstrip()
    return action


def without_repeats(turns: Sequence[Turn], observation: str) -> list[Turn]:
    """Return earlier turns without what the present observation repeats.

    Some environments show the whole episode in each observation, others the rules before each news.
    """
    kept = []
    for seen, action in turns:
        if observation.startswith(seen) and action.strip() and action.strip() in observation[len(seen) :]:
            continue  # the observation is a transcript that holds this turn
        same = _common(seen, observation)
        kept.append((f"{GAP}\n{seen[same:].lstrip()}".rstrip() if same >= REPEATED else seen, action))
    return kept


def _common(one: str, other: str) -> int:
    """Return the length of the whole lines with which two texts begin alike."""
    length = 0
    for line, twin in zip(one.splitlines(keepends=True), other.splitlines(keepends=True), strict=False):
        if line.rstrip("\n") != twin.rstrip("\n"):
            break
        length += len(line)
    return length
