// The visible countdowns of questions. Screen readers ignore them: the time left is announced when a question opens, and at half and
// at a tenth of its time.

import { createElement } from "./element.js";
import { phrases } from "./phrases.js";

export class Countdowns {
  #time;
  #shown = new Map();
  #timer;

  /** `time()` returns the time of the hub's clock, in milliseconds. */
  constructor(time) {
    this.#time = time;
  }

  /** Creates a countdown for a question. With `onTick`, that function is called with the remaining seconds whenever it changes. */
  create(question, onTick) {
    const text = createElement("span", { className: "time-left" });
    const bar = createElement("progress", {});
    const element = createElement("div", { className: "countdown", "aria-hidden": "true" }, [bar, text]);
    const shown = this.#shown.get(question) ?? [];
    this.#shown.set(question, shown);
    shown.push({ element, text, bar, onTick });
    this.#draw(question, shown.at(-1));
    this.#timer ??= setInterval(() => this.#tick(), 1000);
    return element;
  }

  /** Updates the countdowns of a question, for example after its deadline was extended. */
  update(question) {
    for (const one of this.#shown.get(question) ?? []) this.#draw(question, one);
  }

  /** Stops the countdowns of a question. */
  remove(question) {
    this.#shown.delete(question);
    if (this.#shown.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick() {
    for (const [question, shown] of this.#shown) {
      const connected = shown.filter((one) => one.element.isConnected);
      for (const one of connected) this.#draw(question, one);
    }
  }

  #draw(question, { text, bar, onTick }) {
    const seconds = Math.max(0, Math.round((question.deadline - this.#time()) / 1000));
    text.textContent = phrases.countdown(formatClock(seconds));
    text.lang = phrases.lang;
    bar.max = Math.max(1, (question.deadline - question.askedAt) / 1000);
    bar.value = seconds;
    onTick?.(seconds);
  }
}

/** Returns a duration as on a clock: `1:05`, or `2:00:05`. */
export function formatClock(seconds) {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
