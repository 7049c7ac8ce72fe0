/** Reports what a model writes, while it writes. */

import { errorText } from "../errors.js";
import type { Session } from "../session.js";

/** Sends text to a session without making the model wait. The first failure is thrown at the next call. */
export class Narrator {
  #last: Promise<void> = Promise.resolve();
  #failure: { error: unknown } | undefined;

  constructor(private readonly session: Session) {}

  /** Adds text. Listeners get it sentence by sentence, or in the units that they requested. */
  write(text: unknown): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (typeof text !== "string" || text === "") return;
    this.#track(this.session.write(text));
  }

  /** The text is complete. */
  async finish(): Promise<void> {
    this.#track(this.session.finishOutput());
    await this.#last;
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Reports an error that does not end the session. */
  error(error: unknown): void {
    const text = errorText(error).replace(/[.!?\s]*$/u, ".");
    this.#track(this.session.progress(`Something went wrong: ${text}`.slice(0, 1000)));
  }

  #track(sent: Promise<void>): void {
    this.#last = sent.catch((error: unknown) => {
      this.#failure ??= { error };
    });
  }
}

/** Passes a stream through, and reports the text and the errors in it. */
export async function* narrateStream<T>(session: Session, stream: AsyncIterable<T>, read: (part: T) => StreamItem): AsyncGenerator<T, void, undefined> {
  const narrator = new Narrator(session);
  try {
    for await (const part of stream) {
      const item = read(part);
      if (item?.text !== undefined) narrator.write(item.text);
      if (item?.error !== undefined) narrator.error(item.error);
      if (item?.isEnd === true) await narrator.finish();
      yield part;
    }
  } finally {
    await narrator.finish().catch(() => {});
  }
}

/** The meaning of one part of a stream: text, the end of a text, or an error. */
export type StreamItem = { text?: unknown; isEnd?: boolean; error?: unknown } | undefined;
