//! A grant cannot be cloned.

fn twice(granted: sayso::Granted) -> (sayso::Granted, sayso::Granted) {
    (granted.clone(), granted)
}

fn main() {}
