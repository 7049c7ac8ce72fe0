// An agent of ACP's official SDK. It asks for permission, and touches the file in the prompt only if it may.
import * as acp from "@agentclientprotocol/sdk";
import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const options = [
  { optionId: "go", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const always = [{ optionId: "forever", name: "Always", kind: "allow_always" }, ...options];

const update = (context, sessionId, update) =>
  context.client.notify(acp.methods.client.session.update, { sessionId, update });

acp
  .agent({ name: "sdk-agent" })
  .onRequest(acp.methods.agent.initialize, async () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {},
    agentInfo: { name: "sdk-agent", title: "SDK agent", version: "1" },
  }))
  .onRequest(acp.methods.agent.session.new, async () => ({ sessionId: "sdk-session" }))
  .onRequest(acp.methods.agent.session.prompt, async (context) => {
    const { sessionId, prompt } = context.params;
    const [file, kind] = prompt[0].text.split(" ");
    const rawInput = { command: `touch ${file}` };
    const call = { toolCallId: "call-1", title: `touch ${file}`, kind: "execute", status: "pending", rawInput };
    await update(context, sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "I make a file." } });
    await update(context, sessionId, { sessionUpdate: "tool_call", ...call });
    const response = await context.client.request(acp.methods.client.session.requestPermission, {
      sessionId,
      toolCall: call,
      options: kind === "always" ? always : options,
    });
    const { outcome } = response;
    const mayRun = outcome.outcome === "selected" && outcome.optionId !== "no";
    if (mayRun) writeFileSync(file, outcome.optionId);
    await update(context, sessionId, { sessionUpdate: "tool_call_update", toolCallId: "call-1", status: mayRun ? "completed" : "failed" });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
