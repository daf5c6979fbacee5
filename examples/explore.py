"""Fetches once, and asks twice: explore.py URL, with mcp 2 from PyPI.

The first call makes a sandbox. The second names it, and finds its variables there.
"""

import asyncio
import re
import sys

import mcp


async def main(url: str) -> None:
    async with mcp.Client(url) as client:

        async def run(code: str, sandbox: str) -> str:
            result = await client.call_tool("run_python", {"code": code, "sandbox": sandbox})
            return "\n".join(getattr(part, "text", "") for part in result.content)

        # In your code, rows would come from a tool: rows = await mcp_db.query(sql="…")
        first = await run("rows = [{'price': n % 97} for n in range(5000)]\nprint(len(rows))", "new")
        print(first)
        said = re.search(r"\[sandbox ([\w.-]+)[:,]", first)
        if said is None:
            raise SystemExit("no sandbox was made")
        print(await run("print(max(row['price'] for row in rows))", said[1]))


asyncio.run(main(sys.argv[1]))
