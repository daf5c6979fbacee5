"""Bytes or text of what is shown or handed over. Libraries are recognised, not imported."""

from __future__ import annotations

import base64
import errno
import io
import os

from guest import mime, results
from guest.artifacts import MIME
from guest.light_typing import Any

MAX_ROWS, MAX_COLUMNS = 60, 40  # of a table that is shown; the middle of a larger one is left out
MAX_PATH = 4096  # characters
WRITABLE = ("/workspace/", "/tmp/")  # where code may write files
_SAVED = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP"}
_DRAWN = {"png", "svg", "pdf", "jpg", "jpeg", "webp"}
_OPAQUE = ("1", "L", "RGB")
_MODES = (*_OPAQUE, "LA", "P", "RGBA", "I;16")  # that PNG has too
_BUNDLE = "image/png image/jpeg image/gif image/webp image/svg+xml text/markdown text/plain".split()
_METHODS = {"png": "image/png", "jpeg": "image/jpeg", "svg": "image/svg+xml", "markdown": "text/markdown"}


def made(value: Any, kind: str | None) -> tuple[bytes | str, str, str]:
    """What is shown of a value, its type, and the stem of a name; "" for a text that is printed."""
    if kind is not None:
        return _typed(value, checked(kind))
    if is_figure(value):
        return figure_as(value, "png"), "image/png", "figure"
    if is_picture(value):
        return picture_as(value, "png"), "image/png", "image"
    if (table := table_text(value)) is not None:
        return table, mime.TEXT, ""
    if not isinstance(value, type) and (rich := _rich(value)):
        return rich
    return repr(value), mime.TEXT, ""


def _typed(value: Any, kind: str) -> tuple[bytes | str, str, str]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode("utf-8", "replace") if kind.startswith("text/") else bytes(value)
    elif not isinstance(value, str):
        raise TypeError(f"display(..., mime=...) takes bytes or str, not {type(value).__name__}")
    if kind.startswith("text/"):
        return value, kind, ""
    return value, kind, "image" if kind.startswith("image/") else "display"


