"""The tools of the MCP server "everything" as code calls them: mcp_everything.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


def echo(message: str) -> Any:
    """Echoes back the input string

    Parameters:
        message: Message to echo
    """
    raise NotImplementedError


def get_annotated_message(
    messageType: Literal["error", "success", "debug"],
    includeImage: bool = False,
) -> Any:
    """Demonstrates how annotations can be used to provide metadata about content.

    The server's own name of it is "get-annotated-message".

    Parameters:
        messageType: Type of message to demonstrate different annotation patterns
        includeImage: Whether to include an example image
    """
    raise NotImplementedError


def get_env() -> Any:
    """Returns all environment variables, helpful for debugging MCP server configuration

    The server's own name of it is "get-env".
    """
    raise NotImplementedError


def get_resource_links(count: float = 3) -> Any:
    """Returns up to ten resource links that reference different types of resources

    The server's own name of it is "get-resource-links".

    Parameters:
        count: Number of resource links to return (1-10) (minimum 1, maximum 10)
    """
    raise NotImplementedError


def get_resource_reference(resourceType: Literal["Text", "Blob"] = "Text", resourceId: float = 1) -> Any:
    """Returns a resource reference that can be used by MCP clients

    The server's own name of it is "get-resource-reference".

    Parameters:
        resourceId: ID of the text resource to fetch
    """
    raise NotImplementedError


class GetStructuredContentResult(TypedDict):
    # Temperature in celsius
    temperature: float
    # Weather conditions description
    conditions: str
    # Humidity percentage
    humidity: float


def get_structured_content(
    location: Literal["New York", "Chicago", "Los Angeles"],
) -> GetStructuredContentResult:
    """Returns structured content along with an output schema for client data validation

    The server's own name of it is "get-structured-content".

    Parameters:
        location: Choose city
    """
    raise NotImplementedError


def get_sum(a: float, b: float) -> Any:
    """Returns the sum of two numbers

    The server's own name of it is "get-sum".

    Parameters:
        a: First number
        b: Second number
    """
    raise NotImplementedError


def get_tiny_image() -> Any:
    """Returns a tiny MCP logo image.

    The server's own name of it is "get-tiny-image".
    """
    raise NotImplementedError


def gzip_file_as_resource(
    name: str = "README.md.gz",
    data: str = "https://raw.githubusercontent.com/modelcontextprotocol/servers/refs/heads/main/README.md",
    outputType: Literal["resourceLink", "resource"] = "resourceLink",
) -> Any:
    """Compresses a single file using gzip compression. Depending upon the selected output type, returns either the compressed data as a gzipped resource or a resource link, allowing it to be downloaded in a subsequent request during the current session.

    The server's own name of it is "gzip-file-as-resource".

    Parameters:
        name: Name of the output file
        data: URL or data URI of the file content to compress (format "uri")
        outputType: How the resulting gzipped file should be returned. 'resourceLink' returns a link to a resource that can be read later, 'resource' returns a full resource object.
    """
    raise NotImplementedError


def simulate_research_query(topic: str, ambiguous: bool = False) -> Any:
    """Simulates a deep research operation that gathers, analyzes, and synthesizes information. Demonstrates MCP task-based operations with progress through multiple stages. If 'ambiguous' is true and client supports elicitation, sends an elicitation request for clarification.

    The server's own name of it is "simulate-research-query".

    Parameters:
        topic: The research topic to investigate
        ambiguous: Simulate an ambiguous query that requires clarification (triggers input_required status)
    """
    raise NotImplementedError


def toggle_simulated_logging() -> Any:
    """Toggles simulated, random-leveled logging on or off.

    The server's own name of it is "toggle-simulated-logging".
    """
    raise NotImplementedError


def toggle_subscriber_updates() -> Any:
    """Toggles simulated resource subscription updates on or off.

    The server's own name of it is "toggle-subscriber-updates".
    """
    raise NotImplementedError


def trigger_long_running_operation(duration: float = 10, steps: float = 5) -> Any:
    """Demonstrates a long running operation with progress updates.

    The server's own name of it is "trigger-long-running-operation".

    Parameters:
        duration: Duration of the operation in seconds
        steps: Number of steps in the operation
    """
    raise NotImplementedError
