/**
 * The Claude Agent SDK (`@anthropic-ai/claude-agent-sdk`).
 *
 * ```ts
 * const options = gateOptions(session, { Read: {}, Bash: { irreversible: true, action: "Run {command}." } }, { cwd });
 * for await (const message of narrate(session, query({ prompt, options }))) { … }
 * ```
 *
 * The hook sees every tool, including those of Claude Code itself. Claude Code runs all hooks at the same time, and a slow one can replace
 * the input of an allowed call. So `canUseTool`, which Claude Code calls after all hooks, checks that the input is the one that the
 * person agreed to. For functions of your own (`tool` and `createSdkMcpServer`),
 * {@link gateTools} puts the gate inside the function, which nothing can bypass; declare them as {@link GATED_INSIDE} for the hook.
 */

import type { Session, ToolCall } from "../session.js";
import { needsConsent, type Granted } from "../consent.js";
import { errorText, refusalForModel } from "../errors.js";
import { copyWith, policyFor, runGated, type GateOptions, type Policies } from "./gate.js";
import { narrateStream } from "./narrator.js";

export type { GateOptions, Policies } from "./gate.js";

/** The policy of a tool whose function has its own gate. The hook lets it pass. */
export const GATED_INSIDE = Object.freeze({ ask: true });

/** How long the hook may wait for the person, in seconds. A question without an answer is refused earlier. */
const HOOK_TIMEOUT_SECONDS = 86_400;

/* eslint-disable @typescript-eslint/no-explicit-any */
type Hook = (input: any, toolUseId: string | undefined, options: { signal: AbortSignal }) => Promise<any>;
interface HookMatcher {
  matcher?: string;
  hooks: Hook[];
  timeout?: number;
  onFailure?: "continue" | "block";
}
type CanUseTool = (name: string, input: any, options: { toolUseID?: string; [member: string]: unknown }) => Promise<any>;
type Hooks = { [event: string]: HookMatcher[] | undefined };

/** Returns the options with hooks that gate and report all tools. The policies use the tools' names, such as `Bash` or `mcp__bank__pay`. */
export function gateOptions<T extends object>(session: Session, policies: Policies, options?: T, gate: GateOptions = {}): T & { hooks: any; canUseTool: any } {
  const open = new Map<string, ToolCall>();
  /** The calls that a person allowed and that are not checked yet. */
  const allowed = new Map<string, Granted>();
  const close = async (id: string | undefined, report: (call: ToolCall) => Promise<void>) => {
    const call = id === undefined ? undefined : open.get(id);
    if (call === undefined) return {};
    open.delete(id as string);
    await report(call).catch(() => {});
    return {};
  };
  const before: Hook = async (input, toolUseId, { signal }) => {
    const id = toolUseId ?? (input.tool_use_id as string | undefined);
    try {
      const policy = policyFor(String(input.tool_name), policies, gate);
      if (policy === GATED_INSIDE) return {};
      if (policy === "refuse") return decision("deny", refusalForModel(`${String(input.tool_name)} is not an allowed tool`));
      const call = { tool: String(input.tool_name), arguments: (input.tool_input ?? {}) as unknown, ...(id === undefined ? {} : { toolCallId: id }) };
      if (!needsConsent(policy)) {
        const opened = await session.startCall({ ...call, policy }, { signal });
        if (id !== undefined) open.set(id, opened);
        return {};
      }
      const granted = await session.ask({ ...policy, ...call, signal } as Parameters<Session["ask"]>[0]);
      const input_ = granted.arguments;
      const opened = await session.startCall(granted, { signal });
      if (id !== undefined) open.set(id, opened);
      if (signal.aborted) {
        await close(id, (announced) => announced.fail("The call was cancelled. It was not made."));
        return decision("deny", refusalForModel(signal.reason));
      }
      if (id === undefined) return decision("deny", refusalForModel("the call has no id"));
      allowed.set(id, granted);
      // "ask" lets Claude Code call `canUseTool` with the input that it will use, even for a tool that is always allowed.
      return decision("ask", "The person allowed this call.", input_);
    } catch (error) {
      return decision("deny", refusalForModel(error));
    }
  };
  const after: Hook = (input, id) => close(id ?? input.tool_use_id, (call) => call.succeed());
  const failed: Hook = (input, id) => close(id ?? input.tool_use_id, (call) => call.fail(errorText(input.error ?? input.reason ?? "unknown error")));
  const ownCanUseTool = (options as { canUseTool?: CanUseTool } | undefined)?.canUseTool;
  const canUseTool: CanUseTool = async (name, input, context) => {
    const id = context.toolUseID ?? "";
    const granted = allowed.get(id);
    if (granted === undefined) return ownCanUseTool === undefined ? { behavior: "deny", message: `${name} is not an allowed tool.` } : ownCanUseTool(name, input, context);
    allowed.delete(id);
    try {
      granted.verifyCall(name, input);
      return { behavior: "allow", updatedInput: granted.arguments };
    } catch (error) {
      await close(id, (call) => call.fail("A hook changed the input after the person agreed to another one."));
      return { behavior: "deny", message: refusalForModel(error) };
    }
  };
  const own: Hooks = {
    PreToolUse: [{ hooks: [before], timeout: HOOK_TIMEOUT_SECONDS, onFailure: "block" }],
    PostToolUse: [{ hooks: [after] }],
    PostToolUseFailure: [{ hooks: [failed] }],
    PermissionDenied: [{ hooks: [failed] }],
  };
  const given = ((options as { hooks?: Hooks } | undefined)?.hooks ?? {}) as Hooks;
  const hooks: Hooks = { ...given };
  for (const [event, matchers] of Object.entries(own)) hooks[event] = [...(given[event] ?? []), ...(matchers as HookMatcher[])];
  return { ...(options as T), hooks, canUseTool };
}

