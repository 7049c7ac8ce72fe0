//! Debian packages for the tests, updated to the newest version in the machine's package sources.
//!
//! Debian updates its browsers every few weeks, so tests with an old version would miss problems.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::stage::{StageLog, command_output, is_build_server};

/// The browser for the page tests, and a font.
pub(crate) const BROWSER: [&str; 2] = ["chromium", "fonts-dejavu-core"];

/// The screen reader, its browsers, and the desktop that they need.
pub(crate) const SCREEN_READER: [&str; 9] =
    ["orca", "firefox-esr", "chromium", "xvfb", "openbox", "at-spi2-core", "dbus", "espeak-ng", "xdotool"];

/// The speech synthesizer, and a sound server that can be recorded.
pub(crate) const SPEECH: [&str; 5] =
    ["speech-dispatcher", "speech-dispatcher-espeak-ng", "espeak-ng", "pulseaudio", "pulseaudio-utils"];

/// brltty, whose virtual driver needs no device, and liblouis for contracted braille.
pub(crate) const BRAILLE: [&str; 2] = ["brltty", "liblouis-bin"];

/// The terminal in which the screens of coding agents are read.
pub(crate) const TERMINAL: [&str; 1] = ["tmux"];

/// `ip`, which creates the network namespaces for two ASP nodes.
pub(crate) const NETWORK: [&str; 1] = ["iproute2"];

/// The database for the tests of the journal in Postgres. They run servers of their own, without a system service.
pub(crate) const DATABASE: [&str; 1] = ["postgresql"];

/// The database, Patroni, which promotes a standby, and etcd, in which Patroni records who is the primary.
pub(crate) const DATABASE_CLUSTER: [&str; 3] = ["postgresql", "patroni", "etcd-server"];

/// Updates packages to the newest version, at most once per run. If apt fails, the installed packages are used, but on a
/// build server a failure of apt is an error.
pub(crate) fn require(log: &StageLog, packages: &[&'static str]) -> Result<(), String> {
    static UP_TO_DATE: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut up_to_date = UP_TO_DATE.lock().unwrap_or_else(PoisonError::into_inner);
    let unchecked: Vec<&str> =
        packages.iter().copied().filter(|package| !up_to_date.contains(package)).collect();
    if unchecked.is_empty() {
        return Ok(());
    }
    if let Err(reason) = install(log, &unchecked) {
        if is_build_server() || !unchecked.iter().all(|package| version(package).is_some()) {
            return Err(format!("cannot install Debian packages: {reason}"));
        }
        log.print(&format!("{reason}; using the installed packages, which may not be the newest"));
    }
    let versions: Vec<String> = unchecked
        .iter()
        .map(|package| {
            format!("{package} {}", version(package).unwrap_or_else(|| "not installed".to_owned()))
        })
        .collect();
    log.print(&versions.join("\n"));
    up_to_date.extend(unchecked);
    Ok(())
}

/// Returns the version of an installed package.
pub(crate) fn version(package: &str) -> Option<String> {
    let query = ["--show", "--showformat=${db:Status-Status} ${Version}", package];
    let output = command_output(Command::new("dpkg-query").args(query)).ok()?;
    output.strip_prefix("installed ").map(str::to_owned)
}

fn install(log: &StageLog, packages: &[&str]) -> Result<(), String> {
    static UPDATED: OnceLock<Result<(), String>> = OnceLock::new();
    UPDATED.get_or_init(|| log.run(&mut apt(&["update"]))).clone()?;
    log.run(apt(&["install", "-y", "--no-install-recommends"]).args(packages))
}

/// Returns an apt command that asks no questions and waits until no other apt is running.
fn apt(arguments: &[&str]) -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-q", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"])
        .args(arguments);
    apt
}
