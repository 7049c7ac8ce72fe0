//! Tests with published, unmodified AAEP programs: clients of a hub with `--compat`, and a producer that `sayso listen`
//! follows. `cargo xtask interop` installs these programs and runs the tests.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod conformance_suite;
mod debugger;
mod json_ld;
mod minimal_producer;
mod web_subscriber;

/// Returns a command for an installed program.
fn installed_program(name: &str) -> std::process::Command {
    let folder =
        std::env::var("INTEROP_CLIENTS").expect("INTEROP_CLIENTS is not set: run `cargo xtask interop`");
    let mut program = std::process::Command::new(std::path::Path::new(&folder).join("bin").join(name));
    program.env("NO_COLOR", "1").env("PYTHONWARNINGS", "ignore");
    program
}

fn start_compat_hub() -> testing::hub::HubProcess {
    testing::hub::HubProcess::start_in_memory_with(&["--compat", "--demo-agent"])
}
