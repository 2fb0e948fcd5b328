"""Models that write are trained: groups, resume, equal and different algorithms, real models, bad input."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.help import meanings
from hunch.cli.main import main
from hunch.core import Episode, HunchError, HunchWarning, State, Transition, UsageError, World
from hunch.envs.base import Outcome, TextEnv
from hunch.rl import dataset
from hunch.rl.dataset import as_episodes
from hunch.rl.policy import Decision, Step
from hunch.rl.rollout import Rollout, StoppedError
from hunch.rl.world import world_of
from hunch.roles import RewardSource
from hunch.roles.prior.language import prompt
from hunch.roles.reward.preferences import read_pairs
from hunch.runs.data import read_data, recorded
from hunch.runs.execute import RunConfig, execute
from hunch.runs.record import collect, parse_mix

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from hunch.methods.tune.agent import Groups, shuffled  # noqa: E402
from hunch.methods.tune.grpo import GRPOConfig  # noqa: E402
from hunch.methods.tune.recorded import examples  # noqa: E402
from hunch.roles.policy.text import transcript  # noqa: E402

WALKS = 'pocket?corpus=walks&end="\\n"'
METHODS = ("grpo", "rloo", "ppo-text", "a2c-text", "trpo-text", "nlpo")
MOVES = ("turn left", "turn right", "go forward", "drop")
SIGHTS = ("You see a red ball 2 steps left", "You see a key 3 steps forward", "You see a box 1 step right")


class Bed(TextEnv):
    """One step: pays for each word of ``turn`` and the direction that is not the one seen."""

    offers = ("free_text",)
    wanted = ("right", "left", "left")

    def __init__(self, render_mode=None):
        super().__init__(1, render_mode)

    def _begin(self, options):
        self.index = int(self.np_random.integers(len(SIGHTS)))
        return Outcome(prompt(State(SIGHTS[self.index], "go to a red ball", MOVES)), None)

    def _move(self, action):
        words = action.split()
        paid = 0.5 * ("turn" in words) + 0.5 * (self.wanted[self.index] in words)
        return Outcome("", None, paid, True, paid == 1)


class Talk(TextEnv):
    """Three turns, of which the second ends early after some texts; the last turn pays."""

    offers = ("free_text",)
    task = "go to a red ball"

    def __init__(self, render_mode=None):
        super().__init__(3, render_mode)

    def _begin(self, options):
        self.turn, self.first = 0, int(self.np_random.integers(len(SIGHTS)))
        return Outcome(SIGHTS[self.first], None)

    def _move(self, action):
        self.turn += 1
        over = self.turn == 3 or (self.turn == 2 and len(action) % 2 == 0)
        return Outcome(SIGHTS[self.turn % 3], None, float(over) * len(action) / 10, over, over)


@pytest.fixture(scope="module")
def model():
    return lm.trainable(WALKS)


@pytest.fixture
def prompts(tmp_path):
    file = tmp_path / "prompts.jsonl"
    rows = [{"prompt": sight, "answer": "drop"} for sight in SIGHTS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def agent(name, model, **options):
    return methods.find(name).agent_class(lm=model, **options)


def begun(name, model, streams=1, **options):
    made = agent(name, model, **options)
    made.begin(hunch.core.World(streams=streams, steps=100), 0)
    return made


# ---- groups -----------------------------------------------------------------------------------------------


def test_the_streams_of_a_group_answer_the_same_prompts():
    rollout = Rollout([Bed() for _ in range(6)], seed=3, group=3)
    seen = [[state.observation for state in rollout.states]]
    for _ in range(12):
        rollout.step(["turn left"] * 6)
        seen.append([state.observation for state in rollout.states])
    assert all(len(set(row[:3])) == len(set(row[3:])) == 1 for row in seen)
    assert len({tuple(row) for row in seen}) > 3
    with pytest.raises(UsageError, match="must be a multiple of it, not 4"):
        Rollout([Bed() for _ in range(4)], group=3)


def step(stream, reward, done=True):
    state = State("s", stream=stream)
    return Step(Transition(state, "a", reward, state, done, False), Decision("a"))


def test_a_group_is_whole_when_all_of_it_have_finished_the_same_episode():
    kept = Groups(2)
    for stream, reward in ((0, 1.0), (0, 2.0), (2, 5.0), (1, 3.0)):
        kept.add(step(stream, reward))
    assert [[own[0].transition.reward for own in group] for group in kept.whole()] == [[1.0, 3.0]]
    again = Groups(2)
    again.load_state_dict(kept.state_dict())
    kept.clear()
    assert kept.whole() == []
    kept.add(step(1, 4.0))
    assert [[own[0].transition.reward for own in group] for group in kept.whole()] == [[2.0, 4.0]]
    assert len(again.whole()) == 1


def test_shuffling_keeps_the_returns_of_each_group():
    groups = [[[step(s, 1.0 * s, False), step(s, 0.5)] for s in range(4 * g, 4 * g + 4)] for g in range(2)]
    dealt = shuffled(groups, np.random.default_rng(0))

    def returns(group):
        return [sum(t.reward for t, _ in episode) for episode in group]

    assert [sorted(returns(group)) for group in dealt] == [sorted(returns(group)) for group in groups]
    assert [returns(group) for group in dealt] != [returns(group) for group in groups]
    alone = shuffled([[[step(s, float(s))]] for s in range(9)], np.random.default_rng(0))
    assert sorted(returns(own)[0] for own in alone) == list(range(9))
    assert all(len(own) == 1 for own in alone)


# ---- the contract, and what is learnt ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), [("grpo", {"group": 2}), ("nlpo", {"refresh": 1})])
def test_the_contract_is_kept_in_conversations(name, options, model):
    """Also resume in the middle of a group, whose episodes have different lengths."""
    made = agent(name, model, episodes=4, max_tokens=4, epochs=1, **options)
    methods.check(made, Talk(), steps=12, streams=2)


class Turns(Talk):
    """The same talk between two players: a player's step lasts until it is its turn again."""

    metadata: ClassVar = {**Talk.metadata, "players": 2}

    def _extras(self):
        return {"player": self.turn % 2}


