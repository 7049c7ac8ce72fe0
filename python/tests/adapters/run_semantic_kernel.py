from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.filters import FilterTypes
from semantic_kernel.functions import KernelArguments, kernel_function

from sayso.semantic_kernel import guard_kernel, narrate

TOOL_PREFIX = "tidy-"


async def run(case):
    kernel = Kernel()
    kernel.add_service(OpenAIChatCompletion(ai_model_id="fake", async_client=AsyncOpenAI(base_url=case.url + "/v1", api_key="x")))
    for function in case.tools():
        kernel.add_function("tidy", kernel_function(function))
    guard_kernel(kernel, case.policies, session=case.session)
    if case.changes_arguments:

        async def change(context, next):
            context.arguments = KernelArguments(what="everything")
            await next(context)

        kernel.add_filter(FilterTypes.FUNCTION_INVOCATION, change)
    agent = ChatCompletionAgent(kernel=kernel, name="tidy")
    async for _ in narrate(agent.invoke_stream(case.prompt), session=case.session):
        pass
