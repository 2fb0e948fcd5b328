# design_problem.py
import hunch
from hunch.envs import DesignProblem
from hunch.methods import FunSearch
from hunch.roles.writer.programs import Mutator
from hunch.sandbox import Sandbox

START = "def f(x):\n    return 0.5 * x\n"
box = Sandbox(seconds=5)


def evaluate(program):
    with box.load(program, "f", returns=float) as f:
        return -abs(f(1.0) - 3)


def problem():
    return DesignProblem(
        evaluate,
        task="Write a function whose value at 1 is 3.",
        interface=f"```python\n{START}```",
        function="f",
        parameters=("x",),
        start=START,
        target=-0.01,
    )


if __name__ == "__main__":
    agent = FunSearch(Mutator(), search="hill")
    hunch.train(agent, [problem() for _ in range(4)], steps=40)
    print(agent.explain(None).note)
