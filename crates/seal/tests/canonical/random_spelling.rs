//! Random spellings of a JSON value: other member orders, white space, escapes and number formats.

use serde_json::Value;

/// Writes the value as JSON. `choices` determine the spelling.
pub(crate) fn spell_randomly(value: &Value, choices: &[u8]) -> String {
    let mut speller = RandomSpeller { choices: choices.iter().cycle(), out: String::new() };
    speller.space();
    speller.value(value);
    speller.space();
    speller.out
}

struct RandomSpeller<'c> {
    choices: std::iter::Cycle<std::slice::Iter<'c, u8>>,
    out: String,
}

impl RandomSpeller<'_> {
    fn next_below(&mut self, limit: usize) -> usize {
        usize::from(*self.choices.next().expect("a cycle never ends")) % limit
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\n", "\t", "\r\n ", "  "][self.next_below(8)];
        self.out.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => self.out.push_str(&value.to_string()),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => self.integer(integer),
                None => self.double(number.as_f64().expect("a double")),
            },
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.out.push('[');
                self.space();
                for (index, item) in items.iter().enumerate() {
                    self.comma(index);
                    self.value(item);
                    self.space();
                }
                self.out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                self.out.push('{');
                self.space();
                for index in 0..members.len() {
                    let chosen = self.next_below(members.len());
                    let (key, value) = members.swap_remove(chosen);
                    self.comma(index);
                    self.text(key);
                    self.space();
                    self.out.push(':');
                    self.space();
                    self.value(value);
                    self.space();
                }
                self.out.push('}');
            }
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
            self.space();
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            let short = match letter {
                '"' | '\\' | '/' => Some(letter),
                '\u{8}' => Some('b'),
                '\t' => Some('t'),
                '\n' => Some('n'),
                '\u{c}' => Some('f'),
                '\r' => Some('r'),
                _ => None,
            };
            let needs_escape = matches!(letter, '"' | '\\' | '\0'..='\u{1f}');
            match (self.next_below(4), short) {
                (0, Some(code)) => self.out.extend(['\\', code]),
                (1, _) => self.unicode_escapes(letter, |unit| format!("\\u{unit:04x}")),
                (2, _) => self.unicode_escapes(letter, |unit| format!("\\u{unit:04X}")),
                _ if needs_escape => self.unicode_escapes(letter, |unit| format!("\\u{unit:04x}")),
                _ => self.out.push(letter),
            }
        }
        self.out.push('"');
    }

    fn unicode_escapes(&mut self, letter: char, write: impl Fn(u16) -> String) {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            self.out.push_str(&write(*unit));
        }
    }

    fn integer(&mut self, value: i64) {
        let spelling = match self.next_below(6) {
            0 => format!("{value}.0"),
            1 => format!("{value}e0"),
            2 if value != 0 => format!("{value}0E-1"),
            3 if value % 10 == 0 => format!("{}e+1", value / 10),
            4 if value == 0 => "-0".to_owned(),
            _ => value.to_string(),
        };
        self.out.push_str(&spelling);
    }

    /// Writes a double, always with a fraction or an exponent, because an integer beyond 2^53 would be rejected.
    fn double(&mut self, value: f64) {
        let spelling = match self.next_below(5) {
            0 => format!("{value:e}").replace('e', "E"),
            1 => format!("{value:.16e}"),
            2 => format!("{value:.30e}"),
            3 if value.abs() < 1e30 && value.abs() > 1e-30 => format!("{value:.60}"),
            _ => format!("{value:e}"),
        };
        self.out.push_str(&spelling);
    }
}
