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
use scenario::{SCENARIOS, ScenarioAction, ScenarioStart, ScreenReaderScenario, Step};
use transcript::{BrowserTranscript, Transcript};

use crate::browser::unavailable;
use crate::stage::{self, StageLog, StageOutcome, StageResult, root};
use crate::{debian, test_programs};

/// Records a session and checks that nothing is lost, repeated or out of order.
pub(crate) fn check(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::SCREEN_READER) {
        return unavailable(reason);
    }
    stage::retry(log, "hear", 2, || record_in_all_browsers(log))?;
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
    let mut hub = DemoHub::start(&desktop, sayso)?;
    let result = run_scenarios(&desktop, &mut hub, browser);
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
fn run_scenarios(desktop: &Desktop, hub: &mut DemoHub, browser: Browser) -> Result<(), String> {
    let Desktop { synthesizer, .. } = desktop;
    for ScreenReaderScenario { title, start, steps, until, .. } in &SCENARIOS {
        synthesizer.next_scenario();
        match start {
            ScenarioStart::OpenPage => {
                desktop.open_page(browser, &hub.address)?;
                hub.wait_for_listener()?;
            }
            ScenarioStart::Request(request) => hub.request_demo(request)?,
            ScenarioStart::Question => hub.ask()?,
            ScenarioStart::Action(action) => perform(*action, desktop, hub)?,
        }
        let wait_for = |text: &str| {
            synthesizer.wait_for(text).map_err(|reason| format!("{}, {title}: {reason}", browser.name()))
        };
        for Step { after, action } in *steps {
            wait_for(after)?;
            perform(*action, desktop, hub)?;
        }
        wait_for(until)?;
        synthesizer.wait_for_quiet()?;
    }
    Ok(())
}

fn perform(action: ScenarioAction, desktop: &Desktop, hub: &mut DemoHub) -> Result<(), String> {
    if !matches!(action, ScenarioAction::Press(_)) {
        desktop.synthesizer.record_event(action.describe());
    }
    match action {
        ScenarioAction::Press(key) => desktop.press(key),
        ScenarioAction::AcceptElsewhere => hub.accept(),
        ScenarioAction::KillHub => hub.kill(),
        ScenarioAction::RestartHub => hub.restart(desktop),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test reports a failure by panicking")]

    use super::scenario::SpeechExpectation;
    use super::*;

    fn recording() -> Vec<Transcript> {
        let recording = std::fs::read_to_string(transcript_path()).expect("cargo xtask hear writes it");
        let transcripts = transcript::from_markdown(&recording);
        assert_eq!(transcripts.len(), 2 * SCENARIOS.len(), "one transcript per scenario and browser");
        transcripts
    }

    #[test]
    fn the_recording_meets_the_expectations() {
        for (transcript, scenario) in recording().iter().zip(SCENARIOS.iter().cycle()) {
            assert_eq!(transcript.check(scenario.expectations), Ok(()), "{}", scenario.title);
        }
    }

    #[test]
    fn a_lost_or_wrongly_repeated_text_is_detected() {
        for (transcript, scenario) in recording().iter().zip(SCENARIOS.iter().cycle()) {
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
