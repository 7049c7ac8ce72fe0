//! How long a person waits for the first word of an announcement, with a clock that only the test moves. `docs/listening.md` has a table of it.

use std::sync::{Arc, Mutex};

use super::announcement_lengths::{documented, sound_seconds};
use super::latency::{CapturedOutput, event, new_listener};
use crate::speech::spoken_text_after;
use crate::terminal::listener::TerminalListener;
use crate::{Announcement, AnnouncementKind, Phrases, SpeechSynthesizer};

/// How long the sound of a text is, in seconds.
type SoundLength = fn(&str) -> f64;

/// A synthesizer that makes no sound. It is busy for as long as the sound of each text is.
struct SimulatedSynthesizer(Arc<Mutex<SimulatedSpeech>>);

struct SimulatedSpeech {
    now_ms: u64,
    busy_until_ms: u64,
    /// The announcements, and when each began.
    begun: Vec<(u64, String)>,
    last_kind: Option<AnnouncementKind>,
    sound_length: SoundLength,
}

impl SpeechSynthesizer for SimulatedSynthesizer {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a length is positive and short"
    )]
    fn speak(&mut self, announcement: &Announcement) {
        let mut speech = self.0.lock().unwrap();
        let text = spoken_text_after(speech.last_kind, announcement, Phrases::for_languages(&[]));
        speech.last_kind = Some(announcement.kind);
        let begins_at = speech.now_ms;
        speech.busy_until_ms = begins_at + ((speech.sound_length)(&text) * 1000.0) as u64;
        speech.begun.push((begins_at, text));
    }

    fn stop(&mut self) {
        let mut speech = self.0.lock().unwrap();
        speech.busy_until_ms = speech.now_ms;
    }

    fn is_idle(&mut self) -> bool {
        let speech = self.0.lock().unwrap();
        speech.now_ms >= speech.busy_until_ms
    }
}

struct Simulation {
    listener: TerminalListener<CapturedOutput>,
    speech: Arc<Mutex<SimulatedSpeech>>,
    event_count: usize,
}

impl Simulation {
    fn new(sound_length: SoundLength) -> Self {
        let speech = Arc::new(Mutex::new(SimulatedSpeech {
            now_ms: 0,
            busy_until_ms: 0,
            begun: Vec::new(),
            last_kind: None,
            sound_length,
        }));
        let (listener, _) = new_listener(Some(Box::new(SimulatedSynthesizer(speech.clone()))));
        let mut simulation = Self { listener, speech, event_count: 0 };
        // "Connected."
        simulation.wait_for_silence();
        simulation
    }

    fn receive(&mut self, kind: &str, rest: &str) {
        self.event_count += 1;
        self.listener.handle_event(event(self.event_count, kind, rest));
        self.listener.poll();
    }

    fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds / 10 {
            self.speech.lock().unwrap().now_ms += 10;
            self.listener.poll();
        }
    }

    fn wait_for_silence(&mut self) {
        self.listener.poll();
        // A silence of five seconds is longer than any pause.
        let mut silent_ms = 0;
        while silent_ms < 5000 {
            self.pass(10);
            let speech = self.speech.lock().unwrap();
            silent_ms = if speech.now_ms >= speech.busy_until_ms { silent_ms + 10 } else { 0 };
        }
    }

    fn now(&self) -> u64 {
        self.speech.lock().unwrap().now_ms
    }

    /// Returns how many seconds after a time the first announcement with this text began.
    #[allow(clippy::cast_precision_loss, reason = "a few seconds")]
    fn delay(&self, since: u64, text: &str) -> f64 {
        let speech = self.speech.lock().unwrap();
        let begun = speech.begun.iter().find(|(at, begun)| *at >= since && begun.contains(text));
        let (at, _) = begun.unwrap_or_else(|| panic!("{text}: {:?}", speech.begun));
        (*at - since) as f64 / 1000.0
    }

    fn was_begun(&self, text: &str) -> bool {
        self.speech.lock().unwrap().begun.iter().any(|(_, begun)| begun.contains(text))
    }
}

const QUESTION: &str = r#""action":"Transfer 20 euros to Ben.","consequence":"The money leaves the account at once.","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"extensions":{"sayso":{"tool":"transfer","action_digest":"x","arguments":{"euros":"20","to":"Ben"}}}"#;
const ACCEPTED: &str = r#""from_state":"awaiting_input","to_state":"thinking","extensions":{"sayso":{"reply_token":"rpl_1","decision":"accept","by":"reply"}}"#;
const CALL: &str = r#""tool":"transfer","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Transferring 20 euros to Ben.""#;
const CALL_DONE: &str = r#""tool":"transfer","tool_call_id":"call_1","status":"success","summary_normal":"The transfer is complete.""#;
const RESULT: &str = r#""chunk":"In the demo, 20 euros went to Ben; no real money moved.","position":0,"complete":true,"output_id":"out_1""#;
const BALANCE: &str = r#""chunk":"The demo account holds 1250 euros; no real bank was contacted.","position":0,"complete":true,"output_id":"out_1""#;

