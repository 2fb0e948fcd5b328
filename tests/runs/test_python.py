"""Hunch as a library: names and objects, the command's folder, load and predict, callbacks, longer runs."""

import json
import os
import select
import subprocess
import sys

import gymnasium as gym
import pytest
from tests.started import server

import hunch
from hunch.core import Agent, HunchError, UsageError
from hunch.methods.checker import difference
from hunch.rl.rollout import Finished
from hunch.roles.prior.gym import Proposals
from hunch.runs.checkpoints import BEST, read_checkpoint
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_json, read_lines
from hunch.runs.loading import load_agent
from hunch.runs.stored import read_run

LAKE = "hunch/FrozenLake-v0"
SMALL = {"k": 2, "hidden": 16, "warmup": 20, "batch_size": 8, "encoder": "bag-of-words"}
DQN, OPTIONS = ("dqn-prior", LAKE), {"lm": "uniform", **SMALL}


class Rarest(Agent):
    """An agent of one's own: it takes the action that it has taken least."""

    def begin(self, world, seed):
        self.counts = {}

    def act(self, states):
        return [min(s.options, key=lambda a: self.counts.get(a, 0)) for s in states]

    def observe(self, transitions):
        for t in transitions:
            self.counts[t.action] = self.counts.get(t.action, 0) + 1

    def player(self, seed):
        twin = type(self)()
        twin.begin(None, seed)
        return twin

    def state_dict(self):
        return {"counts": dict(self.counts)}

    def load_state_dict(self, state):
        self.counts = dict(state["counts"])


def lake_agent(**options):
    table = hunch.roles.TextTable(hunch.lm.load("bag-of-words"))
    options = {name: value for name, value in {**SMALL, **options}.items() if name != "encoder"}
    return hunch.methods.DQNPrior(hunch.roles.UniformPrior("L0"), table, **options)


def episodes(folder):
    return (folder / "episodes.jsonl").read_bytes()


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """The folder of a run by name, with evaluations."""
    out = tmp_path_factory.mktemp("named") / "run"
    hunch.train(*DQN, 200, evaluation=hunch.Evaluation(every=50, episodes=3), out=out, **OPTIONS)
    return out


def test_names_objects_and_the_command_write_the_same_folder(named, tmp_path):
    options = hunch.methods.DQNPriorConfig(**SMALL)
    execute(
        RunConfig(
            method="dqn-prior",
            env=LAKE,
            lm="uniform",
            steps=200,
            options=options,
            eval_every=50,
            eval_episodes=3,
        ),
        tmp_path / "command",
    )
    hunch.train(
        lake_agent(),
        hunch.make(LAKE),
        200,
        evaluation=hunch.Evaluation(every=50, episodes=3),
        out=tmp_path / "objects",
    )
    for other in ("command", "objects"):
        assert read_run(tmp_path / other) == read_run(named), other
        assert episodes(tmp_path / other) == episodes(named), other
        states = [read_checkpoint(folder)["agent"] for folder in (named, tmp_path / other)]
        assert difference(*states) is None, other


def test_a_model_takes_the_place_of_its_spec(named, tmp_path):
    options = {**OPTIONS, "lm": hunch.lm.load("uniform")}
    hunch.train(*DQN, 200, evaluation=hunch.Evaluation(every=50, episodes=3), out=tmp_path / "run", **options)
    assert read_run(tmp_path / "run") == read_run(named)
    assert episodes(tmp_path / "run") == episodes(named)


def test_a_loaded_agent_chooses_as_a_player_of_it(named):
    trained = hunch.load(named)
    env = hunch.make(LAKE)
    observation, info = env.reset(seed=1)
    player = load_agent(named)[0].player(0)
    state = hunch.core.State.read(observation, info)
    assert [trained.predict(observation, info) for _ in range(5)] == [
        player.act([state])[0] for _ in range(5)
    ]
    assert set(trained.explain(observation, info).columns) == {"prior", "Q"}


