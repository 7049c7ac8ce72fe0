// The list of open questions, and the dialog that shows one of them. Each dialog belongs to one question, so an answer cannot reach another
// question. The focus starts on the dialog itself, so that an accidental Enter or Space answers nothing.

import { phrases } from "./phrases.js";
import { createSpans, setParts } from "./announcer.js";
import { errorText, formatDuration, nameText, ownLeadIn, ownText } from "./wording.js";

/** Maximum number of questions in the list. Further questions are listed when one of these is closed. */
const MAX_LISTED = 50;
/** How long to wait for the hub to confirm an answer or to grant more time before the person is informed, in milliseconds. The hub normally responds immediately. */
const RESPONSE_TIMEOUT_MS = 10000;
/** Maximum time for a question including all extensions, as a multiple of its original timeout. */
const MAX_EXTENSION_FACTOR = 10;

/** How long the dialog of a new question must be open before an answer counts, in milliseconds. An earlier answer was meant for something else. */
export const ANSWER_GRACE_MS = 1000;

export class Questions {
  #hub;
  #announcer;
  #open = new Map();
  #dialog;

  /** `hub` has `reply(question, answer)`, `extend(question)`, `stop(session)` and `time()`. `announcer` makes the announcements. */
  constructor(hub, announcer) {
    this.#hub = hub;
    this.#announcer = announcer;
  }

  add(question) {
    this.#open.set(question.token, question);
    question.timers = [];
    this.#draw();
  }

