"""The study of feedback: what is run can be configured, and its folders of evaluations differ."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from hunch import methods
from hunch_studies.feedback import STUDIES
from hunch_studies.study import Scale


def test_every_arm_can_be_configured():
    parts = STUDIES["feedback"].parts(Scale(seeds=1, share=0.05), Path("data"))
    assert [part.title for part in parts] == [
        "Compression",
        "Constitutional AI",
        "Search with rewind",
        "Attack",
        "Repair",
    ]
    for arm in (arm for part in parts for arm in part.arms):
        agent_class = methods.find(arm.config.method).agent_class
        methods.settings.configure(agent_class, arm.config.options, {})
    labels = [arm.label for part in parts for arm in part.arms]
    assert len(labels) == len(set(labels))
