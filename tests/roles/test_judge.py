"""Judges: their verdicts are rewards at the end, asked in one call; bad judges are told of."""

import re

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import HunchError, HunchWarning, State, Transition, UsageError
from hunch.lm import Cached
from hunch.lm.backends.scripted import ScriptedModel
from hunch.lm.base import Model, OptionScores
from hunch.roles import Judge, JudgeConfig
from hunch.roles.reward.judge import read_verdict

GAME = "hunch/MatrixGame-v0"


def ended(action="1 and 1", stream=0, success=True, event="Outcome: P1 takes 1, P2 takes 1."):
    s = State("A game.", "choose", ("1 and 1", "2 and 2"), stream=stream)
    return Transition(s, action, 0.0, s, True, False, success=success, event=event)


def model(answer, **dials):
    return Cached(ScriptedModel(lambda prompt, options: answer, **dials))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Yes", 1.0),
        (" no.", 0.0),
        ("It is not, so No", 0.0),
        ("I think: yes, not no", 1.0),
        ("Nobody knows", None),
        ("No doubt, it was met.", None),
        ("There is no question that it was met.", None),
        ("I have no idea.", None),
        ("No doubt: yes, no one has less.", 1.0),
        ("No, no doubt about it.", 0.0),
        ('{"answer": true}', 1.0),
        ('{"verdict": false, "reason": "yes, but late"}', 0.0),
        ('{"violated": true}', None),  # the key says what is true, and here it is no choice
    ],
)
def test_the_first_yes_or_no_counts(text, verdict):
    assert read_verdict(text) == verdict


def test_a_judge_is_right_and_is_asked_once_for_all_that_end():
    judge = lm.load("scripted:judge")
    agent = methods.Kwon(judge, table=methods.QLearningConfig(epsilon=(1.0, 0.0, 3000)))
    envs = [hunch.make(GAME) for _ in range(4)]
    result = hunch.train(agent, envs, 4000)
    assert result.success.value == 1.0
    assert result.usage["calls"] == 64  # sixteen games of four outcomes; the rest are cached
    assert result.evidence == "L0"


def test_only_the_end_is_judged_and_the_account_is_whole():
    judge = begun(Judge(model("Yes")))
    middle = ended()
    middle = Transition(middle.state, "wait", 0.0, middle.state, False, False, event="You wait.")
    assert judge.rewards([middle]) == [0.0]
    assert judge.rewards([ended()]) == [1.0]
    prompt = judge.prompt("choose", ["A game.", "> wait", "You wait."])
    assert prompt.startswith("A game.\n> wait\nYou wait.\n\nThe objective: choose.")
    assert "objective:" not in Judge(model("Yes"), JudgeConfig(objective="")).prompt("choose", ["A game."])


def test_an_abstention_is_worth_nothing_and_is_counted():
    judge = begun(Judge(model("Yes", refusal=1.0)))
    with pytest.warns(HunchWarning, match="abstained from all of 60"):
        rewards = judge.rewards([ended(stream=i) for i in range(60)])
    assert set(rewards) == {0.0}
    assert judge.learn() == {"judge_yes": 0.0, "judge_abstained": 1.0, "judge_agrees": 0.0}
    assert judge.lm.usage.fallbacks == 60


def test_a_judge_that_says_yes_to_everything_is_warned_of_once():
    judge = begun(Judge(model("Yes")))
    with pytest.warns(HunchWarning, match="said yes to all of 60"):
        judge.rewards([ended(stream=i) for i in range(60)])
    judge.rewards([ended()])
    assert judge.learn()["judge_agrees"] == 1.0


class Doubtful(ScriptedModel):
    """Never finds Yes likelier than No, but likelier after good episodes: an area under the curve of 0.65."""

    def __init__(self):
        super().__init__(lambda prompt, options: "No")

    def score(self, prompts, options):
        found = [re.search(r"good=(\d) episode=(\d+)", prompt) for prompt in prompts]
        noise = [np.random.default_rng(int(own[2])).normal() for own in found]
        # Two normal distributions whose means are d apart have an area of Phi(d / sqrt(2)): 0.65 at 0.545.
        yes = [0.3 + 0.05 * np.tanh(0.545 * int(own[1]) + z) for own, z in zip(found, noise, strict=True)]
        one = np.ones(2, dtype=int)
        return [OptionScores(np.log([p, 1 - p]), one, one) for p in yes]


@pytest.mark.filterwarnings("error")
def test_a_judge_that_leans_to_no_but_tells_good_from_bad_is_not_warned_of():
    """All verdicts are no; the rewards are probabilities of yes, and order the episodes."""
    judge = begun(Judge(Cached(Doubtful()), JudgeConfig(way="likelihood")))
    good = np.random.default_rng(0).random(2_000) < 0.5
    episodes = [
        ended(stream=i, event=f"good={int(own)} episode={i}.", success=bool(own))
        for i, own in enumerate(good)
    ]
    rewards = np.array(judge.rewards(episodes))
    assert judge.verdicts["no"] == len(episodes)
    assert rewards.max() < 0.5
    above = rewards[good][:, None] > rewards[~good]
    assert above.mean() == pytest.approx(0.65, abs=0.03)


def test_no_and_abstentions_in_turn_are_one_reward():
    """As in a model that refuses or says no: both pay nothing."""
    judge = begun(Judge(Cached(ScriptedModel(lambda prompt, options: "No", refusal=0.5))))
    with pytest.warns(HunchWarning, match="gave the reward 0 to each of 60"):
        judge.rewards([ended(stream=i, event=f"Outcome {i}.") for i in range(60)])


