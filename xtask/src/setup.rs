//! What the tests need beyond a Rust toolchain: it is installed if it can be, and named if it cannot.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::debian;
use crate::stage::{Log, on_build_server, printed, root, works};

const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

/// What a whole run writes into the target folder, and what its packages take, in GB.
const DISK_GB: u64 = 8;

/// Programs that tests run, how to see that they are there, and the Debian packages that have them. They may also come from
/// elsewhere, so a package is installed only where its program is missing.
const PROGRAMS: [(&str, &[&str], &str); 5] = [
    ("c++", &["--version"], "g++"),
    ("strace", &["-V"], "strace"),
    ("node", &["--version"], "nodejs"),
    ("npm", &["--version"], "npm"),
    ("python3", &["-c", "import ensurepip, sys, venv; print(sys.version)"], "python3-venv"),
];

/// The parts of the Rust toolchain that are used.
pub(crate) fn toolchain(log: &Log) -> Result<(), String> {
    if let Some(free) = free_disk_gb().filter(|free| *free < DISK_GB) {
        log.say(&format!(
            "The disk has {free} GB free, and a run takes up to {DISK_GB}: stages may fail for that."
        ));
    }
    for (name, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !works(Command::new(env!("CARGO")).args([subcommand, "--version"])) {
            log.run(Command::new("rustup").args(["component", "add", name]))?;
        }
    }
    Ok(())
}

/// Programs that are missing. Where they cannot be installed, what needs them fails or is skipped later, and says so.
pub(crate) fn programs(log: &Log) -> Result<(), String> {
    tolerate(log, require(log, &[]))
}

/// Programs that are missing, and the newest of all packages that tests use, in one go.
pub(crate) fn packages(log: &Log) -> Result<(), String> {
    let all: Vec<&str> =
        debian::BROWSER.into_iter().chain(debian::SCREEN_READER).chain(debian::SPEECH).collect();
    tolerate(log, require(log, &all))
}

fn require(log: &Log, packages: &[&'static str]) -> Result<(), String> {
    let is_missing = |(program, check, _): &&(&str, &[&str], _)| !works(Command::new(program).args(*check));
    let missing = PROGRAMS.iter().filter(is_missing).map(|(.., package)| *package);
    let wanted: BTreeSet<&str> = packages.iter().copied().chain(missing).collect();
    let result = debian::require(log, &Vec::from_iter(wanted));
    for (program, check, _) in PROGRAMS {
        let shown = printed(Command::new(program).args(check)).unwrap_or_else(|why| why);
        log.say(&format!("{program}: {}", shown.lines().next().unwrap_or_default()));
    }
    result
}

fn tolerate(log: &Log, result: Result<(), String>) -> Result<(), String> {
    match result {
        Err(why) if on_build_server() => Err(why),
        Err(why) => {
            log.say(&format!("{why}; what needs it will fail or be skipped"));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// What the disk has left, where that can be found out.
fn free_disk_gb() -> Option<u64> {
    let shown = printed(Command::new("df").arg("-Pk").arg(root())).ok()?;
    let free: u64 = shown.lines().nth(1)?.split_ascii_whitespace().nth(3)?.parse().ok()?;
    Some(free / (1024 * 1024))
}

/// The peer that the fan-out is measured against. Where it cannot be had, the benchmark says so and goes on.
pub(crate) fn nchan(log: &Log) -> Result<(), String> {
    if works(Command::new("nginx").arg("-v")) && Path::new(NCHAN).exists() {
        return Ok(());
    }
    debian::require(log, &["nginx", "libnginx-mod-nchan"])
}
