// The call that a question is about, as the hub reports it, in a form that a person can hear.

import { phrases } from "./phrases.js";
import { asObject, nameText, shorten } from "./wording.js";

/** Maximum length of a call that is announced with the question, in characters. A longer one is only shown in the dialog. */
export const MAX_SHORT_CALL_CHARS = 120;

/** A number with its digits as the agent wrote them. */
class NumberText {
  constructor(digits) {
    this.digits = digits;
  }
}

/** Parses an event. In the arguments of a call, numbers keep their digits if the browser gives access to the source text. */
export function parseEvent(text) {
  const event = JSON.parse(text);
  const sayso = asObject(asObject(event?.extensions).sayso);
  if (sayso.arguments !== undefined) {
    const keepDigits = (name, value, context) => (typeof value === "number" && context?.source ? new NumberText(context.source) : value);
    sayso.arguments = JSON.parse(text, keepDigits).extensions.sayso.arguments;
  }
  return event;
}

/**
 * Returns the call that a question is about as `{ text, pieces, isBound, hasArguments }`, or `undefined` if the hub reports none. The
 * pieces together are the text. Each name and each value is a piece of its own, with `isIsolated`.
 */
export function readCall(event) {
  const { tool, arguments: callArguments, action_digest: digest } = asObject(asObject(event.extensions).sayso);
  if (typeof tool !== "string") return undefined;
  const items = callArguments === undefined ? [] : describeItems(callArguments);
  const pieces = joinItems(items.length === 0 ? [[isolated(describeName(tool))]] : [[isolated(describeName(tool))], items]);
  return { text: joinPieces(pieces), pieces, isBound: typeof digest === "string", hasArguments: items.length > 0, tool: describeName(tool), pairs: describePairs(callArguments), command: readCommand(tool, callArguments) };
}

/** Whether a call is short enough to be part of the question itself. */
export function isShort(call) {
  return [...call.text].length <= MAX_SHORT_CALL_CHARS;
}

/**
 * Whether a text says exactly this call, word for word: the tool, then each argument in order, its name before its value. A number may come
 * before its name: `Transfer 20 euros to Ben.` is the call `transfer, euros 20, to Ben`. No other word is allowed, because it could change the
 * meaning. For a Spanish listener, a fixed list of Spanish words counts as the English ones: `Transferir 20 euros a Ben.` A command of a shell is
 * also said by the form of sayso's hook: `Run: rm -r build.` `is_said_by` in `src/subscriber/question_call.rs` has the same rules.
 */
export function isSaidBy(call, text) {
  if (!isShort(call)) return false;
  if (isCommandSaidBy(call, text)) return true;
  if (call.pairs === undefined) return false;
  const rest = text.trim().replace(/[.?]$/, "").split(" ");
  const take = (words) => {
    const expected = words.split(" ");
    const isSaid = expected.length <= rest.length && expected.every((word, index) => rest[index] === word);
    if (isSaid) rest.splice(0, expected.length);
    return isSaid;
  };
  const isSpanish = phrases.lang === "es";
  const verbs = (isSpanish ? ["", "ar", "er", "ir"] : [""]).map((ending) => call.tool + ending);
  if (!verbs.some((verb) => take(verb) || take(verb.slice(0, 1).toUpperCase() + verb.slice(1)))) return false;
  const isNamed = (name, value) => take(`${name} ${value}`) || (/^[\d.]+$/.test(value) && take(`${value} ${name}`));
  const areSaid = call.pairs.every(([name, value]) => [name, ...((isSpanish && SPANISH_NAMES.get(name)) || [])].some((one) => isNamed(one, value)));
  return areSaid && rest.length === 0;
}

/** Names of arguments and the Spanish words that say the same. */
const SPANISH_NAMES = new Map([["to", ["a", "para"]], ["for", ["para"]], ["from", ["de", "desde"]]]);

/** How sayso's hook for coding agents begins the action of a command, in each language. */
const RUN_FORMS = new Map([["en", "Run: "], ["es", "Ejecutar: "], ["yo", "Ṣe àṣẹ yìí: "]]);

