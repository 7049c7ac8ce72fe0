// The connection to the hub: a subscription, its event stream, and the person's replies. It reconnects and resumes automatically.
//
// It reads the stream with `fetch`, because `EventSource` hides keep-alive comments and the reasons for refusals.

import { phrases } from "./phrases.js";
import { parseEvent } from "./question_call.js";
import { SseParser } from "./sse.js";

/** How long the stream may be silent before the page reconnects, in milliseconds. The hub sends a keep-alive every 15 seconds. */
const SILENCE_TIMEOUT_MS = 45000;
/** The delays between attempts to connect, in milliseconds. The last one repeats. */
const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000, 15000, 30000];
/** A catch-up ends when nothing has arrived for this long, in milliseconds, or after `CATCH_UP_MAX_MS`. */
const CAUGHT_UP_IDLE_MS = 400;
const CATCH_UP_MAX_MS = 2000;
/** How long the page handles events before it yields to input, in milliseconds. */
const YIELD_AFTER_MS = 20;

export class HubStream {
  #handlers;
  #capabilities;
  #subscription;
  #lastEventId;
  #failures = 0;
  #wake;
  #abort;
  #hasConnectedBefore = false;

  /**
   * Calls `handlers`: `event`, `message`, `unreadable`, `accepted(capabilities)`, `catchUp(mode)` and `caughtUp()` around a catch-up, and
   * `state(name, error)`, where the name is `connecting`, `connected`, `lost`, `signIn` or `refused`.
   */
  constructor(capabilities, handlers) {
    this.#capabilities = capabilities;
    this.#handlers = handlers;
    addEventListener("online", () => this.#wake?.());
  }

  get subscription() {
    return this.#subscription;
  }

  /** Listens until the page is closed. */
  async run() {
    for (;;) {
      try {
        if (this.#subscription === undefined) await this.#subscribe();
        else await this.#listen();
      } catch (error) {
        if (error instanceof HubRefusal) {
          this.#handlers.state(error.needsSignIn ? "signIn" : "refused", error);
          if (error.needsSignIn || error.isFinal) {
            await new Promise((wake) => (this.#wake = wake));
            this.#failures = 0;
            continue;
          }
        } else {
          this.#handlers.state("lost");
        }
        const delay = RETRY_DELAYS_MS[Math.min(this.#failures, RETRY_DELAYS_MS.length - 1)];
        this.#failures += 1;
        await new Promise((wake) => {
          this.#wake = wake;
          setTimeout(wake, delay * (0.75 + Math.random() / 2));
        });
      }
    }
  }

  /** Ends the current wait and tries to connect immediately. */
  wake() {
    this.#wake?.();
  }

  /** Sends a message to the hub and returns the hub's response. Throws if the message could not be sent. */
  async send(message) {
    const body = JSON.stringify({ ...message, subscription_id: this.#subscription });
    const request = fetch("/aaep/v1/replies", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const response = await request.catch(() => {
      throw new Error(phrases.unreachable);
    });
    if (response.status === 401) throw new HubRefusal(phrases.signedOut, { needsSignIn: true });
    if (!response.ok) throw await readError(response);
    return response.status === 200 ? response.json() : undefined;
  }

  /** Changes the capabilities of the subscription. */
  async renegotiate(capabilities) {
    this.#capabilities = { ...this.#capabilities, ...capabilities };
    if (this.#subscription === undefined) return undefined;
    return this.send({ type: "subscription.renegotiate", capabilities });
  }

  async #subscribe() {
    this.#handlers.state("connecting");
    const body = JSON.stringify({
      type: "subscription.request",
      aaep_version: "1.0.0",
      subscriber_id: "sayso-listening-page",
      subscriber_name: "The listening page",
      capabilities: this.#capabilities,
    });
    const headers = { "Content-Type": "application/json" };
    const response = await fetch("/aaep/v1/subscriptions", { method: "POST", headers, body });
    if (response.status === 401) throw new HubRefusal(phrases.signInFirst, { needsSignIn: true });
    if (response.status === 403) throw toRefusal(await readError(response), { isFinal: true });
    if (!response.ok) throw toRefusal(await readError(response), {});
    const accepted = await response.json();
    this.#subscription = accepted.subscription_id;
    this.#lastEventId = undefined;
    this.#handlers.accepted(accepted.honored_capabilities ?? {});
  }

  async #listen() {
    const query = new URLSearchParams({ subscription_id: this.#subscription });
    if (this.#lastEventId !== undefined) query.set("last_event_id", this.#lastEventId);
    this.#abort = new AbortController();
    const headers = { Accept: "text/event-stream" };
    const response = await fetch(`/aaep/v1/events?${query}`, { headers, signal: this.#abort.signal, cache: "no-store" });
    if (response.status === 401) throw new HubRefusal(phrases.signInFirst, { needsSignIn: true });
    if (response.status === 429 || response.status >= 500) throw new Error("the hub is not available");
    if (!response.ok) {
      // The hub no longer knows this subscription. A new one starts with a snapshot of the current state.
      this.#subscription = undefined;
      return;
    }
    const mode = this.#lastEventId !== undefined ? "resumed" : this.#hasConnectedBefore ? "snapshot" : "first";
    this.#hasConnectedBefore = true;
    this.#handlers.state("connected");
    await this.#read(response.body, mode);
    throw new Error("the stream ended");
  }

  async #read(body, mode) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new SseParser();
    this.#handlers.catchUp(mode);
    const endCatchUp = () => this.#handlers.caughtUp();
    const catchUpTimer = setTimeout(endCatchUp, CATCH_UP_MAX_MS);
    let idleTimer = setTimeout(endCatchUp, CAUGHT_UP_IDLE_MS);
    let silenceTimer;
    try {
      for (;;) {
        silenceTimer = setTimeout(() => this.#abort.abort(), SILENCE_TIMEOUT_MS);
        const { value, done } = await reader.read();
        // Handling a burst may take longer than the hub may be silent.
        clearTimeout(silenceTimer);
        if (done) return;
        this.#failures = 0;
        clearTimeout(idleTimer);
        let startedAt = performance.now();
        for (const block of parser.push(value)) {
          // An event may have to wait for the Markdown parser. The events after it wait as well, to keep their order.
          const pending = this.#handleBlock(block);
          if (pending !== undefined) await pending;
          if (performance.now() - startedAt > YIELD_AFTER_MS) {
            await yieldToInput();
            startedAt = performance.now();
          }
        }
        idleTimer = setTimeout(endCatchUp, CAUGHT_UP_IDLE_MS);
      }
    } finally {
      [silenceTimer, idleTimer, catchUpTimer].forEach(clearTimeout);
      endCatchUp();
    }
  }

  /** Handles a block. Returns a promise if the next block must wait. */
  #handleBlock(block) {
    if (block.id !== undefined && block.id !== "") this.#lastEventId = block.id;
    if (block.data === "") return undefined;
    let value;
    try {
      value = parseEvent(block.data);
    } catch {
      this.#handlers.unreadable();
      return undefined;
    }
    if (value === null || typeof value !== "object") return undefined;
    if (block.event === "aaep.event") return this.#handlers.event(value);
    if (value.type === "subscription.close" && value.reason_code !== "producer_shutdown") {
      this.#subscription = undefined;
    }
    this.#handlers.message(value);
    return undefined;
  }
}

/** Lets the browser handle input. It uses no timer, because browsers throttle the timers of hidden pages. */
function yieldToInput() {
  return new Promise((wake) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", wake, { once: true });
    port1.start();
    port2.postMessage(undefined);
  });
}

/** The hub's refusal to let the page listen. */
class HubRefusal extends Error {
  constructor(message, { needsSignIn = false, isFinal = false }) {
    super(message);
    this.needsSignIn = needsSignIn;
    this.isFinal = isFinal;
  }
}

/** Turns an error from `readError` into a refusal. */
function toRefusal(error, options) {
  return Object.assign(new HubRefusal(error.message, options), { fromHub: error.fromHub });
}

/** Reads an error response. The error has `fromHub` if its text comes from the hub. */
export async function readError(response) {
  try {
    const problem = await response.json();
    return Object.assign(new Error(String(problem.title ?? problem.reason_message ?? "")), { fromHub: true });
  } catch {
    return new Error(phrases.hubStatus(response.status));
  }
}
