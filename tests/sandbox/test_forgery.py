# ruff: noqa: E501 (programs, each on its line)
"""A program that writes its own answers forges nothing but its own value for the request at hand."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from hunch.sandbox import ProgramError, ProgramRefused, ProgramTimeout, ProgramValue, Sandbox
from tests.sandbox.attacks.hashes import slow_keys
from tests.sandbox.test_life import linux, number

TOOLS = """
import json, os, struct, sys

def own_id():
    frame = sys._getframe()
    while frame:
        if "request" in frame.f_locals:
            return frame.f_locals["request"]["id"]
        frame = frame.f_back

def put(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    os.write(3, struct.pack("!I", len(data)) + data)

def take():
    (length,) = struct.unpack("!I", os.read(3, 4))
    return json.loads(os.read(3, length))
"""


def load(box, body, **options):
    source = TOOLS + "def f(x):\n    " + body.replace("\n", "\n    ") + "\n    return x"
    return box.load(source, "f", float, **options)


REFUSED = {
    "no id": 'put({"values": [9.0]})',
    "another id": 'put({"id": "0" * 32, "values": [9.0]})',
    "id of another type": 'put({"id": [own_id()], "values": [9.0]})',
    "id in part": 'put({"id": own_id()[:-1], "values": [9.0]})',
    "no values": 'put({"id": own_id()})',
    "too many values": 'put({"id": own_id(), "values": [9.0, 9.0]})',
    "too few values": 'put({"id": own_id(), "values": []})',
    "values of another type": 'put({"id": own_id(), "values": {"0": 9.0}})',
    "not an object": "put([9.0])",
    "not JSON": 'put(b"{")',
    "nothing": 'put(b"")',
    "not text": 'put(b"\\xff" * 9)',
    "deep": 'put(b"[" * 10 ** 6)',
    "deep and whole": 'put(b"[" * 10 ** 5 + b"]" * 10 ** 5)',
    "deep objects": "put(b'{\"a\":' * 10 ** 5)",
    "not a number": 'put(json.dumps({"id": own_id(), "values": [float("nan")]}).encode())',
    "infinity": 'put(json.dumps({"id": own_id(), "values": [float("inf")]}).encode())',
    "infinity by exponent": 'put(b\'{"id":"%s","values":[1e999]}\' % own_id().encode())',
    "integer without end": 'put(b\'{"id":"%s","values":[%s]}\' % (own_id().encode(), b\'9\' * 10 ** 6))',
    "integer too large for a float": 'put(b\'{"id":"%s","values":[%s]}\' % (own_id().encode(), b\'9\' * 309))',
    "text for a float": 'put({"id": own_id(), "values": ["9.0"]})',
    "unknown tag": 'put({"id": own_id(), "values": [{"x": [1]}]})',
    "two tags": 'put({"id": own_id(), "values": [{"t": [], "l": []}]})',
    "no tag": 'put({"id": own_id(), "values": [{}]})',
    "tag without a list": 'put({"id": own_id(), "values": [{"t": 1}]})',
    "dict of no pairs": 'put({"id": own_id(), "values": [{"d": [1]}]})',
    "dict with a list as key": 'put({"id": own_id(), "values": [{"d": [[[1], 1]]}]})',
    "set of lists": 'put({"id": own_id(), "values": [{"s": [[1]]}]})',
    "array of objects": 'put({"id": own_id(), "values": [{"a": ["|O", [1], "AAAAAAAAAAA="]}]})',
    "array of another dtype": 'put({"id": own_id(), "values": [{"a": ["V8", [1], "AAAAAAAAAAA="]}]})',
    "array too short": 'put({"id": own_id(), "values": [{"a": ["<f8", [2], "AAAAAAAAAAA="]}]})',
    "array not divisible": 'put({"id": own_id(), "values": [{"a": ["<f8", [1], "AAAA"]}]})',
    "array without bytes": 'put({"id": own_id(), "values": [{"a": ["<f8", [10 ** 300, 0], ""]}]})',
    "array of negative size": 'put({"id": own_id(), "values": [{"a": ["<f8", [-1], "AAAAAAAAAAA="]}]})',
    "array of many dimensions": 'put({"id": own_id(), "values": [{"a": ["<f8", [1] * 10 ** 4, "AAAAAAAAAAA="]}]})',
    "array not of base 64": 'put({"id": own_id(), "values": [{"a": ["<f8", [1], "\\u00e9!"]}]})',
    "frame of 4 GiB": 'os.write(3, b"\\xff" * 4)',
    "frame just too large": 'os.write(3, struct.pack("!I", 8 * 2 ** 20 + 1))',
    "text instead of a frame": 'os.write(3, b"HTTP/1.1 200 OK\\r\\n\\r\\n")',
    "frame cut off": 'os.write(3, struct.pack("!I", 100) + b"{")\nos._exit(0)',
    "error that is none": 'put({"id": own_id(), "error": 3})',
    "error of odd types": 'put({"id": own_id(), "error": {"kind": [], "type": {}, "message": 1, "line": "x", "index": 1e99}})',
    "error with a terminal's commands": 'put({"id": own_id(), "error": {"type": "\\x1b]0;x", "message": "\\x1b[2J" * 9999}})',
    "error with a huge line": 'put({"id": own_id(), "error": {"line": 10 ** 300, "index": -1}})',
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_forged_answer_is_an_error(locked, name):
    with pytest.raises(ProgramError) as raised, load(locked, REFUSED[name]) as f:
        f(1.0)
    assert raised.value.message.isprintable()
    assert raised.value.type.isprintable()
    assert len(raised.value.message) <= 2_000


PATCHED = {
    "patched encoder": "import hunch.sandbox.wire as w\nw.to_tree = lambda v, d=0: float('nan')",
    "patched JSON": "import json\njson.dumps = lambda *a, **k: 'x'",
    "patched frame": "import hunch.sandbox.wire as w\nw.framed = lambda p: b'\\0\\0\\0\\0'",
    "patched write": "import os\nos.write = lambda f, d: len(d)\nimport sys\nsys.exit()\n",
    "patched modules": "import sys\nsys.modules.clear()\nimport builtins\nbuiltins.__dict__.clear()",
    "patched type": "import builtins\nbuiltins.type = lambda x: float\nx = b''",
    "patched answer": "import sys\nf = sys._getframe().f_back\nf.f_locals['values'].append('9')",
    "patched caller": "import gc, types\nfor o in gc.get_objects():\n    if isinstance(o, types.FunctionType): o.__code__ = (lambda *a, **k: 'x').__code__",
}


@pytest.mark.parametrize("name", PATCHED)
def test_a_program_that_changes_python_under_itself_gives_a_float_or_an_error(locked, name):
    """Nothing in its own process is relied on. A value that comes back is its own, of the type asked for."""
    with Sandbox(seconds=1) as box, suppress(ProgramError), load(box, PATCHED[name]) as f:
        for _ in range(2):
            assert type(f(1.0)) is float


TWICE = {
    "before": 'put({"id": own_id(), "values": [9.0]})',
    "before, many times": 'for _ in range(50): put({"id": own_id(), "values": [9.0]})',
    "before, in one piece": 'd = json.dumps({"id": own_id(), "values": [9.0]}).encode()\nos.write(3, (struct.pack("!I", len(d)) + d) * 2)',
    "before, and half of another": 'put({"id": own_id(), "values": [9.0]})\nos.write(3, b"\\0")',
    "with an error": 'put({"id": own_id(), "values": [9.0]})\nput({"id": own_id(), "error": {}})',
}


@pytest.mark.parametrize("name", TWICE)
def test_a_second_answer_is_never_taken_for_the_next_request(locked, name):
    with load(locked, TWICE[name]) as f:
        assert f(1.0) == 9.0  # its own value for its own request
        with pytest.raises(ProgramError):
            f(2.0)


def test_what_is_left_of_one_program_does_not_reach_another(locked):
    with load(locked, TWICE["before, many times"]) as bad, load(locked, "") as good:
        for value in (1.0, 2.0, 3.0):
            assert bad(value) == 9.0
            with pytest.raises(ProgramError):
                bad(value)
            assert good(value) == value


def test_a_program_that_takes_over_answers_for_itself_only(locked):
    """It answers every request of its own, with the request's id; another program knows nothing of it."""
    body = 'while True:\n    put({"id": own_id(), "values": [9.0]})\n    request = take()'
    with load(locked, body) as bad, load(locked, "") as good:
        assert [bad(1.0), bad(2.0)] == [9.0, 9.0]
        assert good(5.0) == 5.0


def test_a_batch_is_one_answer(locked):
    with load(locked, 'if x == 2: put({"id": own_id(), "values": [9.0] * 3})') as f:
        assert f.map([(1.0,), (2.0,), (3.0,)]) == [9.0] * 3
        with pytest.raises(ProgramError):
            f.map([(1.0,)])


def test_answers_in_small_pieces_win_no_time(locked):
    """A batch has one time, in however many answers it comes."""
    body = 'import time\ntime.sleep(0.4)\nput({"id": own_id(), "values": [9.0]})\n'
    body += 'while True:\n    request = json.loads(os.read(3, 10 ** 6)[4:])\n    time.sleep(0.4)\n    put({"id": request["id"], "values": [9.0]})'
    with Sandbox(seconds=1.5) as box, pytest.raises(ProgramTimeout), load(box, body) as f:
        f.map([(1.0,)] * 1000)


@linux
def test_nothing_runs_between_requests(locked):
    """A program that has answered, and goes on, is stopped until the next request."""
    body = """
put({"id": own_id(), "values": [0.0]})
while True:
    pass
"""
    with load(locked, body) as f:
        assert f(1.0) == 0.0
        own = number(f._process)
        deadline = time.monotonic() + 300
        while "T" not in Path(f"/proc/{own}/stat").read_text().rpartition(")")[2].split()[:1]:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("returns", "value", "passes"),
    [
        (float, "1.5", True),
        (float, "1", True),
        (float, "__import__('numpy').where(True, 1.0, 2.0)", True),
        (float, "__import__('numpy').array(True)", False),
        (float, "__import__('numpy').ones(1)", False),
        (float, "True", True),
        (float, "{1: 2}[1] < 3", True),
        (float, "2 ** 1024 - 1", False),
        (float, "'1.5'", False),
        (float, "None", False),
        (float, "[1.5]", False),
        (float, "2 ** 1023 * 2", False),
        (int, "1", True),
        (int, "1.0", False),
        (int, "True", False),
        (bool, "True", True),
        (bool, "1", False),
        (str, "'a'", True),
        (list, "(1,)", False),
        (tuple, "(1,)", True),
        (dict, "{}", True),
        (set, "set()", True),
    ],
)
def test_the_type_is_checked(locked, returns, value, passes):
    with locked.load(f"def f(): return {value}", "f", returns) as f:
        if passes:
            assert type(f()) is returns
        else:
            with pytest.raises(ProgramValue):
                f()


