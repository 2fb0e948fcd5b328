"""World models as code: fitness, held-out transitions, and programs that memorise, fail or cheat."""

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs.design.dynamics import CART_POLE, CLIFF_WALKING, TAXI
from hunch.envs.design.program_model import ProgramModel
from hunch.envs.design.running import box
from hunch.envs.design.transitions import refuse_contradictions
from hunch.envs.design.world_model import match, score
from hunch.rl.episodes import play
from hunch.rl.world_model import Prediction, Step, TrueCopy, measure
from hunch.sandbox import Sandbox

KNOWN = {"CliffWalking": CLIFF_WALKING, "Taxi": TAXI, "CartPole": CART_POLE}


@pytest.fixture(scope="module")
def problems():
    return {
        name: hunch.make("hunch/WorldModelCode-v0", base=f"hunch/{name}-v0", episodes=4) for name in KNOWN
    }


def tried(env, program):
    env.reset(seed=0)
    return env.step(program)[-1]["raw"]


@pytest.mark.parametrize("name", KNOWN)
def test_the_true_dynamics_are_worth_one_and_hold_out(problems, name):
    trial = tried(problems[name], KNOWN[name])
    assert trial.fitness == 1.0
    assert trial.components == {"held_out": 1.0, "held_out_exact": 1.0}
    env = problems[name].unwrapped
    with box().load(KNOWN[name], "step") as program:
        assert measure(ProgramModel(program), env.further(2)).by_depth.tolist() == [1.0] * 5


@pytest.mark.parametrize("name", KNOWN)
def test_a_program_that_memorises_the_buffer_loses_on_what_is_held_out(problems, name):
    env = problems[name].unwrapped
    table = {(s.state, s.action): (s.next_state, s.reward, s.done) for s in env.buffer}
    memory = f"TABLE = {table!r}\n\ndef step(state, action):\n"
    memory += "    return TABLE.get((state, action), (state, -1.0, False))\n"
    trial = tried(problems[name], memory)
    assert trial.fitness == 1.0
    assert trial.components["held_out_exact"] < 0.4
    assert trial.components["held_out"] < 0.9


def test_nothing_of_what_is_held_out_is_told(problems):
    """Code that is right on the buffer and fails or errs elsewhere is told to be right."""
    env = problems["CliffWalking"].unwrapped
    seen = {(s.state, s.action) for s in env.buffer}
    for elsewhere in ("raise ValueError('elsewhere')", "return -1, 0.0, False", "return None"):
        program = CLIFF_WALKING.replace(
            "    row, column = divmod(state, 12)\n",
            f"    if (state, action) not in {seen!r}:\n        {elsewhere}\n"
            "    row, column = divmod(state, 12)\n",
        )
        trial = tried(problems["CliffWalking"], program)
        assert trial.fitness == 1.0
        assert trial.components["held_out_exact"] == 0
        assert trial.feedback == f"{len(env.buffer)} of {len(env.buffer)} transitions are right."


def test_one_wrong_transition_is_told():
    env = hunch.make("hunch/WorldModelCode-v0", episodes=2)
    trial = tried(env, CLIFF_WALKING.replace("-100.0", "-99.0"))
    assert "that is not, in reward:\nstate: " in trial.feedback
    assert "-100.0, False)\nreturned: (36, -99.0, False)" in trial.feedback
    counts = {s.reward for s in env.unwrapped.buffer}
    assert counts == {-1.0, -100.0}
    assert trial.fitness == pytest.approx((1 + 2 / 3) / 2), "each value of the reward counts the same"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 1 / 0", "ZeroDivisionError"),
        ("return float('nan'), -1.0, False", "nan"),
        ("return state, float('nan'), False", "nan"),
        ("return open('/etc/passwd').read(), -1.0, False", "Error"),
        ("step.n = getattr(step, 'n', 0) + 1\n    return step.n, -1.0, False", "earlier calls"),
    ],
)
def test_programs_that_fail_or_depend_on_more_than_their_arguments(problems, body, said):
    trial = tried(problems["CliffWalking"], f"def step(state, action):\n    {body}\n")
    assert trial.fitness is None
    assert said in trial.error


def test_an_error_names_where_it_came_up(problems):
    fails = "    reward = 1 / 0 if action == 'go left' else -1.0\n"
    program = CLIFF_WALKING.replace("    reward = -1.0\n", fails)
    assert "ZeroDivisionError" in (error := tried(problems["CliffWalking"], program).error)
    assert "action 'go left'" in error
    assert "(line 11: `reward = 1 / 0" in error


