"""The pocket model's corpus: what it holds, and what it must not hold."""

import re
from random import Random

import pytest

from hunch.envs import make
from hunch_studies.laboratory import corpus, policies, processes, wording

DOMAINS = ("Chain", "DistractorChain", "Maze", "MiniCatch", "MiniInvaders", "PointMass")


def transcripts(domain: str, episodes: int = 30) -> set[str]:
    """Transitions of a domain, as prompts show them."""
    env, rng = make(f"hunch/{domain}-v0"), Random(0)
    found = set()
    for seed in range(episodes):
        state, info = env.reset(seed=seed)
        over = False
        while not over:
            action = rng.choice(info["actions"])
            following, reward, done, truncated, info = env.step(action)
            texts = env.unwrapped.wording
            told = (following, texts.done(done), texts.reward(reward))
            found |= {state + texts.actions[action] + answer for answer in told}
            state, over = following, done or truncated
    return found


@pytest.fixture(scope="module")
def texts():
    """Three hundred documents."""
    return "".join(corpus.text(corpus.document(f"test-{i}", 600)) for i in range(300))


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_transcript_of_the_evaluation_occurs(domain, texts):
    assert not [text for text in transcripts(domain) if text in texts]


def test_no_word_of_the_evaluation_occurs_in_a_process():
    for i in range(200):
        shape = list(corpus.SHAPES)[i % len(corpus.SHAPES)]
        text = corpus.text(corpus.document(f"words-{i}", 500, shape=shape))
        assert not wording.HELD_OUT & set(re.findall(r"[A-Za-z_]+", text))


def test_processes_like_those_of_the_evaluation_are_held_out():
    def process(*numbers):
        return processes.Process(
            tuple(numbers),
            ((1,) * len(numbers),),
            {},
            frozenset(),
            processes.Goal("equal", (0.0,), None),
            1,
            True,
            False,
        )

    shift, real = processes.Number(0, 8, "clip", "shift"), processes.Number(-6, 13, "clip", "shift", True)
    three, four = processes.Number(0, 3, "clip", "shift"), processes.Number(0, 4, "clip", "shift")
    clock = processes.Number(0, 5, "clip", "countdown")
    place = processes.Number(-6, 13, "clip", "drift")
    pulled = processes.Number(0, 5, "clip", "pull")
    for near in ([shift], [three, three], [four, clock], [real, pulled], [place, real]):
        assert processes.held_out(process(*near))
    assert not processes.held_out(process(processes.Number(0, 9, "clip", "shift")))
    assert not any(processes.held_out(processes.draw(Random(i))) for i in range(500))


def test_same_seed_same_document():
    assert corpus.document("a", 800) == corpus.document("a", 800)
    assert corpus.document("a", 800) != corpus.document("b", 800)


@pytest.mark.parametrize("shape", corpus.SHAPES)
def test_documents_are_long_enough_and_have_answers(shape):
    for i in range(40):
        document = corpus.document(f"{shape}-{i}", 700, shape=shape)
        assert len(corpus.text(document)) >= 700
        assert any(piece.answer for piece in document)
        assert all(piece.text.endswith("\n") for piece in document)


@pytest.mark.parametrize("shape", ["ends", "rewards"])
def test_outcomes_are_balanced(shape):
    for i in range(30):
        document = corpus.document(f"balance-{i}", 4000, shape=shape)
        told = [piece.text for piece in document if piece.answer]
        counts = [told.count(answer) for answer in set(told)]
        assert max(counts) <= 3 * min(counts) + 80  # the last round may be cut short


def test_states_stay_in_their_range():
    for i in range(200):
        rng = Random(i)
        process = processes.draw(rng)
        steps = corpus.experience(rng, process)
        for _ in range(30):
            for number, value in zip(process.numbers, next(steps).next_state, strict=True):
                assert number.low <= value <= number.low + number.size - 1 or value == processes.GONE


def test_a_place_moves_by_its_speed():
    place, speed = processes.Number(-9, 20, "clip", "drift"), processes.Number(-2, 5, "clip", "shift")
    goal = processes.Goal("equal", (3.0,), None)
    process = processes.Process((place, speed), ((0, 1), (0, -1)), {}, frozenset(), goal, 1, True, False)
    assert process.step((1, 2), 1, Random(0)) == (0, False, (3, 1))
    assert process.step((3, -1), 0, Random(0)) == (1, True, (2, 0))


def test_things_meet_as_the_clock_runs_out():
    across, still = processes.Number(0, 5, "clip", "shift"), processes.Number(0, 1, "clip", "shift")
    clock = processes.Number(0, 4, "clip", "countdown")
    goal = processes.Goal("meet", (0.0,), None, (0, 2), final=True)
    numbers, moves = (across, still, across, clock), ((1, 0, 0, 1), (-1, 0, 0, 1))
    process = processes.Process(numbers, moves, {}, frozenset(), goal, 5, False, False, things=True)
    assert process.step((2, 0, 2, 1), 0, Random(0)) == (0, False, (3, 0, 2, 0))
    assert process.step((2, 0, 2, 0), 0, Random(0))[:2] == (5, True)
    assert process.step((2, 0, 1, 0), 0, Random(0))[:2] == (0, True)


