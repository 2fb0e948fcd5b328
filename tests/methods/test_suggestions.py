"""Suggested goals: sensible ones are named, nonsense is rejected and counted, a state is asked about once."""

import numpy as np
import pytest
from tests.begun import begun

import hunch
from hunch import lm, methods
from hunch.core import HunchError, State, UsageError
from hunch.envs.craft_goals import sensible
from hunch.lm import Cached
from hunch.lm.backends.scripted import ScriptedModel
from hunch.lm.base import Model
from hunch.lm.hearing import PATIENCE
from hunch.roles.goal.suggestions import SuggestionConfig, Suggestions

S = State("You see trees.", "", ("go to cave", "collect wood", "eat stone"))


class Writer(ScriptedModel):
    """Writes the same text always."""

    def __init__(self, text):
        super().__init__(lambda prompt, options: options[0])
        self.text, self.revision = text, text

    def generate(self, prompts, k=1, sampling=None, first=0):
        return [[self.text] * k for _ in prompts]


def suggest(text, **options):
    source = begun(Suggestions(Cached(Writer(text)), SuggestionConfig(**options)))
    return source, list(source.suggest([S])[0])


@pytest.mark.parametrize(
    ("text", "goals", "rejected"),
    [
        ("- collect wood\n- eat stone", ["collect wood", "eat stone"], 0.0),
        ("1. collect wood.\n2) go home", ["collect wood"], 0.5),
        ("* collect wood\n* collect wood", ["collect wood"], 0.0),
        ("I am sorry.", [], 1.0),
    ],
)
def test_lists_are_read_and_what_is_no_candidate_is_rejected(text, goals, rejected):
    source, found = suggest(text)
    assert found == goals
    assert source.rejected / source.lines == rejected
    assert source.lm.usage.fallbacks == source.rejected


def test_free_goals_and_a_list_of_ten_thousand():
    assert suggest("- go home", free=True)[1] == ["go home"]
    _, found = suggest("\n".join(f"- goal {i}" for i in range(10_000)), free=True, goals=3)
    assert found == ["goal 0", "goal 1", "goal 2"]


def test_a_state_is_asked_about_once():
    source, _ = suggest("- collect wood")
    calls = source.lm.usage.calls
    source.suggest([S, S])
    assert source.lm.usage.calls == calls


def test_candidates_are_approved_one_by_one():
    model = ScriptedModel(lambda prompt, options: options[0 if "to collect wood" in prompt else 1])
    source = begun(Suggestions(Cached(model), SuggestionConfig(how="ask")))
    assert source.suggest([S]) == [("collect wood",)]


class NoLetter(Model):
    """Lists neither Yes nor No among its likeliest outputs."""

    name, revision, verbs = "no-letter", "1", frozenset({"label"})

    def label(self, prompts, labels):
        return [np.full(len(listed), -np.inf) for listed in labels]


@pytest.mark.filterwarnings("ignore::hunch.core.HunchWarning")  # it says nothing of use
def test_the_patience_of_the_settings_counts_where_candidates_are_approved():
    states = [State(f"Tree {number}.", "", ("chop tree", "sleep")) for number in range(PATIENCE)]
    with pytest.raises(HunchError, match=f"{PATIENCE} answers of no-letter in a row"):
        begun(Suggestions(Cached(NoLetter()), SuggestionConfig())).suggest(states)
    patient = begun(Suggestions(Cached(NoLetter()), SuggestionConfig(patience=None)))
    assert patient.suggest(states) == [()] * PATIENCE
    assert patient.lm.usage.fallbacks == 2 * PATIENCE
    lenient = begun(Suggestions(Cached(NoLetter()), SuggestionConfig(patience=None, threshold=0.3)))
    assert lenient.suggest(states[:1]) == [()], "no answer is no yes, wherever the threshold is"


def test_an_encoder_names_what_is_alike():
    words = State("You see wood.", "", ("go to cave", "collect wood", "eat stone"))
    source = begun(Suggestions(lm.load("bag-of-words"), SuggestionConfig(goals=1)))
    assert source.suggest([words]) == [("collect wood",)]
    with pytest.raises(UsageError, match="embed"):
        begun(Suggestions(lm.load("scripted:suggest"), SuggestionConfig(how="alike")))


class Counting(Model):
    """Embeds at random, and counts its requests."""

    name, revision, verbs, dim = "counting", "1", frozenset({"embed"}), 4

    def __init__(self):
        self.requests = []

    def embed(self, texts):
        self.requests.append(list(texts))
        return np.array([np.random.default_rng(len(text)).normal(size=4) for text in texts], dtype=np.float32)


def test_goals_by_likeness_of_all_states_are_one_request():
    model = Counting()
    source = begun(Suggestions(model, SuggestionConfig()))
    source.suggest([State(f"Tree {number}.", "", ("chop tree", "sleep")) for number in range(9)])
    assert [len(request) for request in model.requests] == [11], "nine states and two candidates"


def test_goals_by_likeness_do_not_hang_on_the_state_that_came_first():
    """The history belongs to what is embedded, so equal observations after other steps are other states."""
    key, door = (
        State("A room.", "", ("open red door", "take blue key"), ((f"{what} is here.", "wait"),))
        for what in ("A blue key", "A red door")
    )
    source = begun(Suggestions(lm.load("bag-of-words"), SuggestionConfig(goals=1)))
    assert source.suggest([key, door]) == [("take blue key",), ("open red door",)]
    again = begun(Suggestions(lm.load("bag-of-words"), SuggestionConfig(goals=1)))
    assert again.suggest([door, key]) == [("open red door",), ("take blue key",)]


def test_a_prompt_of_ones_own_is_filled_in_for_each_task(tmp_path):
    file = tmp_path / "goals.txt"
    file.write_text("{task}: {observation}\n{actions}\n")
    model = ScriptedModel(lambda prompt, options: options[prompt.startswith("wood")])
    source = begun(Suggestions(Cached(model), SuggestionConfig(prompt=str(file), goals=1)))
    states = [State("Trees.", task, ("go to cave", "collect wood")) for task in ("a cave", "wood")]
    assert [source.suggest([state]) for state in states] == [[("go to cave",)], [("collect wood",)]]
    for unread in (SuggestionConfig(prompt=str(file), how="ask"), SuggestionConfig(prompt=str(file))):
        with pytest.raises(UsageError, match="read no prompt file"):
            Suggestions(model if unread.how == "ask" else lm.load("bag-of-words"), unread)


def test_the_rule_names_what_works_and_nothing_else():
    env = hunch.make("hunch/Craft-v0", difficulty="hard")
    rng_env = env.unwrapped
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for step in range(400):
        works = [name for name in rng_env.achievements if rng_env.works(rng_env.rules[name])]
        assert sorted(sensible(observation)) == sorted(works)
        action = works[step % len(works)] if works and step % 3 else env.action_space.sample()
        observation, *_, over, _ = env.step(action)
        if over or env.unwrapped._running is False:
            observation, _ = env.reset()


@pytest.mark.parametrize("dials", ["", "?error=0.5", "?refusal=0.5", "?malformed=0.5"])
def test_the_contract_is_kept(dials):
    agent = methods.ELLM(lm.load(f"scripted:suggest{dials}"))
    methods.check(agent, hunch.make("hunch/Craft-v0", max_steps=20), steps=36)


def test_unknown_dials_are_refused():
    with pytest.raises(UsageError, match="systematic"):
        lm.load("scripted:suggest?systematic=0.5")
