//! Debian packages that tests use, brought to the newest version that the machine's sources offer.
//!
//! Debian replaces its browsers every few weeks, so a machine that keeps an old one shows less than a new machine does.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::stage::{Log, on_build_server, printed};

/// The browser that pages are tried in, and letters for it to show.
pub(crate) const BROWSER: [&str; 2] = ["chromium", "fonts-dejavu-core"];

/// The screen reader, its browsers, and the desktop that they need.
pub(crate) const SCREEN_READER: [&str; 9] =
    ["orca", "firefox-esr", "chromium", "xvfb", "openbox", "at-spi2-core", "dbus", "espeak-ng", "xdotool"];

/// What speaks, and a sound server that can be recorded.
pub(crate) const SPEECH: [&str; 5] =
    ["speech-dispatcher", "speech-dispatcher-espeak-ng", "espeak-ng", "pulseaudio", "pulseaudio-utils"];

/// Brings packages to the newest version, at most once in a run. Where apt cannot do that, installed packages are used as they
/// are, except on a build server.
pub(crate) fn require(log: &Log, packages: &[&'static str]) -> Result<(), String> {
    static CURRENT: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted: Vec<&str> = packages.iter().copied().filter(|package| !current.contains(package)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    if let Err(why) = install(log, &wanted) {
        if on_build_server() || !wanted.iter().all(|package| version(package).is_some()) {
            return Err(format!("Debian's packages cannot be installed here: {why}"));
        }
        log.say(&format!("{why}; the installed packages are used, which may not be the newest"));
    }
    let versions: Vec<String> = wanted
        .iter()
        .map(|package| {
            format!("{package} {}", version(package).unwrap_or_else(|| "not installed".to_owned()))
        })
        .collect();
    log.say(&versions.join("\n"));
    current.extend(wanted);
    Ok(())
}

/// The version of an installed package.
pub(crate) fn version(package: &str) -> Option<String> {
    let query = ["--show", "--showformat=${db:Status-Status} ${Version}", package];
    let shown = printed(Command::new("dpkg-query").args(query)).ok()?;
    shown.strip_prefix("installed ").map(str::to_owned)
}

fn install(log: &Log, packages: &[&str]) -> Result<(), String> {
    static UPDATED: OnceLock<Result<(), String>> = OnceLock::new();
    UPDATED.get_or_init(|| log.run(&mut apt(&["update"]))).clone()?;
    log.run(apt(&["install", "-y", "--no-install-recommends"]).args(packages))
}

/// Asks nothing, and waits for another apt to finish.
fn apt(arguments: &[&str]) -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-q", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"])
        .args(arguments);
    apt
}
