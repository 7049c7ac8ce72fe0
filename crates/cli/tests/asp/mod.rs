//! Tests of the `sayso asp` commands.

mod bad_arguments;
mod cards;
mod closed_streams;
mod consents;
mod demo;
mod http_between_nodes;
mod limits;
mod mutations;
mod node_commands;
mod person;
mod trace;
mod transcript_layout;
mod transcripts;
mod untrusted_text;
mod walkthrough;
pub(crate) mod xml_parser;
