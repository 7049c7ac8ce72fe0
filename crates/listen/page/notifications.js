// Desktop notifications of new questions and hand-offs, if the person has turned them on and is looking elsewhere.

import { phrases } from "./phrases.js";
import { joinParts } from "./wording.js";

export class Notifications {
  #isOn;
  #shown = new Map();

  /** `isOn()` returns whether the person wants notifications. */
  constructor(isOn) {
    this.#isOn = isOn;
  }

  /** Asks the browser for permission. Returns an error text, or `undefined` if notifications are allowed. */
  static async request() {
    if (!isSecureContext || globalThis.Notification === undefined) return phrases.notifyUnavailable;
    const permission = await Notification.requestPermission();
    return permission === "granted" ? undefined : phrases.notifyDenied;
  }

  /** Shows a question, unless the person sees the page. */
  show(question) {
    this.#show(question.token, `${phrases.questionFrom} ${question.agent}`, question.title);
  }

  /** Shows a hand-off, unless the person sees the page. */
  showHandoff(handoff) {
    this.#show(handoff.token, `${phrases.handoffFrom} ${handoff.agent}`, [handoff.reason]);
  }

  #show(token, title, parts) {
    if (!this.#isOn() || document.hasFocus() || globalThis.Notification?.permission !== "granted") return;
    const notification = new Notification(title, { body: joinParts(parts), tag: token, icon: "/page/icon.svg", lang: phrases.lang });
    // A notification cannot answer. It only brings the page to the front.
    notification.addEventListener("click", () => {
      window.focus();
      notification.close();
    });
    this.#shown.set(token, notification);
  }

  /** Removes the notification of a closed question or hand-off. */
  close({ token }) {
    this.#shown.get(token)?.close();
    this.#shown.delete(token);
  }
}
