//! The lengths of announcements. `docs/listening.md` has a table of them, and its words are checked here.
//!
//! `measure_with_espeak` measures the seconds. The stage `speech` of `cargo xtask test` runs it. By hand:
//! `cargo test -p listen --lib -- --ignored --nocapture measure_with_espeak`.

use std::process::Command;

use super::super::input_handler::{TerminalAction, handle_line};
use super::{LISTEN_CONTEXT, NOW};
use crate::speech::spoken_text;
use crate::{Announcement, AnnouncementKind, Phrases, Preferences, Subscriber, SubscriberLimits};

/// Events of one session, and how to hear what the person types after them.
struct Session {
    subscriber: Subscriber,
    event_count: usize,
    language: &'static str,
}

impl Session {
    fn new() -> Self {
        Self::in_language("en")
    }

    fn in_language(language: &'static str) -> Self {
        let preferences = Preferences { languages: vec![language.to_owned()], ..Preferences::default() };
        let mut subscriber = Subscriber::new(preferences, SubscriberLimits::default());
        subscriber.set_subscription(aaep::SubscriptionId::parse("sub_1").unwrap());
        Self { subscriber, event_count: 0, language }
    }

    /// Returns the first announcement about an event.
    fn hear(&mut self, kind: &str, rest: &str) -> Announcement {
        self.event_count += 1;
        let (number, language) = (self.event_count, self.language);
        let event = format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"demo-assistant","agent_name":"Demo assistant"}},"localization_hints":{{"primary_language":"{language}"}},{rest}}}"#
        );
        self.subscriber.receive(&event, NOW);
        let first = self.subscriber.next_announcement(NOW).unwrap();
        while self.subscriber.next_announcement(NOW).is_some() {}
        first
    }

    fn ask(&mut self) -> Announcement {
        self.hear("awaiting.confirmation", TRANSFER)
    }

    fn reply(&mut self, line: &str) -> Announcement {
        let later = NOW.saturating_add(2000);
        let actions = handle_line(&mut self.subscriber, line, LISTEN_CONTEXT, later);
        let say = actions.into_iter().find_map(|action| match action {
            TerminalAction::Say(announcement) => Some(announcement),
            _ => None,
        });
        say.unwrap()
    }
}

const TRANSFER: &str = r#""action":"Transfer 20 euros to Ben.","consequence":"The money leaves the account at once.","summary_detailed":"May I transfer 20 euros from the demo account to Ben? It cannot be undone.","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"extensions":{"sayso":{"tool":"transfer","action_digest":"x","arguments":{"euros":"20","to":"Ben"}}}"#;
const ROOM: &str = r#""action":"Book the Garden room for tomorrow at two.","consequence":"The room is reserved for you.","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject","risk_level":"medium","reversibility":"reversible_with_effort","extensions":{"sayso":{"tool":"book_room","action_digest":"x","arguments":{"room":"Garden","day":"tomorrow","at":"14:00"}}}"#;
const BILL: &str = r#""action":"Pay the bill of May.","consequence":"The money leaves the account at once.","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"extensions":{"sayso":{"tool":"pay_bill","action_digest":"x","arguments":{"amount":250,"to":"Ben"}}}"#;
const REMOVE: &str = r#""action":"Run: rm -rf build/output.","consequence":"It deletes files.","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"extensions":{"sayso":{"tool":"Bash","action_digest":"x","arguments":{"command":"rm -rf build/output"}}}"#;
const CITY: &str = r#""question":"Which place do you mean?","reply_token":"rpl_1","timeout_seconds":120,"choices":[{"value":"Lagos","label":"Lagos"},{"value":"London","label":"London"},{"value":"Madrid","label":"Madrid"}],"accepted_response_kinds":["multiple_choice","freetext"]"#;

