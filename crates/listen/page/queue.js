// The queue of announcements. It releases one at a time, at the person's pace. Critical announcements go first and are never dropped
// for lack of space. Waiting steps (states, progress, and tools that started or succeeded) are skipped when newer text of their session arrives, and text
// cuts off the start of a session or a step that is being spoken, so that the agent's text is heard as soon as it arrives.
// It reads no clock; the caller passes the time, in milliseconds.

import { phrases } from "./phrases.js";
import { ownText } from "./wording.js";

/** Maximum number of waiting announcements. Above it, the oldest one that is not critical is dropped. The number of dropped announcements is announced. */
export const MAX_WAITING = 40;

/** A critical announcement waits for a current critical announcement that ends within this time, in milliseconds. Otherwise it interrupts. */
export const CRITICAL_PATIENCE_MS = 20000;

/** Maximum length of an announcement in characters. A longer one is split into segments, so that an interruption loses little. */
export const MAX_SEGMENT_CHARS = 400;

/** Agent text waits for a step that ends within this time, in milliseconds. Otherwise it cuts the step off. */
const STEP_PATIENCE_MS = 500;

/** How long a screen reader needs to start reading the new position after the focus has moved, in milliseconds. */
const AFTER_FOCUS_MOVE_MS = 800;

/** How long a person remembers which session the last announcement was about, in milliseconds. */
const SESSION_MEMORY_MS = 5000;

/** The pause between two announcements, in milliseconds. */
const PAUSE_MS = 400;

export class AnnouncementQueue {
  #waiting = [];
  #current = { endsAt: 0 };
  #droppedCount = 0;

  /** @param {number} pace words per minute */
  constructor(pace) {
    this.pace = pace;
  }

  /**
   * Adds an announcement: `parts`, and optionally `critical`, `first` (before all other critical ones), `session`, `isStep` (skipped when
   * agent text, a critical announcement or the end of its session arrives), `isStart` and `isState` (cut off by agent text, as steps are), `isAgentText` and `isEnd` (skip the waiting steps of their
   * session), `key` (replaces waiting announcements with the same key), `notBefore`, `notAfter` and `questionToken` (a question to show;
   * its text is in `parts`). The first `nameParts` parts say whose session it is; they are left out directly after an announcement about the
   * same session. Other members are kept. `next` adds `cutsOff` to agent text that cuts a step off.
   */
  add(announcement) {
    const { key, session, isAgentText, isEnd, critical } = announcement;
    if (key !== undefined) this.removeWaiting((waiting) => waiting.key === key);
    if (isAgentText || isEnd || critical) this.removeWaiting((waiting) => waiting.isStep && session !== undefined && waiting.session === session);
    const segments = splitLongAnnouncement(announcement);
    if (critical) {
      const lastCritical = announcement.first ? -1 : this.#waiting.findLastIndex((waiting) => waiting.critical);
      this.#waiting.splice(lastCritical + 1, 0, ...segments);
    } else {
      this.#waiting.push(...segments);
    }
    while (this.#waiting.length > MAX_WAITING) {
      const oldest = this.#waiting.findIndex((waiting) => !waiting.critical);
      if (oldest < 0) break;
      this.#waiting.splice(oldest, 1);
      this.#droppedCount += 1;
    }
  }

  /** Removes the waiting announcements that match and returns their number. */
  removeWaiting(matches) {
    const countBefore = this.#waiting.length;
    this.#waiting = this.#waiting.filter((waiting) => !matches(waiting));
    return countBefore - this.#waiting.length;
  }

