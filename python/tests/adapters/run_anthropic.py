from anthropic import AsyncAnthropic

from sayso.anthropic import guard_tools, narrate


async def run(case):
    client = AsyncAnthropic(base_url=case.url, api_key="x", max_retries=0)
    runner = client.beta.messages.tool_runner(
        model="fake",
        max_tokens=99,
        tools=guard_tools(case.tools(), case.policies, session=case.session),
        messages=[{"role": "user", "content": case.prompt}],
        stream=True,
        thread=False,
    )
    async for stream in narrate(runner, session=case.session):
        if case.changes_arguments:
            # The runner calls the tools after the body of the loop, with the arguments that the message has then.
            for block in (await stream.get_final_message()).content:
                if block.type == "tool_use":
                    block.input = {"what": "everything"}
