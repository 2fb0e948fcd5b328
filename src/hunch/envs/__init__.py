"""Text decision processes: Gymnasium environments whose observations and actions are text.

Importing this package registers them, so that ``gymnasium.make("hunch/FrozenLake-v0")`` works. An
environment's code is imported only when it is made, and so are ``TextEnv`` and ``Outcome``, ``TextWrapper``,
``DesignProblem``, ``History``, ``check`` and ``ContractError``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from hunch import lazy, plugins
from hunch.core import HunchError, UsageError
from hunch.extras import of_studies
from hunch.lm.rules import HOMES
from hunch.ranges import NonNegativeInt, check_value
from hunch.suggest import suggest

if TYPE_CHECKING:
    from hunch.envs.classes import *  # noqa: F403 - a stub, for type checkers

GROUP = "hunch.envs"
"""Entry-point group of packages that provide environments; a name is an id, its value ``module:Class``."""
OF_STUDIES = (
    *("Attack", "BabyAI-GoToLocal", "BabyAI-GoToObj", "BabyAI-GoToRedBall", "BabyAI-GoToRedBallGrey"),
    *("BabyAI-GoToRedBallNoDists", "BabyAI-GoToRedBlueBall", "BabyAI-OneRoomS8", "BabyAI-PickupDist"),
    *("BabyAI-PickupLoc", "BabyAI-PutNextLocal", "Bandit", "Bargaining", "Blocksworld", "Bulbs"),
    *("Compression", "Crafter", "CraftSkill", "DarkKeyToDoor", "DarkRoom", "DistractorChain", "DoorKey"),
    *("Ferry", "Game24", "GameCode", "Gripper", "Heuristic-CapSet", "HomeGrid", "KeyCorridor"),
    *("Logistics", "Miconic", "MiniCatch", "MiniGrid", "MiniInvaders", "Overcooked-Salad"),
    *("Overcooked-Tomato", "Pendulum", "PlanCode", "PointMass", "Prompting", "Proof", "Recipes", "Repair"),
    *("RewardDesign", "SaySelect", "SecretProperty", "SecretSkill", "Sokoban", "Strips", "TextCraft"),
    *("TextWorldExpress", "TinyHanabi", "Tug"),
)
_FOREIGN = {
    "mcp": "hunch.envs.mcp:MCP",
    "openenv": "hunch.envs.openenv:OpenEnv",
    "reasoning": "hunch.envs.reasoning:Reasoning",
    "textarena": "hunch.envs.textarena:TextArena",
}
"""Environments of others, named by kind and place: mcp:URL or mcp:COMMAND, openenv:URL, reasoning:TASK,
textarena:GAME."""
_SUCH = {
    "mcp": "mcp:http://127.0.0.1:8000/mcp",
    "openenv": "openenv:http://127.0.0.1:8000",
    "reasoning": "reasoning:gcd",
    "textarena": "textarena:TicTacToe-v0",
}
_HOMES = lazy.homes(
    {
        "base": "Outcome TextEnv",
        "checker": "ContractError check",
        "design": "DesignProblem",
        "reading": "Read Schema",
        "text_wrapper": "TextWrapper require_text",
        "tools": "Tool Tools",
        "wrappers": "History Pictured Written",
    }
)
__all__ = sorted((*_HOMES, "creator", "describe", "make", "names", "options_of"))

_ENTRY_POINTS = {
    "hunch/FrozenLake-v0": "hunch.envs.frozen_lake:FrozenLake",
    "hunch/Household-Pick-v0": "hunch.envs.household.env:HouseholdPick",
    "hunch/Household-Examine-v0": "hunch.envs.household.env:HouseholdExamine",
    "hunch/Household-Clean-v0": "hunch.envs.household.env:HouseholdClean",
    "hunch/Household-Heat-v0": "hunch.envs.household.env:HouseholdHeat",
    "hunch/Household-Cool-v0": "hunch.envs.household.env:HouseholdCool",
    "hunch/Household-PickTwo-v0": "hunch.envs.household.env:HouseholdPickTwo",
    "hunch/Household-v0": "hunch.envs.household.env:Household",
    "hunch/Kitchen-v0": "hunch.envs.kitchen.env:Kitchen",
    "hunch/KitchenSkill-v0": "hunch.envs.kitchen.env:KitchenSkill",
    "hunch/Chain-v0": "hunch.envs.icpi.chain:Chain",
    "hunch/Maze-v0": "hunch.envs.icpi.maze:Maze",
    "hunch/CartPole-v0": "hunch.envs.describers:CartPole",
    "hunch/Taxi-v0": "hunch.envs.describers:Taxi",
    "hunch/CliffWalking-v0": "hunch.envs.describers:CliffWalking",
    "hunch/Blackjack-v0": "hunch.envs.describers:Blackjack",
    "hunch/Craft-v0": "hunch.envs.craft:Craft",
    "hunch/Prompts-v0": "hunch.envs.prompts:Prompts",
    "hunch/Constraints-v0": "hunch.envs.constraints:Constraints",
    "hunch/Reviews-v0": "hunch.envs.reviews:Reviews",
    "hunch/Rudeness-v0": "hunch.envs.rudeness:Rudeness",
    "hunch/Simplicity-v0": "hunch.envs.simplicity:Simplicity",
    "hunch/MatrixGame-v0": "hunch.envs.games:MatrixGame",
    "hunch/Ultimatum-v0": "hunch.envs.games:Ultimatum",
    "hunch/Heuristic-BinPacking-v0": "hunch.envs.design.bin_packing:BinPacking",
    "hunch/PolicyCode-v0": "hunch.envs.design.policy:PolicyCode",
    "hunch/RewardDesign-Gymnasium-v0": "hunch.envs.design.gym_reward:GymRewardDesign",
    "hunch/Transitions-v0": "hunch.envs.design.transition_file:Transitions",
    "hunch/WorldModelCode-v0": "hunch.envs.design.world_model:WorldModelCode",
}

HOMES |= {
    "errands": "hunch.envs.kitchen.errand_planner",
    "formaliser": "hunch.envs.proofs.formaliser",
    "frozenlake": "hunch.envs.frozen_lake_rule",
    "icpi": "hunch.envs.icpi.reader",
    "icpi-nearest": "hunch.envs.icpi.reader",
    "judge": "hunch.envs.games_judge",
    "mentor": "hunch.envs.craft_mentor",
    "modeller": "hunch.envs.design.modeller",
    "mutator": "hunch.envs.design.mutator",
    "player": "hunch.envs.craft_player",
    "recipes": "hunch.envs.craft_manual",
    "suggest": "hunch.envs.craft_goals",
    "writer": "hunch.envs.design.reward_writer",
}
"""Rules that know these environments, for models such as ``scripted:frozenlake``."""

_ENTRY_POINTS |= {name: point.value for name, point in plugins.installed(GROUP).items()}
for _id, _entry_point in _ENTRY_POINTS.items():
    # Gymnasium's own checker and order enforcement repeat what TextEnv does, and slow every step.
    gymnasium.register(_id, _entry_point, disable_env_checker=True, order_enforce=False)


if not TYPE_CHECKING:  # so that a wrong name is an error of types
    __getattr__ = lazy.importer(__name__, _HOMES)


def names() -> tuple[str, ...]:
    """Return the ids of the environments that come with Hunch, and of those that other packages add."""
    return tuple(_ENTRY_POINTS)


def make(
    id: str,
    *,
    history: int | None = None,
    written: bool = False,
    picture: bool = False,
    reader: str = "",
    opponent: str = "",
    **options: Any,
) -> gymnasium.Env[str, str | int]:
    """Make a text environment by its id: a built-in one, or any registered one that keeps the contract.

    Args:
        id: A Gymnasium id, such as ``"hunch/Household-Pick-v0"``; ``"module:id"`` first imports the module
            that registers it, and ``"module:Class"`` or ``"module:function"`` names what makes one.
        history: Number of earlier observation-action pairs in ``info["history"]`` (:class:`History`).
            Default: the recommendation in ``metadata["history"]``.
        written: Take any text as the action; an inadmissible one costs a step (:class:`Written`).
        picture: Draw each state, for models that read pictures (:class:`Pictured`).
        reader: Spec of a model that reads the pictures; its reading replaces the observation (:class:`Read`).
        opponent: Spec of a model that plays all seats but the first in a game of several players
            (:class:`Against`).
        **options: Options of the environment.

    Returns:
        The environment.

    Raises:
        UsageError: if there is no such environment, it has no such option, an option's
            value is invalid, or it is not a text environment.
    """
    from hunch.envs.text_wrapper import require_text  # the first environment that is made loads them
    from hunch.envs.wrappers import History, Pictured, Written  # as above

    spec = _spec(id)
    foreign = id if spec.id in _FOREIGN else ""
    _check_options(foreign or spec.id, options)
    check_value("history, the number of earlier observation-action pairs,", history, NonNegativeInt | None)
    check_value("written", written, bool)
    check_value("picture", picture, bool)
    if drawn := picture or bool(reader):
        _require_drawing(id)
        options["render_mode"] = "rgb_array"
    env: gymnasium.Env[str, str | int]
    try:
        env = gymnasium.make(spec, disable_env_checker=True, **options)
    except UsageError:
        raise
    except (TypeError, ValueError, LookupError) as error:
        if isinstance(error, TypeError) and "gymnasium.Env" in str(error):
            raise UsageError(f"{id} makes no environment: it has to be a gymnasium.Env.") from error
        if not options:
            raise HunchError(
                f"{id} cannot be made: {type(error).__name__}: {str(error).rstrip('.')}."
            ) from error
        stated = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise UsageError(f"{id} cannot be made with {stated}: {str(error).rstrip('.')}.") from error
    except HunchError:
        raise
    except Exception as error:  # a user's environment may raise anything
        raise HunchError(f"{id} cannot be made: {type(error).__name__}: {str(error).rstrip('.')}.") from error
    if foreign and env.unwrapped.spec:
        env.unwrapped.spec.id = foreign
    require_text(env)
    if drawn and env.render_mode != "rgb_array":  # a function says only now what it makes
        raise UsageError(f"{id} draws no pictures: leave out picture and reader.")
    env = Pictured(env) if drawn else env
    env = _read(env, reader) if reader else env
    env = _against(env, opponent) if opponent else env
    env = Written(env) if written else env
    n = env.metadata.get("history", 0) if history is None else history
    return History(env, n) if n else env


def _require_drawing(id: str) -> None:
    """Raise a UsageError if an environment is known to draw no pictures; a function has no metadata."""
    maker = creator(id)
    maker = maker.func if isinstance(maker, partial) else maker
    modes = getattr(maker, "metadata", {}).get("render_modes", ())
    if inspect.isclass(maker) and "rgb_array" not in modes:
        raise UsageError(f"{id} draws no pictures: leave out picture and reader.")
    known = options_of(id)
    if known is not None and "render_mode" not in known:
        raise UsageError(f"{id} draws no pictures, because it has no option render_mode.")


def _read(env: gymnasium.Env[str, str | int], spec: str) -> gymnasium.Env[str, str | int]:
    """Let a model read the pictures; it is loaded once for all environments."""
    from hunch.envs.reading import Read, schema_of, shared  # only with a model that reads pictures

    schema_of(env)
    return Read(env, shared(spec), spec)


def _against(env: gymnasium.Env[str, str | int], spec: str) -> gymnasium.Env[str, str | int]:
    """Let a model play the other seats; it is loaded once for all environments."""
    from hunch.envs.opponent import Against  # only in games against a model
    from hunch.envs.reading import shared  # as above

    return Against(env, shared(spec), spec)


def describe(id: str) -> str:
    """Return the task of an environment in one line: the first line of its docstring.

    Raises:
        UsageError: if there is no such environment.
    """
    maker = creator(id)
    return (inspect.getdoc(getattr(maker, "func", maker)) or "").partition("\n")[0]


def full_id(spec: EnvSpec) -> str:
    """Return the id by which another process can make an environment; it includes the module."""
    maker = spec.entry_point
    home = maker.partition(":")[0] if isinstance(maker, str) else getattr(maker, "__module__", "")
    module = _MODULES.get(spec.id, home)
    ours = module.partition(".")[0] in ("", "__main__", "gymnasium", "hunch")
    known = ours or spec.id in _ENTRY_POINTS or ":" in spec.id
    return spec.id if known else f"{module}:{spec.id}"


_MODULES: dict[str, str] = {}
"""The module that registered an environment, by its id, where one was named."""


def _spec(id: str) -> EnvSpec:
    if not isinstance(id, str):
        raise UsageError(f"An environment is named by its id, a text, not {id!r}.")
    kind, colon, place = id.partition(":")
    if colon and kind in _FOREIGN:
        if not place:
            raise UsageError(f"{id} names nothing: say which, as in {_SUCH[kind]}.")
        return _foreign(kind, place)
    module, _, name = id.rpartition(":")
    file = module or name
    if file.endswith(".py") and file.count(".") == 1:
        made = f"{file.removesuffix('.py')}:{name if module else 'NAME'}"
        raise UsageError(
            f"An environment in a file is named without .py: write {made}, a function or class in {file}."
        )
    if module:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # importing a user's module may raise anything
            top = module.partition(".")[0]
            if isinstance(error, ModuleNotFoundError) and error.name in (module, top):
                # Where the file is here, the command adds what to do.
                is_here = Path(f"{top}.py").is_file() or Path(top).is_dir()
                where = (
                    "is not on the import path"
                    if is_here
                    else f"cannot be found, and there is no file {top}.py in the current folder"
                )
                said = f"{id} needs the module {error.name}, which {where}."
                raise UsageError(said) from error
            problem = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"{module}, which should register {name}, cannot be imported: {problem}."
            ) from error
        _MODULES[name] = module
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error:
        if module:
            maker = getattr(sys.modules[module], name, None)
            if isinstance(maker, type) and not issubclass(maker, gymnasium.Env):
                said = f"The class {id} is not an environment: it must inherit from gymnasium.Env."
                raise UsageError(said) from None
            if isinstance(maker, gymnasium.Env):
                said = f"{id} is a single environment; name its class, or a function that makes one."
                raise UsageError(said) from None
            if callable(maker):
                return _registered(id)
            said = f"{module} has no class or function {name!r} and registers no such environment."
            raise UsageError(said) from None
        if name.removeprefix("hunch/").removesuffix("-v0") in OF_STUDIES:
            raise of_studies(name) from None
        if name.isidentifier() and Path(f"{name}.py").is_file():
            said = f"{name} is a file: write {name}:NAME, a function or class in {name}.py."
            raise UsageError(said) from None
        hint = suggest(name, gymnasium.registry.keys(), listed=names(), where="hunch envs")
        if "/" in name and not name.startswith("hunch/"):
            hint = hint.rstrip(".")
            hint += f". If a module of yours registers it, name the module, too: MODULE:{name}."
        raise UsageError(f"There is no environment {name!r}; {hint}") from None


@cache
def _foreign(kind: str, place: str) -> EnvSpec:
    """Return the spec of an environment of another library or server; Gymnasium's own ids hold no URL."""
    made: Any = load_env_creator(_FOREIGN[kind])
    maker: Any = partial(made, place)
    return EnvSpec(kind, maker, disable_env_checker=True, order_enforce=False)


