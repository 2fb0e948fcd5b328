"""Models that write learn from demonstrations, preferences and recorded rewards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hunch import methods
from hunch.core import Episode, HunchError, HunchWarning, State, Transition, UsageError, World
from hunch.methods.settings import configure

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from hunch import lm
from hunch.methods.tune.offline_rlhf import levels_of, preference_pairs
from hunch.methods.tune.recorded import Example
from hunch.rl.policy import Passes
from hunch.rl.preference_losses import pairs as pair_loss
from hunch.roles.reward.model import FOLDS, HEAD_L2S, Member, RewardModel, best_head_l2, head_weights
from hunch.roles.reward.preferences import Compared, Gold, Judged, Shuffled
from hunch.roles.reward.settings import RewardModelConfig
from hunch.runs.execute import RunConfig, execute
from hunch.runs.loading import load_agent

SCRATCH = "scratch?width=32&layers=1&vocabulary=64"
GOOD, BAD = "boil carrot ; add salt ; serve", "boil chicken ; serve"
ASKED = State("dish soup diet vegan pace quick :")


def made(name, **options):
    method = methods.find(name)
    models = {"judge": lm.load("uniform")} if "judge" in method.models else {}
    return method.build(methods.settings.configure(method.agent_class, None, options), models)


def step(text, reward, state=ASKED):
    return Transition(state, text, reward, state, True, False)


# ---- the reward model -------------------------------------------------------------------------------------


def fitted(pairs, spec=SCRATCH, **options):
    config = RewardModelConfig(pairs=len(pairs), **{"reward_epochs": 12, "reward_rate": 1e-2, **options})
    model = RewardModel(spec, Gold(), config)
    model.begin(World(), 0)
    return model, model.fit(pairs)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "no prompt was answered twice"),
        ([Compared(ASKED, GOOD, GOOD, 1.0)] * 3, "Both texts are equal"),
        ([Compared(ASKED, GOOD, BAD, 0.5)] * 3, "are ties"),
    ],
)
def test_pairs_that_teach_nothing_are_refused(pairs, said):
    with pytest.raises(UsageError, match=said):
        fitted([*pairs])


def test_gold_preferences_follow_bradley_and_terry():
    both = [(step(GOOD, 1.0), step(BAD, 0.0))] * 4000
    rng = np.random.default_rng(0)
    assert np.mean(Gold(0.5).compare(both, rng)) == pytest.approx(1 / (1 + np.exp(-2)), abs=0.02)
    assert set(Gold(0.0).compare(both, rng)) == {1.0}
    assert Gold(0.0).compare([(step(GOOD, 1.0), step(BAD, 1.0))], rng) == [0.5]
    mixed = [(step(GOOD, 1.0), step(BAD, 0.0)), (step(BAD, 0.0), step(GOOD, 1.0))] * 500
    shares = np.array(Shuffled(0.0).compare(mixed, rng))
    assert shares.mean() == 0.5
    assert abs(np.mean(shares[::2]) - 0.5) < 0.1


def test_a_judge_is_asked_by_a_principle():
    judged = Judged(lm.load("uniform"), ["Prefer the shorter one."])
    prompt = judged.prompt(step(GOOD, 9.5), step(BAD, -1.5), "Prefer the shorter one.")
    assert "Prefer the shorter one." in prompt
    assert GOOD in prompt
    assert "9.5" not in prompt
    shares = judged.compare(
        [(step(GOOD, 0), step(BAD, 0)), (step(GOOD, 0), step(GOOD, 0))], np.random.default_rng(0)
    )
    assert shares[1] == 0.5


PREFERRED = [Compared(ASKED, GOOD, BAD, 1.0), Compared(ASKED, "serve ; serve", GOOD, 0.2)] * 12


def fitted_in_one_step(micro):
    """Return the weights of a reward model that was fitted with so many texts at once, and its rewards."""
    model = RewardModel(SCRATCH, Gold(), RewardModelConfig(reward_epochs=1), micro)
    model.begin(World(), 0)
    model.fit(PREFERRED)
    return model.members[0].lm.state_dict(), model.score([ASKED] * 9, [GOOD, BAD, "serve"] * 3)


def assert_same(one, other):
    for name, weight in one[0].items():
        torch.testing.assert_close(other[0][name], weight, atol=1e-6, rtol=0)
    np.testing.assert_allclose(other[1], one[1], atol=1e-4)


@pytest.mark.usefixtures("plain_descent")
def test_a_reward_model_computes_a_few_texts_at_once_with_the_same_result(texts_at_once):
    at_once = fitted_in_one_step(64)
    assert max(texts_at_once) == 2 * len(PREFERRED)
    texts_at_once.clear()
    in_passes = fitted_in_one_step(4)
    assert max(texts_at_once) == 4
    assert_same(at_once, in_passes)


@pytest.mark.usefixtures("plain_descent")
def test_a_reward_model_that_does_not_fit_computes_half_as_many_at_once(little_memory):
    at_once = fitted_in_one_step(64)
    little_memory(8)
    with pytest.warns(HunchWarning, match="From here on 8 are computed at once"):
        halved = fitted_in_one_step(64)
    assert_same(at_once, halved)


def test_a_pair_that_does_not_fit_names_settings_that_need_less(little_memory):
    little_memory(0)
    with pytest.raises(HunchError, match="Use a smaller micro"):
        fitted_in_one_step(2)


@pytest.mark.parametrize("name", ["rlhf", "best-of-n"])
def test_the_reward_model_of_a_method_has_its_micro(name, texts_at_once):
    agent = made(name, lm=SCRATCH, micro=2, pairs=4, reward_epochs=1, max_tokens=4)
    agent.begin(World(streams=4, steps=100), 0)
    for rows in range(2):
        states = [replace(ASKED, stream=stream) for stream in range(4)]
        texts = [[GOOD, BAD, "serve", "boil"][(stream + rows) % 4] for stream in range(4)]
        agent.observe([step(text, float(text == GOOD), s) for s, text in zip(states, texts, strict=True)])
    agent.learn()
    assert agent.source.fitted
    assert max(texts_at_once) == 2


# ---- recorded texts ---------------------------------------------------------------------------------------


def test_a_conditioned_model_writes_at_the_level_that_is_asked_for():
    """Asked for the highest level it writes like the best texts, for the lowest like the worst."""
    texts = [GOOD, BAD]
    data = [Episode((step(texts[i % 2], float(1 - i % 2) + i / 1000),)) for i in range(40)]
    agent = made("offline-rlhf", lm=SCRATCH, loss="conditioned", learning_rate=1e-2, batch_size=20)
    agent.begin(World(steps=150, data=data), 0)
    for _ in range(150):
        agent.learn()
    high = agent.act([ASKED] * 10)
    agent.config = methods.settings.configure(type(agent), agent.config, {"request": 0})
    low = agent.act([ASKED] * 10)
    assert [text.strip() for text in high].count(GOOD) > 7
    assert [text.strip() for text in low].count(BAD) > 7


def test_the_divergence_of_a_conditioned_model_is_that_of_what_it_writes():
    """It writes after a level, and is judged there; the model before training, after the prompt alone."""
    data = [Episode((step([GOOD, BAD][i % 2], float(1 - i % 2)),)) for i in range(20)]
    agent = made("offline-rlhf", lm=SCRATCH, loss="conditioned", learning_rate=1e-2, batch_size=20)
    agent.begin(World(steps=40, data=data), 0)
    for _ in range(40):
        agent.learn()
    player = agent.player(0)
    player.act([ASKED] * 20)
    after_level = [replace(ASKED, observation=f"4 {ASKED.observation}")] * 20
    with torch.no_grad():
        now = agent.policy.evaluate(after_level, player.decisions, part="policy").logprobs.sum(1)
        before = agent.policy.reference_logprobs([ASKED] * 20, player.decisions).sum(1)
    assert player.figures()["kl"] == pytest.approx(float((now - before).mean()), rel=1e-5)


@pytest.mark.parametrize("rewards", [[0.0, 1.0] * 5, range(10)])
def test_the_filter_keeps_as_many_texts_as_it_says(rewards):
    data = [Episode((step(f"{GOOD} ; {i}", float(reward)),)) for i, reward in enumerate(rewards)]
    for top, kept in ((1.0, 10), (0.5, 5)):
        agent = made("offline-rlhf", lm=SCRATCH, loss="filter", top=top)
        agent.begin(World(steps=2, data=data), 0)
        assert len(agent.examples) == kept


@pytest.mark.parametrize("loss", ["filter", "conditioned", "weighted"])
def test_rare_rewards_are_told_apart(loss):
    """One text in ten has a reward: a fifth of the best is not all of them, and its level is not theirs."""
    data = [Episode((step(GOOD if i % 10 == 0 else BAD, float(i % 10 == 0)),)) for i in range(40)]
    agent = made("offline-rlhf", lm=SCRATCH, loss=loss, top=0.2, spread=0.05, batch_size=20)
    agent.begin(World(steps=2, data=data), 0)
    texts = [example.text.strip() for example in agent.examples]
    if loss == "filter":
        assert texts == [GOOD] * 4
    if loss == "conditioned":
        levels = {example.text.strip(): example.state.observation[0] for example in agent.examples}
        assert levels[GOOD] > levels[BAD]
    if loss == "weighted":
        assert np.isfinite(agent.weights).all()
        assert agent.weights.mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("rewards", "levels"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        ([0] * 9 + [1], [0] * 9 + [4]),
        ([0] + [1] * 9, [0] + [4] * 9),  # most are the best, and failures are rare
        ([0] + [1] * 8 + [2], [0] + [2] * 8 + [4]),
        ([0] * 7 + [1, 2, 3], [0] * 7 + [3, 4, 4]),
    ],
)
def test_equal_rewards_share_no_level_with_worse_or_better_ones(rewards, levels):
    assert levels_of(np.array(rewards, dtype=float)).tolist() == levels


def test_pairs_are_of_one_group_and_differ():
    known = [
        Example(ASKED, text, reward, group)
        for text, reward, group in (("a", 1, 0), ("b", 0, 0), ("c", 5, 1), ("d", 5, 1), ("e", 9, None))
    ]
    assert preference_pairs(known) == [(0, 1)]


def test_texts_beyond_the_context_are_refused_before_the_training():
    agent = made("sft", lm=SCRATCH)
    agent.lm.model._positions = 12
    with pytest.raises(UsageError, match="A prompt with its text has"):
        agent.begin(World(data=[Episode((step("boil carrot ; " * 9 + "serve", 0.0),))]), 0)


def test_texts_that_kto_may_judge_after_a_longer_prompt_are_refused_before_the_training():
    """Each text fits after its own prompt, and the longer text not after the longer prompt."""
    longer = State("boil carrot ; " * 4)
    data = [Episode((step("serve", 1.0, longer),)), Episode((step("add salt ; " * 4, 0.0),))]
    agent = made("offline-rlhf", lm=SCRATCH, loss="kto", batch_size=2)
    agent.begin(World(data=data), 0)
    agent.lm.model._positions = 24
    with pytest.raises(UsageError, match="A prompt with the longest text, which kto may judge after it, has"):
        agent.begin(World(data=data), 0)
    likelihood = made("offline-rlhf", lm=SCRATCH, loss="likelihood")
    likelihood.lm.model._positions = 24
    likelihood.begin(World(data=data), 0)


def test_kto_needs_another_text_of_the_batch_to_measure_the_divergence():
    """Of one text, z would be max(0, g) of this text, from which its own g is measured."""
    with pytest.raises(UsageError, match="set batch_size to at least 2"):
        made("offline-rlhf", lm=SCRATCH, loss="kto", batch_size=1)
    made("offline-rlhf", lm=SCRATCH, loss="likelihood", batch_size=1)


@pytest.mark.parametrize("options", [{"demonstrations": 1}, {"ptx": 0.1}])
def test_demonstrations_beyond_the_context_are_refused_before_the_training(options):
    examples = ((str(ASKED.observation), (GOOD, "boil carrot ; " * 9)),)
    agent = made("rlhf", lm=SCRATCH, pairs=2, max_tokens=4, **options)
    agent.agent.lm.model._positions = 24
    with pytest.raises(UsageError, match="A prompt with its text has"):
        agent.begin(World(steps=100, streams=4, examples=examples), 0)
    unused = made("rlhf", lm=SCRATCH, pairs=2, max_tokens=4)
    unused.agent.lm.model._positions = 24
    unused.begin(World(steps=100, streams=4, examples=examples), 0)


# ---- pairs where prompts hardly repeat --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["best-of-n", "rlhf"])
def test_streams_in_pairs_make_pairs_of_prompts_that_hardly_repeat(method, tmp_path):
    run = RunConfig(method=method, env="hunch/Constraints-v0", lm=SCRATCH, envs=4, steps=64)
    agent_class = methods.find(method).agent_class
    short = {"pairs": 8, "max_tokens": 6}
    apart = configure(agent_class, None, short)
    with pytest.warns(HunchWarning, match="set paired"):
        execute(replace(run, options=apart), tmp_path / "apart")
    assert not load_agent(tmp_path / "apart")[0].source.fitted

    paired = configure(agent_class, None, {**short, "paired": True})
    execute(replace(run, options=paired), tmp_path / "paired")
    assert load_agent(tmp_path / "paired")[0].source.records()[0]["pairs"] == 8


def test_a_run_that_ends_before_its_pairs_are_made_says_so(tmp_path):
    """Too few texts for the earlier warning, which waits for 48 without a pair."""
    options = configure(methods.find("rlhf").agent_class, None, {"pairs": 8, "max_tokens": 6})
    run = RunConfig(method="rlhf", env="hunch/Constraints-v0", lm=SCRATCH, envs=4, steps=32, options=options)
    with pytest.warns(HunchWarning, match=r"its 32 texts made \d of 8 pairs.*--paired"):
        execute(run, tmp_path)


# ---- best of n ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "as_pretrained"), [("weights", True), ("shuffled", False), ("random", False)]
)
def test_writer_and_reward_model_start_from_the_same_kind_of_weights(start, as_pretrained):
    agent = made("best-of-n", lm="pocket?corpus=walks", start=start, pairs=2, reward_epochs=0)
    agent.begin(World(streams=2, steps=10), 0)
    models = [agent.lm, agent.source.members[0].lm]
    pretrained = lm.trainable("pocket?corpus=walks").state_dict()
    assert [equal(model.state_dict(), pretrained) for model in models] == [as_pretrained] * 2
    agent.source.fit([Compared(ASKED, GOOD, BAD, 1.0)] * 4)  # the head alone
    assert [equal(model.state_dict(), pretrained) for model in models] == [as_pretrained] * 2


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in other)


# ---- rounds ------------------------------------------------------------------------------------------------


def test_a_renewed_policy_begins_each_round_from_the_model_of_stage_one():
    agent = made("rlhf", lm=SCRATCH, pairs=2, max_tokens=6, demonstrations=1, rounds=2, renew=True)
    agent.begin(World(steps=100, streams=4, examples=((str(ASKED.observation), (GOOD, BAD)),)), 0)
    agent.learn()  # stage 1
    policy = agent.agent
    first = {name: weight.clone() for name, weight in policy.lm.state_dict().items()}
    for weight in policy.lm.parameters():
        weight.data += 0.1
    policy.renew()
    assert all((first[name] == weight).all() for name, weight in policy.lm.state_dict().items())
    assert not policy.learner.optimiser.state_dict()["state"]


@pytest.mark.parametrize("renew", [False, True])
def test_a_run_with_rounds_fits_the_reward_model_in_each(renew, tmp_path):
    config = {"pairs": 4, "max_tokens": 6, "rounds": 2, "renew": renew, "episodes": 8, "paired": True}
    run = RunConfig(method="rlhf", env="hunch/Constraints-v0", lm=SCRATCH, envs=4, steps=64)
    execute(replace(run, options=configure(methods.find("rlhf").agent_class, None, config)), tmp_path / "run")
    agent, _ = load_agent(tmp_path / "run")
    fits = [record for record in agent.records() if "pairs" in record]
    assert len(fits) == 2
    assert fits[1]["pairs"] > fits[0]["pairs"], "the second fit has the pairs of both rounds"


@pytest.mark.parametrize(
    ("pairs", "features", "allowed"), [(60, 400, HEAD_L2S[2:]), (2_000, 10, HEAD_L2S[:3])]
)
def test_a_head_with_more_features_than_pairs_is_shrunk(pairs, features, allowed):
    """One feature of many decides, with noise; the chosen weight predicts other pairs well."""
    torch.manual_seed(0)
    first, second = torch.randn(2, 2 * pairs, features)
    right = torch.sigmoid(first[:, 0] - second[:, 0])
    shares = torch.bernoulli(right)
    fitted, others = slice(0, pairs), slice(pairs, None)

    fold = torch.arange(pairs) % FOLDS
    chosen = best_head_l2(first[fitted], second[fitted], shares[fitted], fold)
    losses = {
        weight: float(pair_loss(first[others] @ weights, second[others] @ weights, shares[others]))
        for weight in HEAD_L2S
        for weights in [head_weights(first[fitted], second[fitted], shares[fitted], weight)]
    }

    assert chosen in allowed
    assert losses[chosen] <= 1.05 * min(losses.values())


@pytest.mark.parametrize("reward_epochs", [0, 2])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 1, 1, 2]], ids=["each", "drawn"])
def test_a_fit_returns_the_rewards_that_the_model_then_gives(rows, reward_epochs):
    """Both texts of a pair stand side by side; pairs that were not fitted have rewards, too."""
    pairs = [Compared(ASKED, GOOD, BAD, 1.0), Compared(ASKED, BAD, "serve", 0.0)] * 3
    member = Member(SCRATCH, Passes(64))
    member.begin(0)
    config = RewardModelConfig(reward_epochs=reward_epochs)
    rewards = member.fit(pairs, np.array(rows), config, np.random.default_rng(0))
    texts = [text for pair in pairs for text in (pair.first, pair.second)]
    again = member([ASKED] * len(texts), texts)
    np.testing.assert_allclose(rewards, again, atol=1e-5)


@pytest.mark.parametrize("pairs", [1, 3])
def test_a_few_pairs_are_enough_to_choose_the_weight_of_the_head(pairs):
    first, second = torch.randn(2, pairs, 5, generator=torch.Generator().manual_seed(0))
    shares = torch.ones(pairs)
    assert best_head_l2(first, second, shares, torch.arange(pairs) % FOLDS) in HEAD_L2S
