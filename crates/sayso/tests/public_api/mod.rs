//! The crate as its users see it: dependencies, documentation examples, event fields, exports and hub builders.

mod dependencies;
mod doc_examples;
pub(crate) mod event_fields;
mod exports;
mod hub_builders;
