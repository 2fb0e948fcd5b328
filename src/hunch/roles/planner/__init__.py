"""The planner role: skills, whether they will work, and feedback on their outcome."""
