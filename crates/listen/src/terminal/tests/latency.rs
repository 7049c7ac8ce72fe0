//! Answers, printing and reconnects are not delayed.

use std::io::Write;
use std::sync::{Arc, Mutex};

use aaep::SubscriptionId;
use futures_util::FutureExt;

use crate::client::{Address, ConnectionError, ConnectionEvent, ConnectionLoss};
use crate::terminal::listener::TerminalListener;
use crate::terminal::{TerminalHooks, TerminalSettings};
use crate::{Announcement, Preferences, SpeechSynthesizer};

#[derive(Clone, Default)]
pub(super) struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// Takes the lines printed since the last call.
    pub(super) fn take_lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A synthesizer that never becomes idle.
struct NeverIdleSynthesizer;

impl SpeechSynthesizer for NeverIdleSynthesizer {
    fn speak(&mut self, _: &Announcement) {}

    fn stop(&mut self) {}

    fn is_idle(&mut self) -> bool {
        false
    }
}

pub(super) fn new_listener(
    synthesizer: Option<Box<dyn SpeechSynthesizer>>,
) -> (TerminalListener<CapturedOutput>, CapturedOutput) {
    new_listener_to(Address::parse("http://127.0.0.1:1", None).unwrap(), synthesizer)
}

fn new_listener_to(
    address: Address,
    synthesizer: Option<Box<dyn SpeechSynthesizer>>,
) -> (TerminalListener<CapturedOutput>, CapturedOutput) {
    let output = CapturedOutput::default();
    let (preference_updates, _) = tokio::sync::watch::channel(Preferences::default());
    let settings = TerminalSettings::new(address);
    let hooks = TerminalHooks { synthesizer, ..TerminalHooks::default() };
    let mut listener = TerminalListener::new(settings, hooks, preference_updates, output.clone());
    let subscription = SubscriptionId::parse("sub_1").ok();
    listener.handle_event(ConnectionEvent::Open { subscription, notes: None, resumed: false });
    (listener, output)
}

pub(super) fn event(number: usize, kind: &str, rest: &str) -> ConnectionEvent {
    ConnectionEvent::Text(format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00Z","producer":{{"agent_id":"bank"}},{rest}}}"#
    ))
}

#[tokio::test]
async fn an_answer_is_sent_as_soon_as_it_is_typed() {
    let (mut listener, output) = new_listener(Some(Box::new(NeverIdleSynthesizer)));
    let confirmation = r#""action":"A","consequence":"C","default_decision":"reject","reply_token":"rpl_1","timeout_seconds":300"#;
    listener.handle_event(event(1, "awaiting.confirmation", confirmation));
    listener.poll();
    assert!(listener.pending_sends.is_empty());
    listener.handle_line("yes 1");
    assert_eq!(listener.pending_sends.len(), 1);
    let output = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    assert!(output.ends_with("answer: Question 1: yes.\n"), "{output}");
}

#[test]
fn slow_speech_does_not_delay_printing() {
    let (mut listener, output) = new_listener(Some(Box::new(NeverIdleSynthesizer)));
    for number in 0..1000 {
        let rest = format!(r#""tool":"t","summary_normal":"Number {number}.""#);
        listener.handle_event(event(number, "tool.invoked", &rest));
        listener.poll();
    }
    let output = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    let tool_lines = output.lines().filter(|line| line.starts_with("tool: "));
    assert!(tool_lines.eq((0..1000).map(|number| format!("tool: Number {number}."))));
}

#[tokio::test]
async fn typing_while_disconnected_triggers_a_reconnect() {
    let address = Address::parse("http://127.0.0.1:1", None).unwrap();
    let (mut listener, _) = new_listener_to(address.clone(), None);
    listener.handle_line("status");
    assert_eq!(address.wait_for_retry().now_or_never(), None, "while connected, typing triggers no retry");
    listener
        .handle_event(ConnectionEvent::Lost(ConnectionLoss::Unreachable(ConnectionError::ConnectionReset)));
    listener.handle_line("status");
    assert_eq!(address.wait_for_retry().now_or_never(), Some(()));
}
