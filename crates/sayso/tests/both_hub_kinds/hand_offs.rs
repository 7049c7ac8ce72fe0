//! Hand-offs that somebody answers, and hand-offs that nobody waits for any more.

use std::time::Duration;

use sayso::{HandOff, HandOffOutcome, HandOffTarget, JsonText};
use serde_json::{Value, json};

use crate::support::fixture::HubFixture;

fn to_person() -> HandOff {
    HandOff::new(HandOffTarget::Human, "The refund needs a person.")
        .packaged_context(JsonText::object([("order", JsonText::text("A-17"))]))
        .timeout(Duration::from_mins(1))
}

pub(crate) async fn a_hand_off_returns_its_outcome(mut fixture: HubFixture) {
    let session = fixture.session().await;
    for (kind, note) in [("reject", None), ("acknowledge", Some("Hello."))] {
        let answering = fixture.listener.answer_next_hand_off(kind, note);
        let (outcome, request) = tokio::join!(session.hand_off(to_person()), answering);
        let (given_note, principal) = match outcome.unwrap() {
            HandOffOutcome::Rejected { note, principal } if kind == "reject" => (note, principal),
            HandOffOutcome::Acknowledged { note, principal } if kind == "acknowledge" => (note, principal),
            other => panic!("{other:?}"),
        };
        assert_eq!(given_note.as_deref(), note);
        assert!(principal.is_some_and(|name| !name.is_empty()), "the agent learns who answered");
        assert_eq!(request["packaged_context"]["order"], "A-17");
        assert_eq!(request["timeout_seconds"], Value::Null);
        let announced = fixture.listener.events_until("state.changed").await.pop().unwrap();
        let to_state = if kind == "reject" { "thinking" } else { "handing_off" };
        assert_eq!(announced["to_state"], to_state);
    }
    session.finish("A person has it.").await.unwrap();
    fixture.listener.events_until("session.completed").await;
}

pub(crate) async fn a_hand_off_expires_and_a_dropped_one_is_withdrawn(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let outcome = session.hand_off(to_person().timeout(Duration::from_millis(1))).await.unwrap();
    assert_eq!(outcome, HandOffOutcome::TimedOut, "the shortest time is a second");
    let outcomes = |events: &[Value]| -> Vec<Value> {
        let outcome = |event: &Value| event["extensions"]["sayso"]["handoff"]["outcome"].clone();
        events.iter().map(outcome).filter(Value::is_string).collect()
    };
    {
        let mut waiting = std::pin::pin!(session.hand_off(to_person()));
        let mut seen = Vec::new();
        while seen.last().is_none_or(|event: &Value| event["type"] != "aaep:agent.handoff.requested")
            || !outcomes(&seen).contains(&json!("timeout"))
        {
            tokio::select! {
                outcome = &mut waiting => panic!("{outcome:?}"),
                event = fixture.listener.next_event() => seen.push(event),
            }
        }
    }
    session.think("Trying something else.").await.unwrap();
    session.finish("Done without help.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    assert_eq!(outcomes(&events), ["withdrawn"], "{events:#?}");
}
