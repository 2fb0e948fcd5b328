"""Data sets on a full disk, and what killed processes left behind."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hunch.core import HunchError, UsageError
from hunch.rl import dataset
from hunch.rl.recording import Recording

pytest.importorskip("minari", reason="needs the extra 'data'")

EPISODE = Recording(
    observations=("a", "b" * 5000), admissible=(("x",), ()), actions=("x",), rewards=(1.0,), terminated=True,
    truncated=False,
)  # fmt: skip
DATA = dataset.Dataset("e", {}, (EPISODE,) * 30)
SAVE = """
import resource, sys
from tests.rl.test_dataset_disk import DATA
from hunch.rl import dataset
from hunch.core import HunchError
import minari.dataset.minari_storage, h5py
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    dataset.save(DATA, sys.argv[1])
except HunchError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [0, 100, 1_000, 10_000, 100_000])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, limit):
    """A process that may write no more than some bytes meets the error of a full disk at every file."""
    arguments = [sys.executable, "-c", SAVE, str(tmp_path / "data"), str(limit)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Cannot write {tmp_path / 'data'}: ")
    assert list(tmp_path.iterdir()) == []


def test_halves_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path):
    host = re.sub(r"[^A-Za-z0-9]", "_", platform.node())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = (tmp_path / f"data.half-{host}-{pid}" for pid in (ended.pid, os.getppid()))
    elsewhere, other = tmp_path / f"data.half-elsewhere-{ended.pid}", tmp_path / f"da.half-{host}-{ended.pid}"
    for folder in (dead, alive, elsewhere, other):
        folder.mkdir()
    dataset.save(DATA, tmp_path / "data")
    assert {path.name for path in tmp_path.iterdir()} == {alive.name, elsewhere.name, other.name, "data"}
    assert dataset.load(tmp_path / "data").episodes == DATA.episodes


DESCRIPTIONS = (
    *("null", "[]", "[1]", "3", '"a"', "NaN", "[" * 5000, '{"hunch": null}', '{"hunch": [1]}'),
    *('{"hunch": "a"}', '{"hunch": {}}', '{"hunch": {"format": "2"}}'),
)


@pytest.mark.parametrize("content", DESCRIPTIONS)
def test_a_description_of_no_form_is_damaged(tmp_path, content):
    (tmp_path / "metadata.json").write_text(content)
    with pytest.raises(HunchError, match="is damaged"):
        dataset.load(tmp_path)


@pytest.mark.parametrize("folder", [".", "link", "gone"])
def test_a_folder_that_nothing_can_replace_is_refused_before_anything_is_recorded(
    tmp_path, monkeypatch, folder
):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "empty").mkdir()
    (tmp_path / "here" / "link").symlink_to("empty")
    (tmp_path / "here" / "gone").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path / "here" / "empty" if folder == "." else tmp_path / "here")
    with pytest.raises(UsageError, match="needs a new folder"):
        dataset.refuse_existing(Path(folder))
