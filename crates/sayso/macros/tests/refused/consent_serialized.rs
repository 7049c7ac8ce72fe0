//! A grant cannot be serialized.

fn serialize(granted: &sayso::Granted) -> String {
    serde_json::to_string(granted).unwrap_or_default()
}

fn main() {}
