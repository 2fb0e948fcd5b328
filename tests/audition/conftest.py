"""The command, as a test runs it."""

import pytest

from hunch.cli.main import main


@pytest.fixture
def hunch_command(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder; return exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = 0
        try:
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code
        output = capsys.readouterr()
        return code, output.out, output.err

    return run