def test_best_is_the_agent_of_the_best_evaluation(named):
    rounds = {}
    for line in read_lines(named / "episodes.jsonl"):
        if line["evaluation"]:
            rounds.setdefault(line["step"], []).append((line["success"], line["return"]))
    scores = {
        step: tuple(sum(column) / 3 for column in zip(*own, strict=True)) for step, own in rounds.items()
    }
    best = read_checkpoint(named, BEST)
    assert len(rounds) == 4
    assert scores[best["step"]] == max(scores.values())
    assert hunch.load(named, checkpoint="best").agent.steps == best["step"]


def test_there_is_no_best_without_an_evaluation(tmp_path):
    hunch.train(Rarest(), LAKE, 20, out=tmp_path)
    with pytest.raises(HunchError, match="no checkpoint of an evaluation"):
        hunch.load(tmp_path, checkpoint="best", agent=Rarest())
    with pytest.raises(UsageError, match="'last' or 'best'"):
        hunch.load(tmp_path, checkpoint="first")
    with pytest.raises(UsageError, match="named by its folder, not 3"):
        hunch.load(3)
    with pytest.raises(UsageError, match="3 is not an agent"):
        hunch.load(tmp_path, agent=3)


def test_wrong_arguments_of_predict_and_of_a_budget_are_sentences(named):
    with pytest.raises(UsageError, match="info is the dict that reset and step"):
        hunch.load(named).predict("You stand here.", "left")
    with pytest.raises(UsageError, match="budget of calls must be a number, not '5'"):
        hunch.lm.Budget(calls="5")


def test_a_prolonged_run_equals_a_long_one(tmp_path):
    for steps in (60, 60, 150):
        result = hunch.train(
            "dqn-prior",
            LAKE,
            steps,
            lm="uniform",
            evaluation=hunch.Evaluation(every=40),
            out=tmp_path / "a",
            **SMALL,
        )
        assert result.complete
        assert result.steps == steps
        assert result.agent.steps == steps
    hunch.train(*DQN, 150, evaluation=hunch.Evaluation(every=40), out=tmp_path / "b", **OPTIONS)
    assert episodes(tmp_path / "a") == episodes(tmp_path / "b")
    for which in ({}, {"which": BEST}):
        states = [read_checkpoint(tmp_path / name, **which)["agent"] for name in "ab"]
        assert difference(*states) is None
    assert read_run(tmp_path / "a").steps == 150
    with pytest.raises(UsageError, match="steps: 150 there, 60 asked"):
        hunch.train(*DQN, 60, evaluation=hunch.Evaluation(every=40), out=tmp_path / "a", **OPTIONS)


def test_the_command_prolongs_a_run(tmp_path):
    config = RunConfig(method="zero-shot", env=LAKE, lm="uniform", steps=40)
    short = execute(config, tmp_path)
    longer = execute(RunConfig(**{**vars(config), "steps": 90}), tmp_path)
    assert (short.steps, longer.steps) == (40, 90)
    assert [e.actions for e in longer.episodes][: len(short.episodes)] == [e.actions for e in short.episodes]


def test_an_agent_of_ones_own_is_kept_and_filled(tmp_path):
    result = hunch.train(Rarest(), LAKE, 50, out=tmp_path / "r")
    config = read_run(tmp_path / "r")
    assert (config.method, config.objects) == ("Rarest", ("agent",))
    assert Arm("Rarest", config).model == "none"
    with pytest.raises(UsageError, match=r"agent=\.\.\."):
        hunch.load(tmp_path / "r")
    assert hunch.load(tmp_path / "r", agent=Rarest()).agent.counts == result.agent.counts
    with pytest.raises(UsageError, match="holds another agent"):
        hunch.load(tmp_path / "r", agent=lake_agent())
    assert hunch.train(Rarest(), LAKE, 80, out=tmp_path / "r").steps == 80


