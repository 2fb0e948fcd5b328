# ruff: noqa: E501 (programs, each on its line)
"""Harmless programs as a model writes them: source of ``f``, arguments, and the value it must give."""

import math

import numpy as np

A = np.arange(6.0).reshape(2, 3)

BENIGN = {
    "float": ("def f(x): return x * 0.1", (3.0,), 3.0 * 0.1),
    "int": ("def f(x): return x + 1", (41,), 42),
    "big int": ("def f(x): return 2 ** x", (1000,), 2**1000),
    "negative int": ("def f(x): return -x", (2**1000,), -(2**1000)),
    "bool": ("def f(x): return not x", (False,), True),
    "none": ("def f(x): return x", (None,), None),
    "nothing returned": ("def f(): pass", (), None),
    "text": ("def f(x): return x.upper() + '!'", ("ab",), "AB!"),
    "unicode": ("def f(x): return x[::-1]", ("päß ☃ 日本 🎲",), "🎲 本日 ☃ ßäp"),
    "control characters": ("def f(x): return x + '\\n\\t\\0\\x1b'", ("a",), "a\n\t\0\x1b"),
    "quotes and commas": ("def f(x): return x + '\",[{' * 3", ("\\",), '\\",[{",[{",[{'),
    "all of NumPy": ("from numpy import *\ndef f(x): return float(linalg.norm(x))", ([3.0, 4.0],), 5.0),
    "all of mathematics": ("from math import *\ndef f(x): return hypot(*x)", ([3.0, 4.0],), 5.0),
    "list": ("def f(x): return [v * 2 for v in x]", ([1, 2.5],), [2, 5.0]),
    "empties": ("def f(*x): return list(x)", ([], (), set(), {}, ""), [[], (), set(), {}, ""]),
    "tuple": ("def f(x): return x, (1, (2,))", ((),), ((), (1, (2,)))),
    "set": ("def f(x): return x | {'c', 1, (2, 3)}", ({"a"},), {"a", "c", 1, (2, 3)}),
    "dict": ("def f(x): return {**x, 'b': [1]}", ({"a": None},), {"a": None, "b": [1]}),
    "dict of other keys": (
        "def f(q): q[(0, 1), 'up'] = 1.5; return q",
        ({1: 2, None: 3, 2.5: 4},),
        {1: 2, None: 3, 2.5: 4, ((0, 1), "up"): 1.5},
    ),
    "nested": ("def f(x): return {'a': [(x, {1})]}", ([1],), {"a": [([1], {1})]}),
    "keeps order": ("def f(): return list({'b': 1, 'a': 2})", (), ["b", "a"]),
    "array": ("def f(a): return a * 2", (A,), A * 2),
    "array in a dict": (
        "def f(d): return {'sum': d['a'].sum(), 'a': d['a'].T}",
        ({"a": A},),
        {"sum": 15.0, "a": A.T},
    ),
    "array of int8": ("def f(a): return a + a", (np.array([1, 2], np.int8),), np.array([2, 4], np.int8)),
    "array of uint64": (
        "def f(a): return a",
        (np.array([2**64 - 1], np.uint64),),
        np.array([2**64 - 1], np.uint64),
    ),
    "array of float16": ("def f(a): return a", (A.astype(np.float16),), A.astype(np.float16)),
    "array of float32": ("def f(a): return a / 3", (A.astype(np.float32),), A.astype(np.float32) / 3),
    "array of bool": ("def f(a): return a > 2", (A,), A > 2),
    "array of complex": ("def f(a): return a * 1j", (A,), A * 1j),
    "array of big-endian": ("def f(a): return a + 1", (A.astype(">f8"),), A + 1),
    "array of no dimension": ("import numpy as np\ndef f(a): return np.array(a)", (2.5,), np.array(2.5)),
    "empty array": ("def f(a): return a[:0]", (A,), A[:0]),
    "array not contiguous": ("def f(a): return a[:, ::2]", (A[::-1],), A[::-1, ::2]),
    "array inputs may be changed": (
        "def f(a):\n    a[0] = 7\n    return a",
        (A,),
        np.array([[7.0] * 3, [3, 4, 5]]),
    ),
    "large array": ("def f(a): return a + 1", (np.zeros(200_000),), np.ones(200_000)),
    "NumPy scalars": (
        "import numpy as np\ndef f(a): return [a.max(), np.int64(3), np.bool_(True), np.float32(0.5), np.str_('x')]",
        (A,),
        [5.0, 3, True, 0.5, "x"],
    ),
    "linear algebra": (
        "import numpy as np\ndef f(a): return np.round(np.linalg.solve(a, np.ones(2)), 9).tolist()",
        (np.array([[2.0, 0.0], [0.0, 4.0]]),),
        [0.5, 0.25],
    ),
    "einsum": ("import numpy as np\ndef f(a): return np.einsum('ij,kj->ik', a, a)", (A,), A @ A.T),
    "matrix product": ("def f(a): return a @ a.T", (np.ones((120, 120)),), np.full((120, 120), 120.0)),
    "fft": ("import numpy as np\ndef f(a): return abs(np.fft.fft(a)[0])", (np.ones(8),), 8.0),
    "polynomial": (
        "import numpy as np\ndef f(): return np.polyval(np.polyfit([0, 1], [1, 3], 1), 2).round(6)",
        (),
        5.0,
    ),
    "masked": ("import numpy.ma as ma\ndef f(a): return float(ma.masked_less(a, 3).mean())", (A,), 4.0),
    "random of NumPy": (
        "import numpy as np\ndef f(): return np.random.default_rng(3).integers(0, 100, 4)",
        (),
        np.random.default_rng(3).integers(0, 100, 4),
    ),
    "old random of NumPy": (
        "import numpy as np\nnp.random.seed(5)\ndef f(): return float(np.random.rand())",
        (),
        float(np.random.RandomState(5).rand()),
    ),
    "printing an array": ("import numpy as np\ndef f(a):\n    print(a)\n    return str(a)", (A,), str(A)),
    "numpy errors": (
        "import numpy as np\ndef f():\n    with np.errstate(divide='ignore'):\n"
        "        return float(np.nan_to_num(np.log(np.zeros(1)), neginf=-1)[0])",
        (),
        -1.0,
    ),
    "percentile, histogram, unique": (
        "import numpy as np\ndef f(a): return [np.percentile(a, 50), np.histogram(a, 2)[0], np.unique(a // 2)]",
        (A,),
        [2.5, np.array([3, 3]), np.array([0.0, 1.0, 2.0])],
    ),
    "testing": ("import numpy as np\ndef f(a):\n    np.testing.assert_allclose(a, a)\n    return 1", (A,), 1),
    "math": ("import math\ndef f(x): return math.hypot(x, 4) + math.gcd(12, 18)", (3,), 11.0),
    "cmath": ("import cmath\ndef f(): return round(abs(cmath.exp(1j)), 9)", (), 1.0),
    "random": ("import random\nrng = random.Random(1)\ndef f(): return rng.randrange(100)", (), 17),
    "itertools": (
        "import itertools\ndef f(): return list(itertools.permutations([1, 2], 2))",
        (),
        [(1, 2), (2, 1)],
    ),
    "collections": (
        "from collections import Counter, defaultdict, deque, OrderedDict, namedtuple\n"
        "def f(s):\n    d = defaultdict(list)\n    for c in s: d[c].append(1)\n"
        "    P = namedtuple('P', 'x y')\n"
        "    return [dict(Counter(s)), dict(d), list(deque(s, 1)), dict(OrderedDict(a=1)), P(1, 2).y]",
        ("aab",),
        [{"a": 2, "b": 1}, {"a": [1, 1], "b": [1]}, ["b"], {"a": 1}, 2],
    ),
    "namedtuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: float\n"
        "def f(x): return {P(x, 0.5): [P(1, 2)]}",
        (3,),
        {(3, 0.5): [(1, 2)]},
    ),
    "frozenset": ("def f(x): return [frozenset(x), {'a': frozenset()}]", ([1, 2],), [{1, 2}, {"a": set()}]),
    "dicts that count": (
        "from collections import Counter, OrderedDict, defaultdict\n"
        "def f(s): return [Counter(s), OrderedDict(a=1), defaultdict(list, b=[])]",
        ("aab",),
        [{"a": 2, "b": 1}, {"a": 1}, {"b": []}],
    ),
    "dataclasses": (
        "from dataclasses import dataclass, field, asdict\n@dataclass(order=True)\nclass P:\n    x: int\n"
        "    y: list = field(default_factory=list)\ndef f(): return asdict(P(1, [2]))",
        (),
        {"x": 1, "y": [2]},
    ),
    "annotations from the future": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass N:\n"
        "    next: N | None = None\ndef f(): return N(N()).next.next",
        (),
        None,
    ),
    "typing": (
        "from typing import Dict, List, NamedTuple, Optional, TypedDict\nclass P(NamedTuple):\n    x: int\n"
        "def f(x: Optional[List[int]] = None) -> Dict[str, int]: return {'x': P(3).x}",
        (),
        {"x": 3},
    ),
    "abstract class": (
        "from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def g(self): ...\n"
        "class B(A):\n    def g(self): return type(self).__name__\ndef f(): return B().g()",
        (),
        "B",
    ),
    "regular expression": (
        "import re\ndef f(s): return re.findall(r'(\\w)(\\d+)', s)",
        ("a1 b22",),
        [("a", "1"), ("b", "22")],
    ),
    "json": (
        "import json\ndef f(x): return json.loads(json.dumps(x))",
        ({"a": [1, None]},),
        {"a": [1, None]},
    ),
    "heapq": (
        "import heapq\ndef f(x):\n    heapq.heapify(x)\n    return [heapq.heappop(x) for _ in range(3)]",
        ([3, 1, 2],),
        [1, 2, 3],
    ),
    "functools": (
        "from functools import reduce, partial\nimport operator\ndef f(x): return partial(reduce, operator.mul)(x)",
        ([2, 3, 4],),
        24,
    ),
    "lru_cache": (
        "from functools import lru_cache\n@lru_cache(None)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)",
        (90,),
        2880067194370816120,
    ),
    "statistics": (
        "import statistics\ndef f(x): return [statistics.mean(x), statistics.stdev(x)]",
        ([1.0, 2.0, 3.0],),
        [2.0, 1.0],
    ),
    "copy": (
        "import copy\ndef f(x):\n    y = copy.deepcopy(x)\n    y[0].append(1)\n    return [x, y]",
        ([[]],),
        [[[]], [[1]]],
    ),
    "formatting": (
        "def f(x): return f'{x:08.3f}|{x!r:>6}|{1234567:,}|%s' % 'a' + '{:e}'.format(x)",
        (2.5,),
        "0002.500|   2.5|1,234,567|a2.500000e+00",
    ),
    "string methods": (
        "import string, textwrap\ndef f(s): return textwrap.fill(string.capwords(s), 6)",
        ("ab cd ef",),
        "Ab Cd\nEf",
    ),
    "class": (
        "class C:\n    n = 0\n    def __init__(self): C.n += 1\n    @property\n    def p(self): return C.n\ndef f(): C(); return C().p",
        (),
        2,
    ),
    "generator": ("def g(n):\n    for i in range(n): yield i * i\ndef f(n): return sum(g(n))", (5,), 30),
    "closure": ("def make(k):\n    def add(x): return x + k\n    return add\nf = make(2)", (3,), 5),
    "lambda": ("f = lambda x, y=2, *z: [x, y, len(z)]", (1, 5, 6), [1, 5, 1]),
    "callable object": ("class F:\n    def __call__(self, x): return x + 1\nf = F()", (1,), 2),
    "recursion": ("def f(n): return 1 if n == 0 else n * f(n - 1)", (20,), math.factorial(20)),
    "recursion of 800": ("def f(n): return 0 if n == 0 else 1 + f(n - 1)", (800,), 800),
    "more recursion": (
        "import sys\nsys.setrecursionlimit(6000)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)",
        (5000,),
        5000,
    ),
    "globals": (
        "seen = []\ndef f(x):\n    global total\n    total = sum(seen) + x\n    seen.append(x)\n    return total",
        (3,),
        3,
    ),
    "printing": (
        "import sys\ndef f():\n    print('hello', flush=True)\n    sys.stdout.write('x')\n    sys.stderr.write('y')\n    return 1",
        (),
        1,
    ),
    "reads no input": ("def f():\n    try: return input()\n    except EOFError: return 'none'", (), "none"),
    "main block": (
        "def f(): return __name__ == '__main__'\nif __name__ == '__main__':\n    raise SystemExit(1)",
        (),
        False,
    ),
    "import in function": (
        "def f():\n    import math, numpy as np\n    from collections import deque\n    return math.floor(np.pi) + len(deque([1]))",
        (),
        4,
    ),
    "optional import": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\ndef f(): return torch is None",
        (),
        True,
    ),
    "dates": (
        "from datetime import datetime, timedelta\ndef f(): return (datetime(2024, 2, 28) + timedelta(days=2)).strftime('%Y-%m-%d %A')",
        (),
        "2024-03-01 Friday",
    ),
    "parse a date": (
        "import datetime as d\ndef f(s): return d.datetime.strptime(s, '%d %b %Y').isoformat()",
        ("05 Mar 2021",),
        "2021-03-05T00:00:00",
    ),
    "now": (
        "import time, datetime\ndef f():\n    s = time.perf_counter(); time.sleep(0.001)\n    return time.perf_counter() > s and datetime.datetime.now().year > 2000",
        (),
        True,
    ),
    "decimal": (
        "from decimal import Decimal, getcontext\ndef f():\n    getcontext().prec = 6\n    return str(Decimal(1) / Decimal(7))",
        (),
        "0.142857",
    ),
    "fractions": (
        "from fractions import Fraction\ndef f(): return str(Fraction(1, 3) + Fraction(1, 6))",
        (),
        "1/2",
    ),
    "enum": (
        "from enum import Enum, IntEnum, auto\nclass D(Enum):\n    UP = auto()\nclass E(IntEnum):\n    A = 3\ndef f(): return [D.UP.name, int(E.A)]",
        (),
        ["UP", 3],
    ),
    "bisect": ("import bisect\ndef f(x): return bisect.bisect_left(x, 3)", ([1, 2, 4],), 2),
    "hashing": (
        "import hashlib\ndef f(s): return hashlib.sha256(s.encode()).hexdigest()[:8]",
        ("a",),
        "ca978112",
    ),
    "array and struct": (
        "import array, struct\ndef f(): return [array.array('d', [1.5])[0], struct.unpack('<H', b'\\x01\\x02')[0]]",
        (),
        [1.5, 513],
    ),
    "encodings": (
        "def f(s): return [s.encode(e).decode(e) for e in ('utf-8', 'latin-1', 'utf-16', 'ascii')]",
        ("abc",),
        ["abc"] * 4,
    ),
    "string io": (
        "import io\ndef f():\n    b = io.StringIO()\n    print('a', file=b)\n    return b.getvalue()",
        (),
        "a\n",
    ),
    "catches exceptions": (
        "def f(x):\n    try: return 1 / x\n    except ZeroDivisionError as e: return str(e)\n    finally: pass",
        (0,),
        "division by zero",
    ),
    "own exception": (
        "class E(Exception): pass\ndef f():\n    try: raise E('a') from ValueError()\n    except E as e: return type(e.__cause__).__name__",
        (),
        "ValueError",
    ),
    "context manager": (
        "from contextlib import contextmanager\n@contextmanager\ndef c(): yield 3\ndef f():\n    with c() as x: return x",
        (),
        3,
    ),
    "match": (
        "def f(x):\n    match x:\n        case {'a': [1, *rest]}: return rest\n        case _: return None",
        ({"a": [1, 2, 3]},),
        [2, 3],
    ),
    "walrus, unpacking, comprehension": (
        "def f(x): return {k: w for k, v in x.items() if (w := v * 2) > 2}",
        ({"a": 1, "b": 2},),
        {"b": 4},
    ),
    "logging and warnings": (
        "import logging, warnings\ndef f():\n    logging.warning('x'); warnings.warn('y')\n    return 1",
        (),
        1,
    ),
    "inspects itself": (
        "import inspect\ndef f(a, b=1): return [list(inspect.signature(f).parameters), inspect.getsource(f).count('f(')]",
        (0,),
        [["a", "b"], 2],
    ),
    "pickles in memory": (
        "import pickle\nclass P:\n    x = 1\ndef f(): return pickle.loads(pickle.dumps(P())).x",
        (),
        1,
    ),
    "traceback": (
        "import traceback\ndef f():\n    try: 1 / 0\n    except Exception: return traceback.format_exc().splitlines()[-1]",
        (),
        "ZeroDivisionError: division by zero",
    ),
    "asserts": ("def f(x):\n    assert x > 0, 'positive'\n    return x", (1,), 1),
    "eval of its own": ("def f(x): return eval('x + 1', {'x': x})", (1,), 2),
    "memory to and fro": (
        "import numpy as np\ndef f():\n    for _ in range(20):\n        a = np.ones(10_000_000)\n        del a\n    return 1",
        (),
        1,
    ),
    "breadth-first search": (
        "from collections import deque\ndef f(grid):\n    q, seen = deque([((0, 0), 0)]), {(0, 0)}\n    while q:\n"
        "        (r, c), d = q.popleft()\n        if grid[r][c] == 'G': return d\n"
        "        for a, b in ((r+1, c), (r-1, c), (r, c+1), (r, c-1)):\n"
        "            if 0 <= a < len(grid) and 0 <= b < len(grid[0]) and grid[a][b] != '#' and (a, b) not in seen:\n"
        "                seen.add((a, b)); q.append(((a, b), d + 1))\n    return -1",
        (["S.#", "#..", "..G"],),
        4,
    ),
    "dense reward": (
        "import numpy as np\nfrom typing import Tuple, Dict\ndef f(pos: np.ndarray, goal: np.ndarray) -> Tuple[float, Dict]:\n"
        "    d = np.linalg.norm(goal - pos)\n    parts = {'distance': -d, 'near': np.exp(-d / 0.5)}\n"
        "    return float(sum(parts.values())), parts",
        (np.zeros(2), np.zeros(2)),
        (1.0, {"distance": -0.0, "near": 1.0}),
    ),
}
