//! Code that circumvents consent, calls methods in the wrong order or misuses `#[sayso::tool]` does not compile.
//!
//! The tests are in this crate and not in `sayso`, because trybuild compiles them with the features of the crate that contains them.
//! The compiler's messages list similar types, and the feature `rig` adds more of them.

#[test]
fn code_that_circumvents_consent_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
