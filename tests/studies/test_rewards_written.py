"""The study of rewards that a real model writes: its arms, and its tables."""

from hunch_studies.rewards_written import BEST_OF_N, BLANK, GRADED, OTHERS, SHUFFLED, arms, page


def row(again, found):
    """Return the row of a run whose winner is worth ``again`` on new seeds."""
    return {
        **{"fitness": max(found), "again": again, "success": again, "found": found},
        **{"failed": found.count(0.0), "copied": [False] * (len(found) - 1) + [True]},
    }


def test_arms_differ_in_what_the_writer_sees_and_have_as_many_programs():
    listed = arms(GRADED, "model", 16)
    assert {arm.config.steps for arm in listed} == {16}
    assert set(OTHERS) <= {arm.label for arm in listed}
    by_label = {arm.label: arm.config for arm in listed}
    asked, blank = by_label[BEST_OF_N], by_label[BLANK]
    assert asked.options == blank.options
    assert {**asked.env_options, "blank": True} == blank.env_options
    assert all(arm.config.options.retries == 0 for arm in listed)  # a copy or a failure costs a program


def test_leads_are_paired_by_seed():
    # Best of n is 0.2 above words on each seed, however much the seeds differ.
    found = {
        BEST_OF_N: [row(0.3, [0.3, 0.0]), row(0.9, [0.9, 0.7])],
        f"{BEST_OF_N}, weighted words": [row(0.1, [0.1, 0.0]), row(0.7, [0.7, 0.5])],
        "Song": [row(0.3, [0.3, 0.3]), row(0.9, [0.9, 0.9])],
    }
    lines = page(found).splitlines()
    columns = [cell.strip() for cell in lines[0].split("|")]
    cells = [cell.strip() for cell in lines[2].split("|")]
    assert cells[columns.index("ahead of words by")].startswith("0.20 [0.20")
    assert cells[columns.index("ahead of best of n by")] == ""
    assert cells[columns.index("failed")] == "25%"
    assert cells[columns.index("copies")] == "50%"


def test_first_programs_are_those_of_arms_without_parents():
    found = {
        BEST_OF_N: [row(0.9, [0.9, 0.0, 0.6]), row(0.9, [0.9, 0.6, 0.0])],
        BLANK: [row(0.1, [0.1, 0.1, 0.1])] * 2,
        "Song": [row(0.1, [0.1, 0.1, 0.1])] * 2,
    }
    first = page(found).split("First programs")[1].split("Programs after")[0]
    assert "| best of n | 6 | 0.50" in first
    assert "0.67 [0.67" in first  # two of three have at least 0.5
    assert "0.40 [0.40" in first  # over the blank prompt, whose seeds have 0.10
    assert "Song" not in first


def test_later_programs_are_those_after_the_first_batch():
    found = {
        # The last one is a copy, and does not count.
        BEST_OF_N: [row(0.9, [0.9, 0.9, 0.9, 0.9, 0.1, 0.3, 0.9])] * 2,
        "Eureka": [row(0.9, [0.9, 0.9, 0.9, 0.9, 0.5, 0.7, 0.9])] * 2,
        SHUFFLED: [row(0.9, [0.9, 0.9, 0.9, 0.9, 0.4, 0.6, 0.9])] * 2,
    }
    later = page(found).split("Programs after")[1]
    assert "| best of n | 0.20" in later
    [line] = [line for line in later.splitlines() if line.startswith("| Eureka |")]
    assert "| 0.60 " in line
    assert "| 0.40 [" in line
    assert "| 0.10 [" in line
