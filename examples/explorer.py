# explorer.py
import numpy as np

import hunch


class Explorer(hunch.core.Agent):
    """Takes what was tried least here and now, and what was good before if there is any."""

    def begin(self, world, seed):
        self.rng = np.random.default_rng(seed)
        self.tried, self.good = {}, {}  # by stream; for all streams

    def act(self, states):
        return [self.choose(s) for s in states]

    def choose(self, s):
        if s.observation in self.good and self.good[s.observation] in s.options:
            return self.good[s.observation]
        tried = self.tried.get(s.stream, [])
        counts = [tried.count([s.observation, action]) for action in s.options]
        return s.options[int(self.rng.choice(np.flatnonzero(np.array(counts) == min(counts))))]

    def observe(self, transitions):
        for t in transitions:
            self.tried.setdefault(t.stream, []).append([t.state.observation, t.action])
            if t.success:
                self.good |= dict(self.tried[t.stream])
            if t.done:
                self.tried[t.stream] = []

    def player(self, seed):
        twin = Explorer()
        twin.begin(None, seed)
        twin.good = dict(self.good)
        return twin

    def state_dict(self):
        return {
            "rng": self.rng.bit_generator.state,
            "tried": list(self.tried.items()),
            "good": dict(self.good),
        }

    def load_state_dict(self, state):
        self.rng.bit_generator.state = state["rng"]
        self.tried, self.good = dict(state["tried"]), dict(state["good"])


if __name__ == "__main__":
    lake = hunch.make("hunch/FrozenLake-v0")
    hunch.methods.check(Explorer(), lake)
    print(hunch.train(Explorer(), lake, steps=2_000))
