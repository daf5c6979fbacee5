"""Running the code: as a script, with await allowed at top level and the value of a last expression shown."""

from __future__ import annotations

import ast
import linecache
from types import CodeType
from typing import Any

from guest import wire

CO_COROUTINE = 0x80


def run(code: str, namespace: dict[str, Any]) -> None:
    """Runs code in namespace. What it raises comes out as it is.

    Code that doesn't await at its top level runs without an event loop, so that asyncio.run and blocking calls work in it.
    """
    lines = code.splitlines(keepends=True)
    linecache.cache[wire.USER_FILE] = (len(code), None, lines, wire.USER_FILE)
    parts = compiled(code)
    if not any(part.co_flags & CO_COROUTINE for part in parts):
        for part in parts:
            exec(part, namespace)
        return
    import asyncio

    asyncio.run(_run(parts, namespace))


async def _run(parts: list[CodeType], namespace: dict[str, Any]) -> None:
    for part in parts:
        result = eval(part, namespace)
        if part.co_flags & CO_COROUTINE:
            await result


def compiled(code: str) -> list[CodeType]:
    """The code in one part, or two when the last statement is an expression: sys.displayhook gets its value."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(code, wire.USER_FILE, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    last: list[ast.stmt] = [tree.body.pop()] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
    parts = []
    if tree.body:
        parts.append(compile(tree, wire.USER_FILE, "exec", flags, dont_inherit=True))
    if last:
        parts.append(compile(ast.Interactive(last), wire.USER_FILE, "single", flags, dont_inherit=True))
    return parts
