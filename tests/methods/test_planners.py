"""Planners over skills: SayCan and Inner Monologue."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.cli.main import main
from hunch.core import HunchError, HunchWarning, State, UsageError, World
from hunch.envs.kitchen import errands
from hunch.envs.kitchen.skills import SKILLS, VERBS
from hunch.methods.planner.examples import ExamplePrior, build_scorer, shown_to, spread, with_examples
from hunch.methods.planner.inner_monologue import InnerMonologue
from hunch.methods.planner.saycan import SayCan
from hunch.rl.episodes import evaluate
from hunch.roles.planner.skills import (
    FAILED,
    WORKED,
    Detector,
    FixedAction,
    Skill,
    Trained,
    feedback,
    single,
)
from hunch.roles.prior.base import UniformPrior
from hunch.roles.prior.kinds import PriorConfig
from hunch.roles.prior.language import LikelihoodPrior, prompt
from hunch.roles.prior.similarity import SimilarityPrior
from hunch.roles.wrapper import worth
from hunch.runs.config import RunConfig
from hunch.runs.execute import execute
from hunch.runs.loading import load_skills

KITCHEN = "hunch/Kitchen-v0"
STEPS = {"reach": 10_000, "pick up": 3_000, "put down": 1_000, "open": 2_000}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs that trained the skills of each verb, shortly."""
    root = tmp_path_factory.mktemp("skills")
    for verb, steps in STEPS.items():
        options = methods.QLearningConfig(gamma=0.95, learning_rate=0.3, epsilon=(0.2, 0.2, 1), sweeps=0)
        config = RunConfig(
            method="q-learning",
            env="hunch/KitchenSkill-v0",
            env_options={"verb": verb},
            steps=steps,
            options=options,
        )
        execute(config, root / verb)
    return [str(root / verb) for verb in STEPS]


@pytest.fixture(scope="module")
def skills(runs):
    return [skill for run in runs for skill in load_skills(run)]


def planner(skills, spec="scripted:errands", name="saycan", **options):
    method = methods.find(name)
    config = methods.settings.configure(method.agent_class, None, options)
    return method.build(config, {"lm": lm.load(spec)}, skills=skills)


def success(agent, episodes=30, **env_options):
    env = hunch.make(KITCHEN, **env_options)
    agent.begin(World(examples=env.unwrapped.examples), 0)
    return np.mean([episode.success for episode in evaluate(agent.player, [env], episodes, 0)])


# ---- skills -----------------------------------------------------------------------------------------------


def test_trained_runs_bring_the_skills_of_their_environment(skills):
    assert {skill.name for skill in skills} == set(SKILLS)
    assert len({skill.origin for skill in skills}) == len(VERBS)


def test_what_a_skill_can_do_depends_on_where_it_is(skills):
    by_name = {skill.name: skill for skill in skills}
    env = hunch.make(KITCHEN)
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        state = State.read(observation, info)
        scene = info["raw"]
        can = {name: float(skill.can([state])[0]) for name, skill in by_name.items()}
        assert all(0 <= p <= 1 for p in can.values())
        assert can["put down the apple"] < 0.1  # nothing is in hand
        assert can["pick up the cola"] < 0.2  # nowhere, or in the closed fridge
        away = [p for p in ("table", "bin", "person") if scene.beside != p]
        assert min(can[f"go to the {place}"] for place in away) > can["put down the apple"]


def test_a_skill_trained_by_ppo_can_do_more_in_some_states_than_in_others():
    """It says what states are worth, and no display is read; an agent that does not say is no skill."""
    pytest.importorskip("torch")
    from hunch.methods.policy.ppo import PPO
    from hunch.roles import TextTable

    room = hunch.make("hunch/KitchenSkill-v0", verb="pick up")
    agent = PPO(TextTable(lm.load("bag-of-words")), horizon=128, learning_rate=1e-3)
    hunch.train(agent, room, steps=1500, seed=0)
    trained = Trained.of(agent, room, episodes=60)
    (skill, *_) = (trained.skill(subtask) for subtask in room.unwrapped.subtasks)
    kitchen = hunch.make(KITCHEN)
    can = skill.can([State.read(*kitchen.reset(seed=seed)) for seed in range(20)])
    assert can.max() - can.min() > 0.2
    assert np.ptp(trained.values) > 0.2
    with pytest.raises(HunchError, match="has no method 'values'"):
        worth(planner([single("done")]), [State("You hold nothing.")])


