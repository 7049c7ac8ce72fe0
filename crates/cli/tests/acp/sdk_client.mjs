// A client of ACP's official SDK. Usage: sdk_client.mjs ANSWER PROMPT COMMAND ARGS... ANSWER is an option id, or "wait".
// Prints one line of JSON: the stop reason, the updates, and whether the permission request was cancelled.
import * as acp from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [answer, prompt, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const updates = [];
let cancelled = false;

await acp
  .client({ name: "sdk-client" })
  .onRequest(acp.methods.client.session.requestPermission, async (context) => {
    if (answer !== "wait") return { outcome: { outcome: "selected", optionId: answer } };
    // A dialog that nobody answers, until the request is cancelled.
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    cancelled = true;
    return { outcome: { outcome: "cancelled" } };
  })
  .onNotification(acp.methods.client.session.update, async (context) => {
    updates.push(context.params.update.sessionUpdate);
  })
  .connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (context) => {
    await context.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessionId } = await context.request(acp.methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
    const { stopReason } = await context.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
    console.log(JSON.stringify({ stopReason, updates, cancelled }));
  });
agent.stdin.end();
await new Promise((resolve) => agent.on("exit", resolve));
