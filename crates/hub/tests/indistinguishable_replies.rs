//! A reply without effect cannot be distinguished from a valid one: it gets the same response after the same journal
//! calls (C-D1).

use crate::support::*;
use hub::Principal;
use hub::command::{HubCommand, HubReply, Request, RequestId};
use seal::UnixMillis;

const CLARIFY: &str = r#"{"question":"Which Ben?","accepted_response_kinds":["freetext"],"timeout_seconds":180,"summary_normal":"Which Ben do you mean?"}"#;

/// Open, answered and expired questions of a bank, and principals with different permissions.
struct ForgeryFixture {
    harness: HubHarness,
    ada: (Principal, String),
    /// Receives every session but may not answer.
    observer: (Principal, String),
    /// Receives only another person's sessions.
    jonas: (Principal, String),
    open: AskedQuestion,
    other: AskedQuestion,
    clarification: AskedQuestion,
    answered: AskedQuestion,
    expired: AskedQuestion,
    closed_subscription: String,
}

struct AskedQuestion {
    session: String,
    token: String,
}

impl ForgeryFixture {
    fn new() -> Self {
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &["person:marisol"]));
        let (observer, jonas) = (observer("eve"), listener("jonas", &["person:jonas"]));
        let (ada_subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let (observer_subscription, _) = harness.connect_listener(&observer, REPLY_CAPABILITIES);
        let (jonas_subscription, _) = harness.connect_listener(&jonas, REPLY_CAPABILITIES);
        let (closed_subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let text = format!(r#"{{"type":"subscription.close","subscription_id":"{closed_subscription}"}}"#);
        assert_eq!(harness.ask_hub(&ada, send_message(&text)), HubReply::Done);
        let expired = ask(&mut harness, &bank, &TRANSFER.replace("180", "60"), false);
        harness.advance_time(60_000);
        let answered = ask(&mut harness, &bank, TRANSFER, false);
        harness.reply(&ada, &ada_subscription, &answered.token, "reject");
        let open = ask(&mut harness, &bank, TRANSFER, false);
        let other = ask(&mut harness, &bank, TRANSFER, false);
        let clarification = ask(&mut harness, &bank, CLARIFY, true);
        Self {
            harness,
            ada: (ada, ada_subscription),
            observer: (observer, observer_subscription),
            jonas: (jonas, jonas_subscription),
            open,
            other,
            clarification,
            answered,
            expired,
            closed_subscription,
        }
    }

    /// Sends a message in its own turn; returns the hub's response and the journal calls of that turn.
    fn send(&mut self, principal: &Principal, text: &str) -> (HubReply, Vec<&'static str>) {
        self.harness.disk.take_calls();
        let request =
            Request { id: RequestId(9_999), principal: principal.clone(), command: send_message(text) };
        let outputs = self.harness.core.run_turn(vec![request], self.harness.now);
        let response = outputs.into_iter().find_map(|output| match output {
            hub::command::TurnOutput::Reply(_, response) => Some(response),
            _ => None,
        });
        (response.expect("a response"), self.harness.disk.take_calls())
    }

    fn decision(&self, question: &AskedQuestion) -> Option<String> {
        self.harness.disk.decision(&question.token).map(|decision| decision.decision)
    }
}

fn ask(harness: &mut HubHarness, principal: &Principal, text: &str, is_clarification: bool) -> AskedQuestion {
    let session = harness.start(principal);
    let command =
        HubCommand::Ask { session: id(&session), body: text.into(), is_clarification, idempotency_key: None };
    let reply = harness.ask_hub(principal, command);
    let opened = reply_json(reply);
    AskedQuestion { session, token: text_member(&opened, "reply_token") }
}

fn reply_text(token: &str, subscription: &str, at: UnixMillis) -> String {
    let at = aaep::Timestamp::from_unix_millis(at).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    )
}