@pytest.mark.parametrize("text", ["", "The split is 50 to 50, as it happens.", "As a model I cannot judge."])
def test_prose_is_an_abstention(text):
    assert read_verdict(text) is None


class Sleepy(ScriptedModel):
    """Does not answer in time from some call on."""

    def __init__(self, patience):
        super().__init__(lambda prompt, options: "Yes")
        self.patience = patience

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.patience -= 1
        if self.patience < 0:
            raise HunchError("The model gave no answer within 9 s.")
        return super().generate(prompts, k, sampling, first)


def test_a_judge_that_times_out_ends_the_run_in_a_sentence_and_loses_nothing(tmp_path):
    def run(patience, out):
        agent = methods.Kwon(Cached(Sleepy(patience)), judge=JudgeConfig(temperature=1.0))
        return [e.actions for e in hunch.train(agent, hunch.make(GAME), 40, out=out).episodes]

    with pytest.raises(HunchError, match="no answer within 9 s"):
        run(15, tmp_path / "parts")
    assert run(10**6, tmp_path / "parts") == run(10**6, tmp_path / "whole")


def test_errors_last_at_temperature_0_and_are_drawn_anew_above():
    lasting, anew = (
        begun(Judge(model("Yes", error=0.5), JudgeConfig(temperature=temperature)))
        for temperature in (0.0, 1.0)
    )
    assert np.std([lasting.rewards([ended()])[0] for _ in range(40)]) == 0
    assert 0.2 < np.mean([anew.rewards([ended()])[0] for _ in range(200)]) < 0.8


def test_a_probability_of_yes():
    judge = begun(Judge(model("Yes", error=0.2), JudgeConfig(way="likelihood")))
    assert judge.rewards([ended()])[0] == pytest.approx(0.99 * 0.8 + 0.005)
    with pytest.raises(UsageError, match="does not have it"):
        begun(Judge(lm.load("minilm"), JudgeConfig(way="likelihood")))
    with pytest.raises(UsageError, match="generate"):
        begun(Judge(lm.load("minilm")))


@pytest.mark.parametrize("way", ["text", "likelihood"])
def test_the_contract_is_kept(way):
    judge = JudgeConfig(way=way, temperature=1.0)
    methods.check(methods.Kwon(lm.load("scripted:judge?error=0.2"), judge=judge), hunch.make(GAME))
    methods.check(
        methods.Kwon(lm.load("uniform"), judge=judge, standardise=True), hunch.make("hunch/FrozenLake-v0")
    )


def test_a_model_that_decides_judges_by_its_probability_of_yes():
    judge = begun(Judge(lm.load("uniform"), JudgeConfig(way="decision")))
    assert judge.rewards([ended()]) == [0.5]


def test_a_way_of_judging_that_the_model_lacks_is_refused():
    with pytest.raises(UsageError, match="needs the verb decide"):
        Judge(model("Yes"), JudgeConfig(way="decision"))
    with pytest.raises(UsageError, match="how is now way"):
        JudgeConfig(**{"how": "score"})
    assert JudgeConfig.current({"how": "answer"}) == {"way": "text"}


class Hesitant(Model):
    """Says Yes with probability 0.3 to a good outcome, and 0.1 to another: as a verdict, No to both."""

    name = "hesitant"
    revision = "1"
    evidence = "L0"
    verbs = frozenset({"generate", "label"})
    takes = frozenset({"choices"})
    answer_tokens = 64

    def label(self, prompts, labels):
        assert all(tuple(own) == ("Yes", "No") for own in labels)  # the words themselves, and no letters
        self.prompts = list(prompts)
        yes = [0.3 if "gets 2" in prompt else 0.1 for prompt in prompts]
        return [np.log([p, 0.9 - p]) for p in yes]


def test_auto_asks_for_a_probability_before_a_verdict():
    judge = begun(Judge(Cached(Hesitant())))
    assert judge.way == "label"
    good, bad = judge.judged(
        [judge.prompt("share", ["Outcome: P1 gets 2."]), judge.prompt("share", ["Outcome: P1 gets 0."])]
    )
    assert (good, bad) == (pytest.approx(1 / 3), pytest.approx(1 / 9))


def test_a_judge_of_probabilities_does_not_grow_with_its_run():
    class Sure(Hesitant):
        def label(self, prompts, labels):
            yes = [float(prompt.split("#")[1]) for prompt in prompts]
            return [np.log([p, 1 - p]) for p in yes]

    judge = begun(Judge(Cached(Sure())))
    judge.judged([f"Outcome: #{n / 100}# of the way." for n in range(1, 100)])
    before = len(str(judge.state_dict()))
    judge.judged([f"Outcome: #{n / 1000}# of the way." for n in range(1, 1000)])
    assert len(str(judge.state_dict())) < before + 10


def test_the_prompt_of_a_probability_is_that_of_a_verdict():
    model = Hesitant()
    judge = begun(Judge(Cached(model)))
    prompt = judge.prompt("share", ["Outcome: P1 gets 2."])
    judge.judged([prompt])
    assert model.prompts == [prompt]


def test_no_probability_is_an_abstention():
    class Elsewhere(Hesitant):
        def label(self, prompts, labels):
            return [np.full(2, -np.inf) for _ in prompts]

    judge = begun(Judge(Cached(Elsewhere())))
    assert judge.rewards([ended()]) == [0.0]
    assert judge.learn()["judge_abstained"] == 1.0
