"""How ``scripted:icpi`` reads the states of the domains of the studies: its module is added to that rule."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hunch.envs.icpi.reading import FORMS, Form, whole_numbers
from hunch_studies.worlds.bulbs import Bulbs
from hunch_studies.worlds.distractor_chain import DistractorChain
from hunch_studies.worlds.mini_catch import MiniCatch
from hunch_studies.worlds.mini_invaders import MiniInvaders
from hunch_studies.worlds.point_mass import PointMass
from hunch_studies.worlds.tug import Tug

GONE = 9.0
"""Number for an alien that has been shot, in addition to -1, 0 and 1 for right, above and left."""


def _catch(match: re.Match[str]) -> dict[str, int]:
    return dict(zip(("paddle_x", "ball_x", "ball_y"), whole_numbers(match), strict=True))


def _gist_of_catch(numbers: dict[str, int]) -> list[float]:
    """Return the paddle's place relative to the ball, and the ball's height."""
    return [numbers["paddle_x"] - numbers["ball_x"], numbers["ball_y"]]


def _invasion(match: re.Match[str]) -> dict[str, Any]:
    aliens = re.findall(r"C\((\d), (-?\d)\)|None", match[2])
    return {"ship": int(match[1]), "aliens": [[int(x), int(y)] if x else None for x, y in aliens]}


def _gist_of_invasion(numbers: dict[str, Any]) -> list[float]:
    """Return the side of each alien."""
    ship = numbers["ship"]
    return [GONE if alien is None else float(np.sign(ship - alien[0])) for alien in numbers["aliens"]]


def _haul(match: re.Match[str]) -> dict[str, int]:
    return dict(zip(("dock", "barge"), whole_numbers(match), strict=True))


def _motion(match: re.Match[str]) -> list[float]:
    return [float(group) for group in match.groups()]


FORMS |= {
    DistractorChain: Form(
        r"assert state == \[(\d), (\d)\]",
        whole_numbers,
        gist=lambda numbers: numbers[:1],  # the second number is the distractor
    ),
    MiniCatch: Form(
        r"assert paddle == C\((\d), 0\) and ball == C\((\d), (\d)\)", _catch, gist=_gist_of_catch
    ),
    MiniInvaders: Form(
        r"assert ship == C\((\d), 0\) and aliens == \[(.*?)\](?= and|\n)",
        _invasion,
        gist=_gist_of_invasion,
        rewards=3,
    ),
    PointMass: Form(r"assert pos == (-?\d+\.\d+) and vel == (-?\d+\.\d+)", _motion),
    Tug: Form(r"assert tug == D\((\d), (\d)\)", _haul, gist=lambda numbers: list(numbers.values())),
    Bulbs: Form(r"assert bulbs == \[(\d), (\d), (\d)\]", whole_numbers),
}
