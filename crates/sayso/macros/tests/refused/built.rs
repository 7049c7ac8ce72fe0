//! A consent is not built, nor taken over into another session.

fn forged(other: sayso::Granted) -> sayso::Granted {
    sayso::Granted { session: unreachable!(), ..other }
}

fn main() {}
