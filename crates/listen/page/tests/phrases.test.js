import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, test } from "node:test";

import { Subscriber } from "../subscriber.js";
import { ALL_LANGUAGES, phrases, selectLanguage } from "../phrases.js";
import { en } from "../phrases/en.js";
import { AnnouncementQueue } from "../queue.js";
import { formatDuration, joinParts, mergeParts } from "../wording.js";

afterEach(() => selectLanguage(["en"]));

/** Returns every text of a language by its path. Functions get sample arguments, and their text must contain them. */
function collectTexts(language, path = "") {
  const all = new Map();
  for (const [name, value] of Object.entries(language)) {
    const at = `${path}${name}`;
    if (typeof value === "function") {
      const samples = ["Ada", "Ben"].slice(0, value.length);
      const text = value(...samples);
      for (const sample of samples) assert.ok(text.includes(sample), `${at} omits an argument: ${text}`);
      all.set(at, `${samples.length} ${text}`);
    } else if (typeof value === "object") {
      for (const [inner, text] of collectTexts(value, `${at}.`)) all.set(inner, text);
    } else {
      all.set(at, value);
    }
  }
  return all;
}

/** Phrases that are the same in English and in the other language. */
const SAME_AS_ENGLISH = { es: ["dir", "no", "page.normal", "page.token"], yo: ["dir"] };

