"""The encoder role: a frozen model that turns texts into vectors."""
