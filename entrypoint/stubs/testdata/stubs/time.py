"""The tools of the MCP server "time" as code calls them: mcp_time.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import TypedDict


class ConvertTimeTimeResult(TypedDict):
    timezone: str
    datetime: str
    day_of_week: str
    is_dst: bool


class ConvertTimeResult(TypedDict):
    source: ConvertTimeTimeResult
    target: ConvertTimeTimeResult
    time_difference: str


def convert_time(source_timezone: str, time: str, target_timezone: str) -> ConvertTimeResult:
    """Convert time between timezones

    Parameters:
        source_timezone: Source IANA timezone name (e.g., 'America/New_York', 'Europe/London'). Use 'Etc/UTC' as local timezone if no source timezone provided by the user.
        time: Time to convert in 24-hour format (HH:MM)
        target_timezone: Target IANA timezone name (e.g., 'Asia/Tokyo', 'America/San_Francisco'). Use 'Etc/UTC' as local timezone if no target timezone provided by the user.
    """
    raise NotImplementedError


class GetCurrentTimeResult(TypedDict):
    timezone: str
    datetime: str
    day_of_week: str
    is_dst: bool


def get_current_time(timezone: str) -> GetCurrentTimeResult:
    """Get current time in a specific timezone

    Parameters:
        timezone: IANA timezone name (e.g., 'America/New_York', 'Europe/London'). Use 'Etc/UTC' as local timezone if no timezone provided by the user.
    """
    raise NotImplementedError