def test_a_saved_agent_is_read_by_every_tool(tmp_path):
    agent = lake_agent()
    env = hunch.make(LAKE)
    hunch.train(agent, env, 60)
    hunch.Trained(agent, env).save(tmp_path / "s")
    hunch.Trained(agent, env).save(tmp_path / "s")  # again, over an earlier one
    assert difference(hunch.load(tmp_path / "s").agent.state_dict(), agent.state_dict()) is None
    assert load_agent(tmp_path / "s")[1].env == LAKE


def test_save_leaves_runs_and_other_things_alone(tmp_path, named):
    with pytest.raises(UsageError, match="holds a run"):
        hunch.load(named).save(named)
    (tmp_path / "letter.txt").write_text("Dear Sir")
    with pytest.raises(UsageError, match=r"letter\.txt"):
        hunch.load(named).save(tmp_path)


@pytest.mark.parametrize(
    ("prior", "again"),
    [
        (lambda lm: hunch.roles.SimilarityPrior(lm), True),
        (lambda lm: hunch.roles.SimilarityPrior(lm, temperature=0.3, repeat=0.5), True),
        (lambda lm: hunch.roles.NoveltyPrior(temperature=0.2), True),
        (lambda lm: type("Mine", (hunch.roles.SimilarityPrior,), {})(lm), False),
    ],
)
def test_what_the_folder_says_of_a_prior_makes_it_again(prior, again, tmp_path):
    lm = hunch.lm.load("bag-of-words")
    own = prior(lm)
    hunch.train(hunch.methods.ZeroShot(own), LAKE, 20, out=tmp_path)
    config = read_run(tmp_path)
    assert config.objects == (() if again else ("agent",))
    if again:
        made = load_agent(tmp_path)[0].prior
        names = ("temperature", "history", "repeat")
        assert [getattr(made, n, None) for n in names] == [getattr(own, n, None) for n in names]


def test_environments_are_told_by_their_id_where_that_makes_them_again(tmp_path):
    def told(env):
        hunch.train(Rarest(), env, 10, out=tmp_path / str(len(list(tmp_path.iterdir()))))
        config = read_run(max(tmp_path.iterdir(), key=lambda path: int(path.name)))
        return config.env, config.env_options, "env" in config.objects

    assert told(hunch.make(LAKE, max_steps=7)) == (LAKE, {"max_steps": 7}, False)
    assert told(hunch.make(LAKE, history=2)) == (LAKE, {"history": 2}, False)
    assert told(gym.wrappers.TimeLimit(hunch.make(LAKE), 5))[2]
    assert told([hunch.make(LAKE), hunch.make(LAKE, max_steps=3)])[2]
    assert told(hunch.envs.TextWrapper(gym.make("CartPole-v1"), str, ("left", "right")))[2]


class Log(hunch.Callback):
    def __init__(self, ends=0):
        self.steps, self.episodes, self.rounds, self.ends = 0, [], [], ends

    def on_step(self, run, transitions):
        self.steps += len(transitions)
        return self.steps == self.ends

    def on_episode(self, run, episode):
        self.episodes.append(episode)

    def on_evaluation(self, run, episodes):
        self.rounds.append((run.steps, len(episodes)))


def test_callbacks_see_everything_and_change_nothing():
    log = Log()
    runs = [
        hunch.train(
            Rarest(),
            LAKE,
            60,
            streams=hunch.Streams(envs=2),
            evaluation=hunch.Evaluation(every=20, episodes=3),
            watch=hunch.Watch(callbacks=callbacks),
        )
        for callbacks in ([log], [])
    ]
    assert log.steps == 60
    assert log.episodes == runs[0].episodes == runs[1].episodes
    assert log.rounds == [(20, 3), (40, 3), (60, 3)]


def test_a_callback_ends_a_run_which_goes_on_later(tmp_path):
    result = hunch.train(Rarest(), LAKE, 60, out=tmp_path / "a", watch=hunch.Watch(callbacks=[Log(ends=25)]))
    assert (result.steps, result.complete, result.stopped) == (25, False, "Log ended the run after 25 steps.")
    hunch.train(Rarest(), LAKE, 60, out=tmp_path / "a")
    hunch.train(Rarest(), LAKE, 60, out=tmp_path / "b")
    assert episodes(tmp_path / "a") == episodes(tmp_path / "b")


