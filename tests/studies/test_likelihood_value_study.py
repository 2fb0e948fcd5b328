"""The arms of a real model in the study of likelihood times value, on a few steps."""

from dataclasses import replace

from hunch.runs.compare import jobs
from hunch.runs.execute import execute
from hunch_studies import likelihood_value
from hunch_studies.study import SMOKE


def test_a_model_as_the_factor_stands_beside_its_blank_prompt_words_and_value_alone(tmp_path):
    parts = likelihood_value._parts(replace(SMOKE, lms=("scripted:frozenlake",)), tmp_path)
    part = next(part for part in parts if part.title == "Frozen Lake, a real model")
    folder = tmp_path / part.folder
    for job in jobs(part.arms, 1, folder):
        execute(job.config, job.folder)
    told = part.beside(folder)

    def cells(label):
        return [cell.strip() for cell in told.split(f"| {label} |")[1].splitlines()[0].split("|")]

    assert float(cells("likelihood alone, scripted:frozenlake")[0]) > 0.5
    assert all("1 pair of seeds" in cell for cell in cells("product, scripted:frozenlake")[2:5])
    assert not any(cells("product, scripted:frozenlake, blank prompt")[2:5])
