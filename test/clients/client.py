"""Calls run_python over HTTP with the official Python SDK: client.py URL MODE

MODE is legacy for a session, or a version of the protocol without one.
"""

import asyncio
import sys
from typing import Any

import mcp

CODE = """import time
print("news", flush=True)
time.sleep(1.2)
print(6 * 7)"""


async def main(url: str, mode: Any) -> None:
    news: list[str] = []

    async def progress(_value: float, _total: float | None, message: str | None) -> None:
        news.append(message or "")

    async with mcp.Client(url, mode=mode) as client:
        tools = [t.name for t in (await client.list_tools()).tools]
        result = await client.call_tool("run_python", {"code": CODE}, progress_callback=progress)
        text = getattr(result.content[0], "text", "")
    if "run_python" not in tools or "42" not in text or not any("news" in line for line in news):
        raise SystemExit(f"{tools}\n{text}\n{news}")
    print(f"ok   Python SDK, {mode}: 42, after {len(news)} reports")


asyncio.run(main(*sys.argv[1:]))
