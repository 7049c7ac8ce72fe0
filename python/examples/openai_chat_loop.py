"""OpenAI chat completions in a loop of your own with a scripted model: `python examples/openai_chat_loop.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from openai import AsyncOpenAI

import sayso
from sayso.openai import Tools, narrate_chat
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        schemas = [
            {
                "type": "function",
                "function": {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "string"}}}},
            }
            for name, key in (("look", "where"), ("wipe", "what"))
        ]
        client = AsyncOpenAI(base_url=model_server.url + "/v1", api_key="none")
        tools = Tools(TOOLS, POLICIES)
        messages = [{"role": "user", "content": "Tidy up."}]
        while True:
            async with client.chat.completions.stream(model="scripted", messages=messages, tools=schemas) as stream:
                async for _ in narrate_chat(event.chunk async for event in stream if event.type == "chunk"):
                    pass
                message = (await stream.get_final_completion()).choices[0].message
            if not message.tool_calls:
                break
            messages += [message.model_dump(exclude_none=True), *await tools.run_chat(message.tool_calls)]


asyncio.run(main())
