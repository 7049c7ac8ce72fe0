// What waits to be said. One thing at a time, at the person's pace; what is critical goes before all that waits and is never left out.
// No clock is read here: time comes in with every call, in milliseconds.

import { phrases } from "./phrases.js";
import { own } from "./words.js";

/** So many things wait at most; beyond, the oldest that is not critical goes unsaid, and that is said. */
export const MOST_WAITING = 40;

/**
 * What is critical cuts what is being said. Two things it lets end, if they do so in time: the sentence of the same session that leads to a
 * question, and what is critical too.
 */
export const PATIENCE = 6000;
export const PATIENCE_WITH_CRITICAL = 20000;

/** Characters of one thing that is said; a longer text is said in pieces, so that little is lost where it is cut. */
export const LONGEST = 400;

/** After the person has moved, by when a screen reader has begun to say where they are. */
const MOMENT = 800;

/** Between two things that are said. */
const PAUSE = 400;

export class Queue {
  #waiting = [];
  #speaking = { until: 0, critical: false, session: undefined };
  #unsaid = 0;

  /** @param {number} pace words a minute */
  constructor(pace) {
    this.pace = pace;
  }

  /**
   * Something to say: `parts`, and optionally `critical`, `first` (before all else that is critical), `session`, `key` (it replaces what
   * waits under the same key), `from` (it is not said before), `until` (it is not said after) and `show` (a question to show; its words
   * are `parts`). Whatever else it has comes out again with it.
   */
  add(said) {
    if (said.key !== undefined) this.drop((one) => one.key === said.key);
    const pieces = [...this.#leadingTo(said), ...inPieces(said)];
    if (said.critical) {
      const last = said.first ? -1 : this.#waiting.findLastIndex(isUrgent);
      this.#waiting.splice(last + 1, 0, ...pieces);
    } else {
      this.#waiting.push(...pieces);
    }
    while (this.#waiting.length > MOST_WAITING) {
      const oldest = this.#waiting.findIndex((one) => !isUrgent(one));
      if (oldest < 0) break;
      this.#waiting.splice(oldest, 1);
      this.#unsaid += 1;
    }
  }

  /** Takes back what is no longer worth saying; how much it was. */
  drop(of) {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((one) => !of(one));
    return before - this.#waiting.length;
  }

  /** The next thing to say, if it is time for one. */
  next(now) {
    this.drop((one) => one.until < now);
    const index = this.#waiting.findIndex((one) => (one.from ?? 0) <= now);
    const said = this.#waiting[index];
    if (said === undefined && this.#unsaid > 0 && now >= this.#speaking.until) return this.begin(this.#tellUnsaid(), now);
    if (said === undefined || now < this.#due(said, now)) return undefined;
    if (this.#unsaid > 0 && !said.critical) return this.begin(this.#tellUnsaid(), now);
    this.#waiting.splice(index, 1);
    return this.begin(said, now);
  }

  /** Whether the next thing is a question to show. */
  showsNext(now) {
    return this.#waiting.find((one) => (one.from ?? 0) <= now)?.show !== undefined;
  }

  /** When there may be a next thing to say; nothing where nothing waits. */
  wakeAt(now) {
    const due = this.#waiting.map((one) => Math.max(this.#due(one, now), one.from ?? 0));
    if (this.#unsaid > 0) due.push(this.#speaking.until);
    return due.length > 0 ? Math.min(...due) : undefined;
  }

  /** What was being said is over: the person has gone on. A screen reader that follows them needs a moment. */
  hush(now) {
    this.#speaking = { until: now + MOMENT, critical: true, session: undefined };
  }

  get length() {
    return this.#waiting.length;
  }

  #due(said, now) {
    const { until, critical, session } = this.#speaking;
    const leads = said.show !== undefined && session !== undefined && session === said.session;
    const patience = critical ? PATIENCE_WITH_CRITICAL : leads ? PATIENCE : 0;
    return isUrgent(said) && until - now > patience ? now : until;
  }

  /** What its session said just before a question goes with it, if that is little. */
  #leadingTo(question) {
    if (question.show === undefined) return [];
    const leads = this.#waiting.filter((one) => one.session === question.session && !one.stale && !isUrgent(one));
    const time = leads.reduce((sum, one) => sum + takes(one.parts, this.pace) + PAUSE, 0);
    if (time > PATIENCE) return [];
    this.drop((one) => leads.includes(one));
    return leads.map((one) => ({ ...one, leads: true }));
  }

  /** This is being said from now on, until a voice would have said it. */
  begin(said, now) {
    const until = now + takes(said.parts, this.pace) + PAUSE;
    this.#speaking = { until, critical: said.critical === true, session: said.session };
    return said;
  }

  #tellUnsaid() {
    const count = this.#unsaid;
    this.#unsaid = 0;
    return { parts: [own(phrases.unsaid(count))] };
  }
}

function isUrgent(said) {
  return said.critical === true || said.leads === true;
}

/** How long a voice takes for it, about. Scripts without spaces count by their letters. */
export function takes(parts, pace) {
  let words = 0;
  for (const { text } of parts) {
    words += Math.max(text.split(/\s+/).filter(Boolean).length, text.length / 7);
  }
  return (words * 60000) / pace;
}

/** A long text in pieces, cut between sentences, or words, or at worst between letters. */
export function inPieces(said) {
  const length = said.parts.reduce((sum, part) => sum + part.text.length, 0);
  if (length <= LONGEST || said.show !== undefined) return [said];
  const pieces = said.parts.flatMap((part) => cut(part.text).map((text) => ({ ...said, parts: [{ ...part, text }] })));
  // Only as a whole could it be replaced.
  return pieces.map(({ key, ...piece }) => piece);
}

function cut(text) {
  const pieces = [];
  let rest = text;
  while (rest.length > LONGEST) {
    const head = rest.slice(0, LONGEST);
    const sentence = Math.max(...[". ", "! ", "? ", "\n", "。", "؟ "].map((end) => head.lastIndexOf(end)));
    let at = sentence > LONGEST / 4 ? sentence + 1 : head.lastIndexOf(" ");
    if (at <= 0) at = LONGEST;
    // Not between the halves of one letter.
    if (/[\ud800-\udbff]$/.test(rest.slice(0, at))) at -= 1;
    pieces.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
  pieces.push(rest);
  return pieces.filter((piece) => piece !== "");
}
