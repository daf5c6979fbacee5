"""Running the code: as a script, with await allowed at top level and the value of a last expression shown."""

from __future__ import annotations

import _ast as ast  # all that is needed of ast, which itself takes a millisecond to import
import builtins
import io
import linecache
from types import CodeType

from guest import wire
from guest.forgotten import watch_run
from guest.light_typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guest.environment import Environment

CO_COROUTINE = 0x80

_BEHIND = " \t\f\v\r\n)\\"  # what can stand behind a last expression is this, and a semicolon


def run(code: str, namespace: dict[str, Any], packages: Environment | None = None) -> None:
    """Runs code in namespace, without an event loop if it has no await at its top level.

    So asyncio.run and blocking calls work in it. What it raises is passed on. The packages note
    what it imports.
    """
    code = code.removeprefix("\ufeff")  # a byte order mark, as some editors write it
    lines = lines_of(code)
    linecache.cache[wire.USER_FILE] = (len(code), None, lines, wire.USER_FILE)
    _check(lines)
    parts = compiled(code, lines, packages)
    if "asyncio" in code:
        watch_run()
    if not any(part.co_flags & CO_COROUTINE for part in parts):
        for part in parts:
            _mend(namespace)
            exec(part, namespace)
        return
    import asyncio

    asyncio.run(_run(parts, namespace))


async def _run(parts: list[CodeType], namespace: dict[str, Any]) -> None:
    for part in parts:
        _mend(namespace)
        result = eval(part, namespace)
        if part.co_flags & CO_COROUTINE:
            await result


def _mend(namespace: dict[str, Any]) -> None:
    """Gives back what the code may have deleted, in whose place it would get the guest's own builtins."""
    namespace.setdefault("__builtins__", builtins)


def lines_of(code: str) -> list[str]:
    """The lines as Python counts them. str.splitlines also ends lines at form feeds."""
    lines = io.StringIO(code, newline=None).readlines()
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"  # as linecache has it: the marks of columns are wrong without
    return lines


def _check(lines: list[str]) -> None:
    """Raises SyntaxError, with its place, for characters that compile refuses without one."""
    text = "".join(lines)
    try:
        text.encode()
        if "\0" not in text:
            return
    except UnicodeEncodeError:
        pass
    import re  # to compile it takes longer than to run most code

    for number, line in enumerate(lines, 1):
        if found := re.search("[\0\ud800-\udfff]", line):
            half = f"half of a surrogate pair ({ascii(found[0])[1:-1]})"
            what = "a NUL character" if found[0] == "\0" else half
            shown = line.encode("ascii", "backslashreplace").decode().replace("\0", " ")
            place = (wire.USER_FILE, number, found.start() + 1, shown)
            raise SyntaxError(f"the code holds {what}, which no Python source may", place)


def compiled(code: str, lines: list[str], packages: Environment | None = None) -> list[CodeType]:
    """The code in one part, or two when the value of a last expression is to be shown.

    With a semicolon behind it, as in a notebook, it isn't.
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(code, wire.USER_FILE, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    if packages:
        packages.note(tree)
    last: list[ast.stmt] = []
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        if not _behind(tree.body[-1], lines).lstrip(_BEHIND).startswith(";"):
            last.append(tree.body.pop())
    parts = []
    if tree.body:
        parts.append(compile(tree, wire.USER_FILE, "exec", flags, dont_inherit=True))
    if last:
        parts.append(compile(ast.Interactive(last), wire.USER_FILE, "single", flags, dont_inherit=True))
    return parts


def _behind(statement: ast.stmt, lines: list[str]) -> str:
    """The text behind the last statement, without comments."""
    row, column = statement.end_lineno or 1, statement.end_col_offset or 0
    rest = lines[row - 1].encode()[column:].decode() if row <= len(lines) else ""
    return "".join(line.partition("#")[0] for line in [rest, *lines[row:]])