def test_a_run_without_subtasks_brings_no_skills(tmp_path):
    hunch.train("q-learning", "hunch/FrozenLake-v0", steps=50, out=tmp_path / "lake")
    with pytest.raises(UsageError, match="has no subtasks"):
        load_skills(tmp_path / "lake")
    with pytest.raises(UsageError, match="holds no run"):
        hunch.train("saycan", KITCHEN, steps=10, lm="uniform", skills=(str(tmp_path / "nowhere"),))


def test_two_skills_of_one_name_are_refused():
    with pytest.raises(HunchError, match="'done'"):
        begun(SayCan(UniformPrior(), [single("done"), single("done")]))


# ---- what is told -----------------------------------------------------------------------------------------


def test_only_open_channels_tell():
    state = State("You hold nothing.")
    assert feedback((), True, state, "find the apple", "") == ""
    assert feedback(("success",), False, state, "find the apple", "x") == FAILED
    assert feedback(("success", "scene"), True, state, "x", "") == f"{WORKED}\nYou hold nothing."
    assert feedback(("question",), True, state, "ask where the cup is", "It is here.") == "It is here."
    assert feedback(("question",), True, state, "find the cup", "It is here.") == ""


def test_a_detector_errs_as_often_as_asked():
    rng = np.random.default_rng(0)
    detector = Detector(false_positives=0.3, false_negatives=0.1)
    assert abs(np.mean([detector(False, rng) for _ in range(4000)]) - 0.3) < 0.03
    assert abs(np.mean([detector(True, rng) for _ in range(4000)]) - 0.9) < 0.03
    exact = Detector()
    assert exact(True, rng)
    assert not exact(False, rng)


# ---- the planner of examples ------------------------------------------------------------------------------

EXAMPLES = (
    ("Bring me the apple.", ("find the apple", "pick up the apple", "done")),
    ("Open the fridge.", ("go to the fridge", "open the fridge", "done")),
)
NAMES = tuple(dict.fromkeys(name for _, plan in EXAMPLES for name in plan))


def asked(task, *history, told=""):
    """A planner's state after some skills, each with what was told after it."""
    tolds = ("", *(text for _, text in history))
    past = tuple(zip(tolds, (name for name, _ in history), strict=False))
    return State(tolds[-1], task, NAMES, past, raw=EXAMPLES)


def likeliest(state):
    prior = ExamplePrior(lm.load("bag-of-words"))
    (p,) = prior.probabilities([state])
    assert p.sum() == pytest.approx(1)
    return NAMES[int(p.argmax())]


def test_it_goes_through_the_plan_of_the_likeliest_example():
    found, picked = ("find the apple", ""), ("pick up the apple", "")
    assert likeliest(asked("Bring me the apple.")) == "find the apple"
    assert likeliest(asked("Bring me the apple.", found)) == "pick up the apple"
    assert likeliest(asked("Bring me the apple.", found, picked)) == "done"
    assert likeliest(asked("Open the fridge.")) == "go to the fridge"


def test_a_step_that_is_told_to_have_failed_is_still_due():
    failed = ("find the apple", FAILED)
    assert likeliest(asked("Bring me the apple.", failed)) == "find the apple"
    assert likeliest(asked("Bring me the apple.", failed, ("find the apple", WORKED))) == "pick up the apple"


def test_the_temperature_of_the_options_is_that_of_an_encoder():
    encoder, state = lm.load("bag-of-words"), asked("Bring me the apple.")
    ours = [
        build_scorer(PriorConfig(temperature=heat), encoder).probabilities([state])[0].max()
        for heat in (None, 0.05, 1.0)
    ]
    assert ours[0] == ours[1] > ours[2]


