"""The reward role: a model, a rule or a program provides the reward of a step."""
