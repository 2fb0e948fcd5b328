"""Programs of our own rules, run in this process: for studies of many thousand trials without a model.

What a language model wrote runs in the sandbox and nowhere else. A scripted writer's programs are sums of
NumPy expressions of a fixed grammar, and the mutator's are expressions, without loops, imports or files; a
sandbox costs them ten times what they take. The trial is the same in either way, which a test holds.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from hunch.envs.design.bin_packing import BinPacking
from hunch.envs.design.cap_set import CapSet
from hunch.envs.design.policy import PolicyCode
from hunch.envs.design.reward import RewardDesign
from hunch.envs.design.running import Mapped
from hunch.sandbox import ProgramCrash, ProgramRefused, ProgramValue, wire

FILE: Final = "<program>"
POWERS: Final = 6
"""Most powers in a program: powers of powers of whole numbers would fill the memory."""
FORBIDDEN: Final = (
    ast.While,
    ast.For,
    ast.comprehension,
    ast.Import,
    ast.ImportFrom,
    ast.Lambda,
    ast.ClassDef,
)


class Here:
    """A program of our own in this process.

    Args:
        source: Its text.
        function: Its function.
        returns: The type that its values must have; None for any plain one.
        finite: Whether NaN and infinity are refused.

    Raises:
        ProgramRefused: if it has a loop, an import but NumPy's, or too many powers.
        ProgramCrash: if it raises.
    """

    def __init__(self, source: str, function: str, returns: type | None, finite: bool) -> None:
        self.returns, self.finite, self.names = returns, finite, dict[str, Any]()
        tree = ast.parse(source)
        powers = sum(isinstance(node, ast.Pow) for node in ast.walk(tree))
        own = [node for node in ast.walk(tree) if isinstance(node, FORBIDDEN)]
        if powers > POWERS or any(ast.unparse(node) != "import numpy as np" for node in own):
            raise ProgramRefused("Source", "it is no program of ours: a loop, an import or too many powers")
        self._run(lambda: exec(compile(source, FILE, "exec"), self.names))
        self.function = self.names[function]

    def map(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """The value of each call, of plain types."""
        with np.errstate(all="ignore"):
            return [self._value(self._run(lambda call=call: self.function(*call))) for call in calls]

    def _run(self, act: Any) -> Any:
        try:
            return act()
        except Exception as error:
            trace, line = error.__traceback__, None
            while trace is not None:
                line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == FILE else line
                trace = trace.tb_next
            raise ProgramCrash(type(error).__name__, str(error), line) from None

    def _value(self, value: Any) -> Any:
        try:
            value = _passed(value, self.finite)
        except wire.WireError as error:
            raise ProgramValue("Value", f"it returned {error}") from None
        if self.returns is float and (type(value) is int or np.shape(value) == ()):
            value = float(value)
        if self.returns is not None and type(value) is not self.returns:
            raise ProgramValue("Type", f"it returned {type(value).__name__}, not {self.returns.__name__}")
        return value


def _passed(value: Any, finite: bool) -> Any:
    """A value as it would come out of a sandbox; the commonest kinds are not written out and read again."""
    kind = type(value)
    if kind is np.ndarray and value.dtype == np.float64 and (not finite or np.isfinite(value).all()):
        return value.copy()
    if kind in (float, np.float64) and not finite:
        return float(value)
    if kind is tuple:
        return tuple([_passed(part, finite) for part in value])
    if kind is dict and all(type(name) is str for name in value):
        return {name: _passed(part, finite) for name, part in value.items()}
    return wire.from_tree(wire.to_tree(value), finite=finite)


class OwnRewards(RewardDesign):
    """Reward design for rewards of a scripted writer."""

    def ready(self) -> None:
        """Nothing to start."""

    def opened(self, program: str) -> AbstractContextManager[Mapped]:
        """The program in this process."""
        return nullcontext(Here(program, "reward", tuple, finite=True))


class OwnPacking(BinPacking):
    """Bin packing by programs of the mutator."""

    def ready(self) -> None:
        """Nothing to start."""

    def opened(self, program: str) -> AbstractContextManager[Mapped]:
        """The program in this process."""
        return nullcontext(Here(program, "priority", np.ndarray, finite=False))


class OwnCaps(CapSet):
    """Cap sets by programs of the mutator."""

    def ready(self) -> None:
        """Nothing to start."""

    def opened(self, program: str) -> AbstractContextManager[Mapped]:
        """The program in this process."""
        return nullcontext(Here(program, "priority", float, finite=False))


class OwnPolicies(PolicyCode):
    """Policies by programs of the mutator."""

    def ready(self) -> None:
        """Nothing to start."""

    def opened(self, program: str) -> AbstractContextManager[Mapped]:
        """The program in this process."""
        return nullcontext(Here(program, "act", None, finite=True))
