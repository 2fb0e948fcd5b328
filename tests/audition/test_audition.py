"""The audition: questions with known answers, models with known errors, verdicts, and the command."""

import json
import math
import random
import re
import shlex
import threading
from dataclasses import replace
from zlib import crc32

import gymnasium
import numpy as np
import pytest

import hunch
from hunch.audition import frontier as frontiers
from hunch.audition.answer import Audition, Heard, Line, advice, brief, deciding, plain
from hunch.audition.frontier import Frontier, Point, over, verdict
from hunch.audition.hearing import hear
from hunch.audition.page import page
from hunch.audition.placing import placed_in
from hunch.audition.planner import SKILLS
from hunch.audition.prior import PRIOR, accuracy, states
from hunch.audition.question import Bed, Manner, Scores, best, moments, won_by_search
from hunch.audition.roles import ROLES, role_named
from hunch.audition.text_judge import PRINCIPLE
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.envs import Outcome, TextEnv
from hunch.envs.kitchen.errands import ERRANDS, plans
from hunch.lm import Cached, load
from hunch.lm.base import Model, OptionScores
from hunch.lm.budget import Budget
from hunch.lm.speech import ONE_LINE
from hunch.rl.episodes import play
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.language import prompt

LAKE = Bed("hunch/FrozenLake-v0")


def heard(role, model, n=120, bed=0, seed=0):
    found = role_named(role)
    drawn = found.draw(found.beds[bed], n, seed)
    return hear(found, found.beds[bed], model, load(model, cache=None), drawn, seed)


# ---- questions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_same_seed_asks_the_same(role):
    one, other = (heard(role.name, "uniform", n=9) for _ in range(2))
    assert one.ability == other.ability
    assert one.questions == other.questions >= 9


@pytest.mark.parametrize("bed", role_named("prior").beds, ids=lambda bed: bed.env)
def test_the_solver_gets_there_by_right_actions_alone(bed):
    """From every question, taking any action that counts as right brings the goal nearer."""
    env = bed.make(0)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        for _ in range(60):
            plan = env.unwrapped.oracle()
            state = hunch.core.State.read(observation, info)
            good = sorted(best(env, plan, state))
            assert plan[0] in good
            observation, _, ended, _, info = env.step(good[seed % len(good)])
            if ended:
                break
        assert info["success"]


def test_states_are_spread_over_episodes_and_have_a_choice():
    drawn = moments(LAKE, 60, 0)
    assert len(drawn) == 60
    assert len({m.episode for m in drawn}) > 10
    assert all(0 < len(m.good) < len(m.state.options) for m in drawn)


class _Corridor(TextEnv):
    """Four steps to the door, of four: the solver refuses to answer once the last one is taken."""

    def __init__(self):
        super().__init__(max_steps=4)
        self._left = self._steps_left = 0

    def oracle(self):
        if not self._steps_left:
            raise UsageError("No episode is running.")
        return ("go",) * self._left

    def _begin(self, options):
        self._left = self._steps_left = 4
        return Outcome("A corridor.", ("go", "stay"))

    def _move(self, action):
        self._left -= action == "go"
        self._steps_left -= 1
        won = not self._left
        text = f"{self._left} steps to the door."
        return Outcome(text, ("go", "stay"), float(won), terminated=won, success=won)


def test_a_solver_may_know_nothing_after_the_last_step():
    drawn = moments(Bed("corridor", given=_Corridor()), 20, 0)
    assert len(drawn) == 20
    assert {m.good for m in drawn} == {frozenset({"go"})}


def test_every_plan_is_made_of_skills_and_ends():
    for errand in ERRANDS:
        for plan in plans(errand.goal):
            assert set(plan) <= set(SKILLS)
            assert plan[-1] == "done"


# ---- abilities --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "bed", "rule"),
    [
        ("prior", 2, "scripted:frozenlake"),
        ("policy", 2, "scripted:frozenlake"),
        ("judge", 0, "scripted:judge"),
        ("judge", 1, "scripted:judge"),
    ],
)
def test_a_rule_that_knows_the_answer_is_right(role, bed, rule):
    assert heard(role, rule, bed=bed).ability > 0.9


@pytest.mark.parametrize(
    ("role", "model", "least", "most"),
    [
        ("reader", "pocket?corpus=clip", 0.8, 1.0),
        ("reader", "uniform", 0.05, 0.35),
        ("formaliser", "scripted:formaliser", 1.0, 1.0),
        ("formaliser", "uniform", 0.0, 0.0),
        ("text-judge", "uniform", 0.4, 0.6),
        ("formaliser", "pocket?corpus=statements", 0.45, 0.75),
    ],
)
def test_stored_questions_have_right_answers(role, model, least, most):
    answers_stored_questions(role, model, least, most)


def answers_stored_questions(role, model, least, most):
    """Check the share of the last bed's stored questions to which a model has the right answer."""
    bed = len(role_named(role).beds) - 1
    assert role_named(role).beds[bed].stored
    assert least <= heard(role, model, n=200, bed=bed).ability <= most


def test_a_judge_of_captions_need_not_see_and_one_of_pictures_must():
    for model, bed, lacks in (("scripted:judge", -1, "see"), ("pocket?corpus=clip", 0, "decide or generate")):
        found = heard("preference", model, n=20, bed=bed)
        assert not found.has_score
        assert found.why == f"it cannot {lacks}"


def test_neither_words_nor_length_tell_which_text_is_right():
    role = role_named("text-judge")
    drawn = role.draw(role.beds[0], 400, 0)
    assert role.lexical(drawn, 0).ability == 0.5
    longer = [len(pair.better.split()) > len(pair.worse.split()) for pair in drawn]
    assert np.mean(longer) == 0.5


def test_a_formaliser_by_words_fails_where_brackets_are_needed():
    role = role_named("formaliser")
    drawn = role.draw(role.beds[0], 60, 0)
    right = role.lexical(drawn, 0).values
    assert 0.2 < right.mean() < 0.8
    assert all("(" in str(goal) for goal, own in zip(drawn, right, strict=True) if not own)


def test_a_planner_that_wants_another_thing_is_wrong():
    """The rule knows every errand, but goes for one of the things that would do, whatever was begun."""
    assert 0.7 < heard("planner", "scripted:errands").ability < 1


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_errors_are_measured(error):
    """Within four standard errors of the truth."""
    found = heard("judge", f"scripted:judge?error={error}", n=400)
    assert abs(found.ability - (1 - error)) < 4 * math.sqrt(error * (1 - error) / 400)
    low, high = found.interval
    assert low < found.ability < high


def test_lasting_errors_are_told_from_noise():
    noise = heard("judge", "scripted:judge?error=0.3", n=200)
    lasting = heard("judge", "scripted:judge?systematic=1&error=0.3", n=200)
    assert noise.columns["lasting errors"] < 0.5
    assert lasting.columns["lasting errors"] == 1.0


@pytest.mark.parametrize(("dials", "last"), [("error=0.7", 0.0), ("error=0.4&systematic=1", 1.0)])
def test_errors_of_a_policy_last_or_do_not(dials, last):
    found = heard("policy", f"scripted:frozenlake?{dials}", bed=2)
    assert found.columns["lasting errors"] == pytest.approx(last, abs=0.15)


