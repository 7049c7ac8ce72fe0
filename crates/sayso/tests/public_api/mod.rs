//! The crate as its users see it: what it builds, what it documents and what it exports.

mod dependencies;
mod doc_examples;
mod event_fields;
mod exports;
mod hub_builders;
