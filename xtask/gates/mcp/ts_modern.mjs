// The client of the official TypeScript SDK as a host that speaks protocol 2026-07-28, through the gate.
//
// Usage: node ts_modern.mjs SAYSO HUB_URL SERVER…      (the server is `py_modern.py serve`)
// With the environment variable EXPECT=refused, the gated call must be refused.

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import assert from "node:assert/strict";

const [sayso, hub, ...server] = process.argv.slice(2);
const transport = new StdioClientTransport({
  command: sayso,
  args: ["mcp", "--name", "modern", "--hub", hub, "--", ...server],
  stderr: "ignore",
  env: process.env,
});
const client = new Client(
  { name: "ts-modern", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
);
let asked = 0;
client.setRequestHandler("elicitation/create", async () => {
  asked += 1;
  return { action: "accept", content: { name: "Ana" } };
});
await client.connect(transport);
assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["add", "greet"]);
const sum = await client.callTool({ name: "add", arguments: { a: 2, b: 3 } });
if (process.env.EXPECT === "refused") {
  assert.equal(sum.isError, true);
  assert.match(sum.content[0].text, /was not called/);
} else {
  assert.equal(sum.content[0].text, "It is 5.");
  const many = await Promise.all([...Array(8).keys()].map((a) => client.callTool({ name: "add", arguments: { a, b: 1 } })));
  many.forEach((result, a) => assert.equal(result.content[0].text, `It is ${a + 1}.`));
  // The server answers with `input_required`, and the host calls again under another id.
  assert.equal((await client.callTool({ name: "greet", arguments: {} })).content[0].text, "Hello, Ana.");
  assert.equal(asked, 1);
}
await client.close();
console.log("TypeScript SDK, 2026-07-28: ok");
