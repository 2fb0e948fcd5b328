"""A report: its numbers are those of the statistics, its episodes those of the runs, its texts only text."""

import base64
import csv
import json
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.hostile import EVIL

import hunch
from hunch import envs
from hunch.cli.main import main
from hunch.core import UsageError
from hunch.methods.prior.zero_shot import ZeroShotConfig
from hunch.report.curves import FEWEST, X, Y, learning_curve, points
from hunch.report.episodes import choose, episodes_of
from hunch.report.gather import collect
from hunch.report.kept import difference, kept
from hunch.report.pack import digits, encode, pack
from hunch.report.page import page
from hunch.report.table import rows, verdict
from hunch.rl.rollout import Finished
from hunch.rl.statistics import compared, over_seeds
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_json, read_lines, write_json
from hunch.runs.loading import load_agent
from hunch.runs.models import Loaded
from hunch.runs.stored import finished

FINITE = st.floats(-1e9, 1e9)


def unpacked(block):
    return json.loads(block if block.startswith("{") else zlib.decompress(base64.b64decode(block)))


def embedded(text):
    """The JSON of a page, found as a browser finds it: up to the first end tag."""
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script', text, re.DOTALL)[1]
    )


@pytest.fixture(scope="module")
def made(runs):
    return page(*collect([runs]), episodes=4)


@pytest.fixture
def copied(runs, tmp_path):
    return Path(shutil.copytree(runs, tmp_path / "runs"))


def test_scores_are_those_of_the_statistics(made, runs):
    lake = next(c for c in embedded(made)["comparisons"] if "Lake" in c["title"])
    assert [arm["label"] for arm in lake["arms"]] == ["dqn-prior, random k", "zero-shot"]
    scores = []
    for arm, name in zip(lake["arms"], ("dqn-prior", "zero-shot"), strict=True):
        results = [finished(runs / name / f"seed-{seed}") for seed in range(2)]
        scores.append([result.success.value for result in results])
        estimate = over_seeds(scores[-1])
        assert arm["final"]["success"] == [digits(x) for x in (estimate.value, estimate.low, estimate.high)]
        costs, asked = arm["costs"], [result.models for result in results]
        for role, option in (("action prior", "lm"), ("encoder", "encoder")):
            own = [models[option] for models in asked if option in models]
            total = sum(usage["calls"] + usage["cache_hits"] for usage in own)
            assert costs.get(f"requests, {role}", 0) == total
        assert arm["costs"]["model calls"] == sum(result.usage["calls"] for result in results)
        assert arm["evidence"] == "L0"
        lines = [read_lines(runs / name / f"seed-{seed}" / "metrics.jsonl") for seed in range(2)]
        for x in X:
            for y in Y:
                expected = learning_curve([points(each) for each in lines], x, y)
                assert arm["curves"][f"{x} {y}"]["value"] == [digits(v) for v in expected.value]
    found = compared(*scores, best=1.0)
    missing = "2 pairs of seeds, 3 are needed"
    assert lake["beats"]["success"][0][1] == [found.said, found.size] == ["cannot be shown here", missing]
    assert lake["beats"]["success"][0][0] is None
    assert lake["verdict"] == [], "no model fills a role"


def test_the_verdict_of_the_page_is_that_of_the_table(tmp_path):
    lake = {"env": "hunch/FrozenLake-v0", "steps": 100}
    for lm in ("uniform", "scripted:frozenlake"):
        for seed in range(3):
            config = RunConfig(method="zero-shot", seed=seed, lm=lm, options=ZeroShotConfig(), **lake)
            execute(config, tmp_path / f"{lm[:7]}-{seed}")
    found = embedded(page(*collect([tmp_path])))["comparisons"][0]
    assert found["verdict"] == verdict(rows(collect([tmp_path])[0][0].outcomes))
    assert len(found["verdict"]) == 1
    assert found["verdict"][0].endswith(": shown, by 1.00 [1.00, 1.00]")
    said = sorted(cell[0] for row in found["beats"]["success"] for cell in row if cell)
    assert said == ["cannot be shown here", "shown"], "there is no room above an arm that always succeeds"


