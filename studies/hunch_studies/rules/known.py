"""What ``scripted:modeller`` knows of the studies: the dynamics of their environments, the rules of games."""

from hunch_studies.rules import dynamics, game_code

__all__ = ["dynamics", "game_code"]
