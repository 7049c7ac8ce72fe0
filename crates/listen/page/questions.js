// The open questions: the list at the top of the page, the cards in the timelines, and the dialog that shows one question.

import { phrases } from "./phrases.js";
import { createElement } from "./element.js";
import { QuestionCard, createQuestionTexts, createQuestionTitle } from "./question_card.js";
import { QuestionDialog } from "./question_dialog.js";
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
  #countdowns;
  #onCount;
  #open = new Map();
  #cards = new Map();
  #isDrawPending = false;
  #dialog;

  /**
   * `hub` has `reply(question, answer)`, `extend(question)`, `stop(session)` and `time()`. `announcer` makes the announcements. `onCount`
   * is called when the number of open questions changes.
   */
  constructor(hub, { announcer, countdowns, onCount }) {
    this.#hub = hub;
    this.#announcer = announcer;
    this.#countdowns = countdowns;
    this.#onCount = onCount;
  }

  /** Adds a question. Returns its card for the timeline of its session. */
  add(question) {
    this.#open.set(question.token, question);
    question.timers = [];
    const card = new QuestionCard(question);
    this.#cards.set(question.token, card);
    this.#drawSoon();
    return card.element;
  }

  /** Updates the remaining time after an extension. */
  onExtended(question) {
    this.#countdowns.update(question);
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

  /** Removes a closed question, and shows its outcome on its card and in its dialog. */
  onQuestionClosed(question) {
    this.#open.delete(question.token);
    question.timers?.forEach(clearTimeout);
    this.#countdowns.remove(question);
    this.#cards.get(question.token)?.draw();
    this.#cards.delete(question.token);
    this.#announcer.drop((one) => one.questionToken === question.token || one.key === `time ${question.token}`);
    this.#draw();
    if (this.#dialog?.question !== question) return;
    if (question.sentAnswer !== undefined || question.isStopped) {
      this.#dialog.close();
      return;
    }
    this.#dialog.showOutcome(question);
    this.#announcer.interrupt();
  }

  /** Redraws the list and the cards in the current language. An open dialog is not redrawn, because the person is reading it. */
  translate() {
    document.getElementById("question-list").replaceChildren();
    for (const card of this.#cards.values()) card.draw();
    this.#draw();
  }

  get size() {
    return this.#open.size;
  }

  /** Opens the dialog of a question that the person has chosen, so an answer cannot be meant for another one. */
  #openFromPage(question) {
    question.postponed = false;
    if (this.#dialog === undefined && this.#open.has(question.token)) this.#openDialog(question, -Infinity);
  }

  /** Opens the dialog of a question. Answers count from `ANSWER_GRACE_MS` after `appearedAt`. */
  #openDialog(question, appearedAt = performance.now()) {
    const previousFocus = document.activeElement;
    const position = [[...this.#open.keys()].indexOf(question.token) + 1, this.#open.size];
    this.#dialog = new QuestionDialog(question, position, {
      timeLeft: () => this.#timeLeft(question),
      createCountdown: (onTick) => this.#countdowns.create(question, onTick),
      answer: (dialog, answer) => {
        const isTooEarly = performance.now() - appearedAt < ANSWER_GRACE_MS;
        if (isTooEarly) dialog.showError([ownText(phrases.questionJustAppeared), ...question.text]);
        else this.#answer(dialog, question, answer);
      },
      extend: (dialog) => this.#extend(dialog, question),
      stop: (dialog) => this.#stop(dialog, question),
      onPostponed: () => this.#onPostponed(question),
      onClosed: () => this.#onDialogClosed(previousFocus),
    });
    this.#announcer.moveInto(this.#dialog.element);
    this.#dialog.open();
  }

  /** The person has just pressed the key, so the confirmation comes before everything else. The question does not open by itself again. */
  #onPostponed(question) {
    this.#announcer.drop((one) => one.questionToken === question.token);
    this.#announcer.announce({ parts: [ownText(phrases.questionStaysOpen)], critical: true, first: true });
  }

  #onDialogClosed(previousFocus) {
    this.#dialog = undefined;
    this.#announcer.moveOut();
    this.#announcer.interrupt();
    const target = previousFocus !== null && previousFocus !== document.body && previousFocus.isConnected ? previousFocus : document.getElementById("questions-title");
    target.focus();
    const next = [...this.#open.values()].find((one) => one.sentAnswer === undefined && !one.postponed);
    if (next !== undefined) this.#announcer.announce({ parts: next.text, critical: true, questionToken: next.token, session: next.session, key: `question ${next.token}` });
  }

  async #answer(dialog, question, answer) {
    question.sentAnswer = answer.decision ?? "answer";
    question.sentText = answer.decision === undefined ? describeAnswer(question, answer.response) : undefined;
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

  /** Draws the list once after all questions of a burst, because drawing it takes longer the more questions are open. */
  #drawSoon() {
    if (this.#isDrawPending) return;
    this.#isDrawPending = true;
    queueMicrotask(() => this.#draw());
  }

  #draw() {
    this.#isDrawPending = false;
    const list = document.getElementById("question-list");
    const notice = document.getElementById("no-questions");
    const shown = [...this.#open.values()].slice(0, MAX_LISTED);
    const items = new Map([...list.children].map((item) => [item.dataset.token, item]));
    shown.forEach((question, index) => {
      const item = items.get(question.token) ?? list.appendChild(this.#createItem(question));
      items.delete(question.token);
      const position = this.#open.size > 1 ? phrases.questionPosition(index + 1, this.#open.size) : "";
      item.querySelector(".position").textContent = position;
      this.#cards.get(question.token)?.showPosition(position);
      item.querySelector(".sent").textContent = question.sentAnswer === undefined ? "" : phrases.answerSent;
      if (this.#dialog?.question === question) this.#dialog.showPosition([index + 1, this.#open.size]);
    });
    for (const item of items.values()) {
      if (item.contains(document.activeElement)) document.getElementById("questions-title").focus();
      item.remove();
    }
    const more = this.#open.size - shown.length;
    notice.hidden = this.#open.size > 0 && more === 0;
    notice.textContent = more > 0 ? phrases.moreQuestionsWaiting(more) : phrases.noOpenQuestions;
    const open = this.#open.size;
    document.title = open === 0 ? phrases.title : phrases.titleWithQuestions(open);
    this.#onCount();
  }

  #createItem(question) {
    const item = createElement("li", {});
    item.classList.toggle("dangerous", question.isDangerous);
    item.dataset.token = question.token;
    const title = createElement("p", { id: `question-${question.token}`, className: "title" }, createQuestionTitle(question));
    const button = createElement("button", { type: "button", className: "primary", id: `answer-${question.token}` }, [phrases.answer]);
    button.setAttribute("aria-labelledby", `${button.id} ${title.id}`);
    button.addEventListener("click", () => this.#openFromPage(question));
    const text = createElement("div", {}, [createElement("p", { className: "position" }), title, ...createQuestionTexts(question), createElement("p", { className: "sent" })]);
    item.append(text, this.#countdowns.create(question), button);
    return item;
  }
}

/** Returns an answer as the person gave it: the label of a choice, yes or no, or what they typed. */
function describeAnswer({ choices }, response) {
  if (typeof response === "boolean") return response ? phrases.yes : phrases.no;
  return choices.find(({ value }) => value === response)?.label.text ?? String(response);
}
