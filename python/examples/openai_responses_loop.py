"""OpenAI Responses in a loop of your own with a scripted model: `python examples/openai_responses_loop.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from openai import AsyncOpenAI

import sayso
from sayso.openai import Tools, narrator
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        schemas = [
            {"type": "function", "name": name, "parameters": {"type": "object", "properties": {key: {"type": "string"}}}}
            for name, key in (("look", "where"), ("wipe", "what"))
        ]
        client = AsyncOpenAI(base_url=model_server.url + "/v1", api_key="none")
        tools, narrate = Tools(TOOLS, POLICIES), narrator()
        items: list = [{"role": "user", "content": "Tidy up."}]
        while True:
            async with client.responses.stream(model="scripted", input=items, tools=schemas, store=False) as stream:
                async for event in stream:
                    await narrate(event)
                response = await stream.get_final_response()
            results = await tools.run_responses(response.output)
            if not results:
                break
            items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output] + results


asyncio.run(main())
