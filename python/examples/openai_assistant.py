"""OpenAI Assistants run stream with a scripted model: `python examples/openai_assistant.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio
import warnings

from openai import AsyncOpenAI

import sayso
from sayso.openai import Tools
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        warnings.simplefilter("ignore", DeprecationWarning)
        client = AsyncOpenAI(base_url=model_server.url + "/v1", api_key="none")
        handler = Tools(TOOLS, POLICIES).assistant_handler(client)
        async with client.beta.threads.runs.stream(thread_id="t1", assistant_id="a1", event_handler=handler) as stream:
            await stream.until_done()


asyncio.run(main())
