"""Damages files that the command reads, by a seed: bytes, values, tensors, columns; for tests.

A damage is drawn for a file by its kind. Files with checksums are sealed again, so that what was changed is
read, and not refused by its checksum.
"""

import json
import os
import random
import shutil
import sqlite3
from io import BytesIO

import torch

from hunch.lm.answers.table import checksum
from hunch.seal import fits, read_sealed_json, seal, sealed_json

WHOLE = (b"", b"\n", b"null", b"[]", b"3", b'"a"', b"true", b"NaN", b"{}", b"[1]", b"[" * 5000)
WHOLE = (*WHOLE, b'{"a":' * 5000, b"\0" * 4096, b"\xff\xfe\xfa" * 50, '{"a": 1}'.encode("utf-16"))
WHOLE = (*WHOLE, b"\x1b]0;title\x07", b"9" * 5000)
VALUES = (None, True, False, -1, 0, 3, 1e308, float("nan"), float("inf"), 10**400, -(2**63), 2**31, 0.5)
VALUES = (*VALUES, "", "a", "\x1b[2J", "\ud800", "a" * 10_000, [], {}, [[]], {"a": 1}, [None], ["a"])
VALUES = (*VALUES, [1, "a", None], {"": {}}, "../../..", "nan", "\0")
ENTRIES = ("3", "-1", "nan", "'a'", "[]", "{}", "[1, 'a']", "true", "1979-05-27", "[" * 300 + "]" * 300)
COLUMNS = (1, -1.5, "a", "[]", "null", "{}", "[" * 5000, "NaN", b"\xff\x00", '{"request": 3}')


def deep(n):
    """A list in a list, ``n`` times."""
    value = []
    for _ in range(n):
        value = [value]
    return value


def places(value, path=()):
    """Yield the paths of all values in lists and dictionaries, the whole first."""
    yield path
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*path, key))


def changed(value, rng):
    """Return a copy with one value replaced, removed or added, and what was done."""
    there = list(places(value))
    depth = rng.choice(sorted({len(path) for path in there}))  # else nearly all changes were at leaves
    path = rng.choice([path for path in there if len(path) == depth])
    what = rng.choice(("replace", "replace", "replace", "remove", "add", "swap"))
    new = deep(400) if rng.random() < 0.03 else rng.choice(VALUES)
    return _with(value, path, what, new), f"{what} {'/'.join(map(str, path)) or 'all'} {str(new)[:20]!r}"


def _with(value, path, what, new):
    if not path:
        if what == "add" and isinstance(value, dict):
            return {**value, "unknown": new}
        return new
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest or what in ("replace", "add", "swap"):
        inner = copy[key]
        if not rest and what == "swap":  # a number as a text, a list as its first entry, and so on
            new = inner[0] if isinstance(inner, list | tuple) and inner else [inner]
            new = str(inner) if isinstance(inner, int | float) else new
        copy[key] = _with(inner, rest, what, new) if rest else new
    else:
        del copy[key]
    return copy


def damage(file, rng):
    """Damage a file; return what was done."""
    if rng.random() < 0.25 or file.suffix not in _BY_SUFFIX:
        return _bytes(file, rng)
    return _BY_SUFFIX[file.suffix](file, rng)


def _bytes(file, rng):
    data = file.read_bytes()
    kind = rng.choice(("flip", "cut", "insert", "whole", "whole", "folder", "gone", "link", "double"))
    place = rng.randrange(len(data) + 1)
    if kind == "flip" and data:
        place = min(place, len(data) - 1)
        data = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    elif kind == "cut":
        data = data[:place]
    elif kind == "insert":
        data = data[:place] + rng.randbytes(rng.choice((1, 10, 300))) + data[place:]
    elif kind == "double":
        data += data
    elif kind == "whole":
        data = rng.choice(WHOLE)
    if kind in ("folder", "gone", "link"):
        file.unlink()
        if kind == "folder":
            file.mkdir()
        elif kind == "link":
            os.symlink(rng.choice((file.name, "/nowhere", "..")), file)  # one leads to itself
        return kind
    file.write_bytes(data)
    return f"{kind} {place}, {data[:20]!r}"


def _json(file, rng):
    data = file.read_bytes()
    value, what = changed(read_sealed_json(data), rng)
    sealed = fits(data) and isinstance(value, dict)
    file.write_bytes(sealed_json(value, indent=2) if sealed else json.dumps(value).encode())
    return what


