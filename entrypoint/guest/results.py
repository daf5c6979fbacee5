"""What a tool's answer becomes in Python, and the errors that calls raise."""

from __future__ import annotations

import json
from collections.abc import Generator
from itertools import islice

from guest import wire
from guest.light_typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from guest.content import ToolImage, ToolLink


class There:
    """Awaiting it gives itself, so code may await a value that was made without an event loop."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self
        yield


class ReadyList(There, list[Any]):
    """A list that may be awaited."""


class ReadyDict(There, dict[str, Any]):
    """A dict that may be awaited."""


class ReadyText(There, str):
    """A str that may be awaited."""


class Ready:
    """A value with the two methods of a request, for what needs no asking."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def now(self) -> Any:
        return self._value

    def block(self) -> Any:
        return self._value


class ToolError(RuntimeError):
    """A call failed: `code` says how; `content` is what the tool sent."""

    __module__ = "mcp"

    server = tool = ""
    code = "tool_error"
    content: list[Any] = []  # noqa: RUF012  # nothing changes it
    data: Any = None

    def __init__(self, message: str, **about: Any) -> None:
        super().__init__(message)
        self.__dict__.update(about)


class ToolTimeout(ToolError, TimeoutError):
    """The time that .options(timeout=...) allows is over. The tool may still be at work."""

    __module__ = "mcp"


class SerializationError(ToolError, TypeError):
    """An argument holds a value that can't be sent; `path` says where."""

    __module__ = "mcp"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, code="serialization_error")
        self.path = path


class Content(There):
    """What all results have. The object itself is the text, the dict or the list."""

    content: list[Any] = []  # noqa: RUF012  # no result changes it
    structured: Any = None

    @property
    def text(self) -> str:
        """The text that the tool sent; of data without one, its JSON."""
        return "\n".join(_texts(self.content)) or json.dumps(self, ensure_ascii=False)

    @property
    def images(self) -> list[ToolImage]:
        return self._media("image")

    @property
    def audio(self) -> list[ToolImage]:
        return self._media("audio")

    @property
    def files(self) -> list[ToolImage]:
        """All images, audio and other files, in the order in which they were sent."""
        return self._media("image", "audio", "file")

    def _media(self, *kinds: str) -> list[ToolImage]:
        from guest import content

        return content.media(self.content, *kinds)

    @property
    def resources(self) -> list[Any]:
        """The resources that were sent along: a text as a str, others as bytes, each with .uri and .mime."""
        from guest import content

        return [content.resource(block.get("resource")) for block in blocks(self.content, "resource")]

    @property
    def links(self) -> list[ToolLink]:
        from guest import content

        return [content.ToolLink(block) for block in blocks(self.content, "resource_link")]

    def json(self) -> Any:
        """The value: it is data already."""
        return self

    def note(self, files: bool = True) -> str:
        """How to see what the value doesn't show; files: also its images, audio and other files."""
        if len(texts := _texts(self.content)) == len(self.content):
            return ""
        from guest import content

        return content.note(self.content, bool(texts or self.structured is not None), files)

    def __str__(self) -> str:
        said, note = super().__str__(), self.note()
        return f"{said}\n[{note}]" if note else said

    def _envelope(self, key: object) -> Any:
        """A part of the result as MCP has it, or of what was sent as structured."""
        if isinstance(self.structured, dict) and key in self.structured:
            return self.structured[key]
        if key == "content":
            return self.content
        if key == "structuredContent" and self.structured is not None:
            return self.structured
        if key == "isError":
            return False
        raise KeyError(key)


class ToolText(Content, str):
    """The text of a result, a str.

    What else the tool sent is in its attributes: content, images, structured and more. A result as
    MCP has it is there too: result["content"], result["isError"].
    """

    __module__ = "mcp"

    @property
    def text(self) -> str:
        """The text as a plain str."""
        return str.__str__(self)

    def json(self) -> Any:
        """The text parsed as JSON."""
        return _loads(self)

    def __getitem__(self, key: Any) -> Any:
        return self._envelope(key) if isinstance(key, str) else str.__getitem__(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """A part of the result as MCP has it: "content", "structuredContent" or "isError"."""
        try:
            return self._envelope(key)
        except KeyError:
            return default

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return str, (self.text,)


class ToolFiles(ToolText):
    """A result without a text: its images, audio, other files and links are in its attributes."""

    __module__ = "mcp"

    def __str__(self) -> str:
        return f"[{self.note()}]"

    def __repr__(self) -> str:
        return f"<{self.note()}>"

    def __bool__(self) -> bool:
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        return object.__reduce_ex__(self, protocol)


class ToolData(Content, dict[str, Any]):
    """The data of a result, a dict. What else the tool sent is in its attributes, as with a text."""

    __module__ = "mcp"

    def __missing__(self, key: str) -> Any:
        return self._envelope(key)

    def __getattr__(self, name: str) -> Any:
        raise _no_attribute(self, name)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (), None, None, iter(self.items())  # a copy is plain


class ToolList(Content, list[Any]):
    """The data of a result, a list. What else the tool sent is in its attributes, as with a text."""

    __module__ = "mcp"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            try:
                return self._envelope(key)
            except KeyError:
                pass
        return list.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        raise _no_attribute(self, name)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, (), None, iter(self)


class Shortened:
    """Shortened has data in which there may be images print without their base64."""

    def __repr__(self) -> str:
        from guest import content

        try:
            return repr(content.shortened(self))
        except RecursionError:
            return super().__repr__()


SHORTENED = {
    kind: type(kind.__name__, (Shortened, kind), {"__module__": "mcp"}) for kind in (ToolData, ToolList)
}


def _no_attribute(value: Any, name: str) -> AttributeError:
    if not name.startswith("_"):  # what copy, pickle and others look for
        from guest import attribute_hints, expressions

        if said := attribute_hints.attribute(value, name, expressions.line_here()):
            return AttributeError(said, name=name, obj=None)  # with an obj there is a "Did you mean" too
    return AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}", name=name, obj=value)


