import warnings

from openai import AsyncOpenAI

from sayso.openai import Tools, narrate_errors

warnings.simplefilter("ignore", DeprecationWarning)


class ChangingTools(Tools):
    """The handler makes the calls itself, so the agent's author can only change the action that a run requires."""

    async def run_required_action(self, run):
        for call in run.required_action.submit_tool_outputs.tool_calls:
            call.function.arguments = '{"what": "everything"}'
        return await super().run_required_action(run)


async def run(case):
    client = AsyncOpenAI(base_url=case.url + "/v1", api_key="x", max_retries=0)
    tools = (ChangingTools if case.changes_arguments else Tools)(case.tools(), case.policies, session=case.session)
    handler = tools.assistant_handler(client)
    with narrate_errors(session=case.session):
        async with client.beta.threads.runs.stream(thread_id="t1", assistant_id="a1", event_handler=handler) as stream:
            await stream.until_done()