  /** Updates the remaining time in the open dialog after an extension. */
  onExtended(question) {
    if (this.#dialog?.question === question) this.#dialog.showTime();
  }

  /** Shows a question. Returns parts to announce if the dialog of another question is open. */
  show(token) {
    const question = this.#open.get(token);
    if (question === undefined) return undefined;
    if (this.#dialog === undefined) {
      this.#openDialog(question);
      return undefined;
    }
    if (this.#dialog.question === question) return undefined;
    // If several questions are waiting, only their number is announced. Each one is shown later.
    const more = this.#announcer.drop((one) => one.questionToken !== undefined);
    if (more > 0) {
      return [ownText(phrases.moreQuestionsArrived(more + 1, this.#open.size))];
    }
    return [ownLeadIn(phrases.anotherQuestionFrom), nameText(question.agent, ": "), ...question.title, ownText(phrases.questionsOpen(this.#open.size))];
  }

  /** Removes a closed question, and shows its outcome if its dialog is open. */
  onQuestionClosed(question) {
    this.#open.delete(question.token);
    question.timers?.forEach(clearTimeout);
    this.#announcer.drop((one) => one.questionToken === question.token || one.key === `time ${question.token}`);
    this.#draw();
    if (this.#dialog?.question !== question) return;
    if (question.sentAnswer !== undefined) {
      this.#dialog.close();
      return;
    }
    this.#dialog.showOutcome(question.outcome);
    this.#announcer.interrupt();
  }

  /** Redraws the list in the current language. An open dialog stays as it is, because the person is reading it. */
  translate() {
    for (const button of document.querySelectorAll("#question-list button")) button.textContent = phrases.answer;
    this.#draw();
  }

  get size() {
    return this.#open.size;
  }

  /** Opens the dialog of a question. Answers count from `ANSWER_GRACE_MS` after `appearedAt`. */
  #openDialog(question, appearedAt = performance.now()) {
    const previousFocus = document.activeElement;
    this.#dialog = new Dialog(question, {
      timeLeft: () => this.#timeLeft(question),
      answer: (dialog, answer) => {
        const isTooEarly = performance.now() - appearedAt < ANSWER_GRACE_MS;
        if (isTooEarly) dialog.showError([ownText(phrases.questionJustAppeared), ...question.text]);
        else this.#answer(dialog, question, answer);
      },
      extend: (dialog) => this.#extend(dialog, question),
      stop: (dialog) => this.#stop(dialog, question),
      onPostponed: () => this.#announcer.announce({ parts: [ownText(phrases.questionStaysOpen)] }),
      onClosed: () => this.#onDialogClosed(previousFocus),
    });
    this.#announcer.moveInto(this.#dialog.element);
    this.#dialog.open();
  }

  #onDialogClosed(previousFocus) {
    this.#dialog = undefined;
    this.#announcer.moveOut();
    this.#announcer.interrupt();
    const target = previousFocus !== null && previousFocus !== document.body && previousFocus.isConnected ? previousFocus : document.getElementById("questions-title");
    target.focus();
    const next = [...this.#open.values()].find((one) => one.sentAnswer === undefined && !one.postponed);
    if (next !== undefined) this.#announcer.announce({ parts: next.text, critical: true, questionToken: next.token, session: next.session });
  }

  async #answer(dialog, question, answer) {
    question.sentAnswer = answer.decision ?? "answer";
    dialog.showError([]);
    try {
      await this.#hub.reply(question, answer);
    } catch (error) {
      question.sentAnswer = undefined;
      dialog.showError([ownText(phrases.answerNotSent), errorText(error), ownText(phrases.stillOpen)]);
      return;
    }
    if (this.#dialog === dialog) dialog.close();
    question.timers.push(
      setTimeout(() => {
        if (!this.#open.has(question.token)) return;
        question.sentAnswer = undefined;
        this.#draw();
        this.#announcer.announce({ parts: [ownText(phrases.answerUnconfirmed), ...question.title], critical: true });
      }, RESPONSE_TIMEOUT_MS),
    );
    this.#draw();
  }

  /** Requests more time. The extension is granted when the hub reports it to all listeners (`onExtended`). */
  async #extend(dialog, question) {
    if (question.deadline >= question.askedAt + question.timeoutSeconds * 1000 * MAX_EXTENSION_FACTOR) {
      this.#announcer.announce({ parts: [ownText(`${phrases.extensionLimitReached} ${this.#timeLeft(question)}`)] });
      return;
    }
    question.extensionRequested = true;
    try {
      await this.#hub.extend(question);
    } catch (error) {
      question.extensionRequested = false;
      dialog.showError([ownText(phrases.extensionNotSent), errorText(error)]);
      return;
    }
    question.timers.push(
      setTimeout(() => {
        if (!question.extensionRequested) return;
        question.extensionRequested = false;
        this.#announcer.announce({ parts: [ownText(`${phrases.extensionNotGranted} ${this.#timeLeft(question)}`)] });
      }, RESPONSE_TIMEOUT_MS),
    );
  }

  async #stop(dialog, question) {
    const stopped = await this.#hub.stop(question.session);
    if (!stopped) dialog.showError([ownText(phrases.stopFailed), ownText(phrases.tryAgain)]);
  }

  #timeLeft(question) {
    return phrases.timeLeft(formatDuration((question.deadline - this.#hub.time()) / 1000));
  }

  #draw() {
    const list = document.getElementById("question-list");
    const notice = document.getElementById("no-questions");
    const shown = [...this.#open.values()].slice(0, MAX_LISTED);
    const items = new Map([...list.children].map((item) => [item.dataset.token, item]));
    for (const question of shown) {
      const item = items.get(question.token) ?? list.appendChild(this.#createItem(question));
      items.delete(question.token);
      item.querySelector(".sent").textContent = question.sentAnswer === undefined ? "" : phrases.answerSent;
    }
    for (const item of items.values()) {
      if (item.contains(document.activeElement)) document.getElementById("questions-title").focus();
      item.remove();
    }
    const more = this.#open.size - shown.length;
    notice.hidden = this.#open.size > 0 && more === 0;
    notice.textContent = more > 0 ? phrases.moreQuestionsWaiting(more) : phrases.noOpenQuestions;
    const open = this.#open.size;
    document.title = open === 0 ? phrases.title : phrases.titleWithQuestions(open);
  }

  #createItem(question) {
    const item = createElement("li", {});
    item.dataset.token = question.token;
    const title = createElement("p", { id: `question-${question.token}` }, createSpans([nameText(question.agent, ": "), ...question.title]));
    const button = createElement("button", { type: "button", id: `answer-${question.token}` }, [phrases.answer]);
    button.setAttribute("aria-labelledby", `${button.id} ${title.id}`);
    button.addEventListener("click", () => {
      question.postponed = false;
      // The person has chosen this question, so an answer cannot be meant for another one.
      if (this.#dialog === undefined && this.#open.has(question.token)) this.#openDialog(question, -Infinity);
    });
    item.append(title, button, createElement("p", { className: "sent" }));
    return item;
  }
}

/** The dialog of one question. */
class Dialog {
  #actions;
  #time;
  #answers;
  #error;
  #text;

  constructor(question, actions) {
    this.question = question;
    this.#actions = actions;
    this.#text = createElement("div", { id: "dialog-text" });
    this.#time = createElement("p", {});
    this.#answers = createElement("div", { className: "answers" });
    this.#error = createElement("p", { className: "error", id: "dialog-error" });
    this.element = createElement("div", { id: "dialog", tabIndex: -1, className: "dialog" });
    this.element.setAttribute("role", "dialog");
    this.element.setAttribute("aria-modal", "true");
    this.element.setAttribute("aria-labelledby", "dialog-title");
    this.#fill();
  }

  open() {
    for (const region of findPageRegions()) region.inert = true;
    document.body.append(this.element);
    this.element.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.element.focus();
  }

  close() {
    if (!this.element.isConnected) return;
    this.element.remove();
    for (const region of findPageRegions()) region.inert = false;
    this.#actions.onClosed();
  }

  /** Shows and announces an error. Empty `parts` remove the error. */
  showError(parts) {
    setParts(this.#error, parts);
    if (parts.length > 0) this.#announce(parts);
  }

  /** Replaces the question with its outcome, because the question was closed elsewhere. */
  showOutcome(outcome) {
    this.#text.replaceChildren(createElement("p", {}, createSpans(outcome)));
    const close = createElement("button", { type: "button" }, [phrases.close]);
    close.addEventListener("click", () => this.close());
    // The announcer announces the outcome, because a screen reader does not read a focused dialog again.
    const hadFocus = this.#answers.contains(document.activeElement);
    this.#answers.replaceChildren(close);
    if (hadFocus) close.focus();
    this.#error.textContent = "";
    this.element.querySelector("#dialog-title").textContent = phrases.questionClosed;
  }

  showTime() {
    this.#time.textContent = `${this.#actions.timeLeft()} ${phrases.withoutAnswer[this.question.defaultDecision]}`;
  }

  #announce(parts) {
    const region = this.element.querySelector("[aria-live=assertive]");
    const paragraph = createElement("p", {});
    setParts(paragraph, parts);
    region.replaceChildren(paragraph);
  }

  #onKeyDown(event) {
    // Holding down a key presses a button only once.
    if (event.repeat && ["Enter", " "].includes(event.key) && event.target instanceof HTMLButtonElement) event.preventDefault();
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.#postpone();
  }

  #postpone() {
    this.question.postponed = true;
    const isClosed = this.question.outcome !== undefined;
    this.close();
    if (!isClosed) this.#actions.onPostponed();
  }

  #fill() {
    const { question } = this;
    const title = createElement("h2", { id: "dialog-title" }, createSpans([ownLeadIn(phrases.questionFrom), nameText(question.agent)]));
    const lines = question.body.map((part) => createElement("p", { dir: part.dir ?? "" }, createSpans([part])));
    this.#text.append(...lines, this.#time);
    this.showTime();
    if (question.isConfirmation) this.#addDecisionButtons();
    else this.#addResponseForm();
    const more = this.#createButton(phrases.moreTime, () => this.#actions.extend(this));
    const stop = this.#createButton(phrases.stopAgent, () => this.#actions.stop(this));
    const later = this.#createButton(phrases.answerLater, () => this.#postpone());
    this.#answers.append(createElement("p", { className: "buttons" }, [more, stop, later]));
    const details = createElement("p", { className: "details" }, createSpans(question.details));
    const polite = createElement("div", {});
    polite.setAttribute("aria-live", "polite");
    const assertive = createElement("div", {});
    assertive.setAttribute("aria-live", "assertive");
    const liveRegions = createElement("div", { className: "announcements" }, [polite, assertive]);
    this.element.append(title, this.#text, details, this.#answers, this.#error, liveRegions);
  }

  #addDecisionButtons() {
    const { allowedReplies } = this.question;
    const buttons = [];
    if (allowedReplies.includes("reject")) buttons.push(this.#createButton(phrases.noReject, () => this.#actions.answer(this, { decision: "reject" })));
    if (allowedReplies.includes("accept")) buttons.push(this.#createButton(phrases.yesAccept, () => this.#actions.answer(this, { decision: "accept" })));
    this.#answers.append(createElement("p", { className: "buttons decide" }, buttons));
  }

  #addResponseForm() {
    const { responseKinds, choices } = this.question;
    const answer = (response) => this.#actions.answer(this, { response });
    const form = createElement("form", { noValidate: true });
    if (responseKinds.includes("yes_no")) {
      const [no, yes] = [this.#createButton(phrases.no, () => answer(false)), this.#createButton(phrases.yes, () => answer(true))];
      form.append(createElement("p", { className: "buttons decide" }, [no, yes]));
    }
    if (responseKinds.includes("multiple_choice") && choices.length > 0) {
      // Paragraphs instead of a fieldset, because Orca reads no space after a legend or a group: "Choose oneLagos".
      const set = createElement("div", { className: "choices" }, [createElement("p", { id: "choices-title" }, [phrases.chooseOne])]);
      set.setAttribute("role", "radiogroup");
      set.setAttribute("aria-labelledby", "choices-title");
      choices.forEach(({ value, label }, index) => {
        const radio = createElement("input", { type: "radio", name: "choice", id: `choice-${index}`, value });
        set.append(createElement("p", { className: "check" }, [radio, createElement("label", { htmlFor: radio.id }, createSpans([label]))]));
      });
      const paragraph = createElement("div", {}, [set]);
      paragraph.setAttribute("role", "paragraph");
      form.append(paragraph);
    }
    const acceptsText = responseKinds.includes("freetext");
    if (acceptsText || responseKinds.includes("numeric")) {
      const label = acceptsText ? (responseKinds.length > 1 ? phrases.orFreeText : phrases.yourAnswer) : phrases.yourNumber;
      const input = createElement("input", { type: "text", id: "response", autocomplete: "off", dir: "auto", maxLength: 16384 });
      if (!acceptsText) input.inputMode = "decimal";
      input.setAttribute("aria-describedby", "dialog-error");
      form.append(createElement("p", {}, [createElement("label", { htmlFor: "response" }, [label]), input]));
    }
    if (form.querySelector("input") !== null) form.append(createElement("p", { className: "buttons" }, [createElement("button", { type: "submit" }, [phrases.send])]));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const response = this.#readResponse(form, responseKinds);
      if (response !== undefined) answer(response);
    });
    this.#answers.append(form);
  }

  #readResponse(form, responseKinds) {
    const typed = form.querySelector("#response")?.value.trim() ?? "";
    const chosen = form.querySelector("input[name=choice]:checked")?.value;
    const reject = (message) => {
      this.showError([ownText(message)]);
      form.querySelector("#response, input")?.focus();
      return undefined;
    };
    if (typed === "") return chosen ?? reject(phrases.answerRequired);
    if (!responseKinds.includes("numeric")) return typed;
    const number = Number(typed.replace(",", "."));
    if (Number.isFinite(number)) return number;
    return responseKinds.includes("freetext") ? typed : reject(phrases.notANumber);
  }

  #createButton(text, action) {
    const button = createElement("button", { type: "button" }, [text]);
    // The second click of a double click is ignored. It was meant for the old content, which the first click has replaced.
    button.addEventListener("click", (event) => {
      if (event.detail <= 1) action();
    });
    return button;
  }
}

function findPageRegions() {
  return document.querySelectorAll("#top, #main, #settings");
}

function createElement(name, properties, children = []) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}
