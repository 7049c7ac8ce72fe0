//! The order, repetition and wording of announcements after typed lines.

use std::sync::{Arc, Mutex};

use super::latency::{CapturedOutput, event, new_listener};
use crate::client::{Address, ConnectionEvent};
use crate::terminal::listener::TerminalListener;
use crate::terminal::{TerminalHooks, TerminalSettings};
use crate::{Announcement, ManifestStatus, Preferences, SpeechSynthesizer};

/// A synthesizer that records which texts were spoken and which were stopped early. The test ends the current text.
#[derive(Clone, Default)]
struct Voice(Arc<Mutex<(Vec<String>, bool)>>);

impl Voice {
    fn finish(&self) {
        self.0.lock().unwrap().1 = false;
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().0)
    }
}

impl SpeechSynthesizer for Voice {
    fn speak(&mut self, announcement: &Announcement) {
        let mut voice = self.0.lock().unwrap();
        voice.0.push(announcement.text.to_string());
        voice.1 = true;
    }

    fn stop(&mut self) {
        let mut voice = self.0.lock().unwrap();
        voice.0.push("(stopped)".to_owned());
        voice.1 = false;
    }

    fn is_idle(&mut self) -> bool {
        !self.0.lock().unwrap().1
    }
}

#[test]
fn repeat_and_last_skip_the_replies_to_commands() {
    let (mut listener, output) = new_listener(None);
    listener.handle_event(event(1, "tool.invoked", r#""tool":"t","summary_normal":"Looking.""#));
    listener.poll();
    for line in ["status", "code 7", "details", "history 1"] {
        listener.handle_line(line);
    }
    output.take_lines();
    listener.handle_line("repeat");
    assert_eq!(output.take_lines(), ["tool: Looking."]);
    listener.handle_line("last");
    let last = output.take_lines();
    assert!(last.len() == 1 && last[0].ends_with(", tool: Looking."), "{last:?}");
}

#[test]
fn the_labels_of_printed_lines_follow_the_language() {
    for (language, expected) in [
        ("en", "tool: Looking."),
        ("es", "herramienta: Looking."),
        ("yo", "irinṣẹ́: Looking."),
        ("fr", "tool: Looking."),
    ] {
        let output = CapturedOutput::default();
        let (preference_updates, _) = tokio::sync::watch::channel(Preferences::default());
        let mut settings = TerminalSettings::new(Address::parse("http://127.0.0.1:1", None).unwrap());
        settings.preferences.languages = vec![language.to_owned()];
        let hooks = TerminalHooks::default();
        let mut listener = TerminalListener::new(settings, hooks, preference_updates, output.clone());
        listener.handle_event(event(1, "tool.invoked", r#""tool":"t","summary_normal":"Looking.""#));
        listener.poll();
        assert_eq!(output.take_lines(), [expected]);
    }
}

#[test]
fn the_address_is_printed_and_not_spoken() {
    let voice = Voice::default();
    let (mut listener, output) = new_listener(Some(Box::new(voice.clone())));
    listener.poll();
    assert_eq!(output.take_lines(), ["notice: Listening to http://127.0.0.1:1. Type help for the commands."]);
    assert_eq!(voice.take(), ["Connected. Type help for the commands."]);
}

#[test]
fn the_answer_is_spoken_at_once_and_superseded_steps_are_skipped() {
    let voice = Voice::default();
    let (mut listener, _) = new_listener(Some(Box::new(voice.clone())));
    let mut number = 0;
    let mut receive = |listener: &mut TerminalListener<CapturedOutput>, kind: &str, rest: &str| {
        number += 1;
        listener.handle_event(event(number, kind, rest));
        listener.poll();
    };
    listener.poll();
    voice.finish();
    receive(&mut listener, "session.started", r#""summary_normal":"The balance.""#);
    receive(&mut listener, "tool.invoked", r#""tool":"t","summary_normal":"Looking.""#);
    receive(&mut listener, "tool.completed", r#""tool":"t","status":"success","summary_normal":"Found.""#);
    let answer = r#""chunk":"It is 5 euros.","position":0,"complete":true,"output_id":"out_1""#;
    receive(&mut listener, "output.streaming", answer);
    voice.finish();
    listener.poll();
    assert_eq!(
        voice.take(),
        ["Connected. Type help for the commands.", "bank has started. The balance.", "It is 5 euros."]
    );
    // A step that is being spoken is cut short, and is not repeated. A failure, and a call that cannot be undone, are not skipped.
    voice.finish();
    receive(&mut listener, "tool.invoked", r#""tool":"t","summary_normal":"Looking again.""#);
    receive(&mut listener, "tool.completed", r#""tool":"t","status":"error","summary_normal":"Alas.""#);
    receive(&mut listener, "tool.invoked", r#""tool":"u","irreversible":true,"summary_normal":"Sending.""#);
    receive(&mut listener, "output.streaming", &answer.replace("out_1", "out_2"));
    for _ in 0..3 {
        voice.finish();
        listener.poll();
    }
    assert_eq!(
        voice.take(),
        ["Looking again.", "(stopped)", "Failed: Alas.", "Sending. This cannot be undone.", "It is 5 euros.",]
    );
}

#[test]
fn the_hub_is_in_the_status_only_if_something_was_checked() {
    let (mut listener, output) = new_listener(None);
    let claim = ManifestStatus::Unverified("sayso-hub".to_owned());
    listener.handle_event(ConnectionEvent::ManifestChecked(claim));
    output.take_lines();
    listener.handle_line("status");
    assert_eq!(output.take_lines(), ["status: No agent is working."]);
    listener.handle_event(ConnectionEvent::ManifestChecked(ManifestStatus::Missing));
    output.take_lines();
    listener.handle_line("status");
    assert_eq!(
        output.take_lines(),
        ["status: No agent is working.", "status: The hub has no manifest that says who it is."]
    );
}

#[test]
fn a_handoff_that_does_not_exist_is_not_open() {
    let (mut listener, output) = new_listener(None);
    output.take_lines();
    for (line, expected) in [
        ("take 1", "error: Hand-off 1 is not open."),
        ("decline 2", "error: Hand-off 2 is not open."),
        ("take a break", "error: Not understood. Type help to hear what you can type."),
    ] {
        listener.handle_line(line);
        assert_eq!(output.take_lines(), [expected]);
    }
}