def test_without_examples_it_is_the_similarity_prior():
    state = dataclasses.replace(asked("Bring me the apple."), raw=None)
    ours, known = ExamplePrior(lm.load("bag-of-words")), SimilarityPrior(lm.load("bag-of-words"))
    assert np.array_equal(ours.probabilities([state])[0], known.probabilities([state])[0])


# ---- choosing ---------------------------------------------------------------------------------------------


class Told(UniformPrior):
    """p(skill) by name."""

    def __init__(self, **shares):
        super().__init__("L0")
        self.shares = shares

    def _compute(self, states):
        return [np.array([self.shares[name] for name in state.options]) for state in states]


def fixed(name, can):
    """A skill of one step, which moves left."""
    return Skill(name, lambda s: np.full(len(s), can), lambda _: FixedAction("Go Left"), lambda t: True)


def first_skill(score):
    agent = begun(
        SayCan(Told(a=0.6, b=0.3, c=0.1), [fixed("a", 0.1), fixed("b", 0.5), fixed("c", 0.9)], score=score)
    )
    observation, info = hunch.make("hunch/FrozenLake-v0").reset(seed=0)
    agent.act([State.read(observation, info)])
    return agent.plans[0].names[0]


def test_each_score_takes_its_own_best():
    assert {score: first_skill(score) for score in ("say", "can", "product")} == {
        "say": "a",
        "can": "c",
        "product": "b",
    }


def test_a_skill_that_cannot_work_is_no_tie_where_all_scores_are_tiny():
    skills = [fixed("a", 0.0), fixed("b", 0.9), fixed("c", 0.9)]
    state = State("here", "go", ("wait",))
    for seed in range(10):
        agent = SayCan(Told(a=1 - 1.1e-13, b=1e-13, c=1e-14), skills)
        agent.begin(World(), seed)
        (choice,) = agent.choose([state], np.random.default_rng(0))
        assert choice.skill.name == "b"


@pytest.mark.parametrize("can", [float("nan"), -0.5, 3.0])
def test_a_skill_whose_value_is_no_probability_is_named(can):
    agent = begun(SayCan(UniformPrior("L0"), [fixed("a", 0.5), fixed("b", can)]))
    with pytest.raises(HunchError, match="The skill 'b' works with a probability from 0 to 1, not"):
        agent.choose([State("here", "go", ("wait",))], np.random.default_rng(0))


def test_a_probability_that_rounding_puts_beyond_its_range_is_taken():
    above = np.nextafter(np.float32(1), np.float32(2))
    agent = begun(SayCan(UniformPrior("L0"), [fixed("a", np.float32(-1e-9)), fixed("b", above)]))
    (choice,) = agent.choose([State("here", "go", ("wait",))], np.random.default_rng(0))
    assert choice.scores["can"].tolist() == [0.0, 1.0]


def test_affordances_asked_once_stay():
    calls = []

    def can(states):
        calls.append(len(states))
        return np.full(len(states), 0.5)

    for affordance, expected in (("once", 1), ("each", 6)):
        calls.clear()
        skill = dataclasses.replace(fixed("a", 0.5), can=can)
        agent = begun(SayCan(UniformPrior("L0"), [skill], affordance=affordance))
        evaluate(lambda seed, agent=agent: agent, [hunch.make("hunch/FrozenLake-v0", max_steps=6)], 1, 0)
        assert len(calls) <= expected + (affordance == "once")  # the first choice, and what is kept of it


def test_a_scripted_planner_with_trained_skills_does_most_errands(skills):
    """And chance does not: the same skills, drawn by what they can do."""
    informed = success(planner(skills))
    uninformed = success(planner(skills, "uniform", score="can", pick="draw"))
    assert informed > 0.6
    assert uninformed < 0.3