def _registered(id: str) -> EnvSpec:
    """Return the spec of a class or function that registers nothing: its ``module:name`` is its id."""
    if id not in gymnasium.registry:
        gymnasium.register(id, id, disable_env_checker=True, order_enforce=False)
    return gymnasium.spec(id)


def creator(id: str) -> Any:
    """Return the class or function that makes an environment.

    Raises:
        UsageError: if there is no such environment.
    """
    return _creator(_spec(id))


def _creator(spec: EnvSpec) -> Any:
    if not isinstance(spec.entry_point, str):
        return spec.entry_point
    try:
        return load_env_creator(spec.entry_point)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{spec.id} cannot be made: {spec.entry_point} cannot be imported ({error})."
        ) from error


def _check_options(id: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the environment does not declare, and values of the wrong type."""
    parameters = options_of(id)
    if parameters is None:
        return
    for option, value in options.items():
        if option not in parameters:
            raise UsageError(f"{id} has no option {option!r}; {suggest(option, parameters.keys())}")
        check_value(f"The option {option} of {id}", value, parameters[option].annotation)


def options_of(id: str) -> dict[str, inspect.Parameter] | None:
    """Return the options that an environment declares, with evaluated annotations; None if it accepts any.

    Raises:
        UsageError: if there is no such environment.
    """
    maker = creator(id)
    parameters = dict(inspect.signature(maker).parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    made = maker.func if isinstance(maker, partial) else maker  # a partial has no annotations
    try:
        hints = get_type_hints(made.__init__ if inspect.isclass(made) else made, include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints = {}
    return {name: p.replace(annotation=hints.get(name, Any)) for name, p in parameters.items()}
