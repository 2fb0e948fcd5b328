"""The cache: nothing asked twice, nothing lost, nothing poisoned, shared by processes."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch import lm
from hunch.core import HunchWarning, UsageError
from hunch.lm import Cached, OptionScores, Sampling, Store, UniformModel
from hunch.lm.answers import memory, store
from hunch.lm.answers.cache import REQUESTS_A_COMMIT
from hunch.lm.answers.question import Question
from hunch.lm.answers.store import Source
from hunch.lm.answers.stored import decode, encode
from hunch.lm.backends.scripted import ScriptedModel, overlap

PROMPTS = [
    f"Room {i}. Your task is to: open the fridge.\n- open the fridge\n- go left\n- look" for i in range(40)
]
OPTIONS = [["open the fridge", "go left", "look"]] * 40


def scripted(path: Path | None = None, error: float = 0.4) -> Cached:
    return Cached(ScriptedModel(overlap, error=error), Store(path) if path else None)


def rows(path: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as link:
        return link.execute(
            "SELECT verb, model, revision, sample, value, version, created FROM answers"
        ).fetchall()


def test_same_answers_fresh_from_memory_and_from_disk(tmp_path: Path) -> None:
    bare = ScriptedModel(overlap, error=0.4)
    first, path = scripted(tmp_path / "a.sqlite"), tmp_path / "a.sqlite"
    for model in (first, first, scripted(path)):
        assert model.generate(PROMPTS, 3) == bare.generate(PROMPTS, 3)
        for ours, theirs in zip(model.score(PROMPTS, OPTIONS), bare.score(PROMPTS, OPTIONS), strict=True):
            assert ours.logprobs.tobytes() == theirs.logprobs.tobytes()
            assert ours.tokens.tolist() == theirs.tokens.tolist()
    assert model.usage.calls == 0
    assert model.usage.cache_hits == 160
    assert first.usage.calls == 160
    assert first.usage.cache_hits == 160


def test_embeddings_come_back_to_the_last_bit(tmp_path: Path, folders: dict[str, Path]) -> None:
    texts = [*PROMPTS, PROMPTS[0]]
    bare = lm.load(f"hf:{folders['bert']}", cache=None).model
    first, second = (Cached(bare, Store(tmp_path / "a.sqlite")) for _ in range(2))
    assert first.embed(texts).tobytes() == second.embed(texts).tobytes() == bare.embed(texts).tobytes()
    assert (first.usage.calls, first.usage.cache_hits, first.usage.texts_embedded) == (40, 1, 40)
    assert (second.usage.calls, second.usage.cache_hits, second.usage.texts_embedded) == (0, 41, 0)
    first.embed(texts)[0] = 0.0
    assert first.embed(texts).tobytes() == bare.embed(texts).tobytes()


def test_only_a_model_that_also_writes_takes_leases(tmp_path: Path, folders: dict[str, Path]) -> None:
    for name, tables in (("bert", set()), ("gpt2", {"leases"})):
        path = tmp_path / f"{name}.sqlite"
        Cached(lm.load(f"hf:{folders[name]}", cache=None).model, Store(path)).embed(PROMPTS[:2])
        with contextlib.closing(sqlite3.connect(path)) as link:
            found = {name for (name,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert found == {"answers", *tables}


def test_k_samples_stay_k_samples(tmp_path: Path) -> None:
    """Asked in any portions, from either side of a restart, sample i is sample i."""
    path = tmp_path / "a.sqlite"
    wanted = ScriptedModel(overlap, error=0.4).generate(PROMPTS, 6)
    assert len(set(wanted[0])) > 1
    assert scripted(path).generate(PROMPTS[:5], 2, first=3) == [own[3:5] for own in wanted[:5]]
    model = scripted(path)
    assert model.generate(PROMPTS, 6) == wanted
    assert model.usage.calls == 40 * 6 - 5 * 2
    assert sorted({row[3] for row in rows(path)}) == [0, 1, 2, 3, 4, 5]
    assert len(rows(path)) == 40 * 6


def test_another_revision_or_sampling_is_another_request(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    scripted(path).generate(PROMPTS)
    for model, sampling in [
        (scripted(path, error=0.5), Sampling()),
        (scripted(path), Sampling(max_tokens=31)),
    ]:
        model.generate(PROMPTS, sampling=sampling)
        assert model.usage.calls == 40
    again = scripted(path)
    again.generate(PROMPTS, sampling=Sampling(temperature=1))
    assert again.usage.calls == 0


def test_provenance_beside_each_answer(tmp_path: Path) -> None:
    model = scripted(tmp_path / "a.sqlite")
    model.generate(PROMPTS[:1])
    [(verb, name, revision, sample, value, version, created)] = rows(tmp_path / "a.sqlite")
    assert (verb, name, revision, sample) == ("generate", model.name, model.revision, 0)
    assert value == f'"{model.generate(PROMPTS[:1])[0][0]}"'
    assert version
    assert str(created).startswith("20")


def test_answers_are_stored_before_the_next_are_asked(tmp_path: Path) -> None:
    """What was answered before a crash is there after it."""

    def crashing(prompt: str, options: tuple[str, ...]) -> str:
        if prompt.startswith("Room 35"):
            raise KeyboardInterrupt
        return options[0]

    model = Cached(ScriptedModel(crashing), Store(tmp_path / "a.sqlite"))
    with pytest.raises(KeyboardInterrupt):
        model.score(PROMPTS, OPTIONS)
    assert len(rows(tmp_path / "a.sqlite")) == model.usage.calls == REQUESTS_A_COMMIT


@pytest.mark.parametrize("damage", ["text", "half", "zeros", "head"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.sqlite"
    model = scripted(path)
    wanted = model.generate(PROMPTS, 4)
    model.store.close()
    whole = path.read_bytes()
    broken = {
        "text": b"not a database" * 100,
        "half": whole[: len(whole) // 2],
        "zeros": whole[:4096] + bytes(len(whole) - 4096),
        "head": b"\xff" * 100 + whole[100:],
    }[damage]
    path.write_bytes(broken)
    with pytest.warns(HunchWarning, match="was damaged; it is kept as"):
        assert scripted(path).generate(PROMPTS, 4) == wanted
    [aside] = [p for p in tmp_path.glob("a.sqlite.damaged-*") if not p.name.endswith(("-wal", "-shm"))]
    assert aside.read_bytes() == broken
    again = scripted(path)
    assert again.generate(PROMPTS, 4) == wanted
    assert again.usage.calls == 0


def test_any_flipped_bytes_never_change_an_answer(tmp_path: Path) -> None:
    path, chance = tmp_path / "a.sqlite", random.Random(3)
    model = scripted(path)
    wanted = model.generate(PROMPTS, 4)
    model.store.close()
    whole = path.read_bytes()
    for _ in range(25):
        broken = bytearray(whole)
        for _ in range(8):
            broken[chance.randrange(100, len(broken))] ^= chance.randrange(1, 256)
        for leftover in tmp_path.glob("a.sqlite*"):
            leftover.unlink()
        path.write_bytes(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HunchWarning)
            # the table's own name may be hit: then the file is left alone, with an error
            with contextlib.suppress(UsageError):
                assert scripted(path).generate(PROMPTS, 4) == wanted


def test_an_altered_answer_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    wanted = scripted(path).generate(PROMPTS)
    with sqlite3.connect(path) as link:
        link.execute("""UPDATE answers SET value = '"jump"' WHERE rowid < 5""")
    link.close()
    model = scripted(path)
    with pytest.warns(HunchWarning, match="will be asked again"):
        assert model.generate(PROMPTS) == wanted
    assert model.usage.calls == 4
    assert scripted(path).generate(PROMPTS) == wanted


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    with sqlite3.connect(path) as link:
        link.execute("CREATE TABLE precious (x)")
    link.close()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="another program"):
        scripted(path).generate(PROMPTS)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = scripted(tmp_path / "file" / "a.sqlite")
    with pytest.warns(HunchWarning, match="answers stay in memory"):
        texts = model.generate(PROMPTS)
    assert texts == scripted().generate(PROMPTS)
    model.score(PROMPTS, OPTIONS)  # said once: another warning would be an error here


READ_ONLY = """
import os, warnings
from pathlib import Path
from hunch.lm.answers.archive import Archive
from hunch.lm.answers.store import Source, Store
if not os.getuid():  # who may write everywhere
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
assert Archive({path!r}).count() == 1
store = Store(Path({path!r}))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert store.read([("known", 0)]) == {{("known", 0): '"north"'}}
    assert store.leases.claim([("new", 0)])[1] == [("new", 0)]
    store.write({{("new", 0): '"south"'}}, Source("generate", "m", "r"))
    assert store.read([("known", 0), ("new", 0)]) == {{("known", 0): '"north"', ("new", 0): '"south"'}}
