//! Clock jumps, forward and back.

use crate::support::*;
use hub::command::{HubReply, TurnOutput};
use hub::telemetry::LogEvent;
use hub::{HubLimits, Principal};
use seal::UnixMillis;

const HOUR_MS: i64 = 3_600_000;
const DECIDE: &str = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;

struct ClockFixture {
    harness: HubHarness,
    bank: Principal,
    ada: Principal,
    subscription: String,
    listener_id: hub::ListenerId,
    session: String,
}

fn fixture() -> ClockFixture {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    ClockFixture { harness, bank, ada, subscription, listener_id, session }
}

impl ClockFixture {
    fn ask(&mut self) -> String {
        let opened = reply_json(self.harness.confirm(&self.bank, &self.session, TRANSFER));
        text_member(&opened, "reply_token")
    }

    fn decision(&self, token: &str) -> Option<(String, String)> {
        self.harness.disk.decision(token).map(|decision| (decision.decision, decision.decided_by))
    }

    /// Asserts that the stored timestamps of each session never decrease.
    fn assert_timestamps_never_go_back(&self) {
        let mut last = std::collections::HashMap::new();
        for event in self.harness.disk.events() {
            let at = text_member(std::str::from_utf8(&event.body).unwrap(), "timestamp");
            let previous = last.insert(event.session, at.clone());
            assert!(previous.as_ref().is_none_or(|previous| *previous <= at), "{at} after {previous:?}");
        }
    }
}

#[test]
fn the_hub_sets_the_timestamp_of_an_event() {
    let mut fixture = fixture();
    fixture.harness.now += 12_345;
    assert!(matches!(
        fixture.harness.publish(&fixture.bank, &fixture.session, &[THINK]),
        HubReply::EventsPublished { .. }
    ));
    let last = fixture.harness.disk.events().pop().unwrap();
    let at = aaep::Timestamp::from_unix_millis(fixture.harness.now).unwrap().to_string();
    assert_eq!(
        (last.at, text_member(std::str::from_utf8(&last.body).unwrap(), "timestamp")),
        (fixture.harness.now, at)
    );
    for at in ["2020-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"] {
        let with_timestamp = DECIDE.replacen('{', &format!(r#"{{"timestamp":"{at}","#), 1);
        let refused = fixture.harness.publish(&fixture.bank, &fixture.session, &[&with_timestamp]);
        assert!(matches!(refused, HubReply::Malformed(_)), "{refused:?}");
    }
}

#[test]
fn timestamps_do_not_go_back_with_the_clock() {
    let mut fixture = fixture();
    let reply = fixture.harness.publish(&fixture.bank, &fixture.session, &[THINK]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    fixture.harness.now -= HOUR_MS;
    let reply = fixture.harness.publish(&fixture.bank, &fixture.session, &[DECIDE]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    let token = fixture.ask();
    fixture.harness.reply(&fixture.ada, &fixture.subscription, &token, "accept");
    assert_eq!(fixture.decision(&token), Some(("accept".into(), "reply".into())));
    let events = fixture.harness.take_events(fixture.listener_id);
    assert!(
        events.iter().any(|event| event.contains(r#""decision":"accept""#)),
        "the resolution is published: {events:?}"
    );
    fixture.harness.crash();
    let call = fixture.harness.publish(&fixture.bank, &fixture.session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(call, HubReply::EventsPublished { .. }), "even after a restart: {call:?}");
    fixture.assert_timestamps_never_go_back();
}

#[test]
fn a_question_asked_after_a_jump_back_keeps_its_timeout() {
    let mut fixture = fixture();
    fixture.harness.now -= HOUR_MS;
    let asked_at = fixture.harness.now;
    let token = fixture.ask();
    fixture.harness.now = asked_at + 179_999;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token), None);
    fixture.harness.now = asked_at + 180_000;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token), Some(("reject".into(), "timeout".into())));
    fixture.harness.reply(&fixture.ada, &fixture.subscription, &token, "accept");
    assert_eq!(fixture.decision(&token), Some(("reject".into(), "timeout".into())));
    let events = fixture.harness.take_events(fixture.listener_id);
    assert!(
        events.iter().any(|event| event.contains(r#""by":"timeout""#)),
        "the timeout is published: {events:#?}"
    );
    fixture.assert_timestamps_never_go_back();
}

#[test]
fn a_jump_forward_shortens_a_question_only_by_the_jump() {
    let mut fixture = fixture();
    let token = fixture.ask();
    fixture.harness.now += 100_000;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token), None, "80 seconds are left");
    fixture.harness.now += 79_999;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token), None);
    fixture.harness.now += 1;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token).unwrap().0, "reject");
}

#[test]
fn a_default_decision_stays_after_the_clock_goes_back() {
    let mut fixture = fixture();
    let token = fixture.ask();
    fixture.harness.now += HOUR_MS;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token).unwrap().0, "reject");
    fixture.harness.now -= HOUR_MS;
    fixture.harness.attach(&fixture.ada, &fixture.subscription, None);
    fixture.harness.reply(&fixture.ada, &fixture.subscription, &token, "accept");
    assert_eq!(fixture.decision(&token).unwrap().0, "reject", "a later reply does not change the decision");
    let reply = fixture.harness.publish(&fixture.bank, &fixture.session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(reply, HubReply::RuleViolations(_) | HubReply::SessionEnded), "{reply:?}");
    fixture.assert_timestamps_never_go_back();
}

#[test]
fn an_open_question_survives_a_jump_back_and_a_restart() {
    let mut fixture = fixture();
    let token = fixture.ask();
    fixture.harness.now -= HOUR_MS;
    fixture.harness.crash();
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token), None);
    fixture.harness.attach(&fixture.ada, &fixture.subscription, None);
    fixture.harness.reply(&fixture.ada, &fixture.subscription, &token, "reject");
    fixture.harness.now += 2 * HOUR_MS;
    fixture.harness.turn();
    assert_eq!(fixture.decision(&token), Some(("reject".into(), "reply".into())));
    fixture.assert_timestamps_never_go_back();
}

#[test]
fn extreme_clock_values_break_nothing() {
    for now in [0, -1, 253_402_300_799_999, i64::MIN, i64::MAX].map(UnixMillis::new) {
        let mut fixture = fixture();
        let token = fixture.ask();
        (fixture.harness.now, fixture.harness.allows_rejected_hub_events) = (now, true);
        fixture.harness.turn();
        fixture.harness.publish(&fixture.bank, &fixture.session, &[THINK]);
        assert_ne!(fixture.decision(&token).map(|decision| decision.0).as_deref(), Some("accept"), "{now}");
        let _ = HubHarness::with(&HubLimits::default(), fixture.harness.disk.clone(), now);
        fixture.assert_timestamps_never_go_back();
    }
}

#[test]
fn a_hub_event_that_breaks_a_rule_is_logged() {
    let mut fixture = fixture();
    fixture.ask();
    // No timestamp can express this year, so the event about the expired question is rejected.
    let outputs = fixture.harness.core.run_turn([], UnixMillis::MAX);
    let is_logged = outputs.iter().any(|output| {
        matches!(output, TurnOutput::Log(LogEvent::HubEventRejected { session, .. })
            if session.as_str() == fixture.session)
    });
    assert!(is_logged, "{outputs:?}");
}
