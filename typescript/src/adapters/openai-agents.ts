/**
 * The OpenAI Agents SDK (`@openai/agents`).
 *
 * ```ts
 * const agent = new Agent({ name: "Bank", tools: gateTools(session, [lookUp, pay], { look_up: {}, pay: { irreversible: true } }) });
 * const result = await run(agent, "Pay the bill.", { stream: true });
 * for await (const event of narrate(session, result)) { … }
 * ```
 *
 * Hosted tools (web search, code interpreter, hosted MCP) run at the provider: this gate does not see them. Do not set `timeoutMs` on a
 * gated tool, because the SDK counts the time that the person needs; set it in the policy instead.
 *
 * The SDK turns an error of a tool into a text for the model, and hides the error. People hear that the tool failed. To let them hear
 * why, create the tool with `errorFunction: null`; then the error also ends the run. With an `errorFunction` of your own, a failed call
 * is reported as successful.
 */

import { refusalForModel } from "../errors.js";
import type { Session } from "../session.js";
import { copyWith, policyFor, runGated, type GateOptions, type Policies } from "./gate.js";
import { narrateStream } from "./narrator.js";

export type { GateOptions, Policies } from "./gate.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
interface AgentTool {
  readonly type: string;
  readonly name?: string;
  invoke?: (context: any, input: string, details?: any) => Promise<any>;
}

/** Returns the tools with a gate around each function tool. The originals are not changed. */
export function gateTools<T extends AgentTool>(session: Session, tools: readonly T[], policies: Policies, options: GateOptions = {}): T[] {
  return tools.map((tool) => gateTool(session, tool, policies, options));
}

/** Passes the events of a streamed run through, and reports the model's text. Tool calls are reported by {@link gateTools}. */
export function narrate<T extends { type: string }>(session: Session, stream: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  return narrateStream(session, stream, (event) => {
    const data = (event as { data?: { type?: string; delta?: unknown } }).data;
    if (event.type !== "raw_model_stream_event") return undefined;
    if (data?.type === "output_text_delta") return { text: data.delta };
    return data?.type === "response_done" ? { isEnd: true } : undefined;
  });
}

/** The text that the SDK returns for an error of a tool without an `errorFunction`. */
const HIDDEN_ERROR = "An error occurred while running the tool. Please try again.";

/** Thrown inside the gate, so that a call is reported as failed whose error the SDK has hidden. */
class HiddenToolError extends Error {
  override name = "HiddenToolError";

  constructor() {
    super("An error occurred while running the tool.");
  }
}

function gateTool<T extends AgentTool>(session: Session, tool: T, policies: Policies, options: GateOptions): T {
  const { invoke, name } = tool;
  if (tool.type !== "function" || typeof invoke !== "function" || name === undefined) return tool;
  const policy = policyFor(name, policies, options);
  const gated = async (context: any, input: string, details?: { signal?: AbortSignal; toolCall?: { callId?: string } }): Promise<unknown> => {
    let args: unknown;
    try {
      args = JSON.parse(input || "{}");
    } catch {
      return refusalForModel("the arguments are not JSON");
    }
    const call = { signal: details?.signal, toolCallId: details?.toolCall?.callId };
    try {
      const result = await runGated(session, name, policy, args, call, async (own, signal): Promise<unknown> => {
        const value: unknown = await invoke.call(tool, context, JSON.stringify(own), { ...details, signal });
        if (value === HIDDEN_ERROR) throw new HiddenToolError();
        return value;
      });
      return result.ran ? result.value : result.refusal;
    } catch (error) {
      if (error instanceof HiddenToolError) return HIDDEN_ERROR;
      throw error;
    }
  };
  return copyWith(tool, { invoke: gated });
}
