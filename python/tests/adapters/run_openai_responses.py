import dataclasses

from openai import AsyncOpenAI
from openai.lib.responses_tool_runner import AsyncRegisteredFunction, AsyncResponsesToolRunner

from sayso.openai import guard_functions, narrate_errors, narrator

#: The runner does not pass on what the model's server said.
MODEL_ERROR = "Tool run stopped before completion."


def registered(function, argument):
    schema = {"type": "object", "properties": {argument: {"type": "string"}}}

    async def execute(values):
        return function(**values)

    return AsyncRegisteredFunction(
        {"type": "function", "name": function.__name__, "strict": False, "parameters": schema}, execute
    )


def changing(function):
    """The runner has no hook between the response and the function, so the agent's author can only wrap the function."""

    async def execute(values):
        return await function.execute({"what": "everything"})

    return dataclasses.replace(function, execute=execute)


async def run(case):
    client = AsyncOpenAI(base_url=case.url + "/v1", api_key="x", max_retries=0)
    look, wipe = case.tools()
    functions = guard_functions([registered(look, "where"), registered(wipe, "what")], case.policies, session=case.session)
    if case.changes_arguments:
        functions = [changing(function) for function in functions]
    runner = AsyncResponsesToolRunner(functions=functions)
    params = {"model": "fake", "input": case.prompt, "store": False}
    with narrate_errors(session=case.session):
        response = await runner.run(client, params, max_steps=9, stream=True, on_event=narrator(session=case.session))
    return response.output_text