#[test]
fn a_forged_reply_makes_the_same_journal_calls_as_a_valid_one() {
    let valid = {
        let mut fixture = ForgeryFixture::new();
        let (ada, ada_subscription) = fixture.ada.clone();
        let text = reply_text(&fixture.open.token, &ada_subscription, fixture.harness.now);
        let valid = fixture.send(&ada, &text);
        assert_eq!(
            fixture.decision(&fixture.open).as_deref(),
            Some("accept"),
            "the question can be answered"
        );
        valid
    };
    assert_eq!(valid, (HubReply::Done, vec!["commit"]));

    let mut fixture = ForgeryFixture::new();
    let (ada, ada_subscription) = fixture.ada.clone();
    let (eve, observer_subscription) = fixture.observer.clone();
    let (jonas, jonas_subscription) = fixture.jonas.clone();
    let bank = agent("bank");
    let now = fixture.harness.now;
    let at = aaep::Timestamp::from_unix_millis(now).unwrap();
    let open = fixture.open.token.clone();
    let valid_text = reply_text(&open, &ada_subscription, now);
    let closed_subscription = fixture.closed_subscription.clone();
    let cases: Vec<(&str, &Principal, String)> = vec![
        ("an unknown token", &ada, reply_text(&format!("rpl_{:032}", 7), &ada_subscription, now)),
        ("a replay with a used token", &ada, reply_text(&fixture.answered.token, &ada_subscription, now)),
        ("late by the hub's clock", &ada, reply_text(&fixture.expired.token, &ada_subscription, now)),
        ("late by its own timestamp", &ada, reply_text(&open, &ada_subscription, now + 180_000)),
        ("from an observer", &eve, reply_text(&open, &observer_subscription, now)),
        ("from an observer on a listener's subscription", &eve, valid_text.clone()),
        (
            "from a subscription that did not receive the question",
            &jonas,
            reply_text(&open, &jonas_subscription, now),
        ),
        ("on another principal's subscription", &jonas, valid_text.clone()),
        ("on a closed subscription", &ada, reply_text(&open, &closed_subscription, now)),
        ("on an unknown subscription", &ada, reply_text(&open, &format!("sub_{:032}", 7), now)),
        ("from the agent itself", &bank, valid_text.clone()),
        (
            "a clarification reply to a confirmation",
            &ada,
            format!(
                r#"{{"type":"clarification.reply","reply_token":"{open}","response":"yes","subscription_id":"{ada_subscription}","timestamp":"{at}"}}"#
            ),
        ),
        (
            "a confirmation reply to a clarification",
            &ada,
            reply_text(&fixture.clarification.token, &ada_subscription, now),
        ),
        (
            "a response of the wrong type",
            &ada,
            format!(
                r#"{{"type":"clarification.reply","reply_token":"{}","response":7,"subscription_id":"{ada_subscription}","timestamp":"{at}"}}"#,
                fixture.clarification.token
            ),
        ),
        ("an extra member", &ada, valid_text.replacen('{', r#"{"x":1,"#, 1)),
        ("a duplicate key", &ada, valid_text.replacen('{', r#"{"decision":"reject","#, 1)),
        ("an unknown decision", &ada, valid_text.replace("accept", "maybe")),
        ("an extra session id", &ada, valid_text.replacen('{', r#"{"session_id":"x","#, 1)),
        ("not a reply", &ada, r#"{"type":"aaep:agent.state.changed"}"#.to_owned()),
        ("an empty object", &ada, "{}".to_owned()),
        ("not an object", &ada, "[1,2]".to_owned()),
        (
            "an extension of a question out of scope",
            &jonas,
            format!(
                r#"{{"type":"sayso:deadline.extend","reply_token":"{open}","subscription_id":"{jonas_subscription}","timestamp":"{at}"}}"#
            ),
        ),
        (
            "a stop of a session out of scope",
            &jonas,
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{jonas_subscription}","timestamp":"{at}"}}"#,
                fixture.open.session
            ),
        ),
        (
            "a stop by an observer",
            &eve,
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{observer_subscription}","timestamp":"{at}"}}"#,
                fixture.open.session
            ),
        ),
    ];
    let event_count = fixture.harness.disk.events().len();
    for (case, principal, text) in cases {
        fixture.harness.disk.take_written();
        assert_eq!(fixture.send(principal, &text), valid, "{case}");
        let entries = fixture.harness.disk.take_written();
        assert!(
            matches!(&entries[..], [RecordedEntry::ReplyAttempted { .. }, RecordedEntry::BatchEnd]),
            "{case}: {entries:?}"
        );
        for question in [&fixture.open, &fixture.other, &fixture.clarification] {
            assert_eq!(fixture.decision(question), None, "{case}");
        }
        assert_eq!(fixture.decision(&fixture.answered).as_deref(), Some("reject"), "{case}");
        assert_eq!(fixture.decision(&fixture.expired).as_deref(), Some("reject"), "{case}");
    }
    assert_eq!(fixture.harness.disk.events().len(), event_count, "no event was published");
    // None of the forged replies has affected the question.
    assert_eq!(fixture.send(&ada, &valid_text), valid);
    assert_eq!(fixture.decision(&fixture.open).as_deref(), Some("accept"));
    assert_eq!(fixture.decision(&fixture.other), None, "the other session's question stays open");
}

#[test]
fn consent_given_in_one_session_is_void_in_another() {
    let mut fixture = ForgeryFixture::new();
    let (ada, ada_subscription) = fixture.ada.clone();
    let text = reply_text(&fixture.other.token, &ada_subscription, fixture.harness.now);
    fixture.send(&ada, &text);
    let (session, token) = (fixture.open.session.clone(), fixture.other.token.clone());
    let reply = fixture.harness.publish(&agent("bank"), &session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(reply, HubReply::RuleViolations(_)), "{reply:?}");
    assert!(matches!(fixture.harness.status(&agent("bank"), &session, &token), HubReply::QuestionNotFound));
}
