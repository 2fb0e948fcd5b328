# fetch.py
from collections.abc import Mapping
from typing import Any

import gymnasium

import hunch
from hunch.envs.base import Outcome, TextEnv

KEPT_IN = {"hammer": "garage", "spoon": "kitchen", "rake": "garden", "towel": "bathroom"}


class Fetch(TextEnv):
    """Fetch a thing from the place where it is kept.

    Args:
        things: How many of the things there are.
        max_steps: The step limit of an episode.
    """

    def __init__(self, *, things: int = 4, max_steps: int = 8) -> None:
        super().__init__(max_steps)
        self.things = list(KEPT_IN)[:things]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        self.thing = self.things[int(self.task_random.integers(len(self.things)))]
        self.task = f"fetch the {self.thing}"
        self.room = "hall"
        return self._look()

    def _move(self, action: str) -> Outcome:
        if action.startswith("take"):
            text = f"You have the {self.thing}."
            return Outcome(text, (action,), 1.0, terminated=True, success=True, event=text)
        self.room = action.removeprefix("go to ")
        return self._look(event=f"You walk to the {self.room}.")

    def _look(self, event: str = "") -> Outcome:
        text = f"You are in the {self.room}."
        actions = [f"go to {room}" for room in KEPT_IN.values() if room != self.room]
        if KEPT_IN[self.thing] == self.room:
            text += f" There is a {self.thing} here."
            actions.append(f"take {self.thing}")
        return Outcome(text, tuple(actions), event=event)

    def _raw(self) -> Any:
        return [self.thing, self.room]

    def _place(self, raw: Any) -> Outcome:
        self.thing, self.room = raw
        self.task = f"fetch the {self.thing}"
        return self._look()


gymnasium.register("examples/Fetch-v0", entry_point=Fetch)


if __name__ == "__main__":
    env = hunch.make("examples/Fetch-v0", things=3)
    prior = hunch.roles.SimilarityPrior(hunch.lm.load("minilm"))
    print(hunch.train(hunch.methods.DQNPrior(prior=prior, k=3), env, steps=2_000, seed=0))