/// Translations of the agent's sentences in Spanish and Yoruba, as in the demo and in sayso's hook. Only the bill is in neither.
const TRANSLATIONS: [[&str; 3]; 7] = [
    ["Transfer 20 euros to Ben.", "Transferir 20 euros a Ben.", "Fi yúrò 20 ránṣẹ́ sí Ben."],
    ["Pay the bill of May.", "Pagar la factura de mayo.", "San owó oṣù Karùn-ún."],
    [
        "The money leaves the account at once.",
        "El dinero sale enseguida.",
        "Owó náà máa kúrò nínú àkántì lẹ́sẹ̀kẹsẹ̀.",
    ],
    [
        "Book the Garden room for tomorrow at two.",
        "Reservar la sala Garden para mañana a las dos.",
        "Gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán.",
    ],
    ["The room is reserved for you.", "La sala queda reservada para usted.", "A máa pa yàrá náà mọ́ fún ọ."],
    ["Run: rm", "Ejecutar: rm", "Ṣe àṣẹ yìí: rm"],
    ["It deletes files.", "Borra archivos.", "Ó ń pa fáìlì rẹ́."],
];

#[test]
fn the_measured_questions_are_those_of_the_demo_and_the_hook() {
    let demo = include_str!("../../../../cli/src/demo/phrases/confirmed_actions.rs");
    let hook = include_str!("../../../../gate/src/phrases/texts.rs");
    for texts in TRANSLATIONS.iter().filter(|texts| !texts[0].starts_with("Pay the bill")) {
        for (text, amount) in texts.iter().zip(["20 euros", "20 euros", "20"]) {
            let placeholder = if amount == "20" { "{amount}" } else { "{euros}" };
            let template =
                text.replace(amount, placeholder).replace("Ben", "{recipient}").replace(": rm", ": {}");
            assert!([demo, hook].iter().any(|source| source.contains(&template)), "{template}");
        }
    }
}

/// Returns the rows of questions in Spanish (1) or Yoruba (2).
fn translated_questions(language: usize) -> Vec<(String, Announcement, &'static Phrases)> {
    let (code, name) = [("en", "English"), ("es", "Spanish"), ("yo", "Yoruba")][language];
    let questions = [
        ("the demo's question about a transfer", TRANSFER),
        ("a dangerous question whose action does not state the call", BILL),
        ("the demo's question about a room", ROOM),
        ("a coding agent's dangerous command", REMOVE),
    ];
    let ask = |(row, question): (&str, &str)| {
        let translate = |text: String, texts: &[&str; 3]| text.replace(texts[0], texts[language]);
        let question = TRANSLATIONS.iter().fold(question.to_owned(), translate);
        let mut session = Session::in_language(code);
        let announcement = session.hear("awaiting.confirmation", &question);
        (format!("in {name}: {row}"), announcement, session.subscriber.phrases())
    };
    questions.map(ask).into()
}

/// Returns each row of the table: its name, an announcement, and the texts of its language.
fn rows() -> Vec<(String, Announcement, &'static Phrases)> {
    let english = Phrases::for_languages(&[]);
    let rows =
        english_rows().into_iter().map(|(name, announcement)| (name.to_owned(), announcement, english));
    rows.chain(translated_questions(1)).chain(translated_questions(2)).collect()
}

