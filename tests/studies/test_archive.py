"""The archive of a study: what is in it is not run again, and nothing else gets in or out."""

import random
import shutil
import tarfile
from contextlib import suppress

import pytest

from hunch.cli.main import main
from hunch.core import HunchError, UsageError
from hunch.runs.files import read_json, write_json
from hunch_studies.archive import archived

STUDY = ["study", "icpi-roles", "--smoke", "--part", "Chain", "--arm", "rules", "Matching Model"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with a study that was run with an archive."""
    folder = tmp_path_factory.mktemp("study")
    main([*STUDY, "--out", str(folder / "first"), "--archive", str(folder / "kept.tar.xz")])
    return folder


def episodes(study):
    return (study / "chain" / "rules" / "seed-0" / "episodes.jsonl").read_bytes()


def names(archive):
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_archived_runs_are_not_repeated(done, capsys):
    archive, again = done / "kept.tar.xz", done / "again"
    before = archive.read_bytes()
    main([*STUDY, "--out", str(again), "--archive", str(archive)])
    assert "restored from" in capsys.readouterr().out
    assert episodes(again) == episodes(done / "first")
    assert not list(again.rglob("state.pt")), "nothing was run"
    pages = [(study / "page.md").read_text() for study in (done / "first", again)]
    assert pages[0] == pages[1]
    assert "| rules | 1 |" in pages[0], "the regret of the chosen arms is told, too"
    assert archive.read_bytes() == before, "equal results give equal bytes"


def test_a_run_that_is_not_archived_is_run_and_added(done, tmp_path):
    archive = shutil.copy(done / "kept.tar.xz", tmp_path)
    more = [*STUDY[:-1], "Matching Model", "knowing nothing", "--out", str(tmp_path / "more")]
    main([*more, "--archive", str(archive)])
    held = names(archive)
    for arm in ("rules", "matching-model", "knowing-nothing"):
        assert f"chain/{arm}/seed-0/summary.json" in held
    assert (tmp_path / "more" / "chain" / "knowing-nothing" / "seed-0" / "checkpoint" / "state.pt").exists()


def test_what_the_folder_has_is_not_replaced(done, tmp_path):
    shutil.copytree(done / "first", tmp_path / "study")
    page = tmp_path / "study" / "chain" / "table.json"
    page.write_text("[]")
    with archived(done / "kept.tar.xz", tmp_path / "study", ["chain"]) as restored:
        assert restored == 0
        assert page.read_text() == "[]"
        page.write_text((done / "first" / "chain" / "table.json").read_text())


@pytest.mark.parametrize("summary", [None, "{"])
def test_an_unfinished_or_damaged_run_is_not_archived(done, tmp_path, summary):
    shutil.copytree(done / "first", tmp_path / "study")
    path = tmp_path / "study" / "chain" / "rules" / "seed-0" / "summary.json"
    path.write_text(summary) if summary else path.unlink()
    with suppress(KeyboardInterrupt), archived(tmp_path / "new.tar.xz", tmp_path / "study", ["chain"]):
        raise KeyboardInterrupt
    held = names(tmp_path / "new.tar.xz")
    assert "chain/matching-model/seed-0/summary.json" in held
    assert not [name for name in held if "rules" in name or "checkpoint" in name]


@pytest.mark.parametrize(
    "name", ["elsewhere/table.json", "../table.json", "chain/../../x.json", "chain/run.py"]
)
def test_foreign_files_are_refused(name, tmp_path):
    (tmp_path / "file").write_text("{}")
    with tarfile.open(tmp_path / "odd.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "file", name)
    with (
        pytest.raises(UsageError, match="another study or size"),
        archived(tmp_path / "odd.tar.xz", tmp_path, ["chain"]),
    ):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "odd.tar.xz"]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_archive_is_reported_and_left(done, tmp_path, share):
    whole, broken = (done / "kept.tar.xz").read_bytes(), tmp_path / "broken.tar.xz"
    broken.write_bytes(whole[: int(share * len(whole))])
    size = broken.stat().st_size
    with pytest.raises(HunchError, match="damaged"), archived(broken, tmp_path / "study", ["chain"]):
        pass
    assert broken.stat().st_size == size
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(("name", "said"), [("kept.zip", "ends in"), ("nowhere/kept.tar.xz", "no folder")])
def test_an_impossible_archive_is_refused_first(name, said, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([*STUDY, "--out", str(tmp_path / "study"), "--archive", str(tmp_path / name)])
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_archive_of_other_settings_is_refused(done, tmp_path, capsys):
    shutil.copytree(done / "first", tmp_path / "other")
    config = tmp_path / "other" / "chain" / "rules" / "seed-0" / "config.json"
    record = read_json(config)
    record["run"]["options"]["temperature"] = 0.7
    write_json(config, record)
    with archived(tmp_path / "other.tar.xz", tmp_path / "other", ["chain"]):
        pass
    with pytest.raises(SystemExit):
        main([*STUDY, "--out", str(tmp_path / "study"), "--archive", str(tmp_path / "other.tar.xz")])
    assert "another run (options.temperature: 0.7 there" in capsys.readouterr().err


def test_a_changed_bit_anywhere_is_damage(tmp_path):
    """Also where tar itself stops reading before the checksum of the compression comes."""
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "table.json").write_text(str([*range(4_000)]))
    archive = tmp_path / "kept.tar.xz"
    with archived(archive, tmp_path, ["part"]):
        pass
    whole, rng = archive.read_bytes(), random.Random(0)
    for place in rng.sample(range(8 * len(whole)), 200):
        archive.write_bytes(
            whole[: place // 8] + bytes([whole[place // 8] ^ 1 << place % 8]) + whole[place // 8 + 1 :]
        )
        with pytest.raises(HunchError, match="is damaged"), archived(archive, tmp_path, ["part"]):
            pass
