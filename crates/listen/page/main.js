// The listening page: what comes from the hub goes to the ear, and what the ear makes of it to voice, questions, sessions and log.

import { Settings, askForm, by, capabilities, signIn } from "./controls.js";
import { Ear } from "./ear.js";
import { Log } from "./log.js";
import { phrases, speak, translate } from "./phrases.js";
import { Questions } from "./questions.js";
import { Queue } from "./queue.js";
import { Sessions } from "./sessions.js";
import { Stream } from "./stream.js";
import { Voice, put } from "./voice.js";
import { because, own, together } from "./words.js";

/** A lost connection is told if it does not come back by itself in that time. */
const LOST = 2000;
/** Whoever has pressed a key in that time is typing, and is not interrupted by a dialog. */
const TYPING = 1500;
const SIGNED_IN = "sayso.signed-in";

const clock = () => Date.now();
const settings = new Settings((now) => changed(now));
const ear = new Ear();
const queue = new Queue(settings.now.pace);
const voice = new Voice(queue, { clock, show: (token) => questions.show(token), busy });
const questions = new Questions({ reply, extend, stop, time: () => ear.hubTime(clock()) }, voice);
const sessions = new Sessions(by("session-list"), by("no-sessions"), stop);
const log = new Log(by("log-list"), by("log-dropped"));

let typed = 0;
let lost;
let toldLost = false;
let connection = { name: "notConnected", why: undefined };
let returned = false;

const stream = new Stream(
  {
    ...capabilities(settings.now),
    supports_confirmation_reply: true,
    supports_clarification_reply: true,
    supported_conformance_levels: [1, 2, 3],
    coalesce_boundaries: ["sentence", "completion"],
  },
  {
    event: (event) => perform(ear.hear(event, clock())),
    message: (message) => perform(ear.message(message, clock())),
    unreadable: () => tell([own(phrases.unreadable)], "hub"),
    catchUp: (how) => ear.catchUp(how, clock(), returned),
    caughtUp: () => perform(ear.caughtUp(clock())),
    accepted,
    state,
  },
);

apply(settings.now);
askForm((why) => voice.say({ parts: [why], critical: true }));
signIn(
  () => {
    keep(true);
    by("sign-in").hidden = true;
    by("questions-title").focus();
    voice.say({ parts: [own(phrases.signedIn)], until: clock() + 5000 });
    stream.wake();
  },
  (why) => voice.say({ parts: [why], critical: true }),
);
by("sign-out").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST" });
  keep(false);
  location.reload();
});
by("sign-out").hidden = !kept();
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select")) typed = clock();
});
stream.run();

function perform(effects) {
  for (const effect of effects) {
    if (effect.log !== undefined) log.add(effect.log);
    if (effect.hush !== undefined) voice.drop((one) => one.stale && one.session === effect.hush);
    if (effect.session !== undefined) sessions.update(effect.session);
    if (effect.ask !== undefined) questions.ask(effect.ask);
    if (effect.moved !== undefined) questions.moved(effect.moved);
    if (effect.settled !== undefined) questions.settled(effect.settled);
    if (effect.say !== undefined) voice.say(effect.say);
  }
}

/** Said and logged. */
function tell(parts, word, more = {}) {
  log.add({ parts, word, at: clock() });
  voice.say({ parts, ...more });
}

function busy() {
  return clock() - typed < TYPING && document.activeElement?.matches("input, textarea, select") === true;
}

async function reply(question, { decision, response }) {
  const timestamp = new Date(ear.hubTime(clock())).toISOString();
  const answer = question.confirms ? { type: "confirmation.reply", decision } : { type: "clarification.reply", response };
  await stream.send({ ...answer, reply_token: question.token, timestamp });
}

async function extend(question) {
  const timestamp = new Date(ear.hubTime(clock())).toISOString();
  await stream.send({ type: "sayso:deadline.extend", reply_token: question.token, timestamp, seconds: question.seconds });
}

async function stop(session) {
  const timestamp = new Date(ear.hubTime(clock())).toISOString();
  try {
    await stream.send({ type: "sayso:session.stop", session_id: session, timestamp });
    return true;
  } catch (error) {
    tell(together([own(phrases.notStopped), because(error)]), "hub", { critical: true });
    return false;
  }
}

function apply({ verbosity, pace, quiet, languages }) {
  if (speak(languages) || document.documentElement.lang !== phrases.lang) {
    translate(document);
    settings.nameLanguages();
    questions.translate();
    sessions.translate();
    log.translate();
    showConnection();
  }
  ear.verbosity = verbosity;
  ear.quiet = quiet;
  queue.pace = pace;
}

async function changed(now) {
  apply(now);
  let parts;
  try {
    await stream.renegotiate(capabilities(now));
    parts = [own(phrases.follows)];
  } catch (error) {
    parts = together([own(phrases.notTold), because(error)]);
  }
  put(by("settings-result"), parts);
  voice.say({ parts, key: "settings" });
}

/** What the hub agreed to may be less than was asked for. */
function accepted(honored) {
  if (honored.supports_confirmation_reply === false) {
    tell([own(phrases.listenOnly)], "hub");
  }
}

function state(name, why) {
  connection = { name, why };
  showConnection();
  if (name !== "lost") {
    clearTimeout(lost);
    lost = undefined;
  }
  by("sign-in").hidden = name !== "signIn";
  switch (name) {
    case "connected":
      if (toldLost) tell([own(phrases.connectedAgain)], "hub", { key: "connection" });
      returned = toldLost;
      toldLost = false;
      break;
    case "connecting":
      break;
    case "signIn":
      keep(false);
      by("sign-in-title").focus();
      break;
    case "refused":
      tell(ofConnection(), "hub", { key: "refused" });
      break;
    default:
      if (!toldLost) {
        lost ??= setTimeout(() => {
          toldLost = true;
          tell(ofConnection(), "hub", { critical: true, key: "connection" });
        }, LOST);
      }
  }
}

function showConnection() {
  put(by("connection"), ofConnection());
}

/** How it stands with the connection. */
function ofConnection() {
  const { name, why } = connection;
  switch (name) {
    case "signIn":
      return [because(why)];
    case "refused":
      return together([own(phrases.refused), because(why)]);
    default:
      return [own(phrases[name])];
  }
}

function keep(signedIn) {
  by("sign-out").hidden = !signedIn;
  try {
    if (signedIn) localStorage.setItem(SIGNED_IN, "yes");
    else localStorage.removeItem(SIGNED_IN);
  } catch {
    // Then the button is there until the page is closed.
  }
}

function kept() {
  try {
    return localStorage.getItem(SIGNED_IN) === "yes";
  } catch {
    return false;
  }
}
