// The official TypeScript SDK as a host and a server that speak protocol 2026-07-28, with `sayso mcp --elicit` between them.
// A person who listens gives the input that the server needs, so the host is not asked for it.
//
// Usage: node ts_elicit.mjs SAYSO HUB_URL      (the script starts itself as the server)

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { McpServer, acceptedContent, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { z } from "zod";

function serve() {
  serveStdio(() => {
    const server = new McpServer({ name: "greeter", version: "1" }, { capabilities: { tools: {} } });
    const person = z.object({ name: z.string(), age: z.int() });
    server.registerTool("greet", { inputSchema: z.object({ greeting: z.string() }) }, async ({ greeting }, context) => {
      const given = acceptedContent(context.mcpReq.inputResponses, "person", person);
      if (given) return { content: [{ type: "text", text: `${greeting}, ${given.name}, aged ${given.age}.` }] };
      const form = inputRequired.elicit({ message: "Who are you?", requestedSchema: person });
      return inputRequired({ inputRequests: { person: form } });
    });
    return server;
  });
}

/** Listens to the hub, and answers each clarification with the next answer. */
async function listen(hub, answers) {
  const post = (path, body) =>
    fetch(`${hub}${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const capabilities = { supports_clarification_reply: true };
  const request = { type: "subscription.request", aaep_version: "1.0.0", subscriber_id: "person", capabilities };
  const { subscription_id } = await (await post("/aaep/v1/subscriptions", request)).json();
  const events = await fetch(`${hub}/aaep/v1/events?subscription_id=${subscription_id}`);
  const questions = [];
  (async () => {
    let text = "";
    for await (const part of events.body.pipeThrough(new TextDecoderStream())) {
      const lines = (text + part).split("\n");
      text = lines.pop();
      for (const line of lines.filter((line) => line.startsWith("data: "))) {
        const event = JSON.parse(line.slice(6));
        if (event.type !== "aaep:agent.awaiting.clarification") continue;
        questions.push(event.question);
        const response = answers.shift();
        const reply = { type: "clarification.reply", reply_token: event.reply_token, response, subscription_id };
        await post("/aaep/v1/replies", { ...reply, timestamp: new Date().toISOString() });
      }
    }
  })().catch(() => {});
  return questions;
}

async function main(sayso, hub) {
  // The second call gets an answer that is not a whole number, so the host is asked.
  const questions = await listen(hub, [true, "Ana", 30, true, "Ben", 2.5]);
  const transport = new StdioClientTransport({
    command: sayso,
    args: ["mcp", "--name", "greeter", "--hub", hub, "--elicit", "--", process.execPath, fileURLToPath(import.meta.url), "serve"],
    stderr: "ignore",
    env: process.env,
  });
  const client = new Client(
    { name: "ts-elicit", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
  );
  let asked = 0;
  client.setRequestHandler("elicitation/create", async () => {
    asked += 1;
    return { action: "accept", content: { name: "Host", age: 40 } };
  });
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
  await client.listTools();
  const greet = async (greeting) => (await client.callTool({ name: "greet", arguments: { greeting } })).content[0].text;
  assert.equal(await greet("Hello"), "Hello, Ana, aged 30.");
  assert.equal(asked, 0);
  assert.equal(await greet("Welcome"), "Welcome, Host, aged 40.");
  assert.equal(asked, 1);
  assert.equal(questions.length, 6, JSON.stringify(questions));
  await client.close();
  console.log("TypeScript SDK, 2026-07-28, input from a listener: ok");
  process.exit(0);
}

if (process.argv[2] === "serve") serve();
else await main(...process.argv.slice(2));
