"""The loops behind the ladder: what arms achieved, and over whom their leads are."""

import json

from hunch_studies.ladder import WORDS
from hunch_studies.ladder_lake import BLANK, with_leads

ACHIEVED = {"uninformed": [0.0, 0.2], WORDS: [0.2, 0.2], "m": [0.5, 0.3], f"m, {BLANK}": [0.1, 0.3]}


def test_only_the_leading_arms_have_leads_over_controls_and_their_blank_prompt(tmp_path):
    lines = with_leads(ACHIEVED, ["m"], (WORDS,), "arm | success", tmp_path).splitlines()
    assert lines[0] == f"| arm | success | over {WORDS} | over its {BLANK} |"
    leads = json.loads((tmp_path / "leads.json").read_text())
    assert {name: round(lead[0], 3) for name, lead in leads.items()} == {
        f"m over {WORDS}": 0.2,
        f"m over m, {BLANK}": 0.2,
    }


def test_controls_lead_over_other_controls_and_never_over_themselves(tmp_path):
    with_leads(ACHIEVED, ACHIEVED.keys(), ("uninformed", WORDS), "prior | success", tmp_path)
    leads = json.loads((tmp_path / "leads.json").read_text())
    assert f"{WORDS} over uninformed" in leads
    assert f"uninformed over {WORDS}" in leads
    assert not [name for name in leads if len(set(name.split(" over "))) == 1]
