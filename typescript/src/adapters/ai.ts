/**
 * The Vercel AI SDK (`ai`).
 *
 * ```ts
 * const tools = gateTools(session, { lookUp, pay }, { lookUp: {}, pay: { irreversible: true, action: "Pay {amount} euro." } });
 * const result = streamText({ model, tools, prompt });
 * for await (const part of narrate(session, result.fullStream)) { … }
 * ```
 *
 * Tools without `execute`, and tools that the provider executes, run elsewhere: this gate does not see them.
 */

import { SaysoError } from "../errors.js";
import type { Session } from "../session.js";
import { copyWith, policyFor, runGated, type GateOptions, type Policies } from "./gate.js";
import { narrateStream } from "./narrator.js";

export type { GateOptions, Policies } from "./gate.js";

// The parameter types of tools differ, and a gate does not care about them.
/* eslint-disable @typescript-eslint/no-explicit-any */
interface AiTool {
  execute?: ((input: any, options: any) => any) | undefined;
}

/** Returns the tools with a gate around each `execute`. The originals are not changed. */
export function gateTools<T extends { [name: string]: AiTool }>(session: Session, tools: T, policies: Policies, options: GateOptions = {}): T {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, gateTool(session, name, tool, policies, options)])) as T;
}

/** Passes `fullStream` through, and reports the model's text and errors. Tool calls are reported by {@link gateTools}. */
export function narrate<T extends { type: string }>(session: Session, stream: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  return narrateStream(session, stream, (part) => {
    const { type, text, error } = part as { type: string; text?: unknown; error?: unknown };
    if (type === "text-delta") return { text };
    if (type === "text-end") return { isEnd: true };
    return type === "error" ? { error } : undefined;
  });
}

/** Thrown to tell the model that a tool was not run. The SDK passes the message to the model as the tool's error. */
export class ToolNotRunError extends SaysoError {
  override name = "ToolNotRunError";

  constructor(message: string) {
    super("tool_not_run", message);
  }
}

function gateTool(session: Session, name: string, tool: AiTool, policies: Policies, options: GateOptions): AiTool {
  const execute = tool.execute;
  if (typeof execute !== "function") return tool;
  const policy = policyFor(name, policies, options);
  const isGenerator = execute.constructor.name === "AsyncGeneratorFunction";
  const gated = async (input: unknown, call: { abortSignal?: AbortSignal; toolCallId?: string } | undefined, consume: (result: any) => any) => {
    const result = await runGated(session, name, policy, input, { signal: call?.abortSignal, toolCallId: call?.toolCallId }, async (own, signal) =>
      consume(await execute.call(tool, own, { ...call, abortSignal: signal })),
    );
    if (!result.ran) throw new ToolNotRunError(result.refusal);
    return result.value as unknown;
  };
  if (!isGenerator) return copyWith(tool, { execute: (input: unknown, call: any) => gated(input, call, lastValue) });
  return copyWith(tool, {
    async *execute(input: unknown, call: any) {
      const results = new Channel<unknown>();
      const done = gated(input, call, async (iterable: AsyncIterable<unknown>) => {
        for await (const value of iterable) results.push(value);
      }).then(
        () => results.close(),
        (error: unknown) => results.fail(error),
      );
      yield* results;
      await done;
    },
  });
}

/** A function may also return a generator. Its last value is the result. */
async function lastValue(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) return result;
  let last: unknown;
  for await (const value of result as AsyncIterable<unknown>) last = value;
  return last;
}

/** Values that one side pushes and the other side awaits. */
class Channel<T> implements AsyncIterable<T> {
  readonly #values: T[] = [];
  #end: { error?: unknown } | undefined;
  #wake: () => void = () => {};

  push(value: T): void {
    this.#values.push(value);
    this.#wake();
  }

  close(): void {
    this.#end = {};
    this.#wake();
  }

  fail(error: unknown): void {
    this.#end = { error };
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      if (this.#values.length > 0) yield this.#values.shift() as T;
      else if (this.#end !== undefined) {
        if ("error" in this.#end) throw this.#end.error;
        return;
      } else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
