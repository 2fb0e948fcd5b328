"""Streams side by side: players, workers, lifetimes, replay, and what is refused."""

import copy
import os
from dataclasses import replace
from typing import ClassVar

import gymnasium as gym
import pytest

import hunch
from hunch.core import Agent, HunchError, InadmissibleActionError, Player, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.rl.episodes import evaluate, play, replay
from hunch.rl.rollout import Finished, Rollout, episode_seed
from hunch.rl.world import advance, name_of, world_of

LAKE = "hunch/FrozenLake-v0"


class Nim(gym.Env):
    """Two players take one or two of five sticks by turns; who takes the last one wins."""

    metadata: ClassVar = {"players": 2}

    def reset(self, *, seed=None, options=None):
        self.sticks, self.mover, self.options = 5, 0, options
        return self.look(), self.info()

    def look(self):
        return f"{self.sticks} sticks"

    def info(self, rewards=None):
        actions = tuple(f"take {n}" for n in (1, 2) if n <= self.sticks)
        told = {"actions": actions, "player": self.mover, "event": f"{self.sticks} left", "task": "win"}
        return {**told, **({} if rewards is None else {"rewards": rewards})}

    def step(self, action):
        self.sticks -= int(action[-1])
        winner, over = self.mover, self.sticks == 0
        self.mover = 1 - self.mover
        rewards = [float(over) if p == winner else -float(over) for p in range(2)]
        return self.look(), rewards[winner], over, False, {**self.info(rewards), "success": over}


class Shared(Nim):
    """The same with one reward for both: a tenth for every move."""

    def step(self, action):
        observation, _, over, truncated, info = super().step(action)
        info.pop("rewards")
        return observation, 0.1, over, truncated, info


class Counter(TextEnv):
    """Tells the number of the episode and a task that is drawn."""

    def __init__(self):
        super().__init__(3)

    def _begin(self, options):
        self.drawn = int(self.task_random.integers(1000))
        self.chance = int(self.np_random.integers(1000))
        self.task = f"task {self.drawn}"
        return Outcome(f"episode {self.episode}, chance {self.chance}", ("go", f"process {os.getpid()}"))

    def _move(self, action):
        return Outcome("on", ("go",), 1.0)


def first(state):
    return state.actions[0]


def run(rollout, steps):
    seen = []
    while rollout.steps < steps:
        seen.append(rollout.step([first(s) for s in rollout.states]))
    return seen


def test_a_players_transition_runs_to_its_own_next_state():
    rollout = Rollout([Nim(), Nim()], 0)
    assert rollout.streams == 4
    assert [s.stream for s in rollout.states] == [0, 2]
    assert rollout.step(["take 1", "take 2"]) == [], "the other one has to move before there is a next state"
    assert [s.stream for s in rollout.states] == [1, 3]
    done = rollout.step(["take 2", "take 2"])
    assert [(t.stream, t.state.observation, t.next_state.observation) for t in done] == [
        (0, "5 sticks", "2 sticks"),
        (2, "5 sticks", "1 sticks"),
    ]
    assert [t.event for t in done] == ["4 left\n2 left", "3 left\n1 left"]
    ended = rollout.step(["take 2", "take 1"])
    assert [(t.stream, t.reward, t.terminated, t.success) for t in ended] == [
        (0, 1.0, True, True),
        (1, -1.0, True, True),
        (2, 1.0, True, True),
        (3, -1.0, True, True),
    ]
    assert rollout.steps == 6
    assert [episode.length for episode in rollout.take_finished()] == [3, 3]
    assert [s.stream for s in rollout.states] == [0, 2], "the next episode begins with the first player"


def test_a_common_reward_goes_to_both_and_is_summed():
    rollout = Rollout([Shared()], 0)
    transitions = [t for step in run(rollout, 5) for t in step]
    paid = {stream: sum(t.reward for t in transitions if t.stream == stream) for stream in (0, 1)}
    assert paid[0] == pytest.approx(0.5)
    assert paid[1] == pytest.approx(0.5), "what came before its first move counts, too"


