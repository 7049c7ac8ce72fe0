//! `sayso service`: the personal hub as a service of the user's systemd.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use clap::Subcommand;
use gate::setup::{ConfigFolders, SERVICE_UNIT, SetupPlan};

use crate::ExitStatus;
use crate::file::{CommandError, display_name};
use crate::gate::setup::own_program;
use crate::output::{describe_io_error, print_stdout, printable};

#[derive(Subcommand)]
pub(crate) enum ServiceCommand {
    /// Start the hub now and whenever you log in.
    Install,
    /// Stop the hub, and do not start it again.
    Remove,
    /// Say whether the service is installed and running. The exit code is 0 if it is running, and 1 if it is not.
    Status,
}

pub(crate) fn run(command: &ServiceCommand) -> Result<ExitStatus, CommandError> {
    let folders = ConfigFolders::from_env().map_err(|error| error.to_string())?;
    check_systemd()?;
    match command {
        ServiceCommand::Install => install(&folders),
        ServiceCommand::Remove => remove(&folders),
        ServiceCommand::Status => status(&folders),
    }
}

fn install(folders: &ConfigFolders) -> Result<ExitStatus, CommandError> {
    let plan = SetupPlan::install_unit(folders, &own_program()?).map_err(|error| error.to_string())?;
    let (path, is_change) = (display_name(plan.path()), plan.is_change());
    plan.apply().map_err(|error| error.to_string())?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", SERVICE_UNIT])?;
    // A changed unit takes effect with a restart. A hub that runs with the same unit is not disturbed.
    let start = if is_change { "restart" } else { "start" };
    systemctl(&[start, SERVICE_UNIT]).map_err(|error| {
        format!(
            "{}. If `sayso listen` is running your hub, end it first. `journalctl --user -u {SERVICE_UNIT}` says more",
            error.message()
        )
    })?;
    Ok(print_stdout(&format!(
        "Your personal hub is running, and starts whenever you log in. Its unit is {path}.\n\
         To keep it running after you log out, run `loginctl enable-linger`.\n\
         Run `sayso listen` in a terminal to hear your agents.\n"
    )))
}

fn remove(folders: &ConfigFolders) -> Result<ExitStatus, CommandError> {
    let plan = SetupPlan::remove_unit(folders).map_err(|error| error.to_string())?;
    let path = display_name(plan.path());
    if !plan.has_file() {
        return Ok(print_stdout(&format!("The service is not installed: there is no {path}.\n")));
    }
    systemctl(&["disable", "--now", SERVICE_UNIT])?;
    plan.apply().map_err(|error| error.to_string())?;
    systemctl(&["daemon-reload"])?;
    Ok(print_stdout(&format!("The service is stopped and removed: {path} is deleted.\n")))
}

fn status(folders: &ConfigFolders) -> Result<ExitStatus, CommandError> {
    let path = folders.systemd_units().join(SERVICE_UNIT);
    if !path.exists() {
        let text = format!("The service is not installed: there is no {}.\n", display_name(&path));
        return Ok(print_stdout(&text).max(ExitStatus::Negative));
    }
    let is_enabled = is_state(&["is-enabled", "--quiet", SERVICE_UNIT])?;
    let is_active = is_state(&["is-active", "--quiet", SERVICE_UNIT])?;
    let start = if is_enabled { "starts when you log in" } else { "does not start when you log in" };
    let runs = if is_active { "is running" } else { "is not running" };
    let printed = print_stdout(&format!("The service is installed, {start}, and {runs}.\n"));
    Ok(if is_active { printed } else { printed.max(ExitStatus::Negative) })
}

/// Fails if the user's systemd does not run, as in most containers and on other systems.
fn check_systemd() -> Result<(), CommandError> {
    let advice = "so there is no service. Run `sayso serve --personal` yourself, or `sayso listen`";
    match systemctl_output(&["show-environment"]) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(CommandError::cannot_run(format!("this system has no systemd, {advice}")))
        }
        Err(error) => Err(CommandError::cannot_run(format!(
            "systemctl cannot be run: {}; {advice}",
            describe_io_error(&error)
        ))),
        Ok(output) if !output.status.success() => Err(CommandError::cannot_run(format!(
            "systemd is not running for this user ({}), {advice}",
            first_line(&output.stderr)
        ))),
        Ok(_) => Ok(()),
    }
}

fn systemctl(arguments: &[&str]) -> Result<(), CommandError> {
    let output = systemctl_output(arguments)
        .map_err(|error| format!("systemctl cannot be run: {}", describe_io_error(&error)))?;
    if output.status.success() {
        return Ok(());
    }
    let command = arguments.join(" ");
    let reason = first_line(&output.stderr);
    Err(CommandError::cannot_run(format!("`systemctl --user {command}` failed: {reason}")))
}

fn is_state(arguments: &[&str]) -> Result<bool, CommandError> {
    let output = systemctl_output(arguments)
        .map_err(|error| format!("systemctl cannot be run: {}", describe_io_error(&error)))?;
    Ok(output.status.success())
}

fn systemctl_output(arguments: &[&str]) -> std::io::Result<std::process::Output> {
    Command::new("systemctl").arg("--user").args(arguments).stdin(Stdio::null()).output()
}

fn first_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    printable(text.lines().next().unwrap_or("no reason given").trim())
}
