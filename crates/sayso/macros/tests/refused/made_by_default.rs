//! A consent does not come from nowhere.

fn main() {
    let _: sayso::Granted = Default::default();
}