def test_a_prompt_beyond_the_context_is_no_measurement():
    role = role_named("writer")
    drawn = role.draw(role.beds[2], 2, 0)
    found = hear(role, role.beds[2], "pocket", load("pocket", cache=None), drawn, 0)
    assert not found.has_score
    assert "reads at most 1024" in found.why


def test_a_model_that_knows_nothing_is_at_chance():
    assert abs(heard("judge", "uniform", n=400).ability - 0.5) < 0.1
    assert abs(heard("preference", "uniform", n=60, bed=1).ability - 0.5) < 0.2


def test_refusals_are_no_verdicts():
    found = heard("judge", "scripted:judge?refusal=1", n=20)
    assert not found.has_score
    assert found.why == "100% of the answers could not be read"
    assert found.columns["no verdict"] == 1


def test_few_unreadable_answers_count_as_wrong():
    found = heard("judge", "scripted:judge?refusal=0.5", n=60)
    assert 0.3 < found.unread < 0.7
    assert abs(found.ability - (1 - found.unread)) < 0.05


def test_a_model_without_the_verb_cannot():
    found = heard("writer", "bag-of-words", n=3)
    assert not found.has_score
    assert "cannot generate" in found.why


def test_intervals_count_episodes():
    """Ten equal answers within each of four episodes say no more than four answers."""
    values = np.repeat([0.0, 1.0, 1.0, 0.0], 10)
    low, high = Scores(values, np.repeat(range(4), 10).tolist()).interval
    assert low == 0
    assert high == 1


def test_rare_errors_may_be_missed():
    """Eight episodes without an error leave room for one, whatever the number of questions in them."""
    values, groups = np.ones(32), np.repeat(range(8), 4).tolist()
    low, high = Scores(values, groups).interval
    assert 0.6 < low < 0.7
    assert high == 1
    assert Scores(0 * values, groups).interval == pytest.approx((1 - high, 1 - low))


class Says(Model):
    """It says the same, whatever it is asked."""

    name, revision, verbs = "says", "1", frozenset({"generate"})

    def __init__(self, text):
        self.text = text

    def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
        return [[self.text] * k for _ in prompts]


class Repeats(Model):
    """A writer that repeats the last program of the request, with a comment and another import."""

    name, revision, verbs = "repeats", "1", frozenset({"generate"})

    def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
        shown = [re.findall(r"```python\n(.*?)```", prompt, re.DOTALL)[-1] for prompt in prompts]
        return [[f"```python\nimport math\n{program}# new\n```"] * k for program in shown]


@pytest.mark.parametrize("bed", [0, 1, 2])
def test_a_writer_that_repeats_what_it_reads_writes_nothing(bed):
    role = role_named("writer")
    drawn = role.draw(role.beds[bed], 6, 0)
    scores = role.ask(Cached(Repeats()), drawn, 0)
    assert scores.ability == 0.0
    assert scores.columns["copies"] == 1.0


def test_a_writer_that_knows_the_problem_has_every_program_right():
    found = heard("writer", "scripted:modeller?bugs=0&repair=1", n=6, bed=2)
    assert (found.ability, found.columns["copies"]) == (1.0, 0.0)


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
def test_a_planner_that_names_no_skill_is_wrong():
    """A plan ends at an answer that cannot be read, but that is no sign that the model knew it."""
    role = role_named("planner")
    drawn = role.draw(role.beds[0], 60, 0)
    assert role.ask(Cached(Says("done")), drawn, 0).ability > 0.1
    assert role.ask(Cached(Says("I cannot help with that.")), drawn, 0).ability == 0


@pytest.mark.parametrize("error", [0.3, 0.6])
def test_noise_does_not_last_however_frequent(error):
    model = f"scripted:judge?error={error}"
    found = [heard("judge", model, n=80, seed=seed).columns["lasting errors"] for seed in range(8)]
    assert np.mean(found) < 0.4


def test_captions_of_pairs_tell_them_apart():
    role = role_named("preference")
    for bed in role.beds:
        drawn = role.draw(bed, 30, 0)
        assert len({(p.task, *sorted((p.better, p.worse))) for p in drawn}) > 0.8 * len(drawn)


def test_the_ability_of_a_prior_that_states_probabilities_does_not_hang_on_a_draw():
    """It is the probability of the right actions, and not the share of five draws, a multiple of a fifth."""
    by_seed = [accuracy(load("bag-of-words", cache=None), states(LAKE, 8, 0), seed) for seed in (0, 1)]
    np.testing.assert_array_equal(by_seed[0].values, by_seed[1].values)
    assert not np.allclose(by_seed[0].values * 5, np.round(by_seed[0].values * 5))


def test_a_prior_of_few_actions_is_measured_by_its_weights():
    """Five of four actions are nearly all right, whatever the model."""
    good, bad = (heard("prior", f"scripted:frozenlake?error={e}", n=60, bed=2) for e in (0.1, 0.5))
    assert bad.columns["recall"] > 0.9
    assert good.ability - bad.ability > 0.2


# ---- verdicts ---------------------------------------------------------------------------------------------

CURVE = Frontier(
    *("kwon", "judge", "hunch/MatrixGame-v0", "hunch/MatrixGame-v0", "independent"),
    *("success", 100, 10, "2026-11-24"),
    (Point("a", 0.5, 0.0, 0.0, 0.0), Point("b", 0.75, 0.25, 0.15, 0.35), Point("c", 1.0, 0.5, 0.4, 0.6)),
)


def test_the_gain_over_an_interval_is_the_widest():
    assert CURVE.gain((0.75, 0.75)) == pytest.approx((0.15, 0.35))
    assert CURVE.gain((0.5, 1.0)) == pytest.approx((0.0, 0.6))
    assert CURVE.gain((0.0, 0.2)) == (0.0, 0.0)
    assert CURVE.needed(0.15) == pytest.approx(0.75, abs=0.002)
    assert CURVE.needed(0.9) is None


def test_points_of_the_same_ability_all_count():
    """Five proposals of four actions are nearly always right, so different models share an ability."""
    tied = replace(CURVE, points=(*CURVE.points, Point("d", 1.0, 0.1, 0.02, 0.2)))
    assert tied.gain((0.75, 1.0)) == pytest.approx((0.02, 0.6))
    assert tied.gain((1.0, 1.0)) == pytest.approx((0.02, 0.6))
    assert tied.needed(0.05) is None


@pytest.mark.parametrize(
    ("gain", "words", "said"),
    [
        ((0.1, 0.2), None, "pays"),
        ((0.1, 0.2), (0.06, 0.3), "pays"),
        ((0.1, 0.2), (-0.1, 0.3), "may pay"),
        ((0.1, 0.2), (-0.1, 0.04), "does not pay"),
        ((0.0, 0.04), None, "does not pay"),
        ((0.0, 0.2), None, "may pay"),
    ],
)
def test_a_verdict_needs_the_whole_interval(gain, words, said):
    assert verdict(gain, words, 0.05) == said


def test_the_difference_of_gains_is_as_wide_as_both():
    assert over((0.1, 0.3), (0.0, 0.2)) == pytest.approx((-0.1, 0.3))


