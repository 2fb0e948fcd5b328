"""Keys with different hashes that Python's tables probe place by place."""

from functools import cache

import numpy as np


@cache
def slow_keys(n):
    """n ints: half lie on one way through a dict of n keys, and the other half goes along it."""
    size = 1 << (n * 3 // 2).bit_length()
    way = [0]
    while len(way) < n // 2:
        way.append((5 * way[-1] + 1) % size)
    place = np.full(size, n)
    place[way] = np.arange(len(way))
    rng, found = np.random.default_rng(0), np.zeros(0, np.uint64)
    while len(found) < n - len(way):
        hashes = rng.integers(1, 2**10, 400_000, dtype=np.uint64) * np.uint64(size)
        hashes += rng.choice(way[: n // 4], hashes.size).astype(np.uint64)
        found = np.union1d(found, hashes[_goes_along(hashes, place)])
    return way + rng.permutation(found)[: n - len(way)].tolist()


def _goes_along(hashes, place):
    """Whether a key finds no empty place until its hash is used up, and is then early on the way."""
    size, taken = np.uint64(len(place)), np.count_nonzero(place < len(place) // 2)
    rest, here = hashes.copy(), hashes % size
    goes = np.ones(len(hashes), bool)
    while rest.any():
        rest >>= np.uint64(5)
        here = (here * np.uint64(5) + rest + np.uint64(1)) % size
        goes &= place[here.astype(int)] < taken
    return goes & (place[here.astype(int)] < taken // 2)
