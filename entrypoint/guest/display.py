"""Making files and text of what is to be shown. Libraries are known by the names of their types: none is imported here."""

from __future__ import annotations

import base64
import io
import os
import sys

from guest import artifacts, content, mime, results
from guest.content import ToolImage
from guest.handover import members
from guest.link import Link
from guest.typed import Any

MAX_ROWS, MAX_COLUMNS = 60, 40  # of a table that is shown; the middle of a larger one is left out
MAX_FILES = 10  # of a list, tuple or dict of results that are shown
MAX_PATH = 4096  # characters
WRITABLE = ("/workspace/", "/tmp/")  # where code may write files
_SAVED = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP"}
_DRAWN = {"png", "svg", "pdf", "jpg", "jpeg", "webp"}
_OPAQUE = ("1", "L", "RGB")
_MODES = (*_OPAQUE, "LA", "P", "RGBA", "I", "I;16")  # that PNG has too
_BUNDLE = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "text/markdown", "text/plain")
_METHODS = (
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_markdown_", "text/markdown"),
)


def files_of(value: Any, name: str = "") -> list[ToolImage]:
    """The files that a result, a file of one, or a list of those stands for. name is that of a file to be made of them.

    A result that has a text or data too is saved as that, unless the name is of an image or audio, or has no ending.
    """
    if not isinstance(value, results.Content):
        several = value if type(value) is list else [value]
        return several if several and all(isinstance(one, content.ToolImage) for one in several) else []
    main = mime.guess(name, b"").partition("/")[0]
    every = content.media(value.content, "image", "audio", "file")
    if main in ("image", "audio"):
        alike = content.media(value.content, main)
        return alike or (every if isinstance(value, results.ToolFiles) else [])
    return every if not mime.ending(name) or isinstance(value, results.ToolFiles) else []


def results_in(value: Any) -> dict[str, results.Content]:
    """results_in returns the results with more than a text or data: the value, or members of it by their index or key."""
    if isinstance(value, results.Content):
        return {"": value} if value.note() else {}
    if type(value) not in (list, tuple, dict):
        return {}
    indices = (repr(key) for key in (value if type(value) is dict else range(len(value))))
    return {
        index: one for index, one in zip(indices, members(value), strict=False) if isinstance(one, results.Content) and one.note()
    }


class Screen:
    """Shows and hands over, for the one run of this process."""

    def __init__(self, link: Link, limit: int) -> None:
        self._link = link
        self._room = artifacts.Room(limit or artifacts.DEFAULT_LIMIT)
        self._seen: list[Any] = []  # figures that need not be shown again at the end

    def show(self, value: Any, kind: str | None = None) -> None:
        """Shows one value. What can't be handed over for its size is told on stderr: a look must not end the run."""
        try:
            if kind is None and (found_in := results_in(value)):
                self._show_results(value, found_in)
                return
            if kind is None and (files := files_of(value)):
                self._show_files(files)
                return
            data, found, stem = made(value, kind)
            if is_figure(value):
                self._seen.append(value)
            if isinstance(data, str) and (found.startswith("text/") or not stem):
                print(data)
                return
            name = f"{stem or 'display'}-1{mime.extension(found)}"
            self._send(name, data.encode() if isinstance(data, str) else data, found)
        except (artifacts.LimitReached, results.ToolError) as e:
            print(f"display: {e}", file=sys.stderr)

    def _show_results(self, value: Any, found: dict[str, results.Content]) -> None:
        """Shows a result, or a list, tuple or dict of some, with what they hold besides text and data."""
        alone = "" in found
        if not (alone and isinstance(value, results.ToolFiles) and files_of(value)):
            print(repr(value))
        files = [file for result in found.values() for file in files_of(result)]
        self._show_files(files if alone else files[:MAX_FILES])
        if not alone and len(files) > MAX_FILES:
            print(f"[{len(files) - MAX_FILES} more are not shown: display them one by one]")
        told = []
        for where, result in found.items():
            in_repr = isinstance(result, results.ToolFiles) and not (alone and files)
            if not in_repr and (note := result.note(files=False)):
                told.append(f"[{where}{': ' if where else ''}{note}]")
        print("\n".join(told[:MAX_FILES]), end="\n" if told else "")

    def _show_files(self, files: list[ToolImage]) -> None:
        for file in files:
            self._send(f"{file.kind}-1{mime.extension(file.mime)}", file.data, file.mime)

    def save(self, name: Any, data: Any, kind: str | None = None) -> str | list[str]:
        if data is ...:
            name, data = named(name)
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"save_artifact takes a file name first, not {name!r}")
        if not (files := files_of(data, name)):
            if isinstance(data, results.ToolFiles):
                raise TypeError(f"save_artifact: the result has no file in it but {data!r}")
            return self._save(name, *contents(name, data), kind)
        if len(files) == 1:
            return self._save(name, files[0].data, files[0].mime, kind)
        stem, dot, end = name.rpartition(".") if mime.ending(name) else (name, "", "")
        return [self._save(f"{stem}-{n}{dot}{end}", file.data, file.mime, kind) for n, file in enumerate(files, 1)]

    def _save(self, name: str, found: bytes, guessed: str, kind: str | None) -> str:
        given = self._send(name, found, checked(kind) if kind is not None else guessed)
        if given != name:
            print(f"save_artifact: {name!r} is handed over as {given!r}", file=sys.stderr)
        return given

    def figures(self) -> None:
        """Shows the figures that pyplot has open and closes them. A figure that can't be drawn is told on stderr."""
        pyplot = sys.modules["matplotlib.pyplot"]
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            try:
                if not any(figure is seen for seen in self._seen):
                    self.show(figure)
            except Exception as e:
                print(f"figure {number} could not be shown: {type(e).__name__}: {e}", file=sys.stderr)
            pyplot.close(figure)
        self._seen.clear()

    def _send(self, name: str, data: bytes, kind: str) -> str:
        if not self._link.mine():
            raise RuntimeError("files can be handed over only by the process that runs the code, not by a fork of it")
        name = self._room.take(name, len(data))
        for frame in artifacts.frames(name, kind, data):
            self._link.send(frame)
        return name


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
        data = bytes(value)
        return (data.decode("utf-8", "replace"), kind, "") if kind.startswith("text/") else (data, kind, _stem(kind))
    if isinstance(value, str):
        return value, kind, "" if kind.startswith("text/") else _stem(kind)
    raise TypeError(f"display(..., mime=...) takes bytes or str, not {type(value).__name__}")


