"""Arguments on their way to JSON: converted by rule, or refused with their path."""

from __future__ import annotations

import enum
import math
import os
import sys
from binascii import b2a_base64

from guest import wire
from guest.light_typing import Any
from guest.results import SerializationError

INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1
BYTES_MARK = "$base64"
# Values that a frame can hold, of two bytes at least. A map or a list counts as four.
ROOM = wire.MAX_FRAME // 2


def encode(arguments: dict[str, Any]) -> bytes:
    """A JSON object. Raises SerializationError naming the path of the first value that can't cross."""
    return dumps(plain(arguments))


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as JSON has them, all of it new. Raises SerializationError as encode does."""
    made: dict[str, Any] = _plain(arguments, "", (), [ROOM])
    return made


def dumps(plain: dict[str, Any]) -> bytes:
    """What plain has made, as a JSON object."""
    try:
        return wire.encode(plain)[:-1]
    except RecursionError:
        raise SerializationError("the arguments are nested too deeply to be sent") from None


def _plain(value: Any, path: str, above: tuple[int, ...], room: list[int]) -> Any:
    """value as JSON has it: None, bool, str, finite float, int of 64 bits, list, dict of str.

    room bounds it: a list that holds another one several times is written as often.
    """
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value, path)
    if kind is int:
        if INT_MIN <= value <= INT_MAX:
            return value
        raise _refused(path, "an integer of more than 64 bits", "send it as str")
    if kind is float:
        if math.isfinite(value):
            return value
        raise _refused(path, f"the number {value}", "JSON has only finite ones; send None or a str")
    if id(value) in above:
        raise _refused(path, "a value that contains itself", "send a copy without the cycle")
    if len(above) > 200:
        raise _refused(path, "nested more than 200 deep", "send something flatter")
    if isinstance(value, (dict, list, tuple)):
        room[0] -= 4 + len(value)
        if room[0] < 0:
            raise _refused(path, "more values than a frame can hold", "send less at a time")
    if isinstance(value, dict):
        inner = (*above, id(value))
        prefix = f"{path}." if path else ""
        return {_key(k, path): _plain(v, f"{prefix}{k}", inner, room) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        inner = (*above, id(value))
        return [_plain(v, f"{path}[{i}]", inner, room) for i, v in enumerate(value)]
    return _plain(_converted(value, path), path, (*above, id(value)), room)


def _converted(value: Any, path: str) -> Any:
    """The documented conversions, one step of them."""
    if isinstance(value, enum.Enum):
        return value.value
    for kind in (str, int, float):  # subclasses
        if isinstance(value, kind):
            return kind.__str__(value) if kind is str else kind(value)
    if _is_one_of(value, "datetime", "date", "time"):
        return value.isoformat()
    if _is_one_of(value, "decimal", "Decimal") or _is_one_of(value, "uuid", "UUID"):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {BYTES_MARK: b2a_base64(value, newline=False).decode()}
    if "__dataclass_fields__" in dir(type(value)):
        return {field.name: getattr(value, field.name) for field in sys.modules["dataclasses"].fields(value)}
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    hint = "send a str, a number, a list or a dict instead"
    if hasattr(value, "tolist"):
        hint = "send .tolist()"
    elif isinstance(value, (set, frozenset)):
        hint = "send a list"
    raise _refused(path, f"of type {type(value).__name__}", hint)


def _is_one_of(value: Any, module: str, *names: str) -> bool:
    """isinstance, without importing the module: while it isn't imported no value is of its types."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names))


def _key(key: Any, path: str) -> str:
    if isinstance(key, enum.Enum) and isinstance(key.value, str):
        key = key.value
    if not isinstance(key, str):
        raise _refused(path, f"a dict with the key {key!r:.80}", "keys must be str")
    return str.__str__(key) if key.isascii() else _text(str.__str__(key), path)


def _text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        mend = "repair it: s.encode('utf-8', 'replace').decode()"
        raise _refused(path, "text with half of a surrogate pair", mend) from None
    return text


def _refused(path: str, what: str, hint: str) -> SerializationError:
    return SerializationError(f"{path or 'the arguments'}: {what} can't be sent to a tool; {hint}", path)
