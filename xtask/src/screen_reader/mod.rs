//! Records what the Orca screen reader says about the listening page, in Firefox and Chromium, while a simulated person
//! answers by keyboard.
//!
//! Orca, the browsers, the window manager and the accessibility bus are Debian's, unchanged. Only the
//! speech is simulated: [`fake_dispatcher`] replaces speech-dispatcher, and [`simulated_synthesizer`] takes as long as real
//! speech and records the text.

mod demo_hub;
mod desktop;
mod fake_dispatcher;
mod scenario;
mod simulated_synthesizer;
mod transcript;

use std::path::{Path, PathBuf};

use demo_hub::DemoHub;
use desktop::{Browser, Desktop};
use scenario::{KeyStep, SCENARIOS, ScreenReaderScenario};
use transcript::{BrowserTranscript, Transcript};

use crate::browser::unavailable;
use crate::stage::{StageLog, StageOutcome, StageResult, root};
use crate::{debian, test_programs};

/// Number of attempts before the check fails. Speech runs in real time, so a slow machine can disturb it.
const ATTEMPTS: usize = 3;

/// Records a session and checks that nothing is lost, repeated or out of order.
pub(crate) fn check(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::SCREEN_READER) {
        return unavailable(reason);
    }
    let print_retry = |reason: String| log.print(&format!("{reason}\nTrying again."));
    // If all earlier attempts fail, the result of the last attempt counts.
    (1..ATTEMPTS)
        .find_map(|_| record_in_all_browsers(log).map_err(print_retry).ok())
        .map_or_else(|| record_in_all_browsers(log), Ok)?;
    Ok(StageOutcome::Passed)
}

/// Records a session and writes the transcripts to the documentation.
pub(crate) fn write(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::SCREEN_READER) {
        return unavailable(reason);
    }
    let transcripts = record_in_all_browsers(log)?;
    std::fs::write(transcript_path(), transcript::to_markdown(&transcripts))
        .map_err(|error| format!("{}: {error}", transcript_path().display()))?;
    Ok(StageOutcome::Passed)
}

fn transcript_path() -> PathBuf {
    root().join("docs/screen-reader.md")
}

/// Records the session in each browser.
fn record_in_all_browsers(log: &StageLog) -> Result<Vec<BrowserTranscript>, String> {
    let sayso = &test_programs::sayso_binary(log)?;
    // Speech takes time, so both browsers run in parallel.
    let results: Vec<Result<BrowserTranscript, String>> = std::thread::scope(|scope| {
        let threads = [Browser::Firefox, Browser::Chromium]
            .map(|browser| scope.spawn(move || record_in_browser(log, sayso, browser)));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("the recording panicked".to_owned())))
            .collect()
    });
    let errors: Vec<&str> =
        results.iter().filter_map(|result| result.as_ref().err()).map(String::as_str).collect();
    if errors.is_empty() { Ok(results.into_iter().flatten().collect()) } else { Err(errors.join("; ")) }
}

fn record_in_browser(log: &StageLog, sayso: &Path, browser: Browser) -> Result<BrowserTranscript, String> {
    let desktop = Desktop::open(browser.program())?;
    let hub = DemoHub::start(&desktop, sayso)?;
    let result = run_scenarios(&desktop, &hub, browser);
    let scenarios = desktop.synthesizer.transcripts();
    let lines: Vec<String> = scenarios.iter().flat_map(Transcript::lines).collect();
    log.print(&format!("-- {}\n{}", browser.name(), lines.join("\n")));
    result?;
    for (scenario, transcript) in SCENARIOS.iter().zip(&scenarios) {
        transcript
            .check(scenario.expectations)
            .map_err(|reason| format!("{}, {}: {reason}", browser.name(), scenario.title))?;
    }
    Ok(BrowserTranscript { browser: browser.name(), versions: browser.versions()?, scenarios })
}

