// What the person sets: how much, which language, which pace, how quiet. It is kept in this browser, and told to the hub.

import { phrases } from "./phrases.js";
import { reason } from "./stream.js";
import { put } from "./voice.js";
import { because } from "./words.js";

const KEPT = "sayso.settings";
/** Languages to choose from, beside those that the browser names. */
const LANGUAGES = ["en", "es", "yo", "ar", "bn", "de", "fa", "fr", "he", "hi", "id", "it", "ja", "ko", "pl", "pt", "ru", "sw", "tr", "uk", "ur", "vi", "zh"];

export class Settings {
  #changed;

  /** `changed` is told the settings whenever the person has changed them. */
  constructor(changed) {
    this.#changed = changed;
    const kept = read();
    const own = navigator.languages.length > 0 ? navigator.languages : ["en"];
    for (const tag of new Set([...own, ...LANGUAGES])) by("language").append(new Option(tag, tag));
    this.nameLanguages();
    by("verbosity").value = ["terse", "normal", "detailed"].includes(kept.verbosity) ? kept.verbosity : "normal";
    if ([...by("language").options].some((option) => option.value === kept.language)) by("language").value = kept.language;
    if (Number.isInteger(kept.pace) && kept.pace >= 50 && kept.pace <= 1000) by("pace").value = kept.pace;
    by("quiet").checked = kept.quiet === true;
    by("settings-form").addEventListener("submit", (event) => event.preventDefault());
    by("settings-form").addEventListener("change", () => this.#change());
  }

  /** Names the languages in the one in use. */
  nameLanguages() {
    const names = new Intl.DisplayNames([phrases.lang, "en"], { type: "language" });
    for (const option of by("language").options) option.textContent = names.of(option.value) ?? option.value;
  }

  get now() {
    const languages = [...new Set([by("language").value, ...navigator.languages, "en"])].slice(0, 32);
    return { verbosity: by("verbosity").value, language: by("language").value, languages, pace: Number(by("pace").value), quiet: by("quiet").checked };
  }

  #change() {
    const pace = by("pace");
    const good = pace.checkValidity() || pace.validity.stepMismatch;
    by("pace-error").textContent = good ? "" : phrases.paceRange;
    pace.setAttribute("aria-invalid", String(!good));
    if (!good) return;
    const { now } = this;
    try {
      localStorage.setItem(KEPT, JSON.stringify(now));
    } catch {
      // Then it holds until the page is closed.
    }
    this.#changed(now);
  }
}

/** The settings as the protocol's terms. */
export function capabilities(settings) {
  return {
    preferred_verbosity: settings.verbosity,
    languages: settings.languages,
    pace_wpm: Math.round(settings.pace),
    cognitive_load: settings.quiet ? "low" : "medium",
  };
}

/** The form to sign in, and what happens once somebody has. */
export function signIn(done, failed) {
  by("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = by("sign-in-error");
    error.textContent = "";
    try {
      const body = JSON.stringify({ token: by("token").value.trim() });
      const answer = await fetch("/login", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      if (!answer.ok) throw await reason(answer);
    } catch (why) {
      put(error, [because(why)]);
      by("token").setAttribute("aria-invalid", "true");
      by("token").focus();
      failed(because(why));
      return;
    }
    by("token").value = "";
    by("token").removeAttribute("aria-invalid");
    done();
  });
}

/** The field for those who want something of the assistant. */
export function askForm(failed) {
  if (document.documentElement.dataset.demo !== "yes") return;
  by("ask").hidden = false;
  by("ask-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = by("ask-error");
    error.textContent = "";
    const text = by("wish").value.trim();
    try {
      if (text === "") throw new Error(phrases.wishFirst);
      const answer = await fetch("/demo", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }) });
      if (!answer.ok) throw await reason(answer);
      by("wish").value = "";
    } catch (why) {
      put(error, [because(why)]);
      failed(because(why));
    }
  });
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

export function by(id) {
  return document.getElementById(id);
}
