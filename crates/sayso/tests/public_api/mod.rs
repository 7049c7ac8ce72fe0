//! The crate as its users see it: its dependencies, its documentation examples and its exports.

mod dependencies;
mod doc_examples;
mod event_fields;
mod exports;
mod hub_builders;
