"""Coroutines and tasks that the code has made and not awaited, which it is told of on stderr."""

from __future__ import annotations

import sys
from _weakref import ref
from types import CoroutineType

from guest import wire
from guest.calls import Awaited
from guest.light_typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

MAX_NAMED = 5  # tasks


def report_coroutines() -> None:
    """Names the variables that hold coroutines which never began, and says so of each coroutine once.

    Python itself does so as it takes the variables apart, which the guest leaves out.
    """
    for name, value in list(vars(sys.modules["__main__"]).items()):
        kind = type(value)  # asked by "is" alone: anything else may be the code's own
        one = value[0] if (kind is list or kind is tuple) and value else value
        if type(one) is not CoroutineType or type(name) is not str or not _is_new(one):
            continue
        if (before := _reported.get(id(one))) and before() is one:
            continue
        _reported[id(one)] = ref(one)
        way = name if one is value else f"asyncio.gather(*{name})"
        said = f"{name} has {one.cr_code.co_name}(...), which was never awaited, so none of it has run"
        print(f"{wire.USER_FILE}: {said}; write: await {way}", file=sys.stderr)


def _is_new(one: CoroutineType[Any, Any, Any]) -> bool:
    """Reports whether none of a coroutine has run, as inspect.getcoroutinestate does."""
    if one.cr_frame is None or one.cr_running:
        return False
    suspended = getattr(one, "cr_suspended", None)  # which Python 3.10 hasn't got
    return one.cr_frame.f_lasti < 0 if suspended is None else not suspended


_reported: dict[int, ref[CoroutineType[Any, Any, Any]]] = {}


def report_cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    """Names the tasks that asyncio.run has cancelled at the end of the code, which it does without a word."""
    named = sorted(_name(task) for task in tasks if task.cancelled())
    if not named:
        return
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    what = "a task that wasn't" if len(named) == 1 else f"{len(named)} tasks that weren't"
    them = "it" if len(named) == 1 else "them"
    said = f"the end of the code cancelled {what} done: {', '.join(named[:MAX_NAMED])}{more}"
    print(f"{wire.USER_FILE}: {said}; await {them}, or what asyncio.gather returned", file=sys.stderr)


def _name(task: asyncio.Task[Any]) -> str:
    """What a task runs, as it is written."""
    coroutine: object = task.get_coro()
    if type(coroutine) is Awaited:
        return coroutine.name
    return f"{coroutine.cr_code.co_name}(...)" if type(coroutine) is CoroutineType else task.get_name()