def test_stop_at_a_target():
    oracle = hunch.methods.ZeroShot(
        hunch.roles.build_prior(hunch.roles.PriorConfig(), hunch.lm.load("scripted:frozenlake"))
    )
    result = hunch.train(oracle, LAKE, 500, watch=hunch.Watch(callbacks=[hunch.StopAt(0.9, episodes=5)]))
    assert len(result.episodes) == 5
    result = hunch.train(
        oracle,
        LAKE,
        500,
        evaluation=hunch.Evaluation(every=30, episodes=4),
        watch=hunch.Watch(callbacks=[hunch.StopAt(1.0)]),
    )
    assert result.steps == 30
    assert hunch.train(
        Rarest(),
        LAKE,
        60,
        evaluation=hunch.Evaluation(every=30),
        watch=hunch.Watch(callbacks=[hunch.StopAt(1.0)]),
    ).complete
    with pytest.raises(UsageError, match="from 0 to 1"):
        hunch.StopAt(70)


@pytest.mark.parametrize(("solved", "n"), [(7, 25), (28, 50), (55, 100)])
def test_stop_at_exactly_the_target(solved, n):
    played = [Finished(0, i + 1, 0.0, 1, i < solved, ("one",)) for i in range(n)]
    target = hunch.StopAt(solved / n)
    assert target.on_evaluation(None, played)
    assert not target.on_evaluation(None, [*played[1:], played[-1]])


def test_a_result_is_shown(named, monkeypatch):
    result = hunch.train(
        "zero-shot", LAKE, 60, lm="uniform", evaluation=hunch.Evaluation(every=20, episodes=2)
    )
    picture = result.plot()
    assert picture._repr_png_().startswith(b"\x89PNG"), "a notebook shows it"
    lines = picture.axes[0].lines
    assert [list(line.get_xdata())[-1] for line in lines] == [result.episodes[-1].step, 60]
    assert f"<td>{len(result.episodes)}</td>" in result._repr_html_()
    result.stopped = "<script>"
    assert "<script>" not in result._repr_html_()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        result.to_pandas()


def test_a_result_as_a_data_frame():
    pandas = pytest.importorskip("pandas")
    result = hunch.train(
        "zero-shot", LAKE, 60, lm="uniform", evaluation=hunch.Evaluation(every=20, episodes=2)
    )
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(result.episodes) + 6
    assert frame["evaluation"].sum() == 6


def test_vector_environments_are_their_single_ones():
    vector = gym.make_vec(LAKE, num_envs=3, vectorization_mode="sync")
    by_vector = hunch.train(Rarest(), vector, 60)
    by_number = hunch.train(Rarest(), LAKE, 60, streams=hunch.Streams(envs=3))
    assert by_vector.episodes == by_number.episodes


class Pole(gym.Wrapper):
    pass


