"""Our environments in other people's trainers: a server of OpenEnv, and rollouts and tools for TRL.

Each module needs an extra of its own, and no other room imports them but the command ``serve``.
"""