def test_a_run_of_two_players_is_resumed_with_the_texts_that_await_their_results(model):
    """Their tokens, and their log-probabilities before an update that comes in between, are in no episode."""
    made = agent("ppo-text", model, episodes=4, max_tokens=4, epochs=1)
    methods.check(made, Turns(), steps=12, streams=2)


@pytest.mark.parametrize(
    "name", ["grpo", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("ppo-text", "rloo"))]
)
def test_the_gold_reward_is_reached(name, model):
    """Nine tenths of the best known one, where the untrained model earns a half."""
    made = agent(name, model, kl=0.0, learning_rate=1e-3, max_tokens=6, episodes=32)
    result = hunch.train(made, [Bed() for _ in range(16)], steps=1280, seed=0)
    paid = [episode.episode_return for episode in result.episodes]
    assert np.mean(paid[:64]) < 0.7
    assert max(np.mean(paid[i : i + 160]) for i in range(0, len(paid), 160)) > 0.9


def test_shuffled_returns_teach_nothing(model):
    made = agent("rloo", model, kl=0.0, learning_rate=1e-3, max_tokens=6, episodes=32, shuffle=True)
    result = hunch.train(made, [Bed() for _ in range(16)], steps=800, seed=0)
    assert np.mean([episode.episode_return for episode in result.episodes][-160:]) < 0.85


def after(name, model, **options):
    """The weights after three updates, and what was written on the way."""
    made = begun(name, model, streams=4, episodes=8, max_tokens=5, **options)
    rollout, texts = Rollout([Talk() for _ in range(4)], seed=1), []
    told = [{}]
    while made.learner.updates < 3:
        texts += (actions := made.act(rollout.states))
        made.observe(rollout.step(actions))
        told.append(made.learn())
    return texts, {name: weight.clone() for name, weight in made.lm.state_dict().items()}, told


def test_nlpo_that_allows_all_is_ppo_to_the_bit(model):
    texts, weights, _ = after("ppo-text", model)
    for refresh in (1, 2):
        others, same, _ = after("nlpo", model, top_p=1.0, refresh=refresh)
        assert others == texts
        assert all(torch.equal(same[name], weight) for name, weight in weights.items())
    narrow, other, told = after("nlpo", model, top_p=0.5, refresh=1)
    assert narrow != texts
    assert any(not torch.equal(other[name], weight) for name, weight in weights.items())
    assert min(line["kl"] for line in told if "kl" in line) > -1e-3  # that of the free distributions


def test_nlpo_allows_some_tokens():
    with pytest.raises(UsageError, match="top_p must be above 0"):
        methods.find("nlpo").agent_class(lm=WALKS, top_p=0.0)


@pytest.mark.parametrize("name", METHODS)
def test_the_ratio_begins_at_one(name, model):
    """What was recorded when the text was drawn is what the update computes before its first step."""
    made = begun(
        name, model, streams=4, episodes=10**6, max_tokens=5, **({"top_p": 0.7} if name == "nlpo" else {})
    )
    rollout = Rollout([Talk() for _ in range(4)], seed=1)
    for _ in range(9):
        made.observe(rollout.step(made.act(rollout.states)))
    steps = [step for own in made.kept.finished.values() for episode in own.values() for step in episode]
    assert len(steps) > 8
    states, drawn = [t.state for t, _ in steps], [decision for _, decision in steps]
    found = made.policy.evaluate(states, drawn)
    for row, mask, own in zip(found.logprobs, found.mask, drawn, strict=True):
        np.testing.assert_allclose(np.exp(row[mask].detach().numpy() - own.logprobs), 1.0, atol=1e-5)


def test_a_state_has_the_value_before_the_first_token_that_is_written_in_it(monkeypatch):
    """A chat template may begin a reply, as with a thought, where no option is scored."""
    from hunch.roles.policy.settings import TextPolicyConfig
    from hunch.roles.policy.text import TextPolicy

    policy = TextPolicy(lm.trainable("pocket?corpus=walks"), TextPolicyConfig(width=8), 0)
    tokens = policy.lm.model._tokens
    begun_reply = tokens("look")
    monkeypatch.setattr(
        policy.lm.model,
        "_tokens",
        lambda asked, scored=False: [*tokens(asked), *([] if scored else begun_reply)],
    )
    state = State("You are here.")
    written = policy.evaluate([state], [Decision("go north")], part="value")
    np.testing.assert_allclose(policy.values([state])[0], written.values[0, 0].item(), atol=1e-6)


def test_the_clip_of_grpo_acts_with_several_gradient_steps(model):
    """With one, the default, the ratio is 1, as the option's help says."""

    def trained(**options):
        made = begun(
            "grpo", model, streams=4, group=4, episodes=8, max_tokens=5, learning_rate=1e-2, **options
        )
        rollout = Rollout([Talk() for _ in range(4)], seed=1, group=4)
        while not made.learner.updates:
            made.observe(rollout.step(made.act(rollout.states)))
            made.learn()
        return {name: weight.clone() for name, weight in made.lm.state_dict().items()}

    for epochs, same in ((1, True), (4, False)):
        wide, narrow = (trained(epochs=epochs, clip=clip) for clip in (0.5, 0.001))
        assert all(torch.equal(narrow[name], weight) for name, weight in wide.items()) is same
    assert "the clip hardly acts" in meanings(methods.find("grpo").config_class)["clip"]


