"""Policy gradients: losses and advantages written out in NumPy, sums of gradients, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hunch.core import HunchError, State, Transition, UsageError

torch = pytest.importorskip("torch")

from tests.rl.texts import EPISODES, GROUPS, START, Letters, answer  # noqa: E402

from hunch.rl.advantages import ADVANTAGES, GROUPED, Actions, anchored, standardised  # noqa: E402
from hunch.rl.listed import ListedPolicy  # noqa: E402
from hunch.rl.policy import Decision, Step  # noqa: E402
from hunch.rl.policy_gradient import PRESETS, PolicyGradient  # noqa: E402
from hunch.rl.preference_losses import dpo, kto, log_ratios  # noqa: E402
from hunch.rl.rollout import StoppedError  # noqa: E402
from hunch.rl.settings import UpdateConfig  # noqa: E402


class Table(ListedPolicy):
    """A real policy: a score for each action text, and a value for each observation."""

    def __init__(self) -> None:
        self.scores = torch.nn.Parameter(torch.zeros(4))
        self.worth = torch.nn.Parameter(torch.arange(6, dtype=torch.float32) / 10)

    def logprobs(self, states):
        rows = [self.scores[[int(a) for a in s.options]].log_softmax(0) for s in states]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def state_values(self, states):
        return self.worth[[int(s.observation) for s in states]]

    def parameters(self):
        return {"policy": [self.scores], "value": [self.worth]}

    def state_dict(self):
        return {"scores": self.scores.detach(), "worth": self.worth.detach()}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.scores.copy_(state["scores"])
            self.worth.copy_(state["worth"])


def step(here, action, reward, there, *, end="", actions=("0", "1", "2")):
    before, after = State(str(here), actions=actions), State(str(there), actions=actions)
    made = Transition(before, action, reward, after, end == "terminated", end == "truncated")
    return Step(made, Decision(action))


STREAM = [
    step(0, "0", 1.0, 1),
    step(1, "1", 0.0, 2, end="truncated"),
    step(3, "2", 2.0, 4, end="terminated"),
    step(0, "0", 0.5, 5),
]


def test_advantages_are_the_sums_of_the_paper():
    """A truncated episode and the end of a segment go on with the value of the next state."""
    c = UpdateConfig(gamma=0.9, gae=0.8)
    found = PolicyGradient(Table(), c).collect([STREAM, STREAM[2:3]])
    v = np.arange(6) / 10
    d = [1 + 0.9 * v[1] - v[0], 0.9 * v[2] - v[1], 2 - v[3], 0.5 + 0.9 * v[5] - v[0]]
    wanted = [d[0] + 0.72 * d[1], d[1], d[2], d[3], d[2]]
    np.testing.assert_allclose(found.advantages[:, 0].numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(found.returns[:, 0].numpy(), np.array(wanted) + v[[0, 1, 3, 0, 3]], rtol=1e-5)
    assert found.logprobs.numpy() == pytest.approx(-np.log(3))


def one_update(config, prior=None):
    learner = PolicyGradient(Table(), config)
    learner.policy.prior = prior
    told = learner.update([STREAM, STREAM], np.random.default_rng(0))
    return learner, told


def test_a_batch_is_the_sum_of_its_parts():
    whole, _ = one_update(UpdateConfig(micro=8, batch_size=8))
    parts, _ = one_update(UpdateConfig(micro=3, batch_size=8))
    torch.testing.assert_close(whole.policy.scores, parts.policy.scores)
    torch.testing.assert_close(whole.policy.worth, parts.policy.worth)


def test_actions_that_pay_become_likelier_among_those_that_there_are():
    """Action 3 is admissible in a longer list alone: padding of the shorter ones has no part in it."""
    stream = [
        step(0, "0", 1.0, 1, end="terminated"),
        step(0, "1", -1.0, 1, end="terminated"),
        step(0, "3", -1.0, 1, end="terminated", actions=("0", "1", "2", "3")),
    ]
    learner = PolicyGradient(Table(), UpdateConfig(learning_rate=0.1))
    for _ in range(5):
        told = learner.update([stream], np.random.default_rng(0))
    assert all(np.isfinite(list(told.values())))
    scores = learner.policy.scores.detach()
    assert scores[0] > scores[1]
    assert scores[0] > scores[3]


@pytest.mark.parametrize(("confidence", "chance"), [(0.0, 1.0), (1.0, 0.7)])
def test_with_confidence_a_policy_chooses_as_often_as_it_is_right(confidence, chance):
    """Answer 0 is right for seven questions in ten that look alike, answer 1 for the others."""
    policy = Table()
    config = replace(
        PRESETS["rloo"], confidence=confidence, learning_rate=0.05, kl=0.0, batch_size=0, max_norm=100.0
    )
    learner = PolicyGradient(policy, config)
    rng = np.random.default_rng(0)
    chances = []
    for update in range(120):
        with torch.no_grad():
            probs = policy.scores[:2].softmax(0).double().numpy()
        if update >= 80:
            chances.append(probs[0])
        episodes = []
        for _ in range(20):  # questions, of which each has eight answers
            right = "0" if rng.random() < 0.7 else "1"
            for answer_given in rng.choice(["0", "1"], size=8, p=probs / probs.sum()):
                reward = float(answer_given == right)
                episodes.append([step(0, answer_given, reward, 1, end="terminated", actions=("0", "1"))])
        learner.update(episodes, rng, groups=np.repeat(np.arange(20), 8).tolist())
    assert np.mean(chances) == pytest.approx(chance, abs=0.06)


def test_a_prior_pulls_and_a_target_ends_the_update():
    likes = torch.tensor([0.1, 0.1, 0.8]).log()

    def prior(states):
        return likes.expand(len(states), -1)

    quiet = UpdateConfig(entropy=0.0, learning_rate=0.05, epochs=20, clip=0.01)
    free, _ = one_update(quiet)
    pulled, told = one_update(replace(quiet, kl=10.0), prior=prior)
    assert pulled.policy.scores.softmax(0)[2] > free.policy.scores.softmax(0)[2] + 0.1
    assert told["prior_kl"] > 0
    ended, _ = one_update(replace(quiet, kl=10.0, target_kl=1e-4), prior=prior)
    assert (ended.policy.scores - 0).abs().max() < (pulled.policy.scores - 0).abs().max()


def test_values_alone_leave_the_policy_as_it_is():
    learner = PolicyGradient(Table(), UpdateConfig(learning_rate=0.1, clip_value=False))
    told = learner.update([STREAM], np.random.default_rng(0), parts=("value",))
    assert set(told) == {"value_loss"}
    assert torch.equal(learner.policy.scores, torch.zeros(4, requires_grad=True))
    assert not torch.equal(learner.policy.worth, Table().worth)


def test_a_gradient_that_is_not_finite_moves_nothing():
    learner = PolicyGradient(Table(), UpdateConfig())
    before = {name: weight.clone() for name, weight in learner.policy.state_dict().items()}
    with pytest.raises(HunchError, match="not finite"):
        learner.update([[step(0, "0", float("inf"), 1, end="terminated"), *STREAM]], np.random.default_rng(0))
    assert all(torch.equal(before[name], weight) for name, weight in learner.policy.state_dict().items())


class Steep(Table):
    """Its values overflow where its weights do not."""

    def state_values(self, states):
        return 100 * super().state_values(states)


def test_an_update_after_which_an_output_is_not_finite_is_refused():
    """All its gradients and weights are finite, but the next checkpoint would hold a ruined policy."""
    learner = PolicyGradient(Steep(), UpdateConfig(learning_rate=1e37, epochs=1))
    with pytest.raises(HunchError, match="last checkpoint is sound"):
        learner.update([STREAM], np.random.default_rng(0))
    assert torch.isfinite(learner.policy.worth).all()


def test_a_single_admissible_action_can_be_learnt_from():
    learner = PolicyGradient(Table(), UpdateConfig())
    only = [step(0, "1", 1.0, 1, end="terminated", actions=("1",))]
    told = learner.update([only], np.random.default_rng(0))
    assert told["entropy"] == 0


@pytest.mark.parametrize("value", [0.1, 0.7, 1.0, -3.3e4])
def test_equal_advantages_move_nothing(value):
    """Their mean is off by rounding, and their deviation by as much: the quotient would be about one."""
    for n in range(2, 200):
        equal = torch.full((n,), value)
        noisy = equal * (1 + torch.tensor([1e-7, 0.0] * n)[:n])
        assert not standardised(equal).any()
        assert not standardised(noisy).any()


def test_other_advantages_have_mean_zero_and_variance_one():
    given = torch.tensor([1.0, 0.0, 0.5, 1.0]) * 1e-3 + 1.0
    told = standardised(given)
    assert told.mean().item() == pytest.approx(0, abs=1e-3)
    assert told.std(correction=0).item() == pytest.approx(1, abs=1e-3)
    assert told.argmin() == 1


# ---- texts, and the other settings ------------------------------------------------------------------------


def flat(learner, batch, part="both"):
    """The loss of a whole batch by the library, and what its policy says of the tokens, as arrays."""
    rows = np.arange(len(batch.steps))
    loss, _ = learner._loss(batch, rows, batch.advantages, part)
    found = learner.policy.evaluate([], [step.decision for step in batch.steps])
    return float(loss.detach()), [part.detach().numpy()[found.mask] for part in found[:3]]


def shifted(policy):
    """The same policy some updates later."""
    with torch.no_grad():
        policy.scores += torch.linspace(-0.9, 0.9, policy.scores.numel()).view_as(policy.scores)
        policy.worth += 0.3
    return policy


def test_the_loss_of_ppo_over_tokens():
    """Two texts of two turns: the reward is at the last token, and every token has an advantage."""
    c = UpdateConfig(gamma=0.9, gae=0.8, whiten=False)
    policy = Letters(seed=1)
    turns = [replace_done(answer(Decision("ab.", (0, 1, 2)), 1.0)), answer(Decision(".", (2,)), 2.0)]
    learner = PolicyGradient(policy, c)
    batch = learner.collect([turns])
    v = policy.worth.detach().double().numpy()[[0, 1, 2, 0]]
    r = np.array([0, 0, 1.0, 2.0])
    d = r + 0.9 * np.append(v[1:], 0) - v
    a = [sum(0.72 ** (j - i) * d[j] for j in range(i, 4)) for i in range(4)]
    mask = batch.mask.numpy()
    assert mask.sum(1).tolist() == [3, 1]
    np.testing.assert_allclose(batch.advantages.numpy()[mask], a, rtol=1e-5)

    old = batch.logprobs.numpy()[mask]
    shifted(policy)
    loss, (new, entropy, value) = flat(learner, batch)
    ratio = np.exp(new - old)
    assert (np.abs(ratio - 1) > 0.2).any(), "the clip has something to do"
    gain = np.minimum(ratio * a, np.clip(ratio, 0.8, 1.2) * a)
    near = v + np.clip(value - v, -0.2, 0.2)
    error = np.maximum((value - (a + v)) ** 2, (near - (a + v)) ** 2)
    assert loss == pytest.approx(-gain.mean() - 0.01 * entropy.mean() + 0.5 * 0.5 * error.mean(), rel=1e-5)


def replace_done(step):
    """The same step in the middle of an episode."""
    return step._replace(transition=replace(step.transition, terminated=False))


def test_the_loss_of_a2c_has_the_gradient_of_its_paper():
    """Bootstrapped returns minus values, times the gradient of log pi; the batch is all that there is."""
    c = replace(PRESETS["a2c"], gamma=0.9)
    learner = PolicyGradient(Table(), c)
    batch = learner.collect([STREAM])
    v = np.arange(6) / 10
    wanted = [1 + 0.9 * (0.9 * v[2]), 0.9 * v[2], 2, 0.5 + 0.9 * v[5]]
    np.testing.assert_allclose(batch.returns[:, 0].numpy(), wanted, rtol=1e-5)
    loss, _ = learner._loss(batch, np.arange(4), batch.advantages, "both")
    loss.backward()
    pi, a = np.full(3, 1 / 3), np.array(wanted) - v[[0, 1, 3, 0]]
    slope = -sum(x * (np.eye(3)[i] - pi) for i, x in zip((0, 1, 2, 0), a, strict=True)) / 4
    np.testing.assert_allclose(learner.policy.scores.grad[:3], slope, rtol=1e-4)  # entropy is at its largest
    towards = np.bincount([0, 1, 3, 0], weights=-a * 0.5 / 4, minlength=6)
    np.testing.assert_allclose(learner.policy.worth.grad, towards, rtol=1e-4, atol=1e-7)
    assert c.epochs == 1
    assert len(learner._gradient_steps(batch, np.random.default_rng(0), ("both",))) == 1


def rows(rewards, ends, groups=()):
    nothing = np.zeros(len(rewards))
    return Actions(np.array(rewards), nothing, nothing, np.array(ends, dtype=bool), np.array(groups))


def test_returns_and_advantages_of_groups():
    """Episodes of 2, 1, 1 and 2 tokens, which pay 1, 3, 2 and 2; the last two teach nothing."""
    given = rows([0, 1, 3, 2, 0, 2.0], [0, 1, 1, 1, 0, 1], [7, 7, 9, 9])
    told = {name: function(given, 0.5, 0.0).tolist() for name, function in ADVANTAGES.items()}
    assert told["returns"] == [0.5, 1, 3, 2, 1, 2]
    np.testing.assert_allclose(told["group"], [-(0.5**0.5), -(0.5**0.5), 0.5**0.5, 0, 0, 0])
    assert told["leave_one_out"] == [-2, -2, 2, 0, 0, 0]
    equal = rows([0.1 + 0.2, 0.3, 0.3], [1, 1, 1], [0, 0, 0])
    for name in GROUPED:
        assert not ADVANTAGES[name](equal, 1.0, 1.0).any(), "equal up to rounding"


def test_rounding_errors_around_returns_of_zero_are_not_scaled_up():
    """Nothing was paid; what the divergence from a reference that is the policy itself takes is rounding."""
    ends, groups = [1, 1, 1], [0, 0, 0]
    assert not ADVANTAGES["group"](rows([2e-8, -1e-8, 0.0], ends, groups), 1.0, 1.0).any()
    small = ADVANTAGES["group"](rows([2e-4, 1e-4, 0.0], ends, groups), 1.0, 1.0)
    np.testing.assert_allclose(small, [1, 0, -1], atol=1e-6)


def test_a_text_as_one_action():
    """Its log-probabilities are summed, and so are divergence and entropy; a choice from a list stays one."""
    policy = Letters(seed=1)
    learner = PolicyGradient(policy, replace(PRESETS["rloo"], kl=0.1))
    batch = learner.collect([[step] for step in EPISODES], GROUPS)
    shifted(policy)
    loss, _ = flat(learner, batch, "policy")
    found, expected = policy.judged([step.decision for step in EPISODES]), policy.reference(EPISODES)
    d = (expected - found.logprobs).detach().numpy()
    new, kl = found.logprobs.detach().numpy().sum(1), (np.exp(d) - d - 1).sum(1)
    paid = np.array([step.transition.reward for step in EPISODES])
    a = np.concatenate([(own - own.mean()) * 4 / 3 for own in paid.reshape(2, 4)])
    ratio = np.exp(new - batch.logprobs.numpy()[:, 0])
    gain = np.minimum(ratio * a, np.clip(ratio, 0.8, 1.2) * a)
    assert loss == pytest.approx(-gain.mean() + 0.1 * kl.mean(), rel=1e-4)
    one, other = (one_update(UpdateConfig(unit=unit))[0].policy.scores for unit in ("token", "text"))
    assert torch.equal(one, other)


def test_recorded_probabilities_are_those_of_the_update():
    """The ratio is 1 at the first step, whether they were recorded or are computed again."""
    policy, rng = Letters(seed=3), np.random.default_rng(1)
    drawn = policy.sample([START] * 20, [rng] * 20)
    learner = PolicyGradient(policy, PRESETS["reinforce"])
    old, again = (
        learner.collect([[answer(own)] for own in made]).logprobs
        for made in (drawn, [own._replace(logprobs=()) for own in drawn])
    )
    torch.testing.assert_close(old, again, atol=1e-5, rtol=0)
    told = learner.update([[answer(own)] for own in drawn], rng)
    assert told["moved"] == pytest.approx(0, abs=1e-6)
    late = learner.collect([[answer(own)] for own in drawn]).logprobs
    assert torch.equal(late, old), "the ratio corrects for an update in between"


@pytest.mark.parametrize("name", PRESETS)
def test_every_algorithm_learns_to_write(name):
    """The reward is the share of the letter a, in groups of four."""
    policy, rng = Letters(seed=0), np.random.default_rng(0)
    learner = PolicyGradient(policy, replace(PRESETS[name], learning_rate=0.05, kl=0.0))
    paid = []
    for _ in range(60):
        steps = [answer(own) for own in policy.sample([START] * 16, [rng] * 16)]
        paid.append(np.mean([step.transition.reward for step in steps]))
        groups = [i // 4 for i in range(16)] if name in ("grpo", "rloo") else []
        told = learner.update([[step] for step in steps], rng, groups=groups)
    assert np.mean(paid[-5:]) > np.mean(paid[:5]) + 0.2
    assert ("value_loss" in told) == (name in ("ppo", "a2c"))
    assert ("flat_groups" in told) == (name in ("grpo", "rloo"))


@pytest.mark.parametrize("name", ["grpo", "rloo"])
def test_a_group_of_equal_returns_is_counted_and_moves_nothing(name):
    """The mean of three returns of 0.1 differs from 0.1 by a rounding error."""
    policy = Letters()
    before = policy.scores.detach().clone()
    same = [[answer(step.decision, 0.1)] for step in EPISODES[:6]]
    told = PolicyGradient(policy, replace(PRESETS[name], kl=0.0)).update(
        same, np.random.default_rng(0), groups=[0, 0, 0, 1, 1, 1]
    )
    assert told["flat_groups"] == 1
    assert torch.equal(policy.scores, before)


def test_a_group_of_equal_returns_whose_later_steps_differ_is_not_counted():
    """Without a discount all episodes of a group begin with equal returns, and only a later state teaches."""

    def episode(first, second):
        start, later = State("start", actions=None), State("later", actions=None)
        decision = EPISODES[0].decision
        return [
            Step(Transition(start, decision.text, first, later, False, False), decision),
            Step(Transition(later, decision.text, second, later, True, False), decision),
        ]

    learner = PolicyGradient(Letters(), replace(PRESETS["grpo"], kl=0.0))
    learner.advantage = partial(anchored, weight=1.0)
    streams = [episode(1.0, 0.0), episode(0.0, 1.0), episode(1.0, 1.0), episode(1.0, 1.0)]
    metrics = learner.update(streams, np.random.default_rng(0), groups=[0, 0, 1, 1])
    assert metrics["flat_groups"] == 0.5


def test_a_policy_that_drifts_is_stopped_before_the_update():
    """At a divergence or an entropy past the limit; the weights stay as they were."""
    policy, rng = Letters(seed=3), np.random.default_rng(1)
    drawn = [[answer(own)] for own in policy.sample([START] * 20, [rng] * 20)]
    kept = replace(PRESETS["reinforce"], learning_rate=0.05)
    surprise = PolicyGradient(policy, kept).collect(drawn).surprise
    recorded = [logprob for [own] in drawn for logprob in own.decision.logprobs]
    assert surprise == pytest.approx(-np.mean(recorded), abs=1e-5)
    PolicyGradient(policy, replace(kept, stop_entropy=surprise - 0.01)).update(drawn, rng)
    before = policy.scores.detach().clone()
    learner = PolicyGradient(policy, replace(kept, stop_entropy=surprise + 0.01))
    with pytest.raises(StoppedError, match=r"Before update 1 the entropy is .* so the run was stopped"):
        learner.update(drawn, rng)
    assert torch.equal(policy.scores, before)
    assert learner.updates == 0


def test_the_share_of_clipped_actions():
    """None at first; some in later epochs of large steps. A small clip range clips more."""
    shares = []
    for clip in (0.01, 0.5):
        policy, rng = Letters(seed=3), np.random.default_rng(1)
        drawn = [[answer(own)] for own in policy.sample([START] * 20, [rng] * 20)]
        once = replace(PRESETS["reinforce"], learning_rate=0.1, clip=clip)
        assert PolicyGradient(policy, once).update(drawn, np.random.default_rng(0))["clipped"] == 0
        policy.load_state_dict(Letters(seed=3).state_dict())
        metrics = PolicyGradient(policy, replace(once, epochs=4)).update(drawn, np.random.default_rng(0))
        shares.append(metrics["clipped"])
    assert 1 > shares[0] > shares[1]


def test_metrics_do_not_depend_on_how_many_texts_are_computed_at_once():
    """Each token counts as much as any other, whatever the length of the texts beside it."""
    of_micro = []
    for micro in (64, 3):
        policy, rng = Letters(seed=3), np.random.default_rng(1)
        drawn = [[answer(own)] for own in policy.sample([START] * 20, [rng] * 20)]
        config = replace(PRESETS["reinforce"], learning_rate=0.1, epochs=2, micro=micro)
        of_micro.append(PolicyGradient(policy, config).update(drawn, np.random.default_rng(0)))
    assert {"entropy", "clipped", "moved"} <= of_micro[0].keys()
    assert of_micro[0] == pytest.approx(of_micro[1], abs=1e-5)


def test_unfinished_episodes_and_groups_of_one_are_refused():
    rng, whole, open_ = np.random.default_rng(0), [EPISODES[0]], [replace_done(EPISODES[1])]
    learners = {name: PolicyGradient(Letters(), PRESETS[name]) for name in PRESETS}
    with pytest.raises(UsageError, match="whole episodes"):
        learners["reinforce"].update([whole, open_], rng)
    with pytest.raises(UsageError, match="one episode per stream"):
        learners["grpo"].update([whole * 2, whole], rng, groups=[0, 0])
    for groups in ([], [0, 1], [0]):
        with pytest.raises(UsageError, match="at least two"):
            learners["rloo"].update([whole, whole], rng, groups=groups)


def test_losses_of_preferences():
    """Direct preference and Kahneman-Tversky optimisation, written out; equal policies know nothing."""
    chosen, rejected = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    found = dpo(torch.tensor(chosen), torch.tensor(rejected), beta=0.5)
    assert float(found) == pytest.approx(np.mean(np.log1p(np.exp(-0.5 * (chosen - rejected)))))
    ratios, others = np.array([1.0, -1.0, 0.5]), np.array([0.2, 0.4])
    found = kto(torch.tensor(ratios), torch.tensor([True, False, False]), torch.tensor(others), 0.5, 2.0, 3.0)
    s = 1 / (1 + np.exp(-0.5 * np.array([1, -1, -1]) * (ratios - 0.3)))
    assert float(found) == pytest.approx(np.mean(np.array([2, 3, 3]) * (1 - s)))
    same = Letters().judged([step.decision for step in EPISODES])
    nothing = log_ratios(same, same.logprobs).detach()
    assert not nothing.any()
    assert float(dpo(nothing, nothing)) == pytest.approx(np.log(2))
    assert float(kto(nothing, torch.tensor([True] * 8), nothing)) == pytest.approx(0.5)


# ---- what holds a policy near its reference ---------------------------------------------------------------


def apart(policy):
    """Log pi minus log reference of each token of the texts, with their mask, in NumPy."""
    found = policy.judged([step.decision for step in EPISODES])
    return (found.logprobs - policy.reference(EPISODES)).detach().numpy(), found.mask.numpy()


def paid():
    return np.array([step.transition.reward for step in EPISODES])


def test_dpo_with_the_forward_divergence():
    """By hand: -1 / u stands in the place of log u; at the reference both losses have the same gradient."""
    better, worse = torch.tensor([0.3, -2.0]), torch.tensor([-0.4, 0.1])
    bracket = np.exp(-worse.numpy()) - np.exp(-better.numpy())
    expected = np.mean(np.log1p(np.exp(-0.4 * bracket)))
    assert float(dpo(better, worse, 0.4, "forward")) == pytest.approx(expected, rel=1e-5)

    gradients = []
    for divergence in ("forward", "reverse"):
        start = torch.zeros(2, 2, requires_grad=True)
        dpo(start[0], start[1], 0.4, divergence).backward()
        gradients.append(start.grad)
    assert torch.allclose(*gradients)

    far = torch.tensor([-1e4], requires_grad=True)
    dpo(far, torch.tensor([1e4]), 0.4, "forward").backward()
    assert torch.isfinite(far.grad).all()


@pytest.mark.parametrize("g", [-29.0, -50.0, -200.0])
def test_a_better_text_that_became_unlikely_is_learnt_with_the_forward_divergence(g):
    """Also where exp(-g) is so large that its square is none in float32."""
    better = torch.tensor([g], requires_grad=True)
    dpo(better, torch.zeros(1), 0.4, "forward").backward()
    assert better.grad is not None
    assert float(better.grad) < 0
    assert float(torch.nn.utils.clip_grad_norm_([better], 1.0)) < 1e15


def test_the_divergence_in_the_reward_of_each_token():
    """InstructGPT: r = -kl (log pi - log reference) at each token, and the reward at the last one."""
    policy, c = Letters(seed=1), UpdateConfig(gamma=1.0, gae=1.0, kl=0.3, kl_in="reward", whiten=False)
    batch = PolicyGradient(policy, c).collect([[step] for step in EPISODES])
    d, mask = apart(policy)
    for row, reward in enumerate(paid()):
        own = -0.3 * d[row, mask[row]]
        own[-1] += reward
        wanted = own[::-1].cumsum()[::-1]
        np.testing.assert_allclose(batch.returns[row][mask[row]], wanted, rtol=1e-4, atol=1e-6)


def test_the_divergence_in_the_reward_of_a_text():
    """RLOO's paper: the return of a text is its reward minus kl times the summed log-ratio."""
    policy, c = Letters(seed=1), replace(PRESETS["rloo"], kl=0.3, kl_in="reward")
    learner = PolicyGradient(policy, c)
    batch = learner.collect([[step] for step in EPISODES], GROUPS)
    d, mask = apart(policy)
    gained = (paid() - 0.3 * (d * mask).sum(1)).reshape(2, 4)
    wanted = [x - np.delete(own, i).mean() for own in gained for i, x in enumerate(own)]
    np.testing.assert_allclose(batch.advantages[:, 0], wanted, rtol=1e-4, atol=1e-6)
    loss, told = learner._loss(batch, np.arange(8), batch.advantages, "policy")
    assert "prior_kl" not in told
    assert float(loss.detach()) == pytest.approx(-np.mean(wanted), abs=1e-6)