interface SdkTool {
  name: string;
  handler: (args: any, extra: any) => Promise<any>;
}

/** Returns definitions of `tool` with a gate around each handler. */
export function gateTools<T extends SdkTool>(session: Session, tools: readonly T[], policies: Policies, options: GateOptions = {}): T[] {
  return tools.map((tool) => {
    const policy = policyFor(tool.name, policies, options);
    const gated = async (args: unknown, extra: { signal?: AbortSignal } | undefined): Promise<unknown> => {
      const result = await runGated(session, tool.name, policy, args, { signal: extra?.signal }, (own, signal) =>
        tool.handler.call(tool, own, { ...extra, signal }),
      );
      return result.ran ? result.value : { content: [{ type: "text", text: result.refusal }], isError: true };
    };
    return copyWith(tool, { handler: gated });
  });
}

/** Passes the messages of a query through, and reports the model's text. With `includePartialMessages`, it is reported while it is written. */
export function narrate<T extends { type: string }>(session: Session, messages: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  let hasStreamed = false;
  return narrateStream(session, messages, (message) => {
    const { event, message: body, is_error, result, subtype } = message as any;
    if (message.type === "stream_event") {
      if (event?.type === "content_block_delta" && event.delta?.type === "text_delta") {
        hasStreamed = true;
        return { text: event.delta.text };
      }
      return event?.type === "content_block_stop" ? { isEnd: true } : undefined;
    }
    if (message.type === "assistant" && !hasStreamed) {
      const texts = ((body?.content ?? []) as { type: string; text?: string }[]).filter(({ type }) => type === "text");
      return { text: texts.map(({ text }) => text).join("\n"), isEnd: true };
    }
    if (message.type === "result" && is_error === true) return { error: result ?? subtype };
    return undefined;
  });
}

function decision(permissionDecision: "ask" | "deny", permissionDecisionReason: string, updatedInput?: unknown) {
  return {
    hookSpecificOutput: {
      hookEventName: "PreToolUse" as const,
      permissionDecision,
      permissionDecisionReason,
      ...(updatedInput === undefined ? {} : { updatedInput }),
    },
  };
}
