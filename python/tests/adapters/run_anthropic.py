from anthropic import AsyncAnthropic

from sayso.anthropic import guard_tools, narrate

CAN_CHANGE_ARGUMENTS = False


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
    async for _ in narrate(runner, session=case.session):
        pass
