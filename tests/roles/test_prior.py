"""The four priors, their proposals, and Proposition 1."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch import lm
from hunch.core import State, UsageError
from hunch.envs import make
from hunch.lm.base import Model
from hunch.lm.scoring.choose import project
from hunch.lm.settings import AskConfig
from hunch.methods.planner.examples import build_scorer
from hunch.methods.prior.dqn_prior import posterior
from hunch.numbers import softmax
from hunch.roles.prior.base import DistributionPrior, UniformPrior, draw
from hunch.roles.prior.blank import aimless
from hunch.roles.prior.kinds import PriorConfig, build_prior, settings_of
from hunch.roles.prior.language import DecisionPrior, LabelledPrior, LikelihoodPrior, MappedPrior
from hunch.roles.prior.similarity import NoveltyPrior, SimilarityPrior, staleness
from hunch.runs.describe import _prior

STATE = State(
    "The fridge 1 is closed.",
    "put a cool apple in fridge.",
    ("close fridge 1", "go to desk 1", "inventory", "open fridge 1"),
    (("You are in the kitchen.", "go to fridge 1"),),
)
OTHER = State("You see a mug.", "put a mug on desk.", ("go to desk 1", "take mug 1 from desk 1"))


@pytest.fixture(scope="module")
def minilm():
    return lm.load("minilm")


def frequencies(p, q, alpha, k, repeats, rng):
    """How often each action is taken when a ~ softmax(Q / alpha) over k draws of p."""
    total = np.zeros(len(p))
    for _ in range(repeats):
        proposal = draw(p, k, rng)
        total[proposal.indices] += posterior(proposal.weights, q[proposal.indices], alpha)
    return total / repeats


@settings(max_examples=25)
@given(st.integers(2, 8), st.floats(0.2, 2.0), st.integers(0, 2**32 - 1))
def test_sampled_rule_converges_to_the_closed_form(n, alpha, seed):
    """Proposition 1: p_LM exp(Q / alpha) / Z as k grows; with k = 1 it is p_LM itself."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(n)), rng.normal(size=n)
    closed = p * np.exp(q / alpha)
    closed /= closed.sum()
    alone = frequencies(p, q, alpha, 1, 2500, rng)
    assert np.abs(alone - p).max() < 0.05
    few, many = (frequencies(p, q, alpha, k, 150, rng) for k in (2, 4096))
    assert np.abs(many - closed).sum() / 2 < 0.03
    assert np.abs(many - closed).sum() <= np.abs(few - closed).sum() + 0.03


@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_a_proposal_is_a_multiset_of_k_draws(n, k, seed):
    rng = np.random.default_rng(seed)
    proposal = draw(rng.dirichlet(np.ones(n)), k, rng)
    assert 1 <= len(proposal.indices) <= min(n, k)
    assert proposal.weights.sum() == pytest.approx(1)
    assert np.allclose(proposal.weights * k, np.round(proposal.weights * k))
    assert (np.diff(proposal.indices) > 0).all()


def test_all_actions_without_k():
    proposal = UniformPrior().propose([STATE], None, np.random.default_rng(0))[0]
    assert proposal.indices.tolist() == [0, 1, 2, 3]
    assert np.allclose(proposal.weights, 0.25)


def test_same_generator_state_same_proposals(minilm):
    prior = SimilarityPrior(minilm)
    first = prior.propose([STATE, OTHER], 3, np.random.default_rng(7))
    again = SimilarityPrior(minilm).propose([STATE, OTHER], 3, np.random.default_rng(7))
    for a, b in zip(first, again, strict=True):
        assert (a.indices == b.indices).all()
        assert (a.weights == b.weights).all()


def test_similarity_follows_its_definition(minilm):
    """Two routes: the prior, and its formula written out; texts have length 1 under this model."""
    prior = SimilarityPrior(minilm, temperature=0.2, history=0.5, repeat=0.7)
    seen, done = ["You are in the kitchen.", "The fridge 1 is closed."], ["go to fridge 1"]
    query = minilm.embed([STATE.task])[0] + 0.5 * np.array([0.3, 1.0]) / 1.3 @ minilm.embed(seen)
    actions = minilm.embed(STATE.actions)
    affinities = actions @ query / np.linalg.norm(query) - 0.7 * (actions @ minilm.embed(done)[0]) ** 4
    assert prior.probabilities([STATE])[0] == pytest.approx(softmax(affinities / 0.2), abs=1e-5)


