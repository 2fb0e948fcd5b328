"""Methods that write programs: writers, searches, controls, resume, and what happens when all fail."""

import dataclasses
import subprocess
import sys
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import HunchError, UsageError
from hunch.envs import DesignProblem
from hunch.envs.design.code import flaw
from hunch.envs.design.mutator import programs, wanted
from hunch.lm.answers.store import Store
from hunch.methods.program.again import try_again
from hunch.methods.program.code_policy import CodePolicy
from hunch.methods.program.eureka import Eureka
from hunch.methods.program.funsearch import FunSearch, FunSearchConfig, versions
from hunch.methods.program.gif_mcts import GIFMCTS
from hunch.numbers import softmax
from hunch.roles.writer.programs import Attempt, ModelWriter, Mutator
from hunch.roles.writer.search import BestOfN, Greedy, HillClimbing, Islands, Refinement
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines
from hunch.runs.progress import note

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::RuntimeWarning")
ALL = (FunSearch, CodePolicy, Eureka, GIFMCTS)
START = "def f(x):\n    return 0.5 * x\n"


def near_three(program):
    """Fitness: how near f(1) is to 3. The function is arithmetic of the mutator's, so it may be run here."""
    names = {"np": np}
    exec(program, names)
    return -abs(float(names["f"](1.0)) - 3)


def problem(evaluate=near_three):
    return DesignProblem(
        evaluate,
        task="Write a function whose value at 1 is 3.",
        interface=f"```python\n{START}```",
        function="f",
        parameters=("x",),
        start=START,
        target=-0.01,
    )


PROBLEM = problem().problem


class Recorder:
    """A writer that notes what it is shown, and numbers its programs."""

    evidence = None

    def __init__(self):
        self.shown = []

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        self.shown.append((tuple(p.number for p in parents), feedback, n))
        return [f"def f(x):\n    return {(first + i) % 997} / 100" for i in range(n)]


def made(agent, writer=None, **options):
    return agent(writer or Mutator(), **options)


def attempt(number, fitness, **more):
    return Attempt(number, f"def f(x):\n    return {number}", fitness, **more)


# ---- the contract -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ALL)
def test_every_method_has_the_settings_of_feedback(agent):
    known = {field.name for field in dataclasses.fields(agent.config_class)}
    assert {"feedback", "retries", "give_up"} <= known


@pytest.mark.parametrize("feedback", ["blind", "shuffled", "fresh"])
def test_every_control_keeps_it(feedback):
    methods.check(made(Eureka, feedback=feedback, population=3), problem(), steps=14)


def test_a_model_behind_the_command_keeps_it():
    method = methods.find("funsearch")
    agent = method.build(method.config_class(islands=2), {"lm": lm.load("scripted:mutator")})
    methods.check(agent, problem(), steps=14)
    assert agent.evidence == "L0"


def test_searches_get_better_and_keep_their_records(tmp_path):
    agent = made(FunSearch, search="hill")
    hunch.train(agent, [problem() for _ in range(4)], 200, out=tmp_path, seed=1)
    lines = read_lines(tmp_path / "programs.jsonl")
    assert [line["number"] for line in lines] == list(range(200))
    fitness = [line["fitness"] for line in lines if line["fitness"] is not None]
    assert fitness[0] == -2.5
    assert max(fitness) > -0.2
    assert len({line["program"] for line in lines}) > 180, (
        "what was tried is written again before it is tried"
    )
    winner = agent.player(0).act([None, None])
    assert near_three(winner[0]) == max(fitness)
    assert (tmp_path / "best.py").read_text().endswith(winner[0])
    assert winner[0] == winner[1]


