"""The world model role: predicts the result of an action."""
