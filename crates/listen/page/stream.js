// The way to the hub: a subscription, its stream, and what the person says back. It connects again by itself, and resumes.
//
// The stream is read with `fetch` and not with `EventSource`, which hides signs of life and the reasons of a refusal.

import { phrases } from "./phrases.js";
import { Blocks } from "./sse.js";

/** The hub gives a sign of life every 15 seconds. */
const SILENCE = 45000;
/** Between attempts, from the first to the longest. */
const WAITS = [500, 1000, 2000, 4000, 8000, 15000, 30000];
/** A stream is caught up when nothing came for so long, or after so long at most. */
const CAUGHT_UP = 400;
const CATCHING_UP = 2000;
/** However much comes, after so many milliseconds the page looks whether a key was pressed. */
const AT_ONCE = 20;

export class Stream {
  #ears;
  #capabilities;
  #subscription;
  #last;
  #failures = 0;
  #wake;
  #abort;
  #heardBefore = false;

  /**
   * `ears` is told: `event`, `message`, `catchUp(how)` and `caughtUp()` around what was missed, and `state(name, why)`, where the name is
   * `connecting`, `connected`, `lost`, `signIn`, `refused`.
   */
  constructor(capabilities, ears) {
    this.#capabilities = capabilities;
    this.#ears = ears;
    addEventListener("online", () => this.#wake?.());
  }

  get subscription() {
    return this.#subscription;
  }

  /** Listens for ever. */
  async run() {
    for (;;) {
      try {
        if (this.#subscription === undefined) await this.#subscribe();
        else await this.#listen();
      } catch (error) {
        if (error instanceof Refused) {
          this.#ears.state(error.signIn ? "signIn" : "refused", error);
          if (error.signIn || error.final) {
            await new Promise((wake) => (this.#wake = wake));
            this.#failures = 0;
            continue;
          }
        } else {
          this.#ears.state("lost");
        }
        const wait = WAITS[Math.min(this.#failures, WAITS.length - 1)];
        this.#failures += 1;
        await new Promise((wake) => {
          this.#wake = wake;
          setTimeout(wake, wait * (0.75 + Math.random() / 2));
        });
      }
    }
  }

  /** Tries again now. */
  wake() {
    this.#wake?.();
  }

  /** A message to the hub; what it answers. Whoever sends it is told if it could not be sent. */
  async send(message) {
    const body = JSON.stringify({ ...message, subscription_id: this.#subscription });
    const sent = fetch("/aaep/v1/replies", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const answer = await sent.catch(() => {
      throw new Error(phrases.unreachable);
    });
    if (answer.status === 401) throw new Refused(phrases.signedOut, { signIn: true });
    if (!answer.ok) throw await reason(answer);
    return answer.status === 200 ? answer.json() : undefined;
  }

  /** Other terms from now on. */
  async renegotiate(capabilities) {
    this.#capabilities = { ...this.#capabilities, ...capabilities };
    if (this.#subscription === undefined) return undefined;
    return this.send({ type: "subscription.renegotiate", capabilities });
  }

  async #subscribe() {
    this.#ears.state("connecting");
    const body = JSON.stringify({
      type: "subscription.request",
      aaep_version: "1.0.0",
      subscriber_id: "sayso-listening-page",
      subscriber_name: "The listening page",
      capabilities: this.#capabilities,
    });
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/aaep/v1/subscriptions", { method: "POST", headers, body });
    if (answer.status === 401) throw new Refused(phrases.signInFirst, { signIn: true });
    if (answer.status === 403) throw refused(await reason(answer), { final: true });
    if (!answer.ok) throw refused(await reason(answer), {});
    const accepted = await answer.json();
    this.#subscription = accepted.subscription_id;
    this.#last = undefined;
    this.#ears.accepted(accepted.honored_capabilities ?? {});
  }

  async #listen() {
    const query = new URLSearchParams({ subscription_id: this.#subscription });
    if (this.#last !== undefined) query.set("last_event_id", this.#last);
    this.#abort = new AbortController();
    const headers = { Accept: "text/event-stream" };
    const answer = await fetch(`/aaep/v1/events?${query}`, { headers, signal: this.#abort.signal, cache: "no-store" });
    if (answer.status === 401) throw new Refused(phrases.signInFirst, { signIn: true });
    if (answer.status === 429 || answer.status >= 500) throw new Error("not now");
    if (!answer.ok) {
      // The hub does not know this subscription any more; another one tells how things stand.
      this.#subscription = undefined;
      return;
    }
    const how = this.#last !== undefined ? "again" : this.#heardBefore ? "anew" : "first";
    this.#heardBefore = true;
    this.#ears.state("connected", how);
    await this.#read(answer.body, how);
    throw new Error("the stream ended");
  }

  async #read(body, how) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const blocks = new Blocks();
    this.#ears.catchUp(how);
    const caughtUp = () => this.#ears.caughtUp();
    const enough = setTimeout(caughtUp, CATCHING_UP);
    let quiet = setTimeout(caughtUp, CAUGHT_UP);
    let silence;
    try {
      for (;;) {
        clearTimeout(silence);
        silence = setTimeout(() => this.#abort.abort(), SILENCE);
        const { value, done } = await reader.read();
        if (done) return;
        this.#failures = 0;
        clearTimeout(quiet);
        let began = performance.now();
        for (const block of blocks.push(value)) {
          this.#take(block);
          if (performance.now() - began > AT_ONCE) {
            await breath();
            began = performance.now();
          }
        }
        quiet = setTimeout(caughtUp, CAUGHT_UP);
      }
    } finally {
      [silence, quiet, enough].forEach(clearTimeout);
      caughtUp();
    }
  }

  #take(block) {
    if (block.id !== undefined && block.id !== "") this.#last = block.id;
    if (block.data === "") return;
    let value;
    try {
      value = JSON.parse(block.data);
    } catch {
      this.#ears.unreadable();
      return;
    }
    if (value === null || typeof value !== "object") return;
    if (block.event === "aaep.event") {
      this.#ears.event(value);
      return;
    }
    if (value.type === "subscription.close" && value.reason_code !== "producer_shutdown") {
      this.#subscription = undefined;
    }
    this.#ears.message(value);
  }
}

/** Lets everything else have its turn. A timer would be slowed down where the page is not in sight. */
function breath() {
  return new Promise((wake) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", wake, { once: true });
    port1.start();
    port2.postMessage(undefined);
  });
}

/** The hub does not want us, and says why. */
class Refused extends Error {
  constructor(message, { signIn = false, final = false }) {
    super(message);
    this.signIn = signIn;
    this.final = final;
  }
}

/** The same for a reason of the hub. */
function refused(why, how) {
  return Object.assign(new Refused(why.message, how), { isHubs: why.isHubs });
}

/** Why the hub refused, in its own words, which are marked so. */
export async function reason(answer) {
  try {
    const problem = await answer.json();
    return Object.assign(new Error(String(problem.title ?? problem.reason_message ?? "")), { isHubs: true });
  } catch {
    return new Error(phrases.hubAnswered(answer.status));
  }
}
