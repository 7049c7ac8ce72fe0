//! A grant cannot be built, or moved to another session.

fn forged(other: sayso::Granted) -> sayso::Granted {
    sayso::Granted { session: unreachable!(), ..other }
}

fn main() {}