def test_similarity_turns_from_what_was_just_done(minilm):
    past = (*STATE.history, (STATE.observation, "inventory"))
    again = State("You carry nothing.", STATE.task, STATE.actions, past)
    index = STATE.actions.index("inventory")
    before, after = SimilarityPrior(minilm).probabilities([STATE, again])
    assert after[index] < before[index] / 2


def test_similarity_prefers_what_the_task_names(minilm):
    p = SimilarityPrior(minilm).probabilities([OTHER])[0]
    assert p[1] > p[0]


def test_novelty_is_the_rule_without_the_model():
    """Only an exact repeat is turned from, and the youngest most."""
    p = NoveltyPrior(temperature=0.5).probabilities([STATE, OTHER])
    assert np.allclose(p[0], 0.25), "going to the fridge is not on offer, so nothing is a repeat"
    assert np.allclose(p[1], 0.5)
    state = State("c", "t", ("look", "sing", "wait"), (("a", "look"), ("b", "wait")))
    look, sing, wait = NoveltyPrior(temperature=0.5).probabilities([state])[0]
    assert look / sing == pytest.approx(np.exp(-0.8 / 0.5))
    assert wait / sing == pytest.approx(np.exp(-1 / 0.5))


def test_likelihood_normalisations_and_the_papers_softmax():
    model = lm.load("scripted:overlap")
    by_sum, by_word = (
        LikelihoodPrior(model, normalise=by).probabilities([STATE])[0] for by in ("sum", "word")
    )
    assert by_sum.sum() == pytest.approx(1)
    assert not np.allclose(by_sum, by_word)
    nearly_uniform = LikelihoodPrior(model, over="probabilities").probabilities([STATE])[0]
    assert nearly_uniform.max() / nearly_uniform.min() < np.e + 1e-9


def test_labelled_prior_names_actions_by_letter():
    sure = LabelledPrior(lm.load("scripted:overlap"))
    assert sure.evidence == "L0"
    assert sure.probabilities([STATE])[0].argmax() == 0, "the first that names the fridge"
    flat = LabelledPrior(lm.load("scripted:overlap"), temperature=50.0, rotations=2)
    p = flat.probabilities([STATE])[0]
    assert p.sum() == pytest.approx(1)
    assert p.max() / p.min() < 1.5
    built = build_prior(PriorConfig(way="label"), lm.load("uniform"))
    assert built.probabilities([STATE])[0] == pytest.approx(np.full(4, 0.25))
    with pytest.raises(UsageError, match="at least one rotation"):
        LabelledPrior(lm.load("uniform"), rotations=0)


def test_mapped_prior_counts_fallbacks():
    rng = np.random.default_rng(0)
    sure = MappedPrior(lm.load("scripted:overlap"))
    assert sure.propose([STATE], 4, rng)[0].weights.tolist() == [1.0]
    assert sure.propose([STATE], 4, rng)[0].fallbacks == 0
    silent = MappedPrior(lm.load("scripted:overlap?refusal=1.0"))
    proposal = silent.propose([STATE], 4, rng)[0]
    assert proposal.indices.tolist() == [len(STATE.actions) - 1], "the released rule falls back to the last"
    assert proposal.fallbacks == 1
    assert silent.lm.usage.fallbacks == 4
    assert np.isnan(UniformPrior().propose([STATE], 4, rng)[0].fallbacks), "nothing can go wrong there"


@pytest.mark.parametrize(
    ("answer", "expected", "named"),
    [
        ("I open Fridge 1, yes: open fridge 1.", 3, True),
        ("go to desk 1 or open fridge 1", 3, True),
        ("go to desk 1, yes: go to desk 1, not open fridge 1", 1, True),
        ("no idea", 3, False),
        ("", 3, False),
    ],
)
def test_projection(answer, expected, named):
    assert project(answer, STATE.actions) == (expected, named)


def test_auto_follows_the_models_verbs(minilm):
    assert isinstance(build_prior(PriorConfig(), minilm), SimilarityPrior)
    assert isinstance(build_prior(PriorConfig(), lm.load("scripted:first")), MappedPrior)
    assert isinstance(build_prior(PriorConfig(), lm.load("uniform")), UniformPrior)