def test_lasting_errors_choose_their_own_frontier():
    lasting, yes, no, prose = (
        replace(CURVE, errors=errors) for errors in ("lasting", "first", "last", "unread")
    )
    known = [CURVE, lasting, yes, no, prose]
    unknown = float("nan")

    def chosen(recurring, **shares):
        named = {f"errors: {kind}": share for kind, share in shares.items()}
        return frontiers.likeliest(known, frontiers.kind({"lasting errors": recurring, **named}))

    assert chosen(0.1, first=1.0) == [CURVE]
    assert chosen(0.9) == [lasting]
    assert chosen(0.9, first=unknown, last=unknown, unread=unknown) == [lasting]
    assert chosen(0.9, first=0.5, last=0.5) == [lasting]
    assert chosen(0.9, first=1.0) == [yes]
    assert chosen(0.9, last=1.0) == [no]
    assert chosen(0.1, unread=1.0) == [prose]
    assert frontiers.kind({"lasting errors": unknown, "errors: first": 1.0}) is None
    assert frontiers.kind({}) is None
    assert frontiers.likeliest([CURVE, lasting], "last") == [lasting]
    assert frontiers.likeliest([CURVE], "last") == [CURVE]
    assert frontiers.likeliest([CURVE, lasting], "unread") == [CURVE]


def test_a_judge_that_always_says_no_leans_to_it():
    no = heard("judge", "scripted:judge?systematic=1&error=0.8&place=-1", n=40).columns
    assert (no["errors: first"], no["errors: last"], no["lasting errors"]) == (0.0, 1.0, 1.0)
    yes = heard("judge", "scripted:judge?systematic=1&error=0.8&place=1", n=40).columns
    assert (yes["errors: first"], yes["errors: last"]) == (1.0, 0.0)
    prose = heard("judge", "scripted:judge?malformed=0.5", n=40).columns
    assert (prose["errors: unread"], prose["no verdict"]) == (1.0, pytest.approx(0.5, abs=0.3))


IN_THE_LAKE = [bed.env for bed in PRIOR.beds].index("hunch/FrozenLake-v0")


@pytest.mark.parametrize(
    ("dials", "share", "errors"),
    [
        ("systematic=1&error=0.5&place=1", "errors: first", "first"),
        ("systematic=1&error=0.5&place=-1", "errors: last", "last"),
        ("malformed=0.5", "errors: unread", "unread"),
    ],
)
def test_a_policy_that_errs_in_one_way_is_held_against_models_that_do(dials, share, errors):
    columns = heard("policy", f"scripted:frozenlake?{dials}", n=40, bed=IN_THE_LAKE).columns
    assert columns[share] >= 0.9  # the rule itself is now and then wrong
    assert frontiers.kind(columns) == errors
    mixed = heard("policy", "scripted:frozenlake?systematic=1&error=0.5", n=40, bed=IN_THE_LAKE)
    assert frontiers.kind(mixed.columns) == "lasting"
    rare = heard("policy", f"scripted:frozenlake?{dials}", n=4, bed=IN_THE_LAKE).columns
    assert np.isnan(rare[share])


def test_stored_frontiers_fit_the_roles():
    for frontier in frontiers.frontiers():
        role = role_named(frontier.role)
        assert frontier.bed in [bed.env for bed in role.beds]
        assert list(frontier.points) == sorted(frontier.points, key=lambda p: p.ability)
        assert all(p.low <= p.gain <= p.high for p in frontier.points)


# ---- in Python --------------------------------------------------------------------------------------------


def test_the_package_is_the_function():
    found = hunch.audition("scripted:judge", ["judge"], questions=40)
    assert isinstance(found, Audition)
    assert {line.heard.env for line in found.lines} == {"hunch/MatrixGame-v0", "hunch/Ultimatum-v0"}
    assert all(line.heard.ability == 1 for line in found.lines)
    assert "<table>" in found._repr_html_()
    assert "judge" in str(found)


def test_a_model_of_ones_own_is_metered():
    found = hunch.audition(Says("Yes"), ["judge"], questions=20)
    assert found.lines[0].heard.ability == 0.5
    assert found.usage["says"]["calls"] > 0


def test_page_and_values_hold_every_line(monkeypatch):
    monkeypatch.setattr(frontiers, "frontiers", lambda: (CURVE,))
    found = hunch.audition(["scripted:judge", "bag-of-words"], ["judge"], questions=40)
    held = [line for line in found.lines if line.frontier]
    assert [(line.heard.model, line.method, line.verdict) for line in held] == [
        ("scripted:judge", "kwon", "pays")
    ]
    other = next(line for line in found.lines if line.heard.env == "hunch/Ultimatum-v0")
    assert (other.verdict, other.gain) == ("may pay", None)
    assert other.why == "frontier of MatrixGame-v0: none here"
    assert found.best("scripted:judge") == held[0]
    html = page(found)
    assert html.count("<tr>") == len(found.lines) + 1 + 2  # and the costs of the model that was asked
    assert "<svg" in html
    assert "hunch run kwon --env hunch/MatrixGame-v0 --lm scripted:judge" in html
    assert json.loads(json.dumps(plain(found)))["lines"][0]["heard"]["model"] == "scripted:judge"


def test_a_budget_that_ends_leaves_a_partial_table():
    found = hunch.audition("scripted:judge", ["judge", "planner"], questions=40, budget=Budget(calls=50))
    assert "budget of 50 calls" in found.stopped
    asked = [line.heard.has_score for line in found.lines]
    assert asked[0]
    assert not asked[-1]
    assert found.lines[-1].heard.why == "the budget ended"
    assert sum(u["calls"] for u in found.usage.values()) <= 50


def test_a_budget_that_ends_in_a_second_round_keeps_the_first():
    asked = {"env": "hunch/MatrixGame-v0", "questions": 8, "seed": 2}
    once = hunch.audition("scripted:judge?error=0.25", ["judge"], **asked)
    calls = int(once.usage["scripted:judge?error=0.25"]["calls"])
    ended = hunch.audition(
        "scripted:judge?error=0.25", ["judge"], **asked, most=400, budget=Budget(calls=calls + 4)
    )
    assert "budget" in ended.stopped
    assert [line.verdict for line in ended.lines] == [line.verdict for line in once.lines] == ["may pay"]


def test_a_suggested_command_can_be_copied_into_a_shell():
    spec = 'pocket?corpus=households&end="\\n"'
    points = (Point("", 0.5, 0.0, 0.0, 0.0), Point("", 1.0, 0.5, 0.5, 0.5))
    frontier = Frontier("m", "judge", "e", "e", "independent", "success", 1, 1, "", points)
    line = Line(Heard("judge", "e", spec), None, None, frontier, (0.1, 0.2), None, "pays")
    command = advice(Audition((line,), 0.05, 0, {}), spec).partition("Run it: ")[2]
    assert shlex.split(command)[-1] == spec


class Corridor(gymnasium.Env):
    """Five cells without a solver; the right end is the goal.

    Args:
        limit: Steps after which an episode is cut; 0 for none.
        task: What is told.
    """

    def __init__(self, limit=0, task="go right"):
        self.limit, self.task = limit, task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.made = 1, 0
        return self._seen(False)

    def step(self, action):
        self.at = max(0, self.at + (1 if action == "right" else -1))
        self.made += 1
        observation, info = self._seen(self.at == 4)
        return observation, float(self.at == 4), self.at == 4, self.made == self.limit, info

    def _seen(self, success):
        return f"cell {self.at}", {"actions": ("left", "right"), "task": self.task, "success": success}


class Nowhere(Corridor):
    """Nothing succeeds."""

    def _seen(self, success):
        return super()._seen(False)