def test_seeds_with_their_own_games_are_one_arm(tmp_path):
    """Beside an arm whose games are the same for all seeds."""
    one = "compare zero-shot --env hunch/Household-Pick-v0 --env.games 1 --lm scripted:first --no-control"
    for pools in ("seed", "0"):
        main([*one.split(), "--steps", "20", "--env.pool_seed", pools, "--out", f"{tmp_path / pools}"])
    for pools in ("seed", "0"):
        (found,), _ = collect([tmp_path / pools])
        assert found.title == f"Household-Pick-v0 (games=1, pool_seed={pools}), 20 steps"
        ((_, members),) = found.arms.items()
        drawn = [run.config.env_options["pool_seed"] for run in members]
        assert drawn == ([0, 1, 2] if pools == "seed" else [0] * 3)


def test_every_episode_is_there_with_its_texts(made, runs):
    data = embedded(made)
    words = unpacked(data["words"])
    for run, packed in zip(data["runs"], data["blocks"], strict=True):
        block, lines = unpacked(packed), read_lines(runs / run["name"] / "episodes.jsonl")
        lines = sorted(lines, key=lambda line: line["evaluation"])
        assert [words["texts"][i] for i in block["actions"]] == [a for line in lines for a in line["actions"]]
        assert block["seed"] == [line["seed"] for line in lines]
        assert block["training"] == sum(not line["evaluation"] for line in lines)
        assert block["seen"] == list(range(len(lines)))
        assert sum(block["rewards"]) == pytest.approx(sum(line["return"] for line in lines))
        env = envs.make("Hostile-v0" if run["name"] == "hostile" else "hunch/FrozenLake-v0", history=0)
        first, info = env.reset(seed=lines[0]["seed"])
        assert words["texts"][block["answers"][0]] == first
        assert [words["texts"][i] for i in words["offers"][block["offers"][0]]] == list(info["actions"])
        for episode, steps in block["opinions"].items():
            assert len(steps) == block["length"][int(episode)]
            assert all(sum(step["posterior"]) == pytest.approx(1, abs=1e-2) for step in steps)
        assert len(block["opinions"]) == 4


def test_the_same_folders_give_the_same_page(made, runs):
    assert page(*collect([runs]), episodes=4) == made


def test_texts_are_never_markup(made):
    assert EVIL.splitlines()[0] in json.dumps(unpacked(embedded(made)["words"]), ensure_ascii=False)
    assert "window.hacked" not in made


def test_plain_blocks_hold_the_same_and_stay_text(runs, made):
    plain = page(*collect([runs]), episodes=4, plain=True)
    a, b = embedded(plain), embedded(made)
    assert list(map(unpacked, a["blocks"])) == list(map(unpacked, b["blocks"]))
    assert "window.hacked" in plain
    assert plain.count("<script") == made.count("<script") == 2
    assert plain.count("</script") == 2
    assert "<!--" not in plain


def test_nothing_is_loaded(made):
    head = made.partition('id="data">')[0] + made.rpartition("<script>")[2]
    assert re.findall(r'(?:src|href)="(?!#)|url\(|@import|https?://(?!www\.w3\.org/2000/svg)', head) == []


def test_a_small_page_keeps_all_actions_and_what_was_explained(runs):
    comparisons, _ = collect([runs])
    tales = [episodes_of(run, 3) for c in comparisons for members in c.arms.values() for run in members]
    whole = [unpacked(block) for block in pack(tales)[1]]
    small = [unpacked(block) for block in pack(tales, largest=1)[1]]
    for all_of_it, rest in zip(whole, small, strict=True):
        assert len(rest["actions"]) == len(all_of_it["actions"])
        assert len(rest["seen"]) < len(all_of_it["seen"])
        assert {int(i) for i in rest["opinions"]} <= set(rest["seen"])


