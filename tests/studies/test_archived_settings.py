"""The settings of archived runs are today's, so that their studies go on where they ended."""

import json
import tarfile
from pathlib import Path

import pytest

from hunch.runs.stored import read_run

ARCHIVES = sorted((Path(__file__).parents[2] / "docs" / "assets" / "studies").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_settings_of_archived_runs_are_read_and_written_alike(archive, tmp_path):
    with tarfile.open(archive) as tar:
        configs = [tar.extractfile(entry).read() for entry in tar if entry.name.endswith("config.json")]
    for text in configs:
        (tmp_path / "config.json").write_bytes(text)
        assert read_run(tmp_path).settings() == json.loads(text)["run"]
