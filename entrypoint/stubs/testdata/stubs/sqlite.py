"""The tools of the MCP server "sqlite" as code calls them: mcp_sqlite.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError.
"""

from __future__ import annotations

from typing import Any


class ToolText(str):
    """The text of a result, a str. What else the tool sent is in its attributes."""

    content: list[Any]
    images: list[Any]
    structured: Any

    def json(self) -> Any:
        """The text parsed as JSON."""
        raise NotImplementedError


def append_insight(insight: str) -> ToolText:
    """Add a business insight to the memo

    Parameters:
        insight: Business insight discovered from data analysis
    """
    raise NotImplementedError


def create_table(query: str) -> ToolText:
    """Create a new table in the SQLite database

    Parameters:
        query: CREATE TABLE SQL statement
    """
    raise NotImplementedError


def describe_table(table_name: str) -> ToolText:
    """Get the schema information for a specific table

    Parameters:
        table_name: Name of the table to describe
    """
    raise NotImplementedError


def list_tables() -> ToolText:
    """List all tables in the SQLite database"""
    raise NotImplementedError


def read_query(query: str) -> ToolText:
    """Execute a SELECT query on the SQLite database

    Parameters:
        query: SELECT SQL query to execute
    """
    raise NotImplementedError


def write_query(query: str) -> ToolText:
    """Execute an INSERT, UPDATE, or DELETE query on the SQLite database

    Parameters:
        query: SQL query to execute
    """
    raise NotImplementedError
