"""What a result holds beside its value; imported late, since most results hold nothing else."""

from __future__ import annotations

from binascii import a2b_base64
from typing import Any

from guest import mime
from guest.artifacts import BASE64, MIME
from guest.results import ReadyList, There, ToolError, blocks

MAX_DATA = 100  # characters of base64 that are shown


class ToolImage:
    """An image, a piece of audio, or another file of a result: `data` are its bytes, `mime` is its type."""

    __module__ = "mcp"

    def __init__(self, data: bytes, mime: str) -> None:
        self.data, self.mime = data, mime
        self.kind = _main(mime)

    def __bytes__(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        return f"<{self.kind} {self.mime}, {len(self.data)} bytes>"


class ToolLink:
    """A resource that a result points to: mcp_x.resources.read(link.uri) reads it."""

    __module__ = "mcp"

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.uri, self.name = str(about.get("uri", "")), str(about.get("name", ""))
        self.mime = str(about.get("mimeType") or "")

    def __repr__(self) -> str:
        return f"<resource {self.uri}{', ' + self.mime if self.mime else ''}>"


class ResourceText(There, str):
    """A resource that is a text."""

    __module__ = "mcp"
    uri: str
    mime: str


class ResourceBytes(There, bytes):
    """A resource that is no text."""

    __module__ = "mcp"
    uri: str
    mime: str

    def __repr__(self) -> str:
        return f"<resource {self.uri}, {self.mime or 'of no known type'}, {len(self)} bytes>"


def media(content: list[Any], *kinds: str) -> list[ToolImage]:
    """The files of these kinds: "image", "audio", or "file" for any other that was sent along."""
    found = []
    for block in content:
        kind, about = _kind(block)
        if kind in kinds:
            data = decoded(about.get("blob" if block["type"] == "resource" else "data"))
            said = str(about.get("mimeType") or "").partition(";")[0]
            found.append(ToolImage(data, said if MIME.fullmatch(said) else mime.guess("", data)))
    return found


def _main(mime: str) -> str:
    main = mime.partition("/")[0]
    return main if main in ("image", "audio") else "file"


def _kind(block: Any) -> tuple[str, dict[str, Any]]:
    """Which kind of file a block is, and the object that has its type; "" where it isn't one."""
    if not isinstance(block, dict):
        return "", {}
    about = block.get("resource") if block.get("type") == "resource" else block
    if block.get("type") in ("image", "audio"):
        return str(block["type"]), block
    if not isinstance(about, dict) or about is block or "blob" not in about:
        return "", {}
    return _main(str(about.get("mimeType") or "")), about


def note(content: list[Any], texts: bool, files: bool = True) -> str:
    """How to see what neither the text nor the data of a result shows, or "".

    texts: whether embedded texts count. files: whether images and other files do.
    """
    found = [_kind(block)[0] for block in content if files]
    counts = {"image": found.count("image"), "audio file": found.count("audio"), "file": found.count("file")}
    counted = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n]
    said = []
    if counted:
        attribute = "images" if counts["image"] and len(counted) == 1 else "files"
        said.append(f"{', '.join(counted)}: .{attribute}, shown by display(...)")
    embedded = [one for one in blocks(content, "resource") if not _kind(one)[0]] if texts else []
    links = blocks(content, "resource_link")
    for kind, attribute, n in (("text", "resources", len(embedded)), ("link", "links", len(links))):
        if n:
            said.append(f"{n} {kind}{'s' if n > 1 else ''}: .{attribute}")
    return "; ".join(said)


class Base64:
    """What is shown in the place of data."""

    def __init__(self, text: str) -> None:
        self.size = len(text) * 3 // 4 - text[-2:].count("=")

    def __repr__(self) -> str:
        return f"<base64, {self.size:,} bytes>"


def shortened(value: Any) -> Any:
    """A copy of JSON without the data of its images and other files."""
    if isinstance(value, list):
        return [shortened(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: shortened(one) for key, one in value.items()}
    for key in ("data", "blob"):
        text = value.get(key)
        if "mimeType" in value and isinstance(text, str) and len(text) > MAX_DATA and BASE64.fullmatch(text):
            made[key] = Base64(text)
    return made


def decoded(text: Any) -> bytes:
    try:
        return a2b_base64(text)
    except (TypeError, ValueError) as e:
        raise ToolError(f"the server sent data that is no base64: {e}") from None


def resource(about: Any) -> Any:
    """A resource as code has it: a str, or bytes, with .uri and .mime."""
    about = about if isinstance(about, dict) else {}
    made: Any = ResourceText(about.get("text", ""))
    if "blob" in about:
        made = ResourceBytes(decoded(about["blob"]))
    made.uri, made.mime = str(about.get("uri", "")), str(about.get("mimeType") or "")
    return made


def contents(result: Any) -> Any:
    """The value of a resources/read: the one resource, or a list when it is not one."""
    found = result.get("contents") if isinstance(result, dict) else None
    made = [resource(about) for about in (found if isinstance(found, list) else [])]
    return made[0] if len(made) == 1 else ReadyList(made)
