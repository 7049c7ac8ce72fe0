/**
 * The transport over plain HTTP, for networks that block WebSockets and for browsers with a token.
 *
 * Answers arrive by long polls. A session is kept open, and its end is noticed, by a request every few seconds.
 */

import type { Agent, IncomingMessage, RequestOptions } from "node:http";

import { checkSocketOwner, type HubAddress } from "../location.js";
import { HubUnreachableError, MalformedResponseError, SaysoError, SessionStoppedError, type StopReason } from "../errors.js";
import { builtin, sleep, unref } from "../runtime.js";
import { ROUTES, type Reply, type Results } from "../agent-api.generated.js";
import { checkReply, checkResult } from "./check.js";
import { backoffMs, newKey, toError, type CallMethod, type Params, type Transport } from "./transport.js";

/** How long one long poll waits. The hub allows 300 seconds; proxies often allow less than 60. */
const POLL_SECONDS = 25;
/** How often an open session is checked. The hub ends a session after 300 seconds of silence. */
const CHECK_MS = 10_000;

/** The largest response that is accepted from the hub. */
const MAX_RESPONSE_CHARS = 64 * 1024 * 1024;

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

export interface HttpResponse {
  readonly status: number;
  readonly text: string;
}

/** Makes one request. Rejects if there is no response. */
export type HttpClient = (request: HttpRequest, signal?: AbortSignal) => Promise<HttpResponse>;

/** Returns a client for an address. */
export async function httpClient(address: HubAddress, token: string | undefined, fetchFunction: typeof fetch): Promise<HttpClient> {
  const authorization: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  if (address.kind === "tcp") {
    return async ({ method, path, headers, body }, signal) => {
      const init: RequestInit = { method, headers: { ...authorization, ...headers }, redirect: "error" };
      if (body !== undefined) init.body = body;
      if (signal !== undefined) init.signal = signal;
      const response = await fetchFunction(new URL(path, address.url), init);
      return { status: response.status, text: await readText(response) };
    };
  }
  const http = await builtin<typeof import("node:http")>("node:http");
  const agent: Agent = new http.Agent({ keepAlive: true });
  return async ({ method, path, headers, body }, signal) => {
    await checkSocketOwner(address.path);
    return new Promise((resolve, reject) => {
      const options: RequestOptions = { socketPath: address.path, host: "localhost", method, path, agent, headers: { ...authorization, ...headers } };
      if (signal !== undefined) options.signal = signal;
      const request = http.request(options, (response: IncomingMessage) => {
        const parts: string[] = [];
        let size = 0;
        response.setEncoding("utf8");
        response.on("data", (part: string) => {
          size += part.length;
          if (size > MAX_RESPONSE_CHARS) request.destroy(tooLarge());
          else parts.push(part);
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text: parts.join("") }));
        response.on("error", reject);
      });
      request.on("error", reject);
      request.end(body);
    });
  };
}

/** Reads a body up to the limit. */
async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for (const reader = response.body?.getReader(); reader !== undefined; ) {
    const { done, value } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    if (done) break;
    if (text.length > MAX_RESPONSE_CHARS) {
      await reader.cancel().catch(() => {});
      throw tooLarge();
    }
  }
  return text;
}

function tooLarge(): MalformedResponseError {
  return new MalformedResponseError("the hub's response is too large");
}

export class HttpTransport implements Transport {
  private readonly watches = new Map<string, (reason: StopReason) => void>();
  private checkTimer: ReturnType<typeof setInterval> | undefined;
  private isClosed = false;
  /** The requests in flight. Each has a controller of its own, because `fetch` does not release long-lived signals quickly. */
  private readonly inFlight = new Set<AbortController>();

  constructor(
    private readonly http: HttpClient,
    private readonly connectTimeoutMs: number,
    private readonly checkMs: number = CHECK_MS,
  ) {}

  async call<M extends CallMethod>(method: M, params: Params, signal?: AbortSignal): Promise<Results[M]> {
    const request = toHttp(method, params);
    const headers = { "Idempotency-Key": newKey(), ...request.headers };
    return checkResult(method, await this.request({ ...request, headers }, signal));
  }

