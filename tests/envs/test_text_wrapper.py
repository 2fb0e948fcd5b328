import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given, settings
from hypothesis import strategies as st

import hunch
from hunch.core import HunchWarning, InadmissibleActionError, UsageError
from hunch.envs import TextWrapper, check
from hunch.envs.wrappers import History
from hunch.rl.rollout import Rollout
from hunch.rl.world import world_of

NAMES = ("push left", "wait", "push right")


def describe(x):
    return f"The car is at {x[0]:.4f} and moves at {x[1]:.4f}."


def car(**options):
    return TextWrapper(gymnasium.make("MountainCar-v0"), describe, NAMES, task="drive up", **options)


class Counter(gymnasium.Env):
    """Count up to five by 1 or 2; actions are 3 and 4, the info says what is possible."""

    observation_space, action_space = Discrete(7), Discrete(2, start=3)
    told = None

    def reset(self, *, seed=None, options=None):
        self.n = (options or {}).get("start", 0)
        return self.n, {"fits": (True, True)}

    def step(self, action):
        assert self.action_space.contains(action)
        self.n += action - 2
        info = {"fits": (True, self.n < 4), "vector": (self.n,)} | (self.told or {})
        return np.int64(self.n), np.float32(self.n), np.bool_(self.n == 5), self.n > 5, info


def fitting(observation, info):
    return {f"add {i + 1} to {observation}": i + 3 for i in range(2) if info["fits"][i]}


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), choices=st.lists(st.integers(0, 2), max_size=60))
def test_it_is_the_wrapped_episode_in_words(seed, choices):
    env, plain = car(), gymnasium.make("MountainCar-v0")
    observation, info = env.reset(seed=seed)
    assert observation == describe(plain.reset(seed=seed)[0])
    told = {name: value for name, value in info.items() if name != "raw"}
    assert told == {"actions": NAMES, "success": False, "task": "drive up", "event": ""}
    for choice in choices:
        seen = env.step(NAMES[choice])
        raw, *expected, _ = plain.step(choice)
        assert seen[:4] == (describe(raw), *expected)
    assert env.reset()[0] == describe(plain.reset()[0])  # the next episode, too


@pytest.mark.parametrize("history", [0, 2])
def test_it_keeps_the_contract(history):
    check(History(car(), history))
    check(History(TextWrapper(Counter(), lambda n: f"{n}.", fitting, max_steps=4), history))
    check(TextWrapper(gymnasium.make("Acrobot-v1"), str, ("left", "none", "right")))


def test_actions_may_depend_on_the_state():
    env = TextWrapper(Counter(), lambda n: f"{n}.", fitting, info=("vector",))
    _, info = env.reset()
    assert info["actions"] == ("add 1 to 0", "add 2 to 0")
    env.step("add 2 to 0")
    observation, *_, info = env.step(1)
    assert (observation, info["actions"]) == ("4.", ("add 1 to 4",))
    for bad in ("add 2 to 4", "add 1 to 0", 1):
        with pytest.raises(InadmissibleActionError):
            env.step(bad)
    observation, reward, terminated, truncated, info = env.step("add 1 to 4")
    assert (observation, reward, terminated, truncated, info["success"]) == ("5.", 5.0, True, False, True)
    assert [type(x) for x in (reward, terminated, truncated, info["success"])] == [float, bool, bool, bool]
    assert info["vector"] == (5,)


def test_names_count_from_the_start_of_the_space():
    env = TextWrapper(Counter(), str, ("one", "two"))
    env.reset(options={"start": 1})
    assert env.step("two")[0] == env.step("one")[0].replace("4", "3") == "3"


def test_the_environments_own_word_on_success():
    for told, success in [({"success": False}, False), ({"is_success": 1}, True), ({}, True)]:
        base = Counter()
        base.told = told
        env = TextWrapper(base, str, ("one", "two"))
        env.reset(options={"start": 3})
        assert env.step("two")[-1]["success"] is success


def test_a_rule_for_success():
    env = TextWrapper(Counter(), str, ("one", "two"), success=lambda n, *rest: n == 4)
    env.reset(options={"start": 3})
    assert env.step("one")[-1]["success"] is True
    assert env.step("one")[-1]["success"] is False