def test_the_weight_of_the_divergence_is_adapted():
    """Ziegler et al.: a tenth of the relative error, which counts up to a fifth."""
    policy = Letters(seed=1)
    d, mask = apart(policy)
    kl = (d * mask).sum(1).mean()
    for aim, factor in ((kl / 2, 1.02), (kl / 1.1, 1.01), (abs(kl) * 3, 0.98)):
        c = replace(PRESETS["grpo"], kl=0.5, kl_aim=float(aim))
        learner = PolicyGradient(Letters(seed=1), c)
        told = learner.update([[step] for step in EPISODES], np.random.default_rng(0), groups=GROUPS)
        assert told["kl"] == pytest.approx(kl, rel=1e-4)
        assert told["kl_weight"] == 0.5
        assert learner.kl_weight == pytest.approx(0.5 * factor, rel=1e-4)
        again = PolicyGradient(Letters(seed=1), c)
        again.load_state_dict(learner.state_dict())
        assert again.kl_weight == learner.kl_weight


def test_the_greedy_answer_is_the_baseline():
    given = rows([0, 1, 3, 2, 0, 2.5], [0, 1, 1, 1, 0, 1], [7, 7, 9, 9])
    assert ADVANTAGES["self_critical"](given, 1.0, 1.0).tolist() == [0, 0, 2, 0, 0.5, 0.5]


