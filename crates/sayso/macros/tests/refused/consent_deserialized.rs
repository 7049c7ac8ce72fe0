//! A grant cannot be deserialized.

fn deserialize(text: &str) -> Option<sayso::Granted> {
    serde_json::from_str(text).ok()
}

fn main() {}
