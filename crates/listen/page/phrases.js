// The texts of the page in each language. `phrases` holds those of the current language.

import { en } from "./phrases/en.js";
import { es } from "./phrases/es.js";
import { yo } from "./phrases/yo.js";

/** Every language that the page has texts in. The first one is the default. */
export const ALL_LANGUAGES = [en, es, yo];

/** The phrases of the current language. */
export let phrases = en;

/** Whether the page has texts in a language. Regions are ignored. */
export function isAvailable(tag) {
  return ALL_LANGUAGES.some((one) => one.lang === primaryLanguage(tag));
}

function primaryLanguage(tag) {
  return String(tag).split("-")[0].toLowerCase();
}

/**
 * Selects the first of these languages in which the page has texts, or English if there is none. Regions are ignored: `es-MX` selects `es`.
 * Returns whether the language changed.
 */
export function selectLanguage(languages) {
  const before = phrases;
  phrases = languages.map((tag) => ALL_LANGUAGES.find((one) => one.lang === primaryLanguage(tag))).find(Boolean) ?? en;
  return phrases !== before;
}

/** Translates the static texts of the page into the current language. Their English originals are in index.html. */
export function translate(page) {
  page.documentElement.lang = phrases.lang;
  page.documentElement.dir = phrases.dir;
  for (const element of page.querySelectorAll("[data-text]")) {
    // Only the data of the text node changes, so that assistive technology sees the same node.
    const [text] = element.childNodes;
    element.dataset.english ??= text.data;
    text.data = phrases.page[element.dataset.text] ?? element.dataset.english;
  }
  for (const element of page.querySelectorAll("[data-label]")) {
    element.dataset.english ??= element.getAttribute("aria-label");
    element.setAttribute("aria-label", phrases.page[element.dataset.label] ?? element.dataset.english);
  }
}