def test_two_players_are_taken_up_in_the_middle():
    whole, parts = Rollout([Nim(), Nim()], 3), Rollout([Nim(), Nim()], 3)
    for rollout in (whole, parts):
        rollout.step(["take 1", "take 2"])
        rollout.step(["take 1", "take 2"])
    again = Rollout([Nim(), Nim()], 3)
    again.load_state_dict(parts.state_dict())
    assert run(again, 20) == run(whole, 20)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_worker_processes_change_nothing(processes):
    here, there = (Rollout([hunch.make(LAKE) for _ in range(3)], 5, processes=n) for n in (0, processes))
    try:
        assert run(there, 60) == run(here, 60)
        assert there.state_dict() == here.state_dict()
        there.load_state_dict(here.state_dict())
        assert [s.observation for s in there.states] == [s.observation for s in here.states]
    finally:
        there.close()


def test_workers_are_other_processes_and_their_errors_keep_their_type():
    rollout = Rollout([Counter(), Counter()], 0, processes=2)
    try:
        actions = [state.actions[1] for state in rollout.states]
        assert len({*actions, f"process {os.getpid()}"}) == 3
        with pytest.raises(InadmissibleActionError):
            rollout.fleet.ask({0: ("step", ("fly",), {})})
        rollout.fleet.workers[0].process.kill()
        rollout.fleet.workers[0].process.join()
        with pytest.raises(HunchError, match="worker process died"):
            rollout.step(["go", "go"])
    finally:
        rollout.close()
    with pytest.raises(UsageError, match="processes"):
        Rollout([Counter()], 0, processes=2)


def test_the_number_of_the_episode_and_the_seed_of_the_task():
    def tasks(**options):
        rollout = Rollout([Counter()], 0, **options)
        return [s[0].state for s in run(rollout, 9)[::3]]

    free, fixed = tasks(), tasks(task_seed=7)
    assert [s.observation.split(",")[0] for s in free] == ["episode 0", "episode 1", "episode 2"]
    assert len({s.task for s in free}) == 3
    assert len({s.task for s in fixed}) == 1
    assert len({s.observation for s in fixed}) == 3, "only the task is fixed"


def test_episodes_are_the_same_in_any_number_of_streams():
    class Turns(Player):
        def __init__(self, seed):
            pass

        def act(self, states):
            return [s.options[len(s.observation) % len(s.options)] for s in states]

        def observe(self, transitions):
            pass

    alone, together = (evaluate(Turns, [hunch.make(LAKE) for _ in range(n)], 7, seed=3) for n in (1, 4))
    told = [[(e.seed, e.number, e.actions) for e in played] for played in (alone, together)]
    assert told[0] == told[1]
    assert alone[2].seed == episode_seed(3, 0, 2)


def test_how_long_a_players_memory_lives():
    class Rememberer(Player):
        born = 0

        def __init__(self, seed):
            Rememberer.born += 1
            self.seen = 0

        def act(self, states):
            return ["go" for _ in states]

        def observe(self, transitions):
            self.seen += len(transitions)

    for per_player, born in ((None, 1), (1, 6), (2, 3), (4, 2)):
        Rememberer.born = 0
        played = evaluate(Rememberer, [Counter()], 6, seed=0, episodes_per_player=per_player)
        assert Rememberer.born == born
        assert [e.number for e in played] == list(range(6))
    with pytest.raises(UsageError, match="at least one episode"):
        evaluate(Rememberer, [Counter()], 0, seed=0)


def test_an_episode_is_played_again():
    env = hunch.make("hunch/Household-Pick-v0", games=2)
    played = list(play(env, lambda s: s.options[len(s.history) % len(s.options)], seed=11))
    episode = Finished(11, 0, 0.0, len(played), False, tuple(t.action for t in played))
    again = list(replay(env, episode))
    assert again == played
    assert again[3].state.history[0] == (played[0].state.observation, played[0].action)
    assert len(list(replay(env, replace(episode, actions=episode.actions[:2])))) == 2


def test_what_an_agent_may_know_of_where_it_plays():
    env = hunch.make("hunch/Chain-v0")
    world = world_of(Rollout([env], 0), env, 50, ())
    assert (world.env, world.streams, world.steps) == ("hunch/Chain-v0", 1, 50)
    assert world.wording is env.unwrapped.wording
    one, other = world.copy(), world.copy()
    for twin in (one, other):
        twin.unwrapped.place([6])
    assert one.unwrapped.step("left")[4]["raw"] == other.unwrapped.step("left")[4]["raw"] == [5]
    drawn = {tuple(world.copy().unwrapped.reset()[1]["raw"]) for _ in range(20)}
    assert len(drawn) > 1, "each copy draws its own chance"
    with pytest.raises(UsageError, match="cannot be set to a given state"):
        hunch.make("hunch/Household-Pick-v0", games=1).unwrapped.place(3)
    assert name_of(Counter()) == "Counter"


