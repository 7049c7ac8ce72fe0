//! The keyboard: keys as a person presses them, one after the other.

use serde_json::{Value, json};

use super::Page;

impl Page {
    /// Presses a key and lets it go: `Tab`, `Shift+Tab`, `Enter`, `Space`, `Escape`, `ArrowDown`, `Control+End`, `a`.
    pub fn press(&mut self, chord: &str) {
        let (held, name) = chord.rsplit_once('+').filter(|(_, name)| !name.is_empty()).unwrap_or(("", chord));
        let modifiers: u8 = held.split('+').filter(|word| !word.is_empty()).map(modifier).sum();
        let key = Key::named(name);
        // With Control or Alt held, a key writes nothing.
        let text = if modifiers & (ALT | CONTROL) == 0 { key.text.as_str() } else { "" };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        self.call("Input.dispatchKeyEvent", &key.event(down, modifiers, text));
        self.call("Input.dispatchKeyEvent", &key.event("keyUp", modifiers, ""));
    }

    /// What comes of a key that is held down for long: it is pressed again by itself.
    pub fn hold(&mut self, name: &str) {
        let key = Key::named(name);
        let mut again = key.event("keyDown", 0, &key.text);
        again["autoRepeat"] = true.into();
        self.call("Input.dispatchKeyEvent", &again);
        self.call("Input.dispatchKeyEvent", &key.event("keyUp", 0, ""));
    }

    /// Types a text, a key for each character.
    pub fn write(&mut self, text: &str) {
        for character in text.chars() {
            self.press(&if character == ' ' { "Space".to_owned() } else { character.to_string() });
        }
    }
}

const ALT: u8 = 1;
const CONTROL: u8 = 2;
const SHIFT: u8 = 8;

fn modifier(word: &str) -> u8 {
    match word {
        "Alt" => ALT,
        "Control" => CONTROL,
        "Shift" => SHIFT,
        _ => panic!("no such modifier: {word}"),
    }
}

struct Key {
    name: String,
    code: String,
    number: u32,
    text: String,
}

impl Key {
    fn named(name: &str) -> Self {
        let (written, number, text) = match name {
            "Tab" => ("Tab", 9, ""),
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            "Space" => (" ", 32, " "),
            "PageUp" => ("PageUp", 33, ""),
            "PageDown" => ("PageDown", 34, ""),
            "End" => ("End", 35, ""),
            "Home" => ("Home", 36, ""),
            "ArrowLeft" => ("ArrowLeft", 37, ""),
            "ArrowUp" => ("ArrowUp", 38, ""),
            "ArrowRight" => ("ArrowRight", 39, ""),
            "ArrowDown" => ("ArrowDown", 40, ""),
            "Backspace" => ("Backspace", 8, ""),
            "Delete" => ("Delete", 46, ""),
            one if one.chars().count() == 1 => {
                // Keys of signs differ from keyboard to keyboard; as letters they would be other keys.
                let upper = one.to_ascii_uppercase();
                let letter = upper.chars().next().filter(char::is_ascii_alphanumeric);
                let code = letter.map(|letter| format!("Key{letter}")).unwrap_or_default();
                let number = letter.map_or(0, u32::from);
                return Self { name: one.to_owned(), code, number, text: one.to_owned() };
            }
            other => panic!("no such key: {other}"),
        };
        Self { name: written.to_owned(), code: name.to_owned(), number, text: text.to_owned() }
    }

    fn event(&self, kind: &str, modifiers: u8, text: &str) -> Value {
        json!({
            "type": kind,
            "modifiers": modifiers,
            "key": self.name,
            "code": self.code,
            "windowsVirtualKeyCode": self.number,
            "text": text,
            "unmodifiedText": text,
        })
    }
}
