//! `cargo xtask packages`: the packages for agent authors in other languages, each with the real frameworks.

pub(crate) mod python;
