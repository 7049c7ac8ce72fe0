//! Who joins late, and who comes back.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::sse::Listener;
use crate::stage::{Stage, can_reply, people, question, reply, request};
use crate::wire::{Back, Heard, Kind, Wire};

pub(crate) fn who_joins_late_is_told_where_things_stand(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut first, _) = stage.neighbour(&people().ben, &can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &question());
    let asked = (&mut first as &mut dyn Wire).until_type("awaiting.confirmation").pop().unwrap();
    let (mut wire, id) = stage.subscribed(&can_reply());
    let state = wire.event();
    assert_eq!(state["type"], "aaep:agent.state.changed");
    assert_eq!(
        (&state["from_state"], &state["to_state"]),
        (&json!("awaiting_input"), &json!("awaiting_input"))
    );
    assert_eq!(state["session_id"], session.as_str());
    assert_eq!(wire.event(), asked, "the question, as it was asked");
    wire.say(&reply(&id, &token, "accept").to_string());
    assert_eq!(stage.outcome(&session, &token)["decision"], "accept");
    wire.resolution(&token);
}

pub(crate) fn who_returns_lacks_nothing(kind: Kind) {
    returns(kind, false);
}

pub(crate) fn who_returns_after_a_crash_lacks_nothing(kind: Kind) {
    returns(kind, true);
}

fn returns(kind: Kind, crash: bool) {
    let mut stage = Stage::on_disk(kind);
    let (mut wire, mut id) = stage.subscribed(&can_reply());
    let session = stage.start();
    wire.until_type("session.started");
    stage.output(&session, "First. Sec", false);
    wire.until(|event| event["chunk"] == "First. ");
    if crash {
        stage.hub.kill();
        stage.start_again();
    } else if !wire.lose() {
        // Its own way to be away: nobody is subscribed for a while.
        wire.say(&testing::messages::close(&id));
        wire.sign();
    }
    stage.output(&session, "ond. Third. ", false);
    let token = stage.ask(&session, &question());
    match wire.come_back(&mut stage.hub, &request(&can_reply())) {
        Back::Resumed => {
            let missed = wire.until_type("awaiting.confirmation");
            let text: String = missed.iter().filter_map(|event| event["chunk"].as_str()).collect();
            assert_eq!(text, "Second. Third. ", "{missed:?}");
            assert_eq!(missed.last().unwrap()["reply_token"], token.as_str());
        }
        Back::Afresh(new) => {
            assert_ne!(new, id);
            id = new;
            let state = wire.event();
            assert_eq!(state["from_state"], state["to_state"], "{state}");
            if stage.status(&session, &token)["status"] == "resolved" {
                // Nobody was there to be asked, and that means no.
                assert_eq!(stage.status(&session, &token)["decision"], "reject");
                return;
            }
            assert_eq!(wire.event()["reply_token"], token.as_str());
        }
    }
    wire.say(&reply(&id, &token, "accept").to_string());
    assert_eq!(stage.outcome(&session, &token)["decision"], "accept");
    wire.resolution(&token);
}

/// Two sessions, one event a second: the question of the second goes before what waits of the first.
pub(crate) fn what_was_overtaken_is_not_lost(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let mut wanted = can_reply();
    wanted["max_events_per_second"] = json!(1);
    let (mut wire, _) = stage.subscribed(&wanted);
    let (mut other, _) = stage.neighbour(&people().ben, &can_reply());
    let (talker, asker) = (stage.start(), stage.start());
    let looks = (0..3).flat_map(|number| {
        let call = format!("call_{number}");
        [
            json!({"type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": call, "summary_normal": "Looking."}),
            json!({"type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": call, "status": "success"}),
        ]
    });
    stage.publish(&talker, &looks.collect::<Vec<_>>());
    let token = stage.ask(&asker, &question());
    let mut heard = wire.until_type("awaiting.confirmation");
    assert_eq!(heard.last().unwrap()["reply_token"], token.as_str());
    let is_tool = |event: &&Value| event["type"].as_str().unwrap().starts_with("aaep:agent.tool.");
    assert!(heard.iter().filter(is_tool).count() < 6, "it has overtaken: {heard:?}");
    if kind == Kind::Sse {
        wire.lose();
        assert_eq!(wire.come_back(&mut stage.hub, &request(&wanted)), Back::Resumed);
    }
    let all = (&mut other as &mut dyn Wire).until_type("awaiting.confirmation");
    let mut missing: BTreeSet<_> =
        all.iter().filter(is_tool).map(|event| event["event_id"].to_string()).collect();
    assert_eq!(missing.len(), 6);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        for event in heard.drain(..) {
            let id = event["event_id"].to_string();
            missing.remove(&id);
            *times.entry(id).or_default() += 1;
        }
        if missing.is_empty() {
            break;
        }
        heard.push(wire.event());
    }
    if kind != Kind::Sse {
        assert!(times.values().all(|count| *count == 1), "nothing comes twice: {times:?}");
    }
}