def test_being_told_helps_where_skills_fail(skills):
    blind = success(planner(skills), disturbance=0.4)
    told = success(planner(skills, name="inner-monologue"), disturbance=0.4)
    assert told > blind + 0.2


def test_a_change_of_the_task_is_heard_through_its_channel(skills):
    deaf = success(planner(skills, name="inner-monologue"), changes=1.0)
    heard = success(
        planner(skills, name="inner-monologue", feedback=("success", "scene", "person")), changes=1.0
    )
    assert heard > deaf


def test_a_question_is_a_skill_and_its_answer_is_told(skills):
    agent = planner(skills, name="inner-monologue", feedback=("success", "question"))
    env = hunch.make(KITCHEN, asking=True)
    agent.begin(World(examples=env.unwrapped.examples), 0)
    player = agent.player(0)
    evaluate(lambda _: player, [env], 10, 0)
    asks = [
        told
        for line in player.records()
        for name, told in zip(line["plan"], line["told"][1:], strict=True)
        if name.startswith("ask")
    ]
    assert asks
    assert all("The person says" in told for told in asks)


def test_a_planner_that_reads_sees_plans_of_other_instructions_first():
    """As in SayCan's prompt: the same for all instructions, then the instruction and the skills so far."""
    raw = (
        ("Go to the bin.", ("go to the bin", "done")),
        ("Get the cup.", ("find the cup", "take it", "done")),
    )
    state = State("", "Get the tea.", ("find the tea", "done"), (("", "find the tea"),), raw=raw)
    shown = with_examples(state, 2)
    assert prompt(shown, listed=False) == (
        "Your task is to: carry out an instruction by one skill after the other, as in these examples.\n\n"
        "Instruction: Go to the bin.\n> go to the bin\n> done\n\n"
        "Instruction: Get the cup.\n> find the cup\n> take it\n> done\n\n"
        "Instruction: Get the tea.\n> find the tea\n>"
    )
    reported = replace(state, history=(("", "find the tea"),), observation="That failed.")
    assert prompt(with_examples(reported, 2, reported=True), listed=False) == (
        "Your task is to: carry out an instruction by one skill after the other, as in these examples.\n\n"
        "Instruction: Go to the bin.\n> go to the bin\nThat worked.\n> done\n\n"
        "Instruction: Get the cup.\n> find the cup\nThat worked.\n"
        "> take it\nThat failed.\n> take it\nThat worked.\n> done\n\n"
        "Instruction: Get the tea.\n> find the tea\nThat failed.\n>"
    )
    assert with_examples(state, 0) is state
    assert with_examples(replace(state, raw=()), 5) == replace(state, raw=())


def test_examples_have_plans_of_all_lengths_and_do_not_change_a_rule_that_knows_the_kitchen(skills):
    chosen = spread(errands.EXAMPLES, 7)
    assert [len(plan) for _, plan in chosen] == sorted({len(example.plan) for example in errands.EXAMPLES})
    assert set(spread(errands.EXAMPLES, 10**6)) == set(errands.EXAMPLES)
    assert success(planner(skills, examples=12), 10) == success(planner(skills), 10) > 0.5


def test_an_encoder_compares_with_as_many_examples_as_a_model_would_read():
    encoder = ExamplePrior(lm.load("bag-of-words"))
    state = State("", "Get the tea.", ("find the tea", "done"), raw=errands.EXAMPLES)
    [all_of_them] = shown_to(encoder, [state], examples=0, blank=False)
    [seven] = shown_to(encoder, [state], examples=7, blank=False)
    assert all_of_them is state
    assert (list(seven.raw), seven.task) == (spread(errands.EXAMPLES, 7), state.task)
    [none] = shown_to(encoder, [replace(state, raw=None)], examples=7, blank=False)
    assert not none.raw


def test_saycan_is_told_nothing_and_every_transcript_is_kept(skills):
    agent = planner(skills)
    result = hunch.train(agent, hunch.make(KITCHEN), steps=300)
    lines = agent.records()
    assert len(lines) == len(result.episodes)
    assert [line["success"] for line in lines] == [episode.success for episode in result.episodes]
    assert all(not any(line["told"]) for line in lines)
    for line in lines:
        why = "" if line["success"] else "plan" if all(line["worked"]) else "execution"
        assert line["failure"] == why