def lake_in_words(env=None, **options):
    """Wrap a frozen lake, with options that may be wrong."""
    words = {"describe": str, "actions": ("left", "down", "right", "up")}
    return hunch.envs.TextWrapper(env or gym.make("FrozenLake-v1"), **(words | options))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hunch.train("dqn-proir", LAKE), "did you mean 'dqn-prior'"),
        (lambda: hunch.train("dqn", "hunch/FrozenLak-v0"), "did you mean 'hunch/FrozenLake-v0'"),
        (lambda: hunch.train("dqn", LAKE, hiden=3), "did you mean 'hidden'"),
        (lambda: hunch.train("dqn-prior", LAKE, prior={"tempreature": 3}), "did you mean 'temperature'"),
        (lambda: hunch.train("dqn", LAKE, gamma=float("nan")), "gamma must be a finite number"),
        (lambda: hunch.train("dqn", LAKE, hidden=2.5), "hidden must be a whole number, not 2.5"),
        (lambda: hunch.train("dqn", LAKE, steps=1e3), "steps must be a whole number"),
        (lambda: hunch.train("dqn", LAKE, steps=-5), "steps must be at least 1"),
        (lambda: hunch.train("dqn", LAKE, seed=-1), "seed must be from 0 to 4294967295"),
        (lambda: hunch.train("dqn", LAKE, lm="uniform"), "uses no language model"),
        (lambda: hunch.train("dqn-prior", LAKE, lm="minilmm"), "did you mean 'minilm'"),
        (lambda: hunch.train(hunch.lm.load("uniform"), LAKE), "not an agent"),
        (lambda: hunch.train(hunch.methods.ZeroShot, LAKE), "is a class"),
        (lambda: hunch.train(object(), LAKE), "a subclass of hunch.core.Agent"),
        (lambda: hunch.train("zero-shot", LAKE, lm=3), "a language model or its spec"),
        (lambda: hunch.train("dqn", LAKE, lm=hunch.lm.load("uniform")), "uses no language model"),
        (
            lambda: hunch.train("zero-shot", LAKE, lm="uniform", watch=hunch.Watch(callbacks=[print])),
            "must be a hunch.Callback",
        ),
        (lambda: hunch.Trained(None), "None is not an agent"),
        (lambda: hunch.Trained(hunch.methods.DQN()), "DQN has no 'awaiting' yet"),
        (lambda: hunch.evaluate(hunch.methods.CountBonus(), LAKE), "CountBonus has no 'table' yet"),
        (
            lambda: hunch.Trained(hunch.methods.PPO()).predict("x", {"actions": ("a",)}),
            "PPO has no 'policy' yet",
        ),
        (lambda: hunch.train("dqn", LAKE, saving=hunch.Saving(last=2)), "--keep-last needs --keep-every"),
        (
            lambda: hunch.train("dqn", LAKE, saving=hunch.Saving(every=5)),
            "kept in a folder: set it with out=",
        ),
        (lambda: hunch.audition("uniform", roles="prior"), "roles is a list: write roles=['prior']"),
        (lambda: hunch.audition("uniform", worth=5), "worth must be from 0 to 1, not 5"),
        (lambda: hunch.methods.GRPO(lm="minilm"), "load it with hunch.lm.trainable('minilm')"),
        (
            lambda: hunch.methods.GRPO(lm=hunch.lm.load("bag-of-words")),
            "lm must be a model to train, not a Cached",
        ),
        (
            lambda: hunch.make(LAKE, history="x"),
            "history, the number of earlier observation-action pairs, must be a whole number",
        ),
        (lambda: hunch.train(Rarest(), LAKE, k=3), "k is only for a method given by name"),
        (lambda: hunch.train(Rarest(), LAKE, lm="uniform"), "lm is only for a method given by name"),
        (
            lambda: hunch.train(Rarest(), "CartPole-v1"),
            "use hunch/CartPole-v0, or wrap it in",
        ),
        (lambda: hunch.train(Rarest(), gym.make("CartPole-v1")), "use hunch/CartPole-v0"),
        (lambda: hunch.train(Rarest(), Pole(gym.make("CartPole-v1"))), "hunch.envs.TextWrapper"),
        (lambda: hunch.train(Rarest(), gym.make_vec("CartPole-v1", num_envs=2)), "TextWrapper"),
        (lambda: hunch.train(Rarest(), 3), "must be an id or a Gymnasium environment, not 3"),
        (
            lambda: hunch.train(Rarest(), hunch.make(LAKE), streams=hunch.Streams(envs=2)),
            "pass them as a list",
        ),
        (lambda: hunch.train(Rarest()), "nothing to learn from"),
        (lambda: hunch.methods.ZeroShot(hunch.lm.load("uniform")), "an action prior"),
        (lambda: hunch.methods.DQNPrior("minilm"), "an action prior"),
        (lambda: hunch.methods.DQN(encoder=hunch.lm.load("bag-of-words")), "a table of embeddings"),
        (lambda: hunch.make("hunch/Household-Pick-v0", games="four"), "games"),
        (lambda: hunch.make("nowhere_at_all:X-v0"), "needs the module nowhere_at_all, which cannot be found"),
        (lambda: hunch.load("nowhere"), "nowhere holds no run"),
        (lambda: hunch.evaluate(Rarest(), "hunch/FrozenLak-v0"), "did you mean"),
        (lambda: hunch.train(LAKE, "dqn"), "is an environment, and a method comes first"),
        (lambda: hunch.train("dqn", lambda: hunch.make(LAKE)), ": call it to make one"),
        (lambda: hunch.train("dqn", LAKE, steps="20"), "steps must be a whole number, not '20'"),
        (lambda: hunch.train("dqn", LAKE, steps=True), "steps must be a whole number, not True"),
        (lambda: hunch.train("dqn", LAKE, seed=1.5), "seed must be a whole number"),
        (lambda: hunch.train("dqn", LAKE, out=3), "out is the path of a folder, not 3"),
        (lambda: hunch.train("dqn", LAKE, evaluation=100), "evaluation is a hunch.Evaluation, not 100"),
        (
            lambda: hunch.train("dqn", LAKE, evaluation=hunch.Evaluation(LAKE, every=10)),
            "write hunch.Evaluation([hunch.make(ID)], every=...)",
        ),
        (lambda: hunch.train("dqn", LAKE, streams=4), "streams is a hunch.Streams, not 4"),
        (
            lambda: hunch.train("q-learning", LAKE, learning_rate=3.0),
            "learning_rate must be at most 1, not 3.0",
        ),
        (lambda: hunch.train("tabular-q", LAKE, learning_rate=3.0), "learning_rate must be at most 1"),
        (lambda: hunch.train("dqn", LAKE, watch=print), "watch is a hunch.Watch"),
        (lambda: hunch.train("dqn", LAKE, stop=print), "no argument stop any more: use watch=hunch.Watch("),
        (lambda: hunch.train("zero-shot", LAKE, lm=["uniform"]), "a language model or its spec"),
        (
            lambda: hunch.train("dqn-prior", LAKE, lm="uniform", prior="text"),
            "prior must be a PriorConfig, not 'text'",
        ),
        (lambda: hunch.evaluate("dqn", LAKE), "'dqn' is a text, not an agent: train or load one first"),
        (lambda: hunch.evaluate(Rarest(), LAKE, "3"), "episodes must be a whole number, not '3'"),
        (lambda: hunch.evaluate(Rarest(), LAKE, 0), "episodes must be at least 1, not 0"),
        (lambda: hunch.evaluate(Rarest(), LAKE, 1, seed=-1), "seed must be at least 0, not -1"),
        (lambda: hunch.evaluate(Rarest(), LAKE, 1, threads=0), "threads must be from 1 to 1024, not 0"),
        (
            lambda: hunch.evaluate(Rarest(), LAKE, 1, episodes_per_player=1.5),
            "episodes_per_player must be a whole number or none, not 1.5",
        ),
        (lambda: hunch.Trained(Rarest(), seed=-1), "seed must be at least 0, not -1"),
        (lambda: hunch.load("run", step="x"), "step must be a whole number, not 'x'"),
        (lambda: hunch.audition(None), "lm is a model, its spec such as 'minilm', or a list of these"),
        (lambda: hunch.audition("uniform", roles=[3]), "roles must be text, not 3"),
        (lambda: hunch.train("cql", data=__file__), "is a file, which only the command reads, by --data"),
        (lambda: hunch.StopAt("half"), "success must be a number, not 'half'"),
        (lambda: hunch.envs.check("lake"), "check takes a Gymnasium environment"),
        (lambda: lake_in_words(describe="cell"), "describe must be a function"),
        (lambda: lake_in_words(success=True), "success must be a function"),
        (lambda: lake_in_words(task=3), "task must be a text, not 3"),
        (lambda: lake_in_words(env="FrozenLake-v1"), "TextWrapper wraps a Gymnasium environment"),
        (lambda: Proposals("minilm", hunch.make(LAKE)), "The environment comes first"),
        (lambda: Proposals(hunch.make(LAKE), "minilm", k=0), "k must be at least 1"),
    ],
)
def test_misuse_is_one_clear_sentence(call, sentence):
    with pytest.raises(UsageError) as caught:
        call()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_option_of_a_method_may_have_the_name_of_a_former_argument():
    """The stop of a planner is the action that ends its plan."""
    result = hunch.train("saycan", LAKE, 20, lm="uniform", stop="Go Up")
    assert result.agent.config.stop == "Go Up"


