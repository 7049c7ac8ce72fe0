//! `sayso demo`, driven as a person does: by what it prints and what is typed.

mod bad_input;
mod ending;
mod run;
mod scenes;
mod typed;
mod welcome;