/// Returns the rows of the table and their seconds. The events are those of `sayso demo`, and each arrives at once.
fn measure(sound_length: SoundLength) -> Vec<(&'static str, f64)> {
    let mut transfer = Simulation::new(sound_length);
    let started_at = transfer.now();
    transfer.receive("session.started", r#""summary_normal":"Preparing a demo transfer.""#);
    let first = transfer.delay(started_at, "Preparing a demo transfer.");
    transfer.pass(100);
    let asked_at = transfer.now();
    transfer.receive("awaiting.confirmation", QUESTION);
    let question = transfer.delay(asked_at, "Transfer 20 euros to Ben.");
    transfer.wait_for_silence();
    let typed_at = transfer.now();
    transfer.listener.handle_line("yes 1");
    transfer.listener.poll();
    let answer = transfer.delay(typed_at, "Question 1: yes.");
    for (kind, rest) in [
        ("state.changed", ACCEPTED),
        ("tool.invoked", CALL),
        ("tool.completed", CALL_DONE),
        ("output.streaming", RESULT),
        ("session.completed", r#""summary_normal":"That is all.""#),
    ] {
        transfer.receive(kind, rest);
    }
    transfer.wait_for_silence();
    assert!(!transfer.was_begun("The transfer is complete."), "the result supersedes the step");

    let mut balance = Simulation::new(sound_length);
    balance.receive("session.started", r#""summary_normal":"Looking up the demo balance.""#);
    balance.pass(100);
    balance.receive("tool.invoked", r#""tool":"look_up","tool_call_id":"call_1","risk_level":"low","summary_normal":"Looking up the balance of the demo account.""#);
    let known_at = balance.now();
    balance.receive("output.streaming", BALANCE);
    balance.wait_for_silence();
    assert!(
        !balance.was_begun("Looking up the balance of the demo account."),
        "the text supersedes the step"
    );

    vec![
        ("the first announcement of a session, while nothing is spoken", first),
        ("a question, which interrupts the announcement before it", question),
        ("your answer", answer),
        (
            "the outcome of your answer, after what you typed was confirmed",
            transfer.delay(typed_at, "Accepted."),
        ),
        (
            "the tool that you allowed, after the outcome",
            transfer.delay(typed_at, "Transferring 20 euros to Ben."),
        ),
        ("the result after that tool", transfer.delay(typed_at, "20 euros went to Ben")),
        (
            "the balance (`what's my balance?`), which arrives while the start of its session is spoken; the steps of the session are skipped",
            balance.delay(known_at, "1250 euros"),
        ),
    ]
}

#[tokio::test]
async fn urgent_announcements_begin_at_once_and_steps_delay_no_result() {
    // A word takes 0.37 seconds on average.
    let delays = measure(|text| f64::from(u32::try_from(text.split_whitespace().count()).unwrap()) * 0.37);
    let [first, question, answer, outcome, tool, result, balance] = delays[..] else { panic!("{delays:?}") };
    for (name, delay) in [first, question, answer] {
        assert!(delay < 0.02, "{name}: {delay}");
    }
    // Only the sentences before them delay the others: four words, one more, five more, and eight words.
    for ((name, delay), max) in [(outcome, 1.9), (tool, 2.3), (result, 4.5), (balance, 3.4)] {
        assert!(delay < max, "{name}: {delay}");
    }
}

/// Prints the table, and compares it with the documentation. The length of a sound does not depend on the load of the machine. Versions of
/// espeak-ng differ a little.
#[tokio::test]
#[ignore = "needs espeak-ng"]
async fn measure_delays_with_espeak() {
    let document = include_str!("../../../../../docs/listening.md");
    let mut wrong_rows = Vec::new();
    for (name, delay) in measure(|text| sound_seconds(text, "en").unwrap()) {
        println!("| {name} | {delay:.1} s |");
        let documented =
            documented(document, name, 3).and_then(|cell| cell.strip_suffix(" s")?.parse::<f64>().ok());
        if documented.is_none_or(|documented| (documented - delay).abs() > 0.05 * documented + 0.06) {
            wrong_rows.push(format!("{name}: {delay:.1} s, but docs/listening.md says {documented:?}"));
        }
    }
    assert!(wrong_rows.is_empty(), "{wrong_rows:#?}");
}
