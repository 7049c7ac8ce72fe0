//! Installs what the tests need beyond a Rust toolchain, or reports what is missing.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::debian;
use crate::stage::{StageLog, command_output, is_build_server, root, succeeds};

const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

/// Disk space that the target folder and the packages of a complete run need, in GB.
const DISK_GB: u64 = 8;

/// The programs that the tests run: the name, arguments for a call that succeeds if the program works, and the Debian
/// package. The package is installed only if the call fails, because the program may have been installed by other means than apt.
const PROGRAMS: [(&str, &[&str], &str); 5] = [
    ("c++", &["--version"], "g++"),
    ("strace", &["-V"], "strace"),
    ("node", &["--version"], "nodejs"),
    ("npm", &["--version"], "npm"),
    ("python3", &["-c", "import ensurepip, sys, venv; print(sys.version)"], "python3-venv"),
];

/// Installs the required parts of the Rust toolchain.
pub(crate) fn install_toolchain(log: &StageLog) -> Result<(), String> {
    if let Some(free) = free_disk_gb().filter(|free| *free < DISK_GB) {
        log.print(&format!(
            "The disk has {free} GB free, but a run needs up to {DISK_GB} GB. Stages may fail."
        ));
    }
    for (name, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !succeeds(Command::new(env!("CARGO")).args([subcommand, "--version"])) {
            log.run(Command::new("rustup").args(["component", "add", name]))?;
        }
    }
    Ok(())
}

/// Installs missing programs. If the installation fails, the stages that need the programs fail or are skipped later.
pub(crate) fn install_programs(log: &StageLog) -> Result<(), String> {
    tolerate_failure_locally(log, install_missing(log, &[]))
}

/// Installs missing programs and the newest versions of the packages that the tests need, with one call to apt.
pub(crate) fn install_packages(log: &StageLog) -> Result<(), String> {
    let all: Vec<&str> = debian::BROWSER
        .into_iter()
        .chain(debian::SCREEN_READER)
        .chain(debian::SPEECH)
        .chain(debian::BRAILLE)
        .chain(debian::DATABASE)
        .chain(debian::TERMINAL)
        .chain(debian::NETWORK)
        .collect();
    tolerate_failure_locally(log, install_missing(log, &all))
}

fn install_missing(log: &StageLog, packages: &[&'static str]) -> Result<(), String> {
    let is_missing =
        |(program, check, _): &&(&str, &[&str], _)| !succeeds(Command::new(program).args(*check));
    let missing = PROGRAMS.iter().filter(is_missing).map(|(.., package)| *package);
    let required: BTreeSet<&str> = packages.iter().copied().chain(missing).collect();
    let result = debian::require(log, &Vec::from_iter(required));
    for (program, check, _) in PROGRAMS {
        let output = command_output(Command::new(program).args(check)).unwrap_or_else(|reason| reason);
        log.print(&format!("{program}: {}", output.lines().next().unwrap_or_default()));
    }
    result
}

/// Turns a failure into a log message, except on a build server.
fn tolerate_failure_locally(log: &StageLog, result: Result<(), String>) -> Result<(), String> {
    match result {
        Err(reason) if is_build_server() => Err(reason),
        Err(reason) => {
            log.print(&format!("{reason}; stages that need these packages will fail or be skipped"));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Returns the free disk space in GB, if `df` reports it.
fn free_disk_gb() -> Option<u64> {
    let output = command_output(Command::new("df").arg("-Pk").arg(root())).ok()?;
    let free: u64 = output.lines().nth(1)?.split_ascii_whitespace().nth(3)?.parse().ok()?;
    Some(free / (1024 * 1024))
}

/// Installs nginx with nchan, with which the fan-out benchmark compares the hub. If it is missing, the benchmark skips the
/// comparison.
pub(crate) fn install_nchan(log: &StageLog) -> Result<(), String> {
    if succeeds(Command::new("nginx").arg("-v")) && Path::new(NCHAN).exists() {
        return Ok(());
    }
    debian::require(log, &["nginx", "libnginx-mod-nchan"])
}