/// Returns the rows in English.
fn english_rows() -> Vec<(&'static str, Announcement)> {
    let phrases = Subscriber::new(Preferences::default(), SubscriberLimits::default()).phrases();
    let own = |kind, text: String| Announcement::new(kind, text);
    let after_question = |line: &str| {
        let mut session = Session::new();
        session.ask();
        session.reply(line)
    };
    let outcome = |decision: &str, by: &str| {
        let mut session = Session::new();
        session.ask();
        session.hear(
            "state.changed",
            &format!(
                r#""from_state":"awaiting_input","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"rpl_1","decision":"{decision}","by":"{by}"}}}}"#
            ),
        )
    };
    let event = |kind: &str, rest: &str| Session::new().hear(kind, rest);
    let mut working = Session::new();
    working.hear("session.started", r#""summary_normal":"Checking the balance.","request_text":"What is my balance?","expected_duration_ms":120000"#);
    working.hear(
        "tool.invoked",
        r#""tool":"look_up","summary_normal":"Looking up the balance.","description":"Reads the account.""#,
    );
    vec![
        ("the demo's question about a transfer", event("awaiting.confirmation", TRANSFER)),
        ("a dangerous question whose action does not state the call", event("awaiting.confirmation", BILL)),
        ("the demo's question about a room", event("awaiting.confirmation", ROOM)),
        ("a coding agent's dangerous command", event("awaiting.confirmation", REMOVE)),
        ("a question with three choices", event("awaiting.clarification", CITY)),
        ("`details` of the question about a transfer", after_question("details")),
        ("the confirmation of what you typed: `Question 1: yes.`", after_question("yes")),
        ("the outcome: `Accepted.`", own(AnnouncementKind::Answer, phrases.accepted.to_owned())),
        ("answered elsewhere", outcome("accept", "reply")),
        ("nobody answered in time", outcome("reject", "timeout")),
        ("reminder", own(AnnouncementKind::Ask, phrases.reminder("1 minute", 1))),
        ("more time was given", own(AnnouncementKind::Ask, phrases.more_time_granted(1, "4 minutes"))),
        ("Enter alone", after_question("")),
        (
            "still open after a reconnect",
            own(AnnouncementKind::Ask, phrases.still_open(1, "Bank", "2 minutes")),
        ),
        ("`status` of one question", after_question("status")),
        ("`quieter`", after_question("quieter")),
        ("not an answer", after_question("perhaps")),
        ("a short yes that is not enough", after_question("y")),
        ("an answer that came too early", own(AnnouncementKind::Error, phrases.question_just_appeared(1))),
        ("connected", own(AnnouncementKind::Notice, phrases.connected.to_owned())),
        ("a session starts", event("session.started", r#""summary_normal":"Checking the balance.""#)),
        ("a session ends", event("session.completed", r#""summary_normal":"That is all.""#)),
        (
            "a tool starts",
            event("tool.invoked", r#""tool":"look_up","summary_normal":"Looking up the balance.""#),
        ),
        (
            "a tool is done",
            event(
                "tool.completed",
                r#""tool":"look_up","status":"success","summary_normal":"The balance was found.""#,
            ),
        ),
        (
            "a tool failed",
            event(
                "tool.completed",
                r#""tool":"scan","status":"error","summary_normal":"The scan failed.","error_message":"Disk full.""#,
            ),
        ),
        (
            "progress, with the time left",
            event(
                "progress.updated",
                r#""progress":{"step":3,"total_steps":7,"description":"Comparing trains."},"eta_ms":120000"#,
            ),
        ),
        ("a state that lasts", own(AnnouncementKind::Agent, phrases.state_thinking("Demo assistant"))),
        (
            "an error, with advice",
            event(
                "session.errored",
                r#""error_category":"transient","summary_normal":"Reading the balance failed.","remediation_hint":"Ask for the balance again.""#,
            ),
        ),
        (
            "a hand-off",
            event(
                "handoff.requested",
                r#""reason":"You asked for a person.","target_kind":"human","summary_normal":"A person is needed.""#,
            ),
        ),
        ("you stop an agent", own(AnnouncementKind::Answer, phrases.you_stopped("Shop"))),
        (
            "somebody else stops an agent",
            event(
                "session.cancelled",
                r#""cancelled_by":"user","summary_normal":"The session was stopped.","extensions":{"sayso":{"ended_by":"user"}}"#,
            ),
        ),
        (
            "a late join",
            event(
                "state.changed",
                r#""from_state":"thinking","to_state":"thinking","extensions":{"sayso":{"text_by":"hub","about":"Checking the balance."}}"#,
            ),
        ),
        ("`details` of a session", working.reply("details")),
        (
            "an agent's sentence with an address of 61 characters",
            event(
                "output.streaming",
                &chunk("See https://example.org/docs/guides/getting-started/install.html for more."),
            ),
        ),
        (
            "an agent's sentence with a path of 47 characters",
            event("output.streaming", &chunk("I changed /home/ada/projects/sayso/crates/cli/src/main.rs.")),
        ),
        ("an agent's sentence with a date", event("output.streaming", &chunk("The bill is due 2026-11-18."))),
        (
            "an agent's sentence with an amount and a time",
            event("output.streaming", &chunk("You paid $5.00 at 14:05.")),
        ),
    ]
}

fn chunk(text: &str) -> String {
    format!(r#""chunk":"{text}","position":0,"complete":true,"output_id":"out_1""#)
}

fn word_count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns a column of a row of the table in the documentation.
pub(super) fn documented<'d>(document: &'d str, name: &str, column: usize) -> Option<&'d str> {
    let row = document.lines().find(|line| line.starts_with(&format!("| {name} |")))?;
    row.split('|').nth(column).map(str::trim)
}

#[test]
fn the_table_in_the_documentation_has_the_words_that_are_spoken() {
    let document = include_str!("../../../../../docs/listening.md");
    for (name, announcement, phrases) in rows() {
        let text = spoken_text(&announcement, phrases);
        let words = documented(document, &name, 4);
        assert_eq!(words, Some(word_count(&text).to_string().as_str()), "{name}: {text}");
    }
}

/// The seconds in the table are those of `measure_with_espeak`. espeak-ng needs about 0.37 seconds for a word, with the pauses between sentences.
/// It has no Yoruba voice, so only the words are limited there.
#[test]
fn no_announcement_takes_more_than_12_seconds() {
    let document = include_str!("../../../../../docs/listening.md");
    for (name, announcement, phrases) in rows() {
        let seconds = documented(document, &name, 5).unwrap();
        let is_short = seconds.parse::<f64>().map_or(phrases.language() == "yo", |seconds| seconds <= 12.0);
        assert!(is_short, "{name}: {seconds} s");
        // Most words of Yoruba are shorter.
        let max_words = if phrases.language() == "yo" { 36 } else { 33 };
        assert!(word_count(&spoken_text(&announcement, phrases)) <= max_words, "{name}");
    }
}

/// Returns how long the sound of a text is, in seconds. espeak-ng computes the sound without playing it, so the load of the machine does not
/// matter. Returns `None` without a voice for the language.
pub(super) fn sound_seconds(text: &str, language: &str) -> Option<f64> {
    let output = Command::new("espeak-ng")
        .args(["-v", language, "-s", "175", "--stdout", "--", text])
        .output()
        .unwrap();
    // 22,050 samples of two bytes are one second.
    output.status.success().then(|| f64::from(u32::try_from(output.stdout.len()).unwrap()) / 44_100.0)
}

/// Measures the seconds of the table, and prints its rows. Versions of espeak-ng differ a little, so the sound may be up to 5 % longer or shorter than
/// the table says.
#[test]
#[ignore = "needs espeak-ng"]
fn measure_with_espeak() {
    let document = include_str!("../../../../../docs/listening.md");
    let mut wrong_rows = Vec::new();
    for (name, announcement, phrases) in rows() {
        let text = spoken_text(&announcement, phrases);
        let measured = sound_seconds(&text, phrases.language());
        let seconds = measured.map_or("–".to_owned(), |seconds| format!("{seconds:.1}"));
        println!("| {name} | {} | {seconds} | {}", word_count(&text), text.replace('\n', " / "));
        let documented = documented(document, &name, 5).unwrap().parse::<f64>().ok();
        let is_right = match (documented, measured) {
            (Some(documented), Some(measured)) => (measured - documented).abs() <= documented * 0.05,
            (None, None) => true,
            // A later espeak-ng may have a voice that this one lacks.
            (None, Some(_)) => phrases.language() == "yo",
            (Some(_), None) => false,
        };
        if !is_right {
            wrong_rows.push(format!("{name}: {seconds} s, but docs/listening.md says {documented:?}"));
        }
    }
    assert!(wrong_rows.is_empty(), "{wrong_rows:#?}");
}