def test_the_contract_holds_with_skills(skills):
    agent = planner(skills, "scripted:errands?error=0.3", "inner-monologue", pick="draw")
    methods.check(agent, hunch.make(KITCHEN, disturbance=0.2), steps=45)


def test_a_run_that_is_killed_in_the_middle_of_a_plan_goes_on(skills, tmp_path):
    def go(out, stop=lambda: False):
        agent = planner(skills, name="inner-monologue", prior=PriorConfig(way="text"))
        return hunch.train(agent, hunch.make(KITCHEN), steps=250, out=out, watch=hunch.Watch(stop=stop))

    whole = go(tmp_path / "whole")
    seen = []

    def soon():
        seen.append(1)
        return len(seen) > 40

    assert not go(tmp_path / "parts", soon).complete
    resumed = go(tmp_path / "parts")
    assert [e.actions for e in resumed.episodes] == [e.actions for e in whole.episodes]
    kept = [(tmp_path / name / "records.jsonl").read_text() for name in ("whole", "parts")]
    assert kept[0] == kept[1]


def test_other_skills_are_another_agent(skills, runs):
    one = planner(skills).settings["skills"]
    assert one != planner([s for s in skills if s.origin != skills[0].origin]).settings["skills"]
    assert all(len(origin) == 16 for origin in one)


# ---- bad skills and bad plans -----------------------------------------------------------------------------


def never(name="wander"):
    """A skill that walks to and fro and is never over."""
    return Skill(name, lambda s: np.ones(len(s)), lambda _: FixedAction("Go Left"), lambda t: False, steps=4)


def test_a_skill_that_never_ends_is_ended_by_its_budget():
    agent = begun(InnerMonologue(UniformPrior("L0"), [never()], feedback=("success",)))
    evaluate(lambda seed: agent, [hunch.make("hunch/FrozenLake-v0", max_steps=10)], 1, 0)
    (line,) = agent.records()
    assert line["plan"] == ["wander"] * 3  # 4, 4 and 2 steps
    assert not any(line["worked"])
    assert line["failure"] == "execution"
    assert line["told"][1:] == [FAILED] * 3


class Breaks(FixedAction):
    def act(self, states):
        raise ZeroDivisionError("no floor")


def test_a_skill_that_raises_ends_the_run_in_one_sentence():
    agent = begun(SayCan(UniformPrior("L0"), [dataclasses.replace(never(), player=lambda _: Breaks(""))]))
    with pytest.raises(HunchError, match="The skill 'wander' failed with ZeroDivisionError: no floor"):
        hunch.train(agent, hunch.make("hunch/FrozenLake-v0"), steps=10)


def test_skills_of_another_environment_are_named(skills):
    agent = planner(skills, "uniform")
    with pytest.raises(HunchError, match="belong to this environment"):
        hunch.train(agent, hunch.make("hunch/FrozenLake-v0"), steps=10)


def test_a_planner_that_loops_has_to_stop(skills):
    loops = LikelihoodPrior(lm.load("scripted:first"))
    agent = begun(SayCan(loops, skills, longest=5))
    env = hunch.make(KITCHEN)
    episodes = evaluate(lambda seed: agent, [env], 3, 0)
    assert all(len(line["plan"]) == 6 and line["plan"][-1] == "done" for line in agent.records())
    assert all(episode.actions[-1] == "done" for episode in episodes)


def test_answers_that_name_no_skill_are_counted(skills):
    own = PriorConfig(way="text", patience=None)
    agent = planner(skills, "scripted:errands?malformed=1.0", prior=own)
    told = []
    with pytest.warns(HunchWarning, match="20 answers .* in a row"):
        hunch.train(agent, hunch.make(KITCHEN), steps=100, watch=hunch.Watch(report=told.append))
    assert any(line.get("fallback_rate") == 1.0 for line in told)


