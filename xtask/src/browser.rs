//! The listening page in Debian's Chromium.

use std::process::Command;

use crate::stage::{command, root};
use crate::{npm, setup};

/// Installs the browser and the accessibility checker, and runs the tests that need them.
pub(crate) fn run() -> Result<(), String> {
    if !there("the listening page")? {
        return Ok(());
    }
    let packages = npm::install()?;
    let test = ["test", "-p", "sayso-cli", "--locked", "--test", "browser", "--", "--ignored"];
    command(Command::new(env!("CARGO")).args(test).current_dir(root()).env("BROWSER_PACKAGES", packages))
}

/// Whether there is a browser. Where none can be installed, what needs it is skipped, and that is said; on a build server it
/// is a failure.
pub(crate) fn there(what: &str) -> Result<bool, String> {
    let Err(why) = setup::chromium() else { return Ok(true) };
    let told = format!("Debian's chromium cannot be installed here ({why})");
    if setup::on_build_server() {
        return Err(told);
    }
    println!("SKIPPED: {what} was not tried in a browser: {told}");
    Ok(false)
}
