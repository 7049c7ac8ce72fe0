// The queue of announcements. It releases one at a time, at the person's pace. Critical announcements go first and are never dropped.
// It reads no clock; the caller passes the time, in milliseconds.

import { phrases } from "./phrases.js";
import { ownText } from "./wording.js";

/** Maximum number of waiting announcements. Above it, the oldest one that is not critical is dropped. The number of dropped announcements is announced. */
export const MAX_WAITING = 40;

// A critical announcement interrupts the current announcement, with two exceptions:

/**
 * A question waits for the current announcement of its own session, which may introduce the question, if that announcement ends within this
 * time, in milliseconds.
 */
export const LEAD_IN_PATIENCE_MS = 6000;
/** A critical announcement waits for a current critical announcement that ends within this time, in milliseconds. */
export const CRITICAL_PATIENCE_MS = 20000;

/** Maximum length of an announcement in characters. A longer one is split into segments, so that an interruption loses little. */
export const MAX_SEGMENT_CHARS = 400;

/** How long a screen reader needs to start reading the new position after the person has moved, in milliseconds. */
const AFTER_MOVE_MS = 800;

/** The pause between two announcements, in milliseconds. */
const PAUSE_MS = 400;

export class AnnouncementQueue {
  #waiting = [];
  #current = { endsAt: 0, critical: false, session: undefined };
  #droppedCount = 0;

  /** @param {number} pace words per minute */
  constructor(pace) {
    this.pace = pace;
  }