def test_settings_are_those_that_an_update_reads(model):
    """No setting of another algorithm is in a config, and those of the update reach its objective."""
    of_update = {
        "grpo": {"advantage", "unit", "gae", "value", "whiten", "width", "clip_value", "horizon", "gamma"},
        "rloo": {"unit", "gae", "value", "whiten", "width", "clip_value", "horizon", "gamma", "clip_high"},
        "ppo-text": {"advantage", "unit", "group", "whiten", "clip_high", "horizon", "listed"},
        "a2c-text": {"advantage", "epochs", "batch_size", "clip", "group"},
    }
    for name, absent in of_update.items():
        known = {entry.name for entry in fields(methods.find(name).config_class)}
        assert not known & absent, name
    changed = {"epochs": 2, "batch_size": 3, "clip": 0.1, "clip_high": 0.3, "entropy": 0.1, "kl": 0.2}
    changed |= {"kl_in": "reward", "kl_aim": 2.0, "micro": 5, "learning_rate": 0.1}
    usual = agent("grpo", model).objective()
    for name, value in changed.items():
        assert agent("grpo", model, **{name: value}).objective() == replace(usual, **{name: value})


def test_the_self_critical_answer_is_greedy(model):
    made = begun("rloo", model, streams=6, group=3, advantage="self_critical", max_tokens=5)
    states = [replace(Rollout([Talk()], seed=1).states[0], stream=stream) for stream in range(6)]
    for _ in range(3):
        texts = made.act(states)
        assert texts[0] == texts[3] == made.policy.sample(states[:1], [np.random.default_rng(0)], 0.0)[0].text


def test_a_player_writes_at_its_temperature(model):
    states = Rollout([Talk() for _ in range(3)], seed=1).states
    greedy = begun("grpo", model, temperature=0.0)
    assert greedy.player(0).act(states) == greedy.player(1).act(states)
    warm = begun("grpo", model, temperature=2.0)
    assert len({tuple(warm.player(seed).act(states)) for seed in range(8)}) > 4


