"""Extracts programs from answers, and checks them without running them."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import textwrap
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard

from hunch.printable import printable
from hunch.sandbox.errors import MESSAGE

DEEPEST, LONGEST = 150, 10_000
"""Maximum nesting of a program's syntax tree, and bits of its integers: Python can parse more than it can
write again, and programs are written again to be compared."""
# Possessive: what a part has taken it keeps, so that a long answer takes linear time.
_FENCE = re.compile(
    r"(?P<lead>^[ \t>]*+)?(?P<fence>(?<!`)`{3,}+|(?(lead)~{3,}+|(?!)))"  # ~~~ only at the beginning of a line
    r"[ \t]*+(?P<tag>[\w+-]*+)[^\n`]*+\n(?P<code>.*?)(?:^[ \t>]*+(?P=fence)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_EXACT = 20
"""Attempts to find where code without a fence ends, before half of what is left is dropped each time."""
_PYTHON = ("", "python", "python3", "py")
# A model that continues text may begin its answer with the space that stands after the prompt.
_BEGINS = re.compile(
    r"(?:\A |^)(?P<code>import |from \w+ import|def |class |@|[A-Za-z_]\w* *=[^=])", re.MULTILINE
)
_VERSION = re.compile(r"_v\d+$")
_LINE_END = re.compile(r"\r\n|\r|\n")


def blocks(answer: str) -> list[str]:
    """Return the fenced blocks of Python in an answer, in order; the last may be cut off."""
    fences = _FENCE.finditer(answer)
    return [
        _outdented(block["code"], block["lead"] or "")
        for block in fences
        if block["tag"].lower() in _PYTHON and block["code"].strip()
    ]


def _outdented(code: str, lead: str) -> str:
    """Return a block without what stands before its lines in a list or a quotation, if it is Python then.

    Args:
        code: The lines of the block.
        lead: What stands before its opening fence.
    """
    if _parsed(code) is not None:
        return code
    plain = (
        re.sub(rf"^[ \t]*(?:>[ ]?){{{lead.count('>')}}}", "", code, flags=re.MULTILINE)
        if ">" in lead
        else code
    )
    whole = textwrap.dedent(plain)
    for text in (whole, whole.split("```")[0]):  # the closing fence may stand behind the last line
        if text.strip() and _parsed(text) is not None:
            return text
    return code


def extract(answer: str, function: str = "") -> str:
    """Return all code of an answer as one program, with helper functions; empty if it has none.

    Blocks are joined in order, and of several definitions of a name the last is kept, as if they were run in
    sequence. A function named like ``function`` with a version, as in ``priority_v2``, is renamed; of several
    versions, the last is used.

    Args:
        answer: A model's answer: prose with fenced blocks, or bare code.
        function: Name of the required function.
    """
    code_blocks = blocks(answer) or ([_bare(answer)] if _BEGINS.search(answer) else [])
    valid: list[str] = []
    trees: list[ast.Module] = []
    for code in code_blocks:
        tree = _parsed(code)
        if tree is not None:
            valid.append(code)
            trees.append(tree)
    if not trees:  # returned as it is, so that whoever reads it can say what is wrong
        return "\n".join(code_blocks).strip("\n")
    if len(trees) == 1 and not _doubled(trees[0], function):
        return valid[0].strip("\n")
    return _joined([node for tree in trees for node in tree.body], function)


def flaw(program: str, function: str = "", parameters: Sequence[str] = ()) -> str:
    """Return the reason why a program cannot be run, in a sentence; empty if none is found.

    Args:
        program: Python code.
        function: The function that the program must define at top level.
        parameters: Parameters of the function, in order.
    """
    if not program.strip():
        return "the answer holds no code"
    try:
        tree = _tree(program)
    except SyntaxError as error:
        return f"SyntaxError: {error.msg}" + quoted(program, error.lineno)
    if not function:
        return ""
    definition = defined_last(tree.body, function)
    if definition is None:
        return f"it does not define the function {function}"
    return _signature_flaw(definition, parameters)


def class_flaw(program: str, name: str, methods: Mapping[str, Sequence[str]]) -> str:
    """Return the reason why a program that has to define a class cannot be run; empty if none is found.

    Args:
        program: Python code.
        name: The class that the program must define at top level.
        methods: Its methods, with their parameters after ``self``, in order.
    """
    if broken := flaw(program):
        return broken
    classes = [node for node in _tree(program).body if isinstance(node, ast.ClassDef) and node.name == name]
    if not classes:
        return f"it does not define the class {name}"
    for method, parameters in methods.items():
        definition = defined_last(classes[-1].body, method)
        if definition is None:
            if classes[-1].bases:  # another class may have it
                continue
            return f"its class {name} does not define the method {method}"
        if unfit := _signature_flaw(definition, _given(definition, parameters)):
            return unfit
    constructor = defined_last(classes[-1].body, "__init__")
    if constructor is not None and _signature_flaw(constructor, ("self",)):
        return f"its class {name} cannot be made without arguments"
    return ""


def defined_last(statements: Sequence[ast.stmt], function: str) -> ast.FunctionDef | None:
    """Return the last definition of a function among statements, the one that counts; None without any."""
    definitions = [one for one in statements if isinstance(one, ast.FunctionDef) and one.name == function]
    return definitions[-1] if definitions else None


def parameters_of(program: str, function: str) -> tuple[str, ...]:
    """Return the names of the parameters by place of a function, without those of ``*args``.

    Args:
        program: A program without a :func:`flaw`.
        function: A function that it defines at top level.
    """
    definition = defined_last(_tree(program).body, function)
    if definition is None:
        return ()
    return tuple(one.arg for one in (*definition.args.posonlyargs, *definition.args.args))


def _given(method: ast.FunctionDef, parameters: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments that a method gets where it is called on an object."""
    static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in method.decorator_list)
    return tuple(parameters) if static else ("self", *parameters)


