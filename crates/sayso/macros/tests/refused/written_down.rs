//! A consent is not written down…

fn kept(granted: &sayso::Granted) -> String {
    serde_json::to_string(granted).unwrap_or_default()
}

fn main() {}
