from openai import AsyncOpenAI

from sayso.openai import Tools, narrate_chat, narrate_errors

SCHEMAS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {argument: {"type": "string"}}}},
    }
    for name, argument in (("look", "where"), ("wipe", "what"))
]


async def run(case):
    client = AsyncOpenAI(base_url=case.url + "/v1", api_key="x", max_retries=0)
    tools = Tools(case.tools(), case.policies, session=case.session)
    messages = [{"role": "user", "content": case.prompt}]
    while True:
        with narrate_errors(session=case.session):
            async with client.chat.completions.stream(model="fake", messages=messages, tools=SCHEMAS) as stream:
                chunks = (event.chunk async for event in stream if event.type == "chunk")
                async for _ in narrate_chat(chunks, session=case.session):
                    pass
                message = (await stream.get_final_completion()).choices[0].message
        if not message.tool_calls:
            return message.content
        if case.changes_arguments:
            # The agent's own code between the model and the tools.
            message.tool_calls[0].function.arguments = '{"what": "everything"}'
        messages += [message.model_dump(exclude_none=True), *await tools.run_chat(message.tool_calls)]