def test_texts_that_are_not_to_be_forgotten_stay_likely(model, tmp_path):
    file = tmp_path / "texts.jsonl"
    rows = [{"prompt": SIGHTS[0], "completion": "drop"}, {"text": "turn left and go forward"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = []
    for options in ({}, {"ptx": 5.0, "texts": str(file)}):
        made = agent("grpo", model, group=4, kl=0.0, learning_rate=1e-3, episodes=8, max_tokens=5, **options)
        hunch.train(made, [Bed() for _ in range(4)], steps=80, seed=0)
        with torch.no_grad():
            kept.append(float(made.policy.likelihood([SIGHTS[0]], ["drop"])))
    assert kept[1] > kept[0] + 1


def test_given_texts_beyond_the_context_are_refused_before_the_training(tmp_path):
    file = tmp_path / "texts.jsonl"
    rows = [
        {"prompt": SIGHTS[0], "completion": "drop"},
        {"prompt": SIGHTS[1], "completion": "go forward " * 300},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="A prompt with its text has"):
        begun("grpo", lm.trainable(WALKS), 4, group=4, max_tokens=5, ptx=1.0, texts=str(file))


# ---- how many texts are computed at once ------------------------------------------------------------------


def learnt_beside_rewards(micro, file):
    """Return the loss of given texts, and the model, after an update of GRPO with ``ptx``."""
    rows = [{"prompt": SIGHTS[i % 3], "completion": move} for i, move in enumerate(MOVES)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = begun(
        "grpo",
        lm.trainable(WALKS),
        4,
        group=4,
        episodes=4,
        max_tokens=5,
        ptx=1.0,
        texts=str(file),
        micro=micro,
    )
    rollout = Rollout([Bed() for _ in range(4)], seed=1, group=4)
    made.observe(rollout.step(made.act(rollout.states)))
    return made.learn()["extra_loss"], made.lm


def learnt_from_demonstrations(micro, file):
    """Return the loss, and the model, after an update of RLHF on demonstrations."""
    method = methods.find("rlhf")
    made = method.build(method.config_class(lm=WALKS, demonstrations=2, micro=micro), {})
    examples_of_world = tuple((sight, MOVES) for sight in SIGHTS)
    made.begin(World(streams=4, steps=10_000, examples=examples_of_world), 0)
    return made.learn()["loss"], made.agent.lm


def learnt_from_hits(micro, file):
    """Return the loss, and the model, after two updates of red teaming on hits."""
    made = begun("red-team", lm.trainable(WALKS), stage="supervised", tries=6, updates=2, micro=micro)
    states = [State(sight, stream=stream) for stream, sight in enumerate(SIGHTS * 2)]
    made.observe(
        [Transition(s, move, 1.0, s, True, False) for s, move in zip(states, MOVES * 2, strict=False)]
    )
    return made.learn()["loss"], made.lm


def learnt_as_recorded(name, micro, file, **options):
    """Return the loss, and the model, after an update of a method on recorded texts, four to each prompt."""
    episodes = []
    for i, sight in enumerate(SIGHTS):
        for move in MOVES:
            t = Transition(State(sight), move, float(move == "drop"), State(sight), True, False)
            episodes.append(Episode((t,), group=i))
    made = agent(name, lm.trainable(WALKS), micro=micro, **options)
    made.begin(World(streams=1, steps=100, data=tuple(episodes)), 0)
    return made.learn()["loss"], made.lm


def learnt_from_own_texts(micro, file):
    """Return the loss, and the model, after a round of ReST with one update."""
    options = {"episodes": 4, "max_tokens": 5, "updates": 1, "least": 0.0}
    made = begun("rest", lm.trainable(WALKS), 4, micro=micro, **options)
    rollout = Rollout([Bed() for _ in range(4)], seed=1)
    made.observe(rollout.step(made.act(rollout.states)))
    return made.learn()["loss"], made.lm


def learnt_from_a_teacher(micro, file):
    """Return the loss, and the model, after an update of context distillation on drawn tokens."""
    options = {"context": "turn left", "loss": "likelihood", "max_tokens": 5}
    made = begun("context-distillation", lm.trainable(WALKS), 32, micro=micro, **options)
    made.act([State(SIGHTS[i % 3], stream=i) for i in range(32)])
    return made.learn()["loss"], made.lm


LEARNT = (
    learnt_beside_rewards,
    learnt_from_demonstrations,
    learnt_from_hits,
    learnt_from_own_texts,
    learnt_from_a_teacher,
    pytest.param(partial(learnt_as_recorded, "sft"), id="sft"),
    pytest.param(partial(learnt_as_recorded, "offline-rlhf", loss="likelihood"), id="likelihood"),
    pytest.param(partial(learnt_as_recorded, "offline-rlhf", loss="kto"), id="kto"),
)


@pytest.mark.usefixtures("plain_descent")
@pytest.mark.parametrize("learnt", LEARNT)
def test_given_texts_are_learnt_a_few_at_once_with_the_same_result(learnt, texts_at_once, tmp_path):
    loss, model = learnt(64, tmp_path / "texts.jsonl")
    assert max(texts_at_once) >= 32
    texts_at_once.clear()
    loss_in_passes, same = learnt(4, tmp_path / "texts.jsonl")
    assert max(texts_at_once) == 4
    assert loss_in_passes == pytest.approx(loss, abs=1e-6)
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(same.state_dict()[name], weight, atol=1e-6, rtol=0)


@pytest.mark.parametrize("learnt", LEARNT)
def test_given_texts_that_do_not_fit_are_learnt_half_as_many_at_once(learnt, little_memory, tmp_path):
    loss, _ = learnt(64, tmp_path / "texts.jsonl")
    little_memory(8)
    with pytest.warns(HunchWarning, match="From here on 8 are computed at once"):
        in_passes, _ = learnt(64, tmp_path / "texts.jsonl")
    assert in_passes == pytest.approx(loss, abs=1e-6)


def test_pairs_that_do_not_fit_are_learnt_half_as_many_at_once(little_memory, tmp_path):
    loss, _ = learnt_as_recorded("offline-rlhf", 64, tmp_path, loss="dpo")
    little_memory(8)
    with pytest.warns(HunchWarning, match="From here on 4 are computed at once"):  # of two texts each
        in_passes, _ = learnt_as_recorded("offline-rlhf", 64, tmp_path, loss="dpo")
    assert in_passes == pytest.approx(loss, abs=1e-6)


class Length(RewardSource):
    """A reward source: short texts."""

    evidence = None

    def rewards(self, transitions):
        return [-float(len(t.action)) for t in transitions]


class Nan(Length):
    def rewards(self, transitions):
        return [float("nan") for _ in transitions]


def test_a_reward_of_ones_own_replaces_that_of_the_environment(prompts):
    options = {"group": 4, "kl": 0.0, "episodes": 16, "max_tokens": 6, "learning_rate": 1e-3}
    method, lines = methods.find("grpo"), []
    made = method.build(method.config_class(lm=WALKS, reward=f"{__name__}:Length", **options), {})
    envs = [hunch.make("hunch/Prompts-v0", file=str(prompts)) for _ in range(4)]
    result = hunch.train(made, envs, steps=320, watch=hunch.Watch(report=lines.append))
    lengths = [len(episode.actions[0]) for episode in result.episodes]
    assert np.mean(lengths[-60:]) < np.mean(lengths[:60])
    assert any("intrinsic" in line for line in lines)


def test_a_large_model_that_moves_far_in_one_update_is_named_with_the_number(prompts, monkeypatch):
    """Small models that learn to write from nothing move as far without a word."""
    options = {"group": 4, "kl": 0.0, "episodes": 16, "max_tokens": 6, "learning_rate": 0.02}
    method = methods.find("grpo")

    def train(spec):
        made = method.build(method.config_class(lm=spec, reward=f"{__name__}:Length", **options), {})
        envs = [hunch.make("hunch/Prompts-v0", file=str(prompts)) for _ in range(4)]
        hunch.train(made, envs, steps=16)

    train(WALKS)
    monkeypatch.setattr("hunch.lm.training.model.LARGE", 1_000)
    number = r"Update 1 moved the model by [\d.]+ nats per token .* is 0\.02"
    with pytest.raises(HunchError, match=number + ", or train only adapters"):
        train(f"{WALKS}&train=all")


# ---- one's own prompts ------------------------------------------------------------------------------------


def test_prompts_of_ones_own_keep_the_contract(tmp_path):
    file = tmp_path / "p.jsonl"
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
    rows = [
        {"prompt": said, "answer": "4", "note": "sum"},
        {"prompt": "2 + 3 =", "answer": 5},
        {"prompt": "go"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = hunch.make("hunch/Prompts-v0", file=str(file))
    hunch.envs.check(env)
    observation, info = hunch.make("hunch/Prompts-v0", file=str(file), count=1).reset(seed=0)
    assert observation == "system: Be brief.\nuser: 2 + 2?"
    assert info["raw"] == {"messages": [("system", "Be brief."), ("user", "2 + 2?")]}
    assert "4" not in str(info["raw"]["messages"]) + observation.replace("2 + 2?", "")
    one = hunch.make("hunch/Prompts-v0", file=str(file), first=1, count=1)
    one.reset(seed=0)
    _, reward, terminated, _, info = one.step(" 5\n")
    assert (reward, terminated, info["success"]) == (1.0, True, True)
    assert info["raw"]["answer"] == 5


def test_conversations_are_learnt_as_the_policy_reads_them(tmp_path):
    """Demonstrations, recorded answers and compared ones have the prompt of the environment's state."""
    file = tmp_path / "p.jsonl"
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
    rows = [{"prompt": said, "completion": "4", "chosen": "4", "rejected": "Four, I think."}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = hunch.make("hunch/Prompts-v0", file=str(file))
    acting = transcript(Rollout([env]).states[0])
    assert acting == [lm.Message("system", "Be brief."), lm.Message("user", "2 + 2?")]

    demonstrated = examples(world_of(None, env, 0, ()))
    recorded = examples(World(data=as_episodes(read_data(file, "hunch/Prompts-v0", {}))))
    again = collect("hunch/Prompts-v0", {"file": str(file)}, parse_mix("examples"), 1)
    compared = read_pairs(str(file))
    for learnt in (demonstrated, recorded, examples(World(data=as_episodes(again))), compared):
        assert len(learnt) > 0
        assert all(transcript(each.state) == acting for each in learnt)


def test_demonstrations_are_those_of_the_lines_in_use(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"p{i}", "completion": f"c{i}"}) + "\n" for i in range(6)))
    env = hunch.make("hunch/Prompts-v0", file=str(file), first=1, count=2)
    assert env.unwrapped.examples == (("p1", ("c1",)), ("p2", ("c2",)))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "Line 2 of .* is not JSON"),
        pytest.param("[" * 100_000, "Line 2 of .* is nested too deep", id="deep"),
        ('{"question": "?"}', "Line 2 of .* has no prompt"),
        ('{"prompt": ""}', "Line 2 of .* needs a prompt"),
        ('{"prompt": [{"role": "user"}]}', "Line 2 of .* needs a prompt"),
        ('{"prompt": [{"role": "robot", "content": "x"}]}', "Line 2 of .* needs a prompt"),
        ('{"prompt": [{"role": ["user"], "content": "x"}]}', "Line 2 of .* needs a prompt"),
        ("[1]", "Line 2 of .* has no prompt"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, said):
    file = tmp_path / "p.jsonl"
    file.write_text(f'{{"prompt": "go"}}\n{line}\n')
    with pytest.raises(UsageError, match=said):
        hunch.make("hunch/Prompts-v0", file=str(file))


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "p", "completion": "c", "label": "good"},
        {"prompt": "p", "completion": "c", "reward": None},
        {"prompt": "p", "question": "q", "right": "yes"},
        {"prompt": "p", "question": "q", "right": float("nan")},
    ],
)
def test_a_reward_that_is_no_number_is_named_with_its_line(tmp_path, row):
    file = tmp_path / "answers.jsonl"
    sound = {name: 1 if name in ("label", "reward", "right") else value for name, value in row.items()}
    file.write_text(json.dumps(sound) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(UsageError, match=r"Line 2 of .* needs a number as"):
        read_data(file, "hunch/Prompts-v0", {})


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "p", "completion": "c", "label": "good"},
        {"prompt": "p", "chosen": "c", "rejected": 3},
        {"prompt": "p", "question": "q", "right": "yes"},
    ],
)
def test_empty_lines_of_a_file_of_answers_count_in_messages(tmp_path, row):
    file = tmp_path / "answers.jsonl"
    good = {name: {"good": 1, 3: "d", "yes": 1}.get(value, value) for name, value in row.items()}
    file.write_text("\n" + json.dumps(good) + "\n\n" + json.dumps(row) + "\n")
    with pytest.raises(UsageError, match=r"Line 4 of .* needs"):
        read_data(file, "hunch/Prompts-v0", {})