def damage_line(file):
    file.write_text('{"step": 1}\n' + file.read_text())


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("config.json", Path.unlink, "config.json is missing"),
        ("config.json", lambda file: file.write_text("{"), "damaged"),
        ("config.json", lambda file: file.write_text('{"run": {}}'), "damaged"),
        ("config.json", lambda file: file.write_bytes(b"\xff\xfe"), "damaged"),
        ("summary.json", Path.unlink, "not complete"),
        ("summary.json", lambda file: file.write_text("[]"), "damaged"),
        ("episodes.jsonl", Path.unlink, "episodes.jsonl is missing"),
        ("episodes.jsonl", lambda file: file.write_text(file.read_text()[:500]), "holds"),
        ("episodes.jsonl", damage_line, "damaged"),
        ("metrics.jsonl", Path.unlink, "metrics.jsonl is missing"),
        ("metrics.jsonl", lambda file: file.write_text("nonsense\n"), "damaged"),
        ("metrics.jsonl", lambda file: file.write_text(file.read_text()[:500]), "truncated"),
        ("metrics.jsonl", damage_line, "damaged"),
        ("failure.txt", lambda file: file.write_text("it ran out of luck"), "out of luck"),
    ],
)
def test_a_damaged_folder_is_named_and_left_out(copied, file, damage, reason):
    damage(copied / "zero-shot" / "seed-1" / file)
    comparisons, left_out = collect([copied])
    assert [each.name for each in left_out] == ["zero-shot/seed-1"]
    assert reason in left_out[0].reason
    assert sum(len(runs) for c in comparisons for runs in c.arms.values()) == 4
    shown = embedded(page(comparisons, left_out, episodes=0))["leftOut"]
    assert shown == [["zero-shot/seed-1", left_out[0].reason]]


def test_a_run_counts_once(copied):
    shutil.copytree(copied / "zero-shot" / "seed-0", copied / "again")
    comparisons, left_out = collect([copied, copied / "zero-shot"])
    assert "settings and seed" in left_out[0].reason
    assert sum(len(runs) for c in comparisons for runs in c.arms.values()) == 5


def test_without_its_environment_a_run_keeps_its_actions(copied):
    file = copied / "hostile" / "config.json"
    record = read_json(file)
    write_json(file, {**record, "run": {**record["run"], "env": "Gone-v0"}})
    (copied / "zero-shot" / "seed-0" / "checkpoint" / "state.pt").unlink()
    data = embedded(page(*collect([copied]), episodes=2))
    blocks = {run["name"]: unpacked(block) for run, block in zip(data["runs"], data["blocks"], strict=True)}
    gone, unasked = blocks["hostile"], blocks["zero-shot/seed-0"]
    assert "no environment" in gone["reason"]
    assert gone["seen"] == []
    assert len(gone["actions"]) == sum(gone["length"]) > 0
    assert "no checkpoint" in unasked["whyNoOpinions"]
    assert unasked["seen"]


def test_an_environment_that_changed_is_not_believed(copied):
    file = copied / "dqn-prior" / "seed-0" / "episodes.jsonl"
    lines = read_lines(file)
    lines[0]["return"] += 1
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run, *_) = next(iter(collect([file.parent])[0][0].arms.values()))
    assert "did not repeat the episode" in episodes_of(run, 0).reason


def test_the_command_writes_page_picture_and_table(runs, tmp_path, capsys):
    out = tmp_path / "r.html"
    main(["report", str(runs), "--out", str(out), "--episodes", "1"])
    assert out.read_text().startswith("<!doctype html>")
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(out.with_suffix(".csv").open()))
    assert len(rows) == 3
    assert {row["environment"] for row in rows} == {"hunch/FrozenLake-v0", "Hostile-v0"}
    curves = list(csv.DictReader(out.with_suffix(".curves.csv").open()))
    assert {(row["arm"], row["seeds"]) for row in curves} == {(row["label"], row["seeds"]) for row in rows}
    assert all(0 <= float(row["success"]) <= 1 and int(float(row["steps"])) > 0 for row in curves)
    said = capsys.readouterr().out
    assert "r.png" in said
    assert "r.curves.csv" in said
    names = re.findall(r"^\d of 5: (\S+)$", said, re.MULTILINE)
    assert sorted(names) == sorted(
        path.parent.relative_to(runs).as_posix() for path in runs.rglob("summary.json")
    )


def test_an_arm_of_a_comparison_has_its_name_and_place_in_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = ("compare", "dqn-prior", "--env", "hunch/FrozenLake-v0", "--lm", "minilm", "--steps", "40")
    main([*line, "--seeds", "1", "--out", "both"])
    (comparison,), _ = collect([Path("both")])
    labels = [row["label"] for row in json.loads(Path("both/table.json").read_text())]
    assert [arm.label for arm in comparison.arms] == labels
    assert len(labels) > 1  # with its controls
    Path("both/table.json").write_text("[{")
    assert len(collect([Path("both")])[0][0].arms) == len(labels)


