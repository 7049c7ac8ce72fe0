//! Random spellings of a JSON value: other member orders, white space, escapes and number formats.

use serde_json::Value;

/// Writes the value as JSON. The bytes in `choices` determine the spelling.
pub(crate) fn spell_randomly(value: &Value, choices: &[u8]) -> String {
    let mut speller = RandomSpeller { choices: choices.iter().cycle(), out: String::new() };
    speller.write_whitespace();
    speller.write_value(value);
    speller.write_whitespace();
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

    fn write_whitespace(&mut self) {
        let whitespace = ["", "", "", " ", "\n", "\t", "\r\n ", "  "][self.next_below(8)];
        self.out.push_str(whitespace);
    }

    fn write_value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => self.out.push_str(&value.to_string()),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => self.write_integer(integer),
                None => self.write_double(number.as_f64().expect("a double")),
            },
            Value::String(text) => self.write_text(text),
            Value::Array(items) => {
                self.out.push('[');
                self.write_whitespace();
                for (index, item) in items.iter().enumerate() {
                    self.write_comma_before(index);
                    self.write_value(item);
                    self.write_whitespace();
                }
                self.out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                self.out.push('{');
                self.write_whitespace();
                for index in 0..members.len() {
                    let chosen = self.next_below(members.len());
                    let (key, value) = members.swap_remove(chosen);
                    self.write_comma_before(index);
                    self.write_text(key);
                    self.write_whitespace();
                    self.out.push(':');
                    self.write_whitespace();
                    self.write_value(value);
                    self.write_whitespace();
                }
                self.out.push('}');
            }
        }
    }

    fn write_comma_before(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
            self.write_whitespace();
        }
    }

    fn write_text(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            let short_escape = match letter {
                '"' | '\\' | '/' => Some(letter),
                '\u{8}' => Some('b'),
                '\t' => Some('t'),
                '\n' => Some('n'),
                '\u{c}' => Some('f'),
                '\r' => Some('r'),
                _ => None,
            };
            let needs_escape = matches!(letter, '"' | '\\' | '\0'..='\u{1f}');
            match (self.next_below(4), short_escape) {
                (0, Some(code)) => self.out.extend(['\\', code]),
                (1, _) => self.write_unicode_escapes(letter, |unit| format!("\\u{unit:04x}")),
                (2, _) => self.write_unicode_escapes(letter, |unit| format!("\\u{unit:04X}")),
                _ if needs_escape => self.write_unicode_escapes(letter, |unit| format!("\\u{unit:04x}")),
                _ => self.out.push(letter),
            }
        }
        self.out.push('"');
    }

    fn write_unicode_escapes(&mut self, letter: char, format_unit: impl Fn(u16) -> String) {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            self.out.push_str(&format_unit(*unit));
        }
    }

    fn write_integer(&mut self, value: i64) {
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
    fn write_double(&mut self, value: f64) {
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
