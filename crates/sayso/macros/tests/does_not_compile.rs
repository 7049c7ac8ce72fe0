//! The ways round consent that are none, and the wrong orders that cannot be written.

// The compiler lists types that could be meant, and rig brings more of them.
#![cfg(not(feature = "rig"))]

#[test]
fn the_ways_round_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
