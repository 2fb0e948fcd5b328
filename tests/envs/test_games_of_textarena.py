"""Hostile moves in every game of TextArena that is installed: none ends a run, and none takes long."""

import copy
import math
import pickle
import time

import pytest

import hunch
from hunch.core import HunchError, UsageError
from hunch.envs import textarena
from hunch.envs.invalid import INVALID
from hunch.envs.textarena import LONGEST
from hunch.rl.rollout import Rollout

pytest.importorskip("textarena", reason="needs the extra 'textarena'")

from textarena.envs.registration import ENV_REGISTRY

SECONDS = 3.0
"""Seconds of the processor that a move may take, but for games that loop for ever."""
FILLED = LONGEST - 2
MOVES = (
    f"[{'9' * 5_000}]",
    f"[{'9' * 300} -{'9' * 300}]",
    f"[-{'9' * 4_299}]",
    f"[{' '.join('9' * 20 for _ in range(300))}]",
    "[1e999] [nan] [-inf] [0x10] [1_000]",
    "[²] [٣] [Ⅷ] [𝟘 𝟙]",
    "[-1] [-1 -1] [99999999999999999999, 99999999999999999999]",
    "[" * LONGEST,
    "[" * (LONGEST // 2) + "]" * (LONGEST // 2),
    "[a" * (LONGEST // 2),
    "(" * LONGEST,
    f"[{' ' * FILLED}]",
    f"[{'a ' * (FILLED // 2)}]",
    f"[{'1,' * (FILLED // 2)}]",
    f"[{'a' * FILLED}]",
    f"[{'-' * FILLED}]",
    "a" * (LONGEST + 1),
    "\0\x1b[2J\x07 [\ud7ff] \u202e[]\n[\n]",
    '{"move": [[[[[[]]]]]]} \\1 \\g<0> %s {0} {x.__class__}',
    "",
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(textarena, "SECONDS", 4.0)


def games():
    """The names of one game of each class."""
    by_class = {}
    for name in sorted(ENV_REGISTRY):
        by_class.setdefault(str(ENV_REGISTRY[name].entry_point), name)
    return sorted(by_class.values())


def meet(name):
    """Return what is wrong with a game's answers to hostile moves; None if it cannot be played here."""
    try:
        env = hunch.make(f"textarena:{name}")
        env.reset(seed=0)
    except UsageError:
        return None
    if fails(env):
        return None
    env.reset(seed=0)
    wrong = []
    for number, move in enumerate(MOVES):
        start = time.process_time()
        try:
            observation, reward, terminated, truncated, info = env.step(move)
            assert isinstance(observation, str)
            assert math.isfinite(reward)
            assert not (info["success"] and INVALID in info["event"].splitlines())
            if terminated or truncated:
                env.reset(seed=number)
        except Exception as error:  # nothing may come out of a game
            wrong.append(f"{name}, {move[:30]!r}: {type(error).__name__}: {error}"[:400])
            env.reset(seed=number)
        seconds = time.process_time() - start
        if seconds > SECONDS and "no answer within" not in info["event"]:
            wrong.append(f"{name}, {move[:30]!r}: {seconds:.1f} s")
    return wrong


def fails(env):
    """Whether a game fails at an ordinary move, too."""
    return "The game failed" in env.step("[0]")[4]["event"]


def test_there_are_twenty_hostile_moves():
    assert len({*MOVES}) == 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["GuessTheNumber-v0", "TicTacToe-v0", "Nim-v0", "Poker-v0", "Sudoku-v0"])
def test_hostile_moves_end_no_run(name):
    assert meet(name) == []


def test_a_game_that_loops_for_ever_is_cut_off(monkeypatch):
    monkeypatch.setattr(textarena, "SECONDS", 1.0)
    env = hunch.make("textarena:MarketEntryGame-v0")
    env.reset(seed=0)
    ended = False
    while not ended:
        _, _, terminated, ended, info = env.step("[-1]")
        assert not terminated
    assert info["event"].splitlines()[0].startswith(INVALID)
    assert "no answer within 1 seconds" in info["event"]
    env.reset(seed=0)
    env.step("[E]")  # another episode begins


def test_a_fixed_task_is_the_same_start_in_each_episode():
    env = hunch.make("textarena:FrozenLake-v0")
    free = {env.reset(seed=seed)[0] for seed in range(4)}
    fixed = {env.reset(seed=seed, options={"task_seed": 7})[0] for seed in range(4)}
    other, _ = env.reset(seed=0, options={"task_seed": 8})
    assert len(free) > 1
    assert len(fixed) == 1
    assert {other} != fixed


MIDDLE = ("[4]", "[0]", "[8]", "[0]", "[2]")
"""Moves of tic-tac-toe, of which one is refused."""


def test_a_game_is_pickled_in_the_middle_of_an_episode():
    env = hunch.make("textarena:TicTacToe-v0")
    env.reset(seed=0)
    env.step(MIDDLE[0])
    twin = pickle.loads(pickle.dumps(env))
    assert [twin.step(move) for move in MIDDLE[1:]] == [env.step(move) for move in MIDDLE[1:]]
    assert env.reset(seed=1) == twin.reset(seed=1) == copy.deepcopy(env).reset(seed=1)


def test_an_unknown_reset_option_is_refused_and_changes_nothing():
    env, twin = (hunch.make("textarena:TicTacToe-v0") for _ in range(2))
    for each in (env, twin):
        each.reset(seed=0)
    with pytest.raises(UsageError, match="no reset option 'sead'"):
        env.reset(seed=1, options={"sead": 3})
    assert [env.step(move) for move in MIDDLE] == [twin.step(move) for move in MIDDLE]


def test_what_games_print_is_not_shown(capsys):
    env = hunch.make("textarena:RushHour-v0")
    env.reset(seed=0)
    env = hunch.make("textarena:LogicPuzzle-v0")
    env.reset(seed=0)
    env.step("[people house1 X]")
    assert capsys.readouterr().out == ""


def test_games_go_to_worker_processes():
    seen = []
    for processes in (0, 2):
        envs = [hunch.make("textarena:TicTacToe-v0") for _ in range(2)]
        rollout = Rollout(envs, seed=0, processes=processes)
        try:
            seen.append([rollout.step([move, move]) for move in MIDDLE])
        finally:
            rollout.close()
    assert seen[0] == seen[1]


def test_a_game_that_always_fails_is_said():
    env = hunch.make("textarena:CharacterConclave-v0")
    for _ in range(2):
        env.reset(seed=0)
        assert env.step("hello")[3]
    env.reset(seed=0)
    with pytest.raises(HunchError, match="The game CharacterConclave-v0 failed"):
        env.step("hello")


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(8))
def test_hostile_moves_end_no_run_in_any_game(part):
    met = [meet(name) for name in games()[part::8]]
    wrong = [each for found in met if found for each in found]
    assert not wrong, "\n".join(wrong)
    assert sum(found is not None for found in met) > 5