@pytest.mark.parametrize("way", ["structured", "similarity"])
def test_the_uninformed_model_is_the_control_of_every_way(way):
    """Also of those in which it cannot be asked, so that ``compare`` has its control."""
    assert isinstance(build_prior(PriorConfig(way=way), lm.load("uniform")), UniformPrior)


@pytest.mark.parametrize(
    ("way", "verb"),
    [("text", "generate"), ("likelihood", "score"), ("label", "label"), ("decision", "decide")],
)
def test_a_missing_verb_is_named(minilm, way, verb):
    with pytest.raises(UsageError, match=verb):
        build_prior(PriorConfig(way=way), minilm)


def test_bad_temperature(minilm):
    with pytest.raises(UsageError, match="temperature"):
        SimilarityPrior(minilm, temperature=0)


def test_mapped_prior_needs_k():
    with pytest.raises(UsageError, match="number of proposals"):
        MappedPrior(lm.load("scripted:first")).propose([STATE], None, np.random.default_rng(0))


def test_the_latest_action_counts_in_full_and_earlier_ones_less():
    """max_i 0.8^i likeness^4, with i = 0 for the latest action, which stands last."""
    likeness = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.5]])
    assert staleness(likeness) == pytest.approx([1.0, 0.8, 0.64, 0.0625])


def test_a_model_that_decides_is_a_prior_with_all_its_probabilities():
    prior = build_prior(PriorConfig(way="decision"), lm.load("uniform"))
    assert isinstance(prior, DecisionPrior)
    assert prior.probabilities([STATE])[0] == pytest.approx(1 / len(STATE.options))
    (all_actions,) = prior.propose([STATE], None, np.random.default_rng(0))
    assert len(all_actions.indices) == len(STATE.options)


@pytest.mark.parametrize("name", ["kind", "listed", "structured"])
def test_settings_of_before_are_refused_by_keyword(name):
    with pytest.raises(UsageError, match=f"{name} is now way"):
        PriorConfig(**{name: "mapped"})


@pytest.mark.parametrize(
    ("stored", "way"),
    [
        ({"kind": "mapped", "listed": True}, "text"),
        ({"kind": "mapped", "listed": False}, "text-unlisted"),
        ({"kind": "mapped", "listed": True, "structured": True}, "structured"),
        ({"kind": "likelihood", "listed": False}, "likelihood-unlisted"),
        ({"kind": "labelled", "listed": True}, "label"),
        ({"kind": "auto", "listed": True}, "auto"),
        ({"way": "decision"}, "decision"),
    ],
)
def test_stored_settings_of_before_are_mapped(stored, way):
    assert PriorConfig.current({**stored, "repeat": 2.0}) == {"way": way, "repeat": 2.0}


def test_ways_that_a_model_lacks_are_refused_with_those_it_has(minilm):
    with pytest.raises(UsageError, match=r"needs the verb decide; .* it can be asked by label, likelihood"):
        build_prior(PriorConfig(way="decision"), lm.load("scripted:first"))
    with pytest.raises(UsageError, match="similarity"):
        build_prior(PriorConfig(way="structured"), minilm)