  /**
   * Adds an announcement: `parts`, and optionally `critical`, `first` (before all other critical ones), `session`, `key` (replaces waiting
   * announcements with the same key), `notBefore`, `notAfter` and `questionToken` (a question to show; its text is in `parts`). Other
   * members are kept.
   */
  add(announcement) {
    if (announcement.key !== undefined) this.drop((one) => one.key === announcement.key);
    const segments = [...this.#takeLeadIn(announcement), ...splitLongAnnouncement(announcement)];
    if (announcement.critical) {
      const lastUrgent = announcement.first ? -1 : this.#waiting.findLastIndex(isUrgent);
      this.#waiting.splice(lastUrgent + 1, 0, ...segments);
    } else {
      this.#waiting.push(...segments);
    }
    while (this.#waiting.length > MAX_WAITING) {
      const oldest = this.#waiting.findIndex((one) => !isUrgent(one));
      if (oldest < 0) break;
      this.#waiting.splice(oldest, 1);
      this.#droppedCount += 1;
    }
  }

  /** Removes the waiting announcements that match and returns their number. */
  drop(matches) {
    const countBefore = this.#waiting.length;
    this.#waiting = this.#waiting.filter((one) => !matches(one));
    return countBefore - this.#waiting.length;
  }

  /** Returns the next announcement if it is due. */
  next(now) {
    this.drop((one) => one.notAfter < now);
    const index = this.#waiting.findIndex((one) => (one.notBefore ?? 0) <= now);
    const announcement = this.#waiting[index];
    if (announcement === undefined && this.#droppedCount > 0 && now >= this.#current.endsAt) return this.begin(this.#dropNotice(), now);
    if (announcement === undefined || now < this.#dueAt(announcement, now)) return undefined;
    if (this.#droppedCount > 0 && !announcement.critical) return this.begin(this.#dropNotice(), now);
    this.#waiting.splice(index, 1);
    return this.begin(announcement, now);
  }

  /** Whether the next announcement shows a question. */
  isQuestionNext(now) {
    return this.#waiting.find((one) => (one.notBefore ?? 0) <= now)?.questionToken !== undefined;
  }

  /** Returns when the next announcement may be due, or `undefined` if nothing waits. */
  wakeAt(now) {
    const dueTimes = this.#waiting.map((one) => Math.max(this.#dueAt(one, now), one.notBefore ?? 0));
    if (this.#droppedCount > 0) dueTimes.push(this.#current.endsAt);
    return dueTimes.length > 0 ? Math.min(...dueTimes) : undefined;
  }

  /** Ends the current announcement, because the person has moved on. The screen reader gets time to read the new position. */
  interrupt(now) {
    this.#current = { endsAt: now + AFTER_MOVE_MS, critical: true, session: undefined };
  }

  get length() {
    return this.#waiting.length;
  }

  #dueAt(announcement, now) {
    const { endsAt, critical, session } = this.#current;
    const currentIsLeadIn = announcement.questionToken !== undefined && session !== undefined && session === announcement.session;
    const patience = critical ? CRITICAL_PATIENCE_MS : currentIsLeadIn ? LEAD_IN_PATIENCE_MS : 0;
    return isUrgent(announcement) && endsAt - now > patience ? now : endsAt;
  }

  /** Removes the waiting announcements of a question's session from the queue if they are short. They go right before the question. */
  #takeLeadIn({ questionToken, session }) {
    if (questionToken === undefined) return [];
    const leadIn = this.#waiting.filter((one) => one.session === session && !one.isState && !isUrgent(one));
    const leadInMs = leadIn.reduce((sum, one) => sum + speakingTimeMs(one.parts, this.pace) + PAUSE_MS, 0);
    if (leadInMs > LEAD_IN_PATIENCE_MS) return [];
    this.drop((one) => leadIn.includes(one));
    return leadIn.map((one) => ({ ...one, leadsToQuestion: true }));
  }

  /** Makes an announcement the current one for as long as a screen reader needs to speak it. */
  begin(announcement, now) {
    const endsAt = now + speakingTimeMs(announcement.parts, this.pace) + PAUSE_MS;
    this.#current = { endsAt, critical: announcement.critical === true, session: announcement.session };
    return announcement;
  }

  #dropNotice() {
    const count = this.#droppedCount;
    this.#droppedCount = 0;
    return { parts: [ownText(phrases.announcementsSkipped(count))] };
  }
}

function isUrgent(announcement) {
  return announcement.critical === true || announcement.leadsToQuestion === true;
}

/** Estimates how long a screen reader needs to speak the parts, in milliseconds. For scripts without spaces, it counts characters. */
export function speakingTimeMs(parts, pace) {
  let words = 0;
  for (const { text } of parts) {
    words += Math.max(text.split(/\s+/).filter(Boolean).length, text.length / 7);
  }
  return (words * 60000) / pace;
}

/** Splits a long announcement between sentences if possible, otherwise between words, otherwise between characters. */
export function splitLongAnnouncement(announcement) {
  const length = announcement.parts.reduce((sum, part) => sum + part.text.length, 0);
  if (length <= MAX_SEGMENT_CHARS || announcement.questionToken !== undefined) return [announcement];
  const segments = announcement.parts.flatMap((part) => splitText(part.text).map((text) => ({ ...announcement, parts: [text === part.text ? part : { ...part, text, pieces: undefined }] })));
  // The segments have no key. With a key, each segment would replace the one before it.
  return segments.map(({ key, ...segment }) => segment);
}

function splitText(text) {
  const segments = [];
  let rest = text;
  while (rest.length > MAX_SEGMENT_CHARS) {
    const head = rest.slice(0, MAX_SEGMENT_CHARS);
    const sentenceEnd = Math.max(...[". ", "! ", "? ", "\n", "。", "؟ "].map((end) => head.lastIndexOf(end)));
    let at = sentenceEnd > MAX_SEGMENT_CHARS / 4 ? sentenceEnd + 1 : head.lastIndexOf(" ");
    if (at <= 0) at = MAX_SEGMENT_CHARS;
    // Never split a surrogate pair.
    if (/[\ud800-\udbff]$/.test(rest.slice(0, at))) at -= 1;
    segments.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
  segments.push(rest);
  return segments.filter((segment) => segment !== "");
}
