//! Full stops that do not end a sentence. §5.6.3 defines a sentence boundary only as "a stop and a
//! space", and UAX #29 leaves exceptions to lists like these.

/// Characters that end a sentence if a space follows.
pub(super) const SENTENCE_TERMINATORS: [char; 17] =
    ['.', '!', '?', '。', '！', '？', '｡', '؟', '۔', '।', '॥', '።', '፧', '‼', '⁇', '⁈', '⁉'];

/// Abbreviations within a sentence, in lower case and without their last full stop. Those that can
/// also end a sentence (`etc.`) are not listed.
const COMMON_ABBREVIATIONS: &[&str] =
    &["dr", "mr", "mrs", "ms", "prof", "st", "jr", "sr", "vs", "cf", "rev", "gen", "hon", "mt", "ft"];
const ENGLISH: &[&str] = &[
    "messrs", "mmes", "gov", "sen", "rep", "capt", "col", "lt", "sgt", "maj", "cmdr", "pres", "supt", "dept",
    "univ", "approx", "esp", "incl", "eg", "ie", "viz", "ave", "blvd", "rd", "jan", "feb", "mar", "apr",
    "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    "inc", "ltd", "co", "corp",
];
const SPANISH: &[&str] = &[
    "sra", "srta", "sres", "sras", "dra", "d", "dña", "ud", "uds", "vd", "vds", "lic", "ing", "arq", "avda",
    "av", "ej", "p", "ee", "uu", "gral", "pdte", "pág", "págs", "tel", "depto", "aprox", "fdo", "excmo",
    "ilmo", "mons",
];
const GERMAN: &[&str] = &[
    "hr", "fr", "frl", "hrn", "dipl", "ing", "bzw", "ca", "evtl", "ggf", "inkl", "exkl", "usw", "vgl", "sog",
    "bspw", "z", "b", "d", "h", "u", "a", "o", "ä", "i", "s", "v", "str", "nr", "abs", "art", "abt", "tel",
    "mind", "max", "zzgl", "allg", "geb", "gest", "jan", "feb", "mär", "apr", "jun", "jul", "aug", "sept",
    "okt", "nov", "dez",
];
const FRENCH: &[&str] = &[
    "m", "mm", "mme", "mmes", "mlle", "mlles", "me", "mgr", "p", "ex", "av", "env", "art", "chap", "tél",
    "boul", "bd",
];
const PORTUGUESE: &[&str] =
    &["sra", "srta", "dra", "d", "exmo", "av", "pág", "tel", "ex", "p", "eng", "aprox"];
const ITALIAN: &[&str] = &["sig", "sigg", "dott", "ing", "avv", "on", "es", "p", "pag", "tel"];
const HINDI: &[&str] = &["डॉ", "श्री", "प्रो", "पं", "सु", "मो", "रु"];
const ARABIC: &[&str] = &["د", "أ", "م", "ص", "ب", "هـ", "ق"];
const YORUBA: &[&str] = &["ọ̀gb", "ọ̀gbẹ́ni", "ọ̀mọ̀wé", "alh", "olóyè"];

/// Words that are abbreviations only before a number: `No. 5`, but not `No. Then`.
const NUMBER_ABBREVIATIONS: &[&str] = &[
    "no", "nos", "nr", "núm", "num", "n", "p", "pp", "fig", "figs", "vol", "art", "sec", "ch", "eq", "abb",
    "kap", "bd", "cap", "pág", "par", "al", "ver", "ene", "feb", "abr", "ago", "sept", "oct", "nov", "dic",
];

/// Languages that write ordinals as a number and a full stop: `am 3. Mai`.
const ORDINAL_STOP_LANGUAGES: &[&str] =
    &["de", "da", "nb", "nn", "no", "fi", "cs", "sk", "hu", "hr", "sr", "sl", "et", "lv", "is", "tr", "pl"];

/// Returns whether the full stop at the end of `before` does not end a sentence if `next` follows.
pub(super) fn is_abbreviation_stop(before: &str, next: char, language: &str) -> bool {
    let Some(line) = before.strip_suffix('.') else { return false };
    let line = line.rsplit(['\n', '\r']).next().unwrap_or(line);
    let token = line.rsplit(char::is_whitespace).next().unwrap_or(line);
    let word = token.trim_start_matches(|c: char| !c.is_alphanumeric());
    if word.is_empty() {
        return false;
    }
    let language = language.split('-').next().unwrap_or_default();
    if word.chars().all(|c| c.is_ascii_digit()) {
        // A list item or an ordinal.
        return line.trim_start() == word
            || word.len() <= 2
                && ORDINAL_STOP_LANGUAGES.iter().any(|known| known.eq_ignore_ascii_case(language));
    }
    if is_initials(word) {
        return true;
    }
    let matches_word = |known: &&str| word.chars().flat_map(char::to_lowercase).eq(known.chars());
    let contains_word = |list: &[&str]| list.iter().any(matches_word);
    if next.is_numeric() && contains_word(NUMBER_ABBREVIATIONS) {
        return true;
    }
    if contains_word(COMMON_ABBREVIATIONS) {
        return true;
    }
    ABBREVIATIONS_BY_LANGUAGE
        .iter()
        .any(|(tag, abbreviations)| tag.eq_ignore_ascii_case(language) && contains_word(abbreviations))
}

/// Additional abbreviations by language. English is used if no language is given. A language that is
/// not listed has no additional abbreviations.
const ABBREVIATIONS_BY_LANGUAGE: [(&str, &[&str]); 10] = [
    ("en", ENGLISH),
    ("", ENGLISH),
    ("es", SPANISH),
    ("de", GERMAN),
    ("fr", FRENCH),
    ("pt", PORTUGUESE),
    ("it", ITALIAN),
    ("hi", HINDI),
    ("ar", ARABIC),
    ("yo", YORUBA),
];

/// Matches `J`, `U.S`, `e.g` and `z.B`: one capital letter, or single letters between full stops.
fn is_initials(word: &str) -> bool {
    let is_single_letter = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
    };
    if word.contains('.') {
        return word.split('.').all(is_single_letter);
    }
    is_single_letter(word) && word.chars().all(char::is_uppercase)
}