def _stem(kind: str) -> str:
    return "image" if kind.startswith("image/") else "display"


def _rich(value: Any) -> tuple[bytes | str, str, str] | None:
    """What an object's own methods give to be shown, as notebooks ask them."""
    bundle = _asked(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(bundle, dict):
        for kind in _BUNDLE:
            if found := _usable(bundle.get(kind), kind):
                return found
    for method, kind in _METHODS:
        if found := _usable(_asked(value, method), kind):
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
        raw = data.encode("utf-8", "surrogatepass")
        if mime.guess(name, raw) == mime.BYTES and not end:
            return raw, mime.TEXT
    elif is_figure(data):
        raw = figure_as(data, end if end in _DRAWN else "png")
    elif is_picture(data):
        raw = picture_as(data, end if end in _SAVED else "png")
    elif table_text(data) is not None:
        raw = (data.to_json(orient="records") if end == "json" else data.to_csv(sep="\t" if end == "tsv" else ",")).encode()
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
            f"save_artifact takes bytes, str, a path, a figure, an image, a DataFrame, a dict or a list, "
            f"not {type(data).__name__}"
        )
    return raw, mime.guess(name, raw)


def named(path: Any) -> tuple[str, Any]:
    """named returns the name and the data of a file that save_artifact was given by its path alone."""
    if isinstance(path, os.PathLike) or own_file(path):
        return os.path.basename(path), path
    raise TypeError(f"save_artifact takes a name and data, or the path of a file; {str(path)[:100]!r} is no such file")


def own_file(data: Any) -> bool:
    """own_file reports whether data is the path, as a plain text, of a file that the code may have written."""
    if not isinstance(data, str) or isinstance(data, results.Content) or len(data) > MAX_PATH or not data.isprintable():
        return False
    return os.path.realpath(data).startswith(WRITABLE) and os.path.isfile(data)


def checked(kind: str) -> str:
    """kind, where it reads as a type such as image/png. Raises ValueError otherwise."""
    main, slash, sub = kind.partition("/")
    if not (slash and main and sub) or len(kind) > 100 or not kind.isascii() or not kind.isprintable() or " " in kind:
        raise ValueError(f"{kind!r} is no type of data; write one such as image/png or text/csv")
    return kind


def is_figure(value: Any) -> bool:
    return _is(value, "matplotlib", "Figure") and hasattr(value, "savefig")


def is_picture(value: Any) -> bool:
    return _is(value, "PIL", "Image") and hasattr(value, "save")


def _is(value: Any, package: str, *names: str) -> bool:
    """Whether value's type, or one that it comes from, is of that name and package."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in getattr(type(value), "__mro__", ())
    )


def figure_as(figure: Any, form: str) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=form, bbox_inches="tight")
    return file.getvalue()


def picture_as(picture: Any, form: str) -> bytes:
    file = io.BytesIO()
    for _ in range(2):  # from La there is only the way over LA
        if picture.mode in (_OPAQUE if form in ("jpg", "jpeg") else _MODES):
            break
        picture = picture.convert({"La": "LA", "RGBa": "RGBA", "PA": "RGBA"}.get(picture.mode, "RGB"))
    picture.save(file, format=_SAVED[form])
    return file.getvalue()


def table_text(value: Any) -> str | None:
    """A DataFrame or Series of pandas as text; None for anything else."""
    if _is(value, "pandas", "DataFrame") and hasattr(value, "to_string"):
        return str(value.to_string(max_rows=MAX_ROWS, max_cols=MAX_COLUMNS, show_dimensions=len(value) > MAX_ROWS))
    if _is(value, "pandas", "Series") and hasattr(value, "to_string"):
        return str(value.to_string(max_rows=MAX_ROWS, name=True, dtype=True, length=len(value) > MAX_ROWS))
    return None
