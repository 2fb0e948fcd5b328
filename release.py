"""Builds the three packages, checks them, installs them in fresh environments, and uploads them if asked.

    python release.py                                    # build, check, install under each Python found
    python release.py --repository https://HOST/PROJECT  # links to the repository, no relative ones
    TWINE_PASSWORD=… python release.py --upload          # and publish: the step that needs a key

It works on the last commit, not on the working tree. The packages are left in ``dist/``.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent
PACKAGES = (".", "contrib", "pocket")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TRY = "import hunch; print(hunch.train('q-learning', 'hunch/FrozenLake-v0', 50), len(hunch.methods.names()))"
"""What needs no extra: a run that is not kept, and the methods of both packages."""


def main() -> None:
    """Do what the arguments say, and stop at the first thing that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repository", default=os.environ.get("HUNCH_REPOSITORY", ""), help="its address")
    parser.add_argument("--python", nargs="*", default=PYTHONS, help="versions to install under")
    parser.add_argument("--upload", action="store_true", help="publish what was built and checked")
    options = parser.parse_args()
    if options.upload and not options.repository:
        sys.exit("release: name the repository with --repository: the page of a package links to it.")
    if options.upload and not os.environ.get("TWINE_PASSWORD"):
        sys.exit("release: set TWINE_PASSWORD to the key of the package index.")

    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        source = last_commit(Path(place) / "source")
        if options.repository:
            set_links(source, options.repository.rstrip("/"))
        for package in PACKAGES:
            run(sys.executable, "-m", "build", "--outdir", str(dist), str(source / package))
        built = sorted(map(str, dist.iterdir()))
        run(sys.executable, "-m", "twine", "check", "--strict", *built)
        for version in options.python:
            install(version, [name for name in built if name.endswith(".whl")], Path(place) / version)
    if options.upload:
        environment = {"TWINE_USERNAME": "__token__", **os.environ}
        run(sys.executable, "-m", "twine", "upload", "--non-interactive", *built, env=environment)


def last_commit(folder: Path) -> Path:
    """Write the files of the last commit to a folder."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def set_links(source: Path, repository: str) -> None:
    """Let the README's relative links and pictures, and the package's pages, point to the repository."""
    readme = source / "README.md"
    text = readme.read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!\w+:)", rf"\1{repository}/raw/HEAD/", text)
    text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!\w+:|#)", rf"\1{repository}/blob/HEAD/", text)
    readme.write_text(text, encoding="utf-8")
    for package in PACKAGES:
        project = source / package / "pyproject.toml"
        with project.open("a", encoding="utf-8") as file:
            file.write(f'\n[project.urls]\nRepository = "{repository}"\n')


def install(version: str, wheels: list[str], folder: Path) -> None:
    """Install the wheels in a fresh environment of a version of Python, if it is here, and try a run."""
    name = f"python{version}"
    found = shutil.which(name) and subprocess.run([name, "--version"], capture_output=True, check=False)
    if not found or found.returncode:  # a shim of a version that is not installed fails
        print(f"release: {name} is not here, so nothing was installed under it", flush=True)
        return
    run(name, "-m", "venv", str(folder))
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(str(programs / "python"), "-m", "pip", "install", "--quiet", *wheels)
    run(str(programs / "python"), "-c", TRY, cwd=folder)
    run(str(programs / "hunch"), "methods", "rloo", cwd=folder)
    print(f"release: the wheels work under Python {version}", flush=True)


def run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a command; end if it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, check=False)
    if done.returncode:
        sys.exit(f"release: {' '.join(command[:4])} … failed with code {done.returncode}.")


if __name__ == "__main__":
    main()
