/** Removes secrets from everything that people hear. */

import { decidablePrefixLength, findSecrets, PEM_BEGIN, REDACTED } from "./secrets.js";

/** Returns a text without secrets, and how many were removed. */
export type Redact = (text: string) => { text: string; count: number };

/** Removes keys, tokens, passwords and card numbers: everything that a hub would refuse. The default. */
export const redactSecrets: Redact = (text) => {
  let out = "";
  let from = 0;
  let count = 0;
  for (const secret of findSecrets(text)) {
    out += text.slice(from, secret.start) + REDACTED;
    from = secret.end;
    count += 1;
  }
  return count === 0 ? { text, count } : { text: out + text.slice(from), count };
};

/** A redactor that counts what it removes. */
export class Redactor {
  count = 0;

  constructor(private readonly redactText: Redact) {}

  redact(text: string): string {
    const result = this.redactText(text);
    this.count += result.count;
    return result.text;
  }

  /** Redacts all texts of a JSON value. */
  redactJson(value: unknown): unknown {
    if (typeof value === "string") return this.redact(value);
    if (Array.isArray(value)) return value.map((item) => this.redactJson(item));
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([key, member]) => [key, this.redactJson(member)]),
      );
    }
    return value;
  }
}

/** The maximum number of characters held back, except for a private key. */
const MAX_PENDING = 4096;
/** The number of characters at each end of a private key that are enough to recognise it. */
const KEY_EDGE = 64;

/** Redacts text that arrives in pieces. Text that may be the start of a secret waits for the rest. */
export class StreamRedactor {
  private pending = "";

  constructor(private readonly redactor: Redactor) {}

  get isEmpty(): boolean {
    return this.pending === "";
  }

  /** Adds a piece and returns the text that can be published now. */
  push(piece: string, isComplete: boolean): string {
    this.pending += piece;
    const length = isComplete ? this.pending.length : decidablePrefixLength(this.pending, MAX_PENDING);
    const decided = this.pending.slice(0, length);
    this.pending = this.pending.slice(length);
    if (this.pending.length > 2 * MAX_PENDING && this.pending.startsWith(PEM_BEGIN)) {
      // Only the start and the end of a private key are needed to recognise it.
      this.pending = this.pending.slice(0, KEY_EDGE) + this.pending.slice(-KEY_EDGE);
    }
    return this.redactor.redact(decided);
  }
}
