//! Tests of the `sayso asp` commands.

mod bad_arguments;
mod cards;
mod closed_streams;
mod demo;
mod limits;
mod mutations;
mod person;
mod trace;
mod transcript_layout;
mod transcripts;
mod untrusted_text;
pub(crate) mod xml_parser;
