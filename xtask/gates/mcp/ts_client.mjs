// The client of the official TypeScript SDK as a host, through the gate.
//
// Usage: node ts_client.mjs SAYSO HUB_URL SERVER…      (the server is server-everything)
// With the environment variable EXPECT=refused, the gated call must be refused.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import assert from "node:assert/strict";

const [sayso, hub, ...server] = process.argv.slice(2);
const isRefused = process.env.EXPECT === "refused";
const transport = new StdioClientTransport({
  command: sayso,
  args: ["mcp", "--name", "everything", "--hub", hub, "--", ...server],
  stderr: "ignore",
  env: process.env,
});
const client = new Client({ name: "ts", version: "1" }, { capabilities: { sampling: {}, elicitation: {}, roots: {} } });
client.setRequestHandler(CreateMessageRequestSchema, async () => ({ role: "assistant", model: "m", content: { type: "text", text: "Sampled." } }));
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "decline" }));
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [] }));
await client.connect(transport);
const { tools } = await client.listTools();
assert.ok(tools.some((tool) => tool.name === "echo"));
const echoed = await client.callTool({ name: "echo", arguments: { message: "hi" } });
if (isRefused) {
  assert.equal(echoed.isError, true);
  assert.match(echoed.content[0].text, /was not called/);
} else {
  assert.equal(echoed.content[0].text, "Echo: hi");
  const progress = [];
  await client.callTool({ name: "trigger-long-running-operation", arguments: { duration: 1, steps: 2 } }, undefined, { onprogress: (value) => progress.push(value) });
  assert.ok(progress.length >= 2, JSON.stringify(progress));
  const many = await Promise.all([...Array(8).keys()].map((a) => client.callTool({ name: "get-sum", arguments: { a, b: 1 } })));
  many.forEach((result, a) => assert.match(result.content[0].text, new RegExp(`is ${a + 1}`)));
  assert.match((await client.callTool({ name: "trigger-sampling-request", arguments: { prompt: "?" } })).content[0].text, /Sampled/);
  const controller = new AbortController();
  const aborted = client.callTool({ name: "trigger-long-running-operation", arguments: { duration: 30, steps: 30 } }, undefined, { signal: controller.signal });
  setTimeout(() => controller.abort("enough"), 300);
  await assert.rejects(aborted);
}
await client.ping();
await client.close();
console.log(`TypeScript SDK: ok, protocol ${transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.() ?? ""}`);
