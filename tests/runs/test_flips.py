"""One changed bit in any file of a run is one sentence: no other agent, no other episodes, no raw error."""

import json
import random
import re
import shutil
from functools import partial

import pytest
import torch

from hunch.cli import arms
from hunch.cli.compare import compare
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning
from hunch.lm.budget import Budget
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.report.gather import collect
from hunch.rl.comparison import difference
from hunch.runs.callbacks import Watch
from hunch.runs.checkpoints import BEST, CHECKPOINT
from hunch.runs.compare import outcome
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import last_line, read_json, read_lines
from hunch.runs.folder import JOURNAL, STREAMS
from hunch.runs.loading import load_agent
from hunch.runs.stored import finished, read_run

SMALL = DQNPriorConfig(k=2, hidden=4, warmup=10, batch_size=4, encoder="bag-of-words?dim=8")
LEARNER = {"method": "dqn-prior", "env": "hunch/FrozenLake-v0", "lm": "uniform", "options": SMALL}
SEARCH = {
    "method": "funsearch",
    "env": "hunch/Heuristic-BinPacking-v0",
    "env_options": {"items": 10, "instances": 2},
    "lm": "scripted:mutator",
    "options": FunSearchConfig(),
}
CONFIGS = {
    "learner": RunConfig(**LEARNER, steps=60, eval_every=30, eval_episodes=2),
    "search": RunConfig(**SEARCH, steps=4),
}
FILES = {
    "learner": ("config.json", "summary.json", *STREAMS[:2], str(CHECKPOINT), str(BEST), JOURNAL),
    "search": ("programs.jsonl",),
}
LACKS = {"learner": [], "search": ["best"]}
"""What cannot be read in a sound run either: the search has no evaluations."""
CASES = [(name, file) for name, files in FILES.items() for file in files]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two small runs with every file that is read back."""
    out = tmp_path_factory.mktemp("whole")
    for name, config in CONFIGS.items():
        execute(config, out / name, budget=Budget(calls=10_000))
    return out


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def loaded(folder, checkpoint):
    return load_agent(folder, checkpoint=checkpoint)[0].state_dict()


def reported(folder):
    """What a report says of a run, or the sentence with which it leaves it out."""
    ((comparison,), left_out) = collect([folder])
    assert not left_out
    ((run,),) = comparison.arms.values()
    return [run.points, run.records, run.record["models"]]


READERS = {
    "settings": read_run,
    "result": lambda folder: repr(vars(finished(folder))),  # a failed program's return is nan
    "last": partial(loaded, checkpoint="last"),
    "best": partial(loaded, checkpoint="best"),
    "lines": lambda folder: [read_lines(folder / name) for name in STREAMS],
    "journal": lambda folder: read_json(folder / JOURNAL),
    "report": reported,
}


def read(folder):
    """What each reader finds in a folder; a sentence where it refuses. Other errors are not caught."""
    found = {}
    for reader, what in READERS.items():
        try:
            found[reader] = what(folder)
        except HunchError as error:
            found[reader] = error
    return found


def flip(path, rng):
    data = bytearray(path.read_bytes())
    place = rng.randrange(8 * len(data))
    data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)
    return place


def survive(whole, copied, name, file, flips):
    """Flip one bit after another: somebody says a sentence each time, and all others read what was there."""
    sound, rng = read(whole / name), random.Random(file)
    assert [reader for reader, found in sound.items() if isinstance(found, HunchError)] == LACKS[name]
    for _ in range(flips):
        place = flip(copied / name / file, rng)
        found = read(copied / name)
        refused = [str(each) for each in found.values() if isinstance(each, HunchError)]
        refused = refused[len(LACKS[name]) :]
        assert refused, f"{file}, bit {place}: nobody saw it"
        assert all("\n" not in sentence for sentence in refused)
        for reader, what in found.items():
            same = isinstance(what, HunchError) or difference(what, sound[reader]) is None
            assert same, f"{file}, bit {place}: {reader}"
        shutil.copy(whole / name / file, copied / name / file)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_changed_bit_is_a_sentence(whole, copied, name, file):
    survive(whole, copied, name, file, 8)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "file"), CASES)
def test_three_hundred_changed_bits_are_sentences(whole, copied, name, file):
    survive(whole, copied, name, file, 300)


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A run that was stopped on the way."""
    out, lines = tmp_path_factory.mktemp("half"), []
    execute(CONFIGS["learner"], out, watch=Watch(report=lines.append, stop=lambda: len(lines) >= 40))
    return out


@pytest.mark.parametrize("file", ["config.json", *STREAMS[:2], str(CHECKPOINT)])
def test_a_damaged_run_is_not_resumed(half, tmp_path, file):
    """Also if the last line break of the file is what changed, where a kill would have left half a line."""
    rng = random.Random(file)
    for last in (False, True):
        run = shutil.copytree(half, tmp_path / str(last))
        if last:
            data = (run / file).read_bytes()
            (run / file).write_bytes(data[:-1] + bytes([data[-1] ^ 4]))
        else:
            flip(run / file, rng)
        before = (run / "episodes.jsonl").read_bytes()
        with pytest.raises(HunchError):
            execute(CONFIGS["learner"], run)
        assert (run / "episodes.jsonl").read_bytes() == before


def test_a_damaged_last_line_is_not_shown_as_progress(half, tmp_path):
    run = shutil.copytree(half, tmp_path / "run")
    data = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(data.replace(b'"step":40', b'"step":48'))
    assert last_line(half / "metrics.jsonl")["step"] == 40
    assert last_line(run / "metrics.jsonl") is None


