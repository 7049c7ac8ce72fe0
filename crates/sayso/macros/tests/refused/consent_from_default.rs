//! A grant has no default value.

fn main() {
    let _: sayso::Granted = Default::default();
}