def test_arms_of_two_comparisons_with_one_name_are_distinguished(tmp_path):
    """Both are zero-shot in their comparison, at another place of its table; only a setting differs."""
    for name, turns, labels in (("a", 2, ["zero-shot"]), ("b", 3, ["another", "zero-shot"])):
        for seed in range(3):
            config = RunConfig(
                method="zero-shot",
                env="hunch/FrozenLake-v0",
                lm="scripted:first",
                steps=40,
                seed=seed,
                options=ZeroShotConfig(turns=turns),
            )
            execute(config, tmp_path / name / "zero-shot" / f"seed-{seed}")
        (tmp_path / name / "table.json").write_text(json.dumps([{"label": label} for label in labels]))
    (comparison,), left_out = collect([tmp_path])
    assert not left_out
    assert [arm.label for arm in comparison.arms] == ["zero-shot (turns=2)", "zero-shot (turns=3)"]
    line = verdict(rows(comparison.outcomes))[0]
    assert line.startswith("zero-shot (turns=2) (L0) over zero-shot (turns=3): ")


def test_runs_that_are_told_share_their_models(runs):
    loaded = Loaded()
    agents = [load_agent(runs / "dqn-prior" / f"seed-{seed}", loaded=loaded)[0] for seed in range(2)]
    assert set(loaded) == {"uniform", "minilm"}
    first, second = (agent.models["encoder"] for agent in agents)
    assert first is not second, "each has a meter of its own"
    assert first.model is second.model


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name folders"),
        (["nowhere"], "There is no folder nowhere"),
        (["."], "nothing to report"),
        ([".", "--out", "r.pdf"], "HTML"),
    ],
)
def test_wrong_use_is_one_sentence(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["report", *arguments])
    assert left.value.code == 2
    assert sentence in capsys.readouterr().err


def test_damaged_folders_alone_are_wrong_use(runs, tmp_path):
    shutil.copytree(runs / "hostile", tmp_path / "one")
    (tmp_path / "one" / "summary.json").unlink()
    with pytest.raises(UsageError, match=r"one: it is not complete"):
        collect([tmp_path])


episodes = st.lists(
    st.builds(Finished, st.just(0), st.just(1), FINITE, st.integers(1, 50), st.booleans(), st.just(("a",)))
)


@given(episodes, st.integers(0, 60))
def test_the_chosen_episodes(played, number):
    chosen = choose(played, number)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(number, len(played))
    if number >= 4 and played:
        returns = [played[i].episode_return for i in chosen]
        assert {0, len(played) - 1} <= set(chosen)
        assert max(returns) == max(e.episode_return for e in played)
        assert min(returns) == min(e.episode_return for e in played)


@given(st.floats())
def test_digits_are_short_and_near(value):
    short = digits(value)
    if short is None:
        assert not abs(value) < 1.7e308
    else:
        assert short == pytest.approx(value, rel=1e-5)


@given(st.text())
def test_packing_loses_nothing(text):
    assert unpacked(encode({"text": text})) == unpacked(encode({"text": text}, plain=True)) == {"text": text}


def line(step, calls, success):
    usage = {"calls": calls, "cache_hits": 1, "prompt_tokens": 2 * calls, "completion_tokens": calls}
    return {
        "step": step,
        "episodes": step,
        "success": success,
        "return": success,
        "seconds": step,
        "usage": usage,
    }


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=20))
def test_a_curve_over_equal_seeds_is_that_of_one(increments):
    calls = np.cumsum([more for more, _ in increments])
    run = points(
        [line(FEWEST + i, int(c), s) for i, (c, (_, s)) in enumerate(zip(calls, increments, strict=True))]
    )
    for x in X:
        curve = learning_curve([run, run, run], x, "success")
        assert curve.value == pytest.approx(curve.low)
        assert curve.value == pytest.approx(curve.high)
        assert curve.value[-1] == pytest.approx(increments[-1][1])
        assert (curve.x[0], curve.x[-1]) == (run[x][0], run[x][-1])


def test_a_cheaper_seed_keeps_its_last_value():
    dear = points([line(10, 100, 0.0), line(20, 200, 0.0)])
    cheap = points([line(10, 1, 1.0), line(20, 2, 1.0)])
    curve = learning_curve([dear, cheap], "calls", "success")
    assert curve.x[-1] == 200
    assert curve.value == pytest.approx(np.full(len(curve.x), 0.5))


def test_no_curve_before_enough_episodes():
    assert learning_curve([points([line(FEWEST - 1, 1, 1.0)])], "steps", "success") is None


