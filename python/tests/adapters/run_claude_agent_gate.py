"""The gate in the hooks and in `can_use_tool`, with tools that have no gate of their own."""

import tempfile

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, create_sdk_mcp_server
from run_claude_agent import TOOL_PREFIX, change, sdk_tool

from sayso.claude_agent import gate_options, narrate

#: The prefix of a tool's name as the gate sees it.
GATED_PREFIX = TOOL_PREFIX


async def run(case):
    look, wipe = case.tools()
    policies = {TOOL_PREFIX + name: policy for name, policy in case.policies.items()}
    with tempfile.TemporaryDirectory(prefix="sayso-claude-", ignore_cleanup_errors=True) as home:
        environment = {
            "HOME": home,
            "ANTHROPIC_BASE_URL": case.url,
            "ANTHROPIC_AUTH_TOKEN": "x",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        options = ClaudeAgentOptions(
            cwd=home,
            env=environment,
            mcp_servers={"tidy": create_sdk_mcp_server("tidy", tools=[sdk_tool(look, "where"), sdk_tool(wipe, "what")])},
            allowed_tools=["mcp__tidy__look", "mcp__tidy__wipe"],
            hooks={"PreToolUse": [HookMatcher(hooks=[change])]} if case.changes_arguments else None,
            setting_sources=[],
            include_partial_messages=True,
        )
        async with ClaudeSDKClient(gate_options(options, policies, session=case.session)) as client:
            await client.query(case.prompt)
            async for _ in narrate(client.receive_response(), session=case.session):
                pass
