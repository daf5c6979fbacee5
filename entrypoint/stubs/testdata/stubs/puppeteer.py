"""The tools of the MCP server "puppeteer" as code calls them: mcp_puppeteer.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any


def puppeteer_click(selector: str) -> Any:
    """Click an element on the page

    Parameters:
        selector: CSS selector for element to click
    """
    raise NotImplementedError


def puppeteer_evaluate(script: str) -> Any:
    """Execute JavaScript in the browser console

    Parameters:
        script: JavaScript code to execute
    """
    raise NotImplementedError


def puppeteer_fill(selector: str, value: str) -> Any:
    """Fill out an input field

    Parameters:
        selector: CSS selector for input field
        value: Value to fill
    """
    raise NotImplementedError


def puppeteer_hover(selector: str) -> Any:
    """Hover an element on the page

    Parameters:
        selector: CSS selector for element to hover
    """
    raise NotImplementedError


def puppeteer_navigate(
    url: str,
    launchOptions: dict[str, Any] | None = None,
    allowDangerous: bool | None = None,
) -> Any:
    """Navigate to a URL

    Parameters:
        url: URL to navigate to
        launchOptions: PuppeteerJS LaunchOptions. Default null. If changed and not null, browser restarts. Example: { headless: true, args: ['--no-sandbox'] }
        allowDangerous: Allow dangerous LaunchOptions that reduce security. When false, dangerous args like --no-sandbox will throw errors. Default false.
    """
    raise NotImplementedError


def puppeteer_screenshot(
    name: str,
    selector: str | None = None,
    width: float | None = None,
    height: float | None = None,
    encoded: bool | None = None,
) -> Any:
    """Take a screenshot of the current page or a specific element

    Parameters:
        name: Name for the screenshot
        selector: CSS selector for element to screenshot
        width: Width in pixels (default: 800)
        height: Height in pixels (default: 600)
        encoded: If true, capture the screenshot as a base64-encoded data URI (as text) instead of binary image content. Default false.
    """
    raise NotImplementedError


def puppeteer_select(selector: str, value: str) -> Any:
    """Select an element on the page with Select tag

    Parameters:
        selector: CSS selector for element to select
        value: Value to select
    """
    raise NotImplementedError
