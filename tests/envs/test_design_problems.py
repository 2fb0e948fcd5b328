"""The design problems that come with the library, with real programs in the real sandbox."""

import copy
import sys
import textwrap
import time

import gymnasium as gym
import numpy as np
import pytest

import hunch
from hunch.core import HunchError, UsageError
from hunch.envs import DesignProblem
from hunch.envs.design import Trial, inner, limit
from hunch.envs.design.bin_packing import BEST_FIT, Instance, pack, read
from hunch.envs.design.code import canonical, extract, flaw, quoted, structure, with_names_of
from hunch.envs.design.gym_reward import GymRewardDesign
from hunch.envs.design.mutation import mutate

FIRST_FIT = "import numpy as np\ndef priority(item, bins):\n    return -np.arange(len(bins), dtype=float)"
SMALL = {
    "hunch/Heuristic-BinPacking-v0": {"items": 10, "instances": 2},
    "hunch/PolicyCode-v0": {"episodes": 2, "max_steps": 20},
    "hunch/RewardDesign-Gymnasium-v0": {"base": "FrozenLake-v1", "steps": 200, "trials": ""},
    "hunch/WorldModelCode-v0": {"episodes": 2},
}


def tried(env, program, seed=0):
    env.reset(seed=seed)
    return env.step(program)[-1]["raw"]


# ---- what is told without running -------------------------------------------------------------------------

ANSWER = """First a helper:
```python
def half(x):
    return x / 2
```
and then
```py
import numpy as np
def reward(a, b):
    return half(a)
```
Try `print(reward(1, 2))`. Output:
```text
0.5
```
"""


def test_all_code_of_an_answer_is_kept():
    program = extract(ANSWER, "reward")
    assert flaw(program, "reward", ("a", "b")) == ""
    assert "def half" in program
    assert "import numpy" in program
    assert "0.5" not in program


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("I am sorry, I cannot help.", "holds no code"),
        ("```python\ndef f(a:\n    return 1\n```", "SyntaxError"),
        ("```python\nx = 1\n```", "does not define the function f"),
        ("```python\ndef f():\n    return 1\n```", "cannot be called as f(a)"),
        ("```python\ndef f(a, *, b):\n    return 1\n```", "cannot be called as f(a)"),
        ("```python\ndef f(a, b=2, *c):\n    return 1\n```", ""),
        ("def f(a):\n    return a\n\nThis returns a.", ""),
        ("```python\ndef f(a):\n    return a", ""),
    ],
)
def test_what_is_wrong_with_an_answer(answer, said):
    found = flaw(extract(answer, "f"), "f", ("a",))
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    "expression",
    ["+".join(["a"] * 800), "-" * 90_000 + "a", "[a for a in " * 150 + "a" + "]" * 150, "0x" + "f" * 9_000],
    ids=["sum", "signs", "lists", "integer"],
)
def test_what_python_reads_but_cannot_write_again_is_an_error_of_the_program(expression):
    program = f"def f(a):\n    return {expression}\n"
    assert flaw(program, "f", ("a",)).startswith("SyntaxError: ")
    assert canonical(program) == program.strip()
    assert program.strip() in extract(f"One:\n```python\n{program}```", "f")


@pytest.mark.parametrize("invisible", ["\u00a0", "\u200b", "\u3000"])
def test_an_invisible_character_in_an_f_string_ends_no_run(invisible):
    program = f"""def act(observation):
    shown = f"{{'{invisible}'.join(['a', 'b'])}}"
    return 0
"""
    quoted_line = program.splitlines()[1].strip()
    refused = flaw(program, "act", ("observation",))
    if sys.version_info < (3, 12):
        assert "invisible character" in refused
        assert quoted_line in refused
    assert structure(program, "act")
    assert canonical(program)
    assert extract(program, "act") == program.strip("\n"), "bare code is not cut before that line"

    problem = DesignProblem(lambda program: 1.0, task="balance", function="act", parameters=("observation",))
    problem.reset(seed=0)
    _, fitness, *_, info = problem.step(program)
    assert np.isnan(fitness) if refused else fitness == 1.0
    assert info["raw"].error == refused


def test_a_long_chain_of_cases_is_no_deep_program():
    cases = "".join(f"    elif a == {n}:\n        return {n}\n" for n in range(300))
    program = f"def f(a):\n    if a is None:\n        return 0\n{cases}"
    assert flaw(program, "f", ("a",)) == ""
    assert canonical(program) == canonical(program + "# end")


def test_code_may_begin_after_the_space_that_continues_a_prompt():
    assert extract(" def act(o):\n    return 1", "act") == "def act(o):\n    return 1"
    assert extract(" Prose.\n  def act(o):\n    return 1", "act") == ""


def test_prose_after_bare_code_is_found_at_once():
    """Also where much code follows, which no shorter beginning can hold."""
    answer = "import math\nx = 1\nThis is what I would do (if I could:\n" + "y = 2\n" * 20_000
    assert extract(answer) == "import math\nx = 1"


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: "x = 1\n" + "@a\n" * n,
        lambda n: "x = 1\n" + "y = 2 + \\\n" * n,
        lambda n: "```" + " " * 20 * n + "`",
        lambda n: "```" + "a" * 20 * n + "`",
        lambda n: "```\nx = 1\n" + " " * 20 * n + "`",
        lambda n: "```" * n,
        lambda n: "``` " * n,
    ],
    ids=["decorators", "continued", "spaces", "tag", "end", "fences", "spaced"],
)
def test_reading_an_answer_takes_linear_time(answer):
    """Sixteen times the answer takes sixteen times as long, where a square would be 256 times."""

    def cost(n):
        start = time.thread_time()
        extract(answer(n), "f")
        return time.thread_time() - start

    n = 100
    while (short := min(cost(n) for _ in range(3))) < 0.002 and n < 4_000:
        n *= 2
    assert min(cost(16 * n) for _ in range(3)) < 64 * max(short, 0.002)


