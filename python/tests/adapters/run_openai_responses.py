from openai import AsyncOpenAI
from openai.lib.responses_tool_runner import AsyncRegisteredFunction, AsyncResponsesToolRunner

from sayso.openai import guard_functions, narrator

#: `AsyncResponsesToolRunner` parses the arguments of each call and passes them to `execute`. `on_event` gets the events of the stream,
#: and the runner refuses a response that differs from them.
NO_HOOK = "the runner has no hook between the response and the function"


def registered(function, argument):
    schema = {"type": "object", "properties": {argument: {"type": "string"}}}

    async def execute(values):
        return function(**values)

    return AsyncRegisteredFunction(
        {"type": "function", "name": function.__name__, "strict": False, "parameters": schema}, execute
    )


async def run(case):
    client = AsyncOpenAI(base_url=case.url + "/v1", api_key="x", max_retries=0)
    look, wipe = case.tools()
    functions = guard_functions([registered(look, "where"), registered(wipe, "what")], case.policies, session=case.session)
    runner = AsyncResponsesToolRunner(functions=functions)
    params = {"model": "fake", "input": case.prompt, "store": False}
    response = await runner.run(client, params, max_steps=9, stream=True, on_event=narrator(session=case.session))
    return response.output_text
