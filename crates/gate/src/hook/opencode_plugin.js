// Connects opencode to sayso: narrates sessions, and asks a person before calls that need permission.
// Installed by `sayso setup opencode`. It calls `sayso hook opencode` once per event.
import { spawn } from "node:child_process";

const COMMAND = ["sayso", "hook", "opencode"];

/** Sends one event to sayso. Rejects if there is no valid answer. */
function hook(event) {
  return new Promise((resolve, reject) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
    let answer = "";
    child.on("error", reject);
    child.stdin.on("error", () => {});
    child.stdout.on("data", (data) => (answer += data));
    child.on("close", () => {
      try {
        resolve(JSON.parse(answer));
      } catch {
        reject(new Error("sayso gave no valid answer"));
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

/** Tells something that nobody waits for. */
async function tell(event) {
  try {
    await hook(event);
  } catch {
    // Narration is lost if sayso cannot be started. Calls are refused then, see below.
  }
}

export const Sayso = async ({ directory, client }) => {
  const spoken = new Set();
  const base = (name, session) => ({ hook_event_name: name, session_id: session ?? "unknown", cwd: directory });

  /** Answers opencode's own permission request, if a person answered. */
  async function answerRequest(request) {
    const { id, sessionID, permission, metadata, tool } = request;
    const event = { ...base("PermissionRequest", sessionID), tool_name: permission, tool_input: metadata ?? {} };
    if (tool?.callID) event.tool_use_id = tool.callID;
    let answer;
    try {
      answer = await hook(event);
    } catch {
      return; // opencode's own dialog stays open.
    }
    const reply = answer.decision === "allow" ? "once" : answer.decision === "deny" ? "reject" : null;
    if (!reply) return;
    // The client reaches opencode in its own process, too: on its screen, opencode has no server that listens. The client's typed
    // method cannot give a reason, so it is the second choice.
    const body = reply === "reject" ? { reply, message: answer.reason } : { reply };
    const message = { url: "/permission/{id}/reply", path: { id }, headers: { "Content-Type": "application/json" }, body };
    const typed = { path: { id: sessionID, permissionID: id }, body: { response: reply } };
    const sent = client._client?.post ? client._client.post(message) : client.postSessionIdPermissionsPermissionId(typed);
    await sent.catch(() => {});
  }

  return {
    event: async ({ event }) => {
      const { type, properties } = event;
      if (type === "session.created") await tell(base("SessionStart", properties.info?.id));
      else if (type === "session.deleted") await tell(base("SessionEnd", properties.info?.id));
      else if (type === "session.idle") await tell(base("Stop", properties.sessionID));
      else if (type === "permission.asked") answerRequest(properties);
      else if (type === "message.part.updated") {
        const part = properties.part;
        if (part?.type !== "text" || part.synthetic || !part.time?.end || spoken.has(part.id)) return;
        spoken.add(part.id);
        await tell({
          ...base("MessageDisplay", part.sessionID), message_id: part.id, index: 0, final: true, delta: part.text,
        });
      }
    },
    "tool.execute.before": async (input, output) => {
      const call = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID };
      let answer;
      try {
        answer = await hook({ ...base("PreToolUse", input.sessionID), ...call });
      } catch (error) {
        throw new Error(`Not permitted: sayso could not be asked (${error.message}).`);
      }
      // Anything but these two answers stops the call.
      if (answer.decision !== "allow" && answer.decision !== "none") {
        throw new Error(answer.reason ?? "Not permitted.");
      }
    },
    "tool.execute.after": async (input, output) => {
      const call = { tool_name: input.tool, tool_input: input.args ?? {}, tool_use_id: input.callID };
      await tell({ ...base("PostToolUse", input.sessionID), ...call, tool_response: String(output?.output ?? "") });
    },
  };
};