def test_code_that_was_cut_off_keeps_what_is_whole():
    whole = "import math\n\ndef f(a):\n    return a"
    cut = "@cached\n@other\ndef g(a):\n    for b in a:\n        while b:\n            if b > (1 +"
    assert extract(f"{whole}\n\n{cut}", "f").strip() == whole


def test_the_last_version_is_meant():
    program = extract("```\ndef f_v0(a):\n    return 0\n\ndef f_v1(a):\n    return 1\n```", "f")
    names = {}
    exec(program, names)
    assert names["f"](0) == 1


def test_a_version_that_calls_itself_is_renamed_there_too():
    answer = "```\ndef f_v2(a, n=1):\n    return f_v2(a, 0) if n else a\n\nONE = f_v2(1)\n```"
    names = {}
    exec(extract(answer, "f"), names)
    assert (names["f"](3), names["ONE"]) == (3, 1)


def test_blocks_run_in_sequence_where_one_needs_what_the_next_defines_again():
    """An answer with its whole program twice, of which each computes a table."""
    whole = "def row(n):\n    return [{0}] * n\n\nTABLE = row(3)\n\ndef f(a):\n    return TABLE[a]"
    program = extract(f"```\n{whole.format(1)}\n```\nBetter:\n```\n{whole.format(2)}\n```", "f")
    names = {}
    exec(program, names)
    assert names["f"](0) == 2


def test_a_quoted_line_is_the_line_that_python_counts():
    program = "TEXT = 'a\u2028b\x0c'\nx = 1\r\ny = 2\n"
    assert quoted(program, 2) == " (line 2: `x = 1`)"
    assert quoted(program, 3) == " (line 3: `y = 2`)"
    assert quoted(program, 4) == ""
    assert extract(f"{program}def f(a):\n    return TEXT\n\nThis is all.", "f").count("\u2028") == 1


def test_programs_that_differ_in_comments_are_the_same():
    one = 'def f(a):\n    """Doc."""\n    return a  # yes\n'
    assert canonical(one) == canonical("def f( a ):\n\n    return a")
    assert canonical(one) != canonical("def f(a):\n    return -a")


def test_mutants_parse_keep_the_signature_and_vary():
    mutants = {mutate([BEST_FIT], "priority", np.random.default_rng(i)) for i in range(200)}
    assert len(mutants) > 100
    assert not [m for m in mutants if flaw(m, "priority", ("item", "bins"))]
    assert mutate([BEST_FIT], "priority", np.random.default_rng(3)) in mutants
    for bad in ("no code (", "def priority():\n    return " + "-" * 5000 + "1\n"):
        assert mutate([bad], "priority", np.random.default_rng(0)) == ""
    told = 'def priority(item, bins):\n    return len(f"{item:.2f}") - bins\n'
    assert len({mutate([told], "priority", np.random.default_rng(i)) for i in range(40)}) > 30


def test_a_parent_without_expressions_lends_nothing():
    parents = ["def priority(item, bins):\n    pass\n", BEST_FIT]
    assert all(mutate(parents, "priority", np.random.default_rng(i)) for i in range(60))
    assert "pass" in mutate(parents[::-1], "priority", np.random.default_rng(0))


# ---- bin packing and cap sets -----------------------------------------------------------------------------


def test_best_fit_packs_as_by_hand():
    """Items 6, 5, 4, 5 in bins of 10: best fit needs two bins, the fit that opens bins needs four."""
    instance = [Instance(10, (6, 5, 4, 5))]
    assert pack(instance, lambda calls: [-(bins - item) for item, bins in calls]) == [2]
    assert pack(instance, lambda calls: [np.arange(len(bins)) for _, bins in calls]) == [4]


def test_no_program_packs_below_the_bound_or_with_odd_priorities():
    env = hunch.make("hunch/Heuristic-BinPacking-v0", items=20, instances=2)
    for program in (BEST_FIT, FIRST_FIT):
        assert max(tried(env, program).scores) <= 0
    for odd in ("bins * float('nan')", "0.0", "[1.0] * len(bins)", "np.zeros(len(bins) + 1)", "'a'"):
        trial = tried(env, f"import numpy as np\ndef priority(item, bins):\n    return {odd}")
        assert trial.fitness is None, odd
        assert trial.error


def test_instances_of_the_or_library_are_read(tmp_path):
    (tmp_path / "binpack.txt").write_text("1\n u4_00\n 10 4 2\n6\n5\n4\n5\n")
    assert read(str(tmp_path / "binpack.txt")) == (Instance(10, (6, 5, 4, 5)),)
    for wrong in (
        "1\n u4_00\n 10 4 2\n6\n",
        "0\n",
        "1\nx\n10 0 0\n",
        "1\nx\n10 1 1\n12\n",
        "1\nx\n10 1 1\nnan\n",
    ):
        (tmp_path / "wrong.txt").write_text(wrong)
        with pytest.raises(UsageError, match="OR-library"):
            read(str(tmp_path / "wrong.txt"))


@pytest.mark.parametrize("seed", range(20))
def test_items_with_decimals_fill_bins_that_they_fill_exactly(seed):
    """Triplets of the OR-library: three items fill a bin, so that the bound is a third of their number."""
    rng = np.random.default_rng(seed)
    items = []
    for _ in range(40):
        one, other = int(rng.integers(380, 490)), int(rng.integers(250, 300))
        items += [one / 10, other / 10, (1000 - one - other) / 10]
    instance = Instance(100.0, tuple(items))
    assert instance.bound == 40
    assert pack([instance], lambda calls: [-(bins - item) for item, bins in calls]) == [40]