/// Runs all scenarios. The simulated person presses the next key only after hearing the expected text.
fn run_scenarios(desktop: &Desktop, hub: &DemoHub, browser: Browser) -> Result<(), String> {
    let Desktop { synthesizer, .. } = desktop;
    for ScreenReaderScenario { title, request, steps, until, .. } in &SCENARIOS {
        synthesizer.next_scenario();
        if let Some(request) = request {
            hub.request_demo(request)?;
        } else {
            desktop.open_page(browser, &hub.address)?;
            hub.wait_for_listener()?;
        }
        let wait_for = |text: &str| {
            synthesizer.wait_for(text).map_err(|reason| format!("{}, {title}: {reason}", browser.name()))
        };
        for KeyStep { after, key } in *steps {
            wait_for(after)?;
            desktop.press(key)?;
        }
        wait_for(until)?;
        synthesizer.wait_for_quiet()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test reports a failure by panicking")]

    use super::scenario::SpeechExpectation;
    use super::*;

    /// A recording with Firefox ESR 140 and Chromium 148, made before the page and the demo were reworded.
    const OLDER_RECORDING: &str = include_str!("recordings/firefox-140-chromium-148.md");

    /// Texts of the older recording, each with its current wording. The recording itself is not changed.
    const REWORDED: [(&str, &str); 21] = [
        ("Demonstration assistant started:", "Demo assistant has started:"),
        ("Demonstration assistant", "Demo assistant"),
        ("Done: That was all.", "Finished: That is all."),
        ("This demonstration explains only itself.", "This demo only explains itself."),
        (
            "The hub tells the question to everybody who listens for you.",
            "The hub sends the question to everyone who listens on your behalf.",
        ),
        (
            "Your answer is checked, written down and tied to exactly the action that you were asked about.",
            "Your answer is checked, stored and tied to exactly the action you were asked about.",
        ),
        ("Without an answer nothing is done.", "Without an answer, nothing is done."),
        ("Preparing a transfer in the demonstration.", "Preparing a demo transfer."),
        ("from the demonstration account", "from the demo account"),
        (
            "In the demonstration the money is gone and cannot be called back.",
            "The money leaves the demo account at once.",
        ),
        ("High risk. It cannot be undone.", "High risk. This cannot be undone."),
        ("About 1", "You have about 1"),
        (" are left.", " left."),
        ("Without an answer it counts as no.", "Without an answer, it will not be done."),
        ("Tool: The transfer is done.", "Tool: The transfer is complete."),
        ("In the demonstration 250 euros went to Ben;", "In the demo, 250 euros went to Ben;"),
        ("Looking at the weather in the demonstration.", "Looking up the demo weather."),
        ("For which place would you like the weather?", "Which place would you like the weather for?"),
        (
            "Without an answer the agent goes on without knowing.",
            "Without an answer, the agent continues without one.",
        ),
        ("as everywhere in the demonstration,", "as everywhere in the demo,"),
        ("no real forecast was asked for.", "no real forecast was used."),
    ];

    fn recordings() -> [Vec<Transcript>; 2] {
        let newer = std::fs::read_to_string(transcript_path()).expect("cargo xtask hear writes it");
        let older =
            REWORDED.iter().fold(OLDER_RECORDING.to_owned(), |text, (old, new)| text.replace(old, new));
        [transcript::from_markdown(&older), transcript::from_markdown(&newer)]
    }

    #[test]
    fn older_and_newer_recordings_meet_the_expectations() {
        for transcripts in recordings() {
            assert_eq!(transcripts.len(), 2 * SCENARIOS.len(), "one transcript per scenario and browser");
            for (transcript, scenario) in transcripts.iter().zip(SCENARIOS.iter().cycle()) {
                assert_eq!(transcript.check(scenario.expectations), Ok(()), "{}", scenario.title);
            }
        }
    }

    #[test]
    fn a_lost_or_wrongly_repeated_text_is_detected_in_every_recording() {
        for transcripts in recordings() {
            for (transcript, scenario) in transcripts.iter().zip(SCENARIOS.iter().cycle()) {
                for expectation in scenario.expectations {
                    let (SpeechExpectation::Once(text) | SpeechExpectation::AtLeastOnce(text)) = expectation;
                    assert!(transcript.without(text).check(scenario.expectations).is_err(), "without {text}");
                    let repeated = transcript.followed_by(text).check(scenario.expectations);
                    assert_eq!(
                        repeated.is_err(),
                        matches!(expectation, SpeechExpectation::Once(_)),
                        "with {text} repeated"
                    );
                }
            }
        }
    }
}
