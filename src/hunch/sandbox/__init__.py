"""Runs programs written by language models; no other part of Hunch does.

    with Sandbox(seconds=5, memory_mb=512) as box:
        reward = box.load(source, function="reward", returns=float, state="fresh")
        reward(observation, action)
        reward.map([(observation, action), (observation, other)])

A warm process, the *zygote*, forks a process for each program, which locks itself before it reads the
source: no privileges, no files, no network, no other processes, bounded memory. The caller measures the time,
kills the process if necessary, and trusts nothing: one bounded answer per request, plain values only, types
checked here. Compute scores in the caller, too: a program that computes its own score can return anything.
How well the kernel isolates a program is tested and recorded as ``Sandbox.isolation``:

``kernel+namespaces``
    Linux: filter of system calls, Landlock if the kernel supports it, and namespaces for all programs.
``kernel``
    The same without namespaces, as in default containers.
``process``
    macOS, or a Linux without seccomp: another process, an empty environment, time limits. **A program can
    read your files and use the network.** It does not run unless you say ``least="process"``.
``none``
    Windows: programs do not run at all.

None of this protects from bugs in the kernel or processor, from side channels such as timing, or from what
is done with a returned value.
"""

from hunch.sandbox.box import Isolation, Sandbox
from hunch.sandbox.errors import (
    ArgumentError,
    ProgramCrash,
    ProgramError,
    ProgramMemory,
    ProgramRefused,
    ProgramTimeout,
    ProgramValue,
)
from hunch.sandbox.program import Program

__all__ = [
    "ArgumentError",
    "Isolation",
    "Program",
    "ProgramCrash",
    "ProgramError",
    "ProgramMemory",
    "ProgramRefused",
    "ProgramTimeout",
    "ProgramValue",
    "Sandbox",
]
