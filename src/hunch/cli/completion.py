"""``hunch completion SHELL``: completes commands, methods, environments, models and options in a shell.

The script that a shell loads calls ``hunch completion --words``, which prints the possible next words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module

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
    command, rest, last = before[0], before[1:], before[-1]
    named = {"methods": methods.names(), "envs": envs.names(), "lm": lm.kinds(), "completion": SCRIPTS}
    if command in named:
        return named[command]
    methods_named, flags = _flags(command, rest)
    if last in ("--env", "--lm"):
        return named[last.removeprefix("--") + "s" * (last == "--env")]
    if last.startswith("--") and (value := flags.get(last)):
        return value.split("|") if "|" in value else ()
    if current.startswith("-"):
        return flags
    if command in ("run", "compare") and len(methods_named) == len(rest):
        return methods.names()
    return SECOND.get(command, ()) if not rest else ()


SECOND = {"data": ("collect", "import", "show"), "cache": ("stats", "export", "clear")}


def _flags(command: str, rest: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the methods that a command line names, and its options with the form of their values."""
    from hunch import envs, methods  # a press of the tab key that needs it waits for it, no other
    from hunch.cli import commands, help  # a press of the tab key that needs it waits for it, no other

    if command not in commands.COMMANDS:
        return [], {}
    name = rest[0] if command in SECOND and rest else command
    cls = getattr(import_module(f"hunch.cli.{command}"), f"{name.capitalize()}Options", None)
    methods_named = (
        [word for word in rest if word in methods.names()] if command in ("run", "compare") else []
    )
    listed = [*(help.options(cls) if cls else ())]
    listed += [option for each in methods_named for option in help.of_method(methods.find(each), rest)]
    flags = {f"--{option.flag}": option.value for option in listed}
    on = [option.flag.rpartition(".") for option in listed if option.default.startswith("on;")]
    flags |= {f"--{before}{dot}no-{last}": "" for before, dot, last in on}
    env = next((rest[i + 1] for i, word in enumerate(rest[:-1]) if word == "--env"), "")
    env_options = envs.options_of(env) if env in envs.names() else None
    return methods_named, flags | {f"--env.{name}": "VALUE" for name in env_options or ()}