class Locked(Corridor):
    """It cannot be copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class Untold(Corridor):
    """It does not say whether an episode succeeds."""

    def _seen(self, success):
        observation, info = super()._seen(success)
        del info["success"]
        return observation, info


def test_an_environment_that_cannot_be_copied_needs_data():
    found = hunch.audition("uniform", env=Locked(), data=right_episodes(), questions=6)
    by_role = {line.heard.role: line.heard for line in found.lines}
    assert by_role["prior"].has_score
    assert "cannot be copied or played (TypeError" in by_role["policy"].why
    with pytest.raises(UsageError, match=r"prior: there is no solver, no data, and it cannot be searched"):
        hunch.audition("uniform", ["prior"], env=Locked())


def test_ones_own_environment_is_searched():
    assert [t.action for t in won_by_search(Corridor(), 0)] == ["right"] * 3
    found = hunch.audition("scripted:overlap", env=Corridor(), questions=30)
    by_role = {line.heard.role: line.heard for line in found.lines}
    assert by_role["policy"].ability == 1
    assert by_role["planner"].why == "the truth is known in hunch/Kitchen-v0 only"
    assert "no solver" in by_role["judge"].why


class Silent(TextEnv):
    """Going leads to the goal without a word."""

    offers = ("events",)
    task = "go"
    listed = ("go", "wait")

    def _begin(self, options):
        self.left = 3
        return Outcome("start", self.listed)

    def _move(self, action):
        self.left -= action == "go"
        over = self.left == 0
        return Outcome(f"{self.left} left", self.listed, float(over), over, over)

    def oracle(self):
        return ("go",) * self.left


class OneWay(Silent):
    """There is no other action."""

    listed = ("go",)


@pytest.mark.parametrize(
    ("role", "env", "why"),
    [
        ("prior", OneWay, "No state was seen in which some actions are right"),
        ("preference", Silent, "No two captions of an episode differ"),
        ("judge", OneWay, "Each episode that was played met the objective"),
    ],
)
def test_where_there_is_nothing_to_ask_a_sentence_says_why(role, env, why):
    found = hunch.audition("scripted:first", [role], env=env(max_steps=9), questions=6)
    (line,) = found.lines
    assert (line.verdict, line.heard.has_score) == ("not measured", False)
    assert line.heard.why.startswith(why)


def test_all_pictures_may_be_asked_about():
    reader = role_named("reader")
    drawn = reader.draw(reader.beds[0], 1600, 0)
    assert 0 < reader.lexical(drawn, 0).ability < 1


def test_without_a_frontier_a_policy_plays():
    """Its gain is the difference to an uninformed player; words find the way of this corridor, too."""
    found = hunch.audition(["scripted:overlap", "uniform"], ["policy"], env=Corridor(4), questions=20)
    model, chance = found.lines
    assert (model.method, model.verdict, model.heard.ability) == ("zero-shot", "does not pay", 1)
    assert model.gain[1] == pytest.approx(1 - chance.heard.ability)
    lake = {"env": "hunch/FrozenLake-v0", "env_options": {"max_steps": 30}}
    assert hunch.audition("scripted:frozenlake", ["policy"], questions=40, **lake).lines[0].verdict == "pays"


def test_an_episode_that_never_ends_is_a_failure():
    found = hunch.audition("scripted:overlap", ["policy"], env=Corridor(task="go left"), questions=3)
    assert found.lines[0].heard.ability == 0


class Long(TextEnv):
    """The goal is thirty steps away, whatever is done."""

    def _begin(self, options):
        self.task = "walk to the end"
        self.at = 0
        return Outcome("You are at 0.", ("go", "run"))

    def _move(self, action):
        self.at += 1
        over = self.at == 30
        return Outcome(f"You are at {self.at}.", ("go", "run"), float(over), over, over)


def test_stand_ins_play_more_episodes_not_longer_ones():
    """Ten steps per episode are too few for the model, and so they are for the stand-ins."""
    [line] = hunch.audition("scripted:overlap", ["policy"], env=Long(50), questions=2).lines
    assert line.heard.ability == line.uninformed.ability == line.words.ability == 0
    assert line.uninformed.questions > line.heard.questions


class Fickle(Model):
    """Writes one of two ways: a function of the prompt and the number of the answer, as the contract says."""

    name, revision, verbs, evidence = "fickle", "1", frozenset({"generate"}), "L0"

    def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
        numbers = range(first, first + k)
        return [[("go left", "go right")[crc32(f"{p}{i}".encode()) % 2] for i in numbers] for p in prompts]


class Fork(TextEnv):
    """One state, and one step that succeeds or not."""

    def __init__(self, listed):
        super().__init__(max_steps=1)
        self.ways = ("go left", "go right") if listed else None

    def _begin(self, options):
        self.task = "find the light"
        return Outcome("A fork.", self.ways)

    def _move(self, action):
        won = action == "go left"
        return Outcome("The end.", self.ways, float(won), True, won)


@pytest.mark.parametrize("listed", [True, False])
def test_parallel_episodes_that_begin_alike_are_no_copies(listed):
    """Copies would count as several episodes: a model that guesses would seem to be sure."""
    player, _, _ = placed_in(role_named("policy"), Fork(listed), {}, ())
    drawn = player.draw(Bed("fork", given=Fork(listed)), 20, 0)
    won = player.ask(Cached(Fickle()), drawn, 0).values.reshape(-1, 5)
    assert len(won) == 20
    assert np.ptp(won, axis=1).mean() > 0.7, "of five fair coins, 0.94 show both sides"


def test_a_prior_needs_a_list_of_actions_and_a_sentence_says_so():
    _, beds, why = placed_in(role_named("prior"), Fork(listed=False), {}, ())
    assert not beds
    assert why == "any text is an action there, so no list says which ones are right"


class Undecided(Model):
    """Writes any of the listed actions, a function of the prompt and the number of the answer."""

    name, revision, verbs, evidence = "guessing", "1", frozenset({"generate"}), "L0"

    def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
        texts = []
        for asked in prompts:
            listed = re.findall("^- (.+)$", asked, re.MULTILINE)
            texts.append([random.Random(f"{asked}{i}").choice(listed) for i in range(first, first + k)])
        return texts


def test_equal_questions_with_the_same_drawn_answers_count_once():
    """The lake has eleven states: five answers to each are all that any number of questions asks for."""
    intervals = []
    for seed in range(12):
        scores = accuracy(Cached(Undecided()), states(LAKE, 100, seed), seed)
        intervals.append(scores.interval)
        assert scores.repetitive
    truth = load("uniform", cache=None)
    chance = accuracy(truth, states(LAKE, 300, 0), 0).ability
    assert sum(low <= chance <= high for low, high in intervals) >= 9, "of 12; of bootstraps over episodes 2"
    stated = accuracy(truth, states(LAKE, 100, 0), 0)
    assert not stated.repetitive, "a stated probability has no luck of the draw"
    few = Scores(np.full(9, 0.4), range(9), alike=[0] * 9)
    assert few.interval == (0, 1), "five answers to one request: nothing is known of others"


def test_more_questions_of_the_same_states_are_not_called_for():
    [prior] = hunch.audition(Undecided(), ["prior"], env="hunch/FrozenLake-v0", questions=50).lines
    assert prior.verdict == "may pay"
    assert deciding(prior, 0.05) is None


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")
def test_a_player_whose_answers_cannot_be_read_has_no_score():
    lake = {"env": "hunch/FrozenLake-v0", "env_options": {"max_steps": 20}}
    model = "scripted:frozenlake?malformed=1"
    [line] = hunch.audition(model, ["policy"], questions=4, way="text", **lake).lines
    assert not line.heard.has_score
    assert line.verdict == "could not be asked"
    assert "could not be read" in line.heard.why


def test_the_suggested_command_has_the_options_of_the_environment():
    lake = {"env": "hunch/FrozenLake-v0", "env_options": {"max_steps": 30, "explained": False}}
    found = hunch.audition("scripted:frozenlake", ["policy"], questions=40, **lake)
    command = shlex.split(advice(found, "scripted:frozenlake").partition("Run it: ")[2])
    assert command[:5] == ["hunch", "run", "zero-shot", "--env", "hunch/FrozenLake-v0"]
    options = ["--env.max_steps", "30", "--env.explained", "false"]
    assert command[5:] == [*options, "--lm", "scripted:frozenlake"]


class Lamp(TextEnv):
    """Light is success, and the episode goes on."""

    def _begin(self, options):
        self.task = "make light"
        return Outcome("It is dark.", ("wait", "switch"))

    def _move(self, action):
        light = action == "switch"
        return Outcome("It is light." if light else "It is dark.", ("wait", "switch"), 0.0, success=light)


def test_a_player_has_no_blank_prompt_and_a_sentence_says_so():
    [line] = hunch.audition("scripted:overlap", ["policy"], env=Corridor(4), questions=1, blank=True).lines
    assert line.heard.why == "a model that plays is asked with its task; the role prior has a blank prompt"


def test_the_blank_prompt_is_named_as_a_control_and_recommends_no_method():
    usual, control = (
        hunch.audition("scripted:judge", ["judge"], questions=20, blank=blank) for blank in (False, True)
    )
    assert "This is a control" in str(control)
    assert plain(control)["blank"]
    assert "hunch" not in "".join(brief(control))
    assert "may pay" in advice(usual, "scripted:judge") or "it pays" in advice(usual, "scripted:judge")
    assert "pay" not in advice(control, "scripted:judge")
    assert "control" not in str(usual)


def test_the_last_sentence_forgets_no_role_that_may_pay():
    """The policy does not pay here, and what a prior is worth was not measured in such a corridor."""
    found = hunch.audition("scripted:overlap", ["policy", "prior"], env=Corridor(4), questions=8)
    assert {line.verdict for line in found.lines} == {"does not pay", "may pay"}
    told = advice(found, "scripted:overlap")
    assert "It may pay as prior: no frontier was made here" in told
    assert "method without a model" not in told


def test_a_success_need_not_end_the_episode():
    assert [step.action for step in won_by_search(Lamp(6), 0)] == ["switch"]


class Lucky(Silent):
    """Nearly every episode is a success."""

    def _begin(self, options):
        self.left = 1
        self.lost = self.np_random.random() < 0.004
        return Outcome("start", self.listed)

    def _move(self, action):
        return Outcome("end", self.listed, 0.0, True, not self.lost)


def test_half_of_the_episodes_met_the_objective_also_where_failures_are_rare():
    drawn = role_named("judge").draw(Bed("lucky", given=Lucky(3)), 20, 0)
    assert 0 < len(drawn) < 20, "too few failures for ten"
    assert [steps[-1].success for steps in drawn].count(True) * 2 == len(drawn)


def test_a_role_that_is_named_twice_is_asked_once():
    found = hunch.audition("uniform", ["text-judge", "text-judge"], questions=4)
    assert len(found.lines) == 1


class ShortSighted(Model):
    """Reads only the end of every prompt."""

    verbs = frozenset({"generate"})
    name, revision, evidence, context = "short-sighted", "1", "L0", 8
    shortened = 0

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.shortened += len(prompts)
        return [["left"] * k for _ in prompts]


def test_prior_and_policy_share_answers_and_why_there_are_none():
    lake = {"env": "hunch/FrozenLake-v0", "questions": 4}
    found = hunch.audition("scripted:frozenlake", ["prior", "policy"], **lake)
    assert {line.heard.way for line in found.lines} == {"text"}
    for line in hunch.audition(ShortSighted(), ["prior", "policy"], **lake).lines:
        assert not line.heard.has_score
        assert line.heard.why == "it reads at most 8 tokens, fewer than a question has"


def right_episodes():
    return [list(play(Corridor(), lambda state: "right", seed)) for seed in range(4)]


def test_recorded_successes_count_as_right():
    given = {"env": Corridor(), "data": right_episodes(), "questions": 12}
    found = hunch.audition("scripted:overlap", ["prior"], **given)
    assert found.lines[0].heard.ability == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"lm": "minilmm"}, "minilm"),
        ({"lm": "uniform", "roles": ["jugde"]}, "did you mean 'judge'"),
        ({"lm": "uniform", "env": "hunch/FrozenLak-v0"}, "FrozenLake-v0"),
        ({"lm": [Says("Yes"), Says("No")]}, "the same name"),
        ({"lm": "uniform", "questions": 0}, "questions must be at least 1"),
        ({"lm": "uniform", "seed": -1}, "seed must be at least 0"),
        ({"lm": []}, "names no model"),
        ({"lm": ["uniform", 3]}, "or a list of these"),
        ({"lm": "uniform", "most": 0}, "most must be at least 1"),
        ({"lm": "uniform", "most": 50}, "At most 50 questions cannot be asked 100 at first"),
        ({"lm": "uniform", "roles": ["prior"], "env": Nowhere()}, "finds no success"),
        ({"lm": "uniform", "roles": ["policy"], "env": Untold(limit=3)}, "does not tell success"),
        ({"lm": "uniform", "data": []}, "Recorded episodes need their environment"),
        ({"lm": "uniform", "env_options": {"games": 3}}, "need its id"),
    ],
)
def test_what_is_wrong_is_one_sentence(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        hunch.audition(**given)


def test_questions_are_drawn_once_for_all_models(monkeypatch):
    drawn = []
    role = replace(role_named("prior"), draw=lambda *given: drawn.append(given) or states(*given))
    policy = replace(role_named("policy"), draw=role.draw)
    monkeypatch.setattr("hunch.audition.hearing.role_named", {"prior": role, "policy": policy}.get)
    hunch.audition(["uniform", "bag-of-words"], ["prior", "policy"], "hunch/FrozenLake-v0", questions=8)
    assert len(drawn) == 1


# ---- the command ------------------------------------------------------------------------------------------


def test_the_command(hunch_command, tmp_path):
    code, out, _ = hunch_command(
        *(
            "audition",
            "--lm",
            "scripted:judge",
            "uniform",
            "--roles",
            "judge",
            "--questions",
            "20",
            "--out",
            "a",
        )
    )
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("judge")] == ["judge", "judge"]
    assert "40 questions" in out, "ten in each environment, all right, leave room for rare errors"
    assert max(map(len, lines[: lines.index("")])) <= 80
    assert (tmp_path / "a" / "audition.html").read_text().startswith("<!doctype html>")
    assert len(json.loads((tmp_path / "a" / "audition.json").read_text())["lines"]) >= 4


def test_a_dry_run_asks_nothing(hunch_command, tmp_path):
    code, out, _ = hunch_command("audition", "--lm", "scripted:judge", "--roles", "judge", "--dry-run")
    assert code == 0
    assert "124" in out  # a hundred, and a dozen wrong verdicts again in each environment
    assert "a token is counted as 4 characters" in out
    assert not list(tmp_path.iterdir())


def test_a_dry_run_names_the_whole_model(hunch_command):
    spec = "scripted:judge?error=0.2&systematic=1&draw=12345"
    code, out, _ = hunch_command("audition", "--lm", spec, "--roles", "judge", "--dry-run")
    assert code == 0
    table = out.partition("Questions that follow")[0]
    assert "…" not in table
    assert spec in "".join(line.split()[0] for line in table.splitlines() if line.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name the models"),
        (("--lm", "uniform", "--roles", "cook"), "There is no role 'cook'"),
        (("--lm", "uniform", "--questions", "0"), "questions must be at least 1"),
        (("--lm", "uniform", "--most", "400"), "--most is for --until decided"),
        (("--lm", "uniform", "--until", "decided", "--most", "50"), "lower questions"),
    ],
)
def test_wrong_use_is_one_sentence(hunch_command, arguments, sentence):
    code, out, err = hunch_command("audition", *arguments)
    assert code == 2
    assert sentence in err
    assert out == ""


def test_the_suggested_command_puts_the_model_into_its_place(tmp_path):
    """A reader of pictures is no model of ``--lm``: the command that the audition ends with has to run."""
    pytest.importorskip("minigrid")
    pytest.importorskip("hunch_pocket")
    spec = "pocket?corpus=clip"
    told = advice(hunch.audition(spec, roles=["reader"], questions=100), spec)
    command = shlex.split(told.partition("Run it: ")[2])
    assert command[-2:] == ["--reader", spec]
    main([*command[1:], "--steps", "40", "--out", str(tmp_path / "run")])
    told = json.loads((tmp_path / "run" / "summary.json").read_text())["models"]["reader"]
    assert told["calls"] + told["cache_hits"] > 0


# ---- calibration ------------------------------------------------------------------------------------------


class Biased(Model):
    """A decision model that says 0.9 for what a rule answers, which is right less often."""

    name, revision, verbs = "biased", "1", frozenset({"decide"})

    def __init__(self, rule):
        self.rule = load(rule, cache=None)

    def decide(self, states, questions):
        decided = []
        for state, own in zip(states, questions, strict=True):
            decided.append([])
            for question in own:
                listed = "\n".join(f"- {option}" for option in question.options)
                ((answer,),) = self.rule.generate([f"{state}\n{question.instructions}\n{listed}\nAnswer:"])
                index = [option.lower() for option in question.options].index(answer.strip().lower())
                p = np.full(len(question.options), 0.1 / (len(question.options) - 1))
                p[index] = 0.9
                decided[-1].append(p)
        return decided


def test_a_model_that_says_nine_in_ten_and_is_right_in_six_is_found_out():
    found = hunch.audition(Biased("scripted:judge?error=0.4"), ["judge"], questions=400)
    for line in found.lines:
        low, high = line.heard.calibration  # it says 0.1 and 0.9 only
        assert low.predicted == pytest.approx(0.1)
        assert high.predicted == pytest.approx(0.9)
        assert line.heard.ability == pytest.approx(0.6, abs=0.15)
        error = line.heard.columns["calibration error"]
        assert error == pytest.approx(0.9 - line.heard.ability)  # it is right that much less than it says
        assert error > 2 * line.heard.columns["calibration error by chance"]
    assert "calibration error" in str(found)
    assert page(found).count("came true") >= 3
    assert plain(found)["lines"][0]["heard"]["calibration"]


def test_a_model_that_says_nine_in_ten_and_is_right_in_nine_is_believed():
    found = hunch.audition(Biased("scripted:judge?error=0.1"), ["judge"], questions=400)
    for line in found.lines:
        columns = line.heard.columns
        assert columns["calibration error"] <= columns["calibration error by chance"]


def test_answers_without_a_probability_have_no_calibration():
    assert heard("judge", "scripted:judge").calibration == ()
    assert "calibration error" not in heard("prior", "scripted:frozenlake", bed=2).columns


@pytest.mark.parametrize("role", ["prior", "planner"])
def test_equal_probabilities_are_calibrated(role):
    """Uniform over n actions, the favourite is right in one of n states."""
    named = role_named(role)
    drawn = named.draw(named.beds[0], 200, 0)
    model = Cached(load("uniform", cache=None))
    model.best_way = "decision"
    found = hear(named, named.beds[0], "uniform", model, drawn, 0)
    assert found.calibration
    assert found.columns["calibration error"] < 0.1


class Echo(TextEnv):
    """Repeat a word; any text is an action."""

    def _begin(self, options):
        self.word = ("yes", "no")[int(self.task_random.integers(2))]
        self.task = f"say {self.word}"
        return Outcome("What do you say?", None)

    def _move(self, action):
        right = action.strip() == self.word
        return Outcome(f"You said {action!r}.", None, float(right), terminated=True, success=right)


class Parrot(Model):
    """Says the last word of the task."""

    verbs = frozenset({"generate"})
    name, revision, evidence = "parrot", "1", "L0"

    def generate(self, prompts, k=1, sampling=None, first=0):
        words = [prompt.splitlines()[0].split()[-1] for prompt in prompts]
        return [[word] * k for word in words]


def test_a_policy_writes_where_any_text_is_an_action():
    found = hunch.audition([Parrot(), "minilm"], ["policy"], Echo(max_steps=1), questions=4)
    writes, embeds = found.lines
    assert writes.heard.ability == 1.0
    assert writes.uninformed.ability == 0.0
    assert writes.heard.columns["invalid moves"] == 0.0
    assert writes.gain[0] > 0
    assert not embeds.heard.has_score
    assert "a model that writes" in embeds.heard.why


def test_a_judge_of_texts_that_decides_is_held_against_the_truth():
    """Equal probabilities are right in half of the cases, whatever the order."""

    class Even(Model):
        name, revision, verbs = "even", "1", frozenset({"decide"})

        def decide(self, states, questions):
            return [[np.array([0.5, 0.5, 0.0]) for _ in own] for own in questions]

    role = role_named("text-judge")
    drawn = role.draw(role.beds[0], 40, 0)
    found = hear(role, role.beds[0], "even", Cached(Even()), drawn, 0)
    assert found.ability == 0.5
    assert [(own.predicted, own.observed, own.n) for own in found.calibration] == [(0.5, 0.5, 40)]
    assert found.columns["calibration error"] == 0


# ---- ways of asking, and the blank prompt -----------------------------------------------------------------


class Noted(Model):
    """A model that writes nothing of use, and keeps the prompts."""

    name = "noted"
    revision = "1"
    verbs = frozenset({"generate", "score", "embed"})
    takes = frozenset({"choices"})
    dim = 1

    def __init__(self):
        self.prompts = []

    def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
        self.prompts += prompts
        answer = sampling.choices[0] if sampling.choices else "no idea"
        return [[answer] * k for _ in prompts]

    def score(self, prompts, options):
        self.prompts += prompts
        lengths = [np.arange(1, len(own) + 1) for own in options]
        return [OptionScores(-1.0 * own, own, own) for own in lengths]

    def embed(self, texts):
        self.prompts += texts
        return np.ones((len(texts), 1), dtype=np.float32)


BLANKS = [(role.name, way) for role in ROLES if role.blank for way in role.ways if way != "decision"]


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")  # it says nothing of use
@pytest.mark.parametrize(("name", "way"), BLANKS)
def test_the_blank_prompt_leaves_out_objective_and_task_and_nothing_else(name, way):
    role = role_named(name)
    bed = role.beds[0]
    if (name, way) == ("goal", "similarity"):
        pytest.skip("goals near to what is seen have no objective")
    said = {}
    for blank in (False, True):
        drawn, model = role.draw(bed, 4, 3), Noted()
        role.ask(Cached(model), drawn, 0, Manner(way, blank))
        said[blank] = model.prompts
    whole, rest = ({*re.findall(r"\w+", "\n".join(said[blank]))} for blank in (False, True))
    if (name, way) != ("planner", "similarity"):  # without examples, it compares skills
        assert rest <= whole, "nothing comes in"
    known = role.draw(bed, 4, 3)
    objectives = {
        "prior": lambda: {m.state.task for m in known.moments},
        "policy": lambda: {m.state.task for m in known.moments},
        "judge": lambda: {steps[0].state.task for steps in known},
        "preference": lambda: {pair.task for pair in known},
        "planner": lambda: {due.state.task for due in known},
        "goal": lambda: {"sensible and useful"},
        "text-judge": lambda: {PRINCIPLE, *(pair.request for pair in known)},
    }[name]()
    assert any(text in prompt for text in objectives for prompt in said[False])
    assert not any(text in prompt for text in objectives for prompt in said[True])


def test_a_role_without_objective_has_no_blank_prompt():
    found = hunch.audition("uniform", ["writer", "formaliser"], questions=3, blank=True)
    assert all("no objective" in line.heard.why for line in found.lines)


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")  # it says nothing of use
@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_model_is_asked_in_the_way_that_is_named(role):
    for way in role.ways_of(Noted()):
        if "see" in role.beds[0].needs or role.name == "reader":
            continue
        drawn = role.draw(role.beds[0], 4, 3)
        heard_by = hear(role, role.beds[0], "noted", Cached(Noted()), drawn, 0, Manner(way))
        assert heard_by.way in (way, ""), way
        if way in ("label", "likelihood", "similarity"):
            assert heard_by.has_score, "what is not written can be read"
    cannot = hear(role, role.beds[0], "noted", Cached(Noted()), None, 0, Manner("decision"))
    assert not cannot.has_score


@pytest.mark.parametrize("bed", PRIOR.beds, ids=lambda bed: bed.env)
def test_no_word_of_the_task_is_left_in_the_states_of_a_blank_prompt(bed):
    for moment in states(bed, 12, 3).moments:
        blank = prompt(aimless(moment.state, bed.manual))
        assert moment.state.task not in blank
        assert "task" not in blank
        assert "aim" not in blank
        assert all(option in blank for option in moment.state.options)
        assert blank != prompt(replace(moment.state, task="")) or not bed.manual


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ("hunch/Household-Pick-v0", {"games": 3}),
        ("hunch/Household-Clean-v0", {}),
        ("hunch/FrozenLake-v0", {"max_steps": 30}),
    ],
)
def test_a_blank_prompt_says_no_task_in_an_environment_of_ones_own_choice(env, options):
    for place, settings in ((env, options), (hunch.make(env, **options), {})):
        role, [bed], _ = placed_in(PRIOR, place, settings, ())
        for moment in role.draw(bed, 4, 0).moments:
            blank = prompt(aimless(moment.state, bed.manual))
            assert moment.state.task not in blank
            assert "that we aim to reach" not in blank


# ---- a line per role, and until it is decided -------------------------------------------------------------


def test_a_verdict_says_how_many_questions_decide_it():
    points = (Point("", 0.5, 0.0, 0.0, 0.0), Point("", 1.0, 0.5, 0.5, 0.5))
    frontier = Frontier("m", "judge", "e", "e", "independent", "success", 1, 1, "", points)
    mine = Heard("judge", "e", "mine", ability=0.6, interval=(0.5, 0.7), questions=20)
    line = Line(mine, None, None, frontier, (0.0, 0.2), None, "may pay")
    n = deciding(line, 0.05)
    assert n == 80, "at 0.55 the gain is 0.05, and half of the width takes four times as many questions"
    assert deciding(replace(line, verdict="pays"), 0.05) is None
    playing = replace(mine, columns={"steps per episode": 20.0})
    assert deciding(replace(line, heard=playing), 0.05) == 320, "80 episodes of 20 steps, five per question"
    unsure = tuple(replace(point, low=-1.0, high=1.0) for point in points)
    undecidable = replace(line, frontier=replace(frontier, points=unsure))
    assert deciding(undecidable, 0.05) is None
    loop = "only a loop can tell, as in hunch compare m --env e --lm mine"
    for one, said in ((line, "--until decided"), (undecidable, loop)):
        last = advice(Audition((one,), 0.05, 0, {}), "mine")
        assert said in last
        assert last.count("may pay") == 1, "the sentence gives one next step, that of the table"
    without = replace(line, verdict="does not pay")
    assert "a method without a model" in advice(Audition((without,), 0.05, 0, {}), "mine")


STEP_AT_90 = (
    Point("", 0.0, 0.0, 0.0, 0.0),
    Point("", 0.9, 0.0, 0.0, 0.0),
    Point("", 0.901, 0.5, 0.5, 0.5),
    Point("", 1.0, 0.5, 0.5, 0.5),
)
"""Points of a gain that comes with an ability of 0.9."""


@pytest.mark.parametrize(("right", "points"), [(1.0, STEP_AT_90), (0.0, None)])
def test_questions_that_are_all_right_or_all_wrong_decide_sooner(right, points):
    """Wilson's interval of equal answers narrows with their number, not with its root."""
    points = points or tuple(
        replace(point, ability=1 - point.ability, gain=g, low=g, high=g)
        for point, g in zip(reversed(STEP_AT_90), (0.0, 0.0, 0.5, 0.5), strict=True)
    )
    frontier = Frontier("m", "judge", "e", "e", "independent", "success", 1, 1, "", points)

    def line(n):
        scores = Scores(np.full(n, right), list(range(n)))
        mine = Heard("judge", "e", "mine", ability=right, interval=scores.interval, questions=n)
        gain = frontier.gain(mine.interval)
        return Line(mine, None, None, frontier, gain, None, verdict(gain, None, 0.05))

    assert line(10).verdict == "may pay"
    n = deciding(line(10), 0.05)
    assert n == 40
    assert line(n).verdict != "may pay"
    assert line(n // 2).verdict == "may pay"


def test_the_line_of_a_role_agrees_with_the_sentence_below_it():
    """An environment without a frontier does not hide another one in which questions decide."""
    points = (Point("", 0.5, 0.0, 0.0, 0.0), Point("", 1.0, 0.5, 0.5, 0.5))
    frontier = Frontier("m", "prior", "e", "e", "independent", "success", 1, 1, "", points)
    mine = Heard("prior", "e", "mine", ability=0.6, interval=(0.5, 0.7), questions=33)
    measured = Line(mine, None, None, frontier, (0.0, 0.2), None, "may pay")
    elsewhere = replace(measured, heard=replace(mine, env="f", questions=34), frontier=None, gain=None)
    found = Audition((elsewhere, measured), 0.05, 0, {})
    assert deciding(measured, 0.05) == 33 * 4
    [_, line] = brief(found)
    assert line.endswith("272 questions"), "34 in one environment go with 33 in the other"
    assert "ask until it is known, with --until decided." in advice(found, "mine")


@pytest.mark.parametrize(
    ("chance", "why"),
    [
        (0.5, "where its ability is near chance: 1,600 questions would not decide it"),
        (0.2, "where its ability is too close to call: 1,600 questions would not decide it"),
    ],
)
def test_no_more_questions_are_advised_than_are_asked_by_default(chance, why):
    """Twenty questions of a judge took two minutes, so forty thousand are no advice."""
    points = (Point("", 0.5, 0.0, 0.0, 0.0), Point("", 1.0, 0.5, 0.5, 0.5))
    frontier = Frontier("m", "judge", "e", "e", "independent", "success", 1, 1, "", points)
    mine = Heard("judge", "e", "mine", ability=0.56, interval=(0.36, 0.76), questions=20)
    uninformed = replace(mine, model="uniform", ability=chance)
    line = Line(mine, uninformed, None, frontier, (-0.1, 0.26), None, "may pay")
    found = Audition((line,), 0.05, 0, {})
    assert deciding(line, 0.05) > 1_600
    [_, row] = brief(found)
    assert row.endswith("hunch compare")
    said = advice(found, "mine")
    assert f"It may pay as judge, {why}, and only a loop can tell, as in hunch compare m --env e" in said
    assert "--until" not in said
    known = replace(line, heard=replace(mine, role="prior", ability=0.6, interval=(0.5, 0.7)))
    two = advice(Audition((line, known), 0.05, 0, {}), "mine")
    assert "It may pay as prior: ask until it is known, with --until decided. It may pay as judge, " in two


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")  # it says nothing of use
def test_another_way_is_suggested_only_where_there_is_one():
    class Silent(Noted):
        verbs = frozenset({"generate"})

        def generate(self, prompts, k=1, sampling=ONE_LINE, first=0):
            return [["hm"] * k for _ in prompts]

    roles = ["judge", "writer"]
    once = hunch.audition(Silent(), roles, questions=4)
    again = hunch.audition(Silent(), roles, questions=4, way="text")
    assert [line.split()[-2:] for line in brief(once)[1:]] == [["another", "--way"], ["another", "model"]]
    nothing_of_it = "which says nothing of its ability: the way of asking failed."
    assert f"as judge, {nothing_of_it} Try another one, as in --way text." in str(once)
    assert f"as judge, {nothing_of_it} Try another one, as in --way structured." in str(again)
    assert f"as writer, {nothing_of_it} It can be asked in no other one there" in str(once)


def test_a_line_per_role_is_followed_by_why_a_role_was_not_asked(hunch_command):
    code, out, _ = hunch_command("audition", "--lm", "bag-of-words", "--roles", "writer", "--questions", "2")
    assert code == 0
    assert "bag-of-words was not asked as writer: it cannot generate." in out


def test_roles_that_may_pay_are_asked_until_it_is_decided():
    model = "scripted:judge?error=0.25"
    once = hunch.audition(model, ["judge"], "hunch/MatrixGame-v0", questions=8, seed=2)
    long = hunch.audition(model, ["judge"], "hunch/MatrixGame-v0", questions=8, seed=2, most=400)
    assert once.lines[0].verdict == "may pay"
    assert long.lines[0].heard.questions > once.lines[0].heard.questions
    assert deciding(long.lines[0], 0.05) is None or long.lines[0].heard.questions * 2 > 400
    for asked in (once, long):
        assert asked.lines[0].heard.usage["calls"] == asked.usage[model]["calls"], "of all rounds"


class Guessing(Model):
    """Embeds pictures and texts at random."""

    name, revision, verbs, dim = "guessing", "1", frozenset({"embed", "see"}), 8

    def embed(self, texts):
        seeds = [crc32(str(text).encode()) for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=8) for seed in seeds], dtype=np.float32)


