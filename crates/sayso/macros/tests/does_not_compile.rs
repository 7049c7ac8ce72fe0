//! Code that evades consent, or calls in the wrong order, does not compile.
//!
//! The tests are here and not in the crate `sayso` because trybuild compiles them with the features of the crate that they are in. The
//! compiler lists types that could be meant, and the feature `rig` brings more of them.

#[test]
fn the_ways_round_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
