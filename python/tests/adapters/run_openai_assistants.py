import warnings

from openai import AsyncOpenAI

from sayso.openai import Tools

#: The handler of this package receives `requires_action` and calls the functions itself.
NO_HOOK = "the event handler is the adapter itself"
warnings.simplefilter("ignore", DeprecationWarning)


async def run(case):
    client = AsyncOpenAI(base_url=case.url + "/v1", api_key="x", max_retries=0)
    tools = Tools(case.tools(), case.policies, session=case.session)
    handler = tools.assistant_handler(client)
    async with client.beta.threads.runs.stream(thread_id="t1", assistant_id="a1", event_handler=handler) as stream:
        await stream.until_done()