def test_step_limits():
    short = car(max_steps=2)
    short.reset(seed=0)
    assert [short.step(1)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    own = car()
    own.reset(seed=0)
    assert [t for t in range(1, 201) if own.step(1)[3]] == [200]  # MountainCar's
    with pytest.raises(UsageError, match="reset"):
        own.step(1)


class Space(gymnasium.Env):
    def __init__(self, space):
        self.action_space = space


@pytest.mark.parametrize(
    ("space", "names", "message"),
    [
        (Box(0, 1), ("a",), "Discrete.*TransformAction"),
        (MultiDiscrete([2, 2]), ("a", "b"), "Discrete"),
        (Discrete(3), ("a", "b"), "3 actions, but 2 names: a, b"),
        (Discrete(2), ("a", "b", "c"), "2 actions, but 3 names"),
        (Discrete(2), ("a", "a"), "must differ: a, a"),
        (Discrete(2), ("a", ""), "non-empty"),
        (Discrete(2), "ab", "must be non-empty texts"),
        (Discrete(2), (0, 1), "must be non-empty texts"),
        (Discrete(2), {"a", "b"}, "in the order of the action space"),
        (Discrete(2), {"a": 1, "b": 0}, "in the order of the action space"),
        (Discrete(2), iter("ab"), "in the order of the action space"),
    ],
)
def test_what_cannot_be_wrapped(space, names, message):
    with pytest.raises(UsageError, match=message):
        TextWrapper(Space(space), str, names)


def test_a_description_that_is_no_text():
    with pytest.raises(UsageError, match="'describe' must return a text, not ndarray"):
        TextWrapper(gymnasium.make("MountainCar-v0"), lambda x: x, NAMES).reset()


@pytest.mark.parametrize("actions", [{}, {"add": 2}, {"add": "3"}, {"add": None}])
def test_wrong_actions_while_playing(actions):
    env = TextWrapper(Counter(), str, lambda observation, info: actions)
    with pytest.raises(UsageError, match=r"'actions' must name actions of Discrete\(2, start=3\)"):
        env.reset()


@pytest.mark.parametrize("actions", [["go", "stay"], ("go",), [], "go", 3])
def test_a_function_of_actions_that_returns_no_mapping(actions):
    env = TextWrapper(Counter(), str, lambda observation, info: actions)
    with pytest.raises(UsageError, match=r"must return a mapping .* such as \{'go left': 3\}, not"):
        env.reset()


@pytest.mark.parametrize("name", ["", 7, None])
def test_a_function_of_actions_whose_names_are_no_texts(name):
    env = TextWrapper(Counter(), str, lambda observation, info: {name: 3})
    with pytest.raises(UsageError, match="names of the actions must be non-empty texts"):
        env.reset()


def test_rendering():
    env = car()
    observation, _ = env.reset(seed=0)
    assert env.render() == observation
    lake = gymnasium.make("FrozenLake-v1", render_mode="ansi")
    env = TextWrapper(lake, str, ("left", "down", "right", "up"))
    observation, _ = env.reset(seed=0)
    assert env.render_mode == "ansi"
    assert env.render() == f"{lake.render()}\n{observation}"


def test_a_missing_package_for_rendering_is_named():
    class Unseen(Counter):
        render_mode = "rgb_array"
        metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

        def render(self):
            raise gymnasium.error.DependencyNotInstalled("pygame is not installed")

    env = TextWrapper(Unseen(), str, ("one", "two"))
    env.reset()
    with pytest.raises(UsageError, match="pygame is not installed"):
        env.render()


def test_a_copy_is_equal_and_apart():
    env = TextWrapper(gymnasium.make("Blackjack-v1"), str, ("stick", "hit"))
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    cards = [twin.reset() for _ in range(20)]
    assert [env.reset() for _ in range(20)] == cards


class Speaking(Counter):
    """The same, which says itself where it stands, what is possible and whether it is done."""

    def in_words(self, observation):
        return f"The count is {self.n}."

    def possible(self, observation, info):
        return {f"add {i + 1} to {self.n}": i + 3 for i in range(2) if self.n + i < 5}

    def solved(self, *result):
        return self.n == 5


def test_a_copy_calls_methods_of_its_own_environment():
    def speaking():
        game = Speaking()
        inner = gymnasium.wrappers.TimeLimit(game, 9)
        return TextWrapper(inner, game.in_words, game.possible, success=game.solved)

    check(speaking())
    env = speaking()
    env.reset()
    twin = copy.deepcopy(env)
    assert twin.step("add 2 to 0")[0] == "The count is 2."
    observation, *_, info = env.step("add 1 to 0")
    assert (observation, info["actions"]) == ("The count is 1.", ("add 1 to 1", "add 2 to 1"))
    twin.step("add 2 to 2")
    assert twin.step("add 1 to 4")[-1]["success"] is True


def test_close_reaches_the_environment():
    class Closing(Counter):
        closed = False

        def close(self):
            self.closed = True

    base = Closing()
    TextWrapper(base, str, ("one", "two")).close()
    assert base.closed


COLLISIONS = [
    {"rewards": [0.0, -0.5]},
    {"rewards": {"speed": 0.1}},
    {"player": 1},
    {"player": "white"},
    {"history": [{"move": "e4"}]},
    {"history": "e4 e5"},
    {"pictures": [3]},
    {"event": {"kind": "crash"}},
    {"task": 7, "free_text": True, "actions": 3, "success": "no", "raw": object},
]


class Theirs(gymnasium.Env):
    """Two actions, three steps, a reward of 1 for each; what ``info`` holds is its own affair."""

    action_space, observation_space = Discrete(2), Discrete(9)
    metadata = {"render_modes": [], "players": "many", "history": "none"}  # noqa: RUF012
    code, things, manual, models, examples = "1234", ["a", 3], {}, ["net"], 5

    def __init__(self, told):
        self.told = told

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        return 0, dict(self.told)

    def step(self, action):
        self.n += 1
        return self.n, 1.0, self.n >= 3, False, dict(self.told)


def theirs(told, **options):
    return TextWrapper(Theirs(told), lambda n: f"step {n}", ("a", "b"), task="go on", **options)


@pytest.mark.parametrize("told", COLLISIONS, ids=str)
def test_what_the_environment_reports_is_not_taken_for_the_contract(told):
    success = {"success": lambda *result: result[2]}
    rollout = Rollout([theirs(told, **success)], seed=0)
    steps = [step for _ in range(3) for step in rollout.step(["a"])]
    assert [step.reward for step in steps] == [1.0] * 3
    assert [step.success for step in steps] == [False, False, True]
    assert rollout.players == 1
    assert all((state.history, state.pictures, state.task) == ((), (), "go on") for state in rollout.states)
    assert {step.event for step in steps} == {""}
    world = world_of(rollout, rollout.fleet.envs[0], 10, ())
    assert (world.code, world.things, world.manual, world.models, world.examples) == ("", (), "", {}, ())


def test_the_check_says_what_was_kept_back():
    with pytest.warns(HunchWarning, match=r"history, player, .*info=\('history', 'player'\)") as caught:
        check(theirs({"player": 1, "history": [], "speed": 3}))
    assert "has code, examples, things, models as attributes" in str(caught[0].message)
    with pytest.warns(HunchWarning, match=r"name them in the class: tells = \('code', 'models'\)"):
        check(Secret())


class Secret(gymnasium.Env):
    """An environment of one's own that keeps the contract, in which ``code`` means something else."""

    code, models, offers = "1234", ["net"], [{"price": 3}]

    def reset(self, *, seed=None, options=None):
        self.over = False
        return "A lock.", {"actions": ("1234", "4321"), "success": False, "task": "open it"}

    def step(self, action):
        if self.over:
            raise UsageError("The lock is open.")
        good = hunch.envs.base.action_name(action, ("1234", "4321")) == self.code
        self.over = True
        return "A lock.", float(good), True, False, {"success": good, "task": "open it"}


def test_an_attribute_goes_on_if_the_class_names_it():
    class Open(Secret):
        tells = ("code",)

    assert [world_of(None, env, 1, ()).code for env in (Secret(), Open())] == ["", "1234"]
    with pytest.warns(HunchWarning, match="code, models as attributes"):
        assert hunch.train("dqn", Secret(), steps=5, seed=0).steps == 5


def test_names_that_the_wrapper_is_told_go_on():
    class Turns(Theirs):
        metadata = {"players": 2}  # noqa: RUF012

        def step(self, action):
            observation, reward, *ends, _ = super().step(action)
            return observation, reward, *ends, {"player": self.n % 2, "rewards": [reward, -reward]}

    wrapped = TextWrapper(Turns({"player": 0}), str, ("a", "b"), info=("player", "rewards"))
    rollout = Rollout([wrapped], seed=0)
    gained = [(step.state.seat, step.reward) for _ in range(3) for step in rollout.step(["a"])]
    assert rollout.players == 2
    assert sorted(gained) == [(0, 1.0), (0, 2.0), (1, -3.0)]
    for name in ("actions", "task", "success", "raw", "free_text"):
        with pytest.raises(UsageError, match=f"writes info\\['{name}'\\] itself"):
            theirs({}, info=(name,))
    with pytest.raises(UsageError, match="a tuple of names"):
        theirs({}, info="event")


class Board(gymnasium.Env):
    """Fill three places; the mask of a full board allows nothing, or is not there."""

    action_space, observation_space = Discrete(3), gymnasium.spaces.MultiBinary(3)

    def __init__(self, end):
        self.end = end

    def mask(self):
        return self.end if self.board.all() else {"mask": 1 - self.board}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.board = np.zeros(3, np.int8)
        return self.board, self.mask()

    def step(self, action):
        self.board[action] = 1
        over = bool(self.board.all())
        limit = self.end.get("limit", False)
        return self.board, 1.0, over and not limit, over and limit, self.mask()


@pytest.mark.parametrize(
    "end",
    [
        {},
        pytest.param({"mask": None}, marks=pytest.mark.thorough),
        {"mask": [0, 0, 0]},
        {"mask": [0, 0, 0], "limit": True},
    ],
)
def test_no_action_is_left_when_the_game_is_over(end):
    def legal(observation, info):
        return {f"place {i}": i for i in range(3) if info["mask"][i]}

    def board():
        return TextWrapper(Board(end), str, legal, task="fill the board")

    check(board())
    rollout = Rollout([board(), board()], seed=0, processes=2)
    steps = [step for _ in range(7) for step in rollout.step([state.options[0] for state in rollout.states])]
    rollout.close()
    assert [step.next_state.actions for step in steps if step.done] == [()] * 4
    assert all(step.terminated and not step.truncated for step in steps if step.done)
    hunch.train(
        hunch.methods.DQN(warmup=10), board(), steps=20, seed=0, evaluation=hunch.Evaluation([board()], 10)
    )
    with pytest.raises(UsageError, match="there is none"):
        TextWrapper(Board({}), str, lambda observation, info: {}).reset()
