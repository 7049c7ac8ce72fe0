//! Tests of the gates with real peers, pinned by version and hash.

pub(crate) mod acp;
pub(crate) mod otlp;