def test_an_instruction_out_of_scope_is_given_up(skills):
    state = State("", "Sing me a song.", (*SKILLS, "done"))
    (p,) = LikelihoodPrior(lm.load("scripted:errands")).probabilities([state])
    assert state.options[int(p.argmax())] == "done"


def test_the_command_takes_skills(runs, tmp_path, capsys):
    main(["run", "saycan", "--env", KITCHEN, "--lm", "scripted:errands", "--skills", *runs, "--steps", "60",
          "--out", str(tmp_path / "run")])  # fmt: skip
    assert (tmp_path / "run" / "records.jsonl").exists()
    trained = hunch.load(tmp_path / "run")
    observation, info = hunch.make(KITCHEN).reset(seed=3)
    assert trained.predict(observation, info) in info["actions"]
    assert trained.explain(observation, info).note.startswith("next skill:") or "step" in (
        trained.explain(observation, info).note
    )


def test_contradictory_feedback_ends_in_what_is_seen():
    """The detector says that it worked, the scene says that nothing is held: the scene is believed."""
    scene = (
        "You stand at row 0, column 2, beside the sink.\nYou hold nothing.\nThe fridge is closed.\n"
        "At the sink: the apple.\nThe drawer is closed."
    )
    history = (("", "find the apple"), ("", "pick up the apple"))
    state = State(f"{WORKED}\n{scene}", "Pick up the apple.", (*SKILLS, "done"), history)
    (p,) = LikelihoodPrior(lm.load("scripted:errands")).probabilities([state])
    assert state.options[int(p.argmax())] == "pick up the apple"


# ---- an explanation before the plan, and the blank prompt --------------------------------------------------


class Reads(Told):
    """A planner that keeps the states that it was asked about."""

    def __init__(self, **shares):
        super().__init__(**shares)
        self.read = []

    def _compute(self, states):
        self.read += states
        return super()._compute(states)


def asked_once(**options):
    """A planner's first state, and the agent after its first choice."""
    planner = Reads(a=0.6, b=0.4)
    agent = begun(SayCan(planner, [fixed("a", 0.5), fixed("b", 0.5)], **options))
    agent.examples = (("go there", ("a", "done")),)
    observation, info = hunch.make("hunch/FrozenLake-v0").reset(seed=0)
    agent.act([dataclasses.replace(State.read(observation, info), task="Bring me a snack.")])
    return planner.read[0], agent


def test_a_planner_reads_the_explanation_with_the_instruction():
    explainer = lm.load("scripted:first", cache=None)
    state, agent = asked_once(explainer=explainer)
    thought = agent.plans[0].thought
    assert thought == "a", "the rule names the first of the skills that the request lists"
    assert state.task == f"Bring me a snack.\nExplanation: {thought}"
    assert agent.models["explainer"] is explainer
    calls = explainer.usage.calls
    agent.choose([dataclasses.replace(state, task="Bring me a snack.")], np.random.default_rng(0))
    assert explainer.usage.calls == calls, "an instruction is explained once"
    saved = agent.plans[0].saved()
    assert saved["thought"] == thought
    assert agent._taken_up(0, saved).thought == thought


def test_a_planner_without_an_explainer_reads_the_instruction_alone():
    state, agent = asked_once()
    assert state.task == "Bring me a snack."
    assert "explainer" not in agent.models
    assert "explainer" not in methods.find("saycan").specs(methods.SayCanConfig(), "smollm2")


def test_an_uninstructed_planner_reads_the_examples_alone():
    state, agent = asked_once(uninstructed=True, examples=1)
    assert "Bring me a snack" not in state.task
    assert "Instruction: go there\n> a" in state.task
    assert agent.plans[0].task == "Bring me a snack.", "the errand itself stays"


def test_the_blank_prompt_has_neither_instruction_nor_examples():
    state, _ = asked_once(blank=True)
    assert state.task == ""
    assert state.raw == ()
    assert state.options == ("a", "b")