def with_names_of(program: str, others: Sequence[str], function: str = "") -> str:
    """Return a program with the statements of other programs that define what it uses and does not define.

    So a function that was written as the next one of a file has the imports and helpers of the file. With a
    table come the statements that fill it by its items and methods, but no calls that get it as an argument.

    Args:
        program: Python code; returned as it is if it has a :func:`flaw`.
        others: Programs without a flaw. Of several that define a name the last counts.
        function: The function that the program has to define itself: it is not taken from another one.
    """
    if flaw(program):
        return program
    try:
        names = _names_of(program)
        files = [[_Statement.read(node) for node in _tree(other).body] for other in others]
    except SyntaxError:  # such as a "nonlocal" without a function around, which the parser lets pass
        return program
    taken = _taken(names.used - names.defined - {function}, names.defined | {function}, files)
    if not taken:
        return program
    ahead, rest = split_future(program)
    ahead = "".join(split_future(other)[0] for other in others) + ahead
    ahead = "".join(dict.fromkeys(ahead.splitlines(keepends=True)))
    return ahead + "\n".join(one.text for one in taken) + f"\n\n{rest}"


class _Names(NamedTuple):
    """The global names in a piece of code.

    Attributes:
        used: Names that it reads, or that a function of it declares as global.
        defined: Names that it defines outside of functions and classes.
    """

    used: set[str]
    defined: set[str]


def _names_of(code: str) -> _Names:
    """Return the global names in code.

    Raises:
        SyntaxError: if names are declared where that is not possible.
    """
    with warnings.catch_warnings(action="ignore"):
        top = symtable.symtable(code, "<program>", "exec")
    symbols = top.get_symbols()
    used = {one.get_name() for one in symbols if one.is_referenced()}
    defined = {
        one.get_name() for one in symbols if one.is_assigned() or one.is_imported() or one.is_namespace()
    }
    scopes = list(top.get_children())
    while scopes:
        scope = scopes.pop()
        used |= {one.get_name() for one in scope.get_symbols() if one.is_global()}
        scopes += scope.get_children()
    return _Names(used, defined)