@pytest.mark.parametrize(
    "rows",
    [
        [{"prompt": "p", "chosen": "good", "rejected": "bad"}],
        [
            {"prompt": "p", "completion": "good", "label": True},
            {"prompt": "p", "completion": "bad", "label": 0},
        ],
    ],
)
def test_what_a_file_calls_bad_is_not_imitated(rows, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = RunConfig(method="sft", env="hunch/Prompts-v0", data=str(file))
    assert [own.actions for own in recorded(run).episodes] == [("good",)]
    compared = recorded(replace(run, method="offline-rlhf"))
    assert [own.actions for own in compared.episodes] == [("good",), ("bad",)]


def test_answers_with_rewards_are_all_imitated_and_without_a_good_one_none_can_be(tmp_path):
    file = tmp_path / "answers.jsonl"
    run = RunConfig(method="sft", env="hunch/Prompts-v0", data=str(file))
    file.write_text(json.dumps({"prompt": "p", "completion": "c", "reward": 0}) + "\n")
    assert len(recorded(run).episodes) == 1
    file.write_text(json.dumps({"prompt": "p", "completion": "c", "label": False}) + "\n")
    with pytest.raises(UsageError, match="there is nothing to imitate"):
        recorded(run)


SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Where is the mug?"}
ANSWERED = {"role": "assistant", "content": "In the sink."}
WRONG = {"role": "assistant", "content": "I do not know."}


@pytest.mark.parametrize(
    ("rows", "answers"),
    [
        ([{"messages": [SYSTEM, ASKED, ANSWERED]}], 1),
        ([{"prompt": [SYSTEM, ASKED], "completion": [ANSWERED]}], 1),
        ([{"prompt": [SYSTEM, ASKED], "chosen": [ANSWERED], "rejected": [WRONG]}], 2),
        ([{"chosen": [SYSTEM, ASKED, ANSWERED], "rejected": [SYSTEM, ASKED, WRONG]}], 2),
        # As in UltraFeedback: the prompt as a text, and whole conversations.
        (
            [
                {
                    "prompt": ASKED["content"],
                    "chosen": [SYSTEM, ASKED, ANSWERED],
                    "rejected": [SYSTEM, ASKED, WRONG],
                }
            ],
            2,
        ),
        ([{"prompt": ASKED["content"], "messages": [SYSTEM, ASKED, ANSWERED]}], 1),
        ([{"prompt": [SYSTEM], "completion": [ASKED, ANSWERED]}], 1),
        ([{"prompt": [SYSTEM, ASKED], "completion": [ASKED, ANSWERED]}], 1),
        (
            [
                {
                    "prompt": [SYSTEM, ASKED],
                    "chosen": [SYSTEM, ASKED, ANSWERED],
                    "rejected": [SYSTEM, ASKED, WRONG],
                }
            ],
            2,
        ),
    ],
    ids=[
        "messages",
        "completion",
        "preferences",
        "whole conversations",
        "with the prompt as a text",
        "messages beside the prompt",
        "after the prompt",
        "with its end twice",
        "with the prompt twice",
    ],
)
def test_conversations_are_read_as_trl_reads_them(rows, answers, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    episodes = read_data(file, "hunch/Prompts-v0", {}).episodes
    texts = (ANSWERED["content"], WRONG["content"])[:answers]
    assert [own.actions for own in episodes] == [(text,) for text in texts]
    said = [(SYSTEM["role"], SYSTEM["content"]), (ASKED["role"], ASKED["content"])]
    assert all(own.raw[0] == {"messages": said} for own in episodes)
    assert len({own.observations for own in episodes}) == 1
    if answers == 2:
        [pair] = read_pairs(str(file))
        assert (pair.state.raw, pair.first, pair.second) == ({"messages": said}, *texts)


def test_answers_to_compare_in_a_file_of_prompts_may_have_any_form(tmp_path):
    """They are other columns there, for a reward source."""
    again = {"role": "user", "content": "And the cup?"}
    parted = {"chosen": [ASKED, ANSWERED, again, ANSWERED], "rejected": [ASKED, WRONG, again, WRONG]}
    file = tmp_path / "prompts.jsonl"
    whole = {"chosen": [ASKED, ANSWERED], "rejected": [ASKED, WRONG]}
    for columns in (parted, {"chosen": ["a", "b"]}, whole):
        row = {"prompt": "p", **columns}
        file.write_text(json.dumps(row) + "\n")
        assert hunch.envs.make("hunch/Prompts-v0", file=str(file)).unwrapped.rows == [row]
        with pytest.raises(UsageError, match="Line 1"):
            read_data(file, "hunch/Prompts-v0", {})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"chosen": "a", "rejected": "b"}, "Line 1 of .* needs a prompt"),
        ({"instruction": "a", "output": "b"}, "needs a prompt in each line"),
        ({"messages": [ASKED]}, "Line 1 of .* needs .* in messages, the last one of the assistant"),
        ({"messages": []}, "needs messages with role and content in messages"),
        ({"prompt": "p", "chosen": [ANSWERED], "rejected": [ASKED]}, "needs messages .* in rejected"),
        ({"chosen": [ASKED, ANSWERED], "rejected": [SYSTEM, WRONG]}, "answer the same messages"),
        (
            {"prompt": "And the cup?", "completion": [ASKED, ANSWERED]},
            "a prompt that is none of the messages",
        ),
        ([{"prompt": "p", "completion": "c"}], "Line 1 of .* is not an episode: it is no JSON object"),
    ],
)
def test_a_file_in_another_form_of_answers_is_told_what_it_lacks(line, said, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(UsageError, match=said):
        read_data(file, "hunch/Prompts-v0", {})


def test_an_answer_named_like_a_column_is_an_answer(tmp_path):
    file = tmp_path / "data.jsonl"
    sides = ("right", "left")
    answers = [{"prompt": "Left or right?", "completion": text, "label": text == "right"} for text in sides]
    file.write_text("".join(json.dumps(row) + "\n" for row in answers))
    data = read_data(file, "hunch/Prompts-v0", {})
    assert [(own.actions, own.rewards) for own in data.episodes] == [
        (("right",), (1.0,)),
        (("left",), (0.0,)),
    ]
    episode = {"observations": ["a", "b"], "admissible": [["prompt"], None], "actions": ["prompt"]}
    episode |= {"rewards": [1.0], "terminated": True, "truncated": False}
    file.write_text(json.dumps(episode) + "\n")
    assert read_data(file, "hunch/Prompts-v0", {}).episodes[0].actions == ("prompt",)


# ---- bad input --------------------------------------------------------------------------------------------

NOWHERE = "hf:/no/such/folder"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grpo", "--group", "4", "--envs", "6"], "must be a multiple of it, not 6"),
        (["rloo", "--group", "1"], "set group to at least 2"),
        (["grpo", "--lm", "openai:gpt-5"], "openai:gpt-5 has no weights to train here"),
        (["grpo", "--reference", "none"], "no reference"),
        (["grpo", "--reference", "none", "--kl", "0", "--stop-kl", "9"], "set stop_kl to 0"),
        (["grpo", "--reference", "none", "--kl", "0", "--kl-aim", "3"], "set kl_aim to 0"),
        (["grpo", "--reference", "none", "--kl-aim", "3"], "set kl and kl_aim to 0"),
        (["grpo", "--kl", "0", "--kl-aim", "3"], "kl_aim adapts the weight kl"),
        (["rlhf", "--kl", "0", "--kl-aim", "3"], "kl_aim adapts the weight kl"),
        (["constitutional", "--kl", "0", "--kl-aim", "3"], "kl_aim adapts the weight kl"),
        (["grpo", "--ptx", "1"], "give both, or neither"),
        (["grpo", "--reward", "nothing:There"], "cannot be imported"),
        (["grpo", "--reward", "json"], "as module:Class"),
        (["ppo-text", "--group", "4"], "group"),
    ],
)
def test_what_cannot_be_learnt_from_is_said_before_a_model_is_loaded(arguments, said, prompts, capsys):
    env = [
        "--env",
        "hunch/Prompts-v0",
        "--env.file",
        str(prompts),
        "--steps",
        "8",
        "--out",
        str(prompts.parent / "r"),
    ]
    lm_given = [] if "--lm" in arguments else ["--lm", NOWHERE]
    with pytest.raises(SystemExit) as end:
        main(["run", *arguments, *lm_given, *env])
    error = capsys.readouterr().err
    assert end.value.code == 2, error
    assert said in " ".join(error.split())
    assert "Traceback" not in error


