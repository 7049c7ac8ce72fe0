// The server of the conformance suite's server scenarios: a stdio server with the tools, resources and prompts that they expect, and
// in front of it a bridge, because the suite reaches a server by its URL.
//
// Usage: node conformance_server.mjs serve              the server itself, over stdio
//        node conformance_server.mjs bridge COMMAND…    prints its URL; each session starts COMMAND, and its messages pass unchanged

import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CompleteRequestSchema, SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { z } from "zod";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const text = (words) => ({ type: "text", text: words });
const resource = (uri, words) => ({ type: "resource", resource: { uri, mimeType: "text/plain", text: words } });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

async function serve() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const server = new McpServer({ name: "conformance", version: "1" }, { capabilities });
  const tool = (name, answer, inputSchema = {}) => server.registerTool(name, { description: name, inputSchema }, answer);
  const content = (...parts) => async () => ({ content: parts });
  tool("test_simple_text", content(text("This is a simple text response for testing.")));
  tool("test_image_content", content(image));
  tool("test_audio_content", content({ type: "audio", data: WAV, mimeType: "audio/wav" }));
  tool("test_embedded_resource", content(resource("test://embedded-resource", "This is an embedded resource content.")));
  tool("test_multiple_content_types", content(text("Multiple content types test:"), image, resource("test://mixed-content-resource", "{}")));
  tool("test_error_handling", async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool("test_tool_with_logging", async (_, { sendNotification }) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await pause();
    }
    return { content: [text("Tool with logging executed successfully")] };
  });
  tool("test_tool_with_progress", async (_, { sendNotification, _meta }) => {
    for (const progress of [0, 50, 100]) {
      await sendNotification({ method: "notifications/progress", params: { progressToken: _meta?.progressToken ?? 0, progress, total: 100 } });
      await pause();
    }
    return { content: [text(String(_meta?.progressToken))] };
  });
  tool("test_sampling", async ({ prompt }) => {
    const messages = [{ role: "user", content: text(prompt) }];
    const answer = await server.server.createMessage({ messages, maxTokens: 100 });
    return { content: [text(`LLM response: ${answer.content.text}`)] };
  }, { prompt: z.string() });
  const elicit = async (message, requestedSchema) => {
    const answer = await server.server.elicitInput({ message, requestedSchema });
    return { content: [text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`)] };
  };
  const object = (properties, required = []) => ({ type: "object", properties, required });
  tool("test_elicitation", ({ message }) => elicit(message, object({ response: { type: "string", description: "User's response" } }, ["response"])), { message: z.string() });
  tool("test_elicitation_sep1034_defaults", () => elicit("Please review and update the form fields with defaults", object({
    name: { type: "string", default: "John Doe" }, age: { type: "integer", default: 30 }, score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" }, verified: { type: "boolean", default: true },
  })));
  const names = ["value1", "value2", "value3"];
  const titled = names.map((name, index) => ({ const: name, title: `${["First", "Second", "Third"][index]} Option` }));
  tool("test_elicitation_sep1330_enums", () => elicit("Please select options from the enum fields", object({
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: { type: "array", items: { anyOf: titled } },
  })));
  server.registerResource("static-text", "test://static-text", { mimeType: "text/plain" }, async (uri) =>
    ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "This is the content of the static text resource." }] }));
  server.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, async (uri) =>
    ({ contents: [{ uri: uri.href, mimeType: "image/png", blob: PNG }] }));
  server.registerResource("template", new ResourceTemplate("test://template/{id}/data", { list: undefined }), { mimeType: "application/json" }, async (uri, { id }) =>
    ({ contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }));
  server.registerResource("watched", "test://watched-resource", { mimeType: "text/plain" }, async (uri) =>
    ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "Watched resource content" }] }));
  const prompt = (name, argsSchema, parts) => server.registerPrompt(name, { description: name, argsSchema }, async (args) =>
    ({ messages: parts(args).map((part) => ({ role: "user", content: part })) }));
  prompt("test_simple_prompt", {}, () => [text("This is a simple prompt for testing.")]);
  prompt("test_prompt_with_arguments", { arg1: z.string(), arg2: z.string() }, ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]);
  prompt("test_prompt_with_embedded_resource", { resourceUri: z.string() }, ({ resourceUri }) => [resource(resourceUri, "Embedded resource content for testing."), text("Please process the embedded resource above.")]);
  prompt("test_prompt_with_image", {}, () => [image, text("Please analyze the image above.")]);
  server.server.setRequestHandler(SetLevelRequestSchema, async () => ({}));
  server.server.setRequestHandler(SubscribeRequestSchema, async () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, async () => ({}));
  server.server.setRequestHandler(CompleteRequestSchema, async () => ({ completion: { values: [], total: 0, hasMore: false } }));
  await server.connect(new StdioServerTransport());
}

/** Connects each session over HTTP with a process of its own. The messages are passed on as they are. */
function bridge([command, ...args]) {
  const sessions = new Map();
  const server = createServer(async (request, response) => {
    let session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) {
      const process = new StdioClientTransport({ command, args, stderr: "inherit", env: globalThis.process.env });
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, session),
        enableDnsRebindingProtection: true,
        allowedHosts: [`127.0.0.1:${server.address().port}`, `localhost:${server.address().port}`],
      });
      // A response belongs to the stream of its request. So does what the server sends while it handles the only open request.
      const open = new Set();
      session.onmessage = (message) => {
        if (message.id !== undefined && message.method) open.add(message.id);
        process.send(message);
      };
      process.onmessage = (message) => {
        const relatedRequestId = message.method ? [...open].at(-1) : undefined;
        if (!message.method) open.delete(message.id);
        session.send(message, { relatedRequestId }).catch(() => {});
      };
      session.onclose = () => process.close();
      await Promise.all([process.start(), session.start()]);
    }
    await session.handleRequest(request, response);
  });
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
}

const [mode, ...rest] = process.argv.slice(2);
if (mode === "serve") await serve();
else bridge(rest);