def test_the_best_program_scores_itself(tmp_path):
    """In the sandbox: what it says when it is run here is never carried out."""
    bins = {"items": 10, "instances": 2}
    options = FunSearchConfig()
    config = RunConfig(
        method="funsearch",
        env="hunch/Heuristic-BinPacking-v0",
        env_options=bins,
        lm="scripted:mutator",
        steps=8,
        options=options,
    )
    result = execute(config, tmp_path / "run")
    best = tmp_path / "run" / "best.py"
    best.write_text(best.read_text() + "\n\nprint('carried out')\n")
    said = subprocess.run(
        [sys.executable, best], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    top = max(episode.episode_return for episode in result.episodes)
    assert said.startswith(f"fitness {top:g} in hunch/Heuristic-BinPacking-v0")
    assert "bins used" in said
    assert "carried out" not in said


def test_a_run_ends_with_the_fitness_of_its_best_program(tmp_path, capsys):
    out = tmp_path / "run"
    bins = "--env hunch/Heuristic-BinPacking-v0 --env.items 10 --env.instances 2"
    main(f"run funsearch {bins} --lm scripted:mutator --steps 4 --out {out}".split())
    top = max(line["fitness"] or -9.0 for line in read_lines(out / "programs.jsonl"))
    assert f"Best program: {out / 'best.py'}, fitness {top:.6g}." in capsys.readouterr().out
    failing = "--lm scripted:writer?malformed=1 --env hunch/RewardDesign-Gymnasium-v0 --retries 0"
    main(f"run eureka {failing} --steps 2 --out {tmp_path / 'failed'}".split())
    assert "No program ran; " in capsys.readouterr().out


def test_the_progress_of_a_search_shows_the_best_fitness():
    line = {"success": 0.0, "usage": {"calls": 4}}
    assert note([line]) == "success 0.00, 4 calls"
    assert note([{**line, "failed_programs": 0.5, "best": -9.14}]) == "best -9.14, success 0.00, 4 calls"
    assert note([{**line, "failed_programs": 1.0}]) == "no program ran, success 0.00, 4 calls"


class Always:
    """A writer of one program."""

    evidence = None

    def __init__(self, program):
        self.program = program

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        return [self.program] * n


LATE = "from __future__ import annotations\n\ndef priority(item: Later, bins):\n    return -bins\n"


def test_a_program_with_a_future_import_is_tried_again(tmp_path, capsys):
    env = hunch.make("hunch/Heuristic-BinPacking-v0", items=10, instances=2)
    result = hunch.train(CodePolicy(Always(LATE)), env, 1, out=tmp_path)
    best = tmp_path / "best.py"
    compile(best.read_text(), best, "exec")
    assert not flaw(best.read_text(), "priority", ("item", "bins"))
    try_again(str(best))
    assert capsys.readouterr().out.startswith(f"fitness {result.episodes[0].episode_return:g} in hunch/")


OF_MINE = """
import hunch


def bins():
    return hunch.make("hunch/Heuristic-BinPacking-v0", items=10, instances=2)
"""


def test_a_problem_in_a_file_of_mine_is_tried_again_in_the_folder_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "bins_of_mine.py").write_text(OF_MINE)
    monkeypatch.syspath_prepend(tmp_path)
    run = tmp_path / "run"
    hunch.train(CodePolicy(Always(LATE)), "bins_of_mine:bins", 1, out=run)
    for folder, words in (
        (tmp_path, "fitness -"),
        (run, "If bins_of_mine is a file of yours, run this in its"),
    ):
        done = subprocess.run(
            [sys.executable, str(run / "best.py")], cwd=folder, capture_output=True, text=True
        )
        assert words in done.stdout + done.stderr


def test_a_problem_made_in_python_cannot_be_made_again_and_a_sentence_says_so(tmp_path):
    hunch.train(made(CodePolicy), problem(), 2, out=tmp_path)
    with pytest.raises(SystemExit, match=r"best\.py cannot be tried again: the problem .* made in Python"):
        try_again(str(tmp_path / "best.py"))


def test_a_best_text_that_is_no_python_is_kept_as_a_text(tmp_path):
    env = DesignProblem(lambda text: float(text.count("a")), task="many a's")
    hunch.train(CodePolicy(Always("it isn't a program")), env, 1, out=tmp_path)
    assert (tmp_path / "best.txt").read_text() == "it isn't a program"
    assert not (tmp_path / "best.py").exists()


def test_a_best_text_with_half_a_character_is_kept(tmp_path):
    env = DesignProblem(lambda text: float(text.count("a")), task="many a's")
    hunch.train(CodePolicy(Always("an a and \ud83d")), env, 1, out=tmp_path)
    assert (tmp_path / "best.txt").read_text() == "an a and ?"


