"""Calls run_python with the official Python SDK until the bridge is killed, and says what has it
called again: killed.py URL MODE, as client.py
"""

import asyncio
import sys
import time
import urllib.request
from typing import Any

import mcp


async def attempt(client: mcp.Client) -> str:
    """Calls once, and returns why that fails, or nothing."""
    try:
        result = await asyncio.wait_for(client.call_tool("run_python", {"code": "print(6 * 7)"}), 10)
    except Exception as e:  # of any kind: which ones there are is what is asked
        return f"{type(e).__name__}: {e}".splitlines()[0][:160]
    text = getattr(result.content[0], "text", "")
    return "" if text.startswith("42") else text


def there(url: str) -> bool:
    try:
        return urllib.request.urlopen(url.replace("/mcp", "/healthz"), timeout=5).status == 200
    except OSError:
        return False


class Failed(Exception):
    """Ends a client that doesn't come back by itself."""


async def main(url: str, mode: Any) -> None:
    calls, failures, by = 0, [""], "the same client goes on by itself"
    try:
        async with mcp.Client(url, mode=mode) as client:
            if why := await attempt(client):
                raise SystemExit(why)
            print("ready", flush=True)
            end = time.monotonic() + 90
            while not failures[-1] and time.monotonic() < end:
                failures = [await attempt(client)]
                calls += not failures[-1]
            again = 0.0
            while failures[-1]:
                await asyncio.sleep(0.2)
                if not again and await asyncio.to_thread(there, url):
                    again = time.monotonic()
                if again and time.monotonic() - again > 20:
                    raise Failed
                if (why := await attempt(client)) != failures[-1]:
                    failures.append(why)
    except* (Failed, Exception):
        by = "another client goes on"
        while not await asyncio.to_thread(there, url):
            await asyncio.sleep(0.2)
        async with mcp.Client(url, mode=mode) as client:
            if why := await attempt(client):
                raise SystemExit(why) from None
    said = " | ".join(filter(None, failures)) or "the connection failed"
    print(f"ok   Python SDK, {mode}: {calls} calls, then {said}; {by}")


asyncio.run(main(*sys.argv[1:]))
