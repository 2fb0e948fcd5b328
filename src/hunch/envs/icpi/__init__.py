"""The six domains of "Large Language Models can Implement Policy Iteration", and two additional ones."""
