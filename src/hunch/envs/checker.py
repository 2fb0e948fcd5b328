"""Checks whether an environment fulfils the contract of text environments; names the first broken rule."""

from __future__ import annotations

import copy
import math
import random
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np

from hunch.core import HunchError, HunchWarning, InadmissibleActionError, UsageError
from hunch.envs.offers import OFFERS, acts, declared
from hunch.envs.text_wrapper import TextWrapper
from hunch.rl.action_texts import same_to_a_reader
from hunch.rl.world import TOLD, attributes_told

Env = gymnasium.Env[Any, Any]

RULES = {
    "shape": "reset(seed=...) returns (observation, info), step(action) returns (observation, reward, "
    "terminated, truncated, info), and info is a dict.",
    "observation": "The observation is a str.",
    "actions": "info['actions'] is a tuple of different, non-empty strings after reset and every step; only "
    "when the episode is over it may be empty or absent. No two of them look the same to a "
    "reader. Where any text is an action it is absent, and info['free_text'] is True.",
    "success": "info['success'] is True or False: wrap it in bool().",
    "task": "info['task'] is a str and stays the same within an episode, unless info['event'] of the step "
    "that changes it says the new one.",
    "event": "info['event'], if there is one, is a str.",
    "info": "info['player'] is the number of the player to move, info['rewards'] a finite float for each "
    "player, info['history'] earlier pairs of observation and action, info['pictures'] PNG files as bytes, "
    "info['action_descriptions'] texts by action, of some of the admissible ones. "
    "Call it by another name if you mean something else.",
    "kept": "What reset and step return is not changed afterwards: return a copy of each list, dict or array "
    "that the environment goes on using.",
    "offers": "offers, where it is declared, names all that the environment shows besides listed actions and "
    f"texts, out of {', '.join(sorted(OFFERS))}, and nothing that it never shows.",
    "reward": "The reward is a finite float: wrap it in float(). In a design problem that of a program that "
    "failed is nan.",
    "end": "terminated and truncated are True or False (wrap them in bool()), and never both True: an "
    "episode that terminates at its step limit is not truncated.",
    "admissible": "Every string in info['actions'] can be given to step, in every state.",
    "index": "step takes the index of an action in info['actions'] for its string.",
    "seed": "The same seed and the same actions give the same episode: take all chance from self.np_random, "
    "and leave nothing of the last episode behind in reset.",
    "copy": "copy.deepcopy gives an equal environment that shares nothing with the first; let it raise if it "
    "cannot.",
    "inadmissible": "An action that is not in info['actions'] raises hunch.core.InadmissibleActionError and "
    "leaves everything as it was: look at the action before anything changes.",
    "after the end": "step raises after the end of an episode, until reset is called.",
}
"""The rules by name, each with its text, in the order of the documentation."""

_PROBES = 3
_TEXTS = ("", "look around", "def act(state):\n    return 0\n")
"""Actions to try if any text is an action."""


class BrokenRuleError(UsageError):
    """An object breaks a rule of its contract.

    Attributes:
        rule: Name of the rule, a key of ``rules``.
        problem: What is wrong.
    """

    rules: ClassVar[Mapping[str, str]] = {}

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(rule, problem)
        self.rule, self.problem = rule, problem

    def __str__(self) -> str:
        return f"Broken rule {self.rule!r}: {self.problem}. The rule: {self.rules[self.rule]}"


class ContractError(BrokenRuleError):
    """An environment breaks a rule of its contract, see :data:`RULES`."""

    rules = RULES


class Frame(NamedTuple):
    """The result of a reset or step, which must not vary for the same seed and actions."""

    observation: str
    actions: tuple[str, ...] | None
    success: bool
    task: str
    event: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False

    @property
    def done(self) -> bool:
        """True if the episode ends here."""
        return self.terminated or self.truncated


class Played(NamedTuple):
    """A whole or partial episode; ``frames`` has one entry more than ``actions``."""

    seed: int
    actions: list[str]
    frames: list[Frame]


