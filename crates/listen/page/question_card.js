// How a question looks: its text, badges for the risk, and the card at its place in the timeline of its session.

import { createSpans } from "./announcer.js";
import { createBadge, createElement } from "./element.js";
import { phrases } from "./phrases.js";
import { nameText } from "./wording.js";

/** Creates the badges of a question: the risk, and whether the action can be undone. */
function createBadges(question) {
  // The texts end with a full stop, so that a screen reader pauses between them.
  const badges = question.risks.flatMap(({ kind, text }) => [createBadge(text, kind, question.lang), " "]);
  // A screen reader hears the strongest warning with the call.
  const hidden = question.areRisksSpoken ? {} : { "aria-hidden": "true" };
  return badges.length === 0 ? [] : [createElement("p", { className: "badges", ...hidden }, badges)];
}

/** Creates the texts of a question below its title: consequence or context, the exact call if the title does not say it, and warnings. */
export function createQuestionTexts(question) {
  const line = (part, className) => createElement("p", { className, dir: part.dir ?? "" }, createSpans([part]));
  const texts = [];
  if (question.consequence !== undefined) texts.push(line(question.consequence, "consequence"));
  if (question.exactCall !== undefined) texts.push(line(question.exactCall, "exact-call"));
  texts.push(...createBadges(question));
  if (question.warning !== undefined) texts.push(line(question.warning, "warning"));
  return texts;
}

/** The card of a question in the timeline of its session: that it was asked, then its outcome. The list of questions is where it is answered. */
export class QuestionCard {
  #question;
  #position;

  constructor(question) {
    this.#question = question;
    this.element = createElement("li", { className: "question-card" });
    this.draw();
  }

  /** Draws the card in the current language. */
  draw() {
    const question = this.#question;
    this.element.classList.toggle("dangerous", question.isDangerous);
    if (question.outcome !== undefined) {
      this.#showOutcome();
      return;
    }
    this.#position ??= createElement("span", { className: "position" });
    const eyebrow = createElement("p", { className: "eyebrow", lang: phrases.lang }, [createBadge(phrases.waitingForYou, "waiting"), this.#position]);
    const title = createElement("p", { className: "title", dir: question.title[0].dir ?? "" }, createSpans(question.title));
    this.element.replaceChildren(eyebrow, title);
  }

  /** Shows the position of the question among the open ones. */
  showPosition(text) {
    // The space is inside, because Chromium forgets a space in front of an element that was empty.
    if (this.#position !== undefined) this.#position.textContent = text === "" ? "" : ` ${text}`;
  }

  /** Shows the outcome. It is not the answer that the person sent, but what the hub has decided. */
  #showOutcome() {
    const { outcome, result } = this.#question;
    this.element.className = `question-card settled ${result}`;
    this.element.replaceChildren(createElement("p", { className: "outcome" }, createSpans(outcome)));
  }
}

/** Creates the title of a question with the name of its agent. */
export function createQuestionTitle(question) {
  return createSpans([nameText(question.agent, ": "), ...question.title]);
}