print([str(w.message) for w in caught])
"""


def test_answers_in_a_folder_that_cannot_be_written_are_read() -> None:
    """As of a cache that a group shares, or that a container mounts; new answers stay in memory."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        writer = Store(path)
        writer.write({("known", 0): '"north"'}, Source("generate", "m", "r"))
        writer.close()
        Path(f"{path}.lock").unlink()
        os.chmod(folder, 0o555)
        code = READ_ONLY.format(path=str(path))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        os.chmod(folder, 0o755)
    assert done.stdout.count("answers stay in memory") == 1


FULL_DISK = """
import resource, sys, warnings
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_answer_cache import PROMPTS, scripted
from hunch.lm.answers import store
store.PAUSE_SECONDS = 0.0
model = scripted(Path({path!r}))
wanted = scripted().generate(PROMPTS, 50)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert model.generate(PROMPTS, 50) == wanted
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    {then}
print([str(w.message) for w in caught])
"""


@pytest.mark.parametrize("then", ["model.generate(['another'])", ""])
def test_a_full_disk_only_puts_off_the_storing(tmp_path: Path, then: str) -> None:
    """What could not be stored is stored with the next answer, or at the end of the process."""
    code = FULL_DISK.format(tests=str(Path(__file__).parent), path=str(tmp_path / "a.sqlite"), then=then)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("answers stay in memory") == 1
    model = scripted(tmp_path / "a.sqlite")
    assert model.generate(PROMPTS, 50) == scripted().generate(PROMPTS, 50)
    assert model.usage.calls == 0


