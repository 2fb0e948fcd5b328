# closer.py
import re

import hunch


class Closer(hunch.roles.RewardSource):
    """Rewards a step towards the goal, in the lower right corner."""

    def rewards(self, transitions):
        return [distance(t.state) - distance(t.next_state) for t in transitions]


def distance(state):
    row, column = map(int, re.findall(r"at position \((\d), (\d)\)", state.observation)[0])
    return float(3 - row + 3 - column)


if __name__ == "__main__":
    options = {"reward": "closer:Closer", "table": {"epsilon": (1.0, 0.05, 2_000)}}
    print(hunch.train("rewarded", "hunch/FrozenLake-v0", steps=4_000, **options))