# ---- rewards and policies ---------------------------------------------------------------------------------


def test_a_policy_learns_from_a_reward_in_an_environment_of_gymnasium():
    env = hunch.make("hunch/RewardDesign-Gymnasium-v0", base="FrozenLake-v1", steps=2_000, trials="")
    head = "import numpy as np\ndef reward(observation, action, next_observation):\n    r = "
    good, bad = "1.0 * (next_observation == 15)", "-1.0 * next_observation"
    one, other, again = (tried(env, f"{head}{r}\n    return r, {{'r': r}}", 3) for r in (good, bad, good))
    assert one.fitness > other.fitness
    assert one == again
    assert "Rewards" not in env.unwrapped.problem.text()
    assert "r: " in one.feedback


@pytest.mark.parametrize("base", ["MountainCar-v0", "MountainCarContinuous-v0"])
def test_a_linear_policy_acts_in_either_kind_of_actions(base):
    env = gym.make(base, max_episode_steps=5)
    scored = []
    price = lambda steps: scored.append(steps) or -steps["next_observation"][:, 0]  # noqa: E731
    policies = list(inner.cross_entropy(lambda: env, price, 400, 0))
    assert len(policies) == inner.POINTS
    assert env.action_space.contains(policies[-1](np.zeros(2)))
    assert len(scored) == inner.POINTS
    assert len(scored[0]["action"]) == 40  # eight candidates of five steps, priced in one call


def test_a_component_with_the_name_of_the_metric_does_not_hide_it():
    env = hunch.make("hunch/RewardDesign-Gymnasium-v0", base="FrozenLake-v1", steps=100, trials="")
    name = "return of the environment's own reward"
    program = f"def reward(observation, action, next_observation):\n    return 7.0, {{{name!r}: 7.0}}"
    feedback = tried(env, program).feedback
    assert f"\n{name} (a component): 7, 7," in feedback
    assert f"\n{name}: 7" not in feedback


class Sled(gym.Env):
    """A sled that moves on by one at each step, and is observed in one array that changes."""

    observation_space = gym.spaces.Box(0.0, 99.0, (1,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = np.zeros(1)
        return self.position, {}

    def step(self, action):
        self.position += 1.0
        return self.position, 0.0, self.position[0] == 4, False, {}


def test_a_reward_sees_the_steps_of_an_environment_that_returns_the_same_array_each_time():
    steps, _, _ = inner.play(Sled(), lambda observation: np.zeros(1), 0)
    assert steps["observation"].tolist() == [[0.0], [1.0], [2.0], [3.0]]
    assert steps["next_observation"].tolist() == [[1.0], [2.0], [3.0], [4.0]]

    priced = []
    price = lambda steps: priced.append(steps) or np.zeros(1)  # noqa: E731
    env = inner._Priced(Sled(), price)
    env.reset(seed=0)
    env.step(np.zeros(1))
    env.step(np.zeros(1))
    assert [steps["observation"].tolist() for steps in priced] == [[[0.0]], [[1.0]]]


@pytest.mark.parametrize("steps", [10, 49])
def test_q_learning_takes_few_steps_as_well(steps):
    env = hunch.make("hunch/RewardDesign-Gymnasium-v0", base="FrozenLake-v1", steps=steps, trials="")
    reward = "import numpy as np\ndef reward(observation, action, next_observation):\n    return 0.0, {}"
    assert tried(env, reward).error == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base": "Nope-v1"}, "no environment 'Nope-v1'"),
        ({"base": "Blackjack-v1"}, "these do: none. Flatten the observations"),
        ({"learner": "q"}, "these do: cem, ppo"),
        ({"learner": "cma"}, "cem, q, ppo, sac"),
        ({"steps": 3}, "steps at least 10"),
        ({"metric": "success"}, "CartPole-v1 does not tell success"),
    ],
)
def test_a_reward_that_nothing_could_judge_or_learn_is_refused_at_once(options, said):
    with pytest.raises(UsageError, match=said):
        hunch.make("hunch/RewardDesign-Gymnasium-v0", trials="", **options).reset(seed=0)


@pytest.mark.parametrize(("learner", "base"), [("ppo", "CartPole-v1"), ("sac", "Pendulum-v1")])
def test_stable_baselines3_learns_from_a_reward(learner, base):
    pytest.importorskip("stable_baselines3")
    env = hunch.make("hunch/RewardDesign-Gymnasium-v0", base=base, learner=learner, steps=100, trials="")
    total = "observation[:, 0]"
    reward = f"def reward(observation, action, next_observation):\n    return {total}, {{'x': {total}}}"
    trial = tried(env, reward)
    assert trial.error == ""
    assert "x: " in trial.feedback


def test_a_policy_that_knows_the_pole_beats_the_first_one():
    env = hunch.make("hunch/PolicyCode-v0", episodes=3)
    first = tried(env, env.unwrapped.problem.start)
    good = tried(
        env, "def act(o, memory):\n    return int(o[2] + 0.5 * o[3] + 0.1 * o[1] > 0), (memory or 0) + 1"
    )
    assert good.fitness > 5 * first.fitness
    assert "The worst episode" in good.feedback
    for odd in ("2, None", "'left', None", "0", "0.5, None"):
        assert tried(env, f"def act(o, memory):\n    return {odd}").fitness is None
    digits = tried(env, "def act(o, memory):\n    return '1', None")
    assert digits.error == "ValueError: the action '1' is a text, and no integer from 0 to 1"


