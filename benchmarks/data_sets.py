"""CPU time of importing, writing and reading data sets, a recorded episode, beside Minari's own writer.

python benchmarks/data_sets.py [episodes]
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from gymnasium.spaces import Text
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from hunch.rl import dataset
from told import told

EPISODES = 2_000
STEPS = 10


def main(episodes: int) -> None:
    """Print milliseconds an episode."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "episodes.jsonl"
        write_lines(file, episodes)
        dataset.save(
            dataset.Dataset("any", {}, dataset.read_json_lines(file, "any", {}).episodes[:1]), f"{folder}/0"
        )
        start = time.process_time()
        recorded = dataset.read_json_lines(file, "any", {})
        read = time.process_time()
        dataset.save(recorded, Path(folder) / "ours")
        written = time.process_time()
        loaded = dataset.load(Path(folder) / "ours")
        done = time.process_time()
        write_with_minari(recorded, Path(folder) / "minari")
        others = time.process_time() - done
        if loaded != recorded:
            raise AssertionError("What was read is not what was written.")
    for what, seconds in {
        "read from JSON lines": read - start,
        "written as a data set": written - read,
        "written by Minari's own writer, without checks and checksum": others,
        "loaded": done - written,
    }.items():
        print(f"{1e3 * seconds / episodes:6.2f} ms an episode of {STEPS} steps: {what}")


def write_lines(file: Path, episodes: int) -> None:
    """Write episodes as others would have recorded them."""
    rng = random.Random(0)
    with file.open("w", encoding="utf-8") as lines:
        for _ in range(episodes):
            rooms = [f"You are in room {rng.random()}. There is a door." for _ in range(STEPS + 1)]
            episode = {
                "observations": rooms,
                "admissible": [["left", "right", "open the door"]] * STEPS,
                "actions": ["left"] * STEPS,
                "rewards": [0.1] * STEPS,
                "terminated": True,
                "truncated": False,
            }
            lines.write(json.dumps(episode) + "\n")


def write_with_minari(recorded: dataset.Dataset, folder: Path) -> None:
    """Write the same columns by Minari's storage."""
    space = Text(max_length=100_000, min_length=0)
    storage = MinariStorage.new(folder, space, space, data_format="hdf5")
    storage.update_episodes(
        EpisodeBuffer(
            observations=list(episode.observations),
            actions=list(episode.actions),
            rewards=list(episode.rewards),
            terminations=[False] * (len(episode) - 1) + [episode.terminated],
            truncations=[False] * (len(episode) - 1) + [episode.truncated],
            infos={"actions": [json.dumps(listed) for listed in episode.admissible], "about": ["{}"]},
        )
        for episode in recorded.episodes
    )


if __name__ == "__main__":
    told(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EPISODES)
