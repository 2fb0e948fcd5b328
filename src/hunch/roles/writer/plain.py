"""Requests in plain words: few of them, the smallest interface, a program only where one is to be changed.

A small model copies what it is shown and loses the thread in long texts. There is one request for each
:data:`~hunch.roles.writer.programs.Kind`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hunch.envs.design.problem import Problem
from hunch.roles.writer.programs import Attempt, Kind, Prompt

MODULES: Final = "Only numpy and Python's standard library can be imported. Answer with the code only."


def plain_prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
    """Return the request for a first program, or for a better version of the last parent."""
    if not parents:
        return _request(problem, [], f"Write {_wanted(problem)}.")
    shown = [f"This program was tried:\n\n{_code(parents[-1])}"]
    if feedback:
        shown.append(f"What became of it:\n{feedback}")
    return _request(problem, shown, f"Write a better version of {_wanted(problem)}.")


def fresh_prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
    """Return the request for a first program."""
    return plain_prompt(problem, (), "")


def repair_prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
    """Return the request to remove the error from the last parent."""
    shown = [f"This program stops with an error:\n\n{_code(parents[-1])}"]
    if feedback:
        shown.append(feedback)
    return _request(problem, shown, f"Write {_wanted(problem)} without this error.")


def combine_prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
    """Return the request for a program that joins the parents, the fittest of which stands last.

    Without feedback (a control) the results of the parents are not shown either.
    """
    shown = []
    for number, parent in enumerate(parents, 1):
        result = f" has the result {parent.fitness or 0.0:.6g}" if feedback else ""
        shown.append(f"Program {number}{result}:\n\n{_code(parent)}")
    if feedback:
        shown.append(f"What became of program {len(parents)}:\n{feedback}")
    ask = f"Write a version of {_wanted(problem)} that joins what is good in both and is better than either."
    return _request(problem, shown, ask)


def simplify_prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
    """Return the request for a shorter form of the last parent."""
    shown = [f"This program was tried:\n\n{_code(parents[-1])}"]
    return _request(problem, shown, f"Write a shorter and simpler version of {_wanted(problem)}.")


PLAIN_PROMPTS: Final[Mapping[Kind, Prompt]] = {
    "fresh": fresh_prompt,
    "revise": plain_prompt,
    "repair": repair_prompt,
    "combine": combine_prompt,
    "simplify": simplify_prompt,
}
"""The request of each kind."""


def _request(problem: Problem, shown: Sequence[str], ask: str) -> str:
    """Join the statement of the problem, what is shown, and what is asked."""
    plain = problem.plain
    statement = [problem.task, problem.interface.split("```")[0].strip()] if plain is None else [plain.text]
    returns = f" {plain.returns}" if plain is not None else ""
    return "\n\n".join([*(part for part in (*statement, *shown) if part), f"{ask}{returns} {MODULES}"])


def _wanted(problem: Problem) -> str:
    """Return what is to be written, in words."""
    if problem.as_class is not None:
        return f"the Python class {problem.as_class.name}"
    if problem.plain is None and not problem.function:
        return "the Python program"
    parameters = problem.parameters if problem.plain is None else problem.plain.parameters
    wanted = {problem.function: parameters, **problem.also}
    *forms, last = [f"{name}({', '.join(names)})" for name, names in wanted.items()]
    return f"the Python functions {', '.join(forms)} and {last}" if forms else f"the Python function {last}"


def _code(attempt: Attempt) -> str:
    return f"```python\n{attempt.program.strip()}\n```"
