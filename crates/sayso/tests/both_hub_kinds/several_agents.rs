//! Several agents in one session, and sessions that are parts of another one.

use sayso::{Answer, Error, Hub, Producer};
use serde_json::{Value, json};

use super::sessions::payment_action;
use crate::support::fixture::HubFixture;

/// Returns the producer, the type and the state of each event, without the session's start and end.
fn speakers(events: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace("aaep:agent.", "");
    let describe = |event: &Value| {
        let kind = text(&event["type"]);
        let kind = if kind == "state.changed" { text(&event["to_state"]) } else { kind };
        (text(&event["producer"]["agent_id"]), kind)
    };
    events.iter().map(describe).filter(|(_, kind)| !kind.starts_with("session.")).collect()
}

pub(crate) async fn each_producer_has_its_own_states_tools_and_outputs(mut fixture: HubFixture) {
    let scout = Producer::new("scout").name("Scout").version("2.0.0").model("small-1");
    let session =
        fixture.hub.session("Plan a trip.").producer(scout).producer("booker").start().await.unwrap();
    let (scout, booker) = (session.producer("scout"), session.producer("booker"));
    let search = scout.tool("trains").says("Looking for trains.").start().await.unwrap();
    session.think("Comparing.").await.unwrap();
    let hold = booker.tool("hold").says("Holding a seat.").start().await.unwrap();
    search.succeed("One at nine.").await.unwrap();
    hold.succeed("Held.").await.unwrap();
    scout.output("It leaves at nine.").await.unwrap();
    booker.output("You have a seat.").await.unwrap();
    // Dropping the producers completes their outputs.
    drop((scout, booker));
    session.finish("You leave at nine.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let main = events.last().unwrap()["producer"]["agent_id"].as_str().unwrap().to_owned();
    let spoken = speakers(&events);
    let of = |producer: &str| -> Vec<&str> {
        let mut kinds: Vec<_> =
            spoken.iter().filter(|(speaker, _)| speaker == producer).map(|(_, kind)| kind.as_str()).collect();
        kinds.dedup();
        kinds
    };
    let work = [
        "calling_tool",
        "tool.invoked",
        "tool.completed",
        "thinking",
        "writing_output",
        "output.streaming",
        "thinking",
    ];
    assert_eq!(of("scout"), work);
    assert_eq!(of("booker"), work);
    assert_eq!(of(&main), ["thinking"]);
    let first = events.iter().find(|event| event["producer"]["agent_id"] == "scout").unwrap();
    let expected =
        json!({"agent_id": "scout", "agent_name": "Scout", "agent_version": "2.0.0", "model": "small-1"});
    assert_eq!(first["producer"], expected);
    assert_eq!(first["extensions"]["sayso"]["main_producer"], main.as_str());
}

pub(crate) async fn a_yes_to_one_producer_permits_no_call_by_another(mut fixture: HubFixture) {
    let session = fixture.hub.session("Plan a trip.").producer("booker").start().await.unwrap();
    let booker = session.producer("booker");
    let (answer, _) = tokio::join!(booker.ask(payment_action()), fixture.listener.decide_next("accept"));
    let Ok(Answer::Granted(granted)) = answer else { panic!("{answer:?}") };
    let refused = session.start_call(granted).await;
    assert!(matches!(refused, Err(Error::RuleViolations(_))), "{refused:?}");
    drop(refused);
    session.cancel("Nothing was sent.").await.unwrap();
}

pub(crate) async fn an_unknown_producer_is_refused(fixture: HubFixture) {
    let session = fixture.hub.session("Plan a trip.").start().await.unwrap();
    let refused = session.producer("scout").think("Looking.").await;
    let Err(Error::RuleViolations(violations)) = refused else { panic!("{refused:?}") };
    assert_eq!(violations[0].pointer, "/producer");
    session.cancel("Nothing was planned.").await.unwrap();
}

pub(crate) async fn an_invited_agent_joins_once_and_speaks_as_itself(mut fixture: HubFixture) {
    let session = fixture.hub.session("Plan a trip.").start().await.unwrap();
    let invitation = session.invite("scout").await.unwrap();
    assert!(
        invitation.expires_at().is_some() && !format!("{invitation:?}").contains("inv_"),
        "{invitation:?}"
    );
    let text = invitation.to_string();
    let address = fixture.address();
    let other = Hub::connect(format!("http://{address}")).agent_name("Scout").open().await.unwrap();
    let scout = other.join(&text.parse().unwrap()).await.unwrap();
    assert_eq!(scout.id(), session.id());
    assert!(matches!(other.join(&invitation).await, Err(Error::AccessDenied)));
    let (search, own) = (
        scout.tool("trains").says("Looking.").start().await.unwrap(),
        session.tool("map").says("Reading.").start().await.unwrap(),
    );
    search.succeed("One at nine.").await.unwrap();
    own.succeed("Read.").await.unwrap();
    let (answer, _) = tokio::join!(scout.ask(payment_action()), fixture.listener.decide_next("accept"));
    let Ok(Answer::Granted(granted)) = answer else { panic!("{answer:?}") };
    scout.call(granted, async |_| Ok::<_, std::convert::Infallible>(())).await.unwrap();
    session.finish("You leave at nine.").await.unwrap();
    // The session has ended for everybody in it.
    assert_eq!(scout.stopped().await, sayso::StopReason::Other);
    let events = fixture.listener.events_until("session.completed").await;
    assert!(events.iter().any(|event| event["producer"]["agent_id"] == "scout"));
}

pub(crate) async fn a_session_can_be_a_part_of_another_one(mut fixture: HubFixture) {
    let session = fixture.hub.session("Plan a trip.").start().await.unwrap();
    let part = fixture.hub.session("Find a train.").parent(&session).start().await.unwrap();
    part.finish("One at nine.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let last = events.last().unwrap();
    assert_eq!(last["extensions"]["sayso"]["parent_session_id"], session.id());
    session.finish("You leave at nine.").await.unwrap();
}

#[test]
fn a_text_that_is_not_an_invitation_is_refused() {
    for text in ["", "sess_1", "sess_1.", "sess_1.rpl_1", "inv_1", "x.inv_1"] {
        assert!(matches!(text.parse::<sayso::Invitation>(), Err(Error::Malformed(_))), "{text}");
    }
}