def test_what_is_refused_moves_nothing():
    rollout = Rollout([hunch.make(LAKE), hunch.make(LAKE)], 0)
    before = copy.deepcopy(rollout.state_dict())
    for actions, error in (
        (["Go Down"], UsageError),
        (["Go Down", "fly"], InadmissibleActionError),
        (["Go Down", 1], InadmissibleActionError),
        (["Go Down", "Go Up", "Go Up"], UsageError),
    ):
        with pytest.raises(error):
            rollout.step(actions)
    assert rollout.state_dict() == before
    free = hunch.envs.DesignProblem(len, task="t")
    with pytest.raises(UsageError, match="others accept any text"):
        Rollout([hunch.make(LAKE), free], 0)


def test_self_play_in_the_one_loop(tmp_path):
    """Two players that share an agent: streams of one run, recorded as episodes of the environment."""

    class Both(Agent):
        def begin(self, world, seed):
            self.world, self.seen = world, []

        def act(self, states):
            return [s.options[-1] for s in states]

        def observe(self, transitions):
            self.seen += [(t.stream, t.reward) for t in transitions if t.done]

        def player(self, seed):
            twin = Both()
            twin.begin(self.world, seed)
            return twin

        def state_dict(self):
            return {"seen": list(self.seen)}

        def load_state_dict(self, state):
            self.seen = [tuple(pair) for pair in state["seen"]]

    agent = Both()
    result = hunch.train(agent, [Nim(), Nim()], 12, out=tmp_path)
    assert agent.world.streams == 4
    assert [episode.length for episode in result.episodes] == [3] * 4
    assert sorted(agent.seen) == [(0, 1.0)] * 2 + [(1, -1.0)] * 2 + [(2, 1.0)] * 2 + [(3, -1.0)] * 2
    hunch.methods.check(Both(), Nim(), steps=12)


class Drawn(TextEnv):
    """Says which task was drawn, in episodes of two steps."""

    def __init__(self):
        super().__init__(max_steps=2)

    def _begin(self, options):
        self.task = f"task {self.task_random.integers(10**6)}"
        return Outcome(self.task, ("go",))

    def _move(self, action):
        return Outcome(f"{self.task} {self.np_random.integers(10**6)}", ("go",))


class Forgetful(Player):
    """Records when it has to forget."""

    def __init__(self, seed=0):
        self.forgotten, self.tasks = [], []

    def act(self, states):
        self.tasks.append([s.task for s in states])
        return ["go"] * len(states)

    def observe(self, transitions):
        pass

    def forget(self, streams):
        self.forgotten.append((len(self.tasks), list(streams)))


def test_a_lifetime_has_one_task_and_ends_in_forgetting():
    rollout, player = Rollout([Drawn(), Drawn()], seed=1, lifetime=3), Forgetful()
    for _ in range(12):
        advance(rollout, player)
    assert player.forgotten == [(6, [0, 1]), (12, [0, 1])]
    lives = [[{tasks[i] for tasks in player.tasks[start : start + 6]} for start in (0, 6)] for i in (0, 1)]
    assert all(len(tasks) == 1 for own in lives for tasks in own)
    assert len(set.union(*(tasks for own in lives for tasks in own))) == 4
    ended = rollout.take_finished()
    assert [e.number for e in ended] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    first = next(replay(Drawn(), ended[0]))
    assert first.state.task == player.tasks[0][0]


def test_evaluations_draw_a_task_per_lifetime_whatever_the_number_of_environments():
    def tasks(n, **options):
        return [e.task_seed for e in evaluate(Forgetful, [Drawn() for _ in range(n)], 8, seed=3, **options)]

    assert tasks(1) == [None] * 8
    assert tasks(1, task_seed=4) == [4] * 8
    lived = tasks(1, lifetime=2)
    assert lived == tasks(3, lifetime=2)
    assert [lived[i] == lived[i + 1] for i in range(7)] == [True, False] * 3 + [True]


def test_a_lifetime_of_no_episode_is_refused():
    with pytest.raises(UsageError, match="A lifetime has at least one episode, not 0"):
        Rollout([Drawn()], lifetime=0)
