// The list of hand-offs: agents that wait until somebody takes over. The person can take over or decline, with a note for the agent.

import { createSpans, setParts } from "./announcer.js";
import { createBadge, createElement } from "./element.js";
import { phrases } from "./phrases.js";
import { errorText, nameText, ownText } from "./wording.js";

/** Maximum length of a note, in characters. The hub has the same limit. */
const MAX_NOTE_CHARS = 1024;
/** After the list has changed, a click in this time is not sent, in milliseconds. It may have been meant for another hand-off. */
const CHANGE_GRACE_MS = 1000;

export class Handoffs {
  #answer;
  #announcer;
  #countdowns;
  #open = new Map();
  #items = new Map();
  #changedAt = -Infinity;

  /** `answer(handoff, kind, note)` sends an answer, where the kind is `acknowledge` or `reject`. */
  constructor(answer, { announcer, countdowns }) {
    this.#answer = answer;
    this.#announcer = announcer;
    this.#countdowns = countdowns;
  }

  add(handoff) {
    this.#open.set(handoff.token, handoff);
    this.#draw();
  }

  remove(handoff) {
    this.#open.delete(handoff.token);
    this.#countdowns.remove(handoff);
    this.#draw();
  }

  /** Redraws the list in the current language. Notes that are being written stay. */
  translate() {
    const notes = new Map([...this.#items].map(([token, item]) => [token, item.querySelector("input").value]));
    for (const item of this.#items.values()) item.remove();
    this.#items.clear();
    this.#draw();
    for (const [token, note] of notes) if (this.#items.has(token)) this.#items.get(token).querySelector("input").value = note;
  }

  /** Draws the list, the most urgent hand-off first. */
  #draw() {
    this.#changedAt = performance.now();
    const list = document.getElementById("handoff-list");
    document.getElementById("handoffs").hidden = this.#open.size === 0;
    for (const [token, item] of this.#items) {
      if (this.#open.has(token)) continue;
      if (item.contains(document.activeElement)) document.getElementById("questions-title").focus();
      item.remove();
      this.#items.delete(token);
    }
    const sorted = [...this.#open.values()].toSorted((one, other) => one.rank - other.rank);
    sorted.forEach((handoff, index) => {
      if (!this.#items.has(handoff.token)) this.#items.set(handoff.token, this.#createItem(handoff));
      const item = this.#items.get(handoff.token);
      // Items that are in their place are not moved, because that would take the focus away.
      if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
    });
  }

  #createItem(handoff) {
    const { token } = handoff;
    const title = createElement("p", { id: `handoff-${token}`, className: "title" }, createSpans([nameText(handoff.agent, ": "), handoff.reason]));
    const badges = handoff.isUrgent ? [createElement("p", { className: "badges" }, [createBadge(phrases.handoffUrgent, "risk-medium")])] : [];
    const details = handoff.details.map((line) => createElement("p", { className: "detail" }, createSpans(line, true)));
    const note = createElement("input", { type: "text", id: `note-${token}`, autocomplete: "off", dir: "auto", maxLength: MAX_NOTE_CHARS, "aria-describedby": `handoff-error-${token}` });
    const field = createElement("p", {}, [createElement("label", { htmlFor: note.id }, [phrases.handoffNoteField]), note]);
    const error = createElement("p", { className: "error", id: `handoff-error-${token}` });
    const button = (text, kind, className) => {
      const created = createElement("button", { type: "button", id: `${kind}-${token}`, className }, [text]);
      created.setAttribute("aria-labelledby", `${created.id} ${title.id}`);
      created.addEventListener("click", (event) => {
        if (event.detail <= 1) this.#send(handoff, kind, note.value.trim(), error);
      });
      return created;
    };
    const buttons = createElement("p", { className: "buttons" }, [button(phrases.takeOver, "acknowledge", "primary"), button(phrases.decline, "reject", "")]);
    return createElement("li", {}, [title, ...badges, ...details, this.#countdowns.create(handoff), field, buttons, error]);
  }

  async #send(handoff, kind, note, error) {
    const report = (parts) => {
      setParts(error, parts);
      if (parts.length > 0) this.#announcer.announce({ parts, critical: true, first: true });
    };
    if (performance.now() - this.#changedAt < CHANGE_GRACE_MS) {
      report([ownText(phrases.handoffsJustChanged)]);
      return;
    }
    if (handoff.sentAnswer !== undefined) return;
    handoff.sentAnswer = kind;
    report([]);
    try {
      await this.#answer(handoff, kind, note);
    } catch (failure) {
      handoff.sentAnswer = undefined;
      report([ownText(phrases.answerNotSent), errorText(failure)]);
    }
  }
}
