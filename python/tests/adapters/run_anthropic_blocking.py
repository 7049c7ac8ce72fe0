import asyncio

from anthropic import Anthropic

from sayso.anthropic import guard_tools, narrate_blocking

#: The runner runs in a thread, which nobody can cancel. The end of the session withdraws the question.
NOT_CANCELLABLE = "a thread cannot be cancelled"


def run_blocking(case):
    client = Anthropic(base_url=case.url, api_key="x", max_retries=0)
    runner = client.beta.messages.tool_runner(
        model="fake",
        max_tokens=99,
        tools=guard_tools(case.tools(), case.policies, session=case.session, asynchronous=False),
        messages=[{"role": "user", "content": case.prompt}],
        stream=True,
        thread=False,
    )
    for stream in narrate_blocking(runner, session=case.session):
        if case.changes_arguments:
            # The runner calls the tools after the body of the loop, with the arguments that the message has then.
            for block in stream.get_final_message().content:
                if block.type == "tool_use":
                    block.input = {"what": "everything"}


async def run(case):
    await asyncio.to_thread(run_blocking, case)
