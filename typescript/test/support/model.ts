/**
 * A model that follows a script in its prompt: `SCRIPT:[…]`, a list of steps. A step is a text and the calls that follow it.
 *
 * It speaks the chat completions API and the Anthropic Messages API, with and without streaming. It keeps no state: the number of
 * the model's messages in the request selects the step.
 */

import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Step {
  text: string;
  calls?: { tool: string; input: Record<string, unknown> }[];
  /** The text of an error. The request is then refused. */
  error?: string;
}

export function prompt(...steps: Step[]): string {
  return `SCRIPT:${JSON.stringify(steps)}`;
}

export class FakeModel {
  /** Everything that was sent to the model, oldest first. */
  readonly requests: string[] = [];

  private constructor(
    readonly url: string,
    private readonly server: Server,
  ) {}

  static async start(): Promise<FakeModel> {
    let model: FakeModel | undefined;
    const server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8");
      request.on("data", (text: string) => (body += text));
      request.on("end", () => {
        model?.requests.push(body);
        try {
          answer(request.url ?? "", JSON.parse(body || "{}") as Request, response);
        } catch (error) {
          response.writeHead(500).end(String(error));
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    model = new FakeModel(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, server);
    return model;
  }

  /** The last request, as text: what the model was told about its calls. */
  get lastRequest(): string {
    return this.requests.at(-1) ?? "";
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

interface Request {
  stream?: boolean;
  tools?: unknown[];
  messages?: { role: string; content: unknown }[];
}

function answer(path: string, request: Request, response: ServerResponse): void {
  const messages = request.messages ?? [];
  const start = messages.findIndex(({ role, content }) => role === "user" && JSON.stringify(content ?? "").includes("SCRIPT:"));
  const step = start < 0 ? { text: "ok" } : script(messages[start]?.content)[messages.slice(start).filter(({ role }) => role === "assistant").length];
  const { text, calls = [], error }: Step = step ?? { text: "Done." };
  const index = messages.length;
  if (error !== undefined) {
    // The members that the clients of OpenAI and Anthropic read.
    const body = { type: "error", error: { type: "invalid_request_error", code: "invalid", param: null, message: error } };
    response.writeHead(400, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    return;
  }
  if (path.includes("/chat/completions")) {
    if (request.stream === true) streamCompletion(response, text, calls, index);
    else sendCompletion(response, text, calls, index);
  } else if (path.includes("/messages/count_tokens")) {
    response.writeHead(200, { "Content-Type": "application/json" }).end('{"input_tokens":1}');
  } else if (path.includes("/messages")) {
    streamMessage(response, text, calls, index, request.stream === true);
  } else {
    response.writeHead(404).end("{}");
  }
}

/** Finds the script in a message, whatever its form. */
function script(content: unknown): Step[] {
  const texts: string[] = [];
  const visit = (value: unknown) => {
    if (typeof value === "string") texts.push(value);
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(visit);
  };
  visit(content);
  const text = texts.find((one) => one.includes("SCRIPT:")) ?? "";
  return JSON.parse(text.slice(text.indexOf("SCRIPT:") + 7)) as Step[];
}

const words = (text: string) => text.match(/\S+\s*/g) ?? [];

type Calls = NonNullable<Step["calls"]>;

const toolCalls = (calls: Calls, index: number) =>
  calls.map(({ tool, input }, at) => ({
    index: at,
    id: `call_${index}x${at}`,
    type: "function",
    function: { name: tool, arguments: JSON.stringify(input) },
  }));

function sendCompletion(response: ServerResponse, text: string, calls: Calls, index: number): void {
  const message = { role: "assistant", content: text, ...(calls.length > 0 ? { tool_calls: toolCalls(calls, index) } : {}) };
  const choice = { index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" };
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ id: `c${index}`, object: "chat.completion", created: 1, model: "fake", choices: [choice], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }));
}

function streamCompletion(response: ServerResponse, text: string, calls: Calls, index: number): void {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (delta: unknown, finish: string | null = null) => {
    const chunk = { id: `c${index}`, object: "chat.completion.chunk", created: 1, model: "fake", choices: [{ index: 0, delta, finish_reason: finish }] };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ role: "assistant", content: "" });
  for (const word of words(text)) send({ content: word });
  for (const call of toolCalls(calls, index)) send({ tool_calls: [call] });
  send({}, calls.length > 0 ? "tool_calls" : "stop");
  response.write(`data: ${JSON.stringify({ id: `c${index}`, object: "chat.completion.chunk", created: 1, model: "fake", choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })}\n\n`);
  response.end("data: [DONE]\n\n");
}

function streamMessage(response: ServerResponse, text: string, calls: Calls, index: number, isStream: boolean): void {
  const blocks = calls.map(({ tool, input }, at) => ({ type: "tool_use", id: `toolu_${index}x${at}`, name: tool, input }));
  const stop = calls.length > 0 ? "tool_use" : "end_turn";
  const message = { id: `msg_${index}`, type: "message", role: "assistant", model: "fake", stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
  if (!isStream) {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ ...message, content: [{ type: "text", text }, ...blocks], stop_reason: stop }));
    return;
  }
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (event: { type: string; [member: string]: unknown }) => response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  send({ type: "message_start", message: { ...message, content: [], stop_reason: null } });
  send({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  for (const word of words(text)) send({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: word } });
  send({ type: "content_block_stop", index: 0 });
  blocks.forEach((block, at) => {
    send({ type: "content_block_start", index: at + 1, content_block: { ...block, input: {} } });
    send({ type: "content_block_delta", index: at + 1, delta: { type: "input_json_delta", partial_json: JSON.stringify(block.input) } });
    send({ type: "content_block_stop", index: at + 1 });
  });
  send({ type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 1 } });
  send({ type: "message_stop" });
  response.end();
}
