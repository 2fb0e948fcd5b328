"""WorldCoder: what is written is judged by steps, optimism finds what data alone do not ask for."""

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm
from hunch.core import Episode, State, Transition, UsageError, World
from hunch.envs.design.dynamics import DYNAMICS
from hunch.envs.design.program_model import Patient
from hunch.envs.design.running import box
from hunch.methods.program.worldcoder import WorldCoder
from hunch.rl.episodes import evaluate
from hunch.rl.world_model import Step, TrueCopy, measure, steps_of
from hunch.roles.world_model.program import EXAMPLES, NO_WAY, CodedModel, examples, judged, problem_of
from hunch.roles.writer.plain import plain_prompt

SHY = "scripted:modeller?bugs=0.2&repair=0.5&shy=1"
TASKS = {
    "FrozenLake": "reach the goal (G) and avoid the holes (H)",
    "Sokoban": "push the box onto its goal",
    "Taxi": "pick up the passenger and drop them off",
}


def trained(steps=120, spec=SHY, env="hunch/FrozenLake-v0", seed=0, **options):
    agent = begun(WorldCoder(lm.load(spec), **options))
    return agent, hunch.train(agent, hunch.make(env), steps, seed=seed)


@pytest.mark.parametrize("name", TASKS)
def test_what_the_scripted_writer_knows_is_true(name):
    env, rng = hunch.make(f"hunch/{name}-v0"), np.random.default_rng(0)
    recorded = []
    for seed in range(4):
        observation, info = env.reset(seed=seed)
        state, episode, over = State.read(observation, info), [], False
        while not over and len(episode) < 40:
            action = str(rng.choice(state.options))
            observation, reward, terminated, truncated, info = env.step(action)
            after = State.read(observation, info)
            episode.append(Transition(state, action, reward, after, terminated, truncated))
            state, over = after, terminated or truncated
        recorded.append(steps_of(episode))
    codes = [DYNAMICS[TASKS[name], function] for function in ("transition", "reward")]
    with box().load(codes[0], "transition") as moves, box().load(codes[1], "reward") as earns:
        model = CodedModel(Patient(moves), Patient(earns))
        assert measure(model, recorded).by_depth.tolist() == [1.0] * 5
        assert measure(TrueCopy(env), recorded).by_depth.tolist() == [1.0] * 5


def test_optimism_leads_to_the_goal_and_data_alone_do_not():
    agent, result = trained()
    first = next(e.step for e in result.episodes if e.success)
    assert first <= 60
    assert np.mean([e.success for e in result.episodes if e.step > first]) > 0.7
    plain, without = trained(optimism=False)
    assert not any(e.success for e in without.episodes)
    assert plain.settled == {plain_task(): True}, "what it has seen it explains"
    told = [line["feedback"] for line in agent.records() if line["function"] == "reward"]
    assert any(NO_WAY in feedback for feedback in told)
    assert not any(NO_WAY in line["feedback"] for line in plain.records())


@pytest.mark.parametrize("piece", ["transition", "reward"])
def test_a_program_that_was_loaded_and_cannot_be_loaded_again_predicts_nothing(piece):
    """So with one that raises at random where it is loaded, or whose loading takes nearly too long."""
    agent, _ = trained(60)
    state = agent.state_dict()
    saved = state["transition"] if piece == "transition" else state["rewards"][0][1]
    saved["current"]["program"] = f"raise OSError\n{saved['current']['program']}"
    state["ways"] = []
    again = begun(WorldCoder(lm.load(SHY), epsilon=0.0))
    again.load_state_dict(state)
    observation, info = hunch.make("hunch/FrozenLake-v0").reset(seed=0)
    assert again.act([State.read(observation, info)])[0] in info["actions"]
    assert not again._finds_a_path(again.rewards[plain_task()].current.program, plain_task())


