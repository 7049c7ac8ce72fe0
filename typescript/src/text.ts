/** Text in up to three lengths and in several languages. */

import { InvalidInputError } from "./errors.js";
import type { Redactor } from "./redact/redactor.js";

/** A text for people: one string, or an object with shorter and longer forms and translations. */
export type Text = string | LocalizedText;

/** One language of a text. */
export interface TextForms {
  normal: string;
  /** A shorter form, for listeners that asked for terse announcements. */
  terse?: string;
  /** A longer form, for listeners that asked for details. */
  detailed?: string;
}

/** A text with translations. The keys of `in` are language tags such as `es` or `pt-BR`. */
export interface LocalizedText extends TextForms {
  in?: { readonly [tag: string]: string | TextForms };
}

/** The longest reason or description, in characters. The protocol allows 1,000 and a mark for the cut. */
const MAX_TEXT_CHARS = 1000;

interface Forms {
  normal: string;
  terse: string | undefined;
  detailed: string | undefined;
}

/** A text without secrets, ready to be written into an event. */
export class RedactedText {
  private constructor(
    private readonly main: Forms,
    private readonly translations: ReadonlyMap<string, Forms>,
  ) {}

  static of(text: Text, redactor: Redactor): RedactedText {
    if (typeof text === "string") return new RedactedText(forms(text, redactor), new Map());
    if (typeof text !== "object" || text === null || typeof text.normal !== "string") {
      throw new InvalidInputError("a text must be a string or an object with `normal`");
    }
    const translations = new Map<string, Forms>();
    for (const [tag, translation] of Object.entries(text.in ?? {})) translations.set(tag, forms(translation, redactor));
    return new RedactedText(forms(text, redactor), translations);
  }

  get normal(): string {
    return this.main.normal;
  }

  get languages(): string[] {
    return [...this.translations.keys()];
  }

  get isSingle(): boolean {
    return this.translations.size === 0 && this.main.terse === undefined && this.main.detailed === undefined;
  }

  /** Writes `summary_normal`, and the other forms if the main language has them. */
  writeSummaries(out: Record<string, unknown>): void {
    if (this.main.terse !== undefined) this.write(out, "summary_terse", (text) => text.terse ?? text.normal);
    this.write(out, "summary_normal", (text) => text.normal);
    if (this.main.detailed !== undefined) this.write(out, "summary_detailed", (text) => text.detailed ?? text.normal);
  }

  /** Writes only the normal form, as the member `name` and its translations. */
  writeAs(out: Record<string, unknown>, name: string): void {
    this.write(out, name, (text) => text.normal);
  }

  /** Writes another text in the languages of this one. A text in one language is repeated, because listeners need all texts of an event in one language. */
  writeOther(out: Record<string, unknown>, name: string, other: RedactedText | undefined): void {
    if (other === undefined) return;
    other.writeAs(out, name);
    if (other.translations.size > 0) return;
    for (const tag of this.translations.keys()) out[localizedName(name, tag)] = other.normal;
  }

  /** Returns both texts, one after the other, in the languages that both have. */
  followedBy(after: RedactedText): RedactedText {
    const join = (a: Forms, b: Forms): Forms => ({ normal: `${a.normal} ${b.normal}`.trim(), terse: undefined, detailed: undefined });
    const translations = new Map<string, Forms>();
    for (const [tag, text] of this.translations) {
      const other = after.translations.get(tag);
      if (other !== undefined) translations.set(tag, join(text, other));
    }
    return new RedactedText(join(this.main, after.main), translations);
  }

  /** Returns the text for one language, if this text has it. */
  forLanguage(tag: string): string | undefined {
    if (this.translations.size === 0) return this.main.normal;
    return this.translations.get(tag)?.normal;
  }

  private write(out: Record<string, unknown>, name: string, textOf: (text: Forms) => string): void {
    out[name] = textOf(this.main);
    for (const [tag, translation] of this.translations) out[localizedName(name, tag)] = textOf(translation);
  }
}

/** Returns a reason without secrets, at most as long as the protocol allows. */
export function redactReason(text: Text, redactor: Redactor): RedactedText {
  if (typeof text !== "string") return RedactedText.of(text, redactor);
  // A secret that this cut splits is far beyond the part that remains.
  return RedactedText.of(truncateText(redactor.redact(text.slice(0, 64 * 1024))), redactor);
}

export function truncateText(text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return text;
  const chars = [...text.slice(0, 2 * MAX_TEXT_CHARS)];
  return chars.length <= MAX_TEXT_CHARS ? text : `${chars.slice(0, MAX_TEXT_CHARS).join("")}…`;
}

export function localizedName(name: string, tag: string): string {
  return `${name}_${tag.toLowerCase().replaceAll("-", "_")}`;
}

/** Splits the name of a tool into words: `send_email` and `sendEmail` become `Send email`. */
export function humanizeName(name: string): string {
  const words = name.match(/\p{Lu}+(?![\p{Ll}])[\p{N}]*|[\p{Lu}\p{Lt}]?[^\p{Lu}\p{Z}\p{P}\p{S}\p{C}]+|[\p{Lu}\p{N}]+/gu);
  if (words === null) return name;
  const readable = words.map((word, at) => {
    const isAcronym = word.length > 1 && !/\p{Ll}/u.test(word);
    if (isAcronym) return word;
    const first = word.charAt(0);
    return (at === 0 ? first.toUpperCase() : first.toLowerCase()) + word.slice(1);
  });
  return readable.join(" ");
}

function forms(text: string | TextForms, redactor: Redactor): Forms {
  if (typeof text === "string") return { normal: redactor.redact(text), terse: undefined, detailed: undefined };
  const optional = (form: string | undefined) => (form === undefined ? undefined : redactor.redact(form));
  return { normal: redactor.redact(text.normal), terse: optional(text.terse), detailed: optional(text.detailed) };
}
