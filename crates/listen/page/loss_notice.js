// When the loss of the hub, and its return, are announced. A short loss is not announced, because the page reconnects at once.

/** How long the connection must be lost before the loss is announced, in milliseconds. */
export const LOST_NOTICE_DELAY_MS = 1000;

export class LossNotice {
  #announce;
  #timer;
  /** Whether the connection is lost and the loss was announced. */
  #isAnnounced = false;
  /** Whether the last loss, before the current connection, was announced. */
  wasAnnounced = false;

  /** Calls `announce("lost")` and, after an announced loss, `announce("reconnected")`. */
  constructor(announce) {
    this.#announce = announce;
  }

  /** Handles a state of the connection, as `HubStream` reports it. */
  onState(name) {
    if (name === "lost") {
      if (!this.#isAnnounced) this.#timer ??= setTimeout(() => this.#onLost(), LOST_NOTICE_DELAY_MS);
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (name !== "connected") return;
    if (this.#isAnnounced) this.#announce("reconnected");
    this.wasAnnounced = this.#isAnnounced;
    this.#isAnnounced = false;
  }

  #onLost() {
    this.#isAnnounced = true;
    this.#announce("lost");
  }
}