def test_a_stopped_search_goes_on_as_if_it_had_not_been(tmp_path):
    for out, stops in (("whole", ()), ("parts", (3, 7))):
        for stop in (*stops, 1000):
            calls = iter(range(1000))
            hunch.train(
                made(FunSearch, islands=3, reset_every=10),
                [problem() for _ in range(4)],
                80,
                out=tmp_path / out,
                watch=hunch.Watch(stop=lambda s=stop, c=calls: next(c) >= s),
            )
    files = [(tmp_path / out / "programs.jsonl").read_bytes() for out in ("whole", "parts")]
    assert files[0] == files[1]


def test_when_all_fail_the_run_says_why_and_can_be_taken_up(tmp_path):
    def broken(program):
        raise ZeroDivisionError("no such world")

    for tried in (6, 12):
        with pytest.raises(
            HunchError, match=r"last 6 programs all failed: 6 times ZeroDivisionError: no such"
        ):
            hunch.train(made(CodePolicy, give_up=6), problem(broken), 50, out=tmp_path)
        lines = read_lines(tmp_path / "programs.jsonl")
        assert [line["number"] for line in lines] == list(range(tried)), "it goes on with new programs"


def test_a_run_that_was_interrupted_gives_up_after_as_many_failures_as_one_that_was_not(tmp_path):
    def broken(program):
        raise ZeroDivisionError

    calls = iter(range(9))
    stop = hunch.Watch(stop=lambda: next(calls) >= 3)
    hunch.train(made(CodePolicy, give_up=6), problem(broken), 50, out=tmp_path, watch=stop)
    assert len(read_lines(tmp_path / "programs.jsonl")) == 4
    with pytest.raises(HunchError, match="last 6 programs all failed"):
        hunch.train(made(CodePolicy, give_up=6), problem(broken), 50, out=tmp_path)
    assert len(read_lines(tmp_path / "programs.jsonl")) == 6


def test_a_line_of_a_program_reaches_the_terminal_without_control_characters(tmp_path):
    line = "def f(x): return '\x1b[31m' + "
    with pytest.raises(HunchError, match="3 times SyntaxError") as error:
        hunch.train(made(CodePolicy, Always(line), give_up=3), problem(), 9)
    assert str(error.value).isprintable()


# ---- searches ---------------------------------------------------------------------------------------------


def test_eureka_shows_a_whole_batch_the_best_of_the_last():
    writer = Recorder()
    agent = made(Eureka, writer, population=4)
    hunch.train(agent, [problem() for _ in range(4)], 16)
    batches = [agent.attempts[i : i + 4] for i in range(0, 16, 4)]
    for before, after in pairwise(batches):
        top = max(before, key=lambda a: a.fitness)
        assert {a.parents for a in after} == {(top.number,)}
        assert f"fitness: {top.fitness:.6g}" in after[0].shown
    assert [n for _, _, n in writer.shown] == [4, 4, 4, 4], "one call for a batch"


def test_the_best_of_all_batches_is_the_parent_from_the_next_batch_on():
    search, rng = made(Eureka, Recorder(), population=3, keep="best").search(), np.random.default_rng(0)
    for number, fitness in enumerate([0.1, 0.3, 0.2]):
        assert search.ask(1, rng)[0].parents == (), "the batch is not complete"
        search.tell([attempt(number, fitness)], rng)
    assert search.ask(1, rng)[0].parents[0].number == 1
    search.tell([attempt(3, 0.2), attempt(4, None), attempt(5, 0.25)], rng)
    assert search.ask(1, rng)[0].parents[0].number == 1, "the last batch has no better one"


def test_a_batch_that_failed_is_asked_for_again():
    search, rng = Greedy(2), np.random.default_rng(0)
    search.tell([attempt(0, None), attempt(1, None)], rng)
    assert search.ask(1, rng)[0].parents == ()
    search.tell([attempt(2, 1.0), attempt(3, None)], rng)
    search.tell([attempt(4, None), attempt(5, None)], rng)
    assert search.ask(2, rng)[1].parents[0].number == 2


def test_lineages_and_climbers():
    rng = np.random.default_rng(0)
    line, climber, single = Refinement(), HillClimbing(drift=True), BestOfN()
    told = [attempt(0, 1.0), attempt(1, 3.0), attempt(2, None), attempt(3, 3.0), attempt(4, 2.0)]
    for search in (line, climber, single):
        search.tell(told, rng)
    assert line.ask(1, rng)[0].parents == (told[4],)
    assert climber.ask(1, rng)[0].parents == (told[3],)
    assert single.ask(3, rng)[2].parents == ()