SLOW = """
import time

def transition(state, action):
    row, column = state
    if row + column > 1:  # no state that was seen
        time.sleep(0.05)
    return (row + 1, column) if action in ("Go Down", "Go Up") else (row, column + 1)

def reward(state, action, next_state):
    return 0.0, False
"""


def test_a_plan_in_a_slow_program_ends():
    def load(function, total):
        return Patient.load(SLOW, function, total)

    agent, _ = trained(12, most=40)
    with load("transition", 0.2) as moves, load("reward", 0.2) as earns:
        visited = []
        assert agent._path(CodedModel(moves, earns), (0, 0), visited).path is None
        assert len(visited) < 30
        assert moves.dead


def test_each_plan_has_its_own_time():
    with Patient.load(SLOW, "transition", 0.2) as moves:
        for _ in range(8):
            moves.renew()
            assert moves.map([((2, 2), "Go Down")]) == [(3, 2)]
        assert not moves.dead


def test_plans_take_no_time_from_the_test_of_new_steps():
    agent, _ = trained(60)
    steps = list(agent.seen.steps[plain_task()].values())
    model = agent._model(plain_task())
    model.transition.program._spent = model.reward.program._spent = np.inf  # by a long plan
    assert not agent._surprised(plain_task(), steps)


def plain_task():
    return hunch.make("hunch/FrozenLake-v0").unwrapped.task


def test_once_all_is_explained_nothing_is_asked():
    early, late = trained(150)[0], trained(300)[0]
    assert 0 < early.written <= late.written <= early.written + 3


def test_random_until_the_warm_up_is_over():
    agent, _ = trained(9)
    assert agent.written == 0
    assert trained(40)[0].written > 0


def test_a_player_plans_with_what_was_learnt_and_solves_it():
    agent, _ = trained(200)
    before = agent.state_dict()
    played = evaluate(agent.player, [hunch.make("hunch/FrozenLake-v0")], 5, 0)
    assert all(e.success and e.length == 6 for e in played)
    assert agent.state_dict() == before
    assert len(agent.explain(start()).note.split(" > ")) == 6


def start():
    observation, info = hunch.make("hunch/FrozenLake-v0").reset(seed=0)
    return State.read(observation, info)


@pytest.mark.parametrize("at", [15, 40])
def test_a_run_that_is_taken_up_again_goes_on_as_it_was(at, tmp_path):
    def run(out, **more):
        agent = begun(WorldCoder(lm.load(SHY + "&break=0.2&crash=0.1"), refinements=4))
        envs = [hunch.make("hunch/FrozenLake-v0") for _ in range(2)]
        result = hunch.train(agent, envs, 80, out=out, **more)
        return [e.actions for e in result.episodes], agent.records()

    calls = iter(range(1_000))
    run(tmp_path / "parts", watch=hunch.Watch(stop=lambda: next(calls) >= at))
    assert run(tmp_path / "parts") == run(tmp_path / "whole")


class Line:
    """Writes a model of places in a line, of which place 2 pays; at first nothing moves before place 0."""

    evidence = None

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        if problem.function == "reward":
            body = "return float(next_state[0] == 2), next_state[0] == 2"
        elif NO_WAY in feedback:
            body = "return (state[0] + (action == 'go on'),)"
        else:
            body = "return (state[0] + (action == 'go on' and state[0] >= 0),)"
        return [f"def {problem.function}({', '.join(problem.parameters)}):\n    {body}"] * n


def on_the_line(place, action, end=True):
    here, there = (
        State(f"place {p}", "reach place 2", ("wait", "go on"), raw=(p,))
        for p in (place, place + (action == "go on"))
    )
    return Transition(here, action, 0.0, there, False, end)


def test_an_environment_of_few_states_and_actions_is_learnt_too():
    agent = begun(WorldCoder(Line(), warmup=10))
    for _ in range(99):
        agent.observe([on_the_line(0, "go on")])
        agent.learn()
    assert agent.written == 0
    agent.observe([on_the_line(0, "go on")])
    agent.learn()
    assert agent.settled == {"reach place 2": True}


