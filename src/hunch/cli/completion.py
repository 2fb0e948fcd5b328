"""``hunch completion SHELL``: completes commands, methods, environments, models and options in a shell.

The script that a shell loads calls ``hunch completion --words``, which prints the possible next words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import pairwise

from hunch.core import UsageError

SCRIPTS = {
    "bash": r"""_hunch() {
    local IFS=$'\n'
    COMPREPLY=($(hunch completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _hunch hunch""",
    "zsh": r"""#compdef hunch
_hunch() {
    local -a found
    found=(${(f)"$(hunch completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( $#found )) && compadd -- $found || _files
}
compdef _hunch hunch""",
    "fish": """function _hunch
    hunch completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c hunch -a '(_hunch)'""",
}


def completion(arguments: Sequence[str]) -> None:
    """Print a script that completes the command in bash, zsh or fish.

    Load it in the start file of the shell: source <(hunch completion bash), the same with zsh, or for fish
    hunch completion fish | source.
    """
    if arguments[:1] == ["--words"]:
        *before, current = arguments[1:] or [""]
        print("\n".join(word for word in _next(before, current) if word.startswith(current)))
        return
    if len(arguments) != 1 or arguments[0] not in SCRIPTS:
        raise UsageError(f"Name one shell, {', '.join(SCRIPTS)}, as in 'hunch completion bash'.")
    print(SCRIPTS[arguments[0]])


def _next(before: Sequence[str], current: str) -> Iterable[str]:
    """Return the words that may stand after these; none where a file or a free value is due."""
    from hunch import envs, lm, methods  # a press of the tab key that needs it waits for it, no other
    from hunch.cli import commands  # a press of the tab key that needs it waits for it, no other

    if not before or before == ["help"]:
        return [*commands.COMMANDS, *commands.added()]
    command = before[0]
    rest = before[1:]
    last = before[-1]
    named = {"methods": methods.names(), "envs": envs.names(), "lm": lm.kinds(), "completion": SCRIPTS}
    if command in named:
        return named[command]
    methods_named, flags = _flags(command, rest)
    if last == "--env":
        return named["envs"]
    if last == "--lm":
        return named["lm"]
    value = flags.get(last, "")  # the form of the option's value; empty for one that takes none
    if value:
        return value.split("|") if "|" in value else ()
    if current.startswith("-"):
        return flags
    if command in ("run", "compare") and len(methods_named) == len(rest):
        return methods.names()
    return SECOND.get(command, ()) if not rest else ()


SECOND = {
    "data": ("collect", "histories", "import", "show"),
    "cache": ("stats", "export", "import", "clear"),
    "models": ("get", "serve", "export"),
}
"""The commands within a command."""


def _flags(command: str, rest: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the methods that a command line names, and its options with the form of their values."""
    from hunch import envs, methods  # a press of the tab key that needs it waits for it, no other
    from hunch.cli import commands, help  # a press of the tab key that needs it waits for it, no other

    if command not in commands.COMMANDS:
        return [], {}
    name = rest[0] if command in SECOND and rest else command
    cls = getattr(import_module(f"hunch.cli.{command}"), f"{name.capitalize()}Options", None)
    listed = list(help.options(cls)) if cls else []
    methods_named = []
    if command in ("run", "compare"):
        methods_named = [word for word in rest if word in methods.names()]
    for method in methods_named:
        listed += help.of_method(methods.find(method), rest)

    flags: dict[str, str] = {}
    for option in listed:
        flags[f"--{option.flag}"] = option.value
        if option.default.startswith("on;"):
            before, dot, name = option.flag.rpartition(".")
            flags[f"--{before}{dot}no-{name}"] = ""
    for word, following in pairwise(rest):
        if word == "--env" and following in envs.names():
            flags |= {f"--env.{name}": "VALUE" for name in envs.options_of(following) or ()}
            break
    return methods_named, flags
