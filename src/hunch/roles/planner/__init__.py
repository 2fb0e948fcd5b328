"""The planner role: skills, their probability of success, and feedback on their outcome."""
