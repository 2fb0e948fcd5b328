"""The six domains of "Large Language Models can Implement Policy Iteration", and two of our own."""
