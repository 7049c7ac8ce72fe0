// The log: all entries in order, navigable by keyboard. It is not a live region, because the announcer makes the announcements.

import { phrases } from "./phrases.js";
import { createSpans } from "./announcer.js";
import { createTime } from "./element.js";

/** Maximum number of entries. */
export const MAX_ENTRIES = 10000;
/** Number of entries that Page Up and Page Down move by. */
const PAGE_STEP = 10;
/** How long entries are collected before they are drawn, in milliseconds. A burst of entries then costs one layout instead of thousands. */
const BATCH_DELAY_MS = 50;
/** Maximum number of entries that are drawn at a time, so that the page stays responsive to keys. */
const MAX_BATCH = 200;

export class Log {
  #list;
  #droppedNotice;
  #droppedCount = 0;
  #waiting = [];
  #timer;
  #current;
  /** Whether the list is scrolled to its end. If so, it also scrolls to each new entry. */
  #isAtEnd = true;

  /** `droppedNotice` shows how many entries were dropped. */
  constructor(list, droppedNotice) {
    this.#list = list;
    this.#droppedNotice = droppedNotice;
    list.addEventListener("keydown", (event) => this.#onKeyDown(event));
    list.addEventListener("scroll", () => (this.#isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 48), { passive: true });
    list.addEventListener("focusin", (event) => this.#setCurrent(event.target.closest("li")));
  }

  add(entry) {
    this.#waiting.push(entry);
    if (this.#waiting.length > MAX_ENTRIES) {
      this.#waiting.shift();
      this.#droppedCount += 1;
    }
    this.#timer ??= setTimeout(() => this.#draw(), BATCH_DELAY_MS);
  }

  #draw() {
    this.#timer = undefined;
    const hasFocus = this.#list.contains(document.activeElement);
    this.#list.append(...this.#waiting.splice(0, MAX_BATCH).map(createItem));
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#draw(), BATCH_DELAY_MS);
    this.#trim();
    this.translate();
    if (!hasFocus) this.#setCurrent(this.#list.lastElementChild);
    if (!hasFocus && this.#isAtEnd) this.scrollToEnd();
  }

  scrollToEnd() {
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** Updates the number of dropped entries in the current language. Entries keep the language in which they were added. */
  translate() {
    if (this.#droppedCount === 0) return;
    this.#droppedNotice.hidden = false;
    this.#droppedNotice.textContent = phrases.entriesDropped(this.#droppedCount, MAX_ENTRIES);
  }

  #trim() {
    const excess = this.#list.childElementCount - MAX_ENTRIES;
    if (excess <= 0) return;
    const oldestKept = this.#list.children[excess];
    const droppedRange = document.createRange();
    droppedRange.setStartBefore(this.#list.firstElementChild);
    droppedRange.setEndBefore(oldestKept);
    // If the focus is on a dropped entry, it moves to the oldest entry that stays.
    if (droppedRange.intersectsNode(document.activeElement) && this.#list.contains(document.activeElement)) oldestKept.focus();
    droppedRange.deleteContents();
    this.#droppedCount += excess;
  }

  /** Makes an entry the only one that the Tab key reaches. The arrow keys reach the others. */
  #setCurrent(entry) {
    if (entry === null || entry === this.#current) return;
    if (this.#current !== undefined) this.#current.tabIndex = -1;
    this.#current = entry;
    entry.tabIndex = 0;
  }

  #onKeyDown(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const entry = event.target.closest("li");
    if (entry === null) return;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE_STEP, PageUp: -PAGE_STEP };
    let target;
    if (event.key === "Home") target = this.#list.firstElementChild;
    else if (event.key === "End") target = this.#list.lastElementChild;
    else if (Object.hasOwn(steps, event.key)) target = findEntry(entry, steps[event.key]);
    else return;
    event.preventDefault();
    target.focus();
  }
}

/** Returns the entry this number of steps away, or the last entry in that direction. */
function findEntry(from, steps) {
  let entry = from;
  for (let step = 0; step < Math.abs(steps); step += 1) {
    const next = steps > 0 ? entry.nextElementSibling : entry.previousElementSibling;
    if (next === null) break;
    entry = next;
  }
  return entry;
}

function createItem(entry) {
  const item = document.createElement("li");
  item.tabIndex = -1;
  item.className = `entry entry-${entry.category}`;
  const category = document.createElement("span");
  category.className = "category";
  category.lang = phrases.lang;
  category.textContent = `${phrases.categoryLabels[entry.category]}:`;
  item.append(createTime(entry.at), " ", category, " ", ...createSpans(entry.parts));
  return item;
}
