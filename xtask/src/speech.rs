//! Speech that is heard: Debian's speech-dispatcher speaks to a sound server of its own, which is recorded.

use std::process::Command;

use crate::setup::{debian, works};
use crate::stage::{command, root};

const PROGRAMS: [&str; 4] = ["speech-dispatcher", "espeak-ng", "pulseaudio", "parec"];
const PACKAGES: [&str; 6] = [
    "--no-install-recommends",
    "speech-dispatcher",
    "speech-dispatcher-espeak-ng",
    "espeak-ng",
    "pulseaudio",
    "pulseaudio-utils",
];

/// So often it is listened to before it counts as wrong.
const ATTEMPTS: usize = 3;

/// Installs what speaks, and runs the test that listens. Where nothing can be installed, it says so and goes on.
pub(crate) fn run() -> Result<(), String> {
    if let Err(why) = install() {
        println!("skipped: speech cannot be heard here, because {why}");
        return Ok(());
    }
    let test = ["test", "-p", "sayso-cli", "--locked", "--test", "speech", "--", "--ignored", "--nocapture"];
    // One at a time: sound must not wait for a busy machine. It runs in real time, so a machine that stalls shifts it; what is
    // wrong with the code is wrong each time.
    let hear = || command(Command::new(env!("CARGO")).args(test).arg("--test-threads=1").current_dir(root()));
    (1..ATTEMPTS).find_map(|_| hear().ok()).map_or_else(hear, Ok)
}

fn install() -> Result<(), String> {
    let is_there = |program: &&str| works(Command::new(program).arg("--version"));
    let module = || works(Command::new("dpkg").args(["-s", "speech-dispatcher-espeak-ng"]));
    if PROGRAMS.iter().all(is_there) && module() {
        return Ok(());
    }
    debian(&PACKAGES)
}
