//! What listeners learn about the deadline of a question.

use crate::support::*;
use hub::command::{HubCommand, HubReply};
use hub::{HubLimits, ListenerId, Principal};

struct DeadlineFixture {
    harness: HubHarness,
    ada: Principal,
    subscription: String,
    ada_listener: ListenerId,
    bob_listener: ListenerId,
    session: String,
    token: String,
}

/// Opens a question with a timeout of three minutes, which Ada and Bob receive.
fn open_question() -> DeadlineFixture {
    // The agent sends nothing in the meantime, so it gets a long lease.
    let limits = HubLimits { lease_ms: 3_600_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let ada = listener("ada", &[]);
    let (subscription, ada_listener) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let (_, bob_listener) = harness.connect_listener(&listener("bob", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&agent("bank"));
    let opened = reply_json(harness.confirm(&agent("bank"), &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    harness.take_events(ada_listener);
    harness.take_events(bob_listener);
    DeadlineFixture { harness, ada, subscription, ada_listener, bob_listener, session, token }
}

impl DeadlineFixture {
    fn request_more_time(&mut self) {
        let at = aaep::Timestamp::from_unix_millis(self.harness.now).unwrap();
        let text = format!(
            r#"{{"type":"sayso:deadline.extend","reply_token":"{}","subscription_id":"{}","timestamp":"{at}"}}"#,
            self.token, self.subscription
        );
        assert_eq!(self.harness.ask_hub(&self.ada.clone(), send_message(&text)), HubReply::Done);
    }

    /// Returns the `extensions` of an event about a deadline this many milliseconds after the start.
    fn extension_json(&self, deadline_ms: i64) -> String {
        let at = aaep::Timestamp::from_unix_millis(START + deadline_ms).unwrap();
        format!(r#""extensions":{{"sayso":{{"extended":"{}","deadline":"{at}"}}}}"#, self.token)
    }
}

#[test]
fn an_extension_by_one_listener_reaches_all_listeners() {
    let mut fixture = open_question();
    fixture.harness.now += 60_000;
    fixture.request_more_time();
    for listener_id in [fixture.ada_listener, fixture.bob_listener] {
        let events = fixture.harness.take_events(listener_id);
        let [event] = &events[..] else { panic!("{events:#?}") };
        assert_eq!(text_member(event, "type"), "aaep:agent.progress.updated");
        assert!(event.contains(&fixture.extension_json(360_000)), "{event}");
        assert_eq!(text_member(event, "summary_normal"), "There is more time to answer: 5 minutes.");
    }
    // The question expires at the published deadline.
    fixture.harness.advance_time(299_999);
    assert!(fixture.harness.disk.decision(&fixture.token).is_none());
    fixture.harness.advance_time(1);
    assert_eq!(fixture.harness.disk.decision(&fixture.token).unwrap().decided_by, "timeout");
    let events = fixture.harness.take_events(fixture.bob_listener);
    assert!(events.iter().any(|event| event.contains(r#""by":"timeout""#)), "{events:#?}");
}

#[test]
fn an_extension_beyond_the_limit_is_ignored_silently() {
    let mut fixture = open_question();
    for _ in 0..9 {
        fixture.request_more_time();
    }
    assert_eq!(fixture.harness.take_events(fixture.bob_listener).len(), 9);
    fixture.request_more_time();
    assert_eq!(fixture.harness.take_events(fixture.bob_listener), [""; 0]);
}

#[test]
fn a_late_listener_learns_about_the_extension_before_the_question() {
    for after_crash in [false, true] {
        let mut fixture = open_question();
        fixture.harness.now += 60_000;
        fixture.request_more_time();
        fixture.harness.now += 170_000;
        if after_crash {
            fixture.harness.crash();
        }
        let (_, late) = fixture.harness.connect_listener(&listener("eve", &[]), REPLY_CAPABILITIES);
        let events = fixture.harness.take_events(late);
        let [state, event, question] = &events[..] else { panic!("{events:#?}") };
        assert_eq!(text_member(state, "type"), "aaep:agent.state.changed");
        assert!(event.contains(&fixture.extension_json(360_000)), "{event}");
        let expected = "There is more time for the next question: 2 minutes.";
        assert_eq!(text_member(event, "summary_normal"), expected);
        assert_eq!(text_member(question, "reply_token"), fixture.token);
    }
    let mut fixture = open_question();
    let (_, late) = fixture.harness.connect_listener(&listener("eve", &[]), REPLY_CAPABILITIES);
    assert_eq!(fixture.harness.take_events(late).len(), 2, "no extension event without an extension");
}

#[test]
fn a_reminder_names_its_question() {
    let mut fixture = open_question();
    fixture.harness.advance_time(90_000);
    let events = fixture.harness.take_events(fixture.bob_listener);
    let [event] = &events[..] else { panic!("{events:#?}") };
    assert_eq!(text_member(event, "summary_normal"), "You have 90 seconds left to answer.");
    assert!(event.contains(&format!(r#"{{"sayso":{{"reminds_of":"{}"}}}}"#, fixture.token)), "{event}");
}

#[test]
fn an_agent_cannot_forge_extensions_or_reminders() {
    let mut fixture = open_question();
    let extensions = [
        fixture.extension_json(360_000),
        format!(r#""extensions":{{"sayso":{{"reminds_of":"{}"}}}}"#, fixture.token),
    ];
    for extension in extensions {
        for extension in [
            extension.clone(),
            extension.replace("sayso", r"say\u0073o"),
            extension.replace("sayso", "urn:sayso:context:v1"),
        ] {
            let forged = format!(
                r#"{{"type":"aaep:agent.progress.updated","@context":["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"],"progress":{{"description":"x"}},"summary_normal":"x",{extension}}}"#
            );
            let reply = fixture.harness.publish(&agent("bank"), &fixture.session, &[&forged]);
            assert!(
                matches!(&reply, HubReply::Malformed(error) if error.to_string().contains("extensions.sayso")),
                "{reply:?}"
            );
        }
    }
    assert_eq!(fixture.harness.take_events(fixture.bob_listener), [""; 0]);
}

#[test]
fn a_wait_is_answered_when_it_expires() {
    let DeadlineFixture { mut harness, session, token, .. } = open_question();
    let until = START + 10_000;
    let request =
        harness.send(&agent("bank"), HubCommand::Wait { session: id(&session), token: id(&token), until });
    assert_eq!(harness.take_reply(request), None);
    assert_eq!(harness.core.next_deadline(), Some(until), "the hub wakes for the wait");
    harness.now = until;
    harness.turn();
    assert!(harness.take_reply(request).is_some());
}
