"""Coroutines and tasks that the code has made and forgotten, which it is told of on stderr.

What is wrong here is passed over: the code may have put anything in the place of what is asked.
"""

from __future__ import annotations

import sys
from _weakref import ref
from collections.abc import Callable
from itertools import islice
from types import CoroutineType

from guest import wire
from guest.calls import Awaited
from guest.light_typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

MAX_NAMED = 5  # tasks
MAX_LOOKED = 100  # items of a list, which may have millions
MAX_SAID = 300  # characters of an error


def report_variables() -> None:
    """Names the variables that hold a coroutine which never began, or a task that failed unseen.

    Each is told of once. Python itself does so as it takes the variables apart, which the guest
    leaves out.
    """
    try:
        for name, value in list(vars(sys.modules["__main__"]).items()):
            if type(name) is not str:
                continue
            kind = type(value)  # asked by "is" alone: anything else may be the code's own
            many = kind is list or kind is tuple or kind is set
            for one in islice(value, MAX_LOOKED) if many else (value,):
                if (said := _coroutine(one) or _future(one)) and not _is_reported(one):
                    way = f"asyncio.gather(*{name})" if many else name
                    _say(f"{name} has {said}; write: await {way}")
                    if type(one) is CoroutineType:  # the others of a list are like it
                        break
    except Exception:
        pass


def _coroutine(one: object) -> str:
    if type(one) is not CoroutineType or not _is_new(one):
        return ""
    return f"{one.cr_code.co_name}(...), which was never awaited, so none of it has run"


def _is_new(one: CoroutineType[Any, Any, Any]) -> bool:
    """Reports whether none of a coroutine has run, as inspect.getcoroutinestate does."""
    if one.cr_frame is None or one.cr_running:
        return False
    suspended = getattr(one, "cr_suspended", None)  # which Python 3.10 hasn't got
    return one.cr_frame.f_lasti < 0 if suspended is None else not suspended


def _future(one: Any) -> str:
    """What became of a task, or of what asyncio.gather returned, that failed or never began."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not issubclass(type(one), asyncio.Future):
        return ""
    if not one.done():
        tasks = getattr(one, "_children", [one])  # those of a gather
        began = one.get_loop().is_running() or any(not _is_new_task(task) for task in tasks)
        return "" if began else f"{_named(one)}, which no event loop has run"
    if one.cancelled() or not one._log_traceback:  # somebody has asked for its end
        return ""
    error = one.exception()
    return f"{_named(one)}, which failed, and nothing awaited it: {type(error).__name__}: {error}"[:MAX_SAID]


def _is_new_task(task: Any) -> bool:
    coroutine = task.get_coro() if hasattr(task, "get_coro") else None
    return type(coroutine) is CoroutineType and _is_new(coroutine)


def _named(one: Any) -> str:
    """A future as it is written."""
    if hasattr(one, "_children"):
        return "what asyncio.gather returned"
    if sys.version_info[:2] == (3, 12) and one.done():  # which may crash for the coroutine of an eager task
        return "a task"
    return _name(one) or "a future"


def _is_reported(one: Any) -> bool:
    """Reports whether this has been asked of one before."""
    before = _reported.get(id(one))
    _reported[id(one)] = ref(one)
    return before is not None and before() is one


_reported: dict[int, ref[Any]] = {}


def watch_run() -> None:
    """Has asyncio.run name the tasks that it cancels at its end, which it does without a word.

    Python 3.10 doesn't say which of them the code has cancelled itself.
    """
    if sys.version_info < (3, 11):
        return
    try:
        from asyncio import runners

        own: Any = runners
        if own._cancel_all_tasks.__module__ != __name__:
            own._cancel_all_tasks = _telling(own._cancel_all_tasks)
    except Exception:
        pass


def _telling(cancel_all: Callable[[Any], None]) -> Callable[[Any], None]:
    def cancel(loop: asyncio.AbstractEventLoop) -> None:
        left = _left(loop)
        cancel_all(loop)
        _report_cancelled(left)

    return cancel


def _left(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    """The tasks that aren't done, and that the code itself has not cancelled, where it hasn't failed."""
    try:
        failed, tasks = sys.exc_info()[0] is not None, sys.modules["asyncio"].all_tasks(loop)
        return [] if failed else [task for task in tasks if not task.cancelling()]
    except Exception:
        return []


def _report_cancelled(tasks: list[asyncio.Task[Any]]) -> None:
    try:
        named = sorted(filter(None, (_name(task) for task in tasks if task.cancelled())))
        if not named:
            return
        more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
        listed = ", ".join(named[:MAX_NAMED]) + more
        were, them = ("a task wasn't", "it") if len(named) == 1 else (f"{len(named)} tasks weren't", "them")
        said = f"{were} done when the event loop ended, which cancelled {them}: {listed}"
        way = f"await {them} or what asyncio.gather returned, or call cancel() where that is meant"
        _say(f"{said}; {way}. What had begun may have taken effect")
    except Exception:
        pass


def _name(task: Any) -> str:
    """What a task runs, as it is written, or "" for what isn't the code's, as the end of a generator."""
    coroutine = task.get_coro() if hasattr(task, "get_coro") else None
    if type(coroutine) is Awaited:
        return coroutine._name
    return f"{coroutine.cr_code.co_name}(...)" if type(coroutine) is CoroutineType else ""


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(f"{wire.USER_FILE}: {text}", file=sys.stderr)
