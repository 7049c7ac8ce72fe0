//! The ways round consent that are none, and the wrong orders that cannot be written.

#[test]
fn the_ways_round_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
