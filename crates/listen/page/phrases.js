// What the page itself says, in each language. `phrases` are those of the language that was chosen last.

import { en } from "./phrases/en.js";
import { es } from "./phrases/es.js";
import { yo } from "./phrases/yo.js";

/** Every language that the page speaks itself. The first is spoken to whoever wants none of them. */
export const ALL = [en, es, yo];

/** The phrases in use. */
export let phrases = en;

/** From now on it speaks the first of these languages that it has, whatever the region; else English. Whether that is another than before. */
export function speak(languages) {
  const before = phrases;
  const primary = (tag) => String(tag).split("-")[0].toLowerCase();
  phrases = languages.map((tag) => ALL.find((one) => one.lang === primary(tag))).find(Boolean) ?? en;
  return phrases !== before;
}

/** Puts the texts that stand in the page itself into the language in use. Those in English are what the page came with. */
export function translate(page) {
  page.documentElement.lang = phrases.lang;
  for (const element of page.querySelectorAll("[data-text]")) {
    // The same node with another text: for who follows the page it is the same thing.
    const [text] = element.childNodes;
    element.dataset.english ??= text.data;
    text.data = phrases.page[element.dataset.text] ?? element.dataset.english;
  }
  for (const element of page.querySelectorAll("[data-label]")) {
    element.dataset.english ??= element.getAttribute("aria-label");
    element.setAttribute("aria-label", phrases.page[element.dataset.label] ?? element.dataset.english);
  }
}
