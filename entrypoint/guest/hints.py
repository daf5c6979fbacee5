"""The next step for the usual slips, in a sentence behind the error."""

from __future__ import annotations

import re

from guest import container_hints, expressions, lookup_hints, name_hints, names, not_python, wire
from guest.light_typing import Any
from guest.name_hints import nothing_installed, proxies

_NO_COROUTINE = re.compile("a coroutine was expected, got|coroutine or an awaitable is required")
_GATHERED = re.compile(
    "unhashable type: '(ToolData|ToolList)'|no current event loop|An asyncio.Future, a coroutine"
)
_NO_LOOP = (
    "without a top-level await a call of a tool gives its value at once: write it without asyncio.run and"
    " without await; a tool that was called here has done its work already"
)
_SAID: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    (
        (TypeError,),
        "the JSON object must be str, bytes or bytearray, not (dict|list|int|float|bool)$",
        "it is data already: use it without json.loads",
    ),
    ((SyntaxError,), "outside async function", "make the function async def and await its call"),
    (
        (TypeError, AttributeError, ValueError),
        r"\basync_generator\b(?!.*context manager)",
        "an async generator is gone through by async for, at top level too; all of it: [x async for x in f()]",
    ),
    (
        (TypeError, AttributeError),
        r"'?\b(Awaited|coroutine)\b'? (object|has no)",
        "its value comes with await: "
        "in code with a top-level await every call of a tool or coroutine is written await f(x)",
    ),
    (
        (RuntimeError,),
        "cannot be called from a running event loop|loop is already running",
        "code with a top-level await runs in an event loop already: await the coroutine instead",
    ),
    (
        (TypeError,),
        'can only concatenate str .not "Tool(Data|List)"|must be str, not Tool(Data|List)'
        "|expected string or bytes-like object, got 'Tool(Data|List)'"
        "|expected str instance, Tool(Data|List) found",
        "the JSON text of this result is data already: write value.text for the text, or json.dumps(value)",
    ),
    (
        (RuntimeError,),
        "^no running event loop$",
        "none runs here: await the coroutine, or asyncio.gather(...) of some, at the top level of the code",
    ),
    ((EOFError,), "EOF when reading", "there is no input here: write the value into the code"),
)


def hint(error: BaseException, namespace: dict[str, Any]) -> str:
    """A sentence without a period, or "" when there is nothing to add."""
    if text := container_hints.limit(error):
        return text
    for rule in (name_hints.hint, _fence, _value, _said, lookup_hints.hint, _attribute, container_hints.hint):
        if text := rule(error, namespace):
            return text
    return ""


def _fence(error: BaseException, namespace: dict[str, Any]) -> str:
    if not isinstance(error, SyntaxError) or error.filename != wire.USER_FILE:
        return ""
    if (error.text or "").lstrip().startswith("```"):
        return "this is Markdown: leave out the lines with ```, and send the code alone"
    return not_python.hint(error, proxies(namespace), nothing_installed())


def _value(error: BaseException, namespace: dict[str, Any]) -> str:
    """A tool's value where asyncio wants a coroutine: without an event loop, a call blocks."""
    if not isinstance(error, (TypeError, ValueError, RuntimeError)):
        return ""
    if "gather(" in (line := expressions.Place(error).line) and _GATHERED.search(str(error)):
        mended = re.sub(r"asyncio\.run\(((?:asyncio\.)?gather\(.*\))\)", r"\1", line)
        return "write: " + re.sub(r"\b(?:asyncio\.)?gather\(", "await asyncio.gather(", mended, count=1)
    if not _NO_COROUTINE.search(str(error)) or "async_generator" in str(error) or not proxies(namespace):
        return ""
    return _NO_LOOP


def _said(error: BaseException, namespace: dict[str, Any]) -> str:
    """What an exception says needs no more than its own text."""
    for kinds, pattern, said in _SAID:
        if isinstance(error, kinds) and re.search(pattern, str(error)):
            return said
    return ""


def _attribute(error: BaseException, namespace: dict[str, Any]) -> str:
    wrong, owner = getattr(error, "name", None), getattr(error, "obj", None)
    if not isinstance(error, AttributeError) or not isinstance(wrong, str) or owner is None:
        return ""
    if type(owner).__module__.startswith("guest."):  # a proxy says itself what there is
        return ""
    if len(wrong) < 3:
        return ""
    near = names.nearest(wrong, (name for name in expressions.members(owner) if not name.startswith("_")))
    return f"did you mean {near}?" if near else ""