def test_no_more_questions_are_promised_than_are_stored():
    """There are a hundred pairs of stored pictures, some of them equally far from the goal."""
    stored = next(bed for bed in role_named("preference").beds if bed.stored)
    pairs = ["preference"], stored.env
    few = hunch.audition(Guessing(), *pairs, questions=40)
    assert (few.lines[0].verdict, few.lines[0].heard.questions) == ("may pay", 40)
    assert "--until decided" in advice(few, "guessing")
    every = hunch.audition(Guessing(), *pairs, questions=400)
    assert every.lines[0].verdict == "may pay"
    assert every.lines[0].heard.questions < 200
    assert "only a loop can tell" in advice(every, "guessing")
    said = []
    hunch.audition(Guessing(), *pairs, questions=400, most=1_600, progress=said.append)
    assert len(said) == 1, "asked again, they would be the same"


def test_more_questions_are_more_than_were_wanted():
    """Where ten of a hundred questions could be made, twenty are no advice."""
    points = (Point("", 0.5, 0.0, 0.0, 0.0), Point("", 1.0, 0.5, 0.5, 0.5))
    frontier = Frontier("m", "judge", "e", "e", "independent", "success", 1, 1, "", points)
    mine = Heard("judge", "e", "mine", ability=0.6, interval=(0.5, 0.7), questions=10, wanted=100)
    line = Line(mine, None, None, frontier, (0.0, 0.2), None, "may pay")
    assert deciding(line, 0.05) == 400
    assert "may pay as judge: ask until it is known" in advice(Audition((line,), 0.05, 0, {}), "mine")


