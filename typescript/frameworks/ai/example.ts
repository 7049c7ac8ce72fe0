// Run it with: npm run example ai
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { session } from "@sayso/client";
import { gateTools, narrate } from "@sayso/client/ai";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const model = createOpenAICompatible({ name: "fake", baseURL: `${process.env["MODEL_URL"]}/v1`, apiKey: "none" })("fake");

const findBill = tool({ description: "Finds the open bill.", inputSchema: z.object({}), execute: async () => "5.00 euro to Ben" });
const payBill = tool({
  description: "Pays a bill.",
  inputSchema: z.object({ amount: z.string(), to: z.string() }),
  execute: async ({ amount, to }) => {
    console.log(`PAID ${amount} to ${to}`);
    return "paid";
  },
});

await session("Paying bills", async (s) => {
  const tools = gateTools(s, { findBill, payBill }, { findBill: {}, payBill: { irreversible: true, action: "Pay {amount} euro to {to}." } });
  const result = streamText({ model, tools, prompt: process.env["PROMPT"] ?? "Pay my bill.", stopWhen: stepCountIs(5) });
  for await (const part of narrate(s, result.fullStream)) if (part.type === "text-delta") process.stdout.write(part.text);
});