@pytest.mark.parametrize(("steps", "is_said"), [(8, True), (16, False)])
def test_a_run_that_is_too_short_for_an_update_says_so(steps, is_said, tmp_path, capsys):
    lm_given = ["--lm", "scratch?width=16&layers=1&heads=2&vocabulary=64"]
    settings = ["--group", "2", "--envs", "4", "--episodes", "16", "--max-tokens", "4"]
    out = ["--steps", str(steps), "--out", str(tmp_path / "short")]
    main(["run", "grpo", "--env", "hunch/Constraints-v0", *lm_given, *settings, *out])
    after, before = (" ".join(stream.split()) for stream in capsys.readouterr())
    sentence = "No update was made, so the model is as it was: 8 episodes ended, and an update takes 16."
    assert (sentence in after) == is_said
    # It is also said at the start, before minutes are spent on texts from which nothing is learnt.
    early = (
        "This run makes no update, so its agent learns nothing: the first one takes 16 episodes "
        "(--episodes), and the run ends at step 8 (--steps)."
    )
    assert (early in before) == is_said


def test_sft_that_destroys_a_model_says_so_once(tmp_path, recwarn):
    file = tmp_path / "p.jsonl"
    lines = [{"prompt": f"say {word}", "completion": f"{word} {word}"} for word in "abcdefgh"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = {"lm": "scratch?width=16&layers=1&heads=2&vocabulary=64", "max_tokens": 4, "batch_size": 8}
    prompts = hunch.make("hunch/Prompts-v0", file=str(file))
    hunch.train("sft", prompts, steps=4, learning_rate=1e-3, **given)
    assert not [warning for warning in recwarn if "forgotten" in str(warning.message)]
    with pytest.warns(HunchWarning, match=r"even guesses among .* forgotten how to write") as said:
        hunch.train("sft", prompts, steps=10, learning_rate=1.0, **given)
    assert len([warning for warning in said if "forgotten" in str(warning.message)]) == 1


def test_texts_that_a_model_never_knew_are_not_forgotten(tmp_path, recwarn):
    """To this model, which says something to everything, silence is less likely than even guesses are."""
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps({"prompt": "Name a fruit.", "completion": ""}) + "\n")
    prompts = hunch.make("hunch/Prompts-v0", file=str(file))
    given = {"lm": "pocket?corpus=walks", "max_tokens": 4, "batch_size": 2, "learning_rate": 1e-9}
    hunch.train("sft", prompts, steps=3, **given)
    assert not [warning for warning in recwarn if "forgotten" in str(warning.message)]