def _rich(value: Any) -> tuple[bytes | str, str, str] | None:
    """What an object's own methods give to be shown, as notebooks ask them."""
    bundle = _asked(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(bundle, dict):
        for kind in _BUNDLE:
            if found := _usable(bundle.get(kind), kind):
                return found
    for method, kind in _METHODS.items():
        if found := _usable(_asked(value, f"_repr_{method}_"), kind):
            return found
    return None


def _asked(value: Any, method: str, **arguments: Any) -> Any:
    function = getattr(type(value), method, None)
    if not callable(function):
        return None
    try:
        given = function(value, **arguments)
    except NotImplementedError:
        return None
    return given[0] if isinstance(given, tuple) and given else given  # data, metadata


def _usable(data: Any, kind: str) -> tuple[bytes | str, str, str] | None:
    if isinstance(data, str) and kind.startswith("image/") and kind != "image/svg+xml":
        data = base64.b64decode(data)
    if isinstance(data, (bytes, str)) and data:
        return data, kind, "image" if kind.startswith("image/") else ""
    return None


def contents(name: str, data: Any) -> tuple[bytes, str]:
    """The bytes of a file of that name, and its type."""
    end = mime.ending(name)
    if isinstance(data, (bytes, bytearray, memoryview)):
        raw = bytes(data)
    elif isinstance(data, os.PathLike) or own_file(data):
        with open(data, "rb") as file:
            raw = file.read()
    elif isinstance(data, str):
        if missing(name, data):
            raise FileNotFoundError(errno.ENOENT, "the code has written no such file", data)
        raw = data.encode("utf-8", "surrogatepass")
        if mime.guess(name, raw) == mime.BYTES and not end:
            return raw, mime.TEXT
    elif is_figure(data):
        raw = figure_as(data, end if end in _DRAWN else "png")
    elif is_picture(data):
        raw = picture_as(data, end if end in _SAVED else "png")
    elif table_text(data) is not None:
        if end == "json":
            raw = data.to_json(orient="records").encode()
        else:
            raw = data.to_csv(sep="\t" if end == "tsv" else ",").encode()
        return raw, mime.guess(name, raw) if end else "text/csv"
    elif isinstance(data, (dict, list)):
        import json

        raw = json.dumps(data, ensure_ascii=False, indent=1, default=str).encode("utf-8", "backslashreplace")
        return raw, mime.guess(name, raw) if end else "application/json"
    elif callable(getattr(data, "getvalue", None)):
        given = data.getvalue()
        raw = given.encode("utf-8", "surrogatepass") if isinstance(given, str) else bytes(given)
    else:
        raise TypeError(
            "save_artifact takes bytes, str, a path, a figure, an image, a DataFrame, a dict or a list, "
            f"not {type(data).__name__}"
        )
    return raw, mime.guess(name, raw)


def named(path: Any) -> tuple[str, Any]:
    """The name and the data of a file that save_artifact was given by its path alone."""
    if isinstance(path, os.PathLike) or own_file(path):
        return os.path.basename(path), path
    wrong = repr(str(path)[:100])
    raise TypeError(f"save_artifact takes a name and data, or the path of a file; {wrong} is no such file")


def own_file(data: Any) -> bool:
    """Whether data is, as a plain text, the path of a file that the code may have written."""
    if not isinstance(data, str) or isinstance(data, results.Content):
        return False
    if len(data) > MAX_PATH or not data.isprintable():
        return False
    return os.path.realpath(data).startswith(WRITABLE) and os.path.isfile(data)


def missing(name: str, data: str) -> bool:
    """Whether data is the path of a file of that kind that isn't there: a text like it is hardly meant."""
    if isinstance(data, results.Content) or len(data) > MAX_PATH or not data.isprintable() or " " in data:
        return False
    end = mime.ending(data)
    return end not in ("", "txt") and end == mime.ending(name) and (data == name or data.startswith(WRITABLE))


def checked(kind: str) -> str:
    """kind, where it reads as a type such as image/png. Raises ValueError otherwise."""
    if len(kind) > 100 or not MIME.fullmatch(kind):
        raise ValueError(f"{kind!r} is no type of data; write one such as image/png or text/csv")
    return kind


def is_figure(value: Any) -> bool:
    return _is(value, "matplotlib", "Figure") and hasattr(value, "savefig")


def is_picture(value: Any) -> bool:
    return _is(value, "PIL", "Image") and hasattr(value, "save")


def _is(value: Any, package: str, name: str) -> bool:
    """Whether value's type, or one that it comes from, is of that name and package."""
    kinds = getattr(type(value), "__mro__", ())
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == package for kind in kinds)


def figure_as(figure: Any, form: str) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=form, bbox_inches="tight")
    return file.getvalue()


def picture_as(picture: Any, form: str) -> bytes:
    file = io.BytesIO()
    modes = _OPAQUE if form in ("jpg", "jpeg") else _MODES
    near = {"La": "LA", "RGBa": "RGBA", "PA": "RGBA", "I": "RGB" if modes is _OPAQUE else "I;16"}
    for _ in range(2):  # from La there is only the way over LA
        if picture.mode in modes:
            break
        picture = picture.convert(near.get(picture.mode, "RGB"))
    picture.save(file, format=_SAVED[form])
    return file.getvalue()


def table_text(value: Any) -> str | None:
    """A DataFrame or Series of pandas as text; None for anything else."""
    if _is(value, "pandas", "DataFrame") and hasattr(value, "to_string"):
        long = len(value) > MAX_ROWS
        return str(value.to_string(max_rows=MAX_ROWS, max_cols=MAX_COLUMNS, show_dimensions=long))
    if _is(value, "pandas", "Series") and hasattr(value, "to_string"):
        return str(value.to_string(max_rows=MAX_ROWS, name=True, dtype=True, length=len(value) > MAX_ROWS))
    return None
