from openai import AsyncOpenAI

from sayso.openai import Tools, narrate_errors, narrator

SCHEMAS = [
    {
        "type": "function",
        "name": name,
        "strict": False,
        "parameters": {"type": "object", "properties": {argument: {"type": "string"}}},
    }
    for name, argument in (("look", "where"), ("wipe", "what"))
]


async def run(case):
    client = AsyncOpenAI(base_url=case.url + "/v1", api_key="x", max_retries=0)
    tools = Tools(case.tools(), case.policies, session=case.session)
    narrate = narrator(session=case.session)
    items = [{"role": "user", "content": case.prompt}]
    while True:
        with narrate_errors(session=case.session):
            async with client.responses.stream(model="fake", input=items, tools=SCHEMAS, store=False) as stream:
                async for event in stream:
                    await narrate(event)
                response = await stream.get_final_response()
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        if case.changes_arguments:
            # The agent's own code between the model and the tools.
            calls[0].arguments = '{"what": "everything"}'
        items += [item.model_dump(exclude_none=True) for item in response.output]
        items += await tools.run_responses(response.output)
