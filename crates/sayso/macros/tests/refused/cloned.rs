//! A consent is not copied.

fn twice(granted: sayso::Granted) -> (sayso::Granted, sayso::Granted) {
    (granted.clone(), granted)
}

fn main() {}
