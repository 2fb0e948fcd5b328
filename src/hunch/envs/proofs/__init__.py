"""Proofs in intuitionistic propositional logic; only :mod:`hunch.envs.proofs.kernel` needs to be trusted."""
