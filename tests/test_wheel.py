"""What is published holds what is needed, and nothing else: the wheels, from the source distributions."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from hunch.lm.backends.folders import fingerprint
from hunch.methods.registry import CONTRIB

ROOT = Path(__file__).parent.parent
MEGABYTE = 1_000_000
RUN = ("run", "--env", "hunch/Chain-v0", "--steps", "1", "--lm")


def built(folder, out):
    """Build the source distribution of a folder, and from it the wheel; return the wheel's path."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def pocket(tmp_path_factory):
    return built(ROOT / "pocket", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def contrib(tmp_path_factory):
    return built(ROOT / "contrib", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A folder of packages with the wheel and all libraries, but nothing else of this repository."""
    site = tmp_path_factory.mktemp("site")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "hunch" not in path.name and path.suffix != ".pth":
            (site / path.name).symlink_to(path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def python(site, *arguments):
    """Run Python with the packages of a folder alone."""
    command = [sys.executable, "-S", "-P", *arguments]
    return subprocess.run(
        command, cwd=site, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True
    )


def packed(wheel, package):
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith(f"{package}/")}


def tracked(folder):
    command = ["git", "ls-files", "-co", "--exclude-standard", "."]
    listed = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel):
    assert packed(wheel, "hunch") == tracked("src")


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"hunch", "hunch_rl-0.1.0.dist-info"}
    rooms = {name.split("/")[1] for name in packed(wheel, "hunch")}
    assert not rooms & {"rules", "studies", "laboratory", "recordings"}
    assert wheel.stat().st_size < 6 * MEGABYTE


@pytest.mark.slow
def test_the_other_weights_are_a_wheel_of_their_own(pocket, tmp_path):
    files = {name for name in tracked("pocket") if name.startswith("hunch_pocket/")}
    assert packed(pocket, "hunch_pocket") == files
    with zipfile.ZipFile(pocket) as archive:
        archive.extractall(tmp_path)
    for corpus in (
        "examples",
        "walks",
        "clip",
        "statements",
    ):  # a revision is of names and contents, wherever the folder is
        assert fingerprint(tmp_path / "hunch_pocket" / corpus) == fingerprint(
            ROOT / "pocket/hunch_pocket" / corpus
        )


@pytest.mark.slow
def test_the_methods_of_contrib_are_a_wheel_of_their_own(site, contrib, tmp_path):
    """Beside the library's own wheel it adds its methods, and nothing else is needed."""
    assert packed(contrib, "hunch_contrib") == {
        name for name in tracked("contrib") if name.startswith("hunch_contrib/")
    }
    both = tmp_path / "site"
    both.mkdir()
    for path in site.iterdir():
        (both / path.name).symlink_to(path)
    with zipfile.ZipFile(contrib) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {
            "hunch_contrib",
            "hunch_rl_contrib-0.1.0.dist-info",
        }
        archive.extractall(both)
    listed = (
        "from hunch.methods import names, registered; print(*names()); assert tuple(registered()) == names()"
    )
    alone, together = (python(place, "-c", listed).stdout.split() for place in (site, both))
    assert together[: len(alone)] == alone
    assert set(together) - set(alone) == set(CONTRIB)
    done = python(both, "-m", "hunch", "run", "likelihood-value", *RUN[1:], "uniform")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_without_contrib_its_methods_are_named_with_the_package(site):
    done = python(site, "-m", "hunch", "methods")
    assert done.returncode == 0, done.stderr
    assert f"{len(CONTRIB)} more are in the package hunch-rl-contrib: pip install" in done.stdout
    (site / "kept").mkdir()
    kept = {"method": "rain", "env": "hunch/Chain-v0", "options": {}}
    (site / "kept" / "config.json").write_text(json.dumps({"run": kept}))
    read = python(site, "-m", "hunch", "evaluate", "kept")
    assert read.returncode == 2
    assert read.stderr.startswith("hunch: kept cannot be read: rain is in the package hunch-rl-contrib: pip ")
    class_of = python(site, "-c", "import hunch; hunch.methods.RAIN")
    assert "it is in the package hunch-rl-contrib" in class_of.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_command_runs_from_the_wheel(site):
    program = "import hunch; print(hunch.__file__); from hunch.cli.main import main; main(['sandbox'])"
    done = python(site, "-c", f"{program}; main(['lm', 'pocket?corpus=households'])")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
    assert "isolation" in done.stdout


@pytest.mark.slow
def test_rules_come_with_the_wheel(site):
    """All but those that know worlds of the studies."""
    load = "from hunch import lm; from hunch.lm.rules import HOMES; print(*HOMES)"
    done = python(
        site, "-c", f"{load}; [lm.load(f'scripted:{{name}}') for name in ('first', 'overlap', *HOMES)]"
    )
    assert done.returncode == 0, done.stderr
    assert {"frozenlake", "judge", "mutator"} <= set(done.stdout.split())


@pytest.mark.slow
def test_an_audition_needs_no_study(site):
    done = python(site, "-m", "hunch", "audition", "--lm", "bag-of-words", "--questions", "4", "--table")
    assert done.returncode == 0, done.stderr
    assert "FrozenLake" in done.stdout
    assert "Ferry" not in done.stdout
    assert "Blocksworld" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "part", "remedy"),
    [
        (("study", "priors-online"), "study", "make setup"),
        (("pretrain", "pocket", "--out", "p"), "pretrain", "make setup"),
        (("lm", "scripted:critic"), "scripted:critic", "make setup"),
        (("run", "dqn", "--env", "hunch/Bulbs-v0"), "hunch/Bulbs-v0", "make setup"),
        (("envs", "hunch/Game24-v0"), "hunch/Game24-v0", "make setup"),
        (("envs", "hunch/Strips-v0"), "hunch/Strips-v0", "make setup"),
        (("play", "hunch/Pendulum-v0"), "hunch/Pendulum-v0", "make setup"),
        ((RUN[0], "rain", *RUN[1:], "uniform"), "rain", "pip install hunch-rl-contrib"),
        (("methods", "plan4mc"), "plan4mc", "pip install hunch-rl-contrib"),
        (("lm", "uniform", "--ask", "spring", *RUN[1:3]), "spring", "pip install hunch-rl-contrib"),
        ((RUN[0], "icpi", *RUN[1:], "pocket"), "'examples'", "pip install ./pocket"),
        (("lm", "pocket?corpus=walks"), "'walks'", "pip install ./pocket"),
    ],
)
def test_what_the_wheel_does_not_carry_is_one_sentence(site, command, part, remedy):
    done = python(site, "-m", "hunch", *command)
    assert done.returncode == 2
    assert part in done.stderr
    assert remedy in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