def test_all_rounds_together_err_as_seldom_as_one():
    """Each round may end with a verdict: five intervals of 95 % miss the ability in 17 of 100 auditions."""
    right = np.random.default_rng(0).random((400, 800)) < 0.7
    missed = np.zeros(400, dtype=bool)
    for n in (50, 100, 200, 400, 800):
        for i, answers in enumerate(right):
            low, high = Scores(answers[:n].astype(float), range(n)).within(0.05 / 5)
            missed[i] |= not low <= 0.7 <= high
    assert missed.mean() < 0.06

    asked = {"lm": "scripted:judge", "roles": ["judge"], "env": "hunch/MatrixGame-v0", "questions": 40}
    for most, z in ((None, 1.96), (40, 1.96), (640, 2.576)):  # one round, and five
        [line] = hunch.audition(**asked, most=most).lines
        n = line.heard.questions
        assert line.heard.interval[0] == pytest.approx(n / (n + z**2), abs=1e-3)


def test_a_role_with_a_score_elsewhere_is_not_said_to_have_none():
    read = Heard("preference", "hunch/FrozenLake-v0", "mine", ability=0.6, interval=(0.5, 0.7), questions=10)
    unread = Heard("preference", "hunch/MatrixGame-v0", "mine", unread=1.0)
    goal = Heard("goal", "hunch/Craft-v0", "mine", unread=1.0)
    found = Audition(tuple(Line(each, None, None) for each in (read, unread, goal)), 0.05, 0, {})
    assert "mine could not be asked as preference in MatrixGame-v0, goal, which" in str(found)


def test_progress_says_how_long_the_rest_takes():
    said = []
    hunch.audition("uniform", ["judge"], questions=20, progress=said.append)
    assert said[0].endswith("(0 of 20 questions)")
    assert "10 of 20 questions, about 0 s left" in said[1]


def test_a_line_of_each_role_fits_a_terminal(capsys):
    found = hunch.audition(["uniform", "bag-of-words"], questions=8)
    lines = brief(found)
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("planner") for line in lines) == 2
