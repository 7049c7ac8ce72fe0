// The log: everything that was heard, in order, to be walked by keyboard. It is no live region; what is to be heard is said elsewhere.

import { phrases } from "./phrases.js";
import { spans } from "./voice.js";

/** Entries that are kept. */
export const MOST_ENTRIES = 10000;
/** Entries that one turn of Page Up or Page Down passes. */
const PAGE = 10;
/** Entries come together, so that a flood costs one layout and not thousands. */
const TOGETHER = 50;
/** So many at a time, so that who presses a key in between is heard. */
const AT_ONCE = 200;

export class Log {
  #list;
  #dropped;
  #droppedCount = 0;
  #waiting = [];
  #timer;
  #current;
  /** Whether the newest is in sight: then it stays so. */
  #atEnd = true;

  constructor(list, dropped) {
    this.#list = list;
    this.#dropped = dropped;
    list.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("scroll", () => (this.#atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 48), { passive: true });
    list.addEventListener("focusin", (event) => this.#setCurrent(event.target.closest("li")));
  }

  add(entry) {
    this.#waiting.push(entry);
    if (this.#waiting.length > MOST_ENTRIES) {
      this.#waiting.shift();
      this.#droppedCount += 1;
    }
    this.#timer ??= setTimeout(() => this.#draw(), TOGETHER);
  }

  #draw() {
    this.#timer = undefined;
    const follows = !this.#list.contains(document.activeElement);
    this.#list.append(...this.#waiting.splice(0, AT_ONCE).map(item));
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#draw(), TOGETHER);
    this.#trim();
    this.translate();
    if (follows) this.#setCurrent(this.#list.lastElementChild);
    if (follows && this.#atEnd) this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** Says how much is not kept, in the language in use. Entries stay in that in which they were heard. */
  translate() {
    if (this.#droppedCount === 0) return;
    this.#dropped.hidden = false;
    this.#dropped.textContent = phrases.dropped(this.#droppedCount, MOST_ENTRIES);
  }

  #trim() {
    const many = this.#list.childElementCount - MOST_ENTRIES;
    if (many <= 0) return;
    const kept = this.#list.children[many];
    const old = document.createRange();
    old.setStartBefore(this.#list.firstElementChild);
    old.setEndBefore(kept);
    // Whoever stands on one of them is not thrown out.
    if (old.intersectsNode(document.activeElement) && this.#list.contains(document.activeElement)) kept.focus();
    old.deleteContents();
    this.#droppedCount += many;
  }

  /** One entry is a stop of the Tab key; the arrow keys lead to the others. */
  #setCurrent(entry) {
    if (entry === null || entry === this.#current) return;
    if (this.#current !== undefined) this.#current.tabIndex = -1;
    this.#current = entry;
    entry.tabIndex = 0;
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const here = event.target.closest("li");
    if (here === null) return;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE };
    let to;
    if (event.key === "Home") to = this.#list.firstElementChild;
    else if (event.key === "End") to = this.#list.lastElementChild;
    else if (Object.hasOwn(steps, event.key)) to = walk(here, steps[event.key]);
    else return;
    event.preventDefault();
    to.focus();
  }
}

function walk(from, steps) {
  let entry = from;
  for (let step = 0; step < Math.abs(steps); step += 1) {
    const next = steps > 0 ? entry.nextElementSibling : entry.previousElementSibling;
    if (next === null) break;
    entry = next;
  }
  return entry;
}

function item(entry) {
  const line = document.createElement("li");
  line.tabIndex = -1;
  line.className = `entry ${entry.word}`;
  const time = document.createElement("time");
  const at = new Date(entry.at);
  time.dateTime = at.toISOString();
  time.textContent = at.toLocaleTimeString("en-GB");
  const word = document.createElement("span");
  word.className = "word";
  word.lang = phrases.lang;
  word.textContent = `${phrases.words[entry.word]}:`;
  line.append(time, " ", word, " ", ...spans(entry.parts));
  return line;
}
