"""Leases, by which only one of several threads and processes with the same file of answers sends a request.

A lease is a row of the file: a question, the process that asks it, and a time until which the others wait.
The process renews its leases while it runs, so a slow model keeps them. If the process is killed, its
questions become free as soon as another process on the same machine notices, or when the time is over.
"""

from __future__ import annotations

import itertools
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial

from hunch.lm.answers.table import Key, among, checksum

SECONDS = 30.0
"""Seconds after which a lease ends if it is not renewed."""
BEAT = 5.0
"""Seconds between renewals."""
LEASES = """
CREATE TABLE IF NOT EXISTS leases (
    request TEXT NOT NULL,
    sample INTEGER NOT NULL,
    holder TEXT NOT NULL,       -- host:process:number
    until REAL NOT NULL,        -- Unix time
    PRIMARY KEY (request, sample)
) WITHOUT ROWID"""
_numbers = itertools.count()


class Leases:
    """The leases of this process in one file.

    Args:
        work: Calls a function with the file's connection; returns None if there is no connection.
    """

    def __init__(self, work: Callable[[Callable[[sqlite3.Connection], object]], object]) -> None:
        self._work = work
        self._held: dict[str, set[Key]] = {}
        self._beating: threading.Thread | None = None

    def claim(self, keys: Sequence[Key]) -> tuple[str, list[Key]]:
        """Take leases on the keys that are free; return the name of the holder, and these keys.

        If the file cannot be used, all keys are returned.
        """
        holder = f"{_host()}:{os.getpid()}:{next(_numbers)}"
        taken = self._work(partial(_take, keys, holder))
        if not isinstance(taken, list):
            return holder, list(keys)
        if taken:
            self._held[holder] = set(taken)
            self._keep_beating()
        return holder, taken

    def remove(self, keys: Sequence[Key], link: sqlite3.Connection) -> None:
        """Remove the leases on answered questions from the file."""
        link.execute(LEASES)
        link.executemany("DELETE FROM leases WHERE request = ? AND sample = ?", keys)

    def answered(self, keys: Iterable[Key]) -> None:
        """Forget leases whose answers have been stored; storing has removed them from the file."""
        answered = set(keys)
        for keys_of_holder in list(self._held.values()):
            keys_of_holder -= answered

    def release(self, holder: str) -> None:
        """Release the leases that a holder still has."""
        if self._held.pop(holder, None):
            self._work(partial(_drop, holder))

    def _keep_beating(self) -> None:
        if self._beating is None or not self._beating.is_alive():
            self._beating = threading.Thread(target=self._beat, name="hunch-leases", daemon=True)
            self._beating.start()

    def _beat(self) -> None:
        """Renew the leases for as long as there are any."""
        while True:
            time.sleep(BEAT)
            holders = [holder for holder, keys_of_holder in list(self._held.items()) if keys_of_holder]
            if not holders:
                return
            self._work(partial(_renew, holders))


def _take(keys: Sequence[Key], holder: str, link: sqlite3.Connection) -> list[Key]:
    link.execute(LEASES)
    if not _free(keys, link):  # without waiting for a process that writes
        return []
    with link:
        link.execute("BEGIN IMMEDIATE")
        rows = among(keys, "answers", "request, sample, value, checksum", link)
        answered = {(r, s) for r, s, value, stored in rows if stored == checksum((r, s), value)}
        free = [key for key in _free(keys, link) if key not in answered]
        until = time.time() + SECONDS
        insert = "INSERT OR REPLACE INTO leases (request, sample, holder, until) VALUES (?,?,?,?)"
        link.executemany(insert, [(*key, holder, until) for key in free])
    return free


def _free(keys: Sequence[Key], link: sqlite3.Connection) -> list[Key]:
    now = time.time()
    rows = among(keys, "leases", "request, sample, holder, until", link)
    held = {
        (request, sample)
        for request, sample, holder, until in rows
        # Later than any: the clock was set back. Of another type: no lease.
        if isinstance(until, int | float) and now < until < now + 2 * SECONDS and _lives(holder)
    }
    return [key for key in keys if key not in held]


def _drop(holder: str, link: sqlite3.Connection) -> None:
    with link:
        link.execute("DELETE FROM leases WHERE holder = ?", (holder,))


def _renew(holders: Sequence[str], link: sqlite3.Connection) -> None:
    with link:
        until = time.time() + SECONDS
        link.executemany("UPDATE leases SET until = ? WHERE holder = ?", [(until, h) for h in holders])


def _lives(holder: str) -> bool:
    """Return False if the holder's process was on this machine and has ended."""
    host, _, number = str(holder).rpartition(":")[0].rpartition(":")
    if not number.isdecimal():
        return False  # we did not write it
    if host != _host() or os.name != "posix":  # elsewhere os.kill ends the process
        return True
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's process
        return True
    return True


@cache
def _host() -> str:
    """Return a name for this machine and, on Linux, its process namespace: containers have their own."""
    try:
        return f"{socket.gethostname()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return socket.gethostname()
