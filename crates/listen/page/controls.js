// The settings (verbosity, language, pace, quiet mode, notifications), the sign-in form and the demo form. Settings are stored in the
// browser, and those that concern the hub are sent to it.

import { Notifications } from "./notifications.js";
import { ALL_LANGUAGES, phrases } from "./phrases.js";
import { readError } from "./stream.js";
import { setParts } from "./announcer.js";
import { errorText } from "./wording.js";

const SETTINGS_KEY = "sayso.settings";
/** The language for which the person was informed that the page has no texts in it. */
const LANGUAGE_NOTICE_KEY = "sayso.language-notice";
/** Languages to choose from, in addition to the browser's. */
const LANGUAGES = ["en", "es", "yo", "ar", "bn", "de", "fa", "fr", "he", "hi", "id", "it", "ja", "ko", "pl", "pt", "ru", "sw", "tr", "uk", "ur", "vi", "zh"];

export class Settings {
  #onChange;

  /** Calls `onChange` with the settings whenever the person changes them. */
  constructor(onChange) {
    this.#onChange = onChange;
    const stored = readStoredSettings();
    const browserLanguages = navigator.languages.length > 0 ? navigator.languages : ["en"];
    for (const tag of new Set([...browserLanguages, ...LANGUAGES])) {
      const option = new Option(ownLanguageName(tag), tag);
      option.lang = tag;
      byId("language").append(option);
    }
    byId("verbosity").value = ["terse", "normal", "detailed"].includes(stored.verbosity) ? stored.verbosity : "normal";
    if ([...byId("language").options].some((option) => option.value === stored.language)) byId("language").value = stored.language;
    if (Number.isInteger(stored.pace) && stored.pace >= 50 && stored.pace <= 1000) byId("pace").value = stored.pace;
    byId("quiet").checked = stored.quiet === true;
    byId("notify").checked = stored.notify === true && globalThis.Notification?.permission === "granted";
    byId("settings-form").addEventListener("submit", (event) => event.preventDefault());
    byId("settings-form").addEventListener("change", (event) => (event.target.id === "notify" ? this.#handleNotify() : this.#handleChange()));
  }

  /** Whether the person has not been informed about this language yet. Records that they are informed now. */
  isNewLanguage(language) {
    try {
      if (localStorage.getItem(LANGUAGE_NOTICE_KEY) === language) return false;
      localStorage.setItem(LANGUAGE_NOTICE_KEY, language);
    } catch {
      // Without storage, the person is informed each time.
    }
    return true;
  }

  get current() {
    const languages = [...new Set([byId("language").value, ...navigator.languages, "en"])].slice(0, 32);
    return { verbosity: byId("verbosity").value, language: byId("language").value, languages, pace: Number(byId("pace").value), quiet: byId("quiet").checked, notify: byId("notify").checked };
  }

  /** Turns notifications on, if the browser allows them, or off. The hub does not need to know. */
  async #handleNotify() {
    const error = byId("notify").checked ? await Notifications.request() : undefined;
    if (error !== undefined) byId("notify").checked = false;
    byId("notify-error").textContent = error ?? "";
    this.#store();
  }

  #handleChange() {
    const pace = byId("pace");
    const isValid = pace.checkValidity() || pace.validity.stepMismatch;
    byId("pace-error").textContent = isValid ? "" : phrases.paceRange;
    pace.setAttribute("aria-invalid", String(!isValid));
    if (!isValid) return;
    this.#store();
    this.#onChange(this.current);
  }

  #store() {
    try {
      localStorage.setItem(SETTINGS_KEY, JSON.stringify(this.current));
    } catch {
      // Without storage, the settings last until the page is closed.
    }
  }
}

/** Returns the settings as AAEP capabilities. */
export function toCapabilities(settings) {
  return {
    preferred_verbosity: settings.verbosity,
    languages: settings.languages,
    pace_wpm: Math.round(settings.pace),
    cognitive_load: settings.quiet ? "low" : "medium",
  };
}

/** Sets up the button that shows and hides a panel: `settings` or `help`. Escape also hides it. */
export function setUpPanel(name) {
  const [panel, button] = [byId(name), byId(`${name}-button`)];
  const show = (isShown) => {
    panel.hidden = !isShown;
    button.setAttribute("aria-expanded", String(isShown));
    (isShown ? byId(`${name}-title`) : button).focus();
  };
  button.addEventListener("click", () => show(panel.hidden));
  byId(`${name}-close`).addEventListener("click", () => show(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(false);
  });
}

/** Sets up the sign-in form. */
export function setUpSignInForm(onSuccess, onFailure) {
  byId("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = byId("sign-in-error");
    error.textContent = "";
    try {
      const body = JSON.stringify({ token: byId("token").value.trim() });
      const response = await fetch("/login", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      if (!response.ok) throw await readError(response);
    } catch (failure) {
      setParts(error, [errorText(failure)]);
      byId("token").setAttribute("aria-invalid", "true");
      byId("token").focus();
      onFailure(errorText(failure));
      return;
    }
    byId("token").value = "";
    byId("token").removeAttribute("aria-invalid");
    onSuccess();
  });
}

/** Sets up the form for requests to the demo agent. */
export function setUpRequestForm(onFailure) {
  if (document.documentElement.dataset.demo !== "yes") return;
  byId("ask").hidden = false;
  byId("ask-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = byId("ask-error");
    error.textContent = "";
    const text = byId("request").value.trim();
    try {
      if (text === "") throw new Error(phrases.requestRequired);
      const response = await fetch("/demo", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }) });
      if (!response.ok) throw await readError(response);
      byId("request").value = "";
    } catch (failure) {
      setParts(error, [errorText(failure)]);
      onFailure(errorText(failure));
    }
  });
}

/** Returns the name of a language in that language, if it is known, so that people find theirs whatever language the page is in. */
function ownLanguageName(tag) {
  const own = ALL_LANGUAGES.find(({ lang }) => lang === tag);
  if (own !== undefined) return own.ownName;
  try {
    return new Intl.DisplayNames([tag, "en"], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

function readStoredSettings() {
  try {
    return JSON.parse(localStorage.getItem(SETTINGS_KEY)) ?? {};
  } catch {
    return {};
  }
}

export function byId(id) {
  return document.getElementById(id);
}