def test_a_run_whose_trials_all_failed_has_a_curve_without_returns():
    failed = [{**line(number, number, 0.0), "failed": 1.0} for number in (10, 20)]
    for one in failed:
        del one["return"]
    drawn = points(failed)
    assert list(drawn["success"]) == [0.0, 0.0]
    assert np.isnan(drawn["return"]).all()


def test_a_single_run_has_the_interval_over_its_episodes(made, runs):
    hostile = next(c for c in embedded(made)["comparisons"] if "Hostile" in c["title"])
    success = finished(runs / "hostile").success
    ends = (success.value, success.low, success.high)
    assert hostile["arms"][0]["final"]["success"] == [digits(x) for x in ends]


def test_what_a_method_logged_can_be_drawn(made, runs):
    lake = next(c for c in embedded(made)["comparisons"] if "Lake" in c["title"])
    assert "loss" in lake["more"]
    learner, idler = (arm["curves"] for arm in lake["arms"])
    lines = [read_lines(runs / "dqn-prior" / f"seed-{seed}" / "metrics.jsonl") for seed in range(2)]
    last = np.mean([[line["loss"] for line in own if "loss" in line][-1] for own in lines])
    assert learner["steps loss"]["value"][-1] == pytest.approx(last, rel=1e-3)
    assert "steps loss" not in idler


def test_a_run_of_an_agent_made_in_python_is_reported(tmp_path):
    class Mine(hunch.methods.ZeroShot):
        """An agent of somebody's own, which no id makes again."""

    agent = Mine(hunch.roles.UniformPrior())
    hunch.train(agent, "hunch/FrozenLake-v0", 200, out=tmp_path / "mine")
    hunch.train("zero-shot", "hunch/FrozenLake-v0", 200, lm="uniform", out=tmp_path / "theirs")
    data = embedded(page(*collect([tmp_path]), episodes=2))
    assert [arm["label"] for arm in data["comparisons"][0]["arms"]] == ["zero-shot", "Mine"]
    block = unpacked(data["blocks"][1])
    assert "agent=..." in block["whyNoOpinions"]
    assert block["seen"]


def test_every_program_is_told_with_its_difference(programs):
    lines = read_lines(programs / "funsearch" / "programs.jsonl")
    texts = {line["number"]: line["program"] for line in lines}
    runs = [
        run for comparison in collect([programs])[0] for group in comparison.arms.values() for run in group
    ]
    told = next(own for block in kept(runs) if (own := unpacked(block)) and "number" in own[0])
    assert [entry["number"] for entry in told] == [line["number"] for line in lines]
    for entry, line in zip(told, lines, strict=True):
        assert entry["fitness"] == line["fitness"]
        after = [text for mark, text in entry["code"] if mark in " +"]
        assert after == line["program"].splitlines()
        if entry["parent"] is not None:
            assert entry["parent"] == line["parents"][-1]
            before = [text for mark, text in entry["code"] if mark in " -"]
            assert before == texts[entry["parent"]].splitlines()
    scored = [entry for entry in told if entry["fitness"] is not None]
    assert max(scored, key=lambda entry: entry["fitness"])["best"]


def test_a_long_search_keeps_the_best_and_its_ancestors_whole(programs):
    runs = [
        run for comparison in collect([programs])[0] for group in comparison.arms.values() for run in group
    ]
    told = next(own for block in kept(runs, largest=10) if (own := unpacked(block)) and "number" in own[0])
    assert all("code" in entry for entry in told if entry["best"])
    assert any("code" not in entry for entry in told)


@given(st.lists(st.sampled_from("abc ")), st.lists(st.sampled_from("abc "), min_size=1))
def test_a_difference_holds_both_texts(before, after):
    lines = difference("\n".join(["x", *before]), "\n".join(["x", *after]))
    assert [text for mark, text in lines if mark in " -"] == "\n".join(["x", *before]).splitlines()
    assert [text for mark, text in lines if mark in " +"] == "\n".join(["x", *after]).splitlines()


def test_hostile_lines_stay_text(programs):
    data = embedded(page(*collect([programs]), episodes=0))
    (diary,) = (own for block in data["kept"] if (own := unpacked(block)) and "title" in own[0])
    assert dict(diary[0]["fields"])["plan"] == [EVIL, "go"]
    assert dict(diary[0]["fields"])["worked"] == ["yes", "no"]
