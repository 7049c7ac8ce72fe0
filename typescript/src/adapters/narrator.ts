/** Reports what a model writes, while it writes. */

import { errorText } from "../errors.js";
import type { Session } from "../session.js";

/**
 * Sends text to a session without making the model wait. It never throws, because a report that fails must not end the agent's work.
 * If the hub is gone or the session was stopped, the agent finds out through `session.stopped`, or at its next tool call.
 */
export class Narrator {
  #last: Promise<void> = Promise.resolve();

  constructor(private readonly session: Session) {}

  /** Adds text. Listeners get it sentence by sentence, or in the units that they requested. */
  write(text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    this.#send(() => this.session.write(text));
  }

  /** Ends the output. Resolves when everything written before has been sent or has failed. */
  async finish(): Promise<void> {
    this.#send(() => this.session.finishOutput());
    await this.#last;
  }

  /** Reports an error that does not end the session. */
  error(error: unknown): void {
    const text = errorText(error).replace(/[.!?\s]*$/u, ".");
    this.#send(() => this.session.progress(`Something went wrong: ${text}`.slice(0, 1000)));
  }

  #send(report: () => Promise<void>): void {
    const sent = (async () => report())();
    this.#last = sent.catch(() => {});
  }
}

/** Passes a stream through, and reports the text and the errors in it. Throws only what the stream throws. */
export async function* narrateStream<T>(session: Session, stream: AsyncIterable<T> | PromiseLike<AsyncIterable<T>>, read: (part: T) => StreamItem): AsyncGenerator<T, void, undefined> {
  const narrator = new Narrator(session);
  try {
    for await (const part of await stream) {
      const item = read(part);
      if (item?.text !== undefined) narrator.write(item.text);
      if (item?.error !== undefined) narrator.error(item.error);
      if (item?.isEnd === true) await narrator.finish();
      yield part;
    }
  } catch (error) {
    // A cancelled run is not an error of the model.
    if (!(error instanceof Error && error.name === "AbortError")) narrator.error(error);
    throw error;
  } finally {
    await narrator.finish();
  }
}

/** The meaning of one part of a stream: text, the end of a text, or an error. */
export type StreamItem = { text?: unknown; isEnd?: boolean; error?: unknown } | undefined;
