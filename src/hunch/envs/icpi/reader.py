"""``scripted:icpi``: an ideal reader of ICPI's prompts, with a given error rate. Evidence level L0.

It answers prompts for end, reward and next state by the rules of the domain, regardless of the examples. For
the policy it uses only the prompt: it repeats the action of the last shown step from the same state, and
takes any action if there is none. ``scripted:icpi-nearest`` generalises: it uses the shown state that is
nearest in the relevant numbers (without the distractor, with the ball's column relative to the paddle, and
the side of the aliens). A wrong answer is well formed: the other end, another reward, another action, or the
next state of another action.
"""

from __future__ import annotations

import zlib
from functools import cache, partial
from typing import Any

import numpy as np

from hunch.core import UsageError
from hunch.envs.icpi.base import Domain
from hunch.envs.icpi.reading import FORMS, read
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.rules import rule

_ENVS: dict[tuple[type[Domain[Any]], bool], Domain[Any]] = {}
"""An environment of each domain, with hints and without, by whose rules the reader goes."""


def answers(prompt: str, *, nearest: bool = False) -> tuple[str, ...]:
    """Return what could be written after a prompt of ICPI, the right answer first; nothing after any other.

    Args:
        prompt: The prompt.
        nearest: Whether the policy may go by another state than the same.
    """
    lines = prompt.splitlines(keepends=True)
    last = next((i for i in reversed(range(len(lines))) if read(lines[i])), None)
    if last is None:
        return ()
    state, shown, action = lines[last], "".join(lines[:last]), "".join(lines[last + 1 :])
    texts = _domain(state).wording
    name = next((name for name, text in texts.actions.items() if text == action), None)
    if name is None:
        return _acts(shown, _nearest(shown, state) if nearest else state) if not action else ()
    reward, done, _ = _step(state, name, prompt)
    part = shown.rstrip("\n").rpartition("\n")[2] + "\n"
    if part in (texts.done(True), texts.done(False)):
        return texts.done(done), texts.done(not done)
    if read(part):
        return _states(state, name, prompt)
    possible = range(FORMS[_domain(state)].rewards)
    return tuple(map(texts.reward, [reward, *(r for r in possible if r != reward)]))


@rule("icpi", "c65edd5a00de2a1f1a7190a8cb3f5dc2", options=answers)
def icpi(prompt: str, options: tuple[str, ...]) -> str:
    """The right answer, which comes first, or the first one that is offered."""
    return _offered(answers(prompt), options)


@rule("icpi-nearest", "843a340cacac044eeeac1545808e6a77", options=partial(answers, nearest=True))
def icpi_nearest(prompt: str, options: tuple[str, ...]) -> str:
    """As ``icpi``, with a policy that generalises."""
    return _offered(answers(prompt, nearest=True), options)


def _offered(known: tuple[str, ...], options: tuple[str, ...]) -> str:
    return next((answer for answer in known if answer in options), options[0])


def _acts(shown: str, state: str) -> tuple[str, ...]:
    """Return all actions; first that of the last shown step from the state, or else any."""
    actions = list(_domain(state).wording.actions.values())
    places = [shown.rfind(state + action) for action in actions]
    if max(places) < 0:
        places = list(sample_rng(shown, state).permutation(len(actions)))
    return (actions.pop(int(np.argmax(places))), *actions)


def _nearest(shown: str, state: str) -> str:
    """Return the shown state with the most similar relevant numbers, the latest among equals."""
    lines = shown.splitlines(keepends=True)
    calls = {text.partition("\n")[0] + "\n" for text in _domain(state).wording.actions.values()}
    places = [i for i in reversed(range(len(lines) - 1)) if lines[i + 1] in calls and read(lines[i])]
    return min((lines[i] for i in places), key=lambda line: _apart(line, state), default=state)


def _apart(state: str, other: str) -> float:
    return sum(abs(x - y) for x, y in zip(_gist(state), _gist(other), strict=True))


@cache
def _gist(state: str) -> list[float]:
    """Return the relevant numbers of a state, which the hints also show; they do not say what to do."""
    domain_and_numbers = read(state)
    assert domain_and_numbers is not None
    domain, numbers = domain_and_numbers
    return FORMS[domain].gist(numbers)


def _states(state: str, name: str, prompt: str) -> tuple[str, ...]:
    """Return the next state, then the next states of other actions."""
    others = [other for other in _domain(state).wording.actions if other != name]
    return tuple(dict.fromkeys(_step(state, action, prompt)[2] for action in [name, *others]))


def _step(state: str, action: str, prompt: str) -> tuple[float, bool, str]:
    """Return reward, end and next state by the rules; randomness comes from the prompt.

    A state that the rules do not allow, such as one after the end, has ended.
    """
    domain_and_numbers = read(state)
    assert domain_and_numbers is not None
    domain, numbers = domain_and_numbers
    env = _env(domain, state != domain.wording.without_hint(state))
    try:
        env.reset(seed=zlib.crc32(prompt.encode()), options={"state": numbers})
    except UsageError:
        return 0.0, True, state
    next_state, reward, done, _, _ = env.step(action)
    return reward, done, next_state


def _env(domain: type[Domain[Any]], hints: bool) -> Domain[Any]:
    if (domain, hints) not in _ENVS:
        _ENVS[domain, hints] = domain(hints=hints)
    return _ENVS[domain, hints]


def _domain(state: str) -> type[Domain[Any]]:
    domain_and_numbers = read(state)
    assert domain_and_numbers is not None
    return domain_and_numbers[0]