def test_a_refused_run_leaves_nothing_behind(tmp_path):
    for bad in ({"lm": "minilmm"}, {"gamma": 2.0}, {"steps": 0}):
        with pytest.raises(UsageError):
            hunch.train("dqn-prior", LAKE, **{"out": tmp_path / "r", **bad})
    assert list(tmp_path.iterdir()) == []


def test_one_thread_during_the_run_and_as_before_after_it():
    import torch

    seen = []

    class Look(hunch.Callback):
        def on_step(self, run, transitions):
            seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        hunch.train("dqn", LAKE, 5, watch=hunch.Watch(callbacks=[Look()]), encoder="bag-of-words")
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def in_a_terminal(program):
    """What a program prints to a terminal. Its process tells the end: not every system tells it there."""
    master, slave = os.openpty()
    process = server().Process(target=shown_at, args=(os.ttyname(slave), program))
    process.start()
    shown, ended = b"", False
    while not ended:
        ended = not process.is_alive()
        while select.select([master], [], [], 0.05)[0]:
            shown += os.read(master, 1 << 16)
    os.close(slave)
    os.close(master)
    return process.exitcode, shown.decode()


def shown_at(terminal, program):
    screen = os.open(terminal, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(screen, stream)
    exec(program)


def test_without_torch_a_table_is_trained(tmp_path):
    """The package needs no extra for a run that is not kept."""
    code = (
        "import sys; sys.modules['torch'] = None; import hunch; "
        "print(hunch.train('q-learning', 'hunch/FrozenLake-v0', 40))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of 40 steps" in done.stdout


def test_progress_is_shown_in_a_terminal_and_not_elsewhere(capsys):
    hunch.train(Rarest(), LAKE, 20)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    program = "import hunch; hunch.train('zero-shot', 'hunch/FrozenLake-v0', 400, lm='uniform')"
    code, shown = in_a_terminal(program)
    assert code == 0
    assert "zero-shot" in shown
    assert "100%" in shown


def test_a_kept_config_of_a_wrong_type_is_named(named, tmp_path):
    record = read_json(named / "config.json")
    record["run"]["options"]["k"] = "two"
    (tmp_path / "config.json").write_text(json.dumps(record))
    with pytest.raises(
        HunchError, match="damaged or from another version: k must be a whole number or none, not 'two'"
    ):
        read_run(tmp_path)


def test_without_a_model_in_a_role_the_calls_are_the_encoders():
    without = hunch.train("dqn", LAKE, steps=30, encoder="bag-of-words")
    assert "encoder calls" in str(without)
    assert "model calls" not in str(without) + without._repr_html_()
    assert "model calls" in str(hunch.train("zero-shot", LAKE, steps=30, lm="bag-of-words"))


def test_the_interval_says_how_many_episodes_it_rests_on():
    result = hunch.train("zero-shot", LAKE, steps=400, lm="uniform")
    late = [episode for episode in result.episodes if episode.step > 300]
    assert 0 < len(late) < len(result.episodes)
    assert f"last quarter of 400 steps ({len(late)} of {len(result.episodes)} episodes); " in str(result)
    short = hunch.train("zero-shot", LAKE, steps=1, lm="uniform")
    assert str(short).startswith("no episode ended in the last quarter of 1 steps (0 of 0 episodes); ")
