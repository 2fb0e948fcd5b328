"""A judge that knows words only: the lexical control of a language model that judges episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hunch.core import Transition, World
from hunch.lm.backends.bag_of_words import words
from hunch.roles.reward.judge import Judge
from hunch.roles.reward.rewarded import RewardSource


class Worded(RewardSource):
    """Rewards the end of an episode with the share of the task's words that its last event has.

    It counts as a yes if the share is above the median of the episodes so far.
    """

    saved = ("shares", "right", "judged")

    def begin(self, world: World, seed: int) -> None:
        """Forget all episodes."""
        self.shares: list[float] = []
        self.right = self.judged = 0

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the share of the task's words in what an episode ended with, and 0 for other steps."""
        return [self._share(t) if t.done else 0.0 for t in transitions]

    def _share(self, t: Transition) -> float:
        wanted = set(words(t.state.task))
        share = len(wanted & set(words(Judge.words(t)[-1]))) / max(len(wanted), 1)
        self.shares.append(share)
        self.judged += 1
        self.right += (share > float(np.median(self.shares))) == t.success
        return share

    def learn(self) -> dict[str, float]:
        """Return the share of episodes that were judged rightly since the last call."""
        share, judged = self.right / max(self.judged, 1), self.judged
        self.right = self.judged = 0
        return {"judge_agrees": share} if judged else {}
