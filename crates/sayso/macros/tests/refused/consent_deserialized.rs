//! A consent cannot be deserialized.

fn found(text: &str) -> Option<sayso::Granted> {
    serde_json::from_str(text).ok()
}

fn main() {}
