"""The household engine, with exactly the rules and texts of ALFWorld 0.4 on TextWorld, including oddities.

The oddities: ``use`` always turns a lamp on, a closed fridge cools and a closed microwave heats, objects
that lie about cannot be examined, a movable receptacle is always "normal" even if hot or clean, and ``look``
lists as "next to" the receptacles only objects that were taken from one of them and put into another at the
same place.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hunch.envs.household.house import House, Menu, bits, enumerate_names

NOTHING_HAPPENS = "Nothing happens."

# Where one of these appears in a task, as in some that people wrote, the engine's text breaks off.
_BREAK = re.compile(r'[;|"<>\[\]#{}]')

_HELP = """\
Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""


class Simulator:
    """A running game.

    Sets are bit masks over the house's numbers (see :mod:`hunch.envs.household.house`).

    Attributes:
        house: The constant part of the game.
        location: The agent's place.
        held: The object in hand, or -1.
        opened: The receptacles that are open.
        contents: Objects in each receptacle.
        lying: Objects at each place, outside receptacles.
        taken: Objects that were taken from each receptacle and not put back.
        clean, hot, cool, sliced, toggled: The objects in this state.
    """

    __slots__ = (
        "clean",
        "contents",
        "cool",
        "held",
        "hot",
        "house",
        "location",
        "lying",
        "menu",
        "opened",
        "sliced",
        "taken",
        "toggled",
    )

    def __init__(self, house: House) -> None:
        self.house = house
        self.location = house.start
        self.held = next((thing for _, thing in house.pairs("holds")), -1)
        self.opened = house.those("opened")
        self.contents = [0] * len(house.receptacles)
        for thing, receptacle in house.pairs("inreceptacle"):
            self.contents[receptacle] |= 1 << thing
        self.lying = [0] * len(house.locations)
        for thing, location in house.pairs("objectatlocation"):
            self.lying[location] |= 1 << thing
        self.taken = [0] * len(house.receptacles)
        self.clean, self.hot, self.cool = house.those("isclean"), house.those("ishot"), house.those("iscool")
        self.sliced, self.toggled = house.those("issliced"), house.those("istoggled")
        self.menu = self._menu()

    def copy(self) -> Simulator:
        """Return an independent game in the same state."""
        new = Simulator.__new__(Simulator)
        for name in Simulator.__slots__:
            setattr(new, name, getattr(self, name))
        new.contents, new.lying, new.taken = self.contents[:], self.lying[:], self.taken[:]
        return new

    @property
    def task(self) -> str:
        """The task in one sentence."""
        return self.house.problem.task

    @property
    def commands(self) -> tuple[str, ...]:
        """The admissible commands, sorted."""
        return self.menu.commands

    def introduction(self) -> str:
        """Return the first text of a game."""
        room = self._surroundings(self._all_receptacles())
        task = _BREAK.split(f"Your task is to: {self.house.problem.task}.")[0]
        return f"-= Welcome to TextWorld, ALFRED! =-\n\n{room}\n\n{task}"

    def step(self, command: str) -> str:
        """Execute a command and return the answer: "Nothing happens." if it is not admissible."""
        move = self.menu.moves.get(command.strip())
        if move is None:
            return NOTHING_HAPPENS
        text = _EFFECTS[move.verb](self, move.thing, move.receptacle)
        self.menu = self._menu()
        return text

    @property
    def won(self) -> bool:
        """True if the goal is reached."""
        house, kind = self.house, self.house.problem.goal.kind
        if kind == "examine":
            lit = house.goal_targets & self.toggled
            here = any(self.contents[r] & lit for r in house.at[self.location])
            return here and self.held >= 0 and bool(house.goal_things >> self.held & 1)
        things = house.goal_things & self.treated(kind)
        placed = (self.contents[r] & things for r in bits(house.goal_targets))
        return any(inside.bit_count() > 1 for inside in placed) if kind == "picktwo" else any(placed)

    def treated(self, kind: str) -> int:
        """Return the set of objects in the state (such as clean or hot) that a kind of goal requires."""
        return {"clean": self.clean, "heat": self.hot, "cool": self.cool}.get(kind, -1)

    def _menu(self) -> Menu:
        house, here = self.house, self.location
        at = house.at[here]
        knife_in_hand = self.held >= 0 and house.knives >> self.held & 1
        return house.menu(
            here,
            self.held,
            sum(self.opened & 1 << r for r in at),
            tuple([self.contents[r] for r in at]),
            self.lying[here] & house.sliceable if knife_in_hand else 0,
        )

    def _look(self, thing: int, receptacle: int) -> str:
        # In the middle of the room the engine does not repeat the receptacles.
        return self._surroundings("nothing")

    def _surroundings(self, in_view: str) -> str:
        house, at = self.house, self.house.at[self.location]
        if not at:
            return f"You are in the middle of a room. Looking quickly around you, you see {in_view}."
        facing = enumerate_names([house.receptacles[r] for r in at])
        displaced = [
            f"a {house.things[o]}"
            for o in bits(self.lying[self.location])
            for r in at
            if self.taken[r] >> o & 1
        ]
        return f"You are facing the {facing}. Next to it, you see {enumerate_names(displaced)}."

    def _all_receptacles(self) -> str:
        house = self.house
        return enumerate_names(
            [f"a {name}" for name, place in zip(house.receptacles, house.place, strict=True) if place >= 0]
        )

    def _examine(self, thing: int, receptacle: int) -> str:
        house, name = self.house, self.house.receptacles[receptacle]
        if not house.openable >> receptacle & 1:
            return f"On the {name}, you see {house.listing(self.contents[receptacle])}."
        if not self.opened >> receptacle & 1:
            return f"The {name} is closed."
        return f"The {name} is open. In it, you see {house.listing(self.contents[receptacle])}."

    def _inspect(self, thing: int, receptacle: int) -> str:
        house, name = self.house, self.house.things[thing]
        if house.movable_receptacles >> thing & 1:
            return f"This is a normal {name}. In it, you see {house.listing(house.inside[thing])}."
        clean, sliced = self.clean >> thing & 1, self.sliced >> thing & 1
        warmth = "hot" if self.hot >> thing & 1 else "cool" if self.cool >> thing & 1 else ""
        words = [warmth] * bool(warmth) + ["clean"] * clean
        if sliced and (words or house.sliceable >> thing & 1):
            return f"This is a {' and '.join(words)}{' ' * bool(words)}sliced {name}."
        if words:
            return f"This is a {'cold' if words == ['cool'] else ' and '.join(words)} {name}."
        if (house.toggleable & self.toggled) >> thing & 1:
            return f"This {name} is on."
        return f"There's nothing special about {name}."

    def _go(self, thing: int, receptacle: int) -> str:
        house = self.house
        self.location = house.place[receptacle]
        by_place = house.problem.wording.arrive_at_place
        name = house.locations[self.location] if by_place else house.receptacles[receptacle]
        return f"You arrive at {name}. {self._examine(thing, receptacle)}"

    def _open(self, thing: int, receptacle: int) -> str:
        self.opened |= 1 << receptacle
        return f"You open the {self.house.receptacles[receptacle]}. {self._examine(thing, receptacle)}"

    def _close(self, thing: int, receptacle: int) -> str:
        self.opened &= ~(1 << receptacle)
        return f"You close the {self.house.receptacles[receptacle]}."

    def _take(self, thing: int, receptacle: int) -> str:
        self.contents[receptacle] &= ~(1 << thing)
        self.lying[self.location] &= ~(1 << thing)
        self.taken[receptacle] |= 1 << thing
        self.held = thing
        return f"You pick up the {self.house.things[thing]} from the {self.house.receptacles[receptacle]}."

    def _put(self, thing: int, receptacle: int) -> str:
        self.contents[receptacle] |= 1 << thing
        self.lying[self.location] |= 1 << thing
        self.taken[receptacle] &= ~(1 << thing)
        self.held = -1
        house = self.house
        return f"You {house.put(f'the {house.things[thing]}', f'the {house.receptacles[receptacle]}')}."

    def _clean(self, thing: int, receptacle: int) -> str:
        self.clean |= 1 << thing
        return f"You clean the {self.house.things[thing]} using the {self.house.receptacles[receptacle]}."

    def _heat(self, thing: int, receptacle: int) -> str:
        self.hot |= 1 << thing
        self.cool &= ~(1 << thing)
        return f"You heat the {self.house.things[thing]} using the {self.house.receptacles[receptacle]}."

    def _cool(self, thing: int, receptacle: int) -> str:
        self.cool |= 1 << thing
        self.hot &= ~(1 << thing)
        return f"You cool the {self.house.things[thing]} using the {self.house.receptacles[receptacle]}."

    def _use(self, thing: int, receptacle: int) -> str:
        self.toggled |= 1 << thing
        return f"You turn on the {self.house.things[thing]}."

    def _slice(self, thing: int, receptacle: int) -> str:
        self.sliced |= 1 << thing
        return f"You sliced the {self.house.things[thing]} with the {self.house.things[self.held]}."

    def _inventory(self, thing: int, receptacle: int) -> str:
        if self.held < 0:
            return "You are not carrying anything."
        return f"You are carrying: a {self.house.things[self.held]}."

    def _help(self, thing: int, receptacle: int) -> str:
        return _HELP


_EFFECTS: dict[str, Callable[[Simulator, int, int], str]] = {
    "look": Simulator._look,
    "inventory": Simulator._inventory,
    "help": Simulator._help,
    "examine": Simulator._examine,
    "inspect": Simulator._inspect,
    "go": Simulator._go,
    "open": Simulator._open,
    "close": Simulator._close,
    "take": Simulator._take,
    "put": Simulator._put,
    "clean": Simulator._clean,
    "heat": Simulator._heat,
    "cool": Simulator._cool,
    "use": Simulator._use,
    "slice": Simulator._slice,
}
