//! JSON that no agent should write, and corrupted copies of valid lines.

use super::byte_choices::RandomChoices;
use super::recording_line::RecordingLine;

const UNUSUAL_NUMBERS: [&str; 18] = [
    "0",
    "-1",
    "-0",
    "4.0",
    "1e2",
    "0.1",
    "1e400",
    "-1e-400",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "123456789012345678901234567890",
    "9007199254740993.0",
    "1E+9",
    "2.5e-7",
];
const UNUSUAL_TEXTS: [&str; 14] = [
    r#""""#,
    r#""x""#,
    r#""\ud800""#,
    r#""\udc00 \ud83d\ude00""#,
    r#""\u0000\u001b[31m""#,
    r#""é\u0301\/\"\\\b\f\n\r\t""#,
    r#""evt_1""#,
    r#""1970-01-01T00:00:00Z""#,
    r#""9999-12-31T23:59:59.999999999-23:59""#,
    r#""0000-01-01t00:00:00+23:59""#,
    r#""password=hunter2 4111 1111 1111 1111""#,
    r#""aaep:agent.awaiting.confirmation""#,
    r#""accept""#,
    "\"رصيد Acme \u{202e}\"",
];
const UNUSUAL_KEYS: [&str; 12] = [
    "a",
    "a",
    "",
    "\\u0061",
    "\\ud800",
    "type",
    "sayso",
    "reply_token",
    "percent",
    "@id",
    "aaep_x",
    "summary_normal_yo",
];

/// Returns a random JSON value. Some values are nested slightly deeper than the limit.
pub(crate) fn json(choices: &mut RandomChoices<'_>, depth: usize) -> String {
    let kinds = if depth == 0 { 4 } else { 7 };
    match choices.below(kinds) {
        0 => choices.pick(&["null", "true", "false"]).to_owned(),
        1 | 2 => choices.pick(&UNUSUAL_NUMBERS).to_owned(),
        3 => choices.pick(&UNUSUAL_TEXTS).to_owned(),
        4 => {
            let items: Vec<_> = (0..choices.below(4)).map(|_| json(choices, depth - 1)).collect();
            format!("[{}]", items.join(" , "))
        }
        5 => {
            let members: Vec<_> = (0..choices.below(5))
                .map(|_| format!("\"{}\" :{}", choices.pick(&UNUSUAL_KEYS), json(choices, depth - 1)))
                .collect();
            format!("{{ {}}}", members.join(","))
        }
        _ => {
            let levels = choices.pick(&[1, 7, 8, 9, 30, 66]);
            format!("{}{}{}", "[".repeat(levels), json(choices, 0), "]".repeat(levels))
        }
    }
}

/// Returns the text with a few bytes changed, inserted, duplicated or removed. The result is always UTF-8.
pub(crate) fn damage(choices: &mut RandomChoices<'_>, text: &str) -> String {
    const STRAY: &[u8] = b"{}[]\":,\\u0123456789abcdefDd-+.eE /tnrf\x00\x1f\x7f\xc3\xa9\xed\xa0\x80 \xf0\x9f";
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=choices.below(4) {
        let at = choices.below_large(bytes.len() + 1);
        let stray = choices.pick(STRAY);
        match choices.below(4) {
            0 => bytes.insert(at, stray),
            1 if at < bytes.len() => bytes[at] = stray,
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                let end = (at + choices.below(24)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the line with some values replaced by arbitrary JSON, and some members added.
pub(crate) fn line(choices: &mut RandomChoices<'_>, line: &RecordingLine) -> String {
    let mut members: Vec<String> = line
        .names()
        .filter_map(|name| {
            let value = match choices.below(8) {
                7 => json(choices, 2),
                6 => choices.pick(&UNUSUAL_NUMBERS).to_owned(),
                _ => line.get(name)?.to_string(),
            };
            Some(format!("\"{name}\":{value}"))
        })
        .collect();
    for _ in 0..choices.below(3) {
        let index = choices.below(members.len() + 1);
        members.insert(index, format!("\"{}\":{}", choices.pick(&UNUSUAL_KEYS), json(choices, 2)));
    }
    format!("{{{}}}", members.join(","))
}
