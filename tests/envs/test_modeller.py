"""The scripted writer of world models: it reads the prompt alone, and its dials mean what they say."""

import ast

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import UsageError
from hunch.envs.design.code import extract, flaw
from hunch.envs.design.dynamics import CLIFF_WALKING, DYNAMICS, TAXI
from hunch.envs.design.modeller import Dials, _damaged, _relevant, modelled
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.roles.writer.programs import Attempt, ModelWriter

ENV = hunch.make("hunch/WorldModelCode-v0", episodes=2)
PROBLEM = ENV.unwrapped.problem
KNOWN = CLIFF_WALKING.splitlines()


def answer(parents, feedback, seed=0, **dials):
    prompt = GIFMCTS.prompt(PROBLEM, parents, feedback)
    return extract(modelled(prompt, np.random.default_rng(seed), Dials(**dials)), "step").splitlines()


def wrong(lines):
    return [i for i, (line, known) in enumerate(zip(lines, KNOWN, strict=True)) if line != known]


def attempt(program):
    ENV.reset(seed=0)
    return Attempt(0, program, None).after(ENV.step(program)[-1]["raw"])


def test_from_nothing_the_share_of_damaged_lines_is_that_of_the_dial():
    assert answer((), "", bugs=0.0) == KNOWN
    shares = [len(wrong(answer((), "", seed, bugs=0.3))) / 15 for seed in range(200)]
    assert 0.25 < np.mean(shares) < 0.33, "of all lines but the header"


@pytest.mark.parametrize("code", DYNAMICS.values())
def test_errors_keep_the_lines_and_parse(code):
    lines = code.splitlines()
    header = ast.parse(code).body[0]
    function, parameters = header.name, tuple(argument.arg for argument in header.args.args)
    for i, line in enumerate(lines):
        for damaged in {_damaged(line, lines, np.random.default_rng([seed, i])) for seed in range(20)}:
            assert not flaw("\n".join([*lines[:i], damaged, *lines[i + 1 :]]), function, parameters)
            assert damaged == damaged.rstrip() != ""


def broken(place, line):
    return "\n".join([*KNOWN[:place], line, *KNOWN[place + 1 :]])


def test_what_is_foretold_wrongly_leads_to_the_line_and_silence_does_not():
    parent = attempt(broken(12, "        reward = -10.0"))
    assert wrong(answer((parent,), parent.outcome_text(), bugs=0.0, repair=1.0)) == []
    assert wrong(answer((parent,), parent.outcome_text(), bugs=0.0, repair=0.0)) == [12]
    unfit = "fitness: 0.5\n1 of 9 transitions are right. One that is not, in done:\nstate: 1\naction: 'go up'"
    assert wrong(answer((parent,), unfit, bugs=0.0, repair=1.0)) == [12], "done does not depend on it"
    blind = [answer((parent,), "", seed, bugs=0.0, repair=1.0) for seed in range(60)]
    assert 0 < sum(wrong(lines) == [] for lines in blind) < 15, "one line in fifteen, by luck"


def test_an_error_leads_to_the_line_that_it_quotes():
    parent = attempt(broken(14, "    done = rwo == 3 and column == 11"))
    assert "NameError" in parent.outcome_text()
    assert wrong(answer((parent,), parent.outcome_text(), bugs=0.0, repair=1.0)) == []
    other = parent.outcome_text().replace("rwo", "raw")
    assert wrong(answer((parent,), other, bugs=0.0, repair=1.0)) == [14]


def test_first_lines_are_kept():
    first = "\n".join(KNOWN[:5]).replace("row - 1", "row - 2")
    shown = Attempt(0, first, None)
    lines = answer((shown,), "", bugs=0.0)
    assert lines[:5] == first.splitlines()
    assert lines[5:] == KNOWN[5:]


def test_which_lines_matter():
    """Moving right: the other moves' headers do, their bodies do not, and what follows the reward."""
    relevant = _relevant(CLIFF_WALKING, frozenset({"reward"}), "go right")
    code = [KNOWN[i].strip() for i in sorted(relevant)]
    assert "column = min(column + 1, 11)" in code
    assert "if action == 'go up':" in code
    assert "row = max(row - 1, 0)" not in code
    assert "done = row == 3 and column == 11" not in code
    assert "inside = passenger == 4" not in [
        TAXI.splitlines()[i].strip() for i in _relevant(TAXI, frozenset({"next state"}), "drive east")
    ]


def test_damage_crash_and_malformed():
    parent = attempt(CLIFF_WALKING)
    assert np.mean([len(wrong(answer((parent,), "x", s, damage=1.0, repair=1.0))) for s in range(40)]) > 0.5
    crashed = ["\n".join(answer((), "", s, bugs=0.0, crash=1.0)) for s in range(40)]
    assert np.mean([attempt(program).fitness is None for program in set(crashed)]) > 0.5
    torn = ["\n".join(answer((), "", s, bugs=0.0, malformed=1.0)) for s in range(20)]
    assert all("SyntaxError" in flaw(program, "step", ("state", "action")) for program in torn)


def test_it_is_a_model_like_any_other():
    model = lm.load("scripted:modeller?bugs=0.2&repair=0.5")
    writer = ModelWriter(model, GIFMCTS.prompt)
    assert writer.evidence == "L0"
    assert writer.write(PROBLEM, (), "", 3) == writer.write(PROBLEM, (), "", 2) + writer.write(
        PROBLEM, (), "", 1, 2
    )
    assert "do not know" in model.generate(["Write `f`."])[0][0]
    with pytest.raises(UsageError, match="no option 'luck'"):
        lm.load("scripted:modeller?luck=1")
