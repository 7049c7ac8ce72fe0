// The list of sessions, each with what it does and a button that stops it.

import { phrases } from "./phrases.js";
import { spans } from "./voice.js";
import { named, own, state } from "./words.js";

/** Sessions under way that are listed; the others wait until one of these has ended. */
const MOST_LISTED = 50;
/** Sessions that have ended and are still shown. */
const MOST_ENDED = 20;

export class Sessions {
  #list;
  #none;
  #stop;
  #shown = new Map();
  #waiting = new Map();

  /** `stop` stops a session. */
  constructor(list, none, stop) {
    this.#list = list;
    this.#none = none;
    this.#stop = stop;
  }

  /** Says all of it again, in the language in use. */
  translate() {
    this.#tellRest();
    for (const shown of this.#shown.values()) {
      shown.looks = undefined;
      if (shown.button !== undefined) shown.button.textContent = phrases.stop;
      this.#draw(shown.session);
    }
  }

  update(session) {
    if (session.gone) {
      this.#waiting.delete(session.id);
      this.#remove(session.id);
      return;
    }
    if (session.ended === undefined && !this.#shown.has(session.id) && this.#open() >= MOST_LISTED) {
      this.#waiting.set(session.id, session);
    } else {
      this.#waiting.delete(session.id);
      this.#draw(session);
    }
    this.#tellRest();
  }

  #tellRest() {
    const more = this.#waiting.size;
    this.#none.hidden = more === 0 && this.#open() > 0;
    const none = this.#shown.size === 0 ? phrases.nobodyAtWork : phrases.nobodyNow;
    this.#none.textContent = more === 0 ? none : phrases.moreAtWork(more);
  }

  #open() {
    return [...this.#shown.values()].filter((one) => one.button !== undefined).length;
  }

  #draw(session) {
    const shown = this.#shown.get(session.id) ?? this.#add(session);
    shown.session = session;
    // Most events change nothing here.
    const looks = JSON.stringify([session.agent, session.title, session.state, session.ended]);
    if (shown.looks === looks) return;
    shown.looks = looks;
    shown.title.replaceChildren(...spans([named(session.agent, ": "), session.title ?? own(phrases.beganBefore)]));
    const ended = session.ended === undefined ? undefined : `${phrases.ended[session.ended]}.`;
    shown.state.textContent = ended ?? phrases.now(state(session.state ?? "thinking"));
    if (session.ended === undefined || shown.button === undefined) return;
    if (shown.button === document.activeElement) shown.title.focus();
    shown.button.remove();
    shown.button = undefined;
    this.#forgetOld();
    const [next] = this.#waiting.values();
    if (next !== undefined) this.update(next);
  }

  #add(session) {
    const item = document.createElement("li");
    const title = document.createElement("h3");
    title.tabIndex = -1;
    title.id = `title-${session.id}`;
    const now = document.createElement("p");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = phrases.stop;
    button.id = `stop-${session.id}`;
    button.setAttribute("aria-labelledby", `${button.id} ${title.id}`);
    button.addEventListener("click", async (event) => {
      if (event.detail > 1 || button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true");
      const stopped = await this.#stop(session.id);
      if (!stopped) button.removeAttribute("aria-disabled");
    });
    item.append(title, now, button);
    this.#list.prepend(item);
    const shown = { item, title, state: now, button };
    this.#shown.set(session.id, shown);
    return shown;
  }

  #forgetOld() {
    const ended = [...this.#shown].filter(([, one]) => one.button === undefined && !one.item.contains(document.activeElement));
    for (const [id] of ended.slice(0, Math.max(0, ended.length - MOST_ENDED))) this.#remove(id);
  }

  #remove(id) {
    this.#shown.get(id)?.item.remove();
    this.#shown.delete(id);
  }
}