pub(crate) fn a_gap_is_told(kind: Kind) {
    if kind != Kind::Sse {
        return;
    }
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &question());
    wire.until_type("awaiting.confirmation");
    let mut back = Listener::new(&stage.hub.address, &people().ada);
    back.resume(&id, "evt_ofLongAgo");
    let back: &mut dyn Wire = &mut back;
    let gap = back.message();
    assert_eq!((&gap["type"], &gap["subscription_id"]), (&json!("sayso:gap"), &json!(id)));
    assert_eq!(gap["last_event_id"], "evt_ofLongAgo");
    let state = back.event();
    assert_eq!(state["extensions"]["sayso"]["gap"], true, "{state}");
    assert_eq!(
        (&state["from_state"], &state["to_state"]),
        (&json!("awaiting_input"), &json!("awaiting_input"))
    );
    assert_eq!(back.event()["reply_token"], token.as_str());
    // From there on it is like before.
    back.say(&reply(&id, &token, "accept").to_string());
    back.resolution(&token);
    back.lose();
    assert_eq!(back.come_back(&mut stage.hub, ""), Back::Resumed);
    stage.publish(&session, &[json!({"type": "aaep:agent.session.completed", "summary_normal": "Done."})]);
    assert_eq!(back.event()["type"], "aaep:agent.session.completed", "no gap any more, and nothing twice");
}

/// A new subscription begins after the place that was told last.
pub(crate) fn a_new_subscription_goes_on_where_another_was(kind: Kind) {
    if kind == Kind::Sse {
        return;
    }
    let mut stage = Stage::in_memory(kind);
    let mut wanted = can_reply();
    wanted["sayso"] = json!({"places": true, "after": "evt_ofLongAgo"});
    let mut wire = stage.connect();
    let answer = wire.subscribe(&request(&wanted));
    assert_eq!(answer["honored_capabilities"]["sayso"], json!({"places": true}), "{answer}");
    assert_eq!(answer["negotiation_notes"], Value::Null, "{answer}");
    let session = stage.start();
    let started = wire.event()["event_id"].clone();
    let place = wire.message();
    assert_eq!(place, json!({"type": "sayso:place", "last_event_id": started}));
    stage.ask(&session, &question());
    let mut heard = Vec::new();
    while heard.last() != Some(&json!("aaep:agent.awaiting.confirmation")) {
        match wire.next() {
            Heard::Event(event) => heard.push(event["type"].clone()),
            Heard::Message(message) => assert_eq!(message["type"], "sayso:place", "{message}"),
            Heard::Alive => {}
            Heard::End(sign) => panic!("{sign:?}"),
        }
    }
    let mut later = can_reply();
    later["sayso"] = json!({"after": started});
    let mut back = Listener::new(&stage.hub.address, &people().ben);
    let answer = back.subscribe(&request(&later));
    assert_eq!(answer["honored_capabilities"]["sayso"], later["sayso"], "{answer}");
    let back: &mut dyn Wire = &mut back;
    let missed = back.until_type("awaiting.confirmation");
    let missed: Vec<_> = missed.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(missed, heard, "what came after it, as it came");
    // A place in the log means nothing to a log that has begun anew.
    later["sayso"] = json!({"after": "at_1"});
    let answer = Listener::new(&stage.hub.address, &people().ben).subscribe(&request(&later));
    assert_eq!(answer["honored_capabilities"]["sayso"], Value::Null, "{answer}");
}
