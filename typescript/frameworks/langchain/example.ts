// Run it with: npm run example langchain
import { ChatOpenAI } from "@langchain/openai";
import { session } from "@sayso/client";
import { gateTools, narrate } from "@sayso/client/langchain";
import { createAgent, tool } from "langchain";
import { z } from "zod";

const model = new ChatOpenAI({ model: "fake", apiKey: "none", configuration: { baseURL: `${process.env["MODEL_URL"]}/v1` }, useResponsesApi: false });

const findBill = tool(async () => "5.00 euro to Ben", { name: "findBill", description: "Finds the open bill.", schema: z.object({}) });
const payBill = tool(
  async ({ amount, to }) => {
    console.log(`PAID ${amount} to ${to}`);
    return "paid";
  },
  { name: "payBill", description: "Pays a bill.", schema: z.object({ amount: z.string(), to: z.string() }) },
);

await session("Paying bills", async (s) => {
  const tools = gateTools(s, [findBill, payBill], { findBill: {}, payBill: { irreversible: true, action: "Pay {amount} euro to {to}." } });
  const agent = createAgent({ model, tools });
  const messages = [{ role: "user", content: process.env["PROMPT"] ?? "Pay my bill." }];
  for await (const [message] of narrate(s, agent.stream({ messages }, { streamMode: "messages" }))) {
    if (message.type === "ai") process.stdout.write(message.text);
  }
});
