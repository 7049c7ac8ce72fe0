// The voice: feeds live regions with what the queue gives, one thing at a time.
//
// Regions are in the page from the start, and their text comes into them as a new element: that is what was heard in Firefox and Chromium
// with Orca. `ariaNotify` is left alone: screen readers that do not know it are silent, and there is no way to ask.


import { phrases } from "./phrases.js";
import { joint, plain } from "./words.js";

export class Voice {
  #queue;
  #clock;
  #show;
  #busy;
  #regions;
  #timer;

  /**
   * `show` shows a question when its turn has come, and gives what to say instead where it cannot; `busy` says whether the person is typing.
   */
  constructor(queue, { clock, show, busy }) {
    this.#queue = queue;
    this.#clock = clock;
    this.#show = show;
    this.#busy = busy;
    this.#regions = [regions(document)];
  }

  say(said) {
    this.#queue.add(said);
    this.#go();
  }

  drop(of) {
    return this.#queue.drop(of);
  }

  /** The person has gone on; what waits need not wait for the rest. */
  hush() {
    this.#queue.hush(this.#clock());
    this.#go();
  }

  /** While a dialog is open, only what is in it is heard everywhere. */
  moveInto(dialog) {
    this.#regions.push(regions(dialog));
  }

  moveOut() {
    if (this.#regions.length > 1) this.#regions.pop();
  }

  #go() {
    clearTimeout(this.#timer);
    const now = this.#clock();
    if (this.#busy() && this.#queue.showsNext(now)) {
      this.#timer = setTimeout(() => this.#go(), 300);
      return;
    }
    const said = this.#queue.next(now);
    if (said !== undefined) {
      const instead = said.show === undefined ? said.parts : this.#show(said.show);
      if (instead !== undefined) {
        this.#queue.begin({ ...said, parts: instead }, now);
        this.#put(instead, said.critical === true);
      }
    }
    const at = this.#queue.wakeAt(now);
    if (at !== undefined) this.#timer = setTimeout(() => this.#go(), Math.min(Math.max(at - now, 20), 60000));
  }

  #put(parts, critical) {
    const { polite, assertive } = this.#regions.at(-1);
    const [region, other] = critical ? [assertive, polite] : [polite, assertive];
    const line = document.createElement("p");
    line.append(...spans(parts));
    other.replaceChildren();
    region.replaceChildren(line);
  }
}

/** Parts as elements. A producer's text is only ever text. */
export function spans(parts) {
  return parts.flatMap((part, index, all) => {
    const span = document.createElement("span");
    span.textContent = part.text;
    span.lang = part.lang;
    if (part.dir !== undefined) span.dir = part.dir;
    return index + 1 < all.length ? [span, joint(part)] : [span];
  });
}

/** Puts parts into an element: as its text, where all of it is in our language. It may stand there when we speak another one. */
export function put(element, parts) {
  element.lang = phrases.lang;
  if (parts.every((part) => part.lang === phrases.lang)) element.textContent = plain(parts);
  else element.replaceChildren(...spans(parts));
}

function regions(within) {
  return { polite: within.querySelector("[aria-live=polite]"), assertive: within.querySelector("[aria-live=assertive]") };
}
