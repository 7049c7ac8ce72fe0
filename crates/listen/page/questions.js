// Open questions: a list of them, and a dialog for one at a time. Each dialog is made for its question and knows no other, so an answer
// cannot go astray. Focus is on the question's text: whoever presses Enter or Space by chance answers nothing.

import { phrases } from "./phrases.js";
import { put, spans } from "./voice.js";
import { because, begin, duration, named, own } from "./words.js";

/** Questions that are listed; the others wait until one of these is settled. */
const MOST_LISTED = 50;
/** The hub confirms an answer at once; so long without a word is a reason to say so. */
const UNCONFIRMED = 10000;
/** A question's time can be made so many times the first. */
const MOST_TIMES = 10;

export class Questions {
  #hub;
  #voice;
  #open = new Map();
  #dialog;

  /** `hub` has `reply(question, answer)`, `extend(question)`, `stop(session)` and `time()`; `voice` is told what to phrases. */
  constructor(hub, voice) {
    this.#hub = hub;
    this.#voice = voice;
  }

  ask(question) {
    this.#open.set(question.token, question);
    question.timers = [];
    this.#draw();
  }

  /** A question has more time; whoever is looking at it sees so. */
  moved(question) {
    if (this.#dialog?.question === question) this.#dialog.showTime();
  }

  /** Shows a question whose turn has come. What to say instead, where another one is being answered. */
  show(token) {
    const question = this.#open.get(token);
    if (question === undefined) return undefined;
    if (this.#dialog === undefined) {
      this.#openDialog(question);
      return undefined;
    }
    if (this.#dialog.question === question) return undefined;
    // Many are told by their number; each is shown when its turn comes.
    const more = this.#voice.drop((one) => one.show !== undefined);
    if (more > 0) {
      return [own(phrases.moreCame(more + 1, this.#open.size))];
    }
    return [begin(phrases.anotherFrom), named(question.agent, ": "), ...question.title, own(phrases.areOpen(this.#open.size))];
  }

  /** A question is over; whoever is looking at it is told how. */
  settled(question) {
    this.#open.delete(question.token);
    question.timers?.forEach(clearTimeout);
    this.#voice.drop((one) => one.show === question.token || one.key === `time ${question.token}`);
    this.#draw();
    if (this.#dialog?.question !== question) return;
    if (question.mine !== undefined) {
      this.#dialog.close();
      return;
    }
    this.#dialog.over(question.outcome);
    this.#voice.hush();
  }

  /** Says all that is listed again, in the language in use. A dialog that is open stays as it is: it is being read. */
  translate() {
    for (const button of document.querySelectorAll("#question-list button")) button.textContent = phrases.answer;
    this.#draw();
  }

  get size() {
    return this.#open.size;
  }

  #openDialog(question) {
    const before = document.activeElement;
    this.#dialog = new Dialog(question, {
      left: () => this.#left(question),
      answer: (dialog, answer) => this.#answer(dialog, question, answer),
      extend: (dialog) => this.#extend(dialog, question),
      stop: (dialog) => this.#stop(dialog, question),
      later: () => this.#voice.say({ parts: [own(phrases.staysOpen)] }),
      closed: () => this.#closed(before),
    });
    this.#voice.moveInto(this.#dialog.element);
    this.#dialog.open();
  }

  #closed(before) {
    this.#dialog = undefined;
    this.#voice.moveOut();
    this.#voice.hush();
    const back = before !== null && before !== document.body && before.isConnected ? before : document.getElementById("questions-title");
    back.focus();
    const next = [...this.#open.values()].find((one) => one.mine === undefined && !one.later);
    if (next !== undefined) this.#voice.say({ parts: next.text, critical: true, show: next.token, session: next.session });
  }

  async #answer(dialog, question, answer) {
    question.mine = answer.decision ?? "answer";
    dialog.fail([]);
    try {
      await this.#hub.reply(question, answer);
    } catch (error) {
      question.mine = undefined;
      dialog.fail([own(phrases.notSent), because(error), own(phrases.stillOpen)]);
      return;
    }
    if (this.#dialog === dialog) dialog.close();
    question.timers.push(
      setTimeout(() => {
        if (!this.#open.has(question.token)) return;
        question.mine = undefined;
        this.#draw();
        this.#voice.say({ parts: [own(phrases.unconfirmed), ...question.title], critical: true });
      }, UNCONFIRMED),
    );
    this.#draw();
  }

  /** Asks for more time. It is had once the hub says so, which tells everybody (`moved`). */
  async #extend(dialog, question) {
    if (question.deadline >= question.asked + question.seconds * 1000 * MOST_TIMES) {
      this.#voice.say({ parts: [own(`${phrases.noMoreTime} ${this.#left(question)}`)] });
      return;
    }
    question.wished = true;
    try {
      await this.#hub.extend(question);
    } catch (error) {
      question.wished = false;
      dialog.fail([own(phrases.noMoreTimeAsked), because(error)]);
      return;
    }
    question.timers.push(
      setTimeout(() => {
        if (!question.wished) return;
        question.wished = false;
        this.#voice.say({ parts: [own(`${phrases.notGiven} ${this.#left(question)}`)] });
      }, UNCONFIRMED),
    );
  }

  async #stop(dialog, question) {
    const stopped = await this.#hub.stop(question.session);
    if (!stopped) dialog.fail([own(phrases.notStopped), own(phrases.tryAgain)]);
  }

  #left(question) {
    return phrases.left(duration((question.deadline - this.#hub.time()) / 1000));
  }

  #draw() {
    const list = document.getElementById("question-list");
    const none = document.getElementById("no-questions");
    const shown = [...this.#open.values()].slice(0, MOST_LISTED);
    const known = new Map([...list.children].map((item) => [item.dataset.token, item]));
    for (const question of shown) {
      const item = known.get(question.token) ?? list.appendChild(this.#item(question));
      known.delete(question.token);
      item.querySelector(".sent").textContent = question.mine === undefined ? "" : phrases.wasSent;
    }
    for (const item of known.values()) {
      if (item.contains(document.activeElement)) document.getElementById("questions-title").focus();
      item.remove();
    }
    const more = this.#open.size - shown.length;
    none.hidden = this.#open.size > 0 && more === 0;
    none.textContent = more > 0 ? phrases.moreWait(more) : phrases.noneOpen;
    const open = this.#open.size;
    document.title = open === 0 ? phrases.title : phrases.titleWith(open);
  }

  #item(question) {
    const item = element("li", {});
    item.dataset.token = question.token;
    const title = element("p", { id: `question-${question.token}` }, spans([named(question.agent, ": "), ...question.title]));
    const button = element("button", { type: "button", id: `answer-${question.token}` }, [phrases.answer]);
    button.setAttribute("aria-labelledby", `${button.id} ${title.id}`);
    button.addEventListener("click", () => {
      question.later = false;
      if (this.#dialog === undefined && this.#open.has(question.token)) this.#openDialog(question);
    });
    item.append(title, button, element("p", { className: "sent" }));
    return item;
  }
}

/** The dialog of one question, and of no other. */
class Dialog {
  #acts;
  #time;
  #answers;
  #error;
  #text;

  constructor(question, acts) {
    this.question = question;
    this.#acts = acts;
    this.#text = element("div", { id: "dialog-text" });
    this.#time = element("p", {});
    this.#answers = element("div", { className: "answers" });
    this.#error = element("p", { className: "error", id: "dialog-error" });
    this.element = element("div", { id: "dialog", tabIndex: -1, className: "dialog" });
    this.element.setAttribute("role", "dialog");
    this.element.setAttribute("aria-modal", "true");
    this.element.setAttribute("aria-labelledby", "dialog-title");
    this.#fill();
  }

  open() {
    for (const part of others()) part.inert = true;
    document.body.append(this.element);
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.focus();
  }

  close() {
    if (!this.element.isConnected) return;
    this.element.remove();
    for (const part of others()) part.inert = false;
    this.#acts.closed();
  }

  /** What went wrong, in parts; none where nothing does any more. */
  fail(why) {
    put(this.#error, why);
    if (why.length > 0) this.#say(why);
  }

  /** Somebody or something else has settled it: nothing can be answered any more. */
  over(outcome) {
    this.#text.replaceChildren(element("p", {}, spans(outcome)));
    const close = element("button", { type: "button" }, [phrases.close]);
    close.addEventListener("click", () => this.close());
    // How it ended is said, not read: a dialog that has the focus already is not read again.
    const lost = this.#answers.contains(document.activeElement);
    this.#answers.replaceChildren(close);
    if (lost) close.focus();
    this.#error.textContent = "";
    this.element.querySelector("#dialog-title").textContent = phrases.isOver;
  }

  showTime() {
    this.#time.textContent = `${this.#acts.left()} ${phrases.silence[this.question.silence]}`;
  }

  #say(parts) {
    const region = this.element.querySelector("[aria-live=assertive]");
    const line = element("p", {});
    put(line, parts);
    region.replaceChildren(line);
  }

  #key(event) {
    // A key that is held down says a thing once.
    if (event.repeat && ["Enter", " "].includes(event.key) && event.target instanceof HTMLButtonElement) event.preventDefault();
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.#later();
  }

  #later() {
    this.question.later = true;
    const over = this.question.outcome !== undefined;
    this.close();
    if (!over) this.#acts.later();
  }

  #fill() {
    const { question } = this;
    const title = element("h2", { id: "dialog-title" }, spans([begin(phrases.questionFrom), named(question.agent)]));
    const lines = question.body.map((part) => element("p", { dir: part.dir ?? "" }, spans([part])));
    this.#text.append(...lines, this.#time);
    this.showTime();
    if (question.confirms) this.#confirm();
    else this.#clarify();
    const more = this.#button(phrases.moreTime, () => this.#acts.extend(this));
    const stop = this.#button(phrases.stopAgent, () => this.#acts.stop(this));
    const later = this.#button(phrases.later, () => this.#later());
    this.#answers.append(element("p", { className: "buttons" }, [more, stop, later]));
    const details = element("p", { className: "details" }, spans(question.details));
    const polite = element("div", {});
    polite.setAttribute("aria-live", "polite");
    const assertive = element("div", {});
    assertive.setAttribute("aria-live", "assertive");
    const said = element("div", { className: "said" }, [polite, assertive]);
    this.element.append(title, this.#text, details, this.#answers, this.#error, said);
  }

  #confirm() {
    const { allowed } = this.question;
    const buttons = [];
    if (allowed.includes("reject")) buttons.push(this.#button(phrases.noReject, () => this.#acts.answer(this, { decision: "reject" })));
    if (allowed.includes("accept")) buttons.push(this.#button(phrases.yesAccept, () => this.#acts.answer(this, { decision: "accept" })));
    this.#answers.append(element("p", { className: "buttons decide" }, buttons));
  }

  #clarify() {
    const { kinds, choices } = this.question;
    const answer = (response) => this.#acts.answer(this, { response });
    const form = element("form", { noValidate: true });
    if (kinds.includes("yes_no")) {
      const [no, yes] = [this.#button(phrases.no, () => answer(false)), this.#button(phrases.yes, () => answer(true))];
      form.append(element("p", { className: "buttons decide" }, [no, yes]));
    }
    if (kinds.includes("multiple_choice") && choices.length > 0) {
      // Orca puts a space after a paragraph, and none after a legend or a group: "Choose oneLagos".
      const set = element("div", { className: "choices" }, [element("p", { id: "choices-title" }, [phrases.chooseOne])]);
      set.setAttribute("role", "radiogroup");
      set.setAttribute("aria-labelledby", "choices-title");
      choices.forEach(({ value, label }, index) => {
        const radio = element("input", { type: "radio", name: "choice", id: `choice-${index}`, value });
        set.append(element("p", { className: "check" }, [radio, element("label", { htmlFor: radio.id }, spans([label]))]));
      });
      const paragraph = element("div", {}, [set]);
      paragraph.setAttribute("role", "paragraph");
      form.append(paragraph);
    }
    const numeric = kinds.includes("numeric");
    if (numeric || kinds.includes("freetext")) {
      const words = kinds.includes("freetext");
      const text = words ? (kinds.length > 1 ? phrases.inYourWords : phrases.yourAnswer) : phrases.yourNumber;
      const input = element("input", { type: "text", id: "response", autocomplete: "off", dir: "auto", maxLength: 16384 });
      if (!words) input.inputMode = "decimal";
      input.setAttribute("aria-describedby", "dialog-error");
      form.append(element("p", {}, [element("label", { htmlFor: "response" }, [text]), input]));
    }
    if (form.querySelector("input") !== null) form.append(element("p", { className: "buttons" }, [element("button", { type: "submit" }, [phrases.send])]));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const response = this.#response(form, kinds);
      if (response !== undefined) answer(response);
    });
    this.#answers.append(form);
  }

  #response(form, kinds) {
    const typed = form.querySelector("#response")?.value.trim() ?? "";
    const chosen = form.querySelector("input[name=choice]:checked")?.value;
    const wrong = (why) => {
      this.fail([own(why)]);
      form.querySelector("#response, input")?.focus();
      return undefined;
    };
    if (typed === "") return chosen ?? wrong(phrases.noAnswerYet);
    if (!kinds.includes("numeric")) return typed;
    const number = Number(typed.replace(",", "."));
    if (Number.isFinite(number)) return number;
    return kinds.includes("freetext") ? typed : wrong(phrases.notANumber);
  }

  #button(text, act) {
    const button = element("button", { type: "button" }, [text]);
    // The second half of a double click was meant for what stood there before.
    button.addEventListener("click", (event) => {
      if (event.detail <= 1) act();
    });
    return button;
  }
}

function others() {
  return document.querySelectorAll("#top, #main, #settings");
}

function element(name, properties, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
