//! The handshake, other terms, and the listener's own end.

use serde_json::{Value, json};

use crate::sse::Listener;
use crate::stage::{Stage, accepted, can_reply, people, request};
use crate::wire::{Heard, Kind, Sign, Wire};
use testing::messages::{FROM_THE_FUTURE, close, renegotiate};

pub(crate) fn every_capability_is_echoed(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let wanted = json!({
        "max_events_per_second": 50,
        "preferred_verbosity": "detailed",
        "languages": ["de", "en-US"],
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "coalesce_boundaries": ["paragraph", "completion"],
        "event_filters": {"include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"]},
        "supported_conformance_levels": [1, 2, 3],
        "supported_extensions": ["urn:sayso:context:v1"],
        "cognitive_load": "high",
        "pace_wpm": 180,
        "accept_signed_manifests_only": false,
    });
    let mut wire = stage.connect();
    let answer = wire.subscribe(&request(&wanted));
    accepted(&answer);
    assert_eq!(answer["aaep_version"], "1.0.0");
    assert_eq!(answer["producer"]["agent_id"], "sayso-hub");
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(answer["honored_capabilities"][name], *value, "{name} in {answer}");
    }

    // Also those that were not asked for, filled from their defaults.
    let (_, _) = stage.neighbour(&people().ben, &json!({}));
    let mut plain = Listener::new(&stage.hub.address, &people().ben);
    let honored = plain.subscribe(&request(&json!({})))["honored_capabilities"].take();
    for (name, value) in [
        ("preferred_verbosity", json!("normal")),
        ("languages", json!(["en-US"])),
        ("supports_confirmation_reply", json!(false)),
        ("supports_clarification_reply", json!(false)),
        ("coalesce_boundaries", json!(["sentence", "completion"])),
        ("cognitive_load", json!("medium")),
        ("accept_signed_manifests_only", json!(false)),
    ] {
        assert_eq!(honored[name], value, "{name} in {honored}");
    }
}

/// §8.3: 64 KiB must pass, and 1 MiB should.
pub(crate) fn large_messages_are_carried(kind: Kind) {
    for size in [64 * 1024, 1024 * 1024] {
        let mut stage = Stage::in_memory(kind);
        let mut wire = stage.connect();
        let padded = request(&json!({"x_unknown": "x".repeat(size)}));
        assert!(padded.len() > size);
        accepted(&wire.subscribe(&padded));
    }
}

pub(crate) fn another_version_is_refused(kind: Kind) {
    refused(kind, FROM_THE_FUTURE, "version_unsupported", Sign::Status(409));
}

pub(crate) fn terms_that_cannot_be_are_refused(kind: Kind) {
    let impossible = request(&json!({"max_events_per_second": 0}));
    refused(kind, &impossible, "capabilities_incompatible", Sign::Status(409));
}

pub(crate) fn a_signed_manifest_comes_inline_when_demanded(kind: Kind) {
    let mut stage = Stage::on_disk(kind);
    let shown = std::fs::read_to_string(stage.data().join("manifest.jwk")).unwrap();
    let trusted = aaep::manifest::Trusted::read(&shown).unwrap();
    let mut wire = stage.connect();
    let answer = wire.subscribe(&request(&json!({"accept_signed_manifests_only": true})));
    accepted(&answer);
    assert_eq!(answer["honored_capabilities"]["accept_signed_manifests_only"], true, "{answer}");
    let signed = answer["signed_manifest"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let manifest = aaep::manifest::verify(signed, &trusted).unwrap();
    assert_eq!(manifest.agent_id, answer["producer"]["agent_id"]);
}

pub(crate) fn a_malformed_request_is_refused(kind: Kind) {
    let nameless = r#"{"type":"subscription.request","aaep_version":"1.0.0","capabilities":{}}"#;
    refused(kind, nameless, "unknown", Sign::Status(400));
}

/// A request is refused for that reason, with the wire's own sign; nobody is subscribed after it.
fn refused(kind: Kind, request_text: &str, reason: &str, status: Sign) {
    let mut stage = Stage::in_memory(kind);
    let mut wire = stage.connect();
    let answer = wire.subscribe(request_text);
    assert_eq!(answer["type"], "subscription.rejected", "{answer}");
    assert_eq!(answer["reason_code"], reason, "{answer}");
    assert!(!answer["reason_message"].as_str().unwrap().is_empty());
    assert_eq!(wire.sign(), kind.pick(status, Sign::Code(4001), Sign::End, Sign::Stays));
    if kind == Kind::Stdio {
        accepted(&wire.subscribe(&request(&can_reply())));
    }
}

pub(crate) fn whoever_begins_with_something_else_is_not_heard(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let other = renegotiate("sub_1", "{}");
    let mut wire = stage.connect();
    match kind {
        Kind::Sse => {
            let answer = stage.agent.with("X-Other: 1").post("/aaep/v1/subscriptions", &other);
            assert_eq!(answer.status, 403, "an agent is not even looked at: {answer:?}");
            let answer = wire.subscribe(&other);
            assert_eq!(answer["type"], "subscription.rejected", "{answer}");
            assert_eq!(wire.sign(), Sign::Status(400));
        }
        Kind::Stdio => {
            assert_eq!(wire.ask(&other)["code"], -32602);
            assert_eq!(wire.sign(), Sign::Stays);
        }
        _ => {
            wire.say(&other);
            assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(4004), Sign::End, Sign::End));
        }
    }
}

