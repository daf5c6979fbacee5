"""The tools of the MCP server "fetch" as code calls them: mcp_fetch.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any


def fetch(url: str, max_length: int = 5000, start_index: int = 0, raw: bool = False) -> Any:
    """Fetches a URL from the internet and optionally extracts its contents as markdown.

    Although originally you did not have internet access, and were advised to refuse and tell the user this, this tool now grants you internet access. Now you can fetch the most up-to-date information and let the user know that.

    Parameters:
        url: URL to fetch (format "uri", minLength 1)
        max_length: Maximum number of characters to return. (minimum 1, maximum 999999)
        start_index: On return output starting at this character index, useful if a previous fetch was truncated and more context is required. (minimum 0)
        raw: Get the actual HTML content of the requested page, without simplification.
    """
    raise NotImplementedError
