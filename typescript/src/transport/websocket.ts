/**
 * The transport over one WebSocket with JSON-RPC.
 *
 * After a lost connection it reconnects, follows its sessions again and repeats unanswered calls. Each call has an idempotency key, so
 * the hub executes it once.
 */

import type { Reply, Resolved, Results, Stopped } from "../agent-api.generated.js";
import { HubUnreachableError, MalformedResponseError, SaysoError, type StopReason } from "../errors.js";
import { orAborted, sleep, unref } from "../runtime.js";
import { checkNotification, checkResult } from "./check.js";
import type { TextSocket } from "./socket.js";
import { backoffMs, newKey, toError, toStopReason, type CallMethod, type Params, type Transport } from "./transport.js";

/** The hub sends something at least this often if it is asked, so a longer silence means that the connection is lost. */
const SILENCE_MS = 60_000;
const HEARTBEAT_MS = 20_000;
/** A connection without sessions and calls is closed after this time, so that the process can end. */
const IDLE_MS = 100;
/** How many outcomes are kept that arrived before somebody waited for them. */
const MAX_EARLY_OUTCOMES = 256;
/** How long to wait for the reason of a stop after the hub said that a session has ended. */
const STOP_REASON_MS = 100;

interface PendingCall {
  readonly method: keyof Results;
  readonly text: string;
  readonly resolve: (result: Results[keyof Results]) => void;
  readonly reject: (error: Error) => void;
}

interface Waiter {
  readonly resolve: (outcome: Reply) => void;
  readonly reject: (error: Error) => void;
}

/** The HTTP status that corresponds to a JSON-RPC error code. */
const STATUS: Record<number, number> = { [-32003]: 403, [-32004]: 404, [-32009]: 409, [-32022]: 422, [-32029]: 429, [-32053]: 503, [-32603]: 500 };

export class WebSocketTransport implements Transport {
  private socket: TextSocket | undefined;
  private connecting: Promise<void> | undefined;
  private nextId = 1;
  private readonly pending = new Map<number, PendingCall>();
  private readonly waiters = new Map<string, Waiter>();
  private readonly early = new Map<string, Reply>();
  private readonly watches = new Map<string, (reason: StopReason) => void>();
  private lastMessageAt = 0;
  private heartbeat: ReturnType<typeof setInterval> | undefined;
  private idleTimer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;

  /** `open` makes one attempt to connect. */
  constructor(
    private readonly open: () => Promise<TextSocket>,
    private readonly connectTimeoutMs: number,
    first?: TextSocket,
  ) {
    if (first !== undefined) this.use(first);
  }

  call<M extends CallMethod>(method: M, params: Params, signal?: AbortSignal): Promise<Results[M]> {
    // Publishing a manifest twice has no other effect, and takes no key.
    const key = method === "agent.manifest" ? {} : { idempotency_key: newKey() };
    return orAborted(this.send(method, { ...params, ...key }), signal);
  }

  waitForReply(_sessionId: string, replyToken: string, signal?: AbortSignal): Promise<Reply> {
    const early = this.early.get(replyToken);
    if (early !== undefined) {
      this.early.delete(replyToken);
      return Promise.resolve(early);
    }
    const outcome = new Promise<Reply>((resolve, reject) => this.waiters.set(replyToken, { resolve, reject }));
    // Without a connection nobody would deliver the answer.
    if (this.socket === undefined && !this.isClosed) void this.reconnect();
    return orAborted(outcome, signal).finally(() => this.waiters.delete(replyToken));
  }

  async withdraw(sessionId: string, replyToken: string): Promise<void> {
    await this.send("session.withdraw", { session_id: sessionId, reply_token: replyToken });
  }

  watch(sessionId: string, onStopped: (reason: StopReason) => void): () => void {
    this.watches.set(sessionId, onStopped);
    return () => {
      this.watches.delete(sessionId);
      this.closeIfIdle();
    };
  }

  close(): void {
    this.isClosed = true;
    this.fail(new HubUnreachableError("the client was closed"));
    this.drop();
  }

  private send<M extends keyof Results>(method: M, params: Params): Promise<Results[M]> {
    if (this.isClosed) return Promise.reject(new HubUnreachableError("the client was closed"));
    const id = this.nextId++;
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    return new Promise((resolve, reject) => {
      this.pending.set(id, { method, text, resolve: resolve as PendingCall["resolve"], reject });
      if (this.socket !== undefined) this.socket.send(text);
      else void this.reconnect();
    });
  }

  /** Connects if there is no connection. Calls that are pending are then sent. */
  private reconnect(): Promise<void> {
    this.connecting ??= this.connectWithRetry().finally(() => (this.connecting = undefined));
    return this.connecting;
  }

  private async connectWithRetry(): Promise<void> {
    const deadline = Date.now() + this.connectTimeoutMs;
    for (let attempt = 0; ; attempt += 1) {
      try {
        const socket = await this.open();
        if (this.isClosed) return socket.close();
        this.use(socket);
        for (const sessionId of this.watches.keys()) void this.follow(sessionId);
        for (const { text } of this.pending.values()) socket.send(text);
        return;
      } catch (error) {
        const isFinal = !(error instanceof HubUnreachableError) || Date.now() + backoffMs(attempt) >= deadline || this.isClosed;
        if (isFinal) return this.fail(error instanceof Error ? error : new HubUnreachableError(String(error)));
        await sleep(backoffMs(attempt));
      }
    }
  }

