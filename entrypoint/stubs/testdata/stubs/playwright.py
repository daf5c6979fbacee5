"""The tools of the MCP server "playwright" as code calls them: mcp_playwright.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


def browser_click(
    target: str,
    element: str | None = None,
    doubleClick: bool | None = None,
    button: Literal["left", "right", "middle"] | None = None,
    modifiers: list[Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]] | None = None,
) -> Any:
    """Perform click on a web page

    Parameters:
        target: Exact target element reference from the page snapshot, or a unique element selector
        element: Human-readable element description used to obtain permission to interact with the element
        doubleClick: Whether to perform a double click instead of a single click
        button: Button to click, defaults to left
        modifiers: Modifier keys to press
    """
    raise NotImplementedError


def browser_close() -> Any:
    """Close the page"""
    raise NotImplementedError


def browser_console_messages(
    level: Literal["error", "warning", "info", "debug"],
    all: bool | None = None,
    filename: str | None = None,
) -> Any:
    """Returns all console messages

    Parameters:
        level: Level of the console messages to return. Each level includes the messages of more severe levels. Defaults to "info".
        all: Return all console messages since the beginning of the session, not just since the last navigation. Defaults to false.
        filename: File name to save the console messages to. Relative file names are resolved against the workspace root. If not provided, messages are returned as text.
    """
    raise NotImplementedError


def browser_drag(
    startTarget: str,
    endTarget: str,
    startElement: str | None = None,
    endElement: str | None = None,
) -> Any:
    """Perform drag and drop between two elements

    Parameters:
        startTarget: Exact target element reference from the page snapshot, or a unique element selector
        endTarget: Exact target element reference from the page snapshot, or a unique element selector
        startElement: Human-readable source element description used to obtain the permission to interact with the element
        endElement: Human-readable target element description used to obtain the permission to interact with the element
    """
    raise NotImplementedError


def browser_drop(
    target: str,
    element: str | None = None,
    paths: list[str] | None = None,
    data: dict[str, str] | None = None,
) -> Any:
    """Drop files or MIME-typed data onto an element, as if dragged from outside the page. At least one of "paths" or "data" must be provided.

    Parameters:
        target: Exact target element reference from the page snapshot, or a unique element selector
        element: Human-readable element description used to obtain permission to interact with the element
        paths: Absolute paths to files to drop onto the element.
        data: Data to drop, as a map of MIME type to string value (e.g. {"text/plain": "hello", "text/uri-list": "https://example.com"}).
    """
    raise NotImplementedError


def browser_emulate_media(
    colorScheme: Literal["light", "dark"] | None = None,
    reducedMotion: Literal["reduce", "no-preference"] | None = None,
    forcedColors: Literal["active", "none"] | None = None,
    contrast: Literal["more", "no-preference"] | None = None,
    media: Literal["screen", "print"] | None = None,
) -> Any:
    """Emulate CSS media features for the page, for example switch between the light and dark color scheme. Omitted parameters are left unchanged; null clears an override.

    Parameters:
        colorScheme: Emulates the prefers-color-scheme media feature
        reducedMotion: Emulates the prefers-reduced-motion media feature
        forcedColors: Emulates the forced-colors media feature
        contrast: Emulates the prefers-contrast media feature
        media: Changes the CSS media type of the page
    """
    raise NotImplementedError


def browser_evaluate(
    function: str,
    element: str | None = None,
    target: str | None = None,
    filename: str | None = None,
) -> Any:
    """Evaluate JavaScript expression on page or element

    Parameters:
        function: () => { /* code */ } or (element) => { /* code */ } when element is provided
        element: Human-readable element description used to obtain permission to interact with the element
        target: Exact target element reference from the page snapshot, or a unique element selector
        filename: File name to save the result to. Relative file names are resolved against the workspace root. If not provided, result is returned as text.
    """
    raise NotImplementedError


def browser_file_upload(paths: list[str] | None = None) -> Any:
    """Upload one or multiple files

    Parameters:
        paths: The absolute paths to the files to upload. Can be single file or multiple files. If omitted, file chooser is cancelled.
    """
    raise NotImplementedError


class BrowserFillFormFields_(TypedDict):
    # Exact target element reference from the page snapshot, or a unique element selector
    target: str
    # Human-readable field name
    name: str
    # Type of the field
    type: Literal["textbox", "checkbox", "radio", "combobox", "slider"]
    # Value to fill in the field. If the field is a checkbox, the value should be `true` or `false`. If the field is a combobox, the value should be the text of the option.
    value: str


class BrowserFillFormFields(BrowserFillFormFields_, total=False):
    # Human-readable element description used to obtain permission to interact with the element
    element: str


def browser_fill_form(fields: list[BrowserFillFormFields]) -> Any:
    """Fill multiple form fields

    Parameters:
        fields: Fields to fill in
    """
    raise NotImplementedError


def browser_find(text: str | None = None, regex: str | None = None, filename: str | None = None) -> Any:
    """Search the accessibility snapshot of the current page for text or a regular expression. Returns matching snapshot nodes with a few lines of surrounding context (like search snippets), each shown under its path from the root of the tree, which is cheaper than capturing the whole snapshot when you only need to locate an element and its ref.

    Parameters:
        text: Plain text to search for in the page snapshot (case-insensitive substring match). Provide either text or regex, not both.
        regex: Regular expression to search for in the page snapshot. Matching is case-sensitive by default; wrap the pattern in slashes to add flags, e.g. "/error/i" for case-insensitive. Provide either text or regex, not both.
        filename: Save results to a file instead of returning them in the response. Relative file names are resolved against the workspace root.
    """
    raise NotImplementedError


def browser_handle_dialog(accept: bool, promptText: str | None = None) -> Any:
    """Handle a dialog

    Parameters:
        accept: Whether to accept the dialog.
        promptText: The text of the prompt in case of a prompt dialog.
    """
    raise NotImplementedError


def browser_hover(target: str, element: str | None = None) -> Any:
    """Hover over element on page

    Parameters:
        target: Exact target element reference from the page snapshot, or a unique element selector
        element: Human-readable element description used to obtain permission to interact with the element
    """
    raise NotImplementedError


def browser_navigate(url: str) -> Any:
    """Navigate to a URL

    Parameters:
        url: The URL to navigate to
    """
    raise NotImplementedError


def browser_navigate_back() -> Any:
    """Go back to the previous page in the history"""
    raise NotImplementedError


def browser_network_request(
    index: int,
    part: Literal["request-headers", "request-body", "response-headers", "response-body"] | None = None,
    filename: str | None = None,
) -> Any:
    """Returns full details (headers and body) of a single network request, or a single part if `part` is set. Use the number from browser_network_requests.

    Parameters:
        index: 1-based index of the request, as printed by browser_network_requests. (minimum 1, maximum 9007199254740991)
        part: Return only this part of the request. Omit to return full details.
        filename: File name to save the result to. Relative file names are resolved against the workspace root. If not provided, output is returned as text.
    """
    raise NotImplementedError


def browser_network_requests(static: bool, filter: str | None = None, filename: str | None = None) -> Any:
    """Returns a numbered list of network requests since loading the page. Use browser_network_request with the number to get full details.

    Parameters:
        static: Whether to include successful static resources like images, fonts, scripts, etc. Defaults to false.
        filter: Only return requests whose URL matches this regexp (e.g. "/api/.*user").
        filename: File name to save the network requests to. Relative file names are resolved against the workspace root. If not provided, requests are returned as text.
    """
    raise NotImplementedError


def browser_press_key(key: str) -> Any:
    """Press a key on the keyboard

    Parameters:
        key: Name of the key to press or a character to generate, such as `ArrowLeft` or `a`
    """
    raise NotImplementedError


def browser_resize(width: float, height: float) -> Any:
    """Resize the browser window

    Parameters:
        width: Width of the browser window
        height: Height of the browser window
    """
    raise NotImplementedError


def browser_run_code_unsafe(code: str | None = None, filename: str | None = None) -> Any:
    """Run a Playwright code snippet. Unsafe: executes arbitrary JavaScript in the Playwright server process and is RCE-equivalent.

    Parameters:
        code: A JavaScript function containing Playwright code to execute. It will be invoked with a single argument, page, which you can use for any page interaction. For example: `async (page) => { await page.getByRole('button', { name: 'Submit' }).click(); return await page.title(); }`
        filename: Load code from the specified file. Relative file names are resolved against the workspace root. If both code and filename are provided, code will be ignored.
    """
    raise NotImplementedError


def browser_select_option(target: str, values: list[str], element: str | None = None) -> Any:
    """Select an option in a dropdown

    Parameters:
        target: Exact target element reference from the page snapshot, or a unique element selector
        values: Array of values to select in the dropdown. This can be a single value or multiple values.
        element: Human-readable element description used to obtain permission to interact with the element
    """
    raise NotImplementedError


def browser_snapshot(
    target: str | None = None,
    filename: str | None = None,
    depth: float | None = None,
    boxes: bool | None = None,
) -> Any:
    """Capture accessibility snapshot of the current page, this is better than screenshot

    Parameters:
        target: Exact target element reference from the page snapshot, or a unique element selector
        filename: Save snapshot to a file instead of returning it in the response. Relative file names are resolved against the workspace root.
        depth: Limit the depth of the snapshot tree
        boxes: Include each element's bounding box as [box=x,y,width,height] in the snapshot. Coordinates are viewport-relative, in CSS pixels (Element.getBoundingClientRect)
    """
    raise NotImplementedError


def browser_tabs(
    action: Literal["list", "new", "close", "select"],
    index: float | None = None,
    url: str | None = None,
) -> Any:
    """List, create, close, or select a browser tab.

    Parameters:
        action: Operation to perform
        index: Tab index, used for close/select. If omitted for close, current tab is closed.
        url: URL to navigate to in the new tab, used for new.
    """
    raise NotImplementedError


def browser_take_screenshot(
    scale: Literal["css", "device"],
    element: str | None = None,
    target: str | None = None,
    type: Literal["png", "jpeg", "webp"] | None = None,
    filename: str | None = None,
    fullPage: bool | None = None,
) -> Any:
    """Take a screenshot of the current page. You can't perform actions based on the screenshot, use browser_snapshot for actions.

    Parameters:
        scale: Image resolution scale. "css" produces a screenshot sized in CSS pixels (smaller, consistent across devices). "device" produces a high-resolution screenshot using device pixels (larger, accounts for the device pixel ratio). Default is css.
        element: Human-readable element description used to obtain permission to interact with the element
        target: Exact target element reference from the page snapshot, or a unique element selector
        type: Image format for the screenshot. If unset, inferred from the filename extension, otherwise png.
        filename: File name to save the screenshot to. Relative file names are resolved against the workspace root. If not specified, the screenshot is saved into the output directory as `page-{timestamp}.{png|jpeg|webp}`.
        fullPage: When true, takes a screenshot of the full scrollable page, instead of the currently visible viewport. Cannot be used with element screenshots.
    """
    raise NotImplementedError


def browser_type(
    target: str,
    text: str,
    element: str | None = None,
    submit: bool | None = None,
    slowly: bool | None = None,
) -> Any:
    """Type text into editable element

    Parameters:
        target: Exact target element reference from the page snapshot, or a unique element selector
        text: Text to type into the element
        element: Human-readable element description used to obtain permission to interact with the element
        submit: Whether to submit entered text (press Enter after)
        slowly: Whether to type one character at a time. Useful for triggering key handlers in the page. By default entire text is filled in at once.
    """
    raise NotImplementedError


def browser_wait_for(time: float | None = None, text: str | None = None, textGone: str | None = None) -> Any:
    """Wait for text to appear or disappear or a specified time to pass

    Parameters:
        time: The time to wait in seconds, at most 30
        text: The text to wait for
        textGone: The text to wait for to disappear
    """
    raise NotImplementedError