BOX, NUMBER = gym.spaces.Box(-1.0, 1.0, (2,)), gym.spaces.Discrete(3, start=-1)


class Spaces(gym.Env):
    """An environment of any spaces, which ends after a step."""

    def __init__(self, seen, done):
        self.observation_space, self.action_space = seen, done

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(0)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, True, False, {}


def policy_of(seen, done):
    base = f"tests/Spaces{len(gym.registry)}-v0"  # trials are kept by the id
    gym.register(base, lambda: Spaces(seen, done), disable_env_checker=True)
    return hunch.make("hunch/PolicyCode-v0", base=base, episodes=1)


@pytest.mark.parametrize(
    ("seen", "done"),
    [
        (BOX, BOX),
        (BOX, gym.spaces.Box(-1.0, 1.0, ())),
        (gym.spaces.Box(-1.0, 1.0, ()), NUMBER),
        (gym.spaces.Box(0, 255, (4, 4, 3), np.uint8), NUMBER),
        (gym.spaces.MultiDiscrete([3, 4]), NUMBER),
        (gym.spaces.Tuple((BOX, NUMBER)), BOX),
        (NUMBER, NUMBER),
    ],
)
def test_the_first_policy_runs_in_all_spaces(seen, done):
    env = policy_of(seen, done)
    env.reset(seed=0)
    env.step(env.unwrapped.problem.start)
    assert env.unwrapped.trial.error == ""


def test_observations_that_cannot_be_shown_are_refused_before_a_program_is_written():
    for space in (
        gym.spaces.Dict({"x": BOX}),
        gym.spaces.Text(3),
        gym.spaces.Tuple((gym.spaces.Dict(x=BOX),)),
    ):
        with pytest.raises(UsageError, match="flatten them first"):
            policy_of(space, NUMBER)


def test_actions_that_no_policy_can_give_are_named():
    with pytest.raises(UsageError, match=r"which are of MultiDiscrete\(\[2 3\]\): it gives one whole number"):
        policy_of(NUMBER, gym.spaces.MultiDiscrete([2, 3]))
    with pytest.raises(UsageError, match="which are texts: it gives one whole number"):
        policy_of(NUMBER, gym.spaces.Text(3))


@pytest.mark.parametrize("problem", ["hunch/PolicyCode-v0", "hunch/RewardDesign-Gymnasium-v0"])
@pytest.mark.parametrize("base", [f"{__name__}:gym", "my/Own-v0", "CartPole-v99"])
def test_a_base_that_is_not_registered_is_refused_with_what_to_name(problem, base):
    with pytest.raises(UsageError, match="registered with Gymnasium, by its id, or by MODULE:ID"):
        hunch.make(problem, base=base)


@pytest.mark.parametrize("max_steps", [50, 200, None, 500])
def test_standing_still_in_short_episodes_is_no_success(max_steps):
    """MountainCar's threshold is -110, and a step costs 1."""
    car = hunch.make("hunch/PolicyCode-v0", base="MountainCar-v0", episodes=1, max_steps=max_steps)
    car.reset(seed=0)
    info = car.step("def act(observation):\n    return 1\n")[-1]
    assert not info["success"]
    own = max_steps in (None, 200)
    assert car.unwrapped.target == (-110.0 if own else np.inf)


@pytest.mark.parametrize("base", ["MountainCar-v0", "hunch/FrozenLake-v0"])
@pytest.mark.parametrize("max_steps", [0, -1])
def test_an_episode_without_steps_or_end_is_refused(base, max_steps):
    with pytest.raises(UsageError, match=f"max_steps must be at least 1, not {max_steps}"):
        gym.make("hunch/PolicyCode-v0", base=base, max_steps=max_steps)


def test_a_policy_acts_by_numbers_and_remembers_what_can_be_passed():
    env = hunch.make("hunch/PolicyCode-v0", base="Pendulum-v1", episodes=1, max_steps=2)
    for odd, said in (
        ("'0.5', None", "the action '0.5' is a text, and no array of shape (1,)"),
        ("[1e5j], None", "complex"),
        ("[[0.5]], None", "the action [[0.5]] is no array"),
        ("0.5, 'x' * (8 * 2**20 - 100)", "the memory is too large"),
    ):
        trial = tried(env, f"def act(o, memory):\n    return {odd}")
        assert trial.fitness is None
        assert said in trial.error
    assert tried(env, "def act(o, memory):\n    return 1e300, {1: (memory,)}").error == ""


class Broken(Spaces):
    """An environment that fails."""

    in_reset = False

    def reset(self, *, seed=None, options=None):
        if self.in_reset:
            raise KeyError("pump")
        return super().reset(seed=seed)

    def step(self, action):
        raise KeyError("valve")


class BrokenAtOnce(Broken):
    """An environment that cannot even begin."""

    in_reset = True


def test_an_environment_that_fails_is_named_and_not_the_program():
    act = "def act(observation):\n    return 0\n"
    base = f"tests/Broken{len(gym.registry)}-v0"
    gym.register(base, lambda: Broken(NUMBER, NUMBER), disable_env_checker=True)
    trial = tried(hunch.make("hunch/PolicyCode-v0", base=base, episodes=1), act)
    assert trial.error == "the environment raised KeyError: 'valve'"
    base = f"tests/Broken{len(gym.registry)}-v0"
    gym.register(base, lambda: BrokenAtOnce(NUMBER, NUMBER), disable_env_checker=True)
    with pytest.raises(HunchError, match=r"The environment raised KeyError in reset\(\): 'pump'"):
        tried(hunch.make("hunch/PolicyCode-v0", base=base, episodes=1), act)


