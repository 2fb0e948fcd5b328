"""The command, as a test runs it."""

import pytest


@pytest.fixture
def hunch(hunch_command):
    """Run the command in an empty folder; return exit code, output, errors."""
    return hunch_command
