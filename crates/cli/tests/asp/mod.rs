//! `sayso asp`, as whoever runs it sees it.

mod cards;
mod demo;
mod limits;
mod lines;
mod mutations;
mod odd_texts;
mod paths;
mod streams;
mod talk;
mod trace;
pub(crate) mod xml;