def test_red_team_learns_before_an_update_of_its_last_stage(model):
    assert agent("grpo", model, episodes=32).first_update == 32
    assert agent("red-team", model, stage="supervised", tries=6, episodes=32).first_update == 0


def test_free_text_and_listed_actions_are_told_apart():
    with pytest.raises(UsageError, match=r"ppo-text writes any text, and hunch/FrozenLake-v0 takes listed"):
        hunch.train("ppo-text", "hunch/FrozenLake-v0", steps=5, lm=NOWHERE)
    with pytest.raises(UsageError, match=r"grpo writes or chooses texts, and .* takes programs"):
        hunch.train("grpo", "hunch/Heuristic-BinPacking-v0", steps=5, lm=NOWHERE)


def test_a_reward_that_is_nan_names_the_text(model):
    class Broken(Bed):
        def _move(self, action):
            return super()._move(action)._replace(reward=float("nan" if "turn" in action else 0))

    made = agent("grpo", model, group=2, max_tokens=4)
    with pytest.raises(UsageError, match=r"The reward of '.*turn.*' is nan"):
        hunch.train(made, [Broken(), Broken()], steps=400)
    wrapped = hunch.roles.Rewarded(made, Nan(), extrinsic=0.0)
    with pytest.raises(UsageError, match=r"Nan .* nan for '.*'"):
        hunch.train(wrapped, [Bed(), Bed()], steps=4)


def test_equal_returns_are_reported_and_teach_nothing(model):
    class Same(Bed):
        def _move(self, action):
            return super()._move(action)._replace(reward=0.3)

    made = agent("grpo", model, group=4, kl=0.0, episodes=8, max_tokens=4)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    lines = []
    model.restart()
    with pytest.warns(HunchWarning, match="had equal rewards"):
        hunch.train(made, [Same() for _ in range(4)], steps=80, watch=hunch.Watch(report=lines.append))
    assert [line["flat_groups"] for line in lines if "flat_groups" in line] == [1.0] * 10
    model_now = made.lm.state_dict()
    assert all(torch.equal(model_now[name], model._first[name]) for name in before)


def test_a_run_whose_groups_were_flat_at_its_end_says_so(model, tmp_path):
    """Also if the last updates were made before it was resumed: 76 steps are no update more than 72."""

    class Same(Bed):
        def _move(self, action):
            return super()._move(action)._replace(reward=0.3)

    sentence = "In the last quarter of the steps 1.00 of the groups were flat: groups whose answers all score"
    options = {"group": 4, "kl": 0.0, "episodes": 8, "max_tokens": 4}

    def said_of(bed, steps, out=None):
        said = []
        beds = [bed() for _ in range(4)]
        hunch.train(agent("grpo", model, **options), beds, steps, out=out, watch=hunch.Watch(say=said.append))
        return [text for text in said if text.startswith(sentence)]

    assert len(said_of(Same, 72, tmp_path)) == 1
    assert len(said_of(Same, 76, tmp_path)) == 1
    assert not said_of(Same, 76, tmp_path), "it is complete"
    assert not said_of(Bed, 16)