def test_a_prompt_file_that_nobody_reads_is_refused(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("{observation}\n{actions}")
    words = lm.load("bag-of-words")
    for build in (build_prior, build_scorer):
        with pytest.raises(UsageError, match="reads no prompt file"):
            build(PriorConfig(prompt=str(file)), words)
        assert isinstance(build(PriorConfig(prompt=str(file)), lm.load("uniform")), UniformPrior), "a control"


def test_the_setting_of_rotations_reaches_the_prior():
    """Each action stands once at each place, so that a liking for a place cancels."""

    class First(Model):
        """Likes the first letter, whatever it stands for."""

        name, revision, verbs = "first", "1", frozenset({"label"})

        def label(self, prompts, labels):
            return [np.log(np.array([0.7] + [0.3 / (len(own) - 1)] * (len(own) - 1))) for own in labels]

    n = len(STATE.options)
    biased = build_prior(PriorConfig(way="label"), First()).probabilities([STATE])[0]
    fair = build_prior(PriorConfig(way="label", rotations=n), First()).probabilities([STATE])[0]
    assert biased[0] == pytest.approx(0.7)
    assert fair == pytest.approx(np.full(n, 1 / n))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("kind", [LikelihoodPrior, MappedPrior])
def test_a_prior_made_by_hand_can_be_built_again(kind, temperature):
    pytest.importorskip("hunch_pocket")
    model = lm.load("pocket?corpus=households")
    if kind is MappedPrior:
        prior = MappedPrior(model, asks=AskConfig(temperature=temperature))
    else:
        prior = kind(model, temperature=temperature)
    assert temperature == settings_of(prior).temperature
    rng = np.random.default_rng
    again = build_prior(settings_of(prior), model)
    for one, other in zip(prior.propose([OTHER], 4, rng(0)), again.propose([OTHER], 4, rng(0)), strict=True):
        assert (one.indices.tolist(), one.weights.tolist()) == (
            other.indices.tolist(),
            other.weights.tolist(),
        )
    assert _prior(prior, PriorConfig(), model) == settings_of(prior)


@pytest.mark.parametrize(
    ("spec", "way"),
    [
        ("words", "similarity"),
        ("scripted:overlap", "label"),
        ("scripted:overlap", "likelihood"),
        ("scripted:overlap", "likelihood-unlisted"),
        ("scripted:overlap", "text"),
    ],
)
def test_with_the_blank_prompt_the_model_reads_what_the_audition_leaves(spec, way):
    """The first observation of Household states the task, and is in the history of later states."""
    env = make("hunch/Household-Pick-v0", games=1)
    observation, info = env.reset(seed=0)
    observation, *_, info = env.step(info["actions"][0])
    state = State.read(observation, info)
    model = lm.load(spec)
    usual, control = (build_prior(PriorConfig(way=way, blank=on), model) for on in (False, True))

    def proposed(prior, read):
        [proposal] = prior.propose([read], 50, np.random.default_rng(0))
        return proposal.named(len(state.options)).tolist()

    left = aimless(state, r"Your task is to: .*\n?")
    assert state.task not in left.text()
    assert proposed(control, state) == proposed(usual, left)
    assert proposed(control, state) != proposed(usual, state)
    assert settings_of(control).blank
    assert not settings_of(usual).blank
    assert _prior(control, PriorConfig(), model) == settings_of(control)


@pytest.mark.parametrize("way", ["label", "likelihood", "text"])
def test_a_model_reads_the_latest_steps_only(way):
    past = (("A hall.", "go to the shed"), ("A shed.", "go to the field"))
    actions = ("go to the hall", "dig")
    states = [State("A field.", "find a log", actions, history=past[first:]) for first in (0, 1, 2)]
    model = lm.load("scripted:overlap")
    prior = build_prior(PriorConfig(way=way, recent=1), model)
    usual = build_prior(PriorConfig(way=way), model)

    def proposed(prior, read):
        [proposal] = prior.propose([read], 50, np.random.default_rng(0))
        return proposal.named(2).tolist()

    assert proposed(prior, states[0]) == proposed(usual, states[1])
    assert proposed(prior, states[2]) == proposed(usual, states[2])
    assert settings_of(prior).recent == 1
    assert settings_of(usual).recent is None
    assert _prior(prior, PriorConfig(), model) == settings_of(prior)


def test_written_answers_are_asked_for_once_where_a_number_of_samples_is_set(tmp_path):
    model = lm.load("scripted:overlap?error=0.5")
    config = PriorConfig(way="text", samples=40, recent=0)
    prior = build_prior(config, model)
    states = [State("A field.", "dig", ("dig", "go", "rest"), history=((place, "go"),)) for place in "abc"]
    first, second, third = prior.probabilities(states)
    assert first.tolist() == second.tolist() == third.tolist()
    assert first.sum() == pytest.approx(1)
    # The shares are those of a prior that is asked anew at each proposal.
    [proposal] = build_prior(PriorConfig(way="text"), model).propose(
        [replace(states[0], history=())], 400, np.random.default_rng(0)
    )
    assert np.abs(proposal.named(3) - first).max() < 0.25
    # Draws need no further answers, and another run has the same distribution.
    assert len(prior.propose(states, 5, np.random.default_rng(0))) == 3
    assert build_prior(config, model).probabilities(states)[0].tolist() == first.tolist()
    other = build_prior(replace(config, drawing=1), model)
    assert other.probabilities(states)[0].tolist() != first.tolist()
    assert settings_of(other).drawing == 1
    assert settings_of(prior) == replace(config, temperature=1.0)
    assert _prior(prior, PriorConfig(), model) == settings_of(prior)


class Mumbling(Model):
    """Names the first of two actions in a quarter of its answers, and none in the others."""

    name, revision, verbs = "mumbling", "1", frozenset({"generate"})

    def generate(self, prompts, k=1, sampling=None, first=0):
        return [["dig" if n % 4 == 0 else "hm" for n in range(first, first + k)] for _ in prompts]


def test_answers_without_an_action_stay_known_in_a_sampled_prior():
    state = State("A field.", actions=("dig", "go"))
    prior = build_prior(PriorConfig(way="text", samples=40), Mumbling())
    assert prior.probabilities([state])[0].tolist() == [0.25, 0.75]  # the last stands for what names none
    [every] = prior.propose([state], None, np.random.default_rng(0))
    assert every.fallbacks == pytest.approx(0.75)
    assert every.named(2).tolist() == pytest.approx([0.25, 0.0])
    [drawn] = prior.propose([state], 8, np.random.default_rng(0))
    assert drawn.fallbacks == pytest.approx(drawn.weights[drawn.indices == 1].sum())


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"way": "label", "samples": 4}, r"prior\.samples counts written answers"),
        ({"way": "text", "drawing": 1}, r"set that, too"),
    ],
)
def test_a_setting_of_written_answers_is_refused_where_it_has_no_use(settings, match):
    with pytest.raises(UsageError, match=match):
        build_prior(PriorConfig(**settings), lm.load("scripted:overlap"))


