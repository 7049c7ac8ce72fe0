"""The client of the official Python SDK as a host, through the gate.

Usage: py_client.py SAYSO HUB_URL SERVER…      (the server is server-everything)
With the environment variable EXPECT=refused, the gated call must be refused."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SAYSO, HUB, *SERVER = sys.argv[1:]


async def main():
    arguments = ["mcp", "--name", "everything", "--hub", HUB, "--", *SERVER]
    parameters = StdioServerParameters(command=SAYSO, args=arguments, env=dict(os.environ))
    async with stdio_client(parameters, errlog=open(os.devnull, "w")) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert any(tool.name == "echo" for tool in tools)
            result = await session.call_tool("echo", {"message": "hi"})
            is_error = getattr(result, "is_error", None)
            is_error = result.isError if is_error is None else is_error
            if os.environ.get("EXPECT") == "refused":
                assert is_error and "was not called" in result.content[0].text, result
            else:
                assert result.content[0].text == "Echo: hi", result
                sums = await asyncio.gather(*[session.call_tool("get-sum", {"a": a, "b": 1}) for a in range(8)])
                for a, result in enumerate(sums):
                    assert f"is {a + 1}" in result.content[0].text, result
            await session.list_prompts()
    print("Python SDK: ok")


asyncio.run(main())
