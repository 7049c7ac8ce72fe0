// Run it with: npm run example claude-agent
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { session } from "@sayso/client";
import { GATED_INSIDE, gateOptions, gateTools, narrate } from "@sayso/client/claude-agent";
import { z } from "zod";

const payBill = tool("payBill", "Pays a bill.", { amount: z.string(), to: z.string() }, async ({ amount, to }) => {
  console.log(`PAID ${amount} to ${to}`);
  return { content: [{ type: "text", text: "paid" }] };
});

await session("Paying bills", async (s) => {
  const tools = gateTools(s, [payBill], { payBill: { irreversible: true, action: "Pay {amount} euro to {to}." } });
  const options = gateOptions(
    s,
    { Read: {}, Bash: { irreversible: true, action: "Run {command}." }, mcp__bank__payBill: GATED_INSIDE },
    {
      mcpServers: { bank: createSdkMcpServer({ name: "bank", version: "1.0.0", tools }) },
      allowedTools: ["mcp__bank__payBill"],
      includePartialMessages: true,
      settingSources: [],
      env: { ...process.env, ANTHROPIC_BASE_URL: process.env["MODEL_URL"], ANTHROPIC_AUTH_TOKEN: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" },
    },
  );
  for await (const message of narrate(s, query({ prompt: process.env["PROMPT"] ?? "Pay my bill.", options }))) {
    if (message.type === "result" && message.subtype === "success") console.log(message.result);
  }
});