def test_flat_groups_are_dropped_and_counted(model):
    """Groups of odd number pay their texts alike; without a divergence, an update is that without them."""

    class Half(Bed):
        def _begin(self, options):
            self.pays = self.episode % 2 == 0
            return super()._begin(options)

        def _move(self, action):
            outcome = super()._move(action)
            return outcome if self.pays else outcome._replace(reward=0.3)

    lines = []
    made = agent("grpo", model, group=4, episodes=8, max_tokens=4, drop_flat=True)
    hunch.train(made, [Half() for _ in range(4)], steps=64, watch=hunch.Watch(report=lines.append))
    shares = [line["flat_groups"] for line in lines if "flat_groups" in line]
    assert len(shares) == 8
    assert all(share >= 0.5 for share in shares)
    assert made.learner.updates == sum(share < 1 for share in shares) > 0

    class Same(Bed):
        def _move(self, action):
            return super()._move(action)._replace(reward=0.3)

    with pytest.warns(HunchWarning, match="had equal rewards"):
        hunch.train(made, [Same() for _ in range(4)], steps=80)
    assert made.learner.updates == 0
    # A policy that says always the same has flat groups alone: it is stopped without an update.
    made = agent("grpo", model, group=4, episodes=8, max_tokens=4, drop_flat=True, stop_entropy=100.0)
    with pytest.raises(StoppedError, match=r"Before update 1 .* less than stop_entropy, 100"):
        hunch.train(made, [Same() for _ in range(4)], steps=8)


def test_a_text_that_was_cut_is_learnt_without_an_end(model, tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text("".join(json.dumps({"prompt": own, "answer": "drop"}) + "\n" for own in (*SIGHTS, "x")))
    mix = parse_mix(f"write:{WALKS}=1")
    recorded = collect("hunch/Prompts-v0", {"file": str(file)}, mix, 24, group=4, max_tokens=2)
    cut = [bool(own.unfinished) for own in recorded.episodes]
    assert 0 < sum(cut) < len(cut)
    dataset.save(recorded, tmp_path / "data")
    read = dataset.load(tmp_path / "data")
    assert [own.unfinished for own in read.episodes] == [own.unfinished for own in recorded.episodes]
    made = methods.find("offline-rlhf").agent_class(lm=model, loss="likelihood")
    made.begin(World(streams=1, steps=4, data=tuple(as_episodes(read))), 0)
    whole = model.as_written(["p"] * len(cut), [own.actions[0] for own in read.episodes])
    ends = {written.tokens[-1] for written in whole}
    for decision, is_cut in zip(made.decisions, cut, strict=True):
        assert decision.finished != is_cut
        assert (decision.tokens[-1] in ends) != is_cut


def test_a_text_that_a_trained_agent_wrote_is_recorded_as_cut(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text("".join(json.dumps({"prompt": own, "answer": "drop"}) + "\n" for own in SIGHTS))
    options = GRPOConfig(max_tokens=2, episodes=4, group=4)
    where = {"file": str(file)}
    run = RunConfig(method="grpo", env="hunch/Prompts-v0", env_options=where, lm=WALKS, envs=4, steps=4)
    run = replace(run, options=options)
    execute(run, tmp_path / "run")
    recorded = collect("hunch/Prompts-v0", where, parse_mix(f"agent:{tmp_path / 'run'}=1"), 24)
    cut = [bool(own.unfinished) for own in recorded.episodes]
    assert 0 < sum(cut) < len(cut)
    model = lm.trainable(WALKS)
    for episode, is_cut in zip(recorded.episodes, cut, strict=True):
        [written] = model.as_written([episode.observations[0]], [episode.actions[0]])
        assert (len(written.tokens) > 2) is is_cut  # with an end it would have been longer than that


def test_a_run_that_drifts_is_stopped(model):
    made = agent("grpo", model, group=4, episodes=8, max_tokens=4, stop_kl=1e-4, learning_rate=1e-2)
    with pytest.raises(HunchError, match=r"KL divergence from the reference is .* more than stop_kl"):
        hunch.train(made, [Bed() for _ in range(4)], steps=80)
    made = agent("grpo", model, group=4, episodes=8, max_tokens=4, stop_entropy=100.0)
    with pytest.raises(HunchError, match="less than stop_entropy, 100"):
        hunch.train(made, [Bed() for _ in range(4)], steps=80)


def test_a_run_that_drifts_leaves_the_model_as_it_was_before_the_update(prompts):
    folder = prompts.parent / "stopped"
    envs = [hunch.make("hunch/Prompts-v0", file=str(prompts)) for _ in range(2)]
    options = {"group": 2, "episodes": 2, "max_tokens": 4, "stop_entropy": 100.0}
    with pytest.raises(StoppedError, match=r"Before update 1 .* keeps the model"):
        hunch.train("grpo", envs, 8, lm=WALKS, out=folder, **options)
    kept = hunch.load(folder).agent
    assert kept.learner.updates == 0
    saved = lm.trainable(f"hf:{folder}").state_dict()
    assert all(torch.equal(weight, saved[name]) for name, weight in kept.lm.state_dict().items())


def test_a_text_that_does_not_fit_is_refused(model, tmp_path):
    """Also a prompt of a file that would come late in the run."""
    with pytest.raises(UsageError, match="max_tokens=100000 do not fit into the"):
        agent("grpo", model, max_tokens=100_000)
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps({"prompt": "go"}) + "\n" + json.dumps({"prompt": "go left " * 600}) + "\n")
    made = agent("ppo-text", model)
    with pytest.raises(UsageError, match="The prompt with max_tokens"):
        made.begin(world_of(None, hunch.make("hunch/Prompts-v0", file=str(file)), 8, ()), 0)
    made = agent("grpo", model, max_tokens=model.model.context - 5)
    with pytest.raises(UsageError, match="The prompt with max_tokens"):
        hunch.train(made, [Bed() for _ in range(8)], steps=8)
