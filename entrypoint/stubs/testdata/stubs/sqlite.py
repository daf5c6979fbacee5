"""The tools of the MCP server "sqlite" as code calls them: mcp_sqlite.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any


def append_insight(insight: str) -> Any:
    """Add a business insight to the memo

    Parameters:
        insight: Business insight discovered from data analysis
    """
    raise NotImplementedError


def create_table(query: str) -> Any:
    """Create a new table in the SQLite database

    Parameters:
        query: CREATE TABLE SQL statement
    """
    raise NotImplementedError


def describe_table(table_name: str) -> Any:
    """Get the schema information for a specific table

    Parameters:
        table_name: Name of the table to describe
    """
    raise NotImplementedError


def list_tables() -> Any:
    """List all tables in the SQLite database"""
    raise NotImplementedError


def read_query(query: str) -> Any:
    """Execute a SELECT query on the SQLite database

    Parameters:
        query: SELECT SQL query to execute
    """
    raise NotImplementedError


def write_query(query: str) -> Any:
    """Execute an INSERT, UPDATE, or DELETE query on the SQLite database

    Parameters:
        query: SQL query to execute
    """
    raise NotImplementedError