def test_a_further_loss_is_added_at_each_gradient_step():
    learner, plain = (PolicyGradient(Letters(seed=1), PRESETS["grpo"]) for _ in range(2))

    def extra(rng):
        def add():
            loss = -3.0 * learner.policy.scores.log_softmax(1)[:, 0].mean()
            loss.backward()
            return float(loss.detach())

        return add

    learner.extra = extra
    for own in (learner, plain):
        told = own.update([[step] for step in EPISODES], np.random.default_rng(0), groups=GROUPS)
    assert ("extra_loss" in told) is False
    first = [own.policy.scores.log_softmax(1)[:, 0].mean() for own in (learner, plain)]
    assert first[0] > first[1]


def test_both_bounds_of_the_clip():
    """An advantage above 0 counts up to 1 + clip_high, one below 0 down to 1 - clip."""
    policy, c = Letters(seed=1), replace(PRESETS["grpo"], kl=0.0, clip=0.1, clip_high=0.4)
    learner = PolicyGradient(policy, c)
    batch = learner.collect([[step] for step in EPISODES], GROUPS)
    old, a, mask = (part.numpy() for part in (batch.logprobs, batch.advantages, batch.mask))
    with torch.no_grad():
        policy.scores += 2 * Letters.draw(9, 3)
    loss, (new, _, _) = flat(learner, batch, "policy")
    ratio, a = np.exp(new - old[mask]), a[mask]
    gain = np.minimum(ratio * a, np.clip(ratio, 0.9, 1.4) * a)
    assert ((ratio > 1.4) & (a > 0)).any()
    assert loss == pytest.approx(-gain.mean(), rel=1e-4)