@pytest.mark.parametrize("large", ["zeros(6_000_000, bool)", "zeros((10 ** 6, 0))", "zeros((200, 101, 1))"])
def test_large_arrays_are_no_state(large):
    """Sent in no time, they would keep the caller busy for minutes."""
    with box().load(
        f"import numpy as np\ndef step(s, a): return np.{large} if s else np.zeros(9), 1.0, False", "step"
    ) as f:
        large, small = ProgramModel(f).step([1, 0], ["a"] * 2)
    assert large == Prediction(False, 1.0, None)
    assert small == Prediction(False, 1.0, (0.0,) * 9)


@pytest.mark.parametrize("value", ["None", "(state, -1.0)", "(state, '-1', False)", "({}, True, 1)"])
def test_what_is_no_step_foretells_nothing(problems, value):
    trial = tried(problems["CliffWalking"], f"def step(state, action):\n    return {value}\n")
    assert trial.fitness == 0
    assert "One that is not, in next state and reward and done" in trial.feedback


def test_a_program_in_a_planner_says_nothing_where_it_fails_and_is_left_once_it_hangs():
    source = (
        "def step(state, action):\n    while state == 2:\n        pass\n    return 1 // state, 0.0, False\n"
    )
    with Sandbox(seconds=1.5) as sandbox, sandbox.load(source, "step") as program:
        model = ProgramModel(program)
        found = model.step([1, 0, 1], ["a"] * 3)
        assert found == [Prediction(False, 0.0, 1), Prediction(), Prediction(False, 0.0, 1)]
        assert model.failures == 1
        alive = Prediction(False, 0.0, 1)
        assert model.step([1, 1, 2, 1], ["a"] * 4) == [alive, alive, Prediction(), Prediction()]
        assert model.dead
        assert model.step([1], ["a"]) == [Prediction()], "it is not waited for again"


# ---- transitions ------------------------------------------------------------------------------------------


def test_the_buffer_holds_good_play_too_and_what_is_held_out_is_not_in_it(problems):
    for name, problem in problems.items():
        env = problem.unwrapped
        known = {(s.state, s.action) for s in env.buffer}
        assert not known & {(s.state, s.action) for s in env.held_out}
        assert env.held_out
        true = TrueCopy(env.env).step(
            [s.state for s in env.held_out],
            [s.action for s in env.held_out],
            [np.random.default_rng(0)] * len(env.held_out),
        )
        assert score(true, env.held_out) == 1.0
        if name != "CartPole":
            assert any(s.done for s in env.buffer), "random play alone would hardly reach a goal"


def test_matches_by_hand():
    step = Step((1.0, 2.0), "a", 1.0, False, (1.0, 3.0))
    assert match(Prediction(False, 1.0, (1.0, 3.0)), step) == 1
    assert match(Prediction(False, 1.0, (1.0, 9.0)), step) == pytest.approx(5 / 6)
    assert match(Prediction(True, 0.0, (1.0, 3.0)), step) == pytest.approx(1 / 3)
    assert match(Prediction(), step) == 0
    end = step._replace(done=True)
    assert match(Prediction(True, 0.0, None), end) == 0.5


def test_contradictions_are_named():
    steps = [Step(0, "a", 1.0, False, 1), Step(0, "b", 1.0, False, 1), Step(0, "a", 1.0, False, 2)]
    with pytest.raises(UsageError, match=r"from 0 'a' led to \(1.0, False, 1\) and to \(1.0, False, 2\)"):
        refuse_contradictions(steps)
    refuse_contradictions(steps[:2])


def test_recorded_episodes_take_the_place_of_own_play():
    lake = hunch.make("hunch/FrozenLake-v0")
    data = [tuple(play(lake, lambda state, n=n: state.options[n % 4], n)) for n in range(4)]
    env = hunch.make("hunch/WorldModelCode-v0", base="hunch/FrozenLake-v0", data=data)
    steps = sum(map(len, data))
    assert len(env.unwrapped.buffer) + len(env.unwrapped.held_out) == steps
    with pytest.raises(UsageError, match="there are none"):
        hunch.make("hunch/WorldModelCode-v0", data=[])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base": "hunch/Blackjack-v0"}, "cannot be set"),
        ({"episodes": 0}, "at least one recorded episode"),
        ({"base": "hunch/Nowhere-v0"}, "no environment"),
    ],
)
def test_bad_bases_are_one_sentence(options, said):
    with pytest.raises(UsageError, match=said):
        hunch.make("hunch/WorldModelCode-v0", **options)


def test_a_buffer_that_leaves_nothing_to_hold_out_is_refused(monkeypatch):
    monkeypatch.setattr("hunch.envs.design.transitions.HELD_OUT", 0)
    with pytest.raises(UsageError, match="none is left to hold out"):
        hunch.make("hunch/WorldModelCode-v0", episodes=1)