def test_a_prior_is_asked_once_for_all_states_of_which_it_reads_the_same():
    asked = []

    class Counting(UniformPrior):
        probabilities = DistributionPrior.probabilities

        def _compute(self, states):
            asked.extend(states)
            return super()._compute(states)

    prior = Counting()
    prior.recent = 0
    states = [State("A field.", actions=("dig", "go"), history=((place, "go"),)) for place in "abc"]
    assert len(prior.probabilities(states)) == 3
    prior.probabilities(states)
    assert [state.history for state in asked] == [()]


def test_the_blank_prompt_keeps_rules_that_do_not_name_the_task():
    state = State(
        "Logs are brown.\nFind a log!\nYou see a tree.", "Find a log!", ("go",), goals=("see a tree",)
    )
    assert aimless(state).text() == "Logs are brown."
    assert aimless(State("A tree.\n", actions=("go",))).observation == "A tree.\n"


@pytest.mark.parametrize(
    ("task", "observation", "left"),
    [
        ("Find a log.", "Your task is to find a log!\nA tree.", "A tree."),
        (
            "Fetch wood.\n\nThen build a bed.",
            "Welcome.\nFetch wood.\n\nThen build a bed.\nA tree.",
            "Welcome.\nA tree.",
        ),
        ("Fetch wood.\n}", "A tree.\n}", "A tree.\n}"),
        (".", "A tree.", "A tree."),
    ],
    ids=["as a sentence", "of several lines", "one of its lines", "no words"],
)
def test_the_blank_prompt_finds_the_task_where_an_observation_repeats_it(task, observation, left):
    state = State(observation, task, ("go",), history=((observation, "go"),))
    assert aimless(state).observation == left
    assert aimless(state).history == ((left, "go"),)


class Rounded(DistributionPrior):
    """Gives numbers of 32 bits, as networks do."""

    def __init__(self, p):
        super().__init__("L0")
        self.p = np.asarray(p, dtype=np.float32)

    def _compute(self, states):
        return [self.p for _ in states]


@pytest.mark.parametrize("k", [None, 4])
@pytest.mark.parametrize("p", [[0.5, 0.500005, 0.0], [0.1] * 9 + [0.1000008, 1e-9], [0.5, 0.499995, 0.0]])
def test_a_prior_may_sum_to_one_up_to_rounding(p, k):
    state = State("here", actions=tuple(f"go to {n}" for n in range(len(p))))
    (proposal,) = Rounded(p).propose([state], k, np.random.default_rng(0))
    assert proposal.weights.sum() == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(UsageError, match="no distribution"):
        Rounded(2 * np.asarray(p)).propose([state], k, np.random.default_rng(0))
