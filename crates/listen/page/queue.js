// The queue of announcements. It releases one at a time, at the person's pace. Critical announcements go first and are never dropped.
// It reads no clock: every call takes the time in milliseconds.

import { phrases } from "./phrases.js";
import { ownText } from "./wording.js";

/** Maximum number of waiting announcements. Above this number, the oldest one that is not critical is dropped. The number of dropped ones is announced. */
export const MAX_WAITING = 40;

/**
 * A critical announcement interrupts the current one, with two exceptions. A question waits for the current
 * sentence of its session, which may lead to it, and any critical announcement waits for another one, if the current one ends within this
 * time, in milliseconds.
 */
export const LEAD_IN_PATIENCE_MS = 6000;
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
      const last = announcement.first ? -1 : this.#waiting.findLastIndex(isUrgent);
      this.#waiting.splice(last + 1, 0, ...segments);
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

  /** Ends the current announcement because the person has moved on. The screen reader gets a moment to read the new position. */
  interrupt(now) {
    this.#current = { endsAt: now + AFTER_MOVE_MS, critical: true, session: undefined };
  }

  get length() {
    return this.#waiting.length;
  }

  #dueAt(announcement, now) {
    const { endsAt, critical, session } = this.#current;
    const isLeadIn = announcement.questionToken !== undefined && session !== undefined && session === announcement.session;
    const patience = critical ? CRITICAL_PATIENCE_MS : isLeadIn ? LEAD_IN_PATIENCE_MS : 0;
    return isUrgent(announcement) && endsAt - now > patience ? now : endsAt;
  }

  /** Takes the waiting announcements of a question's session out of the queue, to go right before the question, if they are short. */
  #takeLeadIn({ questionToken, session }) {
    if (questionToken === undefined) return [];
    const leadIn = this.#waiting.filter((one) => one.session === session && !one.isState && !isUrgent(one));
    const time = leadIn.reduce((sum, one) => sum + speakingTimeMs(one.parts, this.pace) + PAUSE_MS, 0);
    if (time > LEAD_IN_PATIENCE_MS) return [];
    this.drop((one) => leadIn.includes(one));
    return leadIn.map((one) => ({ ...one, leadsToQuestion: true }));
  }

  /** Makes an announcement the current one for the time that a voice needs for it. */
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

/** Estimates how long a voice takes for the parts, in milliseconds. Scripts without spaces are counted by their characters. */
export function speakingTimeMs(parts, pace) {
  let words = 0;
  for (const { text } of parts) {
    words += Math.max(text.split(/\s+/).filter(Boolean).length, text.length / 7);
  }
  return (words * 60000) / pace;
}

/** Splits a long announcement between sentences, or between words, or if need be between characters. */
export function splitLongAnnouncement(announcement) {
  const length = announcement.parts.reduce((sum, part) => sum + part.text.length, 0);
  if (length <= MAX_SEGMENT_CHARS || announcement.questionToken !== undefined) return [announcement];
  const segments = announcement.parts.flatMap((part) => splitText(part.text).map((text) => ({ ...announcement, parts: [{ ...part, text }] })));
  // The segments have no key, because otherwise each segment would replace the one before it.
  return segments.map(({ key, ...segment }) => segment);
}

function splitText(text) {
  const segments = [];
  let rest = text;
  while (rest.length > MAX_SEGMENT_CHARS) {
    const head = rest.slice(0, MAX_SEGMENT_CHARS);
    const sentence = Math.max(...[". ", "! ", "? ", "\n", "。", "؟ "].map((end) => head.lastIndexOf(end)));
    let at = sentence > MAX_SEGMENT_CHARS / 4 ? sentence + 1 : head.lastIndexOf(" ");
    if (at <= 0) at = MAX_SEGMENT_CHARS;
    // Never split a surrogate pair.
    if (/[\ud800-\udbff]$/.test(rest.slice(0, at))) at -= 1;
    segments.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
  segments.push(rest);
  return segments.filter((segment) => segment !== "");
}
