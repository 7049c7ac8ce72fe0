//! Tests of typed lines, speech and reconnects.

mod announcement_lengths;
mod languages;
mod latency;
mod reconnect;
mod replies;
mod speech_delays;

use std::sync::{Arc, Mutex};

use seal::UnixMillis;

use super::input_handler::{InputContext, TerminalAction, goodbye_text, handle_line};
use super::listener::TerminalListener;
use super::reconnect::CatchUp;
use super::{TerminalHooks, TerminalSettings};
use crate::client::{Address, ConnectionEvent};
use crate::{Announcement, Preferences, SpeechSynthesizer, Subscriber, SubscriberLimits};

pub(super) const NOW: UnixMillis = UnixMillis::new(1_779_631_200_000);
/// When the questions were asked. It is long enough ago that an answer need not name them.
const ASKED_AT: UnixMillis = NOW.saturating_sub(1000);
/// The context of `sayso listen`, which accepts no requests to an agent.
pub(super) const LISTEN_CONTEXT: InputContext =
    InputContext { request_filter: None, has_speech: false, has_hub: true, is_disconnected: false };
/// The context of `sayso demo`, which also accepts requests to the demo agent.
pub(super) const DEMO_CONTEXT: InputContext =
    InputContext { request_filter: Some(|_| true), has_speech: false, has_hub: true, is_disconnected: false };

fn subscriber_with(questions: &[&str]) -> Subscriber {
    subscriber_in_language("en", questions)
}

pub(super) fn subscriber_in_language(language: &str, questions: &[&str]) -> Subscriber {
    let preferences = Preferences { languages: vec![language.to_owned()], ..Preferences::default() };
    let mut subscriber = Subscriber::new(preferences, SubscriberLimits::default());
    subscriber.set_subscription(aaep::SubscriptionId::parse("sub_1").unwrap());
    for (at, question) in questions.iter().enumerate() {
        subscriber.receive(
            &format!(
                r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.{question},"event_id":"evt_{at}","session_id":"sess_{at}","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank"}},"reply_token":"rpl_{at}","timeout_seconds":120}}"#
            ),
            ASKED_AT,
        );
    }
    while subscriber.next_announcement(ASKED_AT).is_some() {}
    subscriber
}

pub(super) const IRREVERSIBLE: &str =
    r#"confirmation","action":"A","consequence":"C","default_decision":"reject","irreversible":true"#;
const UNSTATED_REVERSIBILITY: &str =
    r#"confirmation","action":"A","consequence":"C","default_decision":"reject","risk_level":"low""#;
pub(super) const LOW_RISK: &str = r#"confirmation","action":"A","consequence":"C","default_decision":"reject","risk_level":"low","irreversible":false"#;
pub(super) const FREE_TEXT: &str = r#"clarification","question":"Q?""#;
pub(super) const CHOICES: &str = r#"clarification","question":"Q?","choices":[{"value":"a","label":"The first"},{"value":"b","label":"The second"}]"#;
pub(super) const YES_NO: &str = r#"clarification","question":"Q?","accepted_response_kinds":["yes_no"]"#;
const THREE_CHOICES: &str = r#"clarification","question":"Q?","choices":[{"value":"a2","label":"One"},{"value":"b","label":"The second"},{"value":"c","label":"The third"}]"#;
const NUMERIC: &str = r#"clarification","question":"Q?","accepted_response_kinds":["numeric"]"#;

/// Returns the message or request that a line causes, or `None`.
fn sent_message(questions: &[&str], line: &str, context: InputContext) -> Option<String> {
    sent_message_in_language("en", questions, line, context)
}

pub(super) fn sent_message_in_language(
    language: &str,
    questions: &[&str],
    line: &str,
    context: InputContext,
) -> Option<String> {
    let mut subscriber = subscriber_in_language(language, questions);
    handle_line(&mut subscriber, line, context, NOW).into_iter().find_map(|action| match action {
        TerminalAction::Send { message, .. } => Some(message),
        TerminalAction::Request(text) => Some(format!("request {text}")),
        _ => None,
    })
}

