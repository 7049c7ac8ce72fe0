// A host for the official conformance suite: it speaks stdio to the gate, and the gate speaks HTTP to the suite's server. Without SAYSO and
// HUB_URL, it speaks HTTP to the suite's server itself.
//
// Usage: node conformance_client.mjs [SAYSO HUB_URL] SERVER_URL      (the suite appends the server's URL)

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const url = process.argv.at(-1);
const [sayso, hub] = process.argv.slice(2, -1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const transport = sayso
  ? new StdioClientTransport({
      command: sayso,
      args: ["mcp", "--name", "conformance", "--hub", hub, "--url", url],
      stderr: "inherit",
      env: process.env,
    })
  : new StreamableHTTPClientTransport(new URL(url));
const capabilities = scenario.startsWith("elicitation") ? { elicitation: { form: { applyDefaults: true } } } : {};
const client = new Client({ name: "conformance", version: "1" }, { capabilities });
if (capabilities.elicitation) {
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: {} }));
}
await client.connect(transport);
const { tools } = await client.listTools();
const arguments_ = { add_numbers: { a: 5, b: 3 } };
for (const tool of tools) {
  const result = await client.callTool({ name: tool.name, arguments: arguments_[tool.name] ?? {} });
  if (result.isError) throw new Error(JSON.stringify(result));
}
await client.close();
