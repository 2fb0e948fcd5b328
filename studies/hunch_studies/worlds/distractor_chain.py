"""The chain of ICPI with a number in its state that means nothing."""

from __future__ import annotations

from hunch.envs.icpi.base import Step
from hunch.envs.icpi.chain import LENGTH, Chain


class DistractorChain(Chain):
    """Walk on a chain of 8 places to place 4, with a meaningless number in the state.

    Like :class:`Chain`, but with a second number, which each step draws from 0 to 7 and which has no effect.
    A state is ``[place, distractor]``.
    """

    form = "[place, distractor], both from 0 to 7"
    _numbers = 2

    def _draw(self) -> tuple[int, ...]:
        return divmod(self._any(LENGTH * LENGTH), LENGTH)

    def _advance(self, action: str) -> Step[tuple[int, ...]]:
        place, reward, done, success = super()._advance(action)
        return (*place, self._any(LENGTH)), reward, done, success
