//! Keyboard input, one key at a time.

use serde_json::{Value, json};

use super::Page;

impl Page {
    /// Presses and releases a key, optionally with modifiers. Examples: `Tab`, `Shift+Tab`, `Control+End`, `Space`, `a`.
    pub fn press(&mut self, chord: &str) {
        let (modifier_names, name) =
            chord.rsplit_once('+').filter(|(_, name)| !name.is_empty()).unwrap_or(("", chord));
        let modifiers: u8 =
            modifier_names.split('+').filter(|modifier_name| !modifier_name.is_empty()).map(modifier).sum();
        let key = Key::from_name(name);
        // With Control or Alt held, a key inserts no text.
        let text = if modifiers & (ALT | CONTROL) == 0 { key.text.as_str() } else { "" };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        self.call("Input.dispatchKeyEvent", &key.event(down, modifiers, text));
        self.call("Input.dispatchKeyEvent", &key.event("keyUp", modifiers, ""));
    }

    /// Sends a repeated key-down event, as for a key that is held down, and then releases the key.
    pub fn press_and_hold(&mut self, name: &str) {
        let key = Key::from_name(name);
        let mut repeated = key.event("keyDown", 0, &key.text);
        repeated["autoRepeat"] = true.into();
        self.call("Input.dispatchKeyEvent", &repeated);
        self.call("Input.dispatchKeyEvent", &key.event("keyUp", 0, ""));
    }

    /// Types a text, one key per character.
    pub fn type_text(&mut self, text: &str) {
        for character in text.chars() {
            self.press(&if character == ' ' { "Space".to_owned() } else { character.to_string() });
        }
    }
}

const ALT: u8 = 1;
const CONTROL: u8 = 2;
const SHIFT: u8 = 8;

fn modifier(modifier_name: &str) -> u8 {
    match modifier_name {
        "Alt" => ALT,
        "Control" => CONTROL,
        "Shift" => SHIFT,
        _ => panic!("unknown modifier: {modifier_name}"),
    }
}

struct Key {
    name: String,
    code: String,
    virtual_key_code: u32,
    text: String,
}

impl Key {
    fn from_name(name: &str) -> Self {
        let (key_name, virtual_key_code, text) = match name {
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
            character if character.chars().count() == 1 => {
                // Punctuation is on different keys on different keyboards, so it gets no key code.
                let upper = character.to_ascii_uppercase();
                let letter = upper.chars().next().filter(char::is_ascii_alphanumeric);
                let code = letter.map(|letter| format!("Key{letter}")).unwrap_or_default();
                let virtual_key_code = letter.map_or(0, u32::from);
                return Self {
                    name: character.to_owned(),
                    code,
                    virtual_key_code,
                    text: character.to_owned(),
                };
            }
            other => panic!("unknown key: {other}"),
        };
        Self { name: key_name.to_owned(), code: name.to_owned(), virtual_key_code, text: text.to_owned() }
    }

    fn event(&self, kind: &str, modifiers: u8, text: &str) -> Value {
        json!({
            "type": kind,
            "modifiers": modifiers,
            "key": self.name,
            "code": self.code,
            "windowsVirtualKeyCode": self.virtual_key_code,
            "text": text,
            "unmodifiedText": text,
        })
    }
}