class Opened(Spaces):
    """An environment that counts how many of its kind are open, and how often one was closed twice."""

    open, twice = 0, 0

    def __init__(self, *spaces):
        super().__init__(*spaces)
        self.is_open = True
        Opened.open += 1

    def close(self):
        Opened.twice += not self.is_open
        Opened.open -= self.is_open
        self.is_open = False


@pytest.mark.parametrize("body", ["return 0", "return None", "raise ValueError", "return 0\n1 / 0"])
def test_no_environment_stays_open_whatever_a_program_does(body):
    base = f"tests/Opened{len(gym.registry)}-v0"
    gym.register(base, lambda: Opened(NUMBER, NUMBER), disable_env_checker=True)
    for problem, header in (
        ("hunch/PolicyCode-v0", "def act(observation):"),
        ("hunch/RewardDesign-Gymnasium-v0", "def reward(observation, action):"),
    ):
        options = {"steps": 10, "trials": ""} if "Reward" in problem else {"episodes": 2}
        tried(hunch.make(problem, base=base, **options), f"{header}\n    {body}\n")
        assert (Opened.open, Opened.twice) == (0, 0)


class OfOldForm(Spaces):
    """An environment whose reset returns no info."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class WithoutInfo(Spaces):
    """An environment whose steps have None for an info."""

    def step(self, action):
        return 0, 0.0, True, False, None


class OfTwo(Spaces):
    """An environment that is for two, and says for each whether it is over."""

    def step(self, action):
        return 0, 0.0, np.array([True, False]), False, {}


def test_an_environment_of_another_form_is_named_and_not_the_program():
    act = "def act(observation):\n    return 0\n"

    def of(kind):
        base = f"tests/{kind.__name__}{len(gym.registry)}-v0"
        gym.register(base, lambda: kind(NUMBER, NUMBER), disable_env_checker=True)
        return tried(hunch.make("hunch/PolicyCode-v0", base=base, episodes=1), act)

    assert of(WithoutInfo).error.startswith("the environment raised AttributeError")
    assert of(OfTwo).error.startswith("the environment raised ValueError")
    with pytest.raises(HunchError, match=r"The environment raised TypeError in reset\(\)"):
        of(OfOldForm)


class Repaired(Spaces):
    """An environment that fails until it is repaired."""

    broken = True

    def step(self, action):
        if type(self).broken:
            raise KeyError("valve")
        return super().step(action)


def test_a_failure_of_the_environment_is_not_stored(tmp_path):
    act = "def act(observation):\n    return 0\n"
    base = f"tests/Repaired{len(gym.registry)}-v0"
    gym.register(base, lambda: Repaired(NUMBER, NUMBER), disable_env_checker=True, max_episode_steps=3)
    options = {"base": base, "episodes": 1, "trials": str(tmp_path / "trials.sqlite")}
    assert tried(hunch.make("hunch/PolicyCode-v0", **options), act).fitness is None
    Repaired.broken = False
    assert tried(hunch.make("hunch/PolicyCode-v0", **options), act).fitness is not None


class Rewarding(Spaces):
    """An environment that gives the same reward at each of three steps."""

    def __init__(self, seen, done, reward):
        super().__init__(seen, done)
        self.reward = reward

    def step(self, action):
        return 0, self.reward, False, False, {}


@pytest.mark.parametrize("reward", [None, np.array([1.0]), "much", np.nan, -np.inf])
def test_a_reward_that_is_no_finite_number_is_the_environments_fault(reward):
    base = f"tests/Rewarding{len(gym.registry)}-v0"
    gym.register(
        base, lambda: Rewarding(NUMBER, NUMBER, reward), disable_env_checker=True, max_episode_steps=3
    )
    act = "def act(observation):\n    return 0\n"
    trial = tried(hunch.make("hunch/PolicyCode-v0", base=base, episodes=1), act)
    assert trial.fitness is None
    assert trial.error.startswith("the environment gave ")
    with pytest.raises(UsageError, match=r"A random episode of .*: (the|an episode of the) environment"):
        hunch.make("hunch/RewardDesign-Gymnasium-v0", base=base, trials="").reset(seed=0)


def test_an_environment_that_fails_in_a_training_is_named_and_the_trial_is_not_stored(tmp_path, monkeypatch):
    base = f"tests/Repaired{len(gym.registry)}-v0"
    gym.register(base, lambda: Repaired(NUMBER, NUMBER), disable_env_checker=True, max_episode_steps=1)
    options = {"base": base, "steps": 200, "trials": str(tmp_path / "trials.sqlite")}
    env = hunch.make("hunch/RewardDesign-Gymnasium-v0", **options)
    monkeypatch.setattr(Repaired, "broken", False)
    env.reset(seed=0)
    monkeypatch.setattr(Repaired, "broken", True)
    reward = "def reward(observation, action):\n    return action\n"
    trial = env.step(reward)[-1]["raw"]
    assert trial.fitness is None
    assert trial.error == "the environment raised KeyError: 'valve'"
    monkeypatch.setattr(Repaired, "broken", False)
    env.reset(seed=0)
    assert env.step(reward)[-1]["raw"].fitness is not None


def test_a_policy_sees_a_box_that_holds_a_number_of_any_type():
    class Thermometer(Spaces):
        def reset(self, *, seed=None, options=None):
            return np.float32(0.5), {}

        def step(self, action):
            return 0.5, float(action), True, False, {}

    base = f"tests/Thermometer{len(gym.registry)}-v0"
    seen = gym.spaces.Box(-1.0, 1.0, (), np.float32)
    gym.register(base, lambda: Thermometer(seen, NUMBER), disable_env_checker=True)
    act = "def act(observation):\n    return int(observation > 0)\n"
    assert tried(hunch.make("hunch/PolicyCode-v0", base=base, episodes=1), act).fitness == 1.0


def test_observations_that_are_too_large_are_not_the_programs_memory():
    env = policy_of(gym.spaces.Box(-1.0, 1.0, (1_100, 1_000)), NUMBER)
    with pytest.raises(HunchError, match=r"The observations of .* are too large\. This cannot be passed"):
        tried(env, "def act(observation):\n    return 0\n")


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("[[1], [1, 2]]", "ValueError: the action [[1], [1, 2]] is no array of shape (2,)"),
        ("[1e300, 0.0]", "ValueError: the action [1e+300, 0.0] is too large for numbers of type float32"),
    ],
)
def test_an_action_that_is_no_array_of_the_environment_is_named(action, why):
    env = policy_of(NUMBER, gym.spaces.Box(-np.inf, np.inf, (2,), np.float32))
    assert tried(env, f"def act(observation):\n    return {action}\n").error == why


def test_an_array_of_truth_values_is_named_as_it_is():
    program = "import numpy as np\ndef act(observation):\n    return np.array([True])\n"
    pole = gym.make("hunch/PolicyCode-v0", episodes=1, max_steps=5)
    assert tried(pole, program).error == "ValueError: the action [True] is no integer from 0 to 1"


def test_an_action_may_be_an_array_without_dimensions():
    """As np.where returns."""
    program = "import numpy as np\ndef act(observation):\n    return np.where(observation[2] > 0, 1, 0)\n"
    plain = "def act(observation):\n    return 1 if observation[2] > 0 else 0\n"
    pole = gym.make("hunch/PolicyCode-v0", episodes=1)
    assert tried(pole, program).fitness == tried(pole, plain).fitness
    fraction = "import numpy as np\ndef act(observation):\n    return np.where(observation[2] > 9, 1, 0.5)\n"
    assert "is no integer from 0 to 1" in tried(pole, fraction).error


class Endless(Spaces):
    """An environment that never ends by itself."""

    def step(self, action):
        return 0, 0.0, False, False, {}


@pytest.mark.parametrize("learner", ["ppo", "sac"])
def test_stable_baselines3_is_not_given_a_box_that_holds_a_single_number(learner):
    single = gym.spaces.Box(-1.0, 1.0, ())
    base = f"tests/Spaces{len(gym.registry)}-v0"
    gym.register(base, lambda: Spaces(single, single), disable_env_checker=True)
    assert GymRewardDesign(base=base, trials="").learner == "cem"
    with pytest.raises(UsageError, match="these do: cem"):
        GymRewardDesign(base=base, learner=learner, trials="")


def test_an_episode_ends_where_the_environment_has_no_limit_of_steps(monkeypatch):
    monkeypatch.setattr(limit, "LIMIT", 9)  # so that the test is quick
    base = f"tests/Endless{len(gym.registry)}-v0"
    gym.register(base, lambda: Endless(NUMBER, NUMBER), disable_env_checker=True)
    policy = hunch.make("hunch/PolicyCode-v0", base=base, episodes=1)
    trial = tried(policy, "def act(observation):\n    return 0\n")
    assert "1 at the limit of steps" in trial.feedback
    assert "It ended after 9 steps" in trial.feedback
    assert " 9 steps" in policy.unwrapped.identity()
    shorter = hunch.make("hunch/PolicyCode-v0", base=base, episodes=1, max_steps=7)
    assert "It ended after 7 steps" in tried(shorter, "def act(observation):\n    return 0\n").feedback
    made = {"base": base, "steps": 10, "learner": "q", "trials": ""}
    reward = hunch.make("hunch/RewardDesign-Gymnasium-v0", **made)
    assert tried(reward, "def reward(observation, action):\n    return 0\n").fitness == 0.0
    assert " 9 steps" in reward.unwrapped.identity()
    assert " 9 steps" not in hunch.make("hunch/RewardDesign-Gymnasium-v0", trials="").unwrapped.identity()


OWN = """
import gymnasium as gym
import numpy as np