class _Statement(NamedTuple):
    """A statement of a file.

    Attributes:
        text: The statement as code.
        used: Global names that it reads.
        defined: Global names that it defines.
        changed: Names of the objects that it changes, as in ``table[0] = 1`` and ``table.append(1)``.
        imports_all: True if it is ``from module import *``.
    """

    text: str
    used: set[str]
    defined: set[str]
    changed: set[str]
    imports_all: bool

    @classmethod
    def read(cls, node: ast.stmt) -> _Statement:
        """Return a statement with its names.

        Raises:
            SyntaxError: as for :func:`_names_of`.
        """
        text = ast.unparse(node)
        imported = node.names if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return cls(text, set(), set(), set(), False)  # they stand at the beginning of the file
        return cls(text, *_names_of(text), _changed(node), any(one.name == "*" for one in imported))


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names of the objects that a statement changes where it stands; none of a definition."""
    changed: set[str] = set()
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return changed
    for node in ast.walk(statement):
        match node:
            case ast.AugAssign(target=place) | ast.Expr(value=ast.Call(func=ast.Attribute(value=place))):
                pass
            case (
                ast.Subscript(ctx=ast.Store() | ast.Del(), value=place)
                | ast.Attribute(ctx=ast.Store() | ast.Del(), value=place)
            ):
                pass
            case _:
                continue
        while isinstance(place, (ast.Subscript, ast.Attribute)):
            place = place.value
        if isinstance(place, ast.Name):
            changed.add(place.id)
    return changed


def _taken(needed: set[str], known: set[str], files: Sequence[Sequence[_Statement]]) -> list[_Statement]:
    """Return the statements of files that define names, and what these statements need, in their order.

    Args:
        needed: Names that have to be defined.
        known: Names that are defined elsewhere.
        files: The statements of each file.
    """
    places: set[tuple[int, int]] = set()
    missing: set[str] = set()
    waiting = sorted(needed)
    known = known | needed
    while waiting:
        name = waiting.pop()
        defining = [i for i, file in enumerate(files) if any(name in one.defined for one in file)]
        if not defining:
            missing.add(name)
            continue
        for j, one in enumerate(files[defining[-1]]):
            if name in one.defined | one.changed:
                places.add((defining[-1], j))
                waiting += sorted(one.used - known)
                known |= one.used
    if missing - set(dir(builtins)):
        places |= {(i, j) for i, file in enumerate(files) for j, one in enumerate(file) if one.imports_all}
    return [files[i][j] for i, j in sorted(places)]


def split_future(program: str) -> tuple[str, str]:
    """Return the ``from __future__`` lines of a program, which have to stand first in a file, and the rest.

    A program without such lines is returned as it is; the rest of another one loses its comments.

    Args:
        program: A program without a :func:`flaw`.
    """
    tree = _tree(program)
    first = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    if not first:
        return "", program
    rest = [node for node in tree.body if node not in first]
    return "".join(f"{ast.unparse(node)}\n" for node in first), ast.unparse(ast.Module(rest, []))


def _signature_flaw(written: ast.FunctionDef, parameters: Sequence[str]) -> str:
    args = written.args
    most = len(args.posonlyargs) + len(args.args)
    least = most - len(args.defaults)
    keywords = sum(default is None for default in args.kw_defaults)
    fits = least <= len(parameters) and (len(parameters) <= most or args.vararg) and not keywords
    if fits:
        return ""
    wanted = ", ".join(parameters)
    return f"{written.name}({ast.unparse(args)[:MESSAGE]}) cannot be called as {written.name}({wanted})"


def lines_of(program: str) -> list[str]:
    """Return the lines of a program as Python counts them; other ends of lines may stand in a text."""
    lines = _LINE_END.split(program)
    return lines if lines[-1] else lines[:-1]


def rename(function: ast.FunctionDef, name: str) -> None:
    """Give a function another name, also where it calls itself."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == function.name:
            node.id = name
    function.name = name