def check(env: Env, *, seed: int = 0, episodes: int = 3, steps: int = 30, seconds: float = math.inf) -> None:
    """Check that an environment fulfils the contract of text environments, :data:`RULES`.

    Random episodes are played and repeated: with the same seed, by index, on a copy if ``copy.deepcopy``
    works, with inadmissible actions in between, and once for every admissible action of a few states. This
    works with any environment, wrapped or not; call ``reset`` afterwards. It cannot detect problems that do
    not occur in these episodes, or differences between processes, such as the order of a set of strings.

    Args:
        env: The environment.
        seed: Seed of the first episode.
        episodes: Number of random episodes.
        steps: Maximum steps per episode; a longer episode is not played to its end.
        seconds: Time limit for all rules; others are not checked. If ``metadata["reproducible"]`` is False,
            rules that repeat an episode are left out.

    Raises:
        ContractError: if a rule is broken; the message has the problem and a remedy.

    Warns:
        HunchWarning: if the environment has names of the contract that do not go on to agents.
    """
    if not isinstance(env, gymnasium.Env):
        raise UsageError(f"check takes a Gymnasium environment, as hunch.make(ID) gives it, not {env!r}.")
    _play(env, seed, episodes, steps, seconds)
    if withheld := kept_back(env):
        warnings.warn(withheld, HunchWarning, stacklevel=2)


def _play(env: Env, seed: int, episodes: int, steps: int, seconds: float) -> None:
    """Play episodes, and examine each by all rules for which there is time."""
    start = time.monotonic()
    rules: tuple[Callable[[Env, Played], None], ...] = ()
    if env.metadata.get("reproducible", True):
        rules = _seed, _kept, _offers, _index, _inadmissible, _copy, _after_the_end, _admissible
    for i in range(episodes):
        episode = _wander(env, seed + i, steps, start + _PART * seconds)
        for examine in rules:
            if time.monotonic() - start > _MOST * seconds:
                return
            examine(env, episode)


def kept_back(env: Env) -> str:
    """Say what an environment has by a name of the contract and agents do not get; empty if nothing."""
    inner: Any = env.unwrapped
    wrapped = inner.env.unwrapped if isinstance(inner, TextWrapper) else inner
    entries = sorted(inner.withheld) if isinstance(inner, TextWrapper) else []
    passed = attributes_told(inner) if wrapped is inner else ()
    attributes = [name for name in TOLD if name not in passed and _is_set(wrapped, name)]
    sentences = []
    if entries:
        sentences.append(
            f"The info of the wrapped environment has {', '.join(entries)}, to which the contract gives a "
            "meaning of its own; agents do not get it. If it means the same, pass it on: "
            f"TextWrapper(..., info={tuple(entries)!r})."
        )
    if attributes and wrapped is inner:
        sentences.append(
            f"The environment has {', '.join(attributes)} as attributes, which agents do not get. If they "
            f"are meant for them, name them in the class: tells = {tuple(attributes)!r}."
        )
    elif attributes:
        sentences.append(
            f"The wrapped environment has {', '.join(attributes)} as attributes, which agents do not get. "
            "If they are meant for them, set them on the wrapper, as in wrapper.manual = '...'."
        )
    return " ".join(sentences)


def _is_set(env: Any, name: str) -> bool:
    """Return whether an environment has an attribute that holds anything."""
    value = getattr(env, name, None)
    return value is not None and not (isinstance(value, (str, list, tuple, dict, set)) and not value)


_PART = 0.05
"""Share of the time for one episode; a rule plays it up to three times, or every action of three states."""
_MOST = 0.5


def _wander(env: Env, seed: int, steps: int, until: float) -> Played:
    """Play an episode by random admissible actions."""
    rng = random.Random(seed)
    played = Played(seed, [], [_reset(env, seed)])
    while not played.frames[-1].done and len(played.actions) < steps and time.monotonic() < until:
        actions = played.frames[-1].actions
        played.actions.append(rng.choice(_TEXTS if actions is None else actions))
        played.frames.append(_step(env, played.actions[-1]))
        before, now = played.frames[-2:]
        announced = bool(now.task) and now.task in now.event
        _require("task", before.task == now.task or announced, f"{before.task!r} became {now.task!r}")
    return played


