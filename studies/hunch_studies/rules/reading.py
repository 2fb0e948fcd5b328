"""Parses the text of a state: its domain and its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hunch.core import UsageError
from hunch.envs.icpi.base import Domain
from hunch.envs.icpi.chain import Chain
from hunch.envs.icpi.maze import Maze
from hunch.envs.icpi.texts import Texts
from hunch_studies.worlds.bulbs import Bulbs
from hunch_studies.worlds.distractor_chain import DistractorChain
from hunch_studies.worlds.mini_catch import MiniCatch
from hunch_studies.worlds.mini_invaders import MiniInvaders
from hunch_studies.worlds.point_mass import PointMass
from hunch_studies.worlds.tug import Tug


def _whole(match: re.Match[str]) -> list[int]:
    return list(map(int, match.groups()))


def _catch(match: re.Match[str]) -> dict[str, int]:
    return dict(zip(("paddle_x", "ball_x", "ball_y"), _whole(match), strict=True))


def _invasion(match: re.Match[str]) -> dict[str, Any]:
    aliens = re.findall(r"C\((\d), (-?\d)\)|None", match[2])
    return {"ship": int(match[1]), "aliens": [[int(x), int(y)] if x else None for x, y in aliens]}


def _haul(match: re.Match[str]) -> dict[str, int]:
    return dict(zip(("dock", "barge"), _whole(match), strict=True))


def _motion(match: re.Match[str]) -> list[float]:
    return list(map(float, match.groups()))


_FORMS: dict[type[Domain[Any]], tuple[str, Callable[[re.Match[str]], Any]]] = {
    Chain: (r"assert state == \[(\d)\]", _whole),
    DistractorChain: (r"assert state == \[(\d), (\d)\]", _whole),
    Maze: (r"assert state == C\(i=(\d), j=(\d)\)", _whole),
    MiniCatch: (r"assert paddle == C\((\d), 0\) and ball == C\((\d), (\d)\)", _catch),
    MiniInvaders: (r"assert ship == C\((\d), 0\) and aliens == \[(.*?)\](?= and|\n)", _invasion),
    PointMass: (r"assert pos == (-?\d+\.\d+) and vel == (-?\d+\.\d+)", _motion),
    Tug: (r"assert tug == D\((\d), (\d)\)", _haul),
    Bulbs: (r"assert bulbs == \[(\d), (\d), (\d)\]", _whole),
}
DOMAINS = tuple(_FORMS)
"""The six domains of the paper, and our two."""


def read(text: str) -> tuple[type[Domain[Any]], Any] | None:
    """Parse the text of a state.

    Returns:
        The domain and the state in the form of ``info["state"]``, with the text's rounded numbers; ``None``
        if it is not a state of these domains.
    """
    for domain, (form, numbers) in _FORMS.items():
        if match := re.match(form, text):
            return domain, numbers(match)
    return None


def texts_of(observation: str) -> Texts:
    """Return the texts of the domain of an observation.

    Raises:
        UsageError: if it is not a domain of ICPI.
    """
    found = read(observation)
    if found is None:
        names = ", ".join(domain.__name__ for domain in DOMAINS)
        raise UsageError(
            f"These methods have prompts for the domains of ICPI only ({names}), "
            f"and this is not one of their states: {observation[:60]!r}. Pass your own texts to the agent."
        )
    return found[0].wording