def test_islands_share_the_first_program_and_lose_the_worse_half():
    search, rng = Islands(4, reset_every=5), np.random.default_rng(0)
    search.tell([attempt(0, 0.0, group=-1)], rng)
    assert [island.size for island in search.islands] == [1, 1, 1, 1]
    search.tell([attempt(1 + i, float(i), group=i) for i in range(4)], rng)
    assert [island.best.fitness for island in search.islands[2:]] == [2.0, 3.0]
    assert {island.best.fitness for island in search.islands[:2]} <= {2.0, 3.0}
    assert [island.size for island in search.islands[:2]] == [1, 1]


def test_parents_ascend_and_fitter_clusters_come_more_often():
    search, rng = Islands(1, temperature=1.0, reset_every=0), np.random.default_rng(0)
    search.tell([attempt(i, float(i % 3), group=0) for i in range(9)], rng)
    requests = search.ask(400, rng)
    assert all(a.fitness <= b.fitness for a, b in (r.parents for r in requests))
    alike = sum(a.fitness == b.fitness for a, b in (r.parents for r in requests)) / len(requests)
    assert alike == pytest.approx(sum(softmax(np.arange(3.0)) ** 2), abs=0.1), "with replacement"
    times = [sum(float(k) in [p.fitness for p in r.parents] for r in requests) for k in range(3)]
    assert times[0] < times[1] < times[2]
    np.testing.assert_allclose(softmax(np.arange(2.0)), [1 / (1 + np.e), np.e / (1 + np.e)])


# ---- controls and prompts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fitness", [(1e308, -1e308), (-1e308, -1.1e308), (1e308,), (-1e308, 0.0)])
def test_islands_draw_parents_of_any_finite_fitness(fitness):
    search, rng = Islands(1), np.random.default_rng(0)
    search.tell([attempt(i, f) for i, f in enumerate(fitness)], rng)
    parents = [parent for request in search.ask(40, rng) for parent in request.parents]
    assert parents
    assert max(fitness) in [parent.fitness for parent in parents]


def test_controls_change_what_the_writer_is_shown_and_nothing_else():
    seen = {}
    for kind in ("own", "blind", "shuffled", "fresh"):
        agent = made(Eureka, Recorder(), population=2, feedback=kind)
        hunch.train(agent, [problem(), problem()], 12)
        seen[kind] = agent.attempts[2:]
    for a in seen["own"]:
        assert f"fitness: {agent.attempts[0].fitness:.0f}"[:8] in a.shown
    assert all(a.parents and not a.shown for a in seen["blind"])
    assert all(not a.parents and not a.shown for a in seen["fresh"])
    told = {a.number: a.outcome_text() for a in [*agent.attempts]}
    assert all(a.shown and a.shown != told[a.parents[0]] for a in seen["shuffled"])


@pytest.mark.parametrize("agent", ALL)
def test_prompts_hold_problem_parent_and_feedback(agent):
    parent = attempt(5, 1.0)
    prompt = agent.prompt(PROBLEM, [parent], "part_1: 0.1, 0.2")
    assert PROBLEM.task in prompt
    assert "return 5" in prompt
    assert "part_1: 0.1, 0.2" in prompt
    assert wanted(prompt) == "f"
    assert len(programs(prompt, "f")) >= 1


def test_gif_mcts_says_that_a_fitness_has_to_be_a_share():
    bed = DesignProblem(lambda program: 9.4, task="Write a function.", function="f", parameters=("x",))
    with pytest.raises(UsageError, match=r"fitness is at most 1, such as .* a program has 9\.4"):
        hunch.train(GIFMCTS(Scribe()), bed, 4)


def test_an_error_that_came_once_is_counted_in_words():
    class Twice:
        evidence = None

        def write(self, problem, parents, feedback, n, first):
            return ["def f(x):\n    return 1 / 0" if number else "" for number in range(first, first + n)]

    agent = FunSearch(Twice(), search="single", give_up=3, retries=0)
    bed = DesignProblem(near_three, task="Write a function.", function="f", parameters=("x",))
    with pytest.raises(HunchError, match=r"2 times ZeroDivisionError.*; once the answer holds no code\."):
        hunch.train(agent, bed, 4)


