import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

import { gateTools, narrate } from "../../build/src/adapters/mastra.js";
import { testAdapter } from "../../build/test/support/adapter-suite.js";

testAdapter({
  name: "Mastra",
  canRewrite: true,
  async run({ session, model, prompt, world, policies, signal, rewrite }) {
    const inputSchema = z.object({ what: z.string() });
    const tools = gateTools(
      session,
      {
        look: createTool({ id: "look", description: "Looks.", inputSchema, execute: async ({ what }) => world.look(what) }),
        wipe: createTool({ id: "wipe", description: "Wipes.", inputSchema, execute: async ({ what }) => world.wipe(what) }),
      },
      policies,
    );
    const agent = new Agent({
      id: "agent",
      name: "agent",
      instructions: "Follow the script.",
      // Mastra's types do not fit those of the current provider.
      model: createOpenAICompatible({ name: "fake", baseURL: `${model.url}/v1`, apiKey: "x" })("fake") as never,
      tools,
      hooks: {
        // The hook cannot return another input, but change the one that it gets.
        beforeToolCall: ({ input }) => {
          if (rewrite !== undefined) Object.assign(input as object, rewrite(input as Record<string, unknown>));
        },
      },
    });
    const output = await agent.stream(prompt, { maxSteps: 5, ...(signal === undefined ? {} : { abortSignal: signal }) });
    for await (const chunk of narrate(session, output.fullStream)) void chunk;
  },
});
