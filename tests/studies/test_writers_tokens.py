"""What a recorded program cost: its own request and answer, or the mean of its kind where none is."""

from hunch_studies.writers import BEST_OF_N, RANDOM
from hunch_studies.writers_tokens import counted

BED = "CartPole-v1"


def row(program, arm=BEST_OF_N, kind=""):
    return {"bed": BED, "arm": arm, "kind": kind, "program": program}


def test_a_fresh_program_has_its_shortest_request_and_a_revised_one_the_median():
    answers = {BED: [("```python x = 1 ```", 100), ("x = 1", 130), ("so: x = 1", 190)]}
    assert counted([row("x = 1"), row("x  =  1\n", kind="fresh")], answers) == [100, 100]
    assert counted([row("x = 1", "bandit", "revise")], answers) == [130]


def test_a_program_without_a_recorded_answer_has_the_mean_of_its_kind_and_a_random_change_costs_nothing():
    answers = {BED: [("x = 1", 100), ("x = 2", 200)]}
    rows = [row("x = 1"), row("x = 2"), row("cut in the mid"), row("x = 1", RANDOM)]
    assert counted(rows, answers) == [100, 200, 150, 0]
