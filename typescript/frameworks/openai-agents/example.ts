// Run it with: npm run example openai-agents
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from "@openai/agents";
import { session } from "@sayso/client";
import { gateTools, narrate } from "@sayso/client/openai-agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
const model = new OpenAIChatCompletionsModel(new OpenAI({ baseURL: `${process.env["MODEL_URL"]}/v1`, apiKey: "none" }), "fake");

const findBill = tool({ name: "findBill", description: "Finds the open bill.", parameters: z.object({}), execute: async () => "5.00 euro to Ben" });
const payBill = tool({
  name: "payBill",
  description: "Pays a bill.",
  parameters: z.object({ amount: z.string(), to: z.string() }),
  execute: async ({ amount, to }) => {
    console.log(`PAID ${amount} to ${to}`);
    return "paid";
  },
});

await session("Paying bills", async (s) => {
  const tools = gateTools(s, [findBill, payBill], { findBill: {}, payBill: { irreversible: true, action: "Pay {amount} euro to {to}." } });
  const result = await run(new Agent({ name: "Bill payer", model, tools }), process.env["PROMPT"] ?? "Pay my bill.", { stream: true });
  for await (const event of narrate(s, result)) {
    if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") process.stdout.write(event.data.delta);
  }
  await result.completed;
});
