"""A scripted solution with full knowledge of the game."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from hunch.envs.household.house import bits
from hunch.envs.household.simulator import Simulator


def plan(simulator: Simulator) -> tuple[str, ...] | None:
    """Return the commands of the shortest script that reaches the goal.

    Every suitable object is tried with every suitable receptacle (or lamp). The game itself is not changed.

    Returns:
        The commands, empty if the goal is already reached, or None if no script reaches it.
    """
    if simulator.won:
        return ()
    scripts = (script.commands for script in _scripts(simulator) if script.possible and script.simulator.won)
    return min(map(tuple, scripts), key=lambda commands: (len(commands), commands), default=None)


def _scripts(simulator: Simulator) -> Iterator[_Script]:
    house, kind = simulator.house, simulator.house.problem.goal.kind
    at_hand = [o for o in bits(house.goal_things) if house.pickupable >> o & 1 or o == simulator.held]
    for targets in bits(house.goal_targets):
        for things in permutations(at_hand, 2 if kind == "picktwo" else 1):
            script = _Script(simulator)
            if kind == "examine":
                script.examine(things[0], targets)
            else:
                for thing in things:
                    script.bring(thing, targets, kind)
            yield script


class _Script:
    """Commands written down while they are tried on a copy of the game."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator.copy()
        self.commands: list[str] = []
        self.possible = True

    def bring(self, thing: int, receptacle: int, kind: str) -> None:
        treated = bool(self.simulator.treated(kind) >> thing & 1)
        if self.simulator.contents[receptacle] >> thing & 1 and treated:
            return
        self.fetch(thing)
        if not treated:
            self._treat(thing, kind)
        self._put(thing, receptacle)

    def examine(self, thing: int, lamp: int) -> None:
        stand = self._holder(lamp)
        self.fetch(thing)
        self._reach(stand)
        if not self.simulator.toggled >> lamp & 1:
            self._do(f"use {self.simulator.house.things[lamp]}")

    def fetch(self, thing: int) -> None:
        if self.simulator.held == thing:
            return
        holder = self._holder(thing)
        if self.simulator.held >= 0:
            self._put_away(holder)
        self._reach(holder)
        self._open(holder)
        house = self.simulator.house
        self._do(f"take {house.things[thing]} from {house.receptacles[holder]}")

    def _treat(self, thing: int, kind: str) -> None:
        house = self.simulator.house
        where = next(receptacles for verb, _, receptacles in house.treatments if verb == kind)
        receptacle = self._nearest(where)
        self._reach(receptacle)
        self._do(f"{kind} {house.things[thing]} with {house.receptacles[receptacle]}")

    def _put(self, thing: int, receptacle: int) -> None:
        house = self.simulator.house
        self._reach(receptacle)
        self._open(receptacle)
        self._do(house.put(house.things[thing], house.receptacles[receptacle]))

    def _put_away(self, destination: int) -> None:
        """Free the hand at the cheapest place: here, where we are going, or elsewhere; open ones first."""
        held, house = self.simulator.held, self.simulator.house
        there = house.place[destination]
        options = [r for r in bits(house.fits[held]) if house.place[r] >= 0]
        if options:
            self._put(held, min(options, key=lambda r: (self._effort(r) - (house.place[r] == there), r)))

    def _nearest(self, receptacles: int) -> int:
        options = [r for r in bits(receptacles) if self.simulator.house.place[r] >= 0]
        return min(options, key=self._effort, default=-1)

    def _effort(self, receptacle: int) -> int:
        house = self.simulator.house
        closed = house.openable & ~self.simulator.opened
        return (house.place[receptacle] != self.simulator.location) + (closed >> receptacle & 1)

    def _holder(self, thing: int) -> int:
        """The receptacle that holds a thing, or -1."""
        contents, place = self.simulator.contents, self.simulator.house.place
        return next((r for r, inside in enumerate(contents) if inside >> thing & 1 and place[r] >= 0), -1)

    def _reach(self, receptacle: int) -> None:
        house = self.simulator.house
        if receptacle >= 0 and house.place[receptacle] != self.simulator.location:
            self._do(f"go to {house.receptacles[receptacle]}")

    def _open(self, receptacle: int) -> None:
        house = self.simulator.house
        if receptacle >= 0 and house.openable & ~self.simulator.opened & 1 << receptacle:
            self._do(f"open {house.receptacles[receptacle]}")

    def _do(self, command: str) -> None:
        self.possible &= command in self.simulator.menu.moves
        self.commands.append(command)
        self.simulator.step(command)
