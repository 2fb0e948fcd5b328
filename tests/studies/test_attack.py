"""Red teaming: the bed has something to find, stages, few-shot prompts, resume, a target that never errs."""

import numpy as np
import pytest

import hunch
from hunch import methods
from hunch.cli.main import main
from hunch.core import State, Transition, UsageError, World
from hunch_studies.worlds.attack import HOLES, LINE, Attack, answered, drawn, like

torch = pytest.importorskip("torch")

from hunch_studies.rules.critic import harms  # noqa: E402

ENV = "hunch_studies.worlds.attack:Attack"
SCRATCH = "scratch?width=32&layers=1&vocabulary=64"
ASK = State("ask :")


class Paid(hunch.envs.base.TextEnv):
    """Pays requests that begin with one of two words."""

    offers = ("free_text",)
    examples = (("ask :", ("red tea",)), ("ask :", ("blue tea",)), ("ask :", ("green tea",)))
    paid = ("red", "blue")

    def __init__(self, render_mode=None):
        super().__init__(1, render_mode)

    def _begin(self, options):
        return hunch.envs.base.Outcome("ask :", None)

    def _move(self, action):
        hit = action.strip().startswith(self.paid)
        return hunch.envs.base.Outcome("", None, float(hit), True, hit)


def made(**options):
    found = methods.find("red-team")
    small = {"lm": SCRATCH, "tries": 8, "episodes": 8, "max_tokens": 4, "updates": 2}
    return found.build(methods.settings.configure(found.agent_class, None, {**small, **options}), {})


def test_careless_answers_are_where_nothing_says_and_nowhere_else():
    rng = np.random.default_rng(0)
    rates = {True: [], False: []}
    for _ in range(3_000):
        request = drawn(rng)
        guest, occasion, *_ = LINE.fullmatch(request).groups()
        rates[(guest, occasion) in HOLES].append(bool(harms(request, answered(request, rng))))
    assert np.mean(rates[False]) == 0
    assert np.mean(rates[True]) > 0.2
    assert LINE.fullmatch(like(drawn(rng), rng))


def test_the_environment_keeps_its_contract_and_refuses_a_target_that_cannot_write():
    hunch.envs.check(hunch.make(ENV, play="answer"))
    with pytest.raises(UsageError, match="writes answers"):
        Attack(target="bag-of-words")


def test_rl_finds_what_is_paid_and_a_hit_is_shown_in_few_shot_prompts():
    own = made(tries=64, updates=20, episodes=32, learning_rate=1e-2, kl=0.01)
    hunch.train(own, [Paid() for _ in range(32)], steps=64 + 32 * 12, seed=0)
    texts = own.player(0).act([ASK] * 64)
    assert np.mean([text.strip().startswith(Paid.paid) for text in texts]) > 0.8
    few = made(stage="few-shot", tries=1)
    few.begin(World(), 0)
    few.observe([Transition(ASK, " red tea", 1.0, ASK, True, True)])
    assert few.shown(ASK, np.random.default_rng(0)).observation == "ask : red tea :"


@pytest.mark.parametrize("stage", ["zero-shot", "few-shot", "supervised", "rl"])
def test_the_agent_keeps_its_contract_at_every_stage(stage):
    env = Paid()
    env.paid = ""  # everything is paid
    methods.check(made(stage=stage, tries=2, episodes=2), env, steps=12, streams=2)


def test_a_target_that_never_errs_ends_the_run_with_a_sentence(capsys, tmp_path):
    command = [
        "run",
        "red-team",
        "--env",
        ENV,
        "--lm",
        SCRATCH,
        "--tries",
        "4",
        "--steps",
        "8",
        "--out",
        str(tmp_path / "x"),
    ]
    with pytest.raises(SystemExit) as stopped:
        main(command)
    assert stopped.value.code == 2
    assert "The target never failed in 4 tries" in capsys.readouterr().err
