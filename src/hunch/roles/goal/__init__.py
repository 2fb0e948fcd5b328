"""The goal role: a model, a table or a rule suggests goals."""