  async waitForReply(sessionId: string, replyToken: string, signal?: AbortSignal): Promise<Reply> {
    const path = `${sessionPath(sessionId)}/replies/${encodeURIComponent(replyToken)}?wait=${POLL_SECONDS}`;
    for (;;) {
      const outcome = checkReply(await this.request({ method: "GET", path }, signal));
      if (outcome.status !== "pending") return outcome;
      signal?.throwIfAborted();
    }
  }

  async withdraw(sessionId: string, replyToken: string): Promise<void> {
    await this.request({ method: "DELETE", path: `${sessionPath(sessionId)}/replies/${encodeURIComponent(replyToken)}` });
  }

  watch(sessionId: string, onStopped: (reason: StopReason) => void): () => void {
    this.watches.set(sessionId, onStopped);
    this.checkTimer ??= setInterval(() => void this.check(), this.checkMs);
    unref(this.checkTimer);
    return () => {
      this.watches.delete(sessionId);
      if (this.watches.size === 0) this.stopChecking();
    };
  }

  close(): void {
    this.isClosed = true;
    for (const controller of this.inFlight) controller.abort(closedError());
    this.stopChecking();
  }

  private stopChecking(): void {
    clearInterval(this.checkTimer);
    this.checkTimer = undefined;
  }

  /** Renews the lease of each session, and notices its end. */
  private async check(): Promise<void> {
    for (const [sessionId, onStopped] of this.watches) {
      try {
        // An event without a state has no effect, but the hub counts it as a sign of life.
        await this.request({ method: "POST", path: `${sessionPath(sessionId)}/events`, body: '{"type":"aaep:agent.state.changed"}' });
      } catch (error) {
        const reason = error instanceof SessionStoppedError ? "other" : error instanceof HubUnreachableError ? "unreachable" : undefined;
        if (reason !== undefined && this.watches.delete(sessionId)) onStopped(reason);
      }
    }
    if (this.watches.size === 0) this.stopChecking();
  }

  /** Makes a request, and repeats it while there is no response, until the connect timeout is over. */
  private async request(request: HttpRequest, signal?: AbortSignal): Promise<unknown> {
    if (this.isClosed) throw closedError();
    signal?.throwIfAborted();
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.inFlight.add(controller);
    try {
      return readResponse(await this.repeat(request, controller.signal));
    } finally {
      this.inFlight.delete(controller);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  private async repeat(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    let deadline = 0;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.http(request, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SaysoError) throw error;
        deadline ||= Date.now() + this.connectTimeoutMs;
        if (Date.now() + backoffMs(attempt) >= deadline) throw unreachable(error);
        await sleep(backoffMs(attempt), signal);
      }
    }
  }
}

function closedError(): HubUnreachableError {
  return new HubUnreachableError("the client was closed");
}

/** Returns the error for a request without a response. */
export function unreachable(error: unknown): HubUnreachableError {
  // `fetch` hides the reason in `cause`.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = (cause as { code?: unknown } | undefined)?.code;
  const text = cause instanceof Error ? cause.message : String(cause);
  return new HubUnreachableError(text || String(code ?? "no response"), { cause: error });
}

export function readResponse({ status, text }: HttpResponse): unknown {
  let body: unknown;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    throw new HubUnreachableError(`the server at this address is not a hub (status ${status})`);
  }
  if (status < 200 || status >= 300) throw toError(status, body);
  return body;
}

function sessionPath(sessionId: string): string {
  return `/agent/v1/sessions/${encodeURIComponent(sessionId)}`;
}

function toHttp(method: CallMethod, params: Params): HttpRequest {
  const { session_id: sessionId, ...rest } = params;
  const [verb, route] = ROUTES[method];
  const path = route.replace("{session_id}", encodeURIComponent(String(sessionId)));
  const json = (body: unknown): HttpRequest => ({ method: verb, path, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  switch (method) {
    case "session.event": {
      const lines = (rest["events"] as unknown[]).map((event) => JSON.stringify(event));
      return { method: verb, path, headers: { "Content-Type": "application/x-ndjson" }, body: lines.join("\n") };
    }
    case "session.output": {
      const { text, ...query } = rest;
      const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
      return { method: verb, path: `${path}?${search}`, headers: { "Content-Type": "text/plain; charset=utf-8" }, body: String(text) };
    }
    case "agent.manifest": {
      const { manifest } = rest;
      return typeof manifest === "string" ? { method: verb, path, headers: { "Content-Type": "application/jose" }, body: manifest } : json(manifest);
    }
    default:
      return json(rest);
  }
}
