import { Agent, defineToolInputGuardrail, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

import { gateTools, narrate } from "../../build/src/adapters/openai-agents.js";
import { testAdapter } from "../../build/test/support/adapter-suite.js";

setTracingDisabled(true);

testAdapter({
  name: "OpenAI Agents",
  canRewrite: true,
  async run({ session, model, prompt, world, policies, signal, rewrite }) {
    const parameters = z.object({ what: z.string() });
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
        tool({ name: "look", description: "Looks.", parameters, execute: async ({ what }) => (world.looked.push(what), "ten") }),
        tool({ name: "wipe", description: "Wipes.", parameters, inputGuardrails: [change], execute: async ({ what }) => (world.wiped.push(what), "wiped") }),
      ],
      policies,
    );
    const client = new OpenAI({ apiKey: "x", baseURL: `${model.url}/v1`, maxRetries: 0 });
    const agent = new Agent({ name: "Agent", model: new OpenAIChatCompletionsModel(client, "fake"), tools });
    const result = await new Runner().run(agent, prompt, { stream: true, ...(signal === undefined ? {} : { signal }) });
    for await (const event of narrate(session, result)) void event;
    await result.completed;
  },
});
