/**
 * Mastra (`@mastra/core`).
 *
 * ```ts
 * const agent = new Agent({ …, tools: gateTools(session, { lookUp, pay }, { lookUp: {}, pay: { irreversible: true } }) });
 * const output = await agent.stream("Pay the bill.");
 * for await (const chunk of narrate(session, output.fullStream)) { … }
 * ```
 *
 * The gate is inside the tool, so neither an agent's hooks nor those passed to a single call can bypass it, and sub-agents are covered.
 */

import type { Session } from "../session.js";
import { copyWith, policyFor, runGated, type GateOptions, type Policies } from "./gate.js";
import { narrateStream } from "./narrator.js";

export type { GateOptions, Policies } from "./gate.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
interface MastraTool {
  id?: string;
  execute?: ((input: any, context: any) => any) | undefined;
}

/** Returns the tools with a gate around each `execute`. The policy of a tool is found by the tool's key in `tools`; if `policies` has no such key, by the tool's `id`. */
export function gateTools<T extends { [name: string]: MastraTool }>(session: Session, tools: T, policies: Policies, options: GateOptions = {}): T {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, gateTool(session, name, tool, policies, options)])) as T;
}

/** Passes `fullStream` through, and reports the model's text and errors. Tool calls are reported by {@link gateTools}. */
export function narrate<T extends { type: string }>(session: Session, stream: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  return narrateStream(session, stream, (chunk) => {
    const payload = (chunk as { payload?: { text?: unknown; error?: unknown } }).payload;
    if (chunk.type === "text-delta") return { text: payload?.text };
    if (chunk.type === "text-end") return { isEnd: true };
    return chunk.type === "error" ? { error: payload?.error } : undefined;
  });
}

function gateTool(session: Session, name: string, tool: MastraTool, policies: Policies, options: GateOptions): MastraTool {
  const execute = tool.execute;
  if (typeof execute !== "function") return tool;
  const isById = !Object.hasOwn(policies, name) && tool.id !== undefined;
  const policy = policyFor(isById ? (tool.id as string) : name, policies, options);
  const gated = async (input: unknown, context: any): Promise<unknown> => {
    const call = { signal: context?.abortSignal as AbortSignal | undefined, toolCallId: context?.agent?.toolCallId as string | undefined };
    const result = await runGated(session, name, policy, input, call, (permittedInput, signal) => execute.call(tool, permittedInput, { ...context, abortSignal: signal }));
    return result.ran ? result.value : result.refusal;
  };
  return copyWith(tool, { execute: gated });
}
