"""Systems that search among the texts of a frozen language model."""