def test_a_locked_file_only_puts_off_the_storing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(store, "PAUSE_SECONDS", 0.2)
    path = tmp_path / "a.sqlite"
    model = scripted(path)
    model.generate(PROMPTS[:1])
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.warns(HunchWarning, match="answers stay in memory"):
        wanted = model.generate(PROMPTS)
    assert model.generate(PROMPTS) == wanted
    other.rollback()
    other.close()
    time.sleep(0.2)
    model.generate(PROMPTS[:1], 2)
    assert len(rows(path)) == len(PROMPTS) + 1


def test_threads_lose_nothing_to_a_locked_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BUSY_SECONDS", "PAUSE_SECONDS", "LATER_SECONDS"):
        monkeypatch.setattr(store, name, 0.005)
    path, source = tmp_path / "a.sqlite", Source("generate", "m", "1")
    kept = Store(path)
    kept.write({("first", 0): "0"}, source)
    other, written = sqlite3.connect(path), [0] * 6
    other.execute("BEGIN IMMEDIATE")

    def write(number: int) -> None:
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            kept.write({(f"thread {number}", written[number]): "0"}, source)
            written[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HunchWarning)
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        other.rollback()
        other.close()
        for thread in threads:
            thread.join()
    kept.flush()
    assert len(rows(path)) == sum(written) + 1


def test_a_file_that_is_removed_is_begun_anew(tmp_path: Path) -> None:
    model = scripted(tmp_path / "a.sqlite")
    model.generate(PROMPTS[:2])
    for file in tmp_path.iterdir():
        file.unlink()
    model.generate(PROMPTS[2:5])
    assert len(rows(tmp_path / "a.sqlite")) == 3