test("every language has every phrase, and none is left in English", () => {
  const index = readFileSync(new URL("../index.html", import.meta.url), "utf8");
  const inPage = [...index.matchAll(/data-text="(\w+)"[^>]*>([^<]+)</g)].map(([, name, text]) => [`page.${name}`, text]);
  inPage.push(...[...index.matchAll(/aria-label="([^"]+)" data-label="(\w+)"/g)].map(([, text, name]) => [`page.${name}`, text]));
  assert.equal(inPage.length, [...index.matchAll(/data-(text|label)=/g)].length);
  const english = new Map([...collectTexts(en), ...inPage]);
  assert.ok(english.size > 150, String(english.size));
  for (const language of ALL_LANGUAGES.slice(1)) {
    const own = collectTexts(language);
    assert.deepEqual([...own.keys()].toSorted(), [...english.keys()].toSorted(), language.lang);
    for (const [name, text] of own) {
      assert.match(text, /\p{L}/u, `${language.lang} ${name}`);
      if (name !== "lang") assert.equal(text === english.get(name), SAME_AS_ENGLISH[language.lang].includes(name), `${language.lang} ${name}: ${text}`);
      const ending = /[.:]$/.exec(english.get(name))?.[0] ?? "";
      assert.ok(text.endsWith(ending), `${language.lang} ${name} does not end with ${ending}: ${text}`);
    }
  }
});

test("every static text of the page can be translated", () => {
  const index = readFileSync(new URL("../index.html", import.meta.url), "utf8");
  const body = index.slice(index.indexOf("<body>")).replace(/<noscript>.*<\/noscript>/, "");
  const untranslated = [...body.matchAll(/<(\w+)([^>]*)>([^<]*\p{L}[^<]*)</gu)].filter(([, , attributes]) => !attributes.includes("data-text="));
  // The modules set these texts at run time. Their initial text in index.html is the English phrase.
  const dynamic = untranslated.map(([, , attributes]) => /id="([\w-]+)"/.exec(attributes)?.[1]);
  // The name of the program is the same in every language.
  assert.deepEqual(dynamic, [undefined, "summary", "connection", "no-questions", "no-sessions"]);
  for (const [, , , text] of untranslated) assert.ok(["sayso", en.summary(0, 0), en.notConnected, en.noOpenQuestions, en.noSessions].includes(text), text);
});

test("a language is selected by its primary subtag, with English as the default", () => {
  assert.equal(selectLanguage(["es-MX", "en"]), true);
  assert.equal(phrases.lang, "es");
  assert.equal(selectLanguage(["ES"]), false);
  assert.equal(selectLanguage(["fr", "yo-NG"]), true);
  assert.equal(phrases.lang, "yo");
  selectLanguage(["est", "fr"]);
  assert.equal(phrases.lang, "en");
});

const event = (id, type, more = {}) => ({
  "@context": "https://aaep-protocol.org/context/v1",
  type: `aaep:agent.${type}`,
  event_id: `evt_${id}`,
  session_id: "sess_1",
  timestamp: "2026-05-24T14:00:00.000Z",
  producer: { agent_id: "bank", agent_name: "Banco" },
  localization_hints: { primary_language: "es" },
  ...more,
});

test("in Spanish every text of the page is Spanish and tagged as Spanish", () => {
  selectLanguage(["es"]);
  const subscriber = new Subscriber();
  subscriber.verbosity = "detailed";
  const confirmation = {
    action: "Enviar 5 euros a Ben",
    consequence: "El dinero sale de la cuenta",
    reply_token: "rpl_1",
    timeout_seconds: 120,
    default_decision: "reject",
    risk_level: "high",
    irreversible: true,
    urgency: "critical",
  };
  const events = [
    event("1", "session.started"),
    event("2", "state.changed", { from_state: "idle", to_state: "thinking" }),
    event("3", "tool.invoked", { tool: "fetch" }),
    event("4", "tool.completed", { tool: "fetch", status: "timeout" }),
    event("5", "progress.updated", { progress: { step: 1, total_steps: 2 } }),
    event("6", "awaiting.confirmation", confirmation),
    event("6b", "progress.updated", {
      timestamp: "2026-05-24T14:01:00.000Z",
      localization_hints: { primary_language: "en" },
      progress: { description: "x" },
      summary_normal: "You have 60 seconds left to answer.",
      extensions: { sayso: { reminds_of: "rpl_1" } },
    }),
    event("7", "state.changed", { from_state: "awaiting_input", to_state: "thinking", extensions: { sayso: { reply_token: "rpl_1", decision: "reject", by: "timeout" } } }),
    event("8", "something.else"),
    event("9", "session.errored"),
  ];
  const effects = events.flatMap((one) => subscriber.receive(one, Date.parse(one.timestamp)));
  effects.push(...subscriber.receiveMessage({ type: "sayso:gap", reason_message: "Some is lost." }, 0));
  const parts = effects.flatMap((effect) => [...(effect.announce?.parts ?? []), ...(effect.log?.parts ?? [])]);
  assert.deepEqual([...new Set(parts.map((part) => part.lang))].toSorted(), ["", "es"]);
  assert.deepEqual(
    effects.filter((effect) => effect.announce).map((effect) => joinParts(effect.announce.parts)),
    [
      "Banco (id de agente bank) ha empezado: una sesión nueva.",
      "Pensando.",
      "Herramienta: usando fetch.",
      "La herramienta fetch no terminó.",
      "Paso 1 de 2.",
      "Enviar 5 euros a Ben. El dinero sale de la cuenta. Riesgo alto. Irreversible. Su respuesta no está ligada a una acción exacta. Tiene 2 minutos.",
      "Queda cerca de 1 minuto para responder: Enviar 5 euros a Ben",
      "Nadie respondió a tiempo, así que se rechazó esto: Enviar 5 euros a Ben",
      "Evento something else: algo que esta página no conoce.",
      "Fallo: la sesión ha fallado.",
      "Parte de lo que se perdió ya no se conserva. Así están las cosas ahora.",
    ],
  );
  const queue = new AnnouncementQueue(180);
  for (let number = 0; number < 100; number += 1) queue.add({ parts: [{ text: String(number), lang: "es" }] });
  assert.match(queue.next(0).parts[0].text, /^Se omitieron 60 mensajes/);
  assert.equal(formatDuration(1), "1 segundo");
  assert.equal(formatDuration(7200 * 2), "4 horas");
});

test("texts from the hub stay unchanged and are tagged as English", () => {
  selectLanguage(["es"]);
  const subscriber = new Subscriber();
  const [{ log }] = subscriber.receiveMessage({ type: "subscription.close", reason_code: "something_new", reason_message: "Go away." }, 0);
  assert.deepEqual(log.parts, [{ text: "Go away.", lang: "en" }]);
  const [{ log: bare }] = subscriber.receiveMessage({ type: "subscription.close" }, 0);
  assert.deepEqual(bare.parts, [{ text: "El centro cerró esta conexión.", lang: "es" }]);
  assert.equal(mergeParts([...log.parts, ...bare.parts]).length, 2);
  assert.equal(joinParts(mergeParts([...bare.parts, ...bare.parts])).length, 2 * bare.parts[0].text.length + 1);
});