/** The shells of coding agents, and the names of the argument that is the command. */
const SHELLS = ["Bash", "bash", "shell", "exec_command", "run_shell_command", "run_in_terminal", "Shell", "run_terminal_cmd", "local_shell"];
const COMMAND_NAMES = ["command", "cmd"];

/** Whether a text says exactly the command of a call, as sayso's hook for coding agents does, in English or in the language of the listener. */
function isCommandSaidBy(call, text) {
  if (call.command === undefined) return false;
  return ["en", phrases.lang].some((language) => text === `${RUN_FORMS.get(language)}${call.command}.`);
}

/**
 * Returns the command of a call to a shell, if a sentence can say it whole. It is the only argument, no character of it is hidden, and nothing
 * in it can be mistaken for the end of the sentence.
 */
function readCommand(tool, callArguments) {
  if (callArguments === null || typeof callArguments !== "object" || Array.isArray(callArguments)) return undefined;
  const [[name, command] = [], ...others] = Object.entries(callArguments);
  const isCommand = SHELLS.includes(tool) && COMMAND_NAMES.includes(name) && others.length === 0 && typeof command === "string";
  if (!isCommand || command === "" || /[.!?…:;]$|[.!?…] /u.test(command)) return undefined;
  return escapeHidden(command) === command ? command : undefined;
}

/** Returns the names and values of arguments, or `undefined` if a value is not a text or a number. */
function describePairs(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  const isSimple = (member) => ["string", "number"].includes(typeof member) || member instanceof NumberText;
  return entries.every(([, member]) => isSimple(member)) ? entries.map(([name, member]) => [describeName(name), joinPieces(describeValue(member))]) : undefined;
}

/** Creates a part that describes JSON from an agent in words: `order 17, open (refund)`. Returns `undefined` if there is nothing to describe. */
export function describeContext(value) {
  if (value === undefined || value === null || typeof value !== "object") return undefined;
  const pieces = describeItems(value);
  const text = joinPieces(pieces);
  if (text === "") return undefined;
  const short = shorten(text);
  return { text: short, lang: "", dir: "auto", ...(short === text ? { pieces } : {}) };
}

/** Creates the part that states the exact call. `warning` is a sentence that becomes its label. */
export function exactCallText(call, warning) {
  const [before, after] = warning === undefined ? phrases.exactCall("\n").split("\n") : [`${warning.replace(/\.$/, "")}: `, "."];
  const noArguments = call.hasArguments ? "" : `, ${phrases.withoutArguments}`;
  const pieces = [{ text: before }, ...call.pieces, { text: noArguments + after }];
  return { ...nameText(joinPieces(pieces)), pieces };
}

/** A piece whose letters and digits cannot move into another piece, whatever the direction of its text is. */
function isolated(text) {
  return { text, isIsolated: true };
}

function joinPieces(pieces) {
  return pieces.map(({ text }) => text).join("");
}

/** Puts a comma between items, each of which is a list of pieces. */
function joinItems(items) {
  return items.flatMap((pieces, index) => (index === 0 ? pieces : [{ text: ", " }, ...pieces]));
}

/** Describes the content of a value: the members of an object, the items of a list, or the value itself. */
function describeItems(value) {
  if (Array.isArray(value)) return joinItems(value.map(describeValue));
  if (value === null || typeof value !== "object" || value instanceof NumberText) return describeValue(value);
  return joinItems(Object.entries(value).map(([name, member]) => [isolated(describeName(name)), { text: " " }, ...describeValue(member)]));
}

/** Describes one value. An object or a list is put in parentheses. */
function describeValue(value) {
  if (typeof value === "string") return [isolated(describeText(value))];
  if (value instanceof NumberText) return [isolated(describeNumber(value.digits))];
  if (value === null || typeof value !== "object") return [isolated(String(value))];
  return [{ text: "(" }, ...describeItems(value), { text: ")" }];
}

