"""Fine-tuning on demonstrations and preferences, in the world of recipes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hunch
from hunch import methods
from hunch.cli.main import main
from hunch.core import Episode, HunchError, State, UsageError, World
from hunch.runs.evaluate import Trial, evaluate_run
from hunch.runs.loading import load_agent
from hunch_studies.worlds import recipes

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.methods.test_rlhf import ASKED, BAD, GOOD, SCRATCH, fitted, made, step  # noqa: E402

from hunch import lm  # noqa: E402
from hunch.methods.tune.recorded import Example  # noqa: E402
from hunch.roles.reward.preferences import Compared  # noqa: E402

ENV = "hunch/Recipes-v0"


FEW = ("--eval-episodes", "2")


def recorded(n=40, groups=True):
    """Good and bad answers of one group each."""
    rng, own = np.random.default_rng(0), []
    for i in range(n):
        request = recipes.requests("training")[i % 32]
        for text in (recipes.careful(request), recipes.careless(request, rng)):
            t = step(text, recipes.gold(request, text), State(str(request)))
            own.append(Episode((t,), group=i if groups else None))
    return own


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """A run of sft, long enough to write most words in a sensible order."""
    out = tmp_path_factory.mktemp("runs") / "writer"
    hunch.train(
        "sft", ENV, 800, lm=SCRATCH, streams=hunch.Streams(envs=8), out=out, batch_size=32, learning_rate=1e-2
    )
    return out


def test_a_model_from_scratch_learns_to_write_recipes_and_its_run_is_a_model(writer):
    before = made("sft", lm=SCRATCH)
    before.begin(World(examples=hunch.make(ENV).unwrapped.examples), 0)
    assert not any(recipes.is_valid(recipes.split_clauses(text)) for text in before.act([ASKED] * 8))
    agent, _ = load_agent(writer)
    model = lm.trainable(f"hf:{writer}")
    assert model.evidence == "L1"
    rngs = [np.random.default_rng(seed) for seed in range(64)]
    texts = [own.text for own in model.write([ASKED.observation] * 64, rngs)]
    assert np.mean([recipes.is_valid(recipes.split_clauses(text)) for text in texts]) > 0.5
    words = [agent.lm.as_written([ASKED.observation], [GOOD]), model.as_written([ASKED.observation], [GOOD])]
    scores = [
        float(own.evaluate([ASKED.observation], w).logprobs.sum().detach())
        for own, w in zip((agent.lm, model), words, strict=True)
    ]
    assert scores[1] >= scores[0] - 1e-3  # words that do not exist are no longer possible


def test_curated_demonstrations_are_the_best(writer):
    known = [Example(ASKED, str(i), float(i)) for i in range(20)]
    few = made("sft", lm=SCRATCH, curated=3)
    few.rng = np.random.default_rng(0)
    assert [own.reward for own in few.select(known)] == [19.0, 18.0, 17.0]
    some = made("sft", lm=SCRATCH, drawn=3)
    some.rng = np.random.default_rng(0)
    assert len(some.select(known)) == 3
    with pytest.raises(UsageError, match="Too few demonstrations: 20"):
        made("sft", lm=SCRATCH, curated=30).select(known)
    with pytest.raises(UsageError, match="give recorded ones"):
        few.select([Example(ASKED, "x")] * 5)


def contrast(n=60):
    found = []
    for i in range(n):
        request = recipes.requests("training")[i % 32]
        texts = recipes.careful(request), recipes.careless(request, np.random.default_rng(i))
        first, second = texts if i % 2 else texts[::-1]
        found.append(Compared(State(str(request)), first, second, float(i % 2)))
    return found


def test_a_reward_model_tells_better_from_worse_texts_that_it_has_not_seen():
    model, told = fitted(contrast())
    assert told["pair_accuracy"] >= 0.8
    [record] = model.records()
    assert (record["pairs"], record["equal"]) == (60, 0)
    texts = [recipes.careful(own) for own in recipes.requests("held out")] + [BAD] * 4
    states = [State(str(own)) for own in recipes.requests("held out")] * 2
    rewards = model.score(states, texts)
    assert rewards[:4].min() > rewards[4:].max()
    both = [own.state for own in model.pairs] or [own.state for own in contrast()]
    mean = np.mean(
        [
            *model.score(both, [o.first for o in contrast()]),
            *model.score(both, [o.second for o in contrast()]),
        ]
    )
    assert abs(mean) < 1e-4  # centred
    assert len(model.score(states[:1], [""])) == 1  # an empty text has a reward too


def test_an_ensemble_takes_the_mean_or_the_worst():
    states, texts = [ASKED] * 2, [GOOD, BAD]
    each = [fitted(contrast(20), ensemble=2, combine=how, reward_epochs=1)[0] for how in ("mean", "worst")]
    raw = [[model.score(states, texts) + model.mean for model in each]]
    assert (raw[0][1] <= raw[0][0] + 1e-6).all()
    assert not np.allclose(raw[0][1], raw[0][0])


def test_a_reward_that_is_not_finite_names_the_text():
    model, _ = fitted(contrast(10), reward_epochs=1)
    with torch.no_grad():
        model.members[0].head.bias.fill_(float("nan"))
    with pytest.raises(HunchError, match=f"'{GOOD}' the reward nan"):
        model.rewards([step(GOOD, 0.0)])


SMALL = {"pairs": 4, "reward_epochs": 1}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rlhf", {**SMALL, "demonstrations": 2, "ensemble": 2, "paired": True}),
        *(
            pytest.param(name, options, marks=pytest.mark.thorough)
            for name, options in (
                ("offline-rlhf", {"loss": "kto", "batch_size": 4}),
                ("sft", {"batch_size": 8}),
                ("rlhf", {**SMALL, "advantage": "leave_one_out", "group": 2, "rounds": 2, "ptx": 0.5}),
                ("best-of-n", {**SMALL, "n": 3}),
            )
        ),
    ],
)
def test_every_method_keeps_the_contract_from_a_model_that_writes(name, options, writer):
    """Also resume in the middle of each stage; from scratch and without options, test_registry does."""
    options = {"episodes": 4, **options} if name == "rlhf" else options
    made_one = made(name, lm=f"hf:{writer}", max_tokens=12, **options)
    methods.check(made_one, hunch.make(ENV), steps=20, streams=2)


def test_gold_and_success_never_reach_the_policy(writer, tmp_path):
    """With pairs from a file, another gold reward changes nothing that is learnt."""
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"prompt": str(own.state.observation), "chosen": own.first, "rejected": own.second}
        for own in contrast(16)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = []
    for terms in ("foods", "diet,length"):
        agent = made("rlhf", lm=f"hf:{writer}", labels=str(file), reward_epochs=1, episodes=8)
        result = hunch.train(agent, [hunch.make(ENV, terms=terms) for _ in range(4)], steps=32)
        runs.append(([e.actions for e in result.episodes], agent.agent.lm.state_dict()))
        assert {e.episode_return for e in result.episodes} != {0.0}
    assert runs[0][0] == runs[1][0]
    assert all(torch.equal(runs[1][1][name], own) for name, own in runs[0][1].items())


def test_the_policy_follows_the_reward_model_and_an_evaluation_says_how(writer, tmp_path):
    out = tmp_path / "run"
    options = {
        "pairs": 60,
        "noise": 0.0,
        "reward_epochs": 6,
        "episodes": 32,
        "kl": 0.0,
        "learning_rate": 1e-3,
    }
    hunch.train("rlhf", ENV, 700, lm=f"hf:{writer}", streams=hunch.Streams(envs=16), out=out, **options)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    learned = [line["intrinsic"] for line in lines if "intrinsic" in line]
    assert np.mean(learned[-3:]) > np.mean(learned[:3]) + 0.1
    score = evaluate_run(Trial(run=out, episodes=64))
    assert {"kl", "proxy", "length", "distinct"} <= score.figures.keys()
    assert score.figures["kl"] > 0.1
    assert lm.trainable(f"hf:{out}").evidence == "L1"


def test_selection_raises_the_learned_reward(writer):
    agent = made("best-of-n", lm=f"hf:{writer}", pairs=40, noise=0.0, n=8)
    hunch.train(agent, [hunch.make(ENV) for _ in range(8)], steps=160)
    states, rng = [State(str(own)) for own in recipes.requests("training")], np.random.default_rng(0)
    best = agent.text_metrics(states, agent.write(states, rng))
    assert best["kl"] == pytest.approx(np.log(8) - 7 / 8)
    agent.config = methods.settings.configure(type(agent), agent.config, {"n": 1})
    assert best["proxy"] > agent.text_metrics(states, agent.write(states, rng))["proxy"]


@pytest.mark.parametrize("loss", ["filter", "weighted", "dpo", "kto"])
def test_every_loss_prefers_the_better_texts(loss, writer):
    """Their likelihood rises beside that of the others."""
    data = recorded()
    agent = made(
        "offline-rlhf", lm=f"hf:{writer}", loss=loss, batch_size=16, learning_rate=3e-3, top=0.5, spread=0.3
    )
    agent.begin(World(steps=40, data=data), 0)

    def gap():
        with torch.no_grad():
            found = [agent.policy.likelihood([t.state.observation], [t.action]) for e in data for t in e]
        return float(np.mean(found[::2]) - np.mean(found[1::2]))

    before = gap()
    for _ in range(40):
        agent.learn()
    assert gap() > before + 0.05


LOSSES = ("likelihood", "filter", "weighted", "conditioned", "dpo", "kto")


@pytest.mark.parametrize(("name", "loss"), [("sft", None), *(("offline-rlhf", loss) for loss in LOSSES)])
def test_micro_accumulates_the_gradients_of_a_batch(name, loss):
    """Passes hold at most so many texts, or pairs, and the weights are those of whole batches."""
    options = {"loss": loss} if loss else {}
    every = []
    for micro in (64, 3):
        agent = made(name, lm=SCRATCH, batch_size=10, micro=micro, learning_rate=1e-3, **options)
        agent.begin(World(steps=20, data=recorded(12)), 0)
        sizes, evaluate = [], agent.policy.evaluate

        def noted(states, decisions, sizes=sizes, evaluate=evaluate, **how):
            sizes.append(len(states))
            return evaluate(states, decisions, **how)

        agent.policy.evaluate = noted
        losses = [agent.learn()["loss"] for _ in range(3)]
        every.append((losses, {key: own.clone() for key, own in agent.lm.state_dict().items()}))
        per_item = 2 if loss == "dpo" else 1
        assert max(sizes) == min(10, micro) * per_item
    (whole, one), (parts, other) = every
    np.testing.assert_allclose(whole, parts, rtol=1e-5)
    for key, weight in one.items():
        torch.testing.assert_close(other[key], weight, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("loss", "data", "said"),
    [
        ("dpo", recorded(4, groups=False), "the data have no groups"),
        (
            "conditioned",
            [Episode((step(GOOD, 0.0),))] * 4,
            "whose rewards differ, and here every reward is 0",
        ),
        ("filter", [Episode((step(GOOD, 0.0),))] * 4, "whose rewards differ"),
        ("dpo", [Episode((step(GOOD, r),), group=0) for r in (0.0, 1.0)], "two different texts"),
    ],
)
def test_data_that_a_loss_cannot_use_are_refused(loss, data, said, writer):
    agent = made("offline-rlhf", lm=f"hf:{writer}", loss=loss)
    with pytest.raises(UsageError, match=said):
        agent.begin(World(data=data, steps=10), 0)
    levels = made("offline-rlhf", lm=f"hf:{writer}", loss="conditioned")
    with pytest.raises(UsageError, match="no words for the levels"):
        levels.begin(World(data=recorded(4), steps=10), 0)


def test_a_writer_with_words_for_the_levels_can_be_conditioned(tmp_path):
    """The source begins with the model after SFT; the levels are told apart in its prompts from the start."""
    how = {"lm": SCRATCH, "batch_size": 8, "more_words": "0 1 2 3 4", "out": tmp_path / "writer"}
    hunch.train("sft", ENV, 4, streams=hunch.Streams(envs=2), **how)
    levels = made("offline-rlhf", lm=f"hf:{tmp_path / 'writer'}", loss="conditioned", batch_size=8)
    levels.begin(World(data=recorded(20), steps=10), 0)
    prompts = [levels.policy.prompt(example.state) for example in levels.examples]
    assert len({prompt.split()[0] for prompt in map(str, prompts)}) == 5
    assert np.isfinite(levels.learn()["loss"])


def test_data_of_a_model_have_groups_and_dpo_learns_from_them(writer, tmp_path, capsys):
    data, out = str(tmp_path / "data"), str(tmp_path / "run")
    main(
        [
            "data",
            "collect",
            "--env",
            ENV,
            "--out",
            data,
            "--mix",
            f"write:hf:{writer}",
            "--steps",
            "24",
            "--group",
            "4",
        ]
    )
    main(
        [
            "run",
            "offline-rlhf",
            "--env",
            ENV,
            "--lm",
            f"hf:{writer}",
            "--data",
            data,
            "--steps",
            "3",
            *FEW,
            "--out",
            out,
        ]
    )
    shown = str(tmp_path / "shown")
    main(["data", "collect", "--env", ENV, "--out", shown, "--mix", "examples", "--steps", "30"])
    main(
        [
            "run",
            "sft",
            "--env",
            ENV,
            "--lm",
            SCRATCH,
            "--data",
            shown,
            "--steps",
            "3",
            *FEW,
            "--curated",
            "5",
            "--out",
            f"{out}2",
        ]
    )
    assert "sft" in json.loads((tmp_path / "run2" / "config.json").read_text())["run"]["method"]
    main(["evaluate", f"{out}2", "--episodes", "2"])  # without the recorded texts


def test_answers_in_trls_columns_are_data(writer, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"prompt": ASKED.observation, "chosen": GOOD, "rejected": BAD}) + "\n")
    out = str(tmp_path / "run")
    main(
        [
            "run",
            "offline-rlhf",
            "--env",
            ENV,
            "--lm",
            f"hf:{writer}",
            "--data",
            str(file),
            "--steps",
            "2",
            *FEW,
            "--out",
            out,
        ]
    )
    rows = [{"prompt": ASKED.observation, "completion": text, "label": text == GOOD} for text in (GOOD, BAD)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(
        [
            "run",
            "offline-rlhf",
            "--loss",
            "kto",
            "--env",
            ENV,
            "--lm",
            f"hf:{writer}",
            "--data",
            str(file),
            "--steps",
            "2",
            *FEW,
            "--out",
            f"{out}2",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "lines", "said"),
    [
        (["rlhf", "--labels", "FILE"], '{"prompt": "a", "chosen": "b"}', "needs chosen and rejected"),
        (["rlhf", "--labels", "FILE"], '{"prompt": "a", "chosen": "b", "rejected": "b"}', "equal"),
        (["rlhf", "--labels", "judge", "--principles", "FILE"], "\n \n", "holds no principle"),
        (["rlhf", "--principles", "FILE"], "Be brief.", "set labels to judge"),
        (["rlhf", "--advantage", "leave_one_out"], "", "set group to at least 2"),
        (["rlhf", "--pairs", "600", "--steps", "1000"], "", "1,200 steps, and the run has 1,000"),
        (["best-of-n", "--labels", "/no/file"], "", "cannot be read"),
        (["sft", "--curated", "5", "--drawn", "5"], "", "choose one of them"),
        (["sft", "--lm", "openai:gpt-5"], "", "has no weights to train"),
        (["sft", "--lm", "scratch?width=65"], "", "multiple of twice the heads"),
        (["offline-rlhf"], "", "give a data set with --data"),
        (
            ["offline-rlhf", "--data", "FILE"],
            '{"prompt": "a", "chosen": "b", "rejected": "b"}',
            "two different texts",
        ),
        (
            ["offline-rlhf", "--data", "FILE", "--request", "7"],
            '{"prompt": "a", "completion": "b"}',
            "from 0 to 4",
        ),
        (
            ["offline-rlhf", "--data", "FILE"],
            '{"prompt": "a", "completion": "b"}',
            "whose rewards differ, and here every reward is 0",
        ),
        (
            ["offline-rlhf", "--loss", "kto", "--data", "FILE"],
            '{"prompt": "a", "completion": "b", "label": true}\n{"prompt": "a", "completion": "c"}',
            "Line 2 of .* needs a label or reward, because other lines have one",
        ),
    ],
)
def test_bad_input_is_one_sentence(arguments, lines, said, tmp_path, capsys, writer):
    import re

    file = tmp_path / "file.jsonl"
    file.write_text(lines + "\n")
    given = [str(file) if own == "FILE" else own for own in arguments]
    where = [] if "--lm" in given else ["--lm", f"hf:{writer}"]
    steps = [] if "--steps" in given else ["--steps", "4000"]
    with pytest.raises(SystemExit) as caught:
        main(["run", *given, "--env", ENV, *where, *steps, "--out", str(tmp_path / "out")])
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert re.search(said, told), told
    assert "Traceback" not in told
