// Desktop notifications of new questions, if the person has turned them on and is looking elsewhere.

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
    if (!this.#isOn() || document.hasFocus() || globalThis.Notification?.permission !== "granted") return;
    const title = `${phrases.questionFrom} ${question.agent}`;
    const notification = new Notification(title, { body: joinParts(question.title), tag: question.token, icon: "/page/icon.svg", lang: phrases.lang });
    // A notification cannot answer. It only brings the page to the front.
    notification.addEventListener("click", () => {
      window.focus();
      notification.close();
    });
    this.#shown.set(question.token, notification);
  }

  /** Removes the notification of a closed question. */
  close(question) {
    this.#shown.get(question.token)?.close();
    this.#shown.delete(question.token);
  }
}
