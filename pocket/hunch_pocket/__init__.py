"""Weights of pocket models: folders of model files, named by the entry-point group ``hunch.weights``."""

from pathlib import Path

EXAMPLES = Path(__file__).with_name("examples")
WALKS = Path(__file__).with_name("walks")
CLIP = Path(__file__).with_name("clip")
STATEMENTS = Path(__file__).with_name("statements")
