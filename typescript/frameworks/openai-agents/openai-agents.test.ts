import { Agent, defineToolInputGuardrail, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

import { gateTools, narrate } from "../../build/src/adapters/openai-agents.js";
import { testAdapter, type RunOptions } from "../../build/test/support/adapter-suite.js";

setTracingDisabled(true);

/** With `ownErrors`, an error of a tool ends the run. Otherwise the SDK turns it into a text for the model. */
async function runAgent({ session, model, prompt, world, policies, signal, rewrite }: RunOptions, ownErrors: boolean): Promise<void> {
  const parameters = z.object({ what: z.string() });
  const errors = ownErrors ? { errorFunction: null } : {};
  const change = defineToolInputGuardrail({
    name: "change",
    run: async ({ toolCall }) => {
      if (rewrite !== undefined) toolCall.arguments = JSON.stringify(rewrite(JSON.parse(toolCall.arguments) as Record<string, unknown>));
      return { behavior: { type: "allow" } };
    },
  });
  const tools = gateTools(
    session,
    [
      tool({ name: "look", description: "Looks.", parameters, ...errors, execute: async ({ what }) => world.look(what) }),
      tool({ name: "wipe", description: "Wipes.", parameters, inputGuardrails: [change], ...errors, execute: async ({ what }) => world.wipe(what) }),
    ],
    policies,
  );
  const client = new OpenAI({ apiKey: "x", baseURL: `${model.url}/v1`, maxRetries: 0 });
  const agent = new Agent({ name: "Agent", model: new OpenAIChatCompletionsModel(client, "fake"), tools });
  const result = await new Runner().run(agent, prompt, { stream: true, ...(signal === undefined ? {} : { signal }) });
  for await (const event of narrate(session, result)) void event;
  await result.completed;
}

testAdapter({ name: "OpenAI Agents", canRewrite: true, toolError: "An error occurred while running the tool.", run: (options) => runAgent(options, false) });
testAdapter({ name: "OpenAI Agents, without an error function", canRewrite: true, run: (options) => runAgent(options, true) });
