// The dialog of one question. Each dialog belongs to one question, so an answer cannot reach another question. The focus starts on the
// dialog itself, so that an accidental Enter or Space answers nothing.

import { createSpans, replaceText, setParts } from "./announcer.js";
import { createElement } from "./element.js";
import { phrases } from "./phrases.js";
import { createQuestionTexts } from "./question_card.js";
import { nameText, ownLeadIn, ownText } from "./wording.js";

/** The text with the time left is updated this often, in seconds. It is not announced. */
const TIME_TEXT_STEP_SECONDS = 10;

export class QuestionDialog {
  #actions;
  /** For screen readers. The countdown shows the same. */
  #time = createElement("span", { className: "unseen" });
  #position = createElement("span", { className: "position", "aria-hidden": "true" });
  #text = createElement("div", { id: "dialog-text" });
  #details = createElement("div", { id: "dialog-details", className: "details", hidden: true });
  #answers = createElement("div", { className: "answers" });
  #error = createElement("p", { className: "error", id: "dialog-error" });

  /** `actions` has `answer`, `extend`, `stop`, `timeLeft`, `createCountdown`, `onPostponed` and `onClosed`. `position` is `[number, total]`. */
  constructor(question, position, actions) {
    this.question = question;
    this.#actions = actions;
    const properties = { id: "dialog", tabIndex: -1, className: "dialog", role: "dialog", "aria-modal": "true", "aria-labelledby": "dialog-title" };
    this.element = createElement("div", properties);
    this.element.classList.toggle("dangerous", question.isDangerous);
    this.#fill(position);
    this.showPosition(position);
  }