def _lines(file, rng):
    lines = file.read_bytes().splitlines(keepends=True)
    number = rng.randrange(len(lines))
    value, what = changed(read_sealed_json(lines[number]), rng)
    sealed = fits(lines[number]) and isinstance(value, dict)
    lines[number] = sealed_json(value) if sealed else json.dumps(value).encode() + b"\n"
    file.write_bytes(b"".join(lines))
    return f"line {number + 1}: {what}"


def _yaml(file, rng):
    value, what = changed(json.loads(file.read_text()), rng)
    file.write_text(json.dumps(value, indent=1))  # which is YAML, too
    return what


def _toml(file, rng):
    lines = file.read_text().splitlines()
    number = rng.randrange(len(lines))
    name = lines[number].partition("=")[0]
    text = rng.choice(
        ("3", "-1", "nan", "'a'", "[]", "{}", "[1, 'a']", "true", "1979-05-27", "[" * 300 + "]" * 300)
    )
    lines[number] = f"{name}= {text}"
    file.write_text("\n".join(lines))
    return lines[number][:80]


def _tensors(file, rng):
    state = torch.load(file, weights_only=True)
    there = list(places(state))
    tensors = [path for path in there if isinstance(_at(state, path), torch.Tensor)]
    if tensors and rng.random() < 0.4:
        path = rng.choice(tensors)
        tensor = _at(state, path)
        news = [torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor - 10**6]
        news += [tensor[None], torch.zeros(0), tensor.to(torch.int8), torch.full_like(tensor, 2**30)]
        value, what = _with(state, path, "replace", rng.choice(news)), f"tensor {'/'.join(map(str, path))}"
    else:
        value, what = changed(state, rng)
    buffer = BytesIO()
    torch.save(value, buffer)
    file.write_bytes(buffer.getvalue() + seal(buffer.getvalue()))
    return what


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _hdf5(file, rng):
    import h5py

    with h5py.File(file, "a") as root:
        names = []
        root.visit(names.append)
        name = rng.choice(names)
        item = root[name]
        kind = rng.choice(("remove", "numbers", "texts", "bytes", "short", "group", "attributes"))
        if kind == "attributes":
            for key in list(item.attrs):
                item.attrs[key] = rng.choice((1, "a", -1))
            return f"{kind} {name}"
        size = len(item) if getattr(item, "shape", ()) else 1  # a group has none
        size = size if kind != "short" else max(0, size - 1)
        del root[name]
        if kind == "group":
            root.create_group(name)
        elif kind != "remove":
            new = {"numbers": [7] * size, "texts": ["\x1b[2J{"] * size, "bytes": [b"\xff\xfe"] * size}
            root.create_dataset(name, data=new.get(kind, [0.5] * size))
        return f"{kind} {name}"


def _sqlite(file, rng):
    with sqlite3.connect(file) as link:
        kind = rng.choice(("value", "value", "value", "column", "table", "drop", "view"))
        if kind == "value":
            names = [row[1] for row in link.execute("PRAGMA table_info(answers)")]
            name = rng.choice(names)
            value = rng.choice(COLUMNS)
            link.execute(f"UPDATE OR IGNORE answers SET {name} = ?", (value,))
            if rng.random() < 0.7:  # read in spite of its checksum
                for row, key, sample, text in link.execute(
                    "SELECT rowid, request, sample, value FROM answers"
                ).fetchall():
                    number = checksum((key, sample), text if isinstance(text, str) else str(text))
                    link.execute("UPDATE answers SET checksum = ? WHERE rowid = ?", (number, row))
            return f"{name} = {str(value)[:20]!r}"
        if kind == "column":
            link.execute("ALTER TABLE answers DROP COLUMN question")
        elif kind == "table":
            link.execute("ALTER TABLE answers RENAME TO others")
        elif kind == "drop":
            link.execute("DROP TABLE answers")
        else:
            link.execute("ALTER TABLE answers RENAME TO others")
            link.execute("CREATE VIEW answers AS SELECT * FROM others")
        return kind


_BY_SUFFIX = {
    ".json": _json,
    ".jsonl": _lines,
    ".yaml": _yaml,
    ".toml": _toml,
    ".pt": _tensors,
    ".hdf5": _hdf5,
    ".sqlite": _sqlite,
}
"""How files are damaged, by the ends of their names; others by their bytes only."""


def copied(folder, target):
    """Copy a folder in place of an earlier copy."""
    if target.exists():
        shutil.rmtree(target)
    return shutil.copytree(folder, target, symlinks=True)


def generator(*what):
    """A generator of chances from names and numbers."""
    return random.Random(repr(what))
