"""The commands that the studies add to ``hunch``."""

from hunch.cli.commands import Command

STUDY = Command(
    "NAME [--smoke]", "reproduce a published table or figure", "hunch_studies.commands.study:study"
)
PRETRAIN = Command(
    "pocket --out DIR",
    "train the small causal model that comes with hunch",
    "hunch_studies.commands.pretrain:pretrain",
)
