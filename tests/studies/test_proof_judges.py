"""Outside judges of proofs: Metamath and Coq give the kernel's verdicts, where they are installed.

``make test-proofs`` runs them.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest

from hunch.envs.proofs import kernel
from hunch.envs.proofs.logic import read
from hunch.envs.proofs.tactics import moves, tactics, term
from hunch.rl.and_or import AndOr
from hunch.rl.evaluator import Uniform
from hunch_studies import proof_coq, proof_metamath
from hunch_studies.proof_families import FAMILIES
from hunch_studies.proof_metamath import UnwritableError
from hunch_studies.worlds.proofs.theorems import pool, textbook

INSTALL = "{} is not on the path; 'apt-get install {}' installs it"
SWAPS = {"fst": "snd", "snd": "fst", "inl": "inr", "inr": "inl"}


@pytest.fixture(scope="module")
def proved():
    goals = pool("easy", 40, 0) + tuple(textbook().values())
    rngs = [np.random.default_rng(i) for i in range(len(goals))]
    trees = AndOr(budget=128).search(goals, moves, Uniform(tactics, 0.5), rngs)
    return [(g, term(g, tree.root.proof)) for g, tree in zip(goals, trees, strict=True) if tree.root.proof]


def parts(proof, path=()):
    yield path, proof
    if not isinstance(proof, str):
        for i, part in enumerate(proof[1:], 1):
            yield from parts(part, (*path, i))


def put(proof, path, new):
    if not path:
        return new
    i, *rest = path
    return (*proof[:i], put(proof[i], rest, new), *proof[i + 1 :])


def forged(proved, rng):
    """A proof with a part exchanged for another part, a name, or another rule; or of another statement."""
    goal, proof = proved[rng.integers(len(proved))]
    every = list(parts(proof))
    (path, part), (_, other) = (every[rng.integers(len(every))] for _ in range(2))
    kind = rng.integers(4)
    if kind == 0:
        return proved[rng.integers(len(proved))][0], proof
    if kind == 1 or isinstance(part, str):
        return goal, put(proof, path, other)
    if part[0] in SWAPS:
        return goal, put(proof, path, (SWAPS[part[0]], *part[1:]))
    if part[0] == "case":
        rule, source, x, left, y, right = part
        return goal, put(proof, path, (rule, source, x, right, y, left))
    return goal, put(proof, path, (*part[:-2], part[-1], part[-2]))


def cases(proved, n):
    """Forged proofs that can be written down, by label; those that cannot are refused by the kernel."""
    rng, found = np.random.default_rng(0), {}
    while len(found) < n:
        case = forged(proved, rng)
        if case in proved:
            continue
        try:
            proof_metamath.database({"thm": case})
        except UnwritableError:
            assert not kernel.accepts(*case)
        else:
            found[f"thm{len(found)}"] = case
    return found


def metamath(theorems, folder):
    """Labels of the theorems whose proofs Metamath refuses."""
    if shutil.which("metamath") is None:
        pytest.skip(INSTALL.format("metamath", "metamath"))
    (folder / "theorems.mm").write_text(proof_metamath.database(theorems))
    command = ["metamath", "read theorems.mm", "verify proof *", "exit"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert f"{len(theorems)} are $p" in run.stdout
    return set(re.findall(r'label\s+"(thm\d+)",\s+type\s+"\$p"', run.stdout))


def test_metamath_accepts_every_proof(proved, tmp_path):
    assert len(proved) > 30
    assert metamath({f"thm{i}": own for i, own in enumerate(proved)}, tmp_path) == set()


def test_metamath_and_the_kernel_agree_on_forged_proofs(proved, tmp_path):
    found = cases(proved, 600)
    refused = {label for label, case in found.items() if not kernel.accepts(*case)}
    assert 400 < len(refused) < 600  # some are other proofs of the same
    assert metamath(found, tmp_path) == refused


def test_coq_and_the_kernel_agree(proved, tmp_path):
    if shutil.which("coqc") is None:
        pytest.skip(INSTALL.format("coqc", "coq"))
    (tmp_path / "good.v").write_text(proof_coq.script({f"thm{i}": own for i, own in enumerate(proved)}))
    assert subprocess.run(["coqc", "good.v"], cwd=tmp_path, check=False).returncode == 0
    for label, case in list(cases(proved, 20).items()):
        (tmp_path / f"{label}.v").write_text(proof_coq.script({label: case}))
        run = subprocess.run(["coqc", f"{label}.v"], cwd=tmp_path, capture_output=True, check=False)
        assert (run.returncode == 0) == kernel.accepts(*case)


def test_every_forged_proof_of_something_refuted_is_refused(proved):
    goals = [read(text) for text in ("p | q |- p", "|- p | ~p", "p -> q |- p & q", "~~p |- p")]
    assert not any(kernel.accepts(goal, proof) for goal in goals for _, proof in proved)


def test_the_textbook_pool_holds_the_smallest_of_each_family():
    known = textbook()
    for family in FAMILIES:
        for n in (1, 2):
            assert known[f"{family.__name__.replace('_', ' ')} {n}"] == family(n)
