//! Which lines are answers, to what, and which are not.

mod languages;
mod latency;
mod reconnect;

use std::sync::{Arc, Mutex};

use seal::UnixMillis;

use super::back::Back;
use super::conversation::{Act, Around, goodbye, take};
use super::talk::Talk;
use super::{Hooks, Settings};
use crate::client::{Address, Heard};
use crate::{Announcement, Ear, Limits, Tastes, Voice};

pub(super) const NOW: UnixMillis = UnixMillis::new(1_779_631_200_000);
pub(super) const ALONE: Around = Around { requests: None, speech: false, hub: true, lost: false };
pub(super) const WITH_REQUESTS: Around =
    Around { requests: Some(|_| true), speech: false, hub: true, lost: false };

fn ear(questions: &[&str]) -> Ear {
    ear_in("en", questions)
}

pub(super) fn ear_in(language: &str, questions: &[&str]) -> Ear {
    let tastes = Tastes { languages: vec![language.to_owned()], ..Tastes::default() };
    let mut ear = Ear::new(tastes, Limits::default());
    ear.subscribe(aaep::SubscriptionId::parse("sub_1").unwrap());
    for (at, question) in questions.iter().enumerate() {
        ear.hear(
            &format!(
                r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.{question},"event_id":"evt_{at}","session_id":"sess_{at}","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank"}},"reply_token":"rpl_{at}","timeout_seconds":120}}"#
            ),
            NOW,
        );
    }
    while ear.next(NOW).is_some() {}
    ear
}

pub(super) const GRAVE: &str =
    r#"confirmation","action":"A","consequence":"C","default_decision":"reject","irreversible":true"#;
const UNSAID: &str =
    r#"confirmation","action":"A","consequence":"C","default_decision":"reject","risk_level":"low""#;
pub(super) const LIGHT: &str = r#"confirmation","action":"A","consequence":"C","default_decision":"reject","risk_level":"low","irreversible":false"#;
pub(super) const WORDS: &str = r#"clarification","question":"Q?""#;
pub(super) const CHOICES: &str = r#"clarification","question":"Q?","choices":[{"value":"a","label":"The first"},{"value":"b","label":"The second"}]"#;
pub(super) const YES_NO: &str = r#"clarification","question":"Q?","accepted_response_kinds":["yes_no"]"#;
const MORE: &str = r#"clarification","question":"Q?","choices":[{"value":"a2","label":"One"},{"value":"b","label":"The second"},{"value":"c","label":"The third"}]"#;
const COUNT: &str = r#"clarification","question":"Q?","accepted_response_kinds":["numeric"]"#;

/// What is sent for a line, by its end; nothing if nothing is.
fn sent(questions: &[&str], line: &str, around: Around) -> Option<String> {
    sent_in("en", questions, line, around)
}

pub(super) fn sent_in(language: &str, questions: &[&str], line: &str, around: Around) -> Option<String> {
    let mut ear = ear_in(language, questions);
    take(&mut ear, line, around, NOW).into_iter().find_map(|act| match act {
        Act::Send { message, .. } => Some(message),
        Act::Request(text) => Some(format!("request {text}")),
        _ => None,
    })
}