def quoted(program: str, line: int | None) -> str:
    """Return a line of a program for an error message, cut if it is very long; empty if it is unknown.

    Control characters in it are escapes, so that the message is one line, and a terminal does not obey it.
    """
    lines = lines_of(program)
    if not line or not 0 < line <= len(lines):
        return ""
    shown = " ".join(printable(lines[line - 1].strip()[:MESSAGE]).splitlines())  # others count more ends
    return f" (line {line}: `{shown}`)"


@lru_cache(maxsize=4_096)
def canonical(program: str) -> str:
    """Return the program without comments, docstrings and formatting, for comparisons."""
    tree = _parsed(program)
    if tree is None:
        return program.strip()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and _is_text(body[0]):
            del body[0]
    return ast.unparse(tree)


@lru_cache(maxsize=4_096)
def structure(program: str, *functions: str) -> str:
    """Return what a program says, for the search for copies: :func:`canonical`, without the names it chose.

    Two programs have the same structure if one becomes the other by giving other names to its variables,
    parameters, imports and helper functions. Attributes are not renamed, so for classes that holds in most
    cases only. A keyword argument has another name only where a function of the program itself is called: to
    other functions each keyword means something else.

    Args:
        program: Python code.
        functions: Names of the required functions, which stay.
    """
    try:
        tree = _tree(canonical(program))
    except SyntaxError:
        return program.strip()
    number: dict[str, str] = {}  # by chosen name, in the order in which the tree is walked
    for node in ast.walk(tree):
        for name in _bound(node):
            if name not in functions:
                number.setdefault(name, f"v{len(number)}")
    return ast.unparse(_Renaming(number, _own_keywords(tree)).visit(tree))


def _own_keywords(tree: ast.Module) -> set[ast.keyword]:
    """Return the keyword arguments of calls of what the program defines: functions, classes and methods."""
    defined: set[str] = set()
    methods: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                defined.add(name)
            case ast.ClassDef(name=name, body=body):
                defined.add(name)
                methods |= {
                    one.name for one in body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
                }
            case ast.Assign(targets=targets, value=ast.Lambda()):
                defined |= {target.id for target in targets if isinstance(target, ast.Name)}
    keywords: set[ast.keyword] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=given) if name in defined:
                keywords.update(given)
            case ast.Call(func=ast.Attribute(attr=name), keywords=given) if name in methods:
                keywords.update(given)
    return keywords


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a node gives a meaning to."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(name=name, asname=chosen):
            # "import a.b" binds "a" and says nothing about another name for it.
            return [chosen or name] if chosen or ("." not in name and name != "*") else []
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