def _work(path: Path, number: int) -> None:
    model = scripted(path)
    for prompt in PROMPTS[number * 5 :] + PROMPTS[: number * 5]:
        model.generate([prompt], 5)
        model.score([f"{prompt}{number}"], OPTIONS[:1])


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_four_processes_share_one_file(tmp_path: Path, start: str) -> None:
    path, context = tmp_path / "a.sqlite", multiprocessing.get_context(start)
    workers = [context.Process(target=_work, args=(path, number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(rows(path)) == 40 * 5 + 4 * 40
    model = scripted(path)
    assert model.generate(PROMPTS, 5) == scripted().generate(PROMPTS, 5)
    assert model.usage.calls == 0


def _set_aside(path: Path, ready: object) -> None:
    warnings.simplefilter("ignore")
    model = scripted(path)
    ready.wait()  # type: ignore[attr-defined]
    for prompt in PROMPTS:
        model.generate([prompt], 3)


def test_four_processes_find_the_same_damage(tmp_path: Path) -> None:
    path, context = tmp_path / "a.sqlite", multiprocessing.get_context("fork")
    path.write_bytes(b"not a database" * 1000)
    ready = context.Barrier(4)
    workers = [context.Process(target=_set_aside, args=(path, ready)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(list(tmp_path.glob("a.sqlite.damaged-*"))) == 1
    assert len(rows(path)) == 40 * 3


def test_a_fork_opens_its_own_connection(tmp_path: Path) -> None:
    model = scripted(tmp_path / "a.sqlite")
    model.generate(PROMPTS[:10])
    child = os.fork()
    if child == 0:
        model.generate(PROMPTS[10:20])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    model.generate(PROMPTS[20:30])
    assert len(rows(tmp_path / "a.sqlite")) == 30


def test_pickles(tmp_path: Path) -> None:
    model = scripted(tmp_path / "a.sqlite")
    wanted = model.generate(PROMPTS, 2)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.generate(PROMPTS, 2) == wanted
    assert copy.store.path == model.store.path


def test_bad_sample_range() -> None:
    for k, first in [(0, 0), (1, -1)]:
        with pytest.raises(UsageError, match="k >= 1 and first >= 0"):
            Cached(UniformModel()).generate(["a"], k, first=first)


@settings(max_examples=50)
@given(
    st.text(),
    st.lists(st.floats(max_value=0, allow_nan=False), min_size=1, max_size=5),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
)
def test_json_keeps_every_bit(text: str, logprobs: list[float], vector: list[float]) -> None:
    assert decode("generate", encode("generate", text)) == text
    scores = OptionScores(np.array(logprobs), np.arange(len(logprobs)), np.arange(len(logprobs)))
    back = decode("score", encode("score", scores))
    assert back.logprobs.tobytes() == scores.logprobs.tobytes()
    assert back.tokens.tolist() == scores.tokens.tolist()
    exact = np.array(vector, dtype=np.float32)
    assert decode("embed", encode("embed", exact)).tobytes() == exact.tobytes()


def test_the_request_is_kept_beside_the_answer(tmp_path: Path) -> None:
    model = scripted(tmp_path / "a.sqlite")
    model.generate(PROMPTS[:2], 2)
    with sqlite3.connect(tmp_path / "a.sqlite") as link:
        told = [json.loads(q) for (q,) in link.execute("SELECT question FROM answers ORDER BY rowid")]
    assert [t["request"][0] for t in told] == [PROMPTS[0], PROMPTS[0], PROMPTS[1], PROMPTS[1]]
    assert all(t["evidence"] == "L0" for t in told)


def test_a_file_of_an_earlier_version_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    wanted = scripted(path).generate(PROMPTS[:3])
    with sqlite3.connect(path) as link:
        link.execute("ALTER TABLE answers DROP COLUMN question")
    link.close()
    model = scripted(path)
    assert model.generate(PROMPTS[:3]) == wanted
    assert model.usage.calls == 0
    model.generate(PROMPTS[:4])
    assert len(rows(path)) == 4


def test_a_file_of_a_later_version_is_taken_up(tmp_path: Path) -> None:
    """It may have more columns, in any order."""
    path = tmp_path / "a.sqlite"
    scripted(path).generate(PROMPTS[:3])
    with sqlite3.connect(path) as link:
        link.execute("ALTER TABLE answers ADD COLUMN mood TEXT")
    link.close()
    model = scripted(path)
    model.generate(PROMPTS[:4])
    assert len(rows(path)) == 4


def test_most_answers_of_a_damaged_file_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    model = scripted(path)
    wanted = model.generate(PROMPTS, 60)
    model.store.close()
    whole = bytearray(path.read_bytes())
    page = 4096 * (len(whole) // 4096 // 2)
    while whole[page] != 13:  # a leaf of the table
        page += 4096
    whole[page] ^= 1
    path.write_bytes(whole)
    again = scripted(path)
    with pytest.warns(HunchWarning, match="2,[0-9]{3} "):
        assert again.generate(PROMPTS, 60) == wanted
    assert 0 < again.usage.calls < 40


def test_samples_read_one_by_one_take_linear_time(tmp_path: Path) -> None:
    """Of 3,000 samples of one prompt, the last ones are looked up as the first ones: by themselves."""
    path = tmp_path / "a.sqlite"
    model = scripted(path)
    model.generate(PROMPTS[:1], 3000)
    seen: list[int] = []
    link = model.store._open()
    link.set_progress_handler(lambda: seen.append(1), 100)  # every 100 steps of sqlite's machine
    key = model._key(Question("generate", (PROMPTS[0], (32, 1.0, 1.0, ("\n",))), 1500))
    assert model.store.read([key])
    assert len(seen) < 3


def test_memory_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_BYTES", 10_000)
    model = scripted()
    wanted = model.generate(PROMPTS, 4)
    assert model._memory.size <= 10_000
    assert 0 < len(model._memory) < 40
    assert model.generate(PROMPTS, 4) == wanted
