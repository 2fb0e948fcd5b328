"""Studies: each can be set up, one is run for real, and what it writes agrees with itself."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

import hunch_studies as studies
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.lm import load, trainable
from hunch.runs.compare import Arm, Job
from hunch.runs.execute import RunConfig
from hunch_studies.priors import WRONG, error
from hunch_studies.rules import kitchen as scripted
from hunch_studies.study import FULL, SMOKE, Part, _section, chosen, conduct, kept, selected

WITHOUT_RUNS = (
    *("priors-offline", "priors-knowledge", "abilities", "saycan", "inner-monologue"),
    *("instruct-rl", "plan4mc", "plan4mc-written", "spring", "text-world-models", "arena"),
    *("beside-published", "proofs-written"),
)
"""Studies with parts that record data, and with parts without runs."""
RUN = Job(Arm("", None), 0, Path("run"))


@pytest.mark.parametrize("name", studies.names())
def test_every_study_can_be_set_up(name, tmp_path):
    study = studies.find(name)
    if study.command:  # it has options of its own, and no runs
        return
    parts = study.parts(SMOKE, tmp_path)
    assert parts
    for part in parts:
        assert part.arms or part.beside, "a part without runs has something else to tell"
        assert part.beside or part.measure or not part.apart, "so has one whose runs are not compared"
        if part.apart or not part.arms:
            continue
        labels = [arm.label for arm in part.arms]
        lines = labels if part.transfer is None else [t.out for t in part.transfer.tries([RUN], tmp_path)]
        assert len(set(labels)) == len(labels)
        assert len(set(lines)) == len(lines) > 1
        assert len({arm.folder for arm in part.arms}) == len(labels)
        differing = {"reader": "a model, which may differ", "explained": "what a blank prompt leaves out"}
        environments = {
            (arm.config.env, str(sorted({**arm.config.env_options, **differing}.items())))
            for arm in part.arms
        }
        assert len(environments) == 1, "lines of one part are compared with each other"
        assert len({arm.config.steps for arm in part.arms}) == 1, "at equal budgets"


def test_chosen_arms_have_results_or_the_page_says_why_not(tmp_path):
    """Runs of an hour must not end in an empty section."""
    for study in ("trained", "feedback"):
        for part in studies.find(study).parts(SMOKE, tmp_path):
            first = part.only([arm.label for arm in part.arms[:1]])
            is_measured = first.measure or not first.apart
            assert is_measured or "need all arms" in _section(first, [], 1, tmp_path)
    beds = [part for part in studies.find("trained").parts(SMOKE, tmp_path) if part.title == "Sums"]
    assert beds[0].only(["GRPO"]).measure


@pytest.mark.parametrize("name", studies.names())
def test_the_list_has_the_question_of_each_study(name):
    assert studies.question(name) == studies.find(name).question


def test_what_was_measured_is_not_measured_again(tmp_path):
    def rows(keys, **options):
        return kept(tmp_path / "a" / "rows.jsonl", keys, measured, **options)

    first = rows([("one", 1), ("two", 2)])
    assert [row["key"] for row in first] == [["one", 1], ["two", 2]]
    again = rows([("two", 2), ("three", 3), ("one", 1)], workers=2)
    assert [again[2], again[0]] == first
    assert again[1]["key"] == ["three", 3]
    assert again[1]["number"] not in [row["number"] for row in first]


def test_a_row_cut_short_by_a_kill_is_measured_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    first, second = kept(path, [("one", 1), ("two", 2)], measured)
    path.write_bytes(path.read_bytes()[:-20])
    assert kept(path, [("one", 1), ("two", 2)], measured)[0] == first
    assert kept(path, [("two", 2)], measured) != [second]
    assert len(path.read_bytes().splitlines()) == 2


def measured(label, seed):
    """A row that never comes twice."""
    return {"number": time.monotonic_ns()}


@pytest.mark.parametrize("name", ["arena", "beside-published", "ladder-pick", "ladder-kitchen"])
def test_two_models_of_one_name_are_refused(name, tmp_path):
    lms = ("hf:one/SmolLM2-135M-Instruct.Q4_1.gguf?batch=8", "smollm2")
    with pytest.raises(UsageError, match="Two of these models have one name"):
        studies.find(name).parts(replace(SMOKE, lms=lms), tmp_path)


def test_a_part_that_needs_runs_of_another_says_which(tmp_path):
    study = studies.find("game-models")
    with pytest.raises(UsageError, match="no finished run: first run the part kuhn-poker"):
        conduct(study, tmp_path, replace(SMOKE, parts=("Play",)), watch=lambda part, todo: lambda lines: None)


def test_the_page_tells_of_a_model_that_is_trained(tmp_path):
    """It has no revision."""
    train = RunConfig(method="glam", env="hunch/BabyAI-GoToObj-v0", env_options={"max_steps": 4}, steps=8)
    listed = (Arm("GLAM", train), Arm("prior", replace(train, method="zero-shot", lm="uniform")))
    study = replace(studies.find("glam"), parts=lambda scale, data: [Part("Small", listed)])
    page = conduct(study, tmp_path, SMOKE, workers=1, watch=lambda part, todo: lambda lines: None)
    assert "Revisions of the models: `uniform` 1." in page.read_text()


def test_an_unknown_study_is_named():
    with pytest.raises(UsageError, match="priors-online"):
        studies.find("priors-onlin")


@pytest.mark.parametrize("name", studies.names())
def test_a_model_of_ones_own_adds_lines_where_it_is_taken(name, tmp_path):
    study = studies.find(name)
    if name in WITHOUT_RUNS:
        return
    models = []
    for scale in (SMOKE, replace(SMOKE, lms=("openai:mine",))):
        parts = study.parts(scale, tmp_path)
        assert scale.smoke
        arms = [arm.config for part in parts for arm in part.arms]
        models.append([c.lm for c in arms])
        models[-1] += [str(getattr(c.options, name, "")) for c in arms for name in ("encoder", "proposer")]
        models[-1] += [str(c.env_options.get("lm", "")) for c in arms]
        models[-1] += [f.lm for part in parts if part.transfer for f in part.transfer.fillings]
    assert (models[0] != models[1]) == bool(study.lm_for)
    assert ("openai:mine" in models[1]) == bool(study.lm_for)


def test_parts_and_arms_can_be_chosen(tmp_path):
    study = studies.find("priors-transfer")
    (part,) = chosen(study, replace(SMOKE, parts=("SALAD",)), tmp_path)
    assert part.title == "Overcooked-Salad"
    assert part.transfer
    learned = studies.find("priors-learned")
    (part,) = chosen(learned, replace(SMOKE, arms=("random k", "DQN-Prior, words")), tmp_path)
    assert [arm.label for arm in part.arms] == ["DQN-Prior, random k", "DQN-Prior, words"]
    assert part.transfer is None
    assert part.beside is None
    with pytest.raises(UsageError, match=r"no part .soup.; it has .*Overcooked-Salad"):
        chosen(study, replace(SMOKE, parts=("soup",)), tmp_path)
    with pytest.raises(UsageError, match="no arm 'soup'; it has DQN-Prior"):
        chosen(study, replace(SMOKE, arms=("soup",)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_not_taken_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["study", "priors-k", "--lm", "uniform"])
    assert (
        "--lm is for abilities, icpi, icpi-models, icpi-roles, icpi-written, priors-knowledge"
        in capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        main(["study", "priors-transfer", "--lm", "minilmm"])
    assert "did you mean 'minilm'" in capsys.readouterr().err


def test_a_model_to_be_taken_is_checked_without_its_weights(tmp_path, reads, capsys, monkeypatch):
    """They would stay in the memory of a process that only starts the runs."""
    trainable("scratch").save(tmp_path / "model")
    reads.clear()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):  # what comes after the check
        main(["study", "ladder-pick", "--lm", "hf:model", "--arm", "soup"])
    assert "no arm 'soup'" in capsys.readouterr().err
    assert reads == [True]
    (tmp_path / "model" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(SystemExit):
        main(["study", "ladder-pick", "--lm", "hf:model"])
    assert "model.safetensors does not match its checksum" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_error_rates_leave_the_stated_recall():
    for recall, wrong in WRONG.items():
        assert 1 - wrong**5 == pytest.approx(recall, abs=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_scripted_kitchen_has_the_stated_recall(share):
    """Counted over states and draws, also where errors stay and k answers are no better than one."""
    rule = load(f"scripted:first?error={error(0.8, 5, share)}&systematic={share}")
    prompts = [f"> look\nRoom {i}.\n- a\n- b\n- c\n- d\n>" for i in range(1500)]
    hits = ["a" in answers for answers in rule.generate(prompts, 5)]
    assert sum(hits) / len(hits) == pytest.approx(0.8, abs=0.03)


def test_the_kitchen_rule_cooks(monkeypatch):
    import hunch
    from hunch.core import State
    from hunch.roles.prior.language import prompt

    for task, best in (("Tomato", 1.110284), ("Salad", 1.338102)):
        for history in (0, 3):
            env = hunch.make(f"hunch/Overcooked-{task}-v0", history=history)
            (observation, info), total, over = env.reset(seed=0), 0.0, False
            while not over:
                state = State.read(observation, info)
                action = scripted.kitchen(prompt(state), state.actions)
                observation, reward, terminated, truncated, info = env.step(action)
                total, over = total + reward, terminated or truncated
            assert total == pytest.approx(best, abs=1e-6)


def test_the_kitchen_rule_answers_as_a_model():
    model = load("scripted:kitchen")
    prompt = "There is a fixed cutting board in the room.\n- pick up the tomato\n- serve nothing"
    assert model.generate([prompt]) == [["pick up the tomato"]]


@pytest.mark.slow
def test_a_study_by_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["study", "priors-cache", "--smoke"])
    folder = tmp_path / "runs" / "study-priors-cache-smoke"
    page = (folder / "page.md").read_text()
    (part,) = studies.find("priors-cache").parts(SMOKE, tmp_path)
    table = json.loads((folder / part.folder / "table.json").read_text())
    assert [row["label"] for row in table] == [arm.label for arm in part.arms]
    for row in table:
        assert f"{row['calls']:,} |" in page
    assert table[1]["calls"] > table[0]["calls"], "fresh proposals ask more"
    assert (folder / part.folder / "curves.png").exists()
    assert "smoke run" in page
    written = (folder / part.folder / "proposals-kept" / "seed-0" / "metrics.jsonl").read_bytes()
    main(["study", "priors-cache", "--smoke"])
    assert (folder / part.folder / "proposals-kept" / "seed-0" / "metrics.jsonl").read_bytes() == written
    assert FULL.steps(100_000) == 100_000


def test_an_exact_name_chooses_only_itself():
    labels = ["CQL", "CQL-Prior", "offline DQN"]
    assert selected(labels, ("cql",)) == {"CQL"}
    assert selected(labels, ("prior", "DQN")) == {"CQL-Prior", "offline DQN"}
    assert selected(labels, ("cq",)) == {"CQL", "CQL-Prior"}
    assert selected(labels, ()) == set(labels)
