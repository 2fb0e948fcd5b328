"""ICPI in the domains of its study."""

import pytest
from tests.begun import begun
from tests.methods.test_icpi_method import env, model

import hunch
from hunch.core import State, Transition
from hunch.methods import ICPI, ICPINoArgMax, TabularQ
from hunch_studies.icpi import regret
from hunch_studies.worlds.mini_invaders import MiniInvaders


def test_invaders_hit_too_late_are_no_success():
    ship = State("assert ship == C(0, 0) and aliens == [None, None]\n", "", ("left", "shoot", "right"))
    table, imitator = (
        begun(make(texts=MiniInvaders.wording))
        for make in (TabularQ, lambda **own: ICPINoArgMax(model(), **own))
    )
    for agent in (table, imitator):
        for t, reward in enumerate((1.0, 0.0, 0.0)):
            agent.observe([Transition(ship, "shoot", reward, ship, t == 2, False)])
    assert len(table.experience.successes) == 1, "the threshold is reached"
    assert len(imitator.experience.successes) == 0, "but not exceeded"


def test_regret_of_an_episode():
    result = hunch.train(begun(TabularQ()), env(), 40)
    for episode in result.episodes:
        short, best = regret(env(), episode)
        paid = 0.8 ** (episode.length - 1) * episode.episode_return
        assert short == pytest.approx(best - paid)


@pytest.mark.parametrize("domain", ["Chain", pytest.param("Maze", marks=pytest.mark.thorough)])
def test_icpi_reaches_the_optimum_with_a_model_that_is_never_wrong(domain):
    result = hunch.train(begun(ICPI(model())), env(domain), 200, seed=0)
    late = [regret(env(domain), episode) for episode in result.episodes if episode.step > 150]
    assert sum(short for short, _ in late) <= 0.1 * sum(best for _, best in late)
