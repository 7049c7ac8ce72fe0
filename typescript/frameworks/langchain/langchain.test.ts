import assert from "node:assert/strict";
import { test } from "node:test";

import { AIMessage } from "@langchain/core/messages";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, createMiddleware, tool } from "langchain";
import { z } from "zod";

import { gateTools, narrate, narration } from "../../build/src/adapters/langchain.js";
import { hub as connectHub } from "../../build/src/index.js";
import { testAdapter, World, type RunOptions } from "../../build/test/support/adapter-suite.js";
import { decide, Listener, Recording, TestHub } from "../../build/test/support/hub.js";

const schema = z.object({ what: z.string() });

function tools({ session, world, policies }: Pick<RunOptions, "session" | "world" | "policies">) {
  return gateTools(
    session,
    [
      tool(async ({ what }) => world.look(what), { name: "look", description: "Looks.", schema }),
      tool(async ({ what }) => world.wipe(what), { name: "wipe", description: "Wipes.", schema }),
    ],
    policies,
  );
}

function agent(options: RunOptions, streaming: boolean) {
  const { model, rewrite } = options;
  const change = createMiddleware({
    name: "Change",
    wrapToolCall: (request, handler) =>
      handler(rewrite === undefined ? request : { ...request, toolCall: { ...request.toolCall, args: rewrite(request.toolCall.args) } }),
  });
  const chat = new ChatOpenAI({ model: "fake", apiKey: "x", configuration: { baseURL: `${model.url}/v1` }, useResponsesApi: false, maxRetries: 0, streaming });
  return createAgent({ model: chat, tools: tools(options), middleware: [change] });
}

testAdapter({
  name: "LangChain, streamed",
  canRewrite: true,
  async run(options) {
    const { session, prompt, signal } = options;
    const stream = agent(options, true).stream(
      { messages: [{ role: "user", content: prompt }] },
      { streamMode: "messages", ...(signal === undefined ? {} : { signal }) },
    );
    for await (const part of narrate(session, stream)) void part;
  },
});

testAdapter({
  name: "LangChain, with callbacks",
  canRewrite: true,
  async run(options) {
    const { session, prompt, signal } = options;
    await agent(options, false).invoke(
      { messages: [{ role: "user", content: prompt }] },
      { callbacks: [narration(session)], ...(signal === undefined ? {} : { signal }) },
    );
  },
});

test("a gated tool in a bare ToolNode asks", async (t) => {
  const server = await TestHub.start();
  t.after(() => server.stop());
  const listener = await Listener.connect(t, server.url, decide("reject"));
  const recording = await Recording.start(t, server.url);
  const hub = connectHub({ url: server.url });
  t.after(() => hub.close());
  const world = new World();
  const session = await hub.session("Wiping");
  const node = new ToolNode(tools({ session, world, policies: { wipe: { irreversible: true } } }));
  const calls = [{ id: "1", name: "wipe", args: { what: "photos" }, type: "tool_call" as const }];
  const { messages } = (await node.invoke({ messages: [new AIMessage({ content: "", tool_calls: calls })] })) as { messages: { content: string }[] };
  assert.match(messages[0]?.content ?? "", /The person refused/);
  assert.deepEqual(world.wiped, []);
  await session.cancel("Nothing was wiped.");
  assert.deepEqual(listener.of("tool.invoked"), []);
  const { code, output } = await recording.validate();
  assert.equal(code, 0, output);
});