class Tank(gym.Env):
    observation_space = gym.spaces.Discrete(1)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, slope=1.0):
        self.slope = slope

    def reset(self, *, seed=None, options=None):
        return 0, {{}}

    def step(self, action):
        return 0, self.slope * PAID, True, False, {{}}

PAID = {paid}
gym.register("tests/Tank-v0", Tank, disable_env_checker=True, kwargs={{"slope": {slope}}})
"""


@pytest.mark.parametrize(
    ("problem", "options", "program"),
    [
        ("hunch/PolicyCode-v0", {"episodes": 1}, "def act(observation):\n    return 0\n"),
        (
            "hunch/RewardDesign-Gymnasium-v0",
            {"steps": 10},
            "def reward(observation, action):\n    return 0\n",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*Overriding environment")
def test_trials_of_an_environment_of_ones_own_end_with_its_code(
    problem, options, program, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = []
    for paid, slope in ((1, 1), (1, 1), (20, 1), (20, 3)):
        (tmp_path / "tank_of_tests.py").write_text(OWN.format(paid=paid, slope=slope))
        sys.modules.pop("tank_of_tests", None)
        env = hunch.make(problem, base="tank_of_tests:tests/Tank-v0", trials=str(tmp_path / "t"), **options)
        known = env.unwrapped.known
        env.reset(seed=0)
        key = known.key(canonical(program), env.unwrapped.trial_seed)
        found.append((known.get(key) is not None, tried(env, program).fitness))
    sys.modules.pop("tank_of_tests", None)
    assert found == [(False, 1.0), (True, 1.0), (False, 20.0), (False, 60.0)]


# ---- all of them ------------------------------------------------------------------------------------------


def keeps_the_contract(id, options):
    """Check a design problem, its first program, and copies of it."""
    env = hunch.make(id, **options)
    assert hunch.envs.check(env) is None
    problem = env.unwrapped.problem
    assert not problem.start or not problem.flaw(problem.start)
    assert copy.deepcopy(env).reset(seed=1)[0] == env.reset(seed=1)[0]


@pytest.mark.parametrize("id", SMALL)
def test_they_keep_the_contract(id):
    keeps_the_contract(id, SMALL[id])


def test_a_trial_is_paid_once(tmp_path):
    paid = []

    def evaluate(program):
        paid.append(program)
        return len(program)

    def problem(name):
        return DesignProblem(evaluate, task="t", trials=str(tmp_path / name), function="f", parameters=())

    for text in ("def f(): return 1", "def f(): return 1  # again", "def f():\n    return 1"):
        assert tried(problem("a.sqlite"), text).fitness == len("def f(): return 1")
    assert len(paid) == 1
    tried(problem("a.sqlite"), "def f(): return 2")
    assert len(paid) == 2


def test_a_trial_is_looked_up_by_another_process(tmp_path):
    from hunch.envs.design import trials

    def problem(worth):
        file = str(tmp_path / "file")
        return DesignProblem(lambda program: worth, task="another", trials=file, function="f")

    assert tried(problem(1.0), "def f(): return 1").fitness == 1
    trials._MEMORY.clear()  # as another process has it
    assert tried(problem(2.0), "def f(): return 1").fitness == 1


def test_files_of_trials_and_classes_without_an_identity_are_kept_apart(tmp_path):
    class Own(DesignProblem):
        def __init__(self, worth):
            super().__init__(task="own")
            self.worth = worth

        def run(self, program, seed):
            return self.worth

    assert [tried(Own(worth), "x").fitness for worth in (1, 2)] == [1, 2]
    for worth in (1.0, 2.0):  # evaluate was changed, and the file with it
        env = DesignProblem(lambda program, w=worth: w, task="v", trials=str(tmp_path / str(worth)))
        assert tried(env, "x \ud800").fitness == worth


@pytest.mark.parametrize(
    ("found", "fitness", "error"),
    [
        (np.float32(0.5), 0.5, ""),
        (np.int64(3), 3.0, ""),
        ({"fitness": np.float64(2), "part": np.float32(1)}, 2.0, ""),
        (Trial(1.0, scores=np.array([1, 2]), components={"a": np.float32(1)}), 1.0, ""),
        (10**400, None, "inf is no number"),
        ({"fitness": None}, None, "None is no number"),
        (Trial(-1000.0, error="it crashed"), None, "it crashed"),
        (Trial(float("nan"), error="it crashed"), None, "it crashed"),
    ],
)
def test_a_trial_holds_plain_numbers_and_a_failed_one_no_fitness(found, fitness, error, tmp_path):
    env = DesignProblem(lambda program: found, task="t", trials=str(tmp_path / "trials"))
    trial = tried(env, "x")
    assert trial.fitness == fitness
    assert error in trial.error
    assert bool(trial.error) == bool(error)
    assert {type(value) for value in (*trial.scores, *trial.components.values())} <= {float}


@pytest.mark.parametrize("found", ["0.5", None, 1j, {"fitness": "0.5"}, {"fitness": 1, "note": "good"}])
def test_an_evaluation_of_another_kind_stops_the_run(found):
    with pytest.raises(UsageError, match=r"evaluate must return a number, .* is '"):
        tried(DesignProblem(lambda program: found, task="t"), "x")


def test_whatever_an_evaluation_raises_is_short_and_printable():
    class MuteError(Exception):
        def __str__(self):
            raise ValueError

    for error in (MuteError(), SystemExit(3), RecursionError(), ValueError("\x1b[31m" + "x" * 10**5)):
        trial = tried(DesignProblem(lambda program, e=error: (_ for _ in ()).throw(e), task="t"), "x")
        assert trial.fitness is None
        assert trial.error.startswith(type(error).__name__)
        assert trial.error.isprintable()
        assert len(trial.error) <= 2_000


def test_an_evaluation_without_a_fitness_stops_the_run():
    with pytest.raises(UsageError, match="returned score, but no 'fitness'"):
        tried(DesignProblem(lambda program: {"score": 1.0}, task="w"), "x")


def test_a_file_of_trials_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(UsageError, match="is a folder, not a file of trials"):
        DesignProblem(len, task="u", trials=str(tmp_path))
    (tmp_path / "text").write_text("no database")
    env = DesignProblem(len, task="u", trials=str(tmp_path / "text"))
    with pytest.raises(hunch.core.HunchError, match="cannot be used"):
        tried(env, "x")


ADDS = "def f(x):\n    return x + 1"
LAYOUTS = (
    f"```python\n{ADDS}\n```",
    f"```python\n{ADDS}\n```".replace("\n", "\r\n"),
    f"~~~python\n{ADDS}\n~~~\nThat is all.",
    f"````\n{ADDS}\n````",
    f"```{{.python}}\n{ADDS}\n```",
    f'```python title="a.py"\n{ADDS}\n```',
    f"``` Python \n{ADDS}",
    f"```python\n{ADDS}```",
    f"```bash\npip install x\n```\nand\n```py\n{ADDS}\n```",
    "1. The code:\n" + textwrap.indent(f"```python\n{ADDS}\n```", "   ") + "\n2. Done.",
    "- The code:\n" + textwrap.indent(f"```python\n{ADDS}\n```", "\t"),
    textwrap.indent(f"```python\n{ADDS}\n```", "> "),
    textwrap.indent(f"```python\n{ADDS}\n```", "> > "),
    f"Here ~~~ is code:\n```python\n{ADDS}\n```",
)


@pytest.mark.parametrize("answer", LAYOUTS)
def test_programs_are_found_in_the_layouts_of_chat_models(answer):
    assert canonical(extract(answer, "f")) == canonical(ADDS)


def test_a_quoted_line_is_one_line_that_no_terminal_obeys():
    program = "x = '\x1b[2J\x07\x0b\x85\u2028\u202e\tä'"
    assert quoted(program, 1) == r" (line 1: `x = '\x1b[2J\x07\x0b\x85 \u202e" + "\tä'`)"
    assert "\x1b" not in flaw(f"{program} 5", "f")


@pytest.mark.parametrize(
    "parameters", ["*, a, b='" + "x" * 100_000 + "'", ", ".join(f"a{i}" for i in range(9_999))]
)
def test_a_signature_is_quoted_in_part(parameters):
    assert 1_000 < len(flaw(f"def f({parameters}):\n    return 1\n", "f", ("a",))) < 3_000


def test_an_error_quotes_the_beginning_of_a_long_line():
    program = f"def f(x):\n    return '{'a' * 100_000}' - 1 +"
    assert 1_000 < len(flaw(program, "f")) < 3_000


# ---- a next version in a file -----------------------------------------------------------------------------

FILE = "import math\nimport numpy as np\n\nSCALE = 2\n\ndef half(x):\n    return math.floor(x / SCALE)\n"


def test_a_next_version_has_what_it_uses_of_the_file():
    program = with_names_of("def f(x):\n    return np.sum(x)\n", [FILE])
    assert program == "import numpy as np\n\ndef f(x):\n    return np.sum(x)\n"
    whole = with_names_of("def f(x):\n    return half(x)\n", [FILE])  # which needs two others
    namespace = {}
    exec(whole, namespace)
    assert namespace["f"](5) == 2
    assert "numpy" not in whole


@pytest.mark.parametrize(
    "program",
    [
        "import numpy as np\ndef f(x):\n    return np.sum(x)",
        "def half(x):\n    return x\ndef f(x):\n    return half(x)",
        "def f(np):\n    return np + 1",
        "def f(x):\n    return x",
        "",
        "def f(x:\n    return np.sum(x)",
    ],
)
def test_a_version_that_needs_nothing_of_the_file_stays_as_it_is(program):
    assert with_names_of(program, [FILE]) == program


@pytest.mark.parametrize(
    ("file", "uses", "result"),
    [
        ("def half(x):\n    return whole(x) / 2\ndef whole(x):\n    return x", "half(x)", 1.0),
        ("K = 1\nK += 1", "K", 2),
        ("K = 1\nK = K + 1", "K", 2),
        ("TABLE = {}\nfor i in range(3):\n    TABLE[i] = 5", "TABLE[x]", 5),
        ("TABLE = []\nTABLE.extend([1, 2, 3])", "TABLE[x]", 3),
        ("import xml.dom\nimport xml.sax", "(xml.sax.__name__, xml.dom.__name__)[1]", "xml.dom"),
        ("from math import *", "int(sqrt(2 * x))", 2),
        ("import math", "sum(math for math in [1]) + math.floor(x)", 3),
        ("from __future__ import annotations\ndef half(x: Number):\n    return x / 2", "half(x)", 1.0),
    ],
)
def test_what_comes_from_the_file_works_there_as_it_did_in_the_file(file, uses, result):
    program = f"def f(x):\n    return {uses}\n"
    namespace = {}
    exec(with_names_of(program, [f"{file}\ndef f(x):\n    return 0\n"], "f"), namespace)
    assert namespace["f"](2) == result


def test_a_name_of_another_function_is_none_of_the_file():
    program = "def f(x):\n    return g(x) + SCALE\ndef g(x):\n    SCALE = 1\n    return SCALE\n"
    assert with_names_of(program, [FILE], "f").startswith("SCALE = 2\n")


@pytest.mark.parametrize("program", ["def g(x):\n    return f(x) + 1\n", "print(f(3))\n"])
def test_a_program_without_the_function_does_not_get_that_of_the_file(program):
    assert with_names_of(program, ["def f(x):\n    return 7\n"], "f") == program


def test_a_file_that_does_not_compile_gives_nothing():
    program = "def f(x):\n    return half(x)\n"
    assert with_names_of(program, ["def half(x):\n    nonlocal y\n"]) == program


def test_of_two_files_the_last_counts_and_future_imports_stay_first():
    program = "from __future__ import annotations\ndef f(x):\n    return SCALE * x"
    whole = with_names_of(program, ["SCALE = 2", "SCALE = 3"])
    assert whole.startswith("from __future__ import annotations\n")
    namespace = {}
    exec(whole, namespace)
    assert namespace["f"](1) == 3


# ---- the memory of a policy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "returned"),
    [
        ("observation", "1"),
        ("observation, action=1", "action"),
        ("observation, /, action=1, other=2", "action"),
        ("observation, memory", "1, memory"),
        ("observation, memory=3", "1, memory"),
        ("observation, state=None", "1, state"),
        ("observation, state", "1, state"),
        ("observation, memory, other=2", "1, memory"),
    ],
)
def test_a_second_parameter_with_a_default_is_no_memory(parameters, returned):
    env = hunch.make("hunch/PolicyCode-v0", episodes=1)
    trial = tried(env, f"def act({parameters}):\n    return {returned}\n")
    assert trial.error == ""
    assert trial.fitness > 0