  /** Returns the next announcement if it is due. The order is: critical announcements, agent text, everything else, steps. */
  next(now) {
    this.removeWaiting((waiting) => waiting.notAfter < now);
    const announcement = this.#findNext(now);
    if (announcement === undefined && this.#droppedCount > 0 && now >= this.#current.endsAt) return this.begin(this.#takeDroppedNotice(), now);
    if (announcement === undefined || now < this.#dueAt(announcement, now)) return undefined;
    if (this.#droppedCount > 0 && !announcement.critical) return this.begin(this.#takeDroppedNotice(), now);
    this.removeWaiting((waiting) => waiting === announcement);
    const spoken = this.#withoutKnownName(announcement, now);
    this.#keepInterrupted(now);
    return this.begin(now < this.#current.endsAt && !announcement.critical ? { ...spoken, cutsOff: true } : spoken, now);
  }

  #withoutKnownName(announcement, now) {
    const { announcement: before, endsAt } = this.#current;
    const isKnown = announcement.nameParts > 0 && before?.session === announcement.session && now >= endsAt && now - endsAt < SESSION_MEMORY_MS;
    return isKnown ? { ...announcement, parts: announcement.parts.slice(announcement.nameParts), named: announcement } : announcement;
  }

  /** Whether the next announcement shows a question. */
  isQuestionNext(now) {
    return this.#findNext(now)?.questionToken !== undefined;
  }

  /** Returns when the next announcement may be due, or `undefined` if nothing waits. */
  wakeAt(now) {
    const dueTimes = this.#waiting.map((waiting) => Math.max(this.#dueAt(waiting, now), waiting.notBefore ?? 0));
    if (this.#droppedCount > 0) dueTimes.push(this.#current.endsAt);
    return dueTimes.length > 0 ? Math.min(...dueTimes) : undefined;
  }

  /** Ends the current announcement, because the focus moves. The screen reader gets time to read the new position; questions wait for it (`isProtected`). */
  interrupt(now) {
    this.#current = { endsAt: now + AFTER_FOCUS_MOVE_MS, critical: true, isProtected: true };
  }

  get length() {
    return this.#waiting.length;
  }

  #findNext(now) {
    const due = this.#waiting.filter((waiting) => (waiting.notBefore ?? 0) <= now);
    return due.find((waiting) => waiting.critical) ?? due.find((waiting) => waiting.isAgentText) ?? due.find((waiting) => !waiting.isStep) ?? due[0];
  }

  #dueAt(announcement, now) {
    const { endsAt, critical, isProtected } = this.#current;
    if (announcement.critical !== true) return announcement.isAgentText && this.#isCurrentStep() && endsAt - now > STEP_PATIENCE_MS ? now : endsAt;
    // A question opens at once. It waits only for what is protected: another question, the outcome of the person's own
    // answer (`first`), and the pause after the focus has moved.
    const waits = announcement.questionToken === undefined ? critical : isProtected;
    return waits && endsAt - now <= CRITICAL_PATIENCE_MS ? endsAt : now;
  }

  /** Whether the current announcement says less than an agent's text: that a session has started, a step, or a state. */
  #isCurrentStep() {
    const { announcement, critical } = this.#current;
    return !critical && [announcement?.isStep, announcement?.isStart, announcement?.isState].includes(true);
  }

  /** If the current announcement is interrupted, puts it back into the queue, provided that it is agent text or critical. A question is not put back, because its dialog shows it. */
  #keepInterrupted(now) {
    const { announcement, endsAt } = this.#current;
    if (announcement === undefined || now >= endsAt || !(announcement.isAgentText || announcement.critical) || announcement.questionToken !== undefined) return;
    const at = announcement.critical ? this.#waiting.findLastIndex((waiting) => waiting.critical) + 1 : this.#waiting.findLastIndex((waiting) => waiting.critical || waiting.isRepeated) + 1;
    this.#waiting.splice(at, 0, { ...(announcement.named ?? announcement), isRepeated: true, cutsOff: undefined });
  }

  /** Makes an announcement the current one for as long as a screen reader needs to speak it. */
  begin(announcement, now) {
    const endsAt = now + speakingTimeMs(announcement.parts, this.pace) + PAUSE_MS;
    const isProtected = announcement.questionToken !== undefined || announcement.first === true;
    this.#current = { announcement, endsAt, critical: announcement.critical === true, isProtected };
    return announcement;
  }

  #takeDroppedNotice() {
    const count = this.#droppedCount;
    this.#droppedCount = 0;
    return { parts: [ownText(phrases.announcementsSkipped(count))] };
  }
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
  return segments.map(({ key, nameParts, ...segment }) => segment);
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
