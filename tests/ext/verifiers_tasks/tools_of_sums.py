"""An environment of Hunch for the tests: sums, with a tool that adds."""

from hunch.envs import Tools


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _is_sum(task: str, answer: str, calls: object) -> float:
    a, b = task.removeprefix("What is ").removesuffix("?").split(" + ")
    return float(str(int(a) + int(b)) in answer)


def sums(n: int = 1) -> Tools:
    """Return an environment with n times the same task."""
    return Tools([add], task=["What is 17 + 25?"] * n, score=_is_sum, max_steps=6)