class _Renaming(ast.NodeTransformer):
    """Gives other names to whatever a program named itself.

    Args:
        names: The other name of each name.
        keywords: The keyword arguments that are renamed.
    """

    def __init__(self, names: Mapping[str, str], keywords: Collection[ast.keyword]) -> None:
        self.names = names
        self.keywords = keywords

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Name():
                node.id = self.names.get(node.id, node.id)
            case ast.keyword() if node not in self.keywords:
                pass
            case ast.arg() | ast.keyword(arg=str()):
                node.arg = self.names.get(str(node.arg), node.arg)
            case ast.MatchMapping(rest=str(name)):
                node.rest = self.names.get(name, name)
            case ast.MatchAs(name=str()) | ast.MatchStar(name=str()):
                node.name = self.names.get(str(node.name), node.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler():
                node.name = self.names.get(str(node.name), node.name)
            case ast.alias():
                node.asname = self.names.get(node.asname or node.name, node.asname)
            case ast.Global() | ast.Nonlocal():
                node.names = [self.names.get(name, name) for name in node.names]
        return node


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _parsed(code: str) -> ast.Module | None:
    try:
        return _tree(code)
    except SyntaxError:
        return None


def _tree(code: str) -> ast.Module:
    """Return the syntax tree of a program.

    Raises:
        SyntaxError: if it has none, or one that cannot be written as a program again.
    """
    tree = _read(code)
    _check_size(tree)
    return tree


def _read(code: str) -> ast.Module:
    """Return the syntax tree of code.

    Raises:
        SyntaxError: if it has none.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # they are for whoever runs it
            return ast.parse(code)
    except SyntaxError:
        raise
    except ValueError as error:  # null bytes, lone surrogates, integers of too many digits
        raise SyntaxError(str(error)) from None
    except (RecursionError, MemoryError):
        raise SyntaxError("the program is nested too deeply") from None


def _check_size(tree: ast.Module) -> None:
    """Check that a program can be written again.

    Raises:
        SyntaxError: if it cannot.
    """
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        if not level:
            return
        if any(isinstance(n, ast.Constant) and _is_long(n.value) for n in level):
            raise SyntaxError(f"an integer of more than {LONGEST:,} bits")
        for node in level:
            if isinstance(node, ast.JoinedStr):
                _check_written(node)
        level = [below for node in level for below in _below(node)]
    raise SyntaxError("the program is nested too deeply")


def _check_written(text: ast.JoinedStr) -> None:
    """Check that an f-string can be written again.

    Python 3.11 cannot write one whose braces hold an invisible character, such as a no-break space.

    Raises:
        SyntaxError: if it cannot.
    """
    try:
        ast.unparse(text)
    except ValueError:
        message = "an f-string with an invisible character in its braces, which cannot be written again"
        raise SyntaxError(message, ("<program>", text.lineno, None, None)) from None
    except RecursionError:
        raise SyntaxError("the program is nested too deeply") from None


def _is_long(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > LONGEST


def _below(node: ast.AST) -> list[ast.AST]:
    """The nodes below one; branches of ``elif`` are beside each other."""
    nodes = list(ast.iter_child_nodes(node))
    while isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = nodes.pop()
        nodes += ast.iter_child_nodes(node)
    return nodes


def _bare(answer: str) -> str:
    """Code without a fence: from its first line up to where it stops being Python."""
    begin = _BEGINS.search(answer)
    lines = lines_of(answer[begin.start("code") if begin else 0 :])
    end, attempt = len(lines), 0
    while end > 0:
        try:
            _read("\n".join(lines[:end]))
            return "\n".join(lines[:end])
        except SyntaxError as error:  # what comes before that line may be whole
            attempt += 1
            line = error.lineno or end // 2 + 1
            end = min(line - 1, end - 1 if attempt < _EXACT else end // 2)
    return "\n".join(lines)


def _doubled(tree: ast.Module, function: str) -> bool:
    """Return whether a name is defined twice, or the function's name has a version."""
    names = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    versioned = any(_plain(name, function) != name for name in names)
    return versioned or len(set(names)) < len(names)


def _plain(name: str, function: str) -> str:
    return function if function and _VERSION.sub("", name) == function else name


def _joined(nodes: Sequence[ast.stmt], function: str) -> str:
    """Return statements in order as one program, of each defined name the last definition only.

    An earlier definition stays if a statement before the last one may use it.
    """
    names = [_plain(node.name, function) if _is_definition(node) else "" for node in nodes]
    last = {name: place for place, name in enumerate(names)}
    uses = list(accumulate(map(_may_use_others, nodes)))  # statements up to each place that may use others
    kept: list[ast.stmt] = []
    for place, (name, node) in enumerate(zip(names, nodes, strict=True)):
        is_last = not name or place == last[name]
        if is_last or uses[last[name] - 1] > uses[place]:
            kept.append(node)

    final = nodes[last[function]] if function in last else None
    if _is_definition(final) and final.name != function:
        version, final.name = final.name, function
        for part in ast.walk(ast.Module(kept, [])):  # what calls this version, such as itself
            if isinstance(part, ast.Name) and part.id == version:
                part.id = function
    return "\n\n".join(ast.unparse(node) for node in kept)


def _is_definition(node: ast.AST | None) -> TypeGuard[ast.FunctionDef | ast.ClassDef]:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def _may_use_others(node: ast.stmt) -> bool:
    """Return whether a statement may use what was defined before, at the time when it is run."""
    if isinstance(node, ast.FunctionDef):
        return bool(node.decorator_list or node.args.defaults or any(node.args.kw_defaults))
    names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
    return isinstance(node, ast.ClassDef) or any(isinstance(name.ctx, ast.Load) for name in names)
