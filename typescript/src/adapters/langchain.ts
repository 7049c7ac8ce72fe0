/**
 * LangChain and LangGraph (`langchain`, `@langchain/core`, `@langchain/langgraph`).
 *
 * ```ts
 * const tools = gateTools(session, [lookUp, pay], { look_up: {}, pay: { irreversible: true, action: "Pay {amount} euro." } });
 * const agent = createAgent({ model, tools });
 * await agent.invoke({ messages }, { callbacks: [narration(session)] });
 * ```
 *
 * The gate is inside the tool, so it sees the arguments after all middleware, and works with `createAgent`, `ToolNode` and direct calls.
 */

import type { Session } from "../session.js";
import { copyWith, policyFor, runGated, type GateOptions, type Policies } from "./gate.js";
import { Narrator, narrateStream } from "./narrator.js";

export type { GateOptions, Policies } from "./gate.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
interface LangChainTool {
  name: string;
  func?: (...args: any[]) => any;
  responseFormat?: string | undefined;
}

/** Returns the tools with a gate around the function of each. The originals are not changed. */
export function gateTools<T extends LangChainTool>(session: Session, tools: readonly T[], policies: Policies, options: GateOptions = {}): T[] {
  return tools.map((tool) => gateTool(session, tool, policies, options));
}

/** Callbacks that report the model's text and errors. Pass them in `callbacks`. Tool calls are reported by {@link gateTools}. */
export function narration(session: Session) {
  const narrator = new Narrator(session);
  let hasStreamed = false;
  const ignore = () => {};
  return {
    name: "sayso",
    awaitHandlers: true,
    handleLLMNewToken(token: string): void {
      hasStreamed = true;
      narrator.write(token);
    },
    async handleLLMEnd(output: { generations?: { text?: string }[][] }): Promise<void> {
      if (!hasStreamed) for (const { text } of output.generations?.flat() ?? []) narrator.write(text);
      hasStreamed = false;
      await narrator.finish();
    },
    handleLLMError(error: unknown): void {
      narrator.error(error);
    },
    handleChatModelStart: ignore,
  };
}

/**
 * Passes a stream with `streamMode: "messages"` through, and reports the model's text and errors. Use this or {@link narration}, not both.
 * Pass the promise that `agent.stream(…)` returns, because it rejects if the first request to the model fails.
 */
export function narrate<T>(session: Session, stream: AsyncIterable<T> | PromiseLike<AsyncIterable<T>>): AsyncGenerator<T, void, undefined> {
  let isWriting = false;
  return narrateStream(session, stream, (part) => {
    const message = (Array.isArray(part) ? part[0] : part) as { type?: string; text?: unknown } | undefined;
    if (message?.type === "ai") {
      isWriting = true;
      return { text: message.text };
    }
    const isEnd = isWriting;
    isWriting = false;
    return { isEnd };
  });
}

function gateTool<T extends LangChainTool>(session: Session, tool: T, policies: Policies, options: GateOptions): T {
  const func = tool.func;
  if (typeof func !== "function") {
    throw new TypeError(`${tool.name} has no function; wrap the function of a Tool subclass with \`tool\` instead`);
  }
  const policy = policyFor(tool.name, policies, options);
  const gated = async (input: unknown, manager: unknown, config: any): Promise<unknown> => {
    const call = { signal: config?.signal as AbortSignal | undefined, toolCallId: config?.toolCall?.id as string | undefined };
    const result = await runGated(session, tool.name, policy, input, call, (own, signal) => func.call(tool, own, manager, { ...config, signal }));
    if (result.ran) return result.value;
    return tool.responseFormat === "content_and_artifact" ? [result.refusal, undefined] : result.refusal;
  };
  return copyWith(tool, { func: gated });
}