def test_what_is_hit_is_gone():
    across, still = processes.Number(0, 5, "clip", "shift"), processes.Number(0, 1, "clip", "shift")
    clock, gone = processes.Number(0, 4, "clip", "countdown"), processes.GONE
    numbers, moves = (across, still, across, clock, across, clock), ((0, 0, 0, 1, 0, 1), (-1, 0, 0, 1, 0, 1))
    goal = processes.Goal("hit", (0.0,), 0)
    process = processes.Process(numbers, moves, {}, frozenset(), goal, 5, False, False, things=True)
    one_left = (2, 0, gone, gone, 4, 1)
    assert process.step((2, 0, 2, 2, 4, 2), 0, Random(0)) == (5, False, one_left)
    assert process.step((2, 0, 2, 2, 4, 2), 1, Random(0)) == (0, False, (1, 0, 2, 1, 4, 1))
    assert process.step(one_left, 1, Random(0)) == (0, False, (1, 0, gone, gone, 4, 0))
    assert process.step((4, 0, gone, gone, 4, 1), 0, Random(0)) == (5, True, (4, 0, gone, gone, gone, gone))
    words = next(w for w in (wording.draw(Random(i), process) for i in range(50)) if w.layout == "group")
    assert "None" in words.state(one_left)
    assert "None" not in words.state((2, 0, 2, 2, 4, 2))


def test_a_searched_policy_goes_to_the_goal():
    line, goal = processes.Number(0, 9, "clip", "shift"), processes.Goal("equal", (4.0,), 2)
    process = processes.Process((line,), ((-1,), (1,), (0,)), {}, frozenset(), goal, 1, True, True)
    policy = policies.best(Random(0), process)
    assert [policy((float(x),)) for x in range(9)] == [1, 1, 1, 1, 2, 0, 0, 0, 0]


def test_a_searched_policy_goes_around_a_wall():
    board = processes.Number(0, 3, "clip", "shift"), processes.Number(0, 2, "clip", "shift")
    moves = (0, -1), (1, 0), (-1, 0), (0, 1)
    walls = frozenset({((0.0, 0.0), 3), ((0.0, 1.0), 0), ((1.0, 0.0), 3), ((1.0, 1.0), 0)})
    goal = processes.Goal("place", (0.0, 1.0), None)
    process = processes.Process(board, moves, {}, walls, goal, 1, True, False)
    policy = policies.best(Random(0), process)
    assert [policy(place) for place in ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1))] == [1, 1, 3, 2, 2]


@pytest.mark.parametrize("draw", [policies.best, policies.by_state, policies.by_number])
def test_a_policy_takes_one_action_per_state_whatever_chance_does(draw):
    place, noise = processes.Number(0, 5, "wrap", "shift"), processes.Number(0, 4, "clip", "noise")
    goal = processes.Goal("equal", (2.0,), None)
    process = processes.Process((place, noise), ((1, 0), (-1, 0)), {}, frozenset(), goal, 1, True, False)
    policy = draw(Random(1), process)
    for x in range(5):
        assert len({policy((float(x), y)) for y in (0, 1, 2, 3, 0)}) == 1


def test_ends_are_asked_where_episodes_can_end():
    told = [corpus.text(corpus.document(f"can-{i}", 400, shape="ends")) for i in range(60)]
    both = [text for text in told if re.search(r"(?m)^(assert )?(not (done|end)|done = 0|over: no)$", text)]
    never = [text for text in both if not re.search(r"(?m)^(assert )?(done|end|done = 1|over: yes)$", text)]
    assert len(never) < 20


def test_rewards_are_asked_of_last_steps_alone_too():
    """As in ICPI's prompts, where only the meeting tells one reward from another, and not the clock."""
    across, clock = processes.Number(0, 5, "clip", "shift"), processes.Number(0, 5, "clip", "countdown")
    still = processes.Number(0, 1, "clip", "shift")
    moves, goal = ((-1, 0, 0, 1), (1, 0, 0, 1)), processes.Goal("meet", (0.0,), None, (0, 2), final=True)
    process = processes.Process(
        (across, still, across, clock), moves, {}, frozenset(), goal, 1, False, False, True
    )
    words, last = wording.draw(Random(0), process), 0
    rewarding = {words.state((x, 0, x, 0)) for x in range(5)}
    missing = {words.state((x, 0, y, 0)) for x in range(5) for y in range(5) if x != y}
    for i in range(30):
        document = corpus.rewards(Random(i), process, words, 4000)
        shown = {line for piece in document for line in rewarding | missing if piece.text.startswith(line)}
        others = [p for p in document[::3] if not p.text.startswith(tuple(rewarding | missing))]
        assert shown & rewarding
        last += not others and bool(shown & missing)
    assert last >= 5


def test_instructions_offer_the_right_action():
    found = 0
    for i in range(150):
        text = corpus.text(corpus.document(f"errand-{i}", 600))
        if not text.startswith("Your task is to"):
            continue
        found += 1
        for prompt, action in re.findall(r"actions:\n(.*?)The next action.*?\n> (.*?)\n", text, re.DOTALL):
            assert f"- {action}\n" in prompt
    assert found
