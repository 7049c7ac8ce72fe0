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
  /** Calls that sayso or opencode refused, so that they were not made. */
  const refused = new Set();
  /** Calls for which opencode asks for permission, by the id of the request. */
  const requested = new Map();
  /** Promises of the parents of sessions. A session with a parent belongs to a subagent. */
  const parents = new Map();

  function parentOf(session) {
    if (!parents.has(session)) {
      const found = client.session.get({ path: { id: session } });
      parents.set(session, found.then((answer) => answer.data?.parentID, () => undefined));
    }
    return parents.get(session);
  }

  /** Returns the members that all events have. For a subagent, the session is that of the first agent. */
  async function base(name, session) {
    const event = { hook_event_name: name, session_id: session ?? "unknown", cwd: directory };
    if (!session) return event;
    const seen = new Set([session]);
    for (let parent = await parentOf(session); parent && !seen.has(parent); parent = await parentOf(parent)) {
      seen.add(parent);
      event.session_id = parent;
      event.agent_id = session;
    }
    return event;
  }

  async function start({ id, parentID }) {
    parents.set(id, Promise.resolve(parentID));
    await tell(await base(parentID ? "SubagentStart" : "SessionStart", id));
  }

  async function stop(session) {
    await tell(await base((await parentOf(session)) ? "SubagentStop" : "Stop", session));
  }

  async function fail({ sessionID, error }) {
    // The person stopped the agent, or it is not about a session.
    if (!sessionID || error?.name === "MessageAbortedError") return;
    const message = error?.data?.message ?? error?.name ?? "unknown error";
    await tell({ ...(await base("Notification", sessionID)), message: `Error: ${message}` });
  }

  /** Tells a text of the agent, or a call that failed. Other events tell the calls that did not. */
  async function tellPart(part) {
    const isCall = part?.type === "tool" && part.state?.status === "error";
    const isText = part?.type === "text" && !part.synthetic && part.time?.end;
    if ((!isCall && !isText) || spoken.has(part.id)) return;
    spoken.add(part.id);
    if (isText) {
      const text = { message_id: part.id, index: 0, final: true, delta: part.text };
      await tell({ ...(await base("MessageDisplay", part.sessionID)), ...text });
    } else if (!refused.has(part.callID)) {
      const call = { tool_name: part.tool, tool_input: part.state.input ?? {}, tool_use_id: part.callID };
      const event = await base("PostToolUseFailure", part.sessionID);
      await tell({ ...event, ...call, error: String(part.state.error ?? "") });
    }
  }

  /** Answers opencode's own permission request, if a person answered. */
  async function answerRequest(request) {
    const { id, sessionID, permission, metadata, tool } = request;
    const call = { tool_name: permission, tool_input: metadata ?? {} };
    const event = { ...(await base("PermissionRequest", sessionID)), ...call };
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
      if (type === "session.created") await start(properties.info);
      else if (type === "session.deleted") await tell(await base("SessionEnd", properties.info?.id));
      else if (type === "session.idle") await stop(properties.sessionID);
      else if (type === "session.error") await fail(properties);
      else if (type === "message.part.updated") await tellPart(properties.part);
      else if (type === "permission.asked") {
        if (properties.tool?.callID) requested.set(properties.id, properties.tool.callID);
        answerRequest(properties);
      } else if (type === "permission.replied") {
        const call = requested.get(properties.requestID);
        requested.delete(properties.requestID);
        if (call && properties.reply === "reject") refused.add(call);
      }
    },
    "tool.execute.before": async (input, output) => {
      const call = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID };
      let answer;
      try {
        answer = await hook({ ...(await base("PreToolUse", input.sessionID)), ...call });
      } catch (error) {
        refused.add(input.callID);
        throw new Error(`Not permitted: sayso could not be asked (${error.message}).`);
      }
      // Anything but these two answers stops the call.
      if (answer.decision !== "allow" && answer.decision !== "none") {
        refused.add(input.callID);
        throw new Error(answer.reason ?? "Not permitted.");
      }
    },
    "tool.execute.after": async (input, output) => {
      const call = { tool_name: input.tool, tool_input: input.args ?? {}, tool_use_id: input.callID };
      await tell({ ...(await base("PostToolUse", input.sessionID)), ...call, tool_response: String(output?.output ?? "") });
    },
  };
};
