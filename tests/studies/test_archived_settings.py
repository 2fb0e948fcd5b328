"""The settings of archived runs are read; what they hold besides today's settings, their method fixed."""

import json
import tarfile
from pathlib import Path

import pytest

from hunch.runs.settings_file import current_settings
from hunch.runs.stored import read_run

FIXED = {"dqn": {"k", "proposals", "prior"}}
"""Settings in folders of before that a method could not change, and which are no settings of it any more."""
ARCHIVES = sorted((Path(__file__).parents[2] / "docs" / "assets" / "studies").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_settings_of_archived_runs_are_read(archive, tmp_path):
    with tarfile.open(archive) as tar:
        configs = [tar.extractfile(entry).read() for entry in tar if entry.name.endswith("config.json")]
    for text in configs:
        (tmp_path / "config.json").write_bytes(text)
        stored = current_settings(json.loads(text)["run"])
        for name in FIXED.get(stored["method"], ()):
            del stored["options"][name]
        assert read_run(tmp_path).settings() == stored
