"""The ``hunch`` command."""
