// The list of sessions, each with its state and a stop button.

import { phrases } from "./phrases.js";
import { createSpans } from "./announcer.js";
import { nameText, ownText, stateLabel } from "./wording.js";

/** Maximum number of open sessions in the list. Further sessions are listed when one of these has ended. */
const MAX_LISTED = 50;
/** Maximum number of ended sessions in the list. */
const MAX_ENDED = 20;

export class Sessions {
  #list;
  #notice;
  #stop;
  #shown = new Map();
  #waiting = new Map();

  /** `notice` shows how many sessions are not listed, or that no session is open. `stop(id)` stops a session and returns whether that worked. */
  constructor(list, notice, stop) {
    this.#list = list;
    this.#notice = notice;
    this.#stop = stop;
  }

  /** Redraws the list in the current language. */
  translate() {
    this.#updateNotice();
    for (const shown of this.#shown.values()) {
      shown.drawnContent = undefined;
      if (shown.button !== undefined) shown.button.textContent = phrases.stop;
      this.#draw(shown.session);
    }
  }

  update(session) {
    if (session.removed) {
      this.#waiting.delete(session.id);
      this.#remove(session.id);
      return;
    }
    if (session.ended === undefined && !this.#shown.has(session.id) && this.#openCount() >= MAX_LISTED) {
      this.#waiting.set(session.id, session);
    } else {
      this.#waiting.delete(session.id);
      this.#draw(session);
    }
    this.#updateNotice();
  }

  #updateNotice() {
    const more = this.#waiting.size;
    this.#notice.hidden = more === 0 && this.#openCount() > 0;
    const noneOpenText = this.#shown.size === 0 ? phrases.noSessions : phrases.noOpenSessions;
    this.#notice.textContent = more === 0 ? noneOpenText : phrases.moreSessions(more);
  }

  #openCount() {
    return [...this.#shown.values()].filter((one) => one.button !== undefined).length;
  }

  #draw(session) {
    const shown = this.#shown.get(session.id) ?? this.#add(session);
    shown.session = session;
    // Most events change nothing that the list shows.
    const content = JSON.stringify([session.agent, session.agentId, session.title, session.state, session.ended]);
    if (shown.drawnContent === content) return;
    shown.drawnContent = content;
    shown.title.replaceChildren(...createSpans([nameText(session.agent, ": "), session.title ?? ownText(phrases.startedEarlier)]));
    const outcome = session.ended === undefined ? undefined : `${phrases.ended[session.ended]}.`;
    const state = outcome ?? phrases.currentState(stateLabel(session.state ?? "thinking"));
    shown.state.textContent = session.agentId === undefined ? state : `${state} ${phrases.agentIdIs(session.agentId)}`;
    if (session.ended === undefined || shown.button === undefined) return;
    if (shown.button === document.activeElement) shown.title.focus();
    shown.button.remove();
    shown.button = undefined;
    this.#removeOldest();
    const [next] = this.#waiting.values();
    if (next !== undefined) this.update(next);
  }

  #add(session) {
    const item = document.createElement("li");
    const title = document.createElement("h3");
    title.tabIndex = -1;
    title.id = `title-${session.id}`;
    const state = document.createElement("p");
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
    item.append(title, state, button);
    this.#list.prepend(item);
    const shown = { item, title, state, button };
    this.#shown.set(session.id, shown);
    return shown;
  }

  #removeOldest() {
    const ended = [...this.#shown].filter(([, one]) => one.button === undefined && !one.item.contains(document.activeElement));
    for (const [id] of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) this.#remove(id);
  }

  #remove(id) {
    this.#shown.get(id)?.item.remove();
    this.#shown.delete(id);
  }
}
