"""Systems in which reinforcement learning changes the weights of a language model that writes."""