/** Describes a number. An exponent could hide the size of a number, so such a number is read in canonical form. */
export function describeNumber(digits) {
  return /e/i.test(digits) ? String(Number(digits)) : digits;
}

/** Describes a text. It is quoted if it could be mistaken for several values. */
function describeText(text) {
  const line = escapeHidden(text);
  return PLAIN_TEXT.test(line) && [...line].every(isPlain) ? line : quote(line);
}

/** Describes the name of a tool or of a member. It is quoted if it could be mistaken for a name with a value. */
function describeName(name) {
  const line = escapeHidden(name);
  return PLAIN_NAME.test(line) && [...line].every(isPlain) ? line.replaceAll("_", " ") : quote(line);
}

function quote(text) {
  return `"${text.replaceAll('"', "'")}"`;
}

/** Texts of letters, digits, marks that follow one of these, and signs that separate nothing. */
const PLAIN_TEXT = /^(?:[\p{Alphabetic}\p{N}]\p{M}*|[ _\-.@/:+%€$£#&'])+$/u;
const PLAIN_NAME = /^(?:[\p{Alphabetic}\p{N}]\p{M}*|[_.-])+$/u;
/** Letters and marks that look like a comma, a full stop or a quotation mark. */
const SEPARATOR_LOOKALIKE = /[\u02b9\u02ba\u02bd-\u02df\u02ec-\u02ff\u0312-\u0315\u031b\u0326\ua4f8-\ua4fd]/;

/** Whether a character does not look like a separator. For example, the decomposition of `⑴` has parentheses. */
function isPlain(c) {
  return /[\0-\x7f€£]/.test(c) || (!SEPARATOR_LOOKALIKE.test(c) && /^[\p{Alphabetic}\p{N}\p{M}]+$/u.test(c.normalize("NFKC")));
}

const INVISIBLE =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d159}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;
/** Maximum number of marks in a row. */
const MAX_MARKS = 8;

/**
 * Writes every character that cannot be heard or seen as an escape: `\u{200b}`. The rules are those of `escape_hidden` in
 * `src/subscriber/call_text.rs`, and both are tested with `tests/call_texts.json`.
 */
function escapeHidden(text) {
  const chars = [...text];
  let markCount = 0;
  return chars
    .map((c, index) => {
      const [before, after] = [chars[index - 1] ?? "", chars[index + 1] ?? ""];
      const isMark = /\p{M}/u.test(c);
      markCount = isMark ? markCount + 1 : 0;
      return isKept(c, before, after, chars[index + 2], isMark && markCount > MAX_MARKS) ? c : `\\u{${c.codePointAt(0).toString(16)}}`;
    })
    .join("");
}

function isKept(c, before, after, second, isExcessMark) {
  if (c === " ") return ![" ", ""].includes(before) && ![" ", ""].includes(after);
  if (c === "\u200c" || c === "\u200d") {
    const joinsLetters = isJoiningLetter(before) && isJoiningLetter(after);
    return joinsLetters || (c === "\u200d" && (isSymbol(before) || before === "\ufe0f") && isSymbol(after));
  }
  if (c === "\ufe0e" || c === "\ufe0f") return isSymbol(before);
  if (c === "\\") return !(after === "u" && second === "{");
  return !isExcessMark && !/[\p{Cc}\p{Cs}\p{White_Space}]/u.test(c) && !INVISIBLE.test(c);
}

/** Whether a joiner can change the shape of this letter: it belongs to a script such as Arabic or Devanagari. */
function isJoiningLetter(c) {
  return /^[\u0600-\u1cff]$/.test(c) && /[\p{Alphabetic}\p{M}]/u.test(c) && !INVISIBLE.test(c);
}

/** Whether the character may be an emoji. */
function isSymbol(c) {
  return c > "\x7f" && !/[\p{Alphabetic}\p{N}\p{M}\p{White_Space}\p{Cc}]/u.test(c) && !INVISIBLE.test(c);
}