#[test]
fn only_what_was_meant_as_an_answer_is_one() {
    let accept = r#""reply_token":"rpl_0","decision":"accept""#;
    let reject = r#""reply_token":"rpl_0","decision":"reject""#;
    let table: &[(&[&str], &str, Option<&str>)] = &[
        (&[GRAVE], "yes", Some(accept)),
        (&[GRAVE], "Accept", Some(accept)),
        (&[GRAVE], "yes 1", Some(accept)),
        (&[GRAVE], "1 accept", Some(accept)),
        (&[GRAVE], "answer yes", Some(accept)),
        (&[GRAVE], "no", Some(reject)),
        (&[GRAVE], "n", Some(reject)),
        (&[GRAVE], "2", Some(reject)),
        (&[GRAVE], "1", None),
        (&[GRAVE], "y", None),
        (&[GRAVE], "y 1", None),
        (&[GRAVE], "answer y", None),
        (&[GRAVE], "", None),
        (&[GRAVE], "3", None),
        (&[GRAVE], "yes 2", None),
        (&[GRAVE], "yes no", None),
        (&[GRAVE], "yess", None),
        (&[GRAVE], "ｙｅｓ", None),
        (&[UNSAID], "1", None),
        (&[UNSAID], "yes", Some(accept)),
        (&[LIGHT], "1", Some(accept)),
        (&[LIGHT], "y", Some(accept)),
        (&[LIGHT], "2", Some(reject)),
        (&[LIGHT, LIGHT], "yes", None),
        (&[LIGHT, LIGHT], "1", None),
        (&[LIGHT, LIGHT], "yes 1", Some(accept)),
        (&[WORDS, LIGHT], "Lagos", None),
        (&[WORDS, LIGHT], "1 New York", Some(r#""reply_token":"rpl_0","response":"New York""#)),
        (&[WORDS], "Lagos", Some(r#""response":"Lagos""#)),
        (&[WORDS], "yes", Some(r#""response":"yes""#)),
        (&[WORDS], "5 euro", Some(r#""response":"5 euro""#)),
        (&[WORDS], "answer stop", Some(r#""response":"stop""#)),
        (&[WORDS], "answer 5 euro", Some(r#""response":"5 euro""#)),
        (&[WORDS], "status", None),
        (&[CHOICES], "2", Some(r#""response":"b""#)),
        (&[CHOICES], "the first", Some(r#""response":"a""#)),
        (&[CHOICES], "3", None),
        (&[CHOICES], "the third", None),
        (&[COUNT], "12", Some(r#""response":12"#)),
        (&[COUNT], "twelve", None),
        (&[CHOICES, GRAVE], "the second", Some(r#""reply_token":"rpl_0","response":"b""#)),
        (&[GRAVE, CHOICES], "answer the second", Some(r#""reply_token":"rpl_1","response":"b""#)),
        (&[GRAVE, MORE], "answer 3", Some(r#""reply_token":"rpl_1","response":"c""#)),
        (&[GRAVE, MORE], "3", Some(r#""reply_token":"rpl_1","response":"c""#)),
        (&[CHOICES, MORE], "3", Some(r#""reply_token":"rpl_1","response":"c""#)),
        (&[GRAVE, COUNT], "12", Some(r#""reply_token":"rpl_1","response":12"#)),
        // More than one question could be meant, and a yes is never guessed.
        (&[CHOICES, MORE], "the second", None),
        (&[CHOICES, MORE], "2", None),
        (&[LIGHT, CHOICES], "1", None),
        (&[LIGHT, WORDS], "1", None),
        (&[LIGHT, CHOICES], "yes", None),
        (&[LIGHT, CHOICES], "the third", None),
        (&[], "yes", None),
        (&[], "1", None),
    ];
    for (questions, line, expected) in table {
        let told = sent(questions, line, ALONE);
        match expected {
            Some(part) => {
                assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{line:?}: {told:?}");
            }
            None => assert_eq!(told, None, "{line:?} to {questions:?}"),
        }
    }
}

#[test]
fn what_is_neither_a_command_nor_an_answer_is_a_request() {
    for (questions, line, expected) in [
        (&[][..], "Transfer 250 euros", Some("request Transfer 250 euros")),
        (&[], "5 euro to Ben", Some("request 5 euro to Ben")),
        (&[GRAVE], "Transfer 250 euros", Some("request Transfer 250 euros")),
        (&[GRAVE], "yes", Some("accept")),
        (&[WORDS], "Lagos", Some("\"response\":\"Lagos\"")),
        (&[], "yes", None),
        (&[], "status", None),
    ] {
        let told = sent(questions, line, WITH_REQUESTS);
        match expected {
            Some(part) => {
                assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{line:?}: {told:?}");
            }
            None => assert_eq!(told, None, "{line:?}"),
        }
    }
}

#[test]
fn with_a_question_open_what_sounds_like_an_answer_starts_nothing() {
    for line in
        ["nope", "yes please", "ok then", "sure", "go ahead", "I don't want that", "send it", "cancel"]
    {
        for questions in [&[GRAVE][..], &[LIGHT], &[LIGHT, GRAVE], &[LIGHT, WORDS]] {
            let acts = take(&mut ear(questions), line, WITH_REQUESTS, NOW);
            let [Act::Say(said)] = acts.as_slice() else { panic!("{line}: {acts:?}") };
            assert!(
                said.text.starts_with("That was not taken as an answer, and nothing was sent."),
                "{said:?}"
            );
            assert!(said.text.contains(" yes "), "how to answer: {said:?}");
        }
        assert_eq!(sent(&[], line, WITH_REQUESTS), Some(format!("request {line}")), "nothing is open");
    }
    // Nor does what nobody understands; what is understood is a request.
    let around = Around { requests: Some(|line| line == "what's my balance?"), ..ALONE };
    assert_eq!(sent(&[GRAVE], "hm, er, mumble", around), None);
    assert_eq!(sent(&[GRAVE], "wibble", around), None);
    assert_eq!(sent(&[GRAVE], "what's my balance?", around), Some("request what's my balance?".to_owned()));
    assert_eq!(sent(&[], "wibble", around), Some("request wibble".to_owned()));
}

#[test]
fn who_leaves_is_told_what_goes_on() {
    let told = |questions: &[&str]| goodbye(&ear(questions), true);
    assert_eq!(told(&[]), "You have stopped listening.");
    assert_eq!(
        told(&[GRAVE]),
        "You have stopped listening. The agent goes on. Question 1 stays without your answer."
    );
    assert_eq!(
        told(&[GRAVE, WORDS]),
        "You have stopped listening. The agents go on. Questions 1 and 2 stay without your answer."
    );
    assert_eq!(goodbye(&ear(&[]), false), "");
}

#[test]
fn of_several_agents_one_is_stopped() {
    assert_eq!(sent(&[GRAVE, GRAVE], "stop", ALONE), None);
    assert!(sent(&[GRAVE, GRAVE], "stop 2", ALONE).unwrap().contains("sess_1"));
    assert!(sent(&[GRAVE], "stop", ALONE).unwrap().contains("sess_0"));
    let all = take(&mut ear(&[GRAVE, GRAVE]), "stop all", ALONE, NOW);
    assert_eq!(all.iter().filter(|act| matches!(act, Act::Send { .. })).count(), 2);
    assert_eq!(sent(&[GRAVE], "stop", Around { hub: false, ..ALONE }), None);
    assert_eq!(sent(&[GRAVE], "more time", Around { hub: false, ..ALONE }), None);
}

#[test]
fn several_sessions_of_one_agent_are_told_apart_by_what_they_are_about() {
    let mut ear = ear(&[]);
    for (at, about) in ["Moving money.", "Booking a room."].iter().enumerate() {
        ear.hear(
            &format!(
                r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.session.started","event_id":"evt_{at}","session_id":"sess_{at}","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank"}},"summary_normal":"{about}"}}"#
            ),
            NOW,
        );
    }
    let said = |ear: &mut Ear, line| match &take(ear, line, ALONE, NOW)[..] {
        [Act::Say(announcement)] => announcement.text.clone(),
        other => panic!("{other:?}"),
    };
    let which = "Which one? 1 is bank: Moving money; 2 is bank: Booking a room. Type stop and the number";
    assert!(said(&mut ear, "stop").starts_with(which), "{}", said(&mut ear, "stop"));
    let status = said(&mut ear, "status");
    let first = "Session 1, bank. It began with: Moving money. It has not said what it does.\nSession 2, bank. It began with: Booking a room.";
    assert!(status.starts_with(first), "{status}");
}

#[test]
fn of_several_questions_the_status_says_what_they_are() {
    let said = |questions: &[&str]| match &take(&mut ear(questions), "status", ALONE, NOW)[..] {
        [Act::Say(announcement)] => announcement.text.clone(),
        other => panic!("{other:?}"),
    };
    let several = said(&[LIGHT, WORDS]);
    assert!(several.contains("\nQuestion 1 from bank is open for 2 minutes. A\n"), "{several}");
    assert!(several.contains("\nQuestion 2 from bank is open for 2 minutes. Q?\n"), "{several}");
    assert!(said(&[LIGHT]).contains("\nQuestion 1 from bank is open for 2 minutes.\n"));
}

#[test]
fn what_several_questions_say_can_be_typed_is_an_answer() {
    for (language, yes, no, answer) in [
        ("en", ["accept 2", "yes 2"], ["reject 2", "no 2"], "answer 2 a"),
        ("es", ["aceptar 2", "sí 2"], ["rechazar 2", "no 2"], "responder 2 a"),
        ("yo", ["accept 2", "bẹ́ẹ̀ni 2"], ["reject 2", "rárá 2"], "dáhùn 2 a"),
    ] {
        for (words, decision) in [(yes, "accept"), (no, "reject")] {
            for line in words {
                let mut heard = ear_in(language, &[GRAVE, GRAVE]);
                let how = heard.repeat(2, NOW).unwrap().text.lines().last().unwrap().to_owned();
                assert!(how.contains(line), "{how}");
                let acts = take(&mut heard, line, ALONE, NOW);
                let sent = format!(r#""reply_token":"rpl_1","decision":"{decision}""#);
                assert!(matches!(&acts[1], Act::Send { message, .. } if message.contains(&sent)), "{acts:?}");
            }
        }
        let sent = sent_in(language, &[GRAVE, CHOICES], answer, ALONE).unwrap();
        assert!(sent.contains(r#""reply_token":"rpl_1","response":"a""#), "{sent}");
    }
}

/// Notes what it is told to say; it is busy until it is stopped.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<(Vec<String>, bool)>>);

impl Voice for Slow {
    fn say(&mut self, announcement: &Announcement) {
        let mut state = self.0.lock().unwrap();
        state.0.push(announcement.text.clone());
        state.1 = true;
    }

    fn stop(&mut self) {
        let mut state = self.0.lock().unwrap();
        state.0.push("(stop)".to_owned());
        state.1 = false;
    }

    fn is_free(&mut self) -> bool {
        !self.0.lock().unwrap().1
    }
}

#[test]
fn a_voice_says_one_thing_at_a_time_and_the_critical_cuts_in() {
    let voice = Slow::default();
    let hooks = Hooks { voice: Some(Box::new(voice.clone())), ..Hooks::default() };
    let (wishes, _) = tokio::sync::watch::channel(Tastes::default());
    let settings = Settings::new(Address::parse("http://127.0.0.1:1", None).unwrap());
    let mut talk = Talk::new(settings, hooks, wishes, Vec::new());
    let event = |number: u32, kind: &str, rest: &str| {
        Heard::Text(format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00Z","producer":{{"agent_id":"bank"}},{rest}}}"#
        ))
    };
    for (number, text) in [(1, "One."), (2, "Two."), (3, "Three.")] {
        talk.hear(event(number, "tool.invoked", &format!(r#""tool":"t","summary_normal":"{text}""#)));
        talk.look();
    }
    talk.hear(event(4, "handoff.requested", r#""reason":"No.","target_kind":"human""#));
    talk.look();
    let hands_over = "bank cannot go on alone and hands over to a person. The reason: No.";
    assert_eq!(voice.0.lock().unwrap().0, ["One.", "(stop)", hands_over]);
    for _ in 0..3 {
        voice.0.lock().unwrap().1 = false;
        talk.look();
    }
    assert_eq!(voice.0.lock().unwrap().0[3..], ["One.", "Two.", "Three."]);
}

#[test]
fn on_a_return_it_is_said_whether_something_follows_and_what_is_still_open() {
    let texts = |all: Vec<Announcement>| all.into_iter().map(|one| one.text).collect::<Vec<_>>();
    let first = "Question 1 from bank is still open for 2 minutes. Type repeat to hear it.";
    let heard = ear(&[GRAVE]);
    // Nothing came.
    let nothing = texts(Back::new(true, &heard).ends(&heard, NOW));
    assert_eq!(nothing, ["Nothing was said meanwhile.", first]);
    let nothing = texts(Back::new(false, &ear(&[])).ends(&ear(&[]), NOW));
    assert_eq!(nothing, ["No agent is at work."]);
    // Something came.
    for (resumed, follows) in [(true, "What was said meanwhile follows."), (false, "What holds now follows.")]
    {
        let mut back = Back::new(resumed, &heard);
        back.hears(r#"{"type":"aaep:agent.progress.updated"}"#);
        assert_eq!(back.leads(heard.phrases()).unwrap().text, follows);
        assert!(back.leads(heard.phrases()).is_none(), "once");
        assert_eq!(texts(back.ends(&heard, NOW)), [first]);
    }
    let mut back = Back::new(true, &heard);
    back.hears(r#"{"type":"sayso:gap"}"#);
    assert!(back.leads(heard.phrases()).is_none(), "a gap says what follows it");
    // What was asked meanwhile was said when it came; what is answered, and what may be over, is not open.
    let back = Back::new(true, &ear(&[]));
    assert_eq!(texts(back.ends(&heard, NOW)), ["Nothing was said meanwhile."]);
    let mut answered = ear(&[GRAVE, WORDS]);
    let back = Back::new(true, &answered);
    answered.decide(1, aaep::event::Decision::Reject, NOW).unwrap();
    assert_eq!(texts(back.ends(&answered, NOW)).len(), 2, "that nothing was said, and the second question");
    let mut unsure = ear(&[GRAVE]);
    let back = Back::new(false, &unsure);
    unsure.begin_anew(NOW);
    assert_eq!(texts(back.ends(&unsure, NOW)), ["No agent is at work."]);
    let many = ear(&[WORDS; 4]);
    let all = texts(Back::new(true, &many).ends(&many, NOW));
    assert_eq!(all[1..], ["4 questions are still open. Type repeat to hear them."]);
}

#[test]
fn who_asks_how_things_stand_without_a_connection_is_told_so() {
    let said = |lost| match &take(&mut ear(&[GRAVE]), "status", Around { lost, ..ALONE }, NOW)[..] {
        [Act::Say(announcement)] => announcement.text.clone(),
        other => panic!("{other:?}"),
    };
    let lost = "There is no connection now; it is tried again. This is how things stood before:\n";
    assert_eq!(said(true), format!("{lost}{}", said(false)));
}
