"""Planning problems in PDDL as text environments: reading, grounding, search, wording."""
