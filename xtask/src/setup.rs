//! What the tests need beyond a Rust toolchain: it is installed if it can be, and named if it cannot.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::stage::{command, root};

const CARGO_FUZZ: &str = "0.13.2";
const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

/// What a whole run writes into the target folder, and what its packages take, in GB.
const ROOM: u64 = 8;

/// Installs what is missing.
pub(crate) fn run() -> Result<(), String> {
    if let Some(free) = free_room().filter(|free| *free < ROOM) {
        println!(
            "The disk has {free} GB free, and all of this takes up to {ROOM}: what fails may fail for that."
        );
    }
    let missing: Vec<String> =
        [component("rustfmt", "fmt"), component("clippy", "clippy"), compiler(), strace(), cargo_fuzz()]
            .into_iter()
            .filter_map(Result::err)
            .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let told = format!("not to be had here: {}", missing.join("; "));
    if on_build_server() {
        return Err(told);
    }
    println!("{told}; what needs it will fail");
    Ok(())
}

/// What the disk has left, in GB, where that can be found out.
fn free_room() -> Option<u64> {
    let told = Command::new("df").arg("-Pk").arg(root()).output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let free: u64 = told.lines().nth(1)?.split_ascii_whitespace().nth(3)?.parse().ok()?;
    Some(free / (1024 * 1024))
}

/// Whether nobody is there to read what could not be had.
pub(crate) fn on_build_server() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

fn component(name: &str, subcommand: &str) -> Result<(), String> {
    if works(Command::new(env!("CARGO")).args([subcommand, "--version"])) {
        return Ok(());
    }
    command(Command::new("rustup").args(["component", "add", name])).map_err(|why| format!("{name} ({why})"))
}

/// The fuzzer's runtime is C++.
fn compiler() -> Result<(), String> {
    if works(Command::new("c++").arg("--version")) {
        return Ok(());
    }
    debian(&["g++"]).map_err(|why| format!("a C++ compiler ({why})"))
}

/// A test watches the hub's calls of the system: that what it acknowledges is on disk.
fn strace() -> Result<(), String> {
    if !cfg!(target_os = "linux") || works(Command::new("strace").arg("-V")) {
        return Ok(());
    }
    debian(&["strace"]).map_err(|why| format!("strace ({why})"))
}

/// The peer that the fan-out is measured against. Where it cannot be had, the benchmark says so and goes on.
pub(crate) fn nchan() -> Result<(), String> {
    if works(Command::new("nginx").arg("-v")) && Path::new(NCHAN).exists() {
        return Ok(());
    }
    debian(&["--no-install-recommends", "nginx", "libnginx-mod-nchan"])
}

/// The browser that pages are tried in, and letters for it to show.
pub(crate) fn chromium() -> Result<(), String> {
    if works(Command::new("chromium").arg("--version")) {
        return Ok(());
    }
    debian(&["--no-install-recommends", "chromium", "fonts-dejavu-core"])
}

pub(crate) fn debian(packages: &[&str]) -> Result<(), String> {
    // Nobody is there to be asked, and another may be at it.
    let apt = |what: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-q", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"])
            .args(what);
        apt
    };
    let _ = command(&mut apt(&["update"]));
    command(apt(&["install", "-y"]).args(packages))
}

fn cargo_fuzz() -> Result<(), String> {
    if works(Command::new(cargo_fuzz_path()).arg("--version")) {
        return Ok(());
    }
    let tools = tools();
    let install = ["install", "cargo-fuzz", "--version", CARGO_FUZZ, "--locked", "--quiet", "--root"];
    command(Command::new(env!("CARGO")).args(install).arg(&tools))
        .map_err(|why| format!("cargo-fuzz ({why})"))
}

/// Tools live in the target folder, so that nothing outside the clone is needed or changed.
fn tools() -> PathBuf {
    root().join("target/tools")
}

/// Where cargo-fuzz is, once it is installed.
pub(crate) fn cargo_fuzz_path() -> PathBuf {
    tools().join("bin/cargo-fuzz")
}

pub(crate) fn works(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
