// Run it with: npm run example mastra
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { session } from "@sayso/client";
import { gateTools, narrate } from "@sayso/client/mastra";
import { z } from "zod";

// Mastra's types do not fit those of the current provider.
const model = createOpenAICompatible({ name: "fake", baseURL: `${process.env["MODEL_URL"]}/v1`, apiKey: "none" })("fake") as never;

const findBill = createTool({ id: "findBill", description: "Finds the open bill.", inputSchema: z.object({}), execute: async () => "5.00 euro to Ben" });
const payBill = createTool({
  id: "payBill",
  description: "Pays a bill.",
  inputSchema: z.object({ amount: z.string(), to: z.string() }),
  execute: async ({ amount, to }) => {
    console.log(`PAID ${amount} to ${to}`);
    return "paid";
  },
});

await session("Paying bills", async (s) => {
  const tools = gateTools(s, { findBill, payBill }, { findBill: {}, payBill: { irreversible: true, action: "Pay {amount} euro to {to}." } });
  const agent = new Agent({ id: "payer", name: "Bill payer", instructions: "You pay bills.", model, tools });
  const output = await agent.stream(process.env["PROMPT"] ?? "Pay my bill.", { maxSteps: 5 });
  for await (const chunk of narrate(s, output.fullStream)) if (chunk.type === "text-delta") process.stdout.write(chunk.payload.text);
});
