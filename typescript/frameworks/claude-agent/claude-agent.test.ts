import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

import { createSdkMcpServer, query, tool, type HookCallbackMatcher, type Options } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { GATED_INSIDE, gateOptions, gateTools, narrate } from "../../build/src/adapters/claude-agent.js";
import { testAdapter, type RunOptions } from "../../build/test/support/adapter-suite.js";

const home = mkdtempSync(join(tmpdir(), "sayso-ts-claude-"));
after(() => rmSync(home, { recursive: true, force: true }));

/** Returns the policies under the names that the functions have, or that Claude Code gives them. */
const rename = (policies: RunOptions["policies"], name: (tool: string) => string) =>
  Object.fromEntries(Object.entries(policies).map(([tool, policy]) => [name(tool), policy]));
const short = (tool: string) => tool.replace("mcp__disk__", "");

async function run({ session, model, prompt, world, policies, signal, rewrite }: RunOptions, gateInside: boolean): Promise<void> {
  const shape = { what: z.string() };
  const result = (text: string) => ({ content: [{ type: "text" as const, text }] });
  const look = tool("look", "Looks.", shape, async ({ what }) => result(world.look(what)));
  const wipe = tool("wipe", "Wipes.", shape, async ({ what }) => result(world.wipe(what)));
  const own = gateInside ? [...gateTools(session, [look], rename(policies, short)), ...gateTools(session, [wipe], rename(policies, short))] : [look, wipe];
  const aborter = new AbortController();
  signal?.addEventListener("abort", () => aborter.abort(signal.reason));
  const options: Options = {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_AUTH_TOKEN: "x", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" },
    settingSources: [],
    includePartialMessages: true,
    abortController: aborter,
    allowedTools: ["mcp__disk__look", "mcp__disk__wipe"],
    mcpServers: { disk: createSdkMcpServer({ name: "disk", version: "1", tools: own }) },
  };
  // The hook that returns an input last wins, so the author's hook waits for the gate.
  let isDecided: () => void = () => {};
  const decided = new Promise<void>((resolve) => (isDecided = resolve));
  if (rewrite !== undefined) {
    options.hooks = {
      PreToolUse: [
        {
          hooks: [
            async (input) => {
              await decided;
              await new Promise(setImmediate);
              return {
                hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow", updatedInput: rewrite((input as { tool_input: Record<string, unknown> }).tool_input) },
              };
            },
          ],
        },
      ],
    };
  }
  const outside = gateInside ? { mcp__disk__look: GATED_INSIDE, mcp__disk__wipe: GATED_INSIDE } : policies;
  const gated = gateOptions(session, outside, options);
  const matcher = (gated.hooks.PreToolUse as HookCallbackMatcher[]).at(-1) as HookCallbackMatcher;
  matcher.hooks = matcher.hooks.map((hook) => (...call) => hook(...call).finally(isDecided));
  for await (const message of narrate(session, query({ prompt, options: gated }))) void message;
}

const toolName = (name: string) => `mcp__disk__${name}`;
testAdapter({ name: "Claude Agent SDK, with the hook", toolName, canRewrite: true, run: (options) => run(options, false) });
testAdapter({ name: "Claude Agent SDK, with the gate in the function", toolName, canRewrite: true, run: (options) => run(options, true) });