pub(crate) fn who_is_not_known_is_not_let_in(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    for token in ["", "sayso_guess"] {
        match kind {
            Kind::Sse => {
                let mut wire = Listener::new(&stage.hub.address, token);
                let answer = wire.subscribe(&request(&json!({})));
                assert_eq!(answer["reason_code"], "authentication_required", "C-E5: {answer}");
                assert_eq!(wire.sign(), Sign::Status(401));
            }
            Kind::WebSocket => assert_eq!(kind.connect(&mut stage.hub, token).err(), Some(401)),
            // The file is private, and the pipes are those of who started the hub.
            Kind::Lines | Kind::Counted => {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::metadata(&stage.hub.socket).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
            }
            Kind::Stdio => {}
        }
    }
}

pub(crate) fn an_agent_does_not_listen(kind: Kind) {
    if !kind.has_tokens() {
        return;
    }
    let mut stage = Stage::in_memory(kind);
    let mut wire = kind.connect(&mut stage.hub, &people().bank).unwrap();
    let answer = wire.subscribe(&request(&json!({})));
    assert_eq!(
        (&answer["type"], &answer["reason_code"]),
        (&json!("subscription.rejected"), &json!("authorization_denied"))
    );
    assert_eq!(wire.sign(), kind.pick(Sign::Status(403), Sign::Code(4003), Sign::End, Sign::End));
}

pub(crate) fn narrower_terms_hold_from_then_on(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let session = stage.start();
    assert_eq!(wire.event()["type"], "aaep:agent.session.started");
    let narrower = r#"{"preferred_verbosity":"terse","event_filters":{"include":["aaep:agent.*"],"exclude":["aaep:agent.progress.*"]},"supports_confirmation_reply":false}"#;
    let answer = wire.ask(&renegotiate(&id, narrower));
    assert_eq!(accepted(&answer), id);
    let honored = &answer["honored_capabilities"];
    assert_eq!(honored["preferred_verbosity"], "terse");
    assert_eq!(honored["supports_confirmation_reply"], false);
    assert_eq!(honored["supports_clarification_reply"], true, "what was not said stays");
    let progress = json!({"type": "aaep:agent.progress.updated", "progress": {"percent": 5}});
    let done = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done now.", "summary_terse": "Done."});
    stage.publish(&session, &[progress, done]);
    let last = wire.event();
    assert_eq!(last["type"], "aaep:agent.session.completed", "progress is not heard any more");
    assert!(words(&last).contains(&"Done.".to_owned()), "{last}");
}

/// All texts of an event's summaries.
pub(crate) fn words(event: &Value) -> Vec<String> {
    let members = event.as_object().unwrap().iter();
    members
        .filter(|(name, _)| name.starts_with("summary_"))
        .map(|(_, text)| text.as_str().unwrap().into())
        .collect()
}

pub(crate) fn other_terms_that_cannot_be_end_it(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let answer = wire.ask(&renegotiate(&id, r#"{"max_events_per_second":0}"#));
    assert_eq!(answer["type"], "subscription.rejected", "{answer}");
    assert_eq!(answer["reason_code"], "capabilities_incompatible");
    if !kind.has_tokens() {
        let last = wire.message();
        assert_eq!((&last["type"], &last["subscription_id"]), (&json!("subscription.close"), &json!(id)));
    }
    assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(4001), Sign::End, Sign::Stays));
    is_no_more(&stage, kind, &id);
}

pub(crate) fn the_listener_closes(kind: Kind) {
    let mut stage = Stage::in_memory(kind);
    let (mut wire, id) = stage.subscribed(&can_reply());
    let session = stage.start();
    let token = stage.ask(&session, &crate::stage::question());
    wire.until_type("awaiting.confirmation");
    wire.say(&close(&id));
    assert_eq!(wire.sign(), kind.pick(Sign::End, Sign::Code(4005), Sign::End, Sign::Stays));
    let told = stage.outcome(&session, &token);
    assert_eq!(
        (&told["decision"], &told["by"]),
        (&json!("reject"), &json!("closure")),
        "nobody is left to ask"
    );
    is_no_more(&stage, kind, &id);
    if kind == Kind::Stdio {
        assert_ne!(accepted(&wire.subscribe(&request(&can_reply()))), id);
        assert!(matches!(wire.next(), Heard::Event(_)), "it is told where things stand");
    }
}

/// Nobody can listen on it any more.
fn is_no_more(stage: &Stage, kind: Kind, id: &str) {
    if kind.has_tokens() {
        let client = testing::http::Client::of(&stage.hub.address).bearer(&people().ada);
        assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={id}")).status, 404);
    }
}