def test_a_mission_of_recorded_steps_needs_a_path_from_where_they_begin():
    before = on_the_line(-3, "wait")
    agent = begun(WorldCoder(Line(), warmup=0), World(data=[Episode((before,))]))
    agent.learn()
    assert agent.explain(before.state).note.count("go on") == 5


def test_contradictory_steps_are_named():
    agent = begun(WorldCoder(lm.load(SHY)))
    here, there = (State("x", "t", ("a",), raw=raw) for raw in ((0, 0), (0, 1)))
    agent.observe([Transition(here, "a", 0.0, there, False, False)])
    with pytest.raises(UsageError, match=r"from \(0, 0\) 'a' led to"):
        agent.observe([Transition(here, "a", 0.0, here, False, False)])


class Useless:
    """Writes programs that fail, hang, or say odd things."""

    evidence = None

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        bodies = ("return 1 / 0", "return state", "return None", "return float('nan'), False", "return (")
        body = bodies[first % len(bodies)]
        return [f"def {problem.function}({', '.join(problem.parameters)}):\n    {body}"] * n


def test_a_writer_that_is_of_no_use_leaves_random_play():
    agent = begun(WorldCoder(Useless(), refinements=5))
    result = hunch.train(agent, hunch.make("hunch/FrozenLake-v0"), 60)
    assert result.complete
    assert not any(agent.settled.values())
    assert any("ZeroDivisionError" in line["error"] for line in agent.records())


def test_steps_that_are_explained_by_hand():
    steps = [Step((0,), "a", 0.0, False, (1,)), Step((1,), "b", 1.0, True, (2,))]
    assert judged("transition", [(1,), [2]], steps) == (1.0, "2 of 2 transitions are right.")
    share, told = judged("reward", [(0.0, False), (1.0, 1)], steps)
    assert share == 0.5
    assert "in reward and done:\nstate: (1,)\naction: 'b'\nnext state: (2,)\nexpected: (1.0, True)" in told


class Reading:
    """A writer that keeps the plain requests that it gets, and has one answer for each function."""

    evidence = None

    def __init__(self):
        self.requests = []

    def write(self, problem, parents, feedback, n, first=0):
        self.requests.append(plain_prompt(problem, parents, feedback))
        values = ", ".join(problem.plain.parameters)
        answer = "state" if problem.function == "transition" else "(0.0, False)"
        return [f"def {problem.function}({values}):\n    return {answer}\n"] * n


def test_a_plain_request_shows_steps_with_their_results():
    writer = Reading()
    hunch.train(WorldCoder(writer, request="plain", refinements=3), hunch.make("hunch/FrozenLake-v0"), 40)
    moves = next(request for request in writer.requests if "transition(state, action)" in request)
    assert moves.count("\n- state (") == EXAMPLES
    assert all(f"{action!r}" in moves for action in ("Go Left", "Go Down", "Go Right", "Go Up"))
    assert "It returns the next state, in the same form as state." in moves
    assert moves.startswith("The task of this environment: reach the goal (G)")


def test_a_plain_request_for_a_reward_shows_ends_beside_other_steps():
    quiet = [Step((0, i), "right", 0.0, False, (0, i + 1)) for i in range(20)]
    end, goal = Step((1, 0), "down", 0.0, True, (2, 0)), Step((2, 2), "right", 1.0, True, (2, 3))
    steps = [*quiet[:15], end, goal, *quiet[15:]]
    assert examples("reward", steps) == [end, goal, *quiet[:6]]
    assert examples("transition", steps) == quiet[:8]
    assert examples("reward", [end, goal] * 5) == [end, goal] * 4, "there are no others"
    text = problem_of("reward", "reach the goal", steps, ("right", "down")).plain.text
    assert "state (2, 2), action 'right', next state (2, 3): reward 1.0, ends True" in text
