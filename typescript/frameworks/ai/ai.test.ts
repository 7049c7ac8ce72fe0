import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

import { gateTools, narrate } from "../../build/src/adapters/ai.js";
import { testAdapter } from "../../build/test/support/adapter-suite.js";

testAdapter({
  name: "Vercel AI SDK",
  canRewrite: true,
  async run({ session, model, prompt, world, policies, signal, rewrite }) {
    const inputSchema = z.object({ what: z.string() });
    const tools = gateTools(
      session,
      {
        look: tool({
          description: "Looks.",
          inputSchema,
          execute: async ({ what }) => world.look(what),
        }),
        // A generator tool, which reports intermediate results.
        wipe: tool({
          description: "Wipes.",
          inputSchema,
          async *execute({ what }) {
            yield "wiping";
            yield world.wipe(what);
          },
        }),
      },
      policies,
    );
    const result = streamText({
      model: createOpenAICompatible({ name: "fake", baseURL: `${model.url}/v1`, apiKey: "x" })("fake"),
      tools,
      prompt,
      stopWhen: stepCountIs(5),
      ...(rewrite === undefined ? {} : { experimental_refineToolInput: { wipe: (input: { what: string }) => rewrite(input) as typeof input } }),
      ...(signal === undefined ? {} : { abortSignal: signal }),
    });
    for await (const part of narrate(session, result.fullStream)) void part;
  },
});
