//! What an agent says is heard alike on each wire, shaped as was agreed.

use serde_json::{Value, json};

use crate::handshake::words;
use crate::stage::{Stage, can_reply, people};
use crate::wire::{Kind, Wire};

fn tool(number: u64) -> [Value; 2] {
    let call = format!("call_{number}");
    [
        json!({"type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": call, "summary_normal": format!("Looking, {number}.")}),
        json!({"type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": call, "status": "success", "summary_normal": "Seen."}),
    ]
}

fn completed() -> Value {
    json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done now.", "summary_terse": "Done.", "summary_detailed": "All is done now, and nothing is left."})
}

pub(crate) fn the_same_is_heard_on_each(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let wanted = json!({"supports_confirmation_reply": true, "languages": ["yo", "en"], "preferred_verbosity": "detailed"});
    let (mut wire, id) = stage.subscribed(&wanted);
    let (mut other, _) = stage.neighbour(&people().ben, &wanted);
    let session = stage.start();
    stage.publish(&session, &tool(1));
    for piece in ["\u{1f600} Your balance is 12.5", "0 euro. I wi", "ll ask; \"quoted\"\nand on.\n\n"] {
        stage.output(&session, piece, false);
    }
    stage.output(&session, "The end", true);
    let token = stage.ask(&session, &crate::stage::question());
    wire.until_type("awaiting.confirmation");
    wire.say(&crate::stage::reply(&id, &token, "reject").to_string());
    stage.outcome(&session, &token);
    stage.publish(&session, &[completed()]);
    let mut again = stage.same_person(&wanted).0;
    let second = stage.start();
    stage.publish(&second, &[completed()]);
    let heard = wire.until_type("session.completed").len();
    assert!(heard >= 2, "the resolution, and the end");
    wire.until_type("session.completed");
    let expected = (&mut other as &mut dyn Wire).until(|event| event["session_id"] == second.as_str());
    assert_eq!(expected.iter().filter(|event| event["type"] == "aaep:agent.output.streaming").count(), 3);

    // From the start once more, so that every event is compared letter for letter.
    assert_eq!(again.until_type("session.completed").len(), 2);
    let third = stage.start();
    stage.publish(&third, &tool(7));
    stage.output(&third, "One. Two. Thr", false);
    stage.output(&third, "ee.", true);
    stage.publish(&third, &[completed()]);
    let of_third = |event: &Value| {
        event["session_id"] == third.as_str() && event["type"] == "aaep:agent.session.completed"
    };
    let there: Vec<_> = (&mut other as &mut dyn Wire)
        .until(of_third)
        .into_iter()
        .filter(|event| event["session_id"] == third.as_str())
        .collect();
    let here = wire.until(of_third);
    assert_eq!(here, there);
    assert_eq!(again.until(of_third), there);
}

pub(crate) fn words_are_as_many_as_wanted(kind: Kind) {
    for (verbosity, said) in [
        ("terse", "Done."),
        ("normal", "All is done now."),
        ("detailed", "All is done now, and nothing is left."),
    ] {
        let mut stage = Stage::in_memory(kind);
        let (mut wire, _) = stage.subscribed(&json!({"preferred_verbosity": verbosity}));
        let session = stage.start();
        stage.publish(&session, &[completed()]);
        let last = wire.until_type("session.completed").pop().unwrap();
        assert!(words(&last).contains(&said.to_owned()), "{verbosity}: {last}");
        assert_eq!(last["verbosity"].as_str().unwrap_or("normal"), verbosity, "{last}");
    }
}

pub(crate) fn language_is_as_wanted(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, _) = stage.subscribed(&json!({"languages": ["yo-NG"]}));
    let session = stage.start();
    let both = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done.", "summary_normal_yo": "O ti pari.",
        "localization_hints": {"primary_language": "en", "available_languages": ["en", "yo"]}});
    stage.publish(&session, &[both]);
    let last = wire.until_type("session.completed").pop().unwrap();
    assert_eq!(last["summary_normal"], "O ti pari.", "{last}");
    assert_eq!(last["localization_hints"]["primary_language"], "yo", "{last}");
}

pub(crate) fn text_comes_in_sentences(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, _) = stage.subscribed(&json!({"coalesce_boundaries": ["sentence", "completion"]}));
    let session = stage.start();
    for piece in ["Pi is 3.1", "4 or s", "o. Is it", "? Yes"] {
        stage.output(&session, piece, false);
    }
    stage.output(&session, "", true);
    stage.publish(&session, &[completed()]);
    let heard = wire.until_type("session.completed");
    let chunks: Vec<_> = heard
        .iter()
        .filter(|event| event["type"] == "aaep:agent.output.streaming")
        .map(|event| {
            (
                event["chunk"].as_str().unwrap(),
                event["position"].as_u64().unwrap(),
                event["complete"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(chunks, [("Pi is 3.14 or so. ", 0, false), ("Is it? ", 18, false), ("Yes", 25, true)]);
}

pub(crate) fn filters_hold_and_what_is_critical_passes(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let mut wanted = can_reply();
    wanted["event_filters"] = json!({"include": ["aaep:agent.session.*"], "exclude": ["aaep:agent.session.started", "aaep:agent.session.errored"]});
    let (mut wire, id) = stage.subscribed(&wanted);
    let session = stage.start();
    stage.publish(&session, &tool(1));
    let token = stage.ask(&session, &crate::stage::question());
    let heard = wire.until_type("awaiting.confirmation");
    assert!(heard.iter().all(|event| event["type"] != "aaep:agent.session.started"), "{heard:?}");
    assert!(heard.iter().all(|event| !event["type"].as_str().unwrap().contains("tool")), "{heard:?}");
    wire.say(&crate::stage::reply(&id, &token, "reject").to_string());
    stage.outcome(&session, &token);
    let failed = json!({"type": "aaep:agent.session.errored", "urgency": "critical", "error_category": "permanent", "summary_normal": "It failed."});
    stage.publish(&session, &[failed]);
    let heard = wire.until_type("session.errored");
    assert!(heard.iter().all(|event| event["type"] != "aaep:agent.tool.completed"));
}

pub(crate) fn the_rate_is_kept_by_joining(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, _) = stage.subscribed(&json!({"max_events_per_second": 2}));
    let session = stage.start();
    let mut said: Vec<_> = (1..=50)
        .map(|percent| json!({"type": "aaep:agent.progress.updated", "progress": {"percent": percent * 2}}))
        .collect();
    said.push(completed());
    stage.publish(&session, &said);
    let heard = wire.until_type("session.completed");
    let progress: Vec<_> = heard.iter().filter_map(|event| event["progress"]["percent"].as_u64()).collect();
    assert!(progress.len() < 50, "joined: {progress:?}");
    assert_eq!(progress.last(), Some(&100), "the last one holds");
    assert_eq!(heard[0]["type"], "aaep:agent.session.started");
}