def test_a_writer_of_your_own_need_not_know_kinds_of_request():
    class Own:
        evidence = None

        def write(self, problem, parents, feedback, n, first):
            return [f"def f(x):\n    return {number % 7}.0 * x" for number in range(first, first + n)]

    agent = FunSearch(Own(), search="hill")
    hunch.train(agent, problem(), 8)
    assert "return 3.0 * x" in agent.explain(None).note


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (["def f(x):\n    return 1"] * 3, "write of Own returned another number of programs than 1: 3"),
        ([], "than 1: 0"),
        (None, "must return a list of programs"),
        ([None], "must return a list of programs"),
        ("d", "must return a list of programs"),
    ],
)
def test_a_writer_of_your_own_that_returns_something_else_is_named(written, why):
    class Own:
        evidence = None

        def write(self, problem, parents, feedback, n, first):
            return written

    with pytest.raises(UsageError, match=why):
        hunch.train(FunSearch(Own(), search="single"), problem(), 4)


@pytest.mark.parametrize("writer", ["qwen-coder-1.5b", object(), None])
def test_what_cannot_write_is_refused_at_once(writer):
    with pytest.raises(UsageError, match="FunSearch needs a language model, such as"):
        FunSearch(writer)


def test_a_version_that_calls_itself_calls_its_own_name():
    code = versions(
        "f", ("x",), ["def f(x):\n    return f(x - 1)", "def f(x):\n    return 1\n\ndef f(x):\n    return 2"]
    )
    assert "def f_v0(x):\n    return f_v0(x - 1)" in code
    assert code.count("def f_v1(x)") == 1
    assert "def f_v1(x):\n    return 2" in code


class Scribe:
    """A writer whose functions use an import that they leave to the file."""

    evidence = None

    def write(self, problem, parents, feedback, n, first=0, kind=""):
        return [f"def f(x):\n    return np.float64({first + i})" for i in range(n)]


def test_a_next_version_stands_in_the_file_that_was_shown():
    start = f"import numpy as np\n\n{START}"
    bed = DesignProblem(near_three, task="Write a function.", function="f", parameters=("x",), start=start)
    agent = FunSearch(Scribe(), search="hill")
    hunch.train(agent, bed, 6)
    assert all(one.program.startswith("import numpy as np") for one in agent.attempts)
    assert [one.copy_of for one in agent.attempts] == [None] * 6
    # Its imports stay in the prompt and in the file, also where a parent did without them.
    parent = Attempt(1, "def f(x):\n    return 1.0", 1.0)
    assert "import numpy as np" in FunSearch.prompt(bed.problem, [parent], "")
    assert agent._drawn([parent], "", 1, "")[0].startswith("import numpy as np")
    # A plain request shows no file, and asks for a whole program.
    agent = FunSearch(Scribe(), search="hill", request="plain")
    hunch.train(agent, bed, 6)
    assert not any("import" in one.program for one in agent.attempts[1:])


def test_versions_stand_in_order_and_the_next_is_asked_for():
    prompt = FunSearch.prompt(PROBLEM, [attempt(1, 1.0), attempt(2, 2.0)], "")
    assert (
        prompt.index("def f_v0")
        < prompt.index("return 1")
        < prompt.index("def f_v1")
        < prompt.index("def f_v2")
    )
    assert [p.count("return") for p in programs(prompt, "f")[-2:]] == [1, 1]


@pytest.mark.parametrize("value", ["0x" + "f" * 5000, "-" * 400 + "1", "'\0'"])
def test_a_program_that_cannot_be_written_again_is_shown_as_it_is(value):
    """A repair begins with it: taking it apart would end the run."""
    broken = Attempt(1, f"def f(x):\n    return {value}", None, error="SyntaxError: too deep")
    assert broken.program in FunSearch.prompt(PROBLEM, [broken], "SyntaxError: too deep")


def test_funsearch_refuses_a_problem_without_a_function():
    with pytest.raises(UsageError, match="names the function"):
        hunch.train(made(FunSearch), DesignProblem(len, task="long"), 2)


# ---- the scripted writer ----------------------------------------------------------------------------------


def test_recorded_answers_write_too(tmp_path, monkeypatch):
    """A writer behind replay: gives what was recorded, and refuses what was not."""
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    writer = ModelWriter(lm.load("scripted:mutator", cache=tmp_path / "answers.sqlite"))
    first = writer.write(PROBLEM, (), "", 2)
    main(["cache", "export", str(tmp_path / "answers.jsonl")])
    recorded = ModelWriter(lm.load(f"replay:{tmp_path / 'answers.jsonl'}"))
    assert recorded.write(PROBLEM, (), "", 2) == first
    with pytest.raises(HunchError):
        recorded.write(PROBLEM, (), "other", 2)


