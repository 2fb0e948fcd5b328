"""Proofs in intuitionistic propositional logic; :mod:`hunch.envs.proofs.kernel` is all that is trusted."""
