// The announcer: writes the announcements of the queue into live regions, one at a time.
//
// The regions are in the page from the start, and each text is inserted as a new element, because Orca reads such insertions in both Firefox and Chromium.
// `ariaNotify` is not used: screen readers without support for it stay silent, and a page cannot detect that.

import { phrases } from "./phrases.js";
import { joinParts, separatorAfter } from "./wording.js";

/**
 * How long a text stays in its live region after another has replaced it, in milliseconds. On a busy machine a screen reader reads an
 * insertion seconds later, and reads nothing if the element is gone by then.
 */
const REPLACED_TEXT_MS = 10000;

export class Announcer {
  #queue;
  #clock;
  #show;
  #isTyping;
  #regions;
  #timer;

  /**
   * `show` shows a question. If another dialog is open, it returns parts to announce instead. `isTyping` returns whether the person is
   * typing.
   */
  constructor(queue, { clock, show, isTyping }) {
    this.#queue = queue;
    this.#clock = clock;
    this.#show = show;
    this.#isTyping = isTyping;
    this.#regions = [findLiveRegions(document)];
  }

  announce(announcement) {
    this.#queue.add(announcement);
    this.#step();
  }

  drop(matches) {
    return this.#queue.removeWaiting(matches);
  }

  /** Ends the current announcement because the person has moved on. */
  interrupt() {
    this.#queue.interrupt(this.#clock());
    this.#step();
  }

  /** Announces inside a dialog from now on, because not every screen reader reads live regions outside an open modal dialog. */
  moveInto(dialog) {
    // Earlier announcements would be out of date when the dialog closes.
    for (const region of Object.values(this.#regions.at(-1))) retireTexts(region);
    this.#regions.push(findLiveRegions(dialog));
  }

  moveOut() {
    if (this.#regions.length > 1) this.#regions.pop();
  }

  #step() {
    clearTimeout(this.#timer);
    const now = this.#clock();
    if (this.#isTyping() && this.#queue.isQuestionNext(now)) {
      this.#timer = setTimeout(() => this.#step(), 300);
      return;
    }
    const announcement = this.#queue.next(now);
    if (announcement !== undefined) {
      const parts = announcement.questionToken === undefined ? announcement.parts : this.#show(announcement.questionToken);
      if (parts !== undefined) {
        this.#queue.begin({ ...announcement, parts }, now);
        this.#write(parts, announcement);
      }
    }
    const wakeAt = this.#queue.wakeAt(now);
    if (wakeAt !== undefined) this.#timer = setTimeout(() => this.#step(), Math.min(Math.max(wakeAt - now, 20), 60000));
  }

  /** Writes an announcement. Only the assertive region makes a screen reader stop what it is saying. */
  #write(parts, { critical = false, cutsOff = false }) {
    const { polite, assertive } = this.#regions.at(-1);
    const [region, other] = critical || cutsOff ? [assertive, polite] : [polite, assertive];
    const paragraph = document.createElement("p");
    if (cutsOff) paragraph.className = "calm";
    paragraph.append(...createSpans(parts));
    retireTexts(other);
    replaceText(region, paragraph);
  }
}

/** Writes the text of a live region. */
export function replaceText(region, paragraph) {
  retireTexts(region);
  region.append(paragraph);
}

/** Hides the texts of a live region from view, and removes them later. The elements stay the same, so that they are not announced again. */
function retireTexts(region) {
  for (const paragraph of region.querySelectorAll("p:not(.replaced)")) {
    paragraph.classList.add("replaced");
    setTimeout(() => paragraph.remove(), REPLACED_TEXT_MS);
  }
}

/**
 * Turns parts into elements. A producer's text never becomes markup. Each isolated piece of a part is a `<bdi>`, so that a
 * right-to-left letter in one value of a call cannot reorder the digits of the next. With `hasLinks`, a part with a web address is a link;
 * announcements have none.
 */
export function createSpans(parts, hasLinks = false) {
  return parts.flatMap((part, index, all) => {
    const span = document.createElement("span");
    if (hasLinks && part.href !== undefined) span.append(createLink(part));
    else if (part.pieces === undefined) span.textContent = part.text;
    else span.append(...part.pieces.map(createPiece));
    span.lang = part.lang;
    if (part.dir !== undefined) span.dir = part.dir;
    return index + 1 < all.length ? [span, separatorAfter(part)] : [span];
  });
}

function createLink({ text, href }) {
  const link = document.createElement("a");
  Object.assign(link, { textContent: text, href, target: "_blank", rel: "noopener noreferrer" });
  return link;
}

function createPiece({ text, isIsolated }) {
  if (!isIsolated) return text;
  const element = document.createElement("bdi");
  element.textContent = text;
  return element;
}

/**
 * Sets the content of an element: plain text if all parts are in the page's language, otherwise one span per part. The element gets a
 * `lang`, because its text stays when the page's language changes.
 */
export function setParts(element, parts) {
  element.lang = phrases.lang;
  if (parts.every((part) => part.lang === phrases.lang)) element.textContent = joinParts(parts);
  else element.replaceChildren(...createSpans(parts));
}

function findLiveRegions(root) {
  return { polite: root.querySelector("[aria-live=polite]"), assertive: root.querySelector("[aria-live=assertive]") };
}