_loads = json.loads


def loads(s: Any, **options: Any) -> Any:
    """json.loads, which also takes the data of a result, and gives it as a plain dict or list."""
    if isinstance(s, (ToolData, ToolList)):
        if not options:
            return dict(s) if isinstance(s, dict) else list(s)
        s = json.dumps(s)
    return _loads(s, **options)


def failure(frame: wire.Frame, server: str, tool: str) -> NoReturn:
    """Raises what a tool_result says that isn't ok."""
    error = frame.get("error") or {}
    said, code = error.get("message", "the call failed and nothing says why"), error.get("code", "tool_error")
    raise ToolError(said, server=server, tool=tool, code=code, data=error.get("data"))


def value(result: Any, server: str, tool: str, declared: bool, wrapped: bool = False) -> Any:
    """The Python value of a CallToolResult. Raises ToolError when the tool failed.

    declared: the tool has an output schema. wrapped: with the value in its one property, "result" or
    "content".
    """
    if not isinstance(result, dict):
        return result
    content = result.get("content")
    if not isinstance(content, list):
        if content is not None and result.get("structuredContent") is None:
            said = f"its content is a {type(content).__name__}, no list: {str(content)[:200]}"
            raise ToolError(f"the server's result isn't what MCP has: {said}", server=server, tool=tool)
        content = []
    texts = _texts(content)
    if result.get("isError"):
        said = "\n".join(texts) or "the tool failed and said no more"
        raise ToolError(said, server=server, tool=tool, content=content)
    structured = found = result.get("structuredContent")
    null = declared and result.get("structuredContent", ...) is None
    if null and content in ([], [{"type": "text", "text": "null"}]):
        return None  # as the declaration says: MCP 2026-07-28 has any JSON there
    if structured is None or (texts and not declared):
        found = parsed(texts[0]) if len(texts) == 1 else "\n".join(texts or _embedded(content))
    elif wrapped and isinstance(structured, dict) and structured.keys() in ({"result"}, {"content"}):
        (found,) = structured.values()
    made: Any
    if isinstance(found, (dict, list)):
        kind: Any = ToolData if isinstance(found, dict) else ToolList
        files = len(texts) < len(content) or any("mimeType" in text for text in texts)
        made = (SHORTENED[kind] if files else kind)(found)
    elif isinstance(found, str):
        made = ToolText(found) if found or texts else _without_text(content)
    else:
        return found  # a number, True, False or None, which can't have attributes
    made.content, made.structured = content, structured
    return made


def _embedded(content: list[Any]) -> list[str]:
    """The texts of resources that were sent along, where the tool sent no other text."""
    found = [block.get("resource") for block in blocks(content, "resource")]
    return [one["text"] for one in found if isinstance(one, dict) and isinstance(one.get("text"), str)]


def _without_text(blocks: list[Any]) -> ToolText:
    """The value of a result without a text, which says what it has instead."""
    from guest import content

    return ToolFiles() if content.note(blocks, False) else ToolText()


def _texts(content: list[Any]) -> list[str]:
    return [str(block.get("text", "")) for block in blocks(content, "text")]


def blocks(content: list[Any], kind: str) -> list[dict[str, Any]]:
    """The blocks of a type."""
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]


_ENDS = {"{": "}", "[": "]"}
SPACE = 1000  # characters at either end of a text that may be spaces
SAMPLE = 1 << 20  # characters of a long text that tell how much memory its data takes
MAX_DATA = 192 << 20  # bytes of memory that the dicts and lists of one text may take


def parsed(text: str) -> Any:
    """The data of a text that is one JSON object or array, else the text itself.

    So does a text whose data would take too much memory, such as millions of empty lists.
    """
    end = _ENDS.get(text[:SPACE].lstrip()[:1])
    if end is None or text[-SPACE:].rstrip()[-1:] != end:
        return text
    beginning = text[:SAMPLE]
    memory = 240 * beginning.count("{") + 80 * beginning.count("[") if len(text) > SAMPLE else 0
    if memory * len(text) > MAX_DATA * SAMPLE:
        return text
    try:
        return _loads(text)
    except (ValueError, RecursionError, MemoryError):  # ValueError: no JSON, or a number of too many digits
        return text


def outline(value: Any) -> Any:
    """The keys of a dict, each with whether it is a list, or how a text begins: for hints."""
    if isinstance(value, dict):
        return {key: [] if isinstance(held, list) else None for key, held in islice(value.items(), 30)}
    return str.__str__(value[:200]) if isinstance(value, str) else None
