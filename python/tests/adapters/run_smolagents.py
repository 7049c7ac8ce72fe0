from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent

from sayso.smolagents import Gate

FINAL_TOOL = ("final_answer", "answer")


async def run(case):
    gate = Gate(case.policies, session=case.session)
    model = OpenAIServerModel("fake", api_base=case.url + "/v1", api_key="x", client_kwargs={"max_retries": 0})
    agent = ToolCallingAgent(tools=gate.tools(case.tools()), model=model, max_steps=4, verbosity_level=LogLevel.OFF)
    if case.changes_arguments:
        # An argument that is the name of a variable of the agent's state is replaced by its value.
        agent.state["photos"] = "everything"
    return await gate.run_async(agent, case.prompt)