def _seed(env: Env, played: Played) -> None:
    for _ in range(2):
        _again(env, played, "seed", f"a second episode with seed {played.seed} differs")


def _kept(env: Env, played: Played) -> None:
    """Compare each info with what it was when the next step is over."""
    info = env.reset(seed=played.seed)[1]
    for action in played.actions:
        before = copy.deepcopy(_values(info))
        _, _, _, _, following = env.step(action)
        for name, value in _values(info).items():
            same = _is_same(value, before.get(name))
            _require("kept", same, f"step({action!r}) changed info[{name!r}] of the step before")
        info = following


def _values(info: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of info that hold plain values and arrays; other objects cannot be compared."""
    plain = (str, bytes, int, float, list, tuple, dict, np.ndarray, np.generic)
    return {name: value for name, value in info.items() if isinstance(value, plain)}


def _is_same(value: Any, before: Any) -> bool:
    """Return whether two plain values are equal; nan equals nan."""
    if isinstance(value, np.ndarray) or isinstance(before, np.ndarray):
        return np.array_equal(value, before) or repr(value) == repr(before)
    if isinstance(value, dict) and isinstance(before, dict):
        return value.keys() == before.keys() and all(_is_same(value[name], before[name]) for name in value)
    if isinstance(value, (list, tuple)) and isinstance(before, (list, tuple)):
        return len(value) == len(before) and all(map(_is_same, value, before))
    both_nan = value != value and before != before  # nan alone differs from itself
    return bool(value == before) or both_nan


def _offers(env: Env, played: Played) -> None:
    """Compare what is declared with all infos of the episode; that events are told may be rare."""
    offers = declared(env)
    if offers is None or declared(env.unwrapped) is None:  # a wrapper names what it adds, and not the rest
        return
    unknown = ", ".join(sorted(offers - OFFERS))
    _require("offers", not unknown, f"it names {unknown}")
    infos = [env.reset(seed=played.seed)[1], *(env.step(action)[4] for action in played.actions)]
    shown = {name for name in _KEYS if any(_is_shown(name, info) for info in infos)}
    shown |= {"wording"} if getattr(env.unwrapped, "wording", None) is not None else set()
    taken = {"free_text" if name == "programs" else name for name in offers}
    lacking = ", ".join(sorted(shown - taken))
    _require("offers", not lacking, f"the environment shows {lacking}, which it does not name")
    absent = ", ".join(sorted(taken - shown - {"events"}))
    _require("offers", not absent, f"it names {absent}, which was never shown")


_KEYS = {"events": "event", "raw": "raw", "pictures": "pictures", "free_text": "free_text"}
"""Where ``info`` holds what an environment may offer."""


def _is_shown(name: str, info: dict[str, Any]) -> bool:
    value = info.get(_KEYS[name])
    return value is not None if name == "raw" else bool(value)


def _index(env: Env, played: Played) -> None:
    _begin(env, played, "seed", f"an episode with seed {played.seed} differs")
    for t, action in enumerate(played.actions):
        if (actions := played.frames[t].actions) is None:
            return
        index = actions.index(action)
        frame = _step(env, index, "index")
        _compare("index", f"index {index} did not do what {action!r} does", frame, played.frames[t + 1])


def _inadmissible(env: Env, played: Played) -> None:
    """Before every step, try what is not admissible, and go on as if nothing had been."""
    _begin(env, played, "seed", f"an episode with seed {played.seed} differs")
    for t, action in enumerate(played.actions):
        for bad in _bad(played.frames[t].actions):
            _refused(env, bad)
        frame, problem = _step(env, action), f"inadmissible actions changed what {action!r} does"
        _compare("inadmissible", problem, frame, played.frames[t + 1])


def _bad(actions: Sequence[str] | None) -> tuple[Any, ...]:
    """What is admissible nowhere, and what is not admissible here."""
    if actions is None:
        return ()
    return "", f"no {actions[0]}, no action at all", -1, len(actions), None


def _refused(env: Env, bad: Any) -> None:
    try:
        env.step(bad)
    except InadmissibleActionError:
        return
    except Exception as error:
        raise ContractError("inadmissible", f"step({bad!r}) raised {_named(error)}") from error
    raise ContractError("inadmissible", f"step({bad!r}) raised nothing")


def _admissible(env: Env, played: Played) -> None:
    """Take every admissible action of a few states, each after playing up to the state anew."""
    n = len(played.actions)
    for t in random.Random(played.seed).sample(range(n), min(_PROBES, n)):
        for action in played.frames[t].actions or ():
            _again(env, played, "seed", f"an episode with seed {played.seed} differs", t)
            _step(env, action)


def _copy(env: Env, played: Played) -> None:
    """Copy in the middle of the episode; play the copy to the end, then the first, then the copy anew."""
    middle = len(played.actions) // 2
    _again(env, played, "seed", f"an episode with seed {played.seed} differs", middle)
    try:
        twin = copy.deepcopy(env)
    except Exception:
        return  # that an environment can be copied is no rule
    _go_on(twin, played, "copy", "a copy made in the middle of an episode goes on differently", middle)
    _go_on(env, played, "copy", "after its copy was played, the environment goes on differently", middle)
    _again(twin, played, "copy", f"an episode of a copy with seed {played.seed} differs")


def _after_the_end(env: Env, played: Played) -> None:
    last = played.frames[-1]
    if not last.done:
        return
    _again(env, played, "seed", f"an episode with seed {played.seed} differs")
    action = (last.actions or played.actions)[0]
    try:
        env.step(action)
    except Exception:
        return
    raise ContractError("after the end", f"the episode was over, and step({action!r}) raised nothing")


def _again(env: Env, played: Played, rule: str, problem: str, stop: int | None = None) -> None:
    """Play the first steps of an episode again, by default all; it has to be the same."""
    _begin(env, played, rule, problem)
    _go_on(env, played, rule, problem, 0, stop)


def _begin(env: Env, played: Played, rule: str, problem: str) -> None:
    _compare(rule, problem, _reset(env, played.seed), played.frames[0])


def _go_on(env: Env, played: Played, rule: str, problem: str, start: int, stop: int | None = None) -> None:
    """Play some of the steps of an episode again, from where the environment is."""
    for action, frame in zip(played.actions[start:stop], played.frames[start + 1 :], strict=False):
        _compare(rule, f"{problem} after {action!r}", _step(env, action), frame)


def _reset(env: Env, seed: int) -> Frame:
    observation, info = _called("shape", 2, f"reset(seed={seed})", lambda: env.reset(seed=seed))
    return _frame(observation, info)


def _step(env: Env, action: str | int, rule: str = "admissible") -> Frame:
    """Take an action that is admissible; ``rule`` is broken if it raises."""
    name = f"step({action!r})"
    observation, reward, terminated, truncated, info = _called(rule, 5, name, lambda: env.step(action))
    for flag in (terminated, truncated):
        _require("end", type(flag) is bool, f"{name} gave {flag!r} for terminated or truncated")
    _require("end", not (terminated and truncated), f"after {name} both are True")
    takes_programs = acts(declared(env)) == "program"
    failed = isinstance(reward, float) and math.isnan(reward) and takes_programs
    finite = isinstance(reward, float) and (math.isfinite(reward) or failed)
    _require("reward", finite, f"{name} gave {reward!r}, a {type(reward).__name__}")
    return _frame(observation, info, reward, terminated, truncated)


def _called(rule: str, size: int, name: str, call: Callable[[], Any]) -> Sequence[Any]:
    """Call the environment; ``rule`` is broken if that raises."""
    try:
        answer = call()
    except (Exception, SystemExit) as error:
        if isinstance(error, HunchError) and not isinstance(error, InadmissibleActionError):
            raise  # it says itself what is missing
        raise ContractError(rule, f"{name} raised {_named(error)}") from error
    _require("shape", isinstance(answer, tuple) and len(answer) == size, lambda: f"{name} gave {answer!r}")
    result: Sequence[Any] = answer
    return result


def _frame(
    observation: Any, info: Any, reward: float = 0.0, terminated: bool = False, truncated: bool = False
) -> Frame:
    """What was shown, if all of it is of the right type."""
    _require(
        "observation",
        isinstance(observation, str),
        lambda: f"{observation!r} is a {type(observation).__name__}",
    )
    _require("shape", isinstance(info, dict), lambda: f"info is {info!r}")
    over = terminated or truncated
    if info.get("actions") is None and not info.get("free_text") and over:
        info = {**info, "actions": ()}
    _require("actions", "actions" in info or info.get("free_text") is True, "info has no 'actions'")
    _entries(info)
    success, task, event = info.get("success"), info.get("task"), info.get("event", "")
    actions = _listed(info, observation, over)
    _require("event", isinstance(event, str), f"it is {event!r}")
    _require("success", type(success) is bool, f"it is {success!r}, a {type(success).__name__}")
    _require("task", isinstance(task, str), f"it is {task!r}")
    return Frame(observation, actions, success, task, event, reward, terminated, truncated)


def _entries(info: dict[str, Any]) -> None:
    """Check the entries of info that not every environment has."""
    player = info.get("player", 0)
    number = isinstance(player, (int, np.integer)) and not isinstance(player, bool)
    _require("info", number, f"info['player'] is {player!r}")
    rewards = info.get("rewards", ())
    several = isinstance(rewards, (list, tuple, np.ndarray))
    _require("info", several and all(map(_is_finite, rewards)), f"info['rewards'] is {rewards!r}")
    single = "rewards" in info and "player" not in info
    _require("info", not single, f"info['rewards'] is {rewards!r}, and there is no info['player']")
    history = info.get("history", ())
    pairs = isinstance(history, (list, tuple)) and all(map(_is_pair, history))
    _require("info", pairs, lambda: f"info['history'] is {history!r}")
    pictures = info.get("pictures", ())
    files = isinstance(pictures, (list, tuple)) and all(isinstance(data, bytes) for data in pictures)
    _require("info", files, lambda: f"info['pictures'] is {pictures!r}")
    described = info.get("action_descriptions", {})
    texts = isinstance(described, Mapping) and all(isinstance(text, str) for text in described.values())
    listed = texts and (not described or described.keys() <= set(info.get("actions") or ()))
    _require("info", listed, lambda: f"info['action_descriptions'] is {described!r}")


def _is_finite(reward: Any) -> bool:
    return isinstance(reward, float) and math.isfinite(reward)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(text, str) for text in pair)


def _listed(info: dict[str, Any], observation: str, over: bool) -> tuple[str, ...] | None:
    """The admissible actions, if they are of the right form; None if any text is one."""
    if "actions" not in info:
        return None
    _require("actions", not info.get("free_text"), "info has 'actions' and says 'free_text', too")
    actions: tuple[str, ...] = info["actions"]
    texts = isinstance(actions, tuple) and all(isinstance(action, str) and action for action in actions)
    _require("actions", texts, lambda: f"it is {actions!r}")
    _require("actions", len(set(actions)) == len(actions), lambda: f"one comes twice in {actions}")
    alike = _alike(actions)
    told_apart = alike is None or f"{alike[0]!a} and {alike[1]!a} cannot be told apart"
    _require("actions", told_apart is True, str(told_apart))
    _require("actions", bool(actions) or over, lambda: f"it is empty after {observation!r}")
    return actions


_alike = lru_cache(maxsize=4096)(same_to_a_reader)


def _compare(rule: str, problem: str, frame: Frame, expected: Frame) -> None:
    for name, now, before in zip(Frame._fields, frame, expected, strict=True):
        same = now == before or (now != now and before != before)  # two failed programs
        if not same:
            raise ContractError(rule, f"{problem}: {name} {now!r} instead of {before!r}")


def _require(rule: str, kept: bool, problem: str | Callable[[], str]) -> None:
    """Raise an error if a rule is not kept; a text that takes long to write is written only then."""
    if not kept:
        raise ContractError(rule, problem if isinstance(problem, str) else problem())


def _named(error: BaseException) -> str:
    said = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__} ({said})" if said else type(error).__name__
