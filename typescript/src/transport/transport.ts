/** How the client talks to the hub's agent API. `docs/agent-api.md` describes the requests. */

import type { Method, Reply, Results } from "../agent-api.generated.js";
import {
  AccessDeniedError,
  HubFailedError,
  InvalidInputError,
  LimitReachedError,
  RuleViolationError,
  SessionStoppedError,
  type RuleViolation,
  type SaysoError,
  type StopReason,
} from "../errors.js";

export type Params = Record<string, unknown>;

/** The methods that are sent with {@link Transport.call}. The others have methods of their own. */
export type CallMethod = Exclude<Method, "session.withdraw">;

/** A connection to a hub. All methods reject with a {@link SaysoError}, or with the signal's reason. */
export interface Transport {
  /** Sends a request. It is repeated after a lost connection; the idempotency key makes the hub execute it once. */
  call<M extends CallMethod>(method: M, params: Params, signal?: AbortSignal): Promise<Results[M]>;
  /** Waits until a question or a hand-off is resolved. */
  waitForReply(sessionId: string, replyToken: string, signal?: AbortSignal): Promise<Reply>;
  /** Withdraws a question. Does nothing if it is already resolved. */
  withdraw(sessionId: string, replyToken: string): Promise<void>;
  /** Calls `onStopped` once when somebody other than the agent ends the session. Returns a function that ends the watch. */
  watch(sessionId: string, onStopped: (reason: StopReason) => void): () => void;
  close(): void;
}

/** Returns the error for a problem document of the hub. */
export function toError(status: number, problem: unknown): SaysoError {
  const { title, findings } = (typeof problem === "object" && problem !== null ? problem : {}) as { title?: unknown; findings?: unknown };
  const text = typeof title === "string" ? title : `the hub answered with status ${status}`;
  switch (status) {
    case 401:
    case 403:
      return new AccessDeniedError(text);
    case 404:
      return new SessionStoppedError("other", { cause: new Error(text) });
    case 413:
    case 429:
      return new LimitReachedError(text);
    case 422:
      return new RuleViolationError(text, Array.isArray(findings) ? findings.filter(isViolation) : []);
    default:
      return status >= 500 ? new HubFailedError(text) : new InvalidInputError(text);
  }
}

function isViolation(finding: unknown): finding is RuleViolation {
  const { rule, pointer, message } = (typeof finding === "object" && finding !== null ? finding : {}) as Record<string, unknown>;
  return typeof rule === "string" && typeof pointer === "string" && typeof message === "string";
}

export function toStopReason(reason: unknown): StopReason {
  return reason === "user" ? "person" : reason === "gone" ? "lease_expired" : "other";
}

/** Returns a new idempotency key. */
export function newKey(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The delays between attempts to reach the hub: 50 ms, doubled up to 2 s. */
export function backoffMs(attempt: number): number {
  return Math.min(50 * 2 ** attempt, 2000);
}