def test_a_table_that_python_fills_slowly_is_not_read_to_the_end():
    """The limit is a tenth of what the table takes on this machine; tests/sandbox/test_wire.py has its cost."""
    keys = slow_keys(42_000)
    put = 'put({"id": own_id(), "values": [{"d": [[k, 0] for k in x]}]})'
    start = time.thread_time()
    dict.fromkeys(keys)
    with Sandbox(seconds=(time.thread_time() - start) / 10) as box, pytest.raises(ProgramTimeout):
        box.load(TOOLS + f"def f(x):\n    {put}", "f")(keys)


def test_infinity_passes_where_it_is_asked_for(locked):
    source = "import numpy as np\ndef f(): return np.array([1, -np.inf])"
    with locked.load(source, "f", finite=False) as f:
        assert f()[1] == -float("inf")
    with locked.load(source, "f") as f, pytest.raises(ProgramValue, match="finite"):
        f()


class TestFresh:
    """``state="fresh"``: a value is a function of the arguments."""

    COUNTER = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return x + n"

    def test_calls_do_not_see_each_other(self, locked):
        with locked.load(self.COUNTER, "f", int, state="fresh") as f:
            assert [f(0), f(0)] == [1, 1]
        with locked.load(self.COUNTER, "f", int) as f:
            assert [f(0), f(0)] == [1, 2]

    @pytest.mark.parametrize(
        "source",
        [
            COUNTER,
            "seen = {}\ndef f(x): return seen.setdefault('x', x)",
            "def f(x, old=[]):\n    old.append(x)\n    return len(old)",
            "class C: n = 0\ndef f(x):\n    C.n += x\n    return C.n",
            "import time\ndef f(x): return time.time()",
            "import secrets\ndef f(x): return secrets.randbelow(10 ** 9)",
            "import numpy as np\nrng = np.random.default_rng(0)\ndef f(x): return rng.random()",
            "first = []\ndef f(x):\n    if first: raise ValueError\n    if x == 2: first.append(1)\n    return 1",
        ],
    )
    def test_a_batch_that_depends_on_its_order_is_an_error(self, locked, source):
        with (
            locked.load(source, "f", state="fresh") as f,
            pytest.raises(ProgramValue, match="depends on earlier calls"),
        ):
            f.map([(0,), (1,), (2,)])

    @pytest.mark.parametrize(
        "source",
        [
            "import numpy as np\ndef f(x): return x + np.random.rand()",
            "import random\ndef f(x): return x + random.random()",
            "from functools import lru_cache\n@lru_cache\ndef f(x): return {x: {1.0, 2.0}}",
        ],
    )
    def test_chance_and_memory_without_effect_are_no_error(self, locked, source):
        with locked.load(source, "f", state="fresh") as f:
            assert f.map([(0,), (1,), (0,)])[0] == f(0)


def test_a_batch_that_takes_too_long_in_another_order_is_late(locked):
    source = "n = 0\ndef f(x):\n    global n\n    n += 1\n    while n == 1 and x == 2: pass\n    return x"
    with (
        Sandbox(seconds=1.0, least=locked.isolation) as box,
        box.load(source, "f", state="fresh") as f,
        pytest.raises(ProgramTimeout),
    ):
        f.map([(0,), (1,), (2,)])


def test_refused_means_refused_at_once(locked):
    with pytest.raises(ProgramRefused):
        locked.load("x" * 5_000_000, "f")
