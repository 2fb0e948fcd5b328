"""Methods that improve within a lifetime: the contract, resume, the controls, and bad input."""

from hunch.core import State, Transition
from hunch.methods.in_context.in_context_lm import InContextLM
from hunch.roles import UniformPrior


def test_a_model_reads_its_rewards():
    player = InContextLM(UniformPrior(), remember=2).player(0)
    states = [State(f"cell {i}", actions=("stay",)) for i in range(4)]
    for state, following, reward in zip(states, states[1:], (0.0, 1.0, 0.5), strict=False):
        player.observe([Transition(state, "stay", reward, following, False, reward == 1)])
    seen = player.with_lifetime(states[3])
    assert seen.history == (
        ("Reward 0.\ncell 1", "stay"),
        ("Reward 1.\nA new episode begins.\ncell 2", "stay"),
    )
    assert seen.observation == "Reward 0.5.\ncell 3"
