// The list of sessions. A session that another one started is inside the card of that session.

import { phrases } from "./phrases.js";
import { SessionCard } from "./session_card.js";

/** Maximum number of open sessions in the list. Further sessions are listed when one of these has ended. */
const MAX_LISTED = 50;
/** Maximum number of ended sessions in the list. */
const MAX_ENDED = 20;

export class Sessions {
  #list;
  #notice;
  #stop;
  #time;
  #onCount;
  #cards = new Map();
  /** The ids of the open sessions in the list, and of those that are not in the list yet. */
  #listed = new Set();
  #waiting = new Set();

  /**
   * `notice` shows how many sessions are not listed, or that no session is open. `stop(id)` stops a session and returns whether that
   * worked. `time()` returns the time of the hub's clock, in milliseconds. `onCount` is called when the number of open sessions may have changed.
   */
  constructor(list, notice, { stop, time, onCount }) {
    this.#list = list;
    this.#notice = notice;
    this.#stop = stop;
    this.#time = time;
    this.#onCount = onCount;
  }

  /** Redraws the list in the current language. */
  translate() {
    this.#updateNotice();
    for (const card of this.#cards.values()) card.translate();
  }

  /** Returns the card of a session, if there is one. */
  card(id) {
    return this.#cards.get(id);
  }

  /** Number of open sessions. */
  get openCount() {
    return this.#listed.size + this.#waiting.size;
  }

  /** Updates the estimates of the time that agents still need. */
  refresh() {
    for (const card of this.#cards.values()) if (card.isOpen) card.update(card.session);
  }

  update(session) {
    if (session.removed) {
      this.#remove(session.id);
      return;
    }
    const card = this.#cards.get(session.id) ?? this.#create(session);
    const hasEnded = card.update(session);
    if (hasEnded) {
      this.#listed.delete(session.id);
      if (this.#waiting.delete(session.id)) this.#attach(card);
      this.#moveEnded();
      this.#removeOldest();
      this.#listNext();
    }
    this.#updateNotice();
  }

  #create(session) {
    const card = new SessionCard(session, { stop: this.#stop, time: this.#time }, this.#parentOf(session) !== undefined);
    this.#cards.set(session.id, card);
    if (card.isOpen && this.#listed.size >= MAX_LISTED) this.#waiting.add(session.id);
    else this.#attach(card);
    return card;
  }

  #parentOf({ id, parent }) {
    return parent === undefined || parent === id ? undefined : this.#cards.get(parent);
  }

  #attach(card) {
    if (card.isOpen) this.#listed.add(card.session.id);
    const parent = this.#parentOf(card.session);
    if (parent === undefined) this.#list.prepend(card.element);
    else parent.addChild(card);
    this.#moveEnded();
  }

  /** Moves the cards of sessions that have ended below those that are at work, the latest first. A card with the focus stays. */
  #moveEnded() {
    const cards = [...this.#list.children];
    const lastAtWork = cards.findLast(isAtWork);
    const isMisplaced = (card, index) => index < cards.indexOf(lastAtWork) && !isAtWork(card) && !card.contains(document.activeElement);
    for (const card of cards.filter(isMisplaced)) lastAtWork.after(card);
  }

  #listNext() {
    const [next] = this.#waiting;
    if (next === undefined || this.#listed.size >= MAX_LISTED) return;
    this.#waiting.delete(next);
    this.#attach(this.#cards.get(next));
  }

  #updateNotice() {
    const more = this.#waiting.size;
    this.#notice.hidden = more === 0 && this.#listed.size > 0;
    const noneOpenText = this.#cards.size === 0 ? phrases.noSessions : phrases.noOpenSessions;
    this.#notice.textContent = more === 0 ? noneOpenText : phrases.moreSessions(more);
    this.#onCount();
  }

  #removeOldest() {
    const ended = [...this.#cards.values()].filter((card) => !card.isOpen && !card.element.contains(document.activeElement));
    for (const card of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) this.#remove(card.session.id);
  }

  #remove(id) {
    const card = this.#cards.get(id);
    if (card === undefined) return;
    this.#waiting.delete(id);
    this.#listed.delete(id);
    this.#cards.delete(id);
    // The sessions that this one started stay.
    card.element.replaceWith(...card.element.querySelectorAll(":scope > .children > li"));
  }
}

/** Whether a session, or one that it started, has not ended. */
function isAtWork(element) {
  return [element, ...element.querySelectorAll(".session")].some(({ dataset }) => ["working", "waiting"].includes(dataset.state));
}
