"""A host and a server of the official Python SDK that speak protocol 2026-07-28, with the gate between them.

Usage: py_modern.py SAYSO HUB_URL
With the environment variable EXPECT=refused, the gated calls must be refused. The script starts itself as the server."""

import asyncio
import os
import sys
from typing import Annotated

from pydantic import BaseModel

MODERN = "2026-07-28"


class Name(BaseModel):
    name: str


def serve():
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Elicit, Resolve

    server = MCPServer("modern")

    @server.tool()
    def add(a: int, b: int) -> str:
        return f"It is {a + b}."

    async def ask() -> Elicit[Name]:
        return Elicit("Who are you?", Name)

    @server.tool()
    def greet(name: Annotated[Name, Resolve(ask)]) -> str:
        return f"Hello, {name.name}."

    server.run()


async def main(sayso, hub):
    from mcp import Client, StdioServerParameters
    from mcp_types import ElicitResult

    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Ana"})

    arguments = ["mcp", "--name", "modern", "--hub", hub, "--", sys.executable, __file__, "serve"]
    server = StdioServerParameters(command=sayso, args=arguments, env=dict(os.environ))
    async with Client(server, mode="auto", elicitation_callback=elicit) as client:
        assert client.protocol_version == MODERN, client.protocol_version
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["add", "greet"], names
        result = await client.call_tool("add", {"a": 2, "b": 3})
        if os.environ.get("EXPECT") == "refused":
            assert result.is_error and "was not called" in result.content[0].text, result
            return
        assert result.content[0].text == "It is 5.", result
        sums = await asyncio.gather(*[client.call_tool("add", {"a": a, "b": 1}) for a in range(8)])
        assert [result.content[0].text for result in sums] == [f"It is {a + 1}." for a in range(8)], sums
        # The server answers with `input_required`, and the host calls again under another id.
        result = await client.call_tool("greet", {})
        assert result.content[0].text == "Hello, Ana.", result
        assert asked == ["Who are you?"], asked
    print(f"Python SDK, {MODERN}: ok")


if sys.argv[1:] == ["serve"]:
    serve()
else:
    asyncio.run(main(*sys.argv[1:]))
