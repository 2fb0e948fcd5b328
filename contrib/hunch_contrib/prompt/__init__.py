"""Systems that change the prompt of a frozen language model."""
