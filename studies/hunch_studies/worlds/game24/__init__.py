"""The Game of 24 as a text environment, and recorded proposals of GPT-4."""
