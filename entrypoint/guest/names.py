"""Names: which there are, and which one was meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import islice

from guest import wire

MAX_NAMES = 2_000  # that are compared with a wrong one
MAX_NAME = 80  # characters of one that is

KEPT = {  # functions of the original
    "save_tool",
    *("save_memory", "load_memory", "delete_memory", "update_memory"),
    *("list_memories", "memory_exists", "get_memory_info"),
}
STANDARD = {  # names that code uses without importing them, by the module that has them
    name: module
    for module, listed in (
        ("asyncio", "gather run create_task as_completed wait_for to_thread"),
        ("base64", "b64decode b64encode"),
        ("collections", "Counter OrderedDict defaultdict deque namedtuple"),
        ("concurrent.futures", "ThreadPoolExecutor"),
        ("contextlib", "suppress"),
        ("dataclasses", "asdict dataclass field"),
        ("datetime", "date datetime timedelta timezone"),
        ("decimal", "Decimal"),
        ("enum", "Enum"),
        ("fractions", "Fraction"),
        ("functools", "cache lru_cache partial reduce"),
        ("io", "BytesIO StringIO"),
        ("itertools", "accumulate chain combinations groupby islice permutations product zip_longest"),
        ("math", "ceil floor sqrt"),
        ("operator", "attrgetter itemgetter"),
        ("pathlib", "Path"),
        ("pprint", "pprint"),
        ("statistics", "mean median"),
        ("textwrap", "dedent"),
        ("time", "perf_counter sleep"),
        ("typing", "Any Dict List Optional"),
        ("urllib.parse", "quote urlencode urlparse"),
        ("zoneinfo", "ZoneInfo"),
    )
    for name in listed.split()
}


def nothing_kept() -> str:
    """What is said of helpers that keep something for later runs."""
    if wire.LASTS:
        return "what a variable or a file in /workspace has is there in the next call of this sandbox"
    way = "print what the next one needs, or hand it to a tool"
    return f"nothing is kept between runs{with_sandbox()}; {way}"


def with_sandbox() -> str:
    """What would keep variables, where there is that."""
    if not wire.OFFERED:
        return ""
    return ', unless they have the argument sandbox ("new", or the id from a result)'


def joined(names: Sequence[str], limit: int) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def choices(names: Iterable[str], kind: str, wrong: str = "") -> str:
    """A sentence that says which names there are, the nearest to a wrong one first."""
    listed = sorted(names)
    if not listed:
        return f"there are no {kind}"
    text = f"the {kind} are {joined(listed, 20)}"
    near = nearest(wrong, listed, part=True)
    return f"did you mean {near}? ({text})" if near else text


def nearest(wrong: str, names: Iterable[str], part: bool = False) -> str:
    """The name most like a wrong one; with part also the only one that begins it or with it."""
    if not 0 < len(wrong) <= MAX_NAME:
        return ""
    import difflib

    lower = {name.lower(): name for name in islice(names, MAX_NAMES) if len(name) <= MAX_NAME}
    found = difflib.get_close_matches(wrong.lower(), lower, n=1, cutoff=0.6)
    if part and not found and len(wrong) > 2:  # repo for repository, org for organization
        long = [name for name in lower if len(name) > 2]
        found = [name for name in long if name.startswith(wrong.lower()) or wrong.lower().startswith(name)]
    return lower[found[0]] if len(found) == 1 else ""


def one_edit(wrong: str, name: str) -> bool:
    """Whether name is wrong with one letter more, less or other, or two in the other order."""
    begin = len(os.path.commonprefix([wrong, name]))
    a, b = wrong[begin:], name[begin:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and len(b) > 1 and a[2:] == b[2:])


class UnknownName(KeyError):
    """A KeyError that reads as the sentence it is, and is called what code catches it as."""

    __module__ = "builtins"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


UnknownName.__name__ = UnknownName.__qualname__ = "KeyError"