#[test]
fn only_unambiguous_input_counts_as_an_answer() {
    let accept = r#""reply_token":"rpl_0","decision":"accept""#;
    let reject = r#""reply_token":"rpl_0","decision":"reject""#;
    let table: &[(&[&str], &str, Option<&str>)] = &[
        (&[IRREVERSIBLE], "yes", Some(accept)),
        (&[IRREVERSIBLE], "Accept", Some(accept)),
        (&[IRREVERSIBLE], "yes 1", Some(accept)),
        (&[IRREVERSIBLE], "1 accept", Some(accept)),
        (&[IRREVERSIBLE], "answer yes", Some(accept)),
        (&[IRREVERSIBLE], "no", Some(reject)),
        (&[IRREVERSIBLE], "n", Some(reject)),
        (&[IRREVERSIBLE], "2", Some(reject)),
        (&[IRREVERSIBLE], "1", None),
        (&[IRREVERSIBLE], "y", None),
        (&[IRREVERSIBLE], "y 1", None),
        (&[IRREVERSIBLE], "answer y", None),
        (&[IRREVERSIBLE], "", None),
        (&[IRREVERSIBLE], "3", None),
        (&[IRREVERSIBLE], "yes 2", None),
        (&[IRREVERSIBLE], "yes no", None),
        (&[IRREVERSIBLE], "yess", None),
        (&[IRREVERSIBLE], "ｙｅｓ", None),
        (&[UNSTATED_REVERSIBILITY], "1", None),
        (&[UNSTATED_REVERSIBILITY], "yes", Some(accept)),
        (&[LOW_RISK], "1", Some(accept)),
        (&[LOW_RISK], "y", Some(accept)),
        (&[LOW_RISK], "2", Some(reject)),
        (&[LOW_RISK, LOW_RISK], "yes", None),
        (&[LOW_RISK, LOW_RISK], "1", None),
        (&[LOW_RISK, LOW_RISK], "yes 1", Some(accept)),
        (&[FREE_TEXT, LOW_RISK], "Lagos", None),
        (&[FREE_TEXT, LOW_RISK], "1 New York", Some(r#""reply_token":"rpl_0","response":"New York""#)),
        (&[FREE_TEXT], "Lagos", Some(r#""response":"Lagos""#)),
        (&[FREE_TEXT], "yes", Some(r#""response":"yes""#)),
        (&[FREE_TEXT], "5 euros", Some(r#""response":"5 euros""#)),
        (&[FREE_TEXT], "answer stop", Some(r#""response":"stop""#)),
        (&[FREE_TEXT], "answer 5 euros", Some(r#""response":"5 euros""#)),
        (&[FREE_TEXT], "status", None),
        (&[CHOICES], "2", Some(r#""response":"b""#)),
        (&[CHOICES], "the first", Some(r#""response":"a""#)),
        (&[CHOICES], "3", None),
        (&[CHOICES], "the third", None),
        (&[NUMERIC], "12", Some(r#""response":12"#)),
        (&[NUMERIC], "twelve", None),
        (&[CHOICES, IRREVERSIBLE], "the second", Some(r#""reply_token":"rpl_0","response":"b""#)),
        (&[IRREVERSIBLE, CHOICES], "answer the second", Some(r#""reply_token":"rpl_1","response":"b""#)),
        (&[IRREVERSIBLE, THREE_CHOICES], "answer 3", Some(r#""reply_token":"rpl_1","response":"c""#)),
        (&[IRREVERSIBLE, THREE_CHOICES], "3", Some(r#""reply_token":"rpl_1","response":"c""#)),
        (&[CHOICES, THREE_CHOICES], "3", Some(r#""reply_token":"rpl_1","response":"c""#)),
        (&[IRREVERSIBLE, NUMERIC], "12", Some(r#""reply_token":"rpl_1","response":12"#)),
        // The line could answer more than one question, and a yes is never guessed.
        (&[CHOICES, THREE_CHOICES], "the second", None),
        (&[CHOICES, THREE_CHOICES], "2", None),
        (&[LOW_RISK, CHOICES], "1", None),
        (&[LOW_RISK, FREE_TEXT], "1", None),
        (&[LOW_RISK, CHOICES], "yes", None),
        (&[LOW_RISK, CHOICES], "the third", None),
        (&[], "yes", None),
        (&[], "1", None),
    ];
    for (questions, line, expected) in table {
        let sent = sent_message(questions, line, LISTEN_CONTEXT);
        match expected {
            Some(part) => {
                assert!(sent.as_ref().is_some_and(|sent| sent.contains(part)), "{line:?}: {sent:?}");
            }
            None => assert_eq!(sent, None, "{line:?} to {questions:?}"),
        }
    }
}

#[test]
fn input_that_is_neither_a_command_nor_an_answer_is_a_request() {
    for (questions, line, expected) in [
        (&[][..], "Transfer 250 euros", Some("request Transfer 250 euros")),
        (&[], "5 euros to Ben", Some("request 5 euros to Ben")),
        (&[IRREVERSIBLE], "Transfer 250 euros", Some("request Transfer 250 euros")),
        (&[IRREVERSIBLE], "yes", Some("accept")),
        (&[FREE_TEXT], "Lagos", Some("\"response\":\"Lagos\"")),
        (&[], "yes", None),
        (&[], "status", None),
    ] {
        let sent = sent_message(questions, line, DEMO_CONTEXT);
        match expected {
            Some(part) => {
                assert!(sent.as_ref().is_some_and(|sent| sent.contains(part)), "{line:?}: {sent:?}");
            }
            None => assert_eq!(sent, None, "{line:?}"),
        }
    }
}

#[test]
fn while_a_question_is_open_answer_like_input_is_not_a_request() {
    for line in
        ["nope", "yes please", "ok then", "sure", "go ahead", "I don't want that", "send it", "cancel"]
    {
        for questions in [&[IRREVERSIBLE][..], &[LOW_RISK], &[LOW_RISK, IRREVERSIBLE], &[LOW_RISK, FREE_TEXT]]
        {
            let actions = handle_line(&mut subscriber_with(questions), line, DEMO_CONTEXT, NOW);
            let [TerminalAction::Say(announcement)] = actions.as_slice() else {
                panic!("{line}: {actions:?}")
            };
            assert!(
                announcement.text.starts_with("That is not an answer, so nothing was sent."),
                "{announcement:?}"
            );
            assert!(announcement.text.contains(" no"), "how to answer: {announcement:?}");
        }
        assert_eq!(sent_message(&[], line, DEMO_CONTEXT), Some(format!("request {line}")), "nothing is open");
    }
    // The same holds for a line that is not a known request. A known request is passed on.
    let context =
        InputContext { request_filter: Some(|line| line == "what's my balance?"), ..LISTEN_CONTEXT };
    assert_eq!(sent_message(&[IRREVERSIBLE], "hm, er, mumble", context), None);
    assert_eq!(sent_message(&[IRREVERSIBLE], "wibble", context), None);
    assert_eq!(
        sent_message(&[IRREVERSIBLE], "what's my balance?", context),
        Some("request what's my balance?".to_owned())
    );
    assert_eq!(sent_message(&[], "wibble", context), Some("request wibble".to_owned()));
}

#[test]
fn the_goodbye_text_mentions_running_agents_and_open_questions() {
    let goodbye = |questions: &[&str]| goodbye_text(&subscriber_with(questions), true);
    assert_eq!(goodbye(&[]), "You are no longer listening.");
    assert_eq!(
        goodbye(&[IRREVERSIBLE]),
        "You are no longer listening. The agent continues. You have not answered question 1."
    );
    assert_eq!(
        goodbye(&[IRREVERSIBLE, FREE_TEXT]),
        "You are no longer listening. The agents continue. You have not answered questions 1 and 2."
    );
    assert_eq!(goodbye_text(&subscriber_with(&[]), false), "");
}

#[test]
fn stop_needs_a_session_number_if_several_agents_are_active() {
    assert_eq!(sent_message(&[IRREVERSIBLE, IRREVERSIBLE], "stop", LISTEN_CONTEXT), None);
    assert!(
        sent_message(&[IRREVERSIBLE, IRREVERSIBLE], "stop 2", LISTEN_CONTEXT).unwrap().contains("sess_1")
    );
    assert!(sent_message(&[IRREVERSIBLE], "stop", LISTEN_CONTEXT).unwrap().contains("sess_0"));
    let all =
        handle_line(&mut subscriber_with(&[IRREVERSIBLE, IRREVERSIBLE]), "stop all", LISTEN_CONTEXT, NOW);
    assert_eq!(all.iter().filter(|action| matches!(action, TerminalAction::Send { .. })).count(), 2);
    assert_eq!(
        sent_message(&[IRREVERSIBLE], "stop", InputContext { has_hub: false, ..LISTEN_CONTEXT }),
        None
    );
    assert_eq!(
        sent_message(&[IRREVERSIBLE], "more time", InputContext { has_hub: false, ..LISTEN_CONTEXT }),
        None
    );
}

#[test]
fn several_sessions_of_one_agent_are_distinguished_by_topic() {
    let mut subscriber = subscriber_with(&[]);
    for (at, topic) in ["Moving money.", "Booking a room."].iter().enumerate() {
        subscriber.receive(
            &format!(
                r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.session.started","event_id":"evt_{at}","session_id":"sess_{at}","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank"}},"summary_normal":"{topic}"}}"#
            ),
            NOW,
        );
    }
    let reply =
        |subscriber: &mut Subscriber, line| match &handle_line(subscriber, line, LISTEN_CONTEXT, NOW)[..] {
            [TerminalAction::Say(announcement)] => announcement.text.clone(),
            other => panic!("{other:?}"),
        };
    let which = "Which one? 1 is bank: Moving money; 2 is bank: Booking a room. Type stop and the number";
    assert!(reply(&mut subscriber, "stop").starts_with(which), "{}", reply(&mut subscriber, "stop"));
    let status = reply(&mut subscriber, "status");
    let first = "Session 1, bank. About: Moving money. It has not said what it is doing.\nSession 2, bank. About: Booking a room.";
    assert!(status.starts_with(first), "{status}");
}

#[test]
fn the_status_describes_each_of_several_questions() {
    let reply = |questions: &[&str]| match &handle_line(
        &mut subscriber_with(questions),
        "status",
        LISTEN_CONTEXT,
        NOW,
    )[..]
    {
        [TerminalAction::Say(announcement)] => announcement.text.clone(),
        other => panic!("{other:?}"),
    };
    let several = reply(&[LOW_RISK, FREE_TEXT]);
    assert!(several.contains("\nQuestion 1 from bank: A. About 2 minutes left.\n"), "{several}");
    assert!(several.ends_with("\nQuestion 2 from bank: Q? About 2 minutes left."), "{several}");
    assert!(reply(&[LOW_RISK]).ends_with("\nQuestion 1 from bank: A. About 2 minutes left."));
}

#[test]
fn the_announced_answers_to_several_questions_are_accepted() {
    for (language, yes, no, answer) in [
        ("en", ["yes 2", "accept 2"], ["no 2", "reject 2"], "answer 2 a"),
        ("es", ["sí 2", "aceptar 2"], ["no 2", "rechazar 2"], "responder 2 a"),
        ("yo", ["bẹ́ẹ̀ni 2", "accept 2"], ["rárá 2", "reject 2"], "dáhùn 2 a"),
    ] {
        for (words, decision) in [(yes, "accept"), (no, "reject")] {
            for line in words {
                let mut subscriber = subscriber_in_language(language, &[IRREVERSIBLE, IRREVERSIBLE]);
                let instructions = subscriber.answer_instructions(2).unwrap();
                // The instructions contain the first form. The second form is also accepted.
                assert!(instructions.contains(words[0]), "{instructions}");
                let actions = handle_line(&mut subscriber, line, LISTEN_CONTEXT, NOW);
                let sent = format!(r#""reply_token":"rpl_1","decision":"{decision}""#);
                assert!(
                    matches!(&actions[1], TerminalAction::Send { message, .. } if message.contains(&sent)),
                    "{actions:?}"
                );
            }
        }
        let sent =
            sent_message_in_language(language, &[IRREVERSIBLE, CHOICES], answer, LISTEN_CONTEXT).unwrap();
        assert!(sent.contains(r#""reply_token":"rpl_1","response":"a""#), "{sent}");
    }
}

#[derive(Default)]
struct RecordedSpeech {
    texts: Vec<String>,
    is_busy: bool,
}

/// A synthesizer that records the texts and stays busy until it is stopped.
#[derive(Clone, Default)]
struct RecordingSynthesizer(Arc<Mutex<RecordedSpeech>>);

impl SpeechSynthesizer for RecordingSynthesizer {
    fn speak(&mut self, announcement: &Announcement) {
        let mut speech = self.0.lock().unwrap();
        speech.texts.push(announcement.text.to_string());
        speech.is_busy = true;
    }

    fn stop(&mut self) {
        let mut speech = self.0.lock().unwrap();
        speech.texts.push("(stop)".to_owned());
        speech.is_busy = false;
    }

    fn is_idle(&mut self) -> bool {
        !self.0.lock().unwrap().is_busy
    }
}

#[test]
fn speech_is_sequential_and_critical_announcements_interrupt() {
    let synthesizer = RecordingSynthesizer::default();
    let hooks =
        TerminalHooks { synthesizer: Some(Box::new(synthesizer.clone())), ..TerminalHooks::default() };
    let (preference_updates, _) = tokio::sync::watch::channel(Preferences::default());
    let settings = TerminalSettings::new(Address::parse("http://127.0.0.1:1", None).unwrap());
    let mut listener = TerminalListener::new(settings, hooks, preference_updates, Vec::new());
    let event = |number: u32, kind: &str, rest: &str| {
        ConnectionEvent::Text(format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00Z","producer":{{"agent_id":"bank"}},{rest}}}"#
        ))
    };
    for (number, text) in [(1, "One."), (2, "Two."), (3, "Three.")] {
        listener.handle_event(event(
            number,
            "tool.invoked",
            &format!(r#""tool":"t","risk_level":"high","summary_normal":"{text}""#),
        ));
        listener.poll();
    }
    listener.handle_event(event(4, "handoff.requested", r#""reason":"No.","target_kind":"human""#));
    listener.poll();
    let handoff = "bank is handing over to a person. Reason: No.";
    assert_eq!(synthesizer.0.lock().unwrap().texts, ["One. High risk.", "(stop)", handoff]);
    for _ in 0..3 {
        synthesizer.0.lock().unwrap().is_busy = false;
        listener.poll();
    }
    assert_eq!(
        synthesizer.0.lock().unwrap().texts[3..],
        ["One. High risk.", "Two. High risk.", "Three. High risk."]
    );
}

#[test]
fn a_reconnect_announces_missed_events_and_open_questions() {
    let texts =
        |all: Vec<Announcement>| all.into_iter().map(|announcement| announcement.text).collect::<Vec<_>>();
    let first = "Question 1 from bank is still open: about 2 minutes left. Type repeat 1 to hear it.";
    let subscriber = subscriber_with(&[IRREVERSIBLE]);
    // Nothing arrived.
    let nothing = texts(CatchUp::new(true, &subscriber).finish(&subscriber, NOW));
    assert_eq!(nothing, ["You missed nothing.", first]);
    let nothing = texts(CatchUp::new(false, &subscriber_with(&[])).finish(&subscriber_with(&[]), NOW));
    assert_eq!(nothing, ["No agent is working."]);
    // Something arrived.
    for (resumed, introduction) in [(true, "Here is what you missed."), (false, "Here is how things stand.")]
    {
        let mut catch_up = CatchUp::new(resumed, &subscriber);
        catch_up.receive(r#"{"type":"aaep:agent.progress.updated"}"#);
        assert_eq!(catch_up.take_introduction(subscriber.phrases()).unwrap().text, introduction);
        assert!(
            catch_up.take_introduction(subscriber.phrases()).is_none(),
            "the introduction is announced only once"
        );
        assert_eq!(texts(catch_up.finish(&subscriber, NOW)), [first]);
    }
    let mut catch_up = CatchUp::new(true, &subscriber);
    catch_up.receive(r#"{"type":"sayso:gap"}"#);
    assert!(
        catch_up.take_introduction(subscriber.phrases()).is_none(),
        "the announcement of a gap is the introduction"
    );
    // New questions were announced on arrival. Answered and uncertain questions do not count as open.
    let catch_up = CatchUp::new(true, &subscriber_with(&[]));
    assert_eq!(texts(catch_up.finish(&subscriber, NOW)), ["You missed nothing."]);
    let mut answered = subscriber_with(&[IRREVERSIBLE, FREE_TEXT]);
    let catch_up = CatchUp::new(true, &answered);
    answered.answer_confirmation(1, aaep::event::Decision::Reject, NOW).unwrap();
    assert_eq!(
        texts(catch_up.finish(&answered, NOW)).len(),
        2,
        "one for nothing missed, one for the second question"
    );
    let mut uncertain = subscriber_with(&[IRREVERSIBLE]);
    let catch_up = CatchUp::new(false, &uncertain);
    uncertain.begin_gap_recovery(NOW);
    assert_eq!(texts(catch_up.finish(&uncertain, NOW)), ["No agent is working."]);
    let many = subscriber_with(&[FREE_TEXT; 4]);
    let all = texts(CatchUp::new(true, &many).finish(&many, NOW));
    assert_eq!(all[1..], ["4 questions are still open. Type status to hear which."]);
}

#[test]
fn the_status_reports_a_lost_connection() {
    let reply = |lost| match &handle_line(
        &mut subscriber_with(&[IRREVERSIBLE]),
        "status",
        InputContext { is_disconnected: lost, ..LISTEN_CONTEXT },
        NOW,
    )[..]
    {
        [TerminalAction::Say(announcement)] => announcement.text.clone(),
        other => panic!("{other:?}"),
    };
    let lost = "Not connected; still trying. This is what was last known:\n";
    assert_eq!(reply(true).as_str(), format!("{lost}{}", reply(false)));
}
