"""What a tool's answer becomes in Python, and the errors that calls raise."""

from __future__ import annotations

import json
from binascii import a2b_base64

from guest import wire
from guest.ready import ReadyList, There
from guest.typed import Any, NoReturn

_ENVELOPE = ("content", "structuredContent", "isError")


class ToolError(RuntimeError):
    """A call failed: the tool said so, or it could not be made. `code` says which; `content` is what the tool sent."""

    __module__ = "mcp"

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        tool: str = "",
        code: str = "tool_error",
        content: list[Any] | None = None,
        data: Any = None,
    ) -> None:
        super().__init__(message)
        self.server, self.tool, self.code = server, tool, code
        self.content = content or []
        self.data = data


class ToolTimeout(ToolError, TimeoutError):
    """The time that .options(timeout=...) allows is over. The tool may still be at work."""

    __module__ = "mcp"


class SerializationError(ToolError, TypeError):
    """An argument holds a value that can't be sent; `path` says where."""

    __module__ = "mcp"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, code="serialization_error")
        self.path = path


class ToolImage:
    """An image, or a piece of audio, of a result: `data` are its bytes, `mime` is its type."""

    __module__ = "mcp"

    def __init__(self, data: bytes, mime: str) -> None:
        self.data, self.mime = data, mime

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {self.mime: self.data}

    def __repr__(self) -> str:
        return f"<{self.mime.partition('/')[0] or 'file'} {self.mime}, {len(self.data)} bytes>"


class ToolLink:
    """A resource that a result points to: mcp_x.resources.read(link.uri) reads it. `about` is all that the server said."""

    __module__ = "mcp"

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.uri, self.name = str(about.get("uri", "")), str(about.get("name", ""))
        self.mime = str(about.get("mimeType") or "")

    def __repr__(self) -> str:
        return f"<resource {self.uri}{', ' + self.mime if self.mime else ''}>"


class _Content(There):
    """What both kinds of results have."""

    __slots__ = ()

    content: list[Any]
    structured: Any

    def _blocks(self, *kinds: str) -> list[dict[str, Any]]:
        return [block for block in self.content if isinstance(block, dict) and block.get("type") in kinds]

    @property
    def images(self) -> list[ToolImage]:
        return [ToolImage(_bytes(block.get("data")), str(block.get("mimeType", ""))) for block in self._blocks("image")]

    @property
    def audio(self) -> list[ToolImage]:
        return [ToolImage(_bytes(block.get("data")), str(block.get("mimeType", ""))) for block in self._blocks("audio")]

    @property
    def resources(self) -> list[Any]:
        """The resources that were sent along: a text as a str, others as bytes, each with .uri and .mime."""
        return [_resource(block.get("resource")) for block in self._blocks("resource")]

    @property
    def links(self) -> list[ToolLink]:
        return [ToolLink(block) for block in self._blocks("resource_link")]

    def _envelope(self, key: object) -> Any:
        if key == "content":
            return self.content
        if key == "structuredContent" and self.structured is not None:
            return self.structured
        if key == "isError":
            return False
        raise KeyError(key)


class ToolText(_Content, str):
    """The text of a result. It is a str; what else the tool sent is in its attributes: content, images, structured and more.

    Code that expects the result as MCP has it finds that too: result["content"], result["isError"].
    """

    __module__ = "mcp"

    def json(self) -> Any:
        """The text parsed as JSON."""
        return json.loads(self)

    def __getitem__(self, key: Any) -> Any:
        return self._envelope(key) if isinstance(key, str) else str.__getitem__(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """A part of the result as MCP has it: "content", "structuredContent" or "isError"."""
        try:
            return self._envelope(key)
        except KeyError:
            return default


class ToolData(_Content, dict[str, Any]):
    """The structured value of a result, a dict. What else the tool sent is in its attributes, as with a text."""

    __module__ = "mcp"

    def __missing__(self, key: str) -> Any:
        return self._envelope(key)


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


def _bytes(text: Any) -> bytes:
    try:
        return a2b_base64(text)
    except (TypeError, ValueError) as e:
        raise ToolError(f"the server sent data that is no base64: {e}") from None


def _resource(about: Any) -> Any:
    about = about if isinstance(about, dict) else {}
    made: Any = ResourceBytes(_bytes(about["blob"])) if "blob" in about else ResourceText(about.get("text", ""))
    made.uri, made.mime = str(about.get("uri", "")), str(about.get("mimeType") or "")
    return made


def contents(result: Any) -> Any:
    """The value of a resources/read: the one resource, or a list when it is not one."""
    found = result.get("contents") if isinstance(result, dict) else None
    made = [_resource(about) for about in (found if isinstance(found, list) else [])]
    return made[0] if len(made) == 1 else ReadyList(made)


def failure(frame: wire.Frame, server: str, tool: str) -> NoReturn:
    """Raises what a tool_result says that isn't ok."""
    error = frame.get("error")
    error = error if isinstance(error, dict) else {}
    raise ToolError(
        str(error.get("message", "the call failed and nothing says why")),
        server=server,
        tool=tool,
        code=str(error.get("code", "tool_error")),
        data=error.get("data"),
    )


def value(result: Any, server: str, tool: str, declared: bool) -> Any:
    """The Python value of a CallToolResult; declared says that the tool has an output schema.

    Raises ToolError when the tool says that it failed.
    """
    if not isinstance(result, dict):
        return result
    content = result.get("content")
    content = content if isinstance(content, list) else []
    texts = [str(block.get("text", "")) for block in content if isinstance(block, dict) and block.get("type") == "text"]
    if result.get("isError"):
        raise ToolError("\n".join(texts) or "the tool failed and said no more", server=server, tool=tool, content=content)
    structured = result.get("structuredContent")
    if structured is not None and (declared or not texts):
        if not isinstance(structured, dict):
            return structured
        made: Any = ToolData(structured)
    else:
        made = ToolText("\n".join(texts or _embedded(content)))
    made.content, made.structured = content, structured
    return made


def _embedded(content: list[Any]) -> list[str]:
    """The texts of resources that were sent along, where the tool sent no other text."""
    found = [block.get("resource") for block in content if isinstance(block, dict) and block.get("type") == "resource"]
    return [about["text"] for about in found if isinstance(about, dict) and isinstance(about.get("text"), str)]
