"""Claude Agent SDK with a scripted model: `python examples/claude_agent_client.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio
import tempfile

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, tool

import sayso
from sayso.claude_agent import guard_tools, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model("mcp__tidy__")
    async with sayso.session("Tidy up."):

        @tool("look", "Looks somewhere.", {"where": str})
        async def look(arguments: dict) -> dict:
            return {"content": [{"type": "text", "text": TOOLS[0](**arguments)}]}

        @tool("wipe", "Wipes something.", {"what": str})
        async def wipe(arguments: dict) -> dict:
            return {"content": [{"type": "text", "text": TOOLS[1](**arguments)}]}

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            options = ClaudeAgentOptions(
                cwd=home,
                env={"HOME": home, "ANTHROPIC_BASE_URL": model_server.url, "ANTHROPIC_AUTH_TOKEN": "none"},
                mcp_servers={"tidy": create_sdk_mcp_server("tidy", tools=guard_tools([look, wipe], POLICIES))},
                allowed_tools=["mcp__tidy__look", "mcp__tidy__wipe"],
                setting_sources=[],
                include_partial_messages=True,
            )
            async with ClaudeSDKClient(options) as client:
                await client.query("Tidy up.")
                async for _ in narrate(client.receive_response()):
                    pass


asyncio.run(main())
