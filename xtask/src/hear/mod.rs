//! What the Orca screen reader says of the listening page, in Firefox and in Chromium, while a person answers by keyboard.
//!
//! Orca, the browsers, the window manager and the accessibility bus are Debian's and unchanged. Only the voice is ours
//! ([`dispatcher`]): it stands where speech-dispatcher does, takes as long as a voice would, and writes down what it is given.

mod desktop;
mod dispatcher;
mod hub;
mod scene;
mod transcript;
mod voice;

use std::path::PathBuf;
use std::process::Command;

use desktop::{Browser, Desktop, printed};
use hub::Hub;
use scene::{SCENES, Scene, Step};
use transcript::{Heard, Transcript};

use crate::setup::{debian, on_build_server};
use crate::stage::{cargo, root};

/// What is installed, by Debian's names.
const PACKAGES: [&str; 9] =
    ["orca", "firefox-esr", "chromium", "xvfb", "openbox", "at-spi2-core", "dbus", "espeak-ng", "xdotool"];

/// So often it is listened to before it counts as wrong: a voice runs in real time, and a machine that stalls shifts it.
const ATTEMPTS: usize = 3;

/// Listens, and demands that nothing is lost, doubled or out of order.
pub(crate) fn check() -> Result<(), String> {
    let again = |why: String| println!("{why}\nIt is listened to once more.");
    (1..ATTEMPTS).find_map(|_| listen().map_err(again).ok()).map_or_else(|| listen().map(drop), |_| Ok(()))
}

/// Listens, and writes down what was heard.
pub(crate) fn write() -> Result<(), String> {
    let Some(heard) = listen()? else { return Ok(()) };
    std::fs::write(written(), transcript::document(&heard))
        .map_err(|error| format!("{}: {error}", written().display()))
}

fn written() -> PathBuf {
    root().join("docs/screen-reader.md")
}

/// What was heard in each browser; nothing where it cannot be tried, which is then said.
fn listen() -> Result<Option<Vec<Heard>>, String> {
    if let Err(why) = install() {
        let told = format!("Debian's packages cannot be installed here ({why})");
        if on_build_server() {
            return Err(told);
        }
        println!("SKIPPED: the page was not tried with a screen reader: {told}");
        return Ok(None);
    }
    cargo(&["build", "--quiet", "--locked", "-p", "sayso-cli"])?;
    // A voice takes its time; they speak side by side.
    let heard: Vec<Result<Heard, String>> = std::thread::scope(|scope| {
        let listening =
            [Browser::Firefox, Browser::Chromium].map(|browser| scope.spawn(move || listen_in(browser)));
        listening
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Err("it broke off".to_owned())))
            .collect()
    });
    let wrong: Vec<&str> = heard.iter().filter_map(|one| one.as_ref().err()).map(String::as_str).collect();
    if wrong.is_empty() { Ok(Some(heard.into_iter().flatten().collect())) } else { Err(wrong.join("; ")) }
}

fn install() -> Result<(), String> {
    let query = ["--show", "--showformat=${db:Status-Status}\n"];
    let states = printed(Command::new("dpkg-query").args(query).args(PACKAGES)).unwrap_or_default();
    if states.lines().filter(|state| *state == "installed").count() == PACKAGES.len() {
        return Ok(());
    }
    let packages: Vec<&str> = ["--no-install-recommends"].into_iter().chain(PACKAGES).collect();
    debian(&packages)
}

fn listen_in(browser: Browser) -> Result<Heard, String> {
    let desktop = Desktop::open(browser.program())?;
    let hub = Hub::start(&desktop)?;
    let played = play(&desktop, &hub, browser);
    let scenes = desktop.voice.transcripts();
    let lines: Vec<String> = scenes.iter().flat_map(Transcript::lines).collect();
    println!("-- {}\n{}", browser.name(), lines.join("\n"));
    played?;
    for (scene, transcript) in SCENES.iter().zip(&scenes) {
        transcript
            .demand(scene.wanted)
            .map_err(|why| format!("{}, {}: {why}", browser.name(), scene.title))?;
    }
    Ok(Heard { browser: browser.name(), versions: browser.versions()?, scenes })
}

/// Plays all scenes; a person goes on only when they have heard what they wait for.
fn play(desktop: &Desktop, hub: &Hub, browser: Browser) -> Result<(), String> {
    let Desktop { voice, .. } = desktop;
    for Scene { title, request, steps, until, .. } in &SCENES {
        voice.next_scene();
        if let Some(request) = request {
            hub.ask(request)?;
        } else {
            desktop.browse(browser, &hub.address)?;
            hub.wait_for_listener()?;
        }
        let wait_for =
            |text: &str| voice.wait_for(text).map_err(|why| format!("{}, {title}: {why}", browser.name()));
        for Step { hears, presses } in *steps {
            wait_for(hears)?;
            desktop.press(presses)?;
        }
        wait_for(until)?;
        voice.wait_for_quiet()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test fails where it cannot go on")]

    use super::*;

    #[test]
    fn what_is_written_in_docs_is_what_is_demanded() {
        let text = std::fs::read_to_string(written()).expect("cargo xtask hear writes it");
        let heard = transcript::read(&text);
        assert_eq!(heard.len(), 2 * SCENES.len(), "a transcript for each scene in each browser");
        for (transcript, scene) in heard.iter().zip(SCENES.iter().cycle()) {
            assert_eq!(transcript.demand(scene.wanted), Ok(()), "{}", scene.title);
        }
    }
}
