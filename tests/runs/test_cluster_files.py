"""The files of a run that go from one machine of a cluster to another; this needs no cluster."""

from hunch.methods.prior.dqn_prior import DQNConfig
from hunch.runs.checkpoints import CHECKPOINT
from hunch.runs.cluster import pack, unpack
from hunch.runs.execute import RunConfig, execute
from hunch.runs.stored import finished

SMALL = DQNConfig(hidden=4, warmup=10, batch_size=4, encoder="bag-of-words?dim=8")


def names_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_all_files_of_a_run_come_home(tmp_path):
    """What a search writes (best.py), the model that a method trains, and first answers are among them."""
    away, home = tmp_path / "away", tmp_path / "home"
    config = RunConfig(method="dqn", env="hunch/FrozenLake-v0", options=SMALL, steps=60, keep_every=20)
    execute(config, away)
    (away / "model").mkdir()
    for name in ("best.py", "first_answers.json", "model/weights.bin", "metrics.jsonl.tmp"):
        (away / name).write_bytes(name.encode())

    files = pack(away)
    unpack(home, files)
    assert names_in(home) == names_in(away) - {".lock", "metrics.jsonl.tmp"}
    assert all((home / name).read_bytes() == (away / name).read_bytes() for name in names_in(home))
    assert finished(home) == finished(away)

    order = list(files)
    assert order.index("episodes.jsonl") < order.index(str(CHECKPOINT)) < order.index("summary.json")
    assert order.index("config.json") < order.index("metrics.jsonl")


def test_kept_checkpoints_that_are_gone_go_at_home_as_well(tmp_path):
    away, home = tmp_path / "away", tmp_path / "home"
    config = RunConfig(method="dqn", env="hunch/FrozenLake-v0", options=SMALL, steps=40, keep_every=20)
    execute(config, away)
    unpack(home, pack(away))
    (away / "checkpoints" / "20" / "agent.pt").unlink()
    unpack(home, pack(away))
    assert names_in(home) == names_in(away) - {".lock"}
