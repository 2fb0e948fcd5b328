"""Methods that learn from examples in the model's prompt, and their baselines."""