def age(folder):
    """Take away all checksums, as in a folder of an earlier version."""
    for file in folder.rglob("*"):
        if file.suffix in (".json", ".jsonl", ".pt"):
            closed = b"" if file.suffix == ".pt" else b"}\n"
            file.write_bytes(re.sub(rb',"checksum":"crc32:[0-9a-f]{8}"}\n', closed, file.read_bytes()))
    return folder


def test_a_folder_without_checksums_is_read_with_one_sentence(whole, half, copied, tmp_path):
    old = age(copied / "learner")
    assert (old / JOURNAL).read_bytes() != (whole / "learner" / JOURNAL).read_bytes()
    for reader, sound in read(whole / "learner").items():
        if reader in ("last", "best"):
            with pytest.warns(HunchWarning, match="without checksums") as warned:
                assert difference(READERS[reader](old), sound) is None
            assert len(warned) == 1
        else:
            assert difference(READERS[reader](old), sound) is None
    run = age(shutil.copytree(half, tmp_path / "run"))
    state = torch.load(run / CHECKPOINT, weights_only=True)
    lengths = {name: (run / name).stat().st_size for name in state["offsets"]}
    torch.save({**state, "offsets": lengths}, run / CHECKPOINT)
    with pytest.warns(HunchWarning, match="without checksums"):
        execute(CONFIGS["learner"], run)
    assert read_lines(run / "episodes.jsonl") == read_lines(whole / "learner" / "episodes.jsonl")


@pytest.mark.parametrize("name", ["steps", "episodes", "usage", "evidence"])
def test_a_lost_key_without_a_checksum_is_a_sentence(copied, name):
    path = copied / "learner" / "summary.json"
    summary = read_json(path)
    summary[name + "x"] = summary.pop(name)
    path.write_text(json.dumps(summary))
    with pytest.raises(HunchError, match=f"damaged file: '{name}'"):
        finished(copied / "learner")


# ---- a comparison ---------------------------------------------------------------------------------------

PAIR = [*("dqn-prior", "zero-shot", "--env", "hunch/FrozenLake-v0", "--lm", "scripted:frozenlake?error=0.3")]
PAIR += [*("--steps", "60", "--no-control")]
PAIR += [*("--seeds", "1", "--workers", "1", "--hidden", "4", "--warmup", "10", "--batch-size", "4")]
PAIR += [*("--dqn-prior.encoder", "bag-of-words?dim=8", "--budget.calls", "10000")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The folder of a comparison of two small runs."""
    out = tmp_path_factory.mktemp("compared") / "pair"
    main(["compare", *PAIR, "--out", str(out)])
    return out


def cut(path, rng):
    data = path.read_bytes()
    path.write_bytes(data[: (length := rng.randrange(len(data)))])
    return f"cut to {length}"


def shown(out, monkeypatch, capsys):
    """What the same command shows of a finished comparison, and its picture, or how it refuses.

    No run begins anew: that a damaged one is refused is tested above.
    """
    monkeypatch.setattr(arms, "compare_runs", lambda todo, **_: [outcome(job) for job in todo])
    capsys.readouterr()
    try:
        compare([*PAIR, "--out", str(out)])
    except HunchError as error:
        return [str(error), *(line for line in capsys.readouterr().out.splitlines() if ": " in line)]
    return capsys.readouterr().out, (out / "curves.png").read_bytes()


def pages(out):
    """What a report shows of it, with what it leaves out, or how it refuses."""
    try:
        compared, left_out = collect([out])
    except HunchError as error:
        return str(error)
    runs = [run for each in compared for own in each.arms.values() for run in own]
    return [[run.name, repr(vars(run.result)), repr(run.points)] for run in runs], left_out


def survive_in_pair(pair, moved, damage, times, see):
    """Damage one file after another: each time the command and a report show what was there, or refuse."""
    shutil.copytree(pair, moved)
    (sound, paged), rng = see(moved), random.Random(damage.__name__)
    files = sorted(
        path.relative_to(pair) for path in pair.rglob("*") if path.is_file() and path.stat().st_size
    )
    assert {"table.json", "table.csv", "verdict.txt", "curves.png"} <= set(map(str, files))
    for file in files * times:
        what = f"{file}, {damage(moved / file, rng)}"
        again, page = see(moved)
        if again != sound:
            assert isinstance(again, list), what
            assert any(file.name in line or "checkpoint" in line for line in again), what
            assert not any("Traceback" in line for line in again), what
        assert page == paged or len(page[1]) == 1 or isinstance(page, str), what
        shutil.rmtree(moved)
        shutil.copytree(pair, moved)


@pytest.fixture
def see(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda out: (shown(out, monkeypatch, capsys), pages(out))


@pytest.mark.parametrize("damage", [flip, pytest.param(cut, marks=pytest.mark.thorough)])
def test_damage_anywhere_in_a_comparison_is_a_sentence_or_harmless(pair, tmp_path, see, damage):
    """Its own files, those of its runs, and those that nobody reads again."""
    survive_in_pair(pair, tmp_path / "pair", damage, 1, see)


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [flip, cut])
def test_much_damage_in_a_comparison_is_a_sentence_or_harmless(pair, tmp_path, see, damage):
    survive_in_pair(pair, tmp_path / "pair", damage, 4, see)
