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

use std::path::{Path, PathBuf};

use desktop::{Browser, Desktop};
use hub::Hub;
use scene::{SCENES, Scene, Step};
use transcript::{Heard, Transcript};

use crate::browser::unavailable;
use crate::stage::{Log, Outcome, StageResult, root};
use crate::{debian, programs};

/// So often it is listened to before it counts as wrong: a voice runs in real time, and a machine that stalls shifts it.
const ATTEMPTS: usize = 3;

/// Listens, and demands that nothing is lost, doubled or out of order.
pub(crate) fn check(log: &Log) -> StageResult {
    if let Err(why) = debian::require(log, &debian::SCREEN_READER) {
        return unavailable(why);
    }
    let again = |why: String| log.say(&format!("{why}\nIt is listened to once more."));
    (1..ATTEMPTS).find_map(|_| listen(log).map_err(again).ok()).map_or_else(|| listen(log), Ok)?;
    Ok(Outcome::Passed)
}

/// Listens, and writes down what was heard.
pub(crate) fn write(log: &Log) -> StageResult {
    if let Err(why) = debian::require(log, &debian::SCREEN_READER) {
        return unavailable(why);
    }
    let heard = listen(log)?;
    std::fs::write(written(), transcript::document(&heard))
        .map_err(|error| format!("{}: {error}", written().display()))?;
    Ok(Outcome::Passed)
}

fn written() -> PathBuf {
    root().join("docs/screen-reader.md")
}

/// What was heard in each browser.
fn listen(log: &Log) -> Result<Vec<Heard>, String> {
    let sayso = &programs::sayso(log)?;
    // A voice takes its time; they speak side by side.
    let heard: Vec<Result<Heard, String>> = std::thread::scope(|scope| {
        let listening = [Browser::Firefox, Browser::Chromium]
            .map(|browser| scope.spawn(move || listen_in(log, sayso, browser)));
        listening
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Err("it broke off".to_owned())))
            .collect()
    });
    let wrong: Vec<&str> = heard.iter().filter_map(|one| one.as_ref().err()).map(String::as_str).collect();
    if wrong.is_empty() { Ok(heard.into_iter().flatten().collect()) } else { Err(wrong.join("; ")) }
}

fn listen_in(log: &Log, sayso: &Path, browser: Browser) -> Result<Heard, String> {
    let desktop = Desktop::open(browser.program())?;
    let hub = Hub::start(&desktop, sayso)?;
    let played = play(&desktop, &hub, browser);
    let scenes = desktop.voice.transcripts();
    let lines: Vec<String> = scenes.iter().flat_map(Transcript::lines).collect();
    log.say(&format!("-- {}\n{}", browser.name(), lines.join("\n")));
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

    use super::scene::Demand;
    use super::*;

    /// Heard with Firefox ESR 140 and Chromium 148.
    const OLDER: &str = include_str!("recordings/firefox-140-chromium-148.md");

    fn recordings() -> [Vec<Transcript>; 2] {
        let newer = std::fs::read_to_string(written()).expect("cargo xtask hear writes it");
        [transcript::read(OLDER), transcript::read(&newer)]
    }

    #[test]
    fn recordings_with_older_and_newer_browsers_are_what_is_demanded() {
        for heard in recordings() {
            assert_eq!(heard.len(), 2 * SCENES.len(), "a transcript for each scene in each browser");
            for (transcript, scene) in heard.iter().zip(SCENES.iter().cycle()) {
                assert_eq!(transcript.demand(scene.wanted), Ok(()), "{}", scene.title);
            }
        }
    }

    #[test]
    fn in_no_recording_a_demand_can_be_lost_or_a_question_doubled() {
        for heard in recordings() {
            for (transcript, scene) in heard.iter().zip(SCENES.iter().cycle()) {
                for demand in scene.wanted {
                    let (Demand::Once(text) | Demand::AtLeastOnce(text)) = demand;
                    assert!(transcript.without(text).demand(scene.wanted).is_err(), "{text} is lost");
                    let doubled = transcript.followed_by(text).demand(scene.wanted);
                    assert_eq!(doubled.is_err(), matches!(demand, Demand::Once(_)), "{text} is doubled");
                }
            }
        }
    }
}
