"""Connections to other trainers: a server of OpenEnv, and rollouts and tools for TRL.

Each module needs a different extra. Within the library, only the command ``serve`` imports one of them.
"""
