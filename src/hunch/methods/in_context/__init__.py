"""Methods whose model learns from examples in its prompt, with their baselines."""