# ---- GIF-MCTS ---------------------------------------------------------------------------------------------


def cliff():
    return hunch.make("hunch/WorldModelCode-v0", episodes=2)


@pytest.mark.parametrize("search", ["tree", "thompson", "linear", "single"])
def test_a_world_model_search_that_is_taken_up_again_goes_on_as_it_was(search, tmp_path):
    model = lm.load("scripted:modeller?repair=0.3&break=0.2&crash=0.2")

    def run(out, **more):
        agent = GIFMCTS(model, search=search)
        hunch.train(agent, [cliff() for _ in range(2)], 24, out=out, **more)
        return agent.records()

    whole, calls = run(tmp_path / "whole"), iter(range(100))
    run(tmp_path / "parts", watch=hunch.Watch(stop=lambda: next(calls) >= 5))
    assert run(tmp_path / "parts") == whole
    assert any(line["fitness"] is None for line in whole)


class Tired:
    """A writer that stops answering after some calls."""

    def __init__(self, patience):
        self.inner, self.left, self.asked = (
            lm.load("scripted:modeller?repair=0.3&break=0.2").model,
            patience,
            0,
        )

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.left -= 1
        if self.left < 0:
            raise HunchError("The model gave no answer within 9 s.")
        self.asked += len(prompts) * k
        return self.inner.generate(prompts, k, sampling, first)


def test_a_writer_that_stops_answering_in_a_search_is_paid_for_nothing_twice(tmp_path):
    def run(patience, out):
        model = Tired(patience)
        agent = GIFMCTS(lm.Cached(model, Store(tmp_path / f"{out}.sqlite")), search="tree")
        fails = pytest.raises(HunchError, match="no answer within 9 s")
        with fails if patience < 10 else nullcontext():
            hunch.train(agent, cliff(), 10, out=tmp_path / out)
        return agent.records(), model.asked

    whole, asked = run(10**6, "whole")
    first, second = run(4, "parts")[1], run(10**6, "parts")
    assert second[0] == whole
    assert (first, first + second[1]) == (4, asked)


def test_once_all_is_foretold_no_model_is_asked():
    agent = GIFMCTS(lm.load("scripted:modeller?bugs=0.05&repair=1"))
    result = hunch.train(agent, cliff(), 30)
    first = next(line["number"] for line in agent.records() if line["fitness"] == 1.0)
    assert first < 25
    assert result.models["lm"]["calls"] == first + 1
    assert {line["fitness"] for line in agent.records()[first:]} == {1.0}
    assert len({line["program"] for line in agent.records()[first:]}) == 1


def test_each_action_of_the_tree_has_its_words():
    writer = ModelWriter(lm.load("scripted:modeller"), GIFMCTS.prompt)
    told = {
        "first lines": writer.prompt(PROBLEM, (Attempt(0, "def f(x):", None),), ""),
        "Oh": writer.prompt(PROBLEM, (Attempt(0, START, None, error="Oh"),), "The program failed. Oh"),
        "fitness: 0.5": writer.prompt(PROBLEM, (Attempt(0, START, 0.5),), "fitness: 0.5"),
    }
    assert all(word in prompt for word, prompt in told.items())
    assert len(set(told.values())) == 3
    assert "first lines" not in writer.prompt(PROBLEM, (Attempt(0, START, 0.5),), "")
    assert all(wanted(prompt) == "f" for prompt in told.values())


def test_without_the_feedback_the_repairs_stop():
    """At equal calls, and with a writer that puts every finding right."""
    model, env = lm.load("scripted:modeller?bugs=0.4&repair=1&crash=0.1"), cliff()
    best = {}
    for feedback in ("own", "blind", "shuffled"):
        agents = [GIFMCTS(model, feedback=feedback, give_up=0) for _ in range(3)]
        for seed, agent in enumerate(agents):
            hunch.train(agent, env, 15, seed=seed)
        best[feedback] = np.mean([max(line["fitness"] or 0 for line in a.records()) for a in agents])
    assert best["own"] > max(best["blind"], best["shuffled"]) + 0.02
