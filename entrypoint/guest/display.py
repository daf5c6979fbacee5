"""Showing values and handing files over."""

from __future__ import annotations

import sys

from guest import artifacts, content, mime, results
from guest.content import ToolImage
from guest.displayhook import members
from guest.light_typing import Any
from guest.link import Link
from guest.rendering import checked, contents, is_figure, made, named

MAX_FILES = 10  # of a list, tuple or dict of results that are shown


def files_of(value: Any, name: str = "") -> list[ToolImage]:
    """The files that a result, a file of one, or a list of those stands for.

    A result with a text or data is saved as that in a file of this name, unless it is the name of an
    image or audio, or has no ending.
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
    """The results with more than a text or data: value itself, or members of it by index or key."""
    if isinstance(value, results.Content):
        return {"": value} if value.note() else {}
    if type(value) not in (list, tuple, dict):
        return {}
    found = zip(value if type(value) is dict else range(len(value)), members(value), strict=False)
    return {repr(key): one for key, one in found if isinstance(one, results.Content) and one.note()}


class Screen:
    """Shows and hands over, for the one run of this process."""

    def __init__(self, link: Link, limit: int) -> None:
        self._link = link
        self._room = artifacts.Room(limit or artifacts.DEFAULT_LIMIT)
        self._seen: list[Any] = []  # figures that need not be shown again at the end

    def show(self, value: Any, kind: str | None = None) -> None:
        """Shows one value. One that is too large to be handed over is reported on stderr."""
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
            print(f"[{len(files) - MAX_FILES} more not shown: display them one by one]")
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
        names = (f"{stem}-{n}{dot}{end}" for n in range(1, len(files) + 1))
        return [self._save(one, file.data, file.mime, kind) for one, file in zip(names, files, strict=True)]

    def _save(self, name: str, found: bytes, guessed: str, kind: str | None) -> str:
        given = self._send(name, found, checked(kind) if kind is not None else guessed)
        if given != name:
            print(f"save_artifact: {name!r} is handed over as {given!r}", file=sys.stderr)
        return given

    def figures(self) -> None:
        """Shows and closes pyplot's open figures, and reports those that can't be drawn on stderr."""
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
            raise RuntimeError("files are handed over by the process that runs the code, not by a fork of it")
        name = self._room.take(name, len(data))
        for frame in artifacts.frames(name, kind, data):
            self._link.send(frame)
        return name