  private use(socket: TextSocket): void {
    this.socket = socket;
    this.lastMessageAt = Date.now();
    socket.onMessage = (text) => this.receive(text);
    socket.onClose = () => this.lose(socket);
    this.heartbeat ??= setInterval(() => this.beat(), HEARTBEAT_MS);
    unref(this.heartbeat);
  }

  private lose(socket: TextSocket): void {
    if (this.socket !== socket) return;
    this.socket = undefined;
    if (this.pending.size > 0 || this.waiters.size > 0 || this.watches.size > 0) void this.reconnect();
    else this.drop();
  }

  /** Asks for a sign of life, and reconnects if there was none for too long. */
  private beat(): void {
    const socket = this.socket;
    if (socket === undefined) return;
    if (Date.now() - this.lastMessageAt > SILENCE_MS) {
      socket.close();
      this.lose(socket);
      return;
    }
    const sessionId = this.watches.keys().next().value;
    if (sessionId !== undefined) void this.follow(sessionId);
  }

  private async follow(sessionId: string): Promise<void> {
    const id = this.nextId++;
    const method = "session.follow";
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params: { session_id: sessionId } });
    const followed = new Promise((resolve, reject) => this.pending.set(id, { method, text, resolve, reject }));
    this.socket?.send(text);
    try {
      await followed;
    } catch {
      // The hub sends the reason as a notification. If it does not, the session has ended anyway.
      await sleep(STOP_REASON_MS);
      this.stop(sessionId, "other");
    }
  }

  private receive(text: string): void {
    this.lastMessageAt = Date.now();
    try {
      const message = parseJson(text);
      for (const one of Array.isArray(message) ? message : [message]) this.handle(one);
    } catch (error) {
      // Whatever is undecided counts as no. The next call connects again.
      this.reject(error as MalformedResponseError);
      this.drop();
    }
    this.closeIfIdle();
  }

  private handle(message: unknown): void {
    if (typeof message !== "object" || message === null) throw new MalformedResponseError("the hub sent something that is not JSON-RPC");
    const { id, method, params, result, error } = message as Record<string, unknown>;
    if (typeof method === "string") this.notify(method, params);
    else if (typeof id === "number") this.respond(id, result, error);
  }

  private respond(id: number, result: unknown, error: unknown): void {
    const call = this.pending.get(id);
    if (call === undefined) return;
    this.pending.delete(id);
    if (typeof error === "object" && error !== null) return call.reject(toCallError(error));
    try {
      call.resolve(checkResult(call.method, result));
    } catch (malformed) {
      call.reject(malformed as MalformedResponseError);
    }
  }

  private notify(method: string, params: unknown): void {
    const checked = checkNotification(method, params);
    if (method === "session.resolved") {
      const resolved = checked as Resolved;
      const waiter = this.waiters.get(resolved.reply_token);
      if (waiter !== undefined) waiter.resolve(resolved);
      else this.keepEarly(resolved.reply_token, resolved);
    } else if (method === "session.stopped") {
      const { session_id: sessionId, reason } = checked as Stopped;
      this.stop(sessionId, toStopReason(reason));
    }
  }

  /** Keeps the first answer to a question that nobody waits for yet. */
  private keepEarly(token: string, outcome: Reply): void {
    if (this.early.has(token)) return;
    if (this.early.size >= MAX_EARLY_OUTCOMES) this.early.delete(this.early.keys().next().value as string);
    this.early.set(token, outcome);
  }

  private stop(sessionId: string, reason: StopReason): void {
    const onStopped = this.watches.get(sessionId);
    this.watches.delete(sessionId);
    onStopped?.(reason);
  }

  /** Fails everything that waits. What is undecided counts as no. */
  private fail(error: Error): void {
    this.reject(error);
    for (const sessionId of [...this.watches.keys()]) this.stop(sessionId, "unreachable");
  }

  /** Fails the calls and questions that wait. */
  private reject(error: Error): void {
    const waiting = [...this.pending.values(), ...this.waiters.values()];
    this.pending.clear();
    this.waiters.clear();
    for (const { reject } of waiting) reject(error);
  }

  private closeIfIdle(): void {
    if (this.pending.size + this.waiters.size + this.watches.size > 0 || this.idleTimer !== undefined) return;
    this.idleTimer = setTimeout(() => {
      this.idleTimer = undefined;
      if (this.pending.size + this.waiters.size + this.watches.size === 0 && this.connecting === undefined) this.drop();
    }, IDLE_MS);
  }

  private drop(): void {
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MalformedResponseError("the hub sent something that is not JSON", { cause: error });
  }
}

/** Returns the error for a JSON-RPC error of the hub. */
function toCallError(error: object): SaysoError {
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const problem = typeof data === "object" && data !== null ? data : { title: message };
  const { status } = problem as { status?: unknown };
  return toError(typeof status === "number" ? status : (STATUS[Number(code)] ?? 400), problem);
}
