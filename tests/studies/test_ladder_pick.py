"""How restricted answers in Household-Pick are spread, from a file of recorded answers."""

import gzip
import json

from hunch_studies.ladder_pick import spread


def test_answers_are_counted_by_prompt_and_the_blank_prompt_apart(tmp_path):
    commands = ["go to bed 1", "go to desk 1", "help", "look"]
    asked = [2048, 1.0, 1.0, [], "", commands]

    def rows(prompt, answers, verb="generate"):
        return [{"model": "m", "verb": verb, "request": [prompt, asked], "value": a} for a in answers]

    lines = rows("Your task is to: put a pen on the desk", ["go to bed 1", "go to bed 1", "help", "look"])
    lines += rows("You are in the middle of a room", ["help"] * 4)
    lines += rows("scored in another way", ["look"], verb="score")
    lines += [
        {
            "model": "m",
            "verb": "generate",
            "request": ["not restricted", [8, 1.0, 1.0, [], "", []]],
            "value": "a",
        }
    ]
    file = tmp_path / "answers.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    *_, plain, blank = spread(file).splitlines()
    assert plain == "| m | 1 | 4.00 | 3.00 | 0.50 | 0.50 | 0.50 |"
    assert blank == "| m, blank prompt | 1 | 4.00 | 1.00 | 1.00 | 1.00 | 0.50 |"