  open() {
    for (const region of findPageRegions()) region.inert = true;
    document.body.append(this.element);
    document.body.classList.add("has-dialog");
    this.element.addEventListener("keydown", (event) => this.#onKeyDown(event));
    // Firefox reports its caret, which is elsewhere on the page, after the new focus. Orca would then believe that the person has left the
    // dialog, and read its title again at the next Tab.
    getSelection()?.collapse(this.element.querySelector("#dialog-title"), 0);
    this.element.focus();
  }

  close() {
    if (!this.element.isConnected) return;
    this.element.remove();
    document.body.classList.remove("has-dialog");
    for (const region of findPageRegions()) region.inert = false;
    this.#actions.onClosed();
  }

  /** Shows and announces an error. Empty `parts` remove the error. */
  showError(parts) {
    setParts(this.#error, parts);
    if (parts.length > 0) this.#announce(parts);
  }

  /** Replaces the question with its outcome, because the question was closed elsewhere. */
  showOutcome({ outcome, result }) {
    this.#text.replaceChildren(createElement("p", { className: "outcome" }, createSpans(outcome)));
    this.#details.hidden = true;
    this.element.className = `dialog settled ${result}`;
    const close = createElement("button", { type: "button", className: "primary" }, [phrases.close]);
    close.addEventListener("click", () => this.close());
    // The announcer announces the outcome, because a screen reader does not read a focused dialog again.
    const hadFocus = this.#answers.contains(document.activeElement);
    this.#answers.replaceChildren(close);
    if (hadFocus) close.focus();
    this.#error.textContent = "";
    this.#position.textContent = "";
    this.element.querySelector("#dialog-title").textContent = phrases.questionClosed;
  }

  /** Updates the text with the time left, which a screen reader reads with the question. */
  showTime() {
    this.#time.textContent = `${this.#actions.timeLeft()} `;
  }

  /** Shows the position of the question among the open ones. */
  showPosition([number, total]) {
    if (this.question.outcome === undefined) this.#position.textContent = total > 1 ? phrases.questionPosition(number, total) : "";
  }

  #announce(parts, live = "assertive") {
    const region = this.element.querySelector(`[aria-live=${live}]`);
    const paragraph = createElement("p", { className: "unseen" });
    setParts(paragraph, parts);
    replaceText(region, paragraph);
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

  #fill([number, total]) {
    const { question } = this;
    const leadIn = total > 1 ? phrases.questionNumberFrom(number, total) : phrases.questionFrom;
    const title = createElement("h2", { id: "dialog-title" }, createSpans([ownLeadIn(leadIn), nameText(question.agent)]));
    const subject = createElement("p", { className: "subject", dir: question.title[0].dir ?? "" }, createSpans(question.title));
    this.#time.lang = phrases.lang;
    const time = createElement("p", { className: "time" }, [this.#time, ...createSpans(question.defaultNotice)]);
    this.#text.append(subject, ...createQuestionTexts(question), time);
    this.showTime();
    const countdown = this.#actions.createCountdown((seconds) => {
      if (seconds % TIME_TEXT_STEP_SECONDS === 0) this.showTime();
    });
    this.#text.append(countdown);
    if (question.isConfirmation) this.#addDecisionButtons();
    else this.#addResponseForm();
    const more = this.#createButton(phrases.moreTime, "quiet", () => this.#actions.extend(this));
    const stop = this.#createButton(phrases.stopAgent, "quiet danger", () => this.#actions.stop(this));
    const later = this.#createButton(phrases.answerLater, "quiet", () => this.#postpone());
    this.#answers.append(createElement("p", { className: "buttons" }, [more, this.#createDetailsButton(), stop, later]));
    const regions = ["assertive", "polite"].map((live) => createElement("div", { "aria-live": live }));
    const head = createElement("div", { className: "dialog-head" }, [title, this.#position]);
    this.element.append(head, this.#text, this.#details, this.#answers, this.#error, createElement("div", { className: "announcements" }, regions));
  }

  /**
   * Creates the button that shows and announces what the question itself does not say. It does not hide it again, but announces it again: with
   * `aria-expanded`, Orca would say "Focus mode" and "Browse mode" around the button.
   */
  #createDetailsButton() {
    const { details } = this.question;
    this.#details.append(...details.map((line) => createElement("p", {}, createSpans(line, true))));
    return this.#createButton(phrases.details, "quiet", () => {
      this.#details.hidden = false;
      this.#announce(details.flat(), "polite");
    });
  }

  #addDecisionButtons() {
    const { question } = this;
    const { allowedReplies } = question;
    const buttons = [];
    if (allowedReplies.includes("reject")) buttons.push(this.#createButton(phrases.rejectButton, "decision no", () => this.#actions.answer(this, { decision: "reject" })));
    if (allowedReplies.includes("accept")) buttons.push(this.#createButton(phrases.acceptButton, question.isDangerous ? "decision yes dangerous" : "decision yes", () => this.#actions.answer(this, { decision: "accept" })));
    this.#answers.append(createElement("p", { className: "buttons decide" }, buttons));
  }

  #addResponseForm() {
    const { responseKinds, choices } = this.question;
    const answer = (response) => this.#actions.answer(this, { response });
    const form = createElement("form", { noValidate: true });
    if (responseKinds.includes("yes_no")) {
      const [no, yes] = [this.#createButton(phrases.no, "decision no", () => answer(false)), this.#createButton(phrases.yes, "decision yes", () => answer(true))];
      form.append(createElement("p", { className: "buttons decide" }, [no, yes]));
    }
    if (responseKinds.includes("multiple_choice") && choices.length > 0) form.append(createChoices(choices));
    const acceptsText = responseKinds.includes("freetext");
    if (acceptsText || responseKinds.includes("numeric")) {
      const label = acceptsText ? (responseKinds.length > 1 ? phrases.orFreeText : phrases.yourAnswer) : phrases.yourNumber;
      const input = createElement("input", { type: "text", id: "response", autocomplete: "off", dir: "auto", maxLength: 16384, "aria-describedby": "dialog-error" });
      if (!acceptsText) input.inputMode = "decimal";
      form.append(createElement("p", {}, [createElement("label", { htmlFor: "response" }, [label]), input]));
    }
    if (form.querySelector("input") !== null) {
      form.append(createElement("p", { className: "buttons" }, [createElement("button", { type: "submit", className: "primary" }, [phrases.send])]));
    }
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

  #createButton(text, className, action) {
    const button = createElement("button", { type: "button", className }, [text]);
    // The second click of a double click is ignored. It was meant for the old content, which the first click has replaced.
    button.addEventListener("click", (event) => {
      if (event.detail <= 1) action();
    });
    return button;
  }
}

/** Creates the group of choices. */
function createChoices(choices) {
  // Paragraphs instead of a fieldset, because Orca reads no space after a legend or a group: "Choose oneLagos".
  const title = createElement("p", { id: "choices-title" }, [phrases.chooseOne]);
  const set = createElement("div", { className: "choices", role: "radiogroup", "aria-labelledby": "choices-title" }, [title]);
  choices.forEach(({ value, label }, index) => {
    const radio = createElement("input", { type: "radio", name: "choice", id: `choice-${index}`, value });
    set.append(createElement("p", { className: "check" }, [radio, createElement("label", { htmlFor: radio.id }, createSpans([label]))]));
  });
  return createElement("div", { role: "paragraph" }, [set]);
}

function findPageRegions() {
  return document.querySelectorAll("#top, #main, #settings");
}
