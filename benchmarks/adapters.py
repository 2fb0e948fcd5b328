"""How far one update of GRPO moves a pretrained model, by its adapters and by all of its weights.

    python benchmarks/adapters.py hf:<name, folder or GGUF file>  [updates]

The reward is the share of the letter e in an answer, which any model can raise. The table has the KL
divergence of each update at the method's default learning rate, in nats per token, and the divergence of a
whole text from the model before training. Rank, scale and rate are the defaults.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import hunch
from hunch import methods
from hunch.core import HunchWarning, Transition
from told import told

QUESTIONS = (
    "Name a fruit.",
    "What do you see in a kitchen?",
    "Describe the sea in one sentence.",
    "What is a good name for a dog?",
)
GROUP = 4


class Letters:
    """A reward source: the share of the letter e."""

    evidence = None

    def rewards(self, transitions: list[Transition]) -> list[float]:
        """Return the share of each text."""
        return [t.action.count("e") / (1 + len(t.action)) for t in transitions]


def main(spec: str, updates: int) -> None:
    """Print a line per update and kind of training."""
    warnings.simplefilter("ignore", HunchWarning)  # the table has the numbers
    print("| trained | update | KL of the update, per token | KL from the start, per text | reward |")
    print("|---|---|---|---|---|")
    with TemporaryDirectory() as place:
        file = Path(place) / "prompts.jsonl"
        rows = [{"prompt": f"Question: {question}\nAnswer:"} for question in QUESTIONS]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        for train in ("lora", "all"):
            run = Path(place) / train
            grpo = methods.find("grpo")
            lm = f"{spec}?train={train}"
            reward = f"{Path(__file__).stem}:Letters"
            config = grpo.config_class(lm=lm, reward=reward, group=GROUP, episodes=16, max_tokens=24)
            envs = [hunch.make("hunch/Prompts-v0", file=str(file)) for _ in range(16)]
            hunch.train(grpo.build(config, {}), envs, steps=16 * updates, out=run)
            lines = [
                json.loads(line)
                for line in (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
                if line
            ]
            for number, line in enumerate(lines, 1):
                figures = f"{line['update_kl']:.4f} | {line['kl']:.2f} | {line['intrinsic']:.3f}"
                print(f"| {train} | {number} | {figures} |", flush=True)


if __name__ == "__main__":
    told(__doc__)
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
