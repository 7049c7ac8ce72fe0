//! Published clients of AAEP, unchanged, against the real binary with `--compat`. `cargo xtask interop` installs them and runs this.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod debugger;
mod producer;
mod suite;
mod web_subscriber;

/// A program of those that were installed.
fn program(name: &str) -> std::process::Command {
    let folder =
        std::env::var("INTEROP_CLIENTS").expect("INTEROP_CLIENTS: run this by `cargo xtask interop`");
    let mut program = std::process::Command::new(std::path::Path::new(&folder).join("bin").join(name));
    program.env("NO_COLOR", "1").env("PYTHONWARNINGS", "ignore");
    program
}

fn compat() -> testing::hub::Hub {
    testing::hub::Hub::limited(&["--compat", "--demo-agent"])
}
