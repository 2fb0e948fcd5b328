"""What a declared setting takes."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from annotated_types import Gt, Interval, Le

import hunch
from hunch.core import UsageError
from hunch.ranges import Decay, PositiveInt, Share, check_settings


@dataclass(frozen=True, kw_only=True)
class Mine:
    width: PositiveInt | None = None
    heat: Annotated[float, Gt(0), Le(2)] = 1.0
    angle: Annotated[float, Interval(ge=-90, le=90)] = 0.0
    decay: Decay = (1.0, 0.0, 10)
    shares: tuple[Share, ...] = ()
    mode: Literal["a", "b"] = "a"
    free: float = -3.0
    flag: bool = False


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"width": 1},
        {"heat": 2},
        {"decay": [0.5, 1, 0]},
        {"shares": (0, 1.0)},
        {"angle": -90.0},
        {"flag": True},
    ],
)
def test_what_a_setting_takes(right):
    check_settings(Mine(**right))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"width": 0}, "width must be at least 1, not 0."),
        ({"width": True}, "width must be a whole number or none, not True."),
        ({"heat": 0.0}, "heat must be above 0, not 0.0."),
        ({"heat": 2.5}, "heat must be at most 2, not 2.5."),
        ({"angle": 91}, "angle must be from -90 to 90, not 91."),
        ({"free": float("inf")}, "free must be a finite number, not inf."),
        ({"decay": (0.5, 2.0, 1)}, "decay[1] must be from 0 to 1, not 2.0."),
        (
            {"decay": (0.5, 1.0)},
            "decay must be 3 values (a number, a number, a whole number), not (0.5, 1.0).",
        ),
        ({"decay": 0.5}, "decay must be 3 values (a number, a number, a whole number), not 0.5."),
        ({"shares": (0.5, 2.0)}, "shares[1] must be from 0 to 1, not 2.0."),
        ({"mode": "c"}, "mode must be one of a, b, not 'c'."),
        ({"flag": 1}, "flag must be true or false, not 1."),
    ],
)
def test_what_a_setting_refuses(wrong, sentence):
    with pytest.raises(UsageError) as error:
        check_settings(Mine(**wrong), "mine.")
    assert str(error.value) == f"mine.{sentence}"


@pytest.mark.parametrize("name", sorted(hunch.methods.METHODS))
def test_the_defaults_of_every_method_are_within_their_ranges(name):
    check_settings(hunch.methods.find(name).config_class())
