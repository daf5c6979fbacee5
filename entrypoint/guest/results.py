"""What a tool's answer becomes in Python, and the errors that calls raise."""

from __future__ import annotations

import base64
import json
from typing import Any, NoReturn

from guest import wire


class ToolError(Exception):
    """A call failed: the tool said so, or it could not be made. `code` says which; `content` is what the tool sent."""

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


class SerializationError(ToolError, TypeError):
    """An argument holds a value that can't be sent; `path` says where."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, code="serialization_error")
        self.path = path


class ToolImage:
    """An image of a result: `data` are its bytes, `mime` is its type."""

    def __init__(self, data: bytes, mime: str) -> None:
        self.data, self.mime = data, mime

    def __repr__(self) -> str:
        return f"<image {self.mime}, {len(self.data)} bytes>"


class ToolText(str):
    """The text of a result. It is a str; what else the tool sent is in `content`, `images` and `structured`."""

    content: list[Any]
    structured: Any

    def json(self) -> Any:
        """The text parsed as JSON."""
        return json.loads(self)

    @property
    def images(self) -> list[ToolImage]:
        return [
            ToolImage(base64.b64decode(block.get("data", "")), str(block.get("mimeType", "")))
            for block in self.content
            if isinstance(block, dict) and block.get("type") == "image"
        ]


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
        return structured
    text = ToolText("\n".join(texts))
    text.content, text.structured = content, structured
    return text
